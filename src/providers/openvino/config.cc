#include "providers/openvino/config.h"

#include <algorithm>
#include <filesystem>

#include "base/log.h"
#include "base/thread_pool.h"
#include "providers/openvino/byte_products.h"
#include "providers/openvino/find.h"

namespace epona::openvino {
namespace {

constexpr const char* kProvider = "OpenVINOExecutionProvider";

const OptionSpec kSchema[] = {
    {"device_type", OptionType::text, "CPU", "",
     "CPU, GPU, NPU, GPU.1, or several: AUTO:GPU,CPU, HETERO:GPU,CPU, MULTI:GPU,CPU"},
    {"device_id", OptionType::text, "", "", "a device in OpenVINO's own words; wins over device_type when given"},
    {"precision", OptionType::choice, "", "|FP32|FP16|ACCURACY",
     "precision of float32 values while computing; empty: float32 where the device has it"},
    {"num_of_threads", OptionType::integer, "0", "0..",
     "threads on the CPU; 0: as many as the session's intra_op pool has"},
    {"num_streams", OptionType::integer, "1", "1..", "requests that run side by side"},
    {"cache_dir", OptionType::path, "", "",
     "folder for compiled models and for who runs what, so that later sessions start sooner; files hold the weights "
     "and are named by contents and settings; Epona deletes none, you may at any time (a file's time is that of its last "
     "use)"},
    {"load_config", OptionType::path, "", "",
     "JSON file of OpenVINO properties by device: {\"CPU\": {\"KEY\": \"value\"}}"},
    {"context", OptionType::text, "", "", "address of an OpenCL context to share (not supported)"},
    {"model_priority", OptionType::choice, "DEFAULT", "LOW|MEDIUM|HIGH|DEFAULT",
     "which models get the device first (AUTO, GPU, NPU)"},
    {"enable_opencl_throttling", OptionType::boolean, "0", "", "GPU: spare the CPU while waiting for the queue"},
    {"enable_qdq_optimizer", OptionType::boolean, "0", "",
     "NPU: keep quantised operators together in the model that the device gets. CPU: let OpenVINO run 8-bit nets on its "
     "8-bit kernels even where the processor has no VNNI; their sums saturate at 16 bits there and results are off by 2 to "
     "7% of the largest value. Elsewhere without effect"},
    {"keep_nan", OptionType::boolean, "0", "",
     "CPU: leave operators in which OpenVINO makes a number of NaN (Relu, Clip, Exp, Max, pooling and others) to the next "
     "provider; most nets are left to it then. Without it the session leaves OpenVINO, with a warning, at the first run in "
     "which an input holds NaN or an infinity, or a division, root, logarithm or power inside would make one; only NaN that "
     "follows from numbers beyond 3.4e38 inside the model may still become a number"},
    {"disable_dynamic_shapes", OptionType::boolean, "0", "",
     "compile anew for each set of input shapes instead of once for all"},
    {"reshape_input", OptionType::text, "", "", "dims or ranges of model inputs: x[1,3,60..640,?],y[4]"},
    {"layout", OptionType::text, "", "",
     "layouts of model inputs and outputs: x[NCHW],y[NC]; checked, and of no effect on results"},
    {"workload_type", OptionType::choice, "", "|Default|Efficient", "NPU: how urgent the work is", true},
    {"enable_causallm", OptionType::boolean, "0", "", "accepted for compatibility; no effect"},
    {"so_share_ep_contexts", OptionType::boolean, "0", "", "accepted for compatibility; no effect"},
};

[[noreturn]] void refuse(const char* key, const std::string& text, const std::string& expected) {
  fail(Code::invalid_argument, kProvider, ": option ", key, " is '", text, "'; expected ", expected);
}

/// Splits "a[..],b[..]" into names and what stands in brackets.
std::vector<std::pair<std::string, std::string>> parse_bracketed(const char* key, const std::string& text,
                                                                 const std::string& expected) {
  std::vector<std::pair<std::string, std::string>> items;
  size_t at = 0;
  while (at < text.size()) {
    while (at < text.size() && (text[at] == ',' || text[at] == ' ')) ++at;
    if (at == text.size()) break;
    size_t open = text.find('[', at), close = text.find(']', at);
    if (open == std::string::npos || close == std::string::npos || close < open || open == at)
      refuse(key, text, expected);
    std::string name = text.substr(at, open - at);
    while (!name.empty() && name.back() == ' ') name.pop_back();
    items.emplace_back(name, text.substr(open + 1, close - open - 1));
    at = close + 1;
  }
  return items;
}

bool parse_number(std::string_view text, int64_t& number) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  if (text.empty() || text.size() > 18 ||
      !std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return false;
  number = std::stoll(std::string(text));
  return true;
}

void check_layout(const std::string& text) {
  const char* expected = "input and output names with layouts, as x[NCHW],y[NC]";
  for (auto& [name, layout] : parse_bracketed("layout", text, expected))
    if (layout.empty() || !std::all_of(layout.begin(), layout.end(), [](unsigned char c) {
          return std::isalpha(c) || c == '?' || c == '.' || c == '*';
        }))
      refuse("layout", text, expected);
}

/// Older spellings carry the precision: CPU_FP32, GPU.0_FP16.
void split_device(std::string& device, std::string& precision) {
  for (const char* ending : {"_FP32", "_FP16"}) {
    if (!device.ends_with(ending)) continue;
    device.resize(device.size() - 5);
    if (precision.empty()) precision = ending + 1;
  }
}

void add_device_properties(Config& config, const std::string& device, const OptionValues& options,
                           const std::string& precision, int threads) {
  auto add = [&](const char* key, std::string value) { config.properties.push_back({device, key, std::move(value)}); };
  bool cpu = device == "CPU", gpu = device.starts_with("GPU"), npu = device.starts_with("NPU");
  if (!cpu && !gpu && !npu) return;
  if (precision == "ACCURACY")
    add("EXECUTION_MODE_HINT", "ACCURACY");
  else if (precision == "FP16")
    add("INFERENCE_PRECISION_HINT", "f16");
  else if (!npu)
    // The default would be bfloat16 or float16 wherever the hardware has it.
    add("INFERENCE_PRECISION_HINT", "f32");
  if (npu && precision == "FP32") refuse("precision", precision, "FP16 or ACCURACY with device NPU");
  add("PERFORMANCE_HINT", "LATENCY");
  if (cpu) add("INFERENCE_NUM_THREADS", std::to_string(threads));
  if (cpu || gpu) add("NUM_STREAMS", options.text("num_streams"));
  if (!cpu && options.text("model_priority") != "DEFAULT") add("MODEL_PRIORITY", options.text("model_priority"));
  if (gpu && options.boolean("enable_opencl_throttling")) add("GPU_QUEUE_THROTTLE", "LOW");
  if (npu && !options.text("workload_type").empty()) {
    std::string type = options.text("workload_type");
    std::transform(type.begin(), type.end(), type.begin(), [](unsigned char c) { return std::toupper(c); });
    add("WORKLOAD_TYPE", type);
  }
  if (npu && options.boolean("enable_qdq_optimizer")) add("NPU_QDQ_OPTIMIZATION", "YES");
}

}  // namespace

OptionSchema schema() { return kSchema; }

std::map<std::string, ReshapeDims> parse_reshape(const std::string& text) {
  const char* expected = "input names with dims, as x[1,3,60..640,?],y[4]";
  std::map<std::string, ReshapeDims> inputs;
  for (auto& [name, list] : parse_bracketed("reshape_input", text, expected)) {
    ReshapeDims dims;
    size_t from = 0;
    while (from < list.size()) {
      size_t comma = std::min(list.find(',', from), list.size());
      std::string item = list.substr(from, comma - from);
      from = comma + 1;
      int64_t low = 0, high = -1;
      size_t range = item.find("..");
      if (item.find('?') != std::string::npos) {
        low = 0;
      } else if (range != std::string::npos) {
        if (!parse_number(item.substr(0, range), low) || !parse_number(item.substr(range + 2), high) || high < low)
          refuse("reshape_input", text, expected);
      } else {
        if (!parse_number(item, low)) refuse("reshape_input", text, expected);
        high = low;
      }
      dims.emplace_back(low, high);
    }
    inputs[name] = std::move(dims);
  }
  return inputs;
}

std::string to_text(const Config& config) {
  std::string text = cat(config.device, " ", config.static_shapes, config.exact_bytes, config.keep_nan);
  for (const Property& property : config.properties)
    text += cat("\n", property.device, " ", property.key, " ", property.value);
  for (auto& [name, dims] : config.reshape) {
    text += cat("\n", name);
    for (auto& [low, high] : dims) text += cat(" ", low, " ", high);
  }
  return text;
}

Config make_config(const OptionValues& options, const ProviderContext& context) {
  Config config;
  std::string precision = options.text("precision");
  config.device = options.text("device_id").empty() ? options.text("device_type") : options.text("device_id");
  split_device(config.device, precision);
  if (config.device.empty()) refuse("device_type", config.device, "a device, as CPU or AUTO:GPU,CPU");
  if (!options.text("context").empty() && options.text("context") != "0")
    refuse("context", options.text("context"), "nothing: sharing an OpenCL context is not supported");
  int threads = static_cast<int>(options.integer("num_of_threads"));
  if (threads == 0) threads = context.threads > 0 ? context.threads : cpu_budget();
  std::vector<std::string> devices = named_devices(config.device);
  if (devices.empty()) devices = plugin_devices(find_installation());  // "AUTO" alone
  for (const std::string& device : devices)
    // Only devices that are there can be set up; a wrong name is an error of its own when compiling.
    if (devices.size() == 1 || device == "CPU") add_device_properties(config, device, options, precision, threads);
  if (!options.text("cache_dir").empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.text("cache_dir"), error);
    if (error) refuse("cache_dir", options.text("cache_dir"), cat("a folder that can be written: ", error.message()));
    // Only models for one device can be exported by us; for several each device's plugin has OpenVINO's own cache.
    if (devices.size() == 1 && config.device.starts_with(devices[0]))
      config.cache_dir = options.text("cache_dir");
    else
      for (const std::string& device : devices)
        if (devices.size() == 1 || device == "CPU")
          config.properties.push_back({device, "CACHE_DIR", options.text("cache_dir")});
  }
  if (!options.text("load_config").empty())
    for (Property& property : parse_config_file(options.text("load_config")))
      if (std::find(devices.begin(), devices.end(), property.device) != devices.end() ||
          property.device == config.device)
        config.properties.push_back(std::move(property));
  config.reshape = parse_reshape(options.text("reshape_input"));
  check_layout(options.text("layout"));
  config.keep_nan = options.boolean("keep_nan");
  config.static_shapes = options.boolean("disable_dynamic_shapes");
  bool cpu = std::find(devices.begin(), devices.end(), "CPU") != devices.end();
  bool npu = std::any_of(devices.begin(), devices.end(), [](const std::string& d) { return d.starts_with("NPU"); });
  bool gpu = std::any_of(devices.begin(), devices.end(), [](const std::string& d) { return d.starts_with("GPU"); });
  auto no_effect = [&](const char* key, const char* why) {
    log(Severity::warning, context.severity, context.log_id,
        cat(kProvider, ": option ", key, " has no effect on device ", config.device, why));
  };
  if (!options.text("workload_type").empty() && !npu) no_effect("workload_type", ": only NPUs have it");
  if (options.boolean("enable_opencl_throttling") && !gpu) no_effect("enable_opencl_throttling", ": only GPUs have it");
  if (options.text("model_priority") != "DEFAULT" && cpu && devices.size() == 1 && config.device == "CPU")
    no_effect("model_priority", "");
  bool saturates = cpu && !byte_products_are_exact();
  config.exact_bytes = saturates && !options.boolean("enable_qdq_optimizer");
  if (options.boolean("enable_qdq_optimizer") && !saturates && !npu)
    no_effect("enable_qdq_optimizer", cpu ? ": its 8-bit products are exact and are used anyway" : "");
  return config;
}

}  // namespace epona::openvino
