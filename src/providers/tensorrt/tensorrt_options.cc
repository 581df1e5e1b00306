#include "providers/tensorrt/tensorrt_options.h"

namespace epona {
namespace {

using enum OptionType;

constexpr OptionSpec kOptions[] = {
    {"device_id", integer, "0", "0..1023", "the GPU to use, numbered as the driver does", true},
    {"has_user_compute_stream", boolean, "0", "", "user_compute_stream is set (follows from it)"},
    {"user_compute_stream", integer, "0", "0..", "address of a cudaStream_t to run on; its owner keeps it alive"},
    {"trt_max_workspace_size", integer, "0", "0..", "most bytes of scratch memory for an engine; 0: all of the GPU's"},
    {"trt_max_partition_iterations", integer, "1000", "1..", "rounds of asking TensorRT which nodes it parses"},
    {"trt_min_subgraph_size", integer, "1", "1..", "a group of fewer nodes stays with the next provider"},
    {"trt_fp16_enable", boolean, "0", "", "compute in float16 where TensorRT can"},
    {"trt_bf16_enable", boolean, "0", "", "compute in bfloat16 where TensorRT can"},
    {"trt_int8_enable", boolean, "0", "", "compute in int8 where the calibration table or QDQ nodes allow"},
    {"trt_int8_calibration_table_name", path, "", "", "file with the dynamic ranges for int8"},
    {"trt_int8_use_native_calibration_table", boolean, "0", "", "the table is in TensorRT's own format"},
    {"trt_dla_enable", boolean, "0", "", "use a deep learning accelerator (Jetson)"},
    {"trt_dla_core", integer, "0", "0..7", "which accelerator"},
    {"trt_engine_cache_enable", boolean, "0", "", "keep built engines in files and load them next time"},
    {"trt_engine_cache_path", path, "", "", "folder of the engine files; empty: the working folder"},
    {"trt_engine_cache_prefix", text, "", "", "start of the engine files' names"},
    {"trt_engine_decryption_enable", boolean, "0", "", "engine files are encrypted"},
    {"trt_engine_decryption_lib_path", path, "", "", "library that decrypts them"},
    {"trt_engine_hw_compatible", boolean, "0", "", "engines run on every GPU from Ampere on"},
    {"trt_weight_stripped_engine_enable", boolean, "0", "", "engine files without weights, refitted when loaded"},
    {"trt_onnx_model_folder_path", path, "", "", "where the model with the weights for refitting lies"},
    {"trt_onnx_bytestream", integer, "0", "0..", "address of the model's bytes, for refitting"},
    {"trt_onnx_bytestream_size", integer, "0", "0..", "their number"},
    {"trt_onnx_external_data_bytestream", integer, "0", "0..", "address of the external weights, for refitting"},
    {"trt_onnx_external_data_bytestream_size", integer, "0", "0..", "their number of bytes"},
    {"trt_timing_cache_enable", boolean, "0", "", "keep the timings of tactics in a file, so that builds are faster"},
    {"trt_timing_cache_path", path, "", "", "folder of the timing cache; empty: that of the engines"},
    {"trt_force_timing_cache", boolean, "0", "", "use the cache of another GPU of the same compute capability"},
    {"trt_force_timing_cache_match", boolean, "0", "", "the older name of trt_force_timing_cache"},
    {"trt_profile_min_shapes", text, "", "", "smallest shapes of dynamic inputs: name:1x3x224x224,other:1x8"},
    {"trt_profile_max_shapes", text, "", "", "largest shapes, in the same form"},
    {"trt_profile_opt_shapes", text, "", "", "shapes to be fastest for, in the same form"},
    {"trt_force_sequential_engine_build", boolean, "0", "", "build one engine at a time"},
    {"trt_context_memory_sharing_enable", boolean, "0", "", "engines of a session share their scratch memory"},
    {"trt_layer_norm_fp32_fallback", boolean, "0", "", "keep normalisations in float when computing in float16"},
    {"trt_cuda_graph_enable", boolean, "0", "", "replay engines as CUDA graphs"},
    {"trt_builder_optimization_level", integer, "3", "0..5", "how long a build may search: higher is slower to build"},
    {"trt_auxiliary_streams", integer, "-1", "-1..",
     "streams besides the main one for each engine; -1: TensorRT's choice"},
    {"trt_tactic_sources", text, "", "", "sources of tactics: +CUBLAS,-CUDNN and so on"},
    {"trt_extra_plugin_lib_paths", text, "", "", "libraries with more plugins, separated by ';'"},
    {"trt_build_heuristics_enable", boolean, "0", "", "shorten builds by heuristics"},
    {"trt_sparsity_enable", boolean, "0", "", "use 2:4 sparsity of weights"},
    {"trt_detailed_build_log", boolean, "0", "", "log every step of a build"},
    {"trt_dump_subgraphs", boolean, "0", "", "write each group that is given to TensorRT as an ONNX file"},
    {"trt_dump_ep_context_model", boolean, "0", "", "write a model with the engines inside (EPContext)"},
    {"trt_ep_context_file_path", path, "", "", "its file name"},
    {"trt_ep_context_embed_mode", integer, "0", "0..1", "1: engines inside the model file, 0: beside it"},
    {"trt_op_types_to_exclude", text, "", "", "operators that TensorRT must not take, separated by ','"},
    {"trt_preview_features", text, "", "", "TensorRT preview features to switch on, separated by ','"},
    {"trt_load_user_initializer", boolean, "0", "", "take initialisers from the caller's memory"},
};

}  // namespace

OptionSchema tensorrt_options() { return kOptions; }

}  // namespace epona
