#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

/// OpenVINO's C API (2024 and later) as far as it is used here, declared by us: no header is needed to build, no library
/// is linked. Structures and numbers are part of its binary interface.
namespace epona::openvino {

struct ov_core;
struct ov_model;
struct ov_compiled_model;
struct ov_infer_request;
struct ov_tensor;
struct ov_output_const_port;

using ov_status = int;  ///< 0 is success

struct ov_version {
  const char* build_number;
  const char* description;
};
struct ov_shape {
  int64_t rank;
  int64_t* dims;
};
struct ov_dimension {
  int64_t min, max;  ///< max -1: no limit
};
struct ov_partial_shape {
  ov_dimension rank;
  ov_dimension* dims;
};
struct ov_available_devices {
  char** devices;
  size_t size;
};

/// The functions of one opened libopenvino_c. Lives as long as the process: OpenVINO's threads and plugins do not survive
/// being unloaded.
struct Api {
  ov_status (*get_openvino_version)(ov_version*);
  void (*version_free)(ov_version*);
  const char* (*get_last_err_msg)();
  const char* (*get_error_info)(ov_status);
  void (*free)(const char*);
  ov_status (*core_create)(ov_core**);
  void (*core_free)(ov_core*);
  ov_status (*core_set_property)(const ov_core*, const char* device, ...);  ///< one key and its text
  ov_status (*core_get_property)(const ov_core*, const char* device, const char* key, char** value);
  ov_status (*core_get_available_devices)(const ov_core*, ov_available_devices*);
  void (*available_devices_free)(ov_available_devices*);
  ov_status (*core_read_model_from_memory_buffer)(const ov_core*, const char* model, size_t bytes,
                                                  const ov_tensor* weights, ov_model**);
  ov_status (*core_compile_model)(const ov_core*, const ov_model*, const char* device, size_t properties,
                                  ov_compiled_model**, ...);
  void (*model_free)(ov_model*);
  ov_status (*model_const_input_by_name)(const ov_model*, const char* name, ov_output_const_port**);
  ov_status (*model_reshape)(const ov_model*, const char** names, const ov_partial_shape*, size_t count);
  ov_status (*core_import_model)(const ov_core*, const char* blob, size_t bytes, const char* device,
                                 ov_compiled_model**);
  ov_status (*compiled_model_export_model)(const ov_compiled_model*, const char* path);
  void (*compiled_model_free)(ov_compiled_model*);
  ov_status (*compiled_model_outputs_size)(const ov_compiled_model*, size_t*);
  ov_status (*compiled_model_output_by_index)(const ov_compiled_model*, size_t, ov_output_const_port**);
  ov_status (*compiled_model_inputs_size)(const ov_compiled_model*, size_t*);
  ov_status (*compiled_model_input_by_index)(const ov_compiled_model*, size_t, ov_output_const_port**);
  ov_status (*compiled_model_get_property)(const ov_compiled_model*, const char* key, char** value);
  ov_status (*compiled_model_set_property)(const ov_compiled_model*, ...);
  ov_status (*compiled_model_create_infer_request)(const ov_compiled_model*, ov_infer_request**);
  ov_status (*port_get_any_name)(const ov_output_const_port*, char**);
  ov_status (*port_get_partial_shape)(const ov_output_const_port*, ov_partial_shape*);
  ov_status (*port_get_element_type)(const ov_output_const_port*, int*);
  void (*output_const_port_free)(ov_output_const_port*);
  void (*partial_shape_free)(ov_partial_shape*);
  ov_status (*infer_request_set_input_tensor_by_index)(ov_infer_request*, size_t, const ov_tensor*);
  ov_status (*infer_request_set_output_tensor_by_index)(ov_infer_request*, size_t, const ov_tensor*);
  ov_status (*infer_request_get_output_tensor_by_index)(const ov_infer_request*, size_t, ov_tensor**);
  ov_status (*infer_request_infer)(ov_infer_request*);
  ov_status (*infer_request_cancel)(ov_infer_request*);
  void (*infer_request_free)(ov_infer_request*);
  ov_status (*tensor_create_from_host_ptr)(int type, ov_shape, void*, ov_tensor**);
  ov_status (*tensor_get_shape)(const ov_tensor*, ov_shape*);
  ov_status (*tensor_data)(const ov_tensor*, void**);
  void (*tensor_free)(ov_tensor*);
  ov_status (*shape_free)(ov_shape*);

  /// ov::Core::query_model, ov::Model::get_ops and ov::Node::get_friendly_name, which the C API does not offer: found by
  /// their C++ names in the library underneath, null where it was built with another C++ ABI.
  void *query_model = nullptr, *get_ops = nullptr, *get_friendly_name = nullptr;
  void* import_tensor =
      nullptr;          ///< ov::Core::import_model of memory that stays: weights are not copied (since 2025.3)
  std::string version;  ///< "2026.4.1-…"
  std::filesystem::path library;

  /// Opens a library, once per path. Throws Error(ep_fail) naming the file and what is wrong with it.
  static const Api& open(const std::filesystem::path& library);

  /// Throws Error(ep_fail) with OpenVINO's own message when `status` is an error.
  void check(ov_status status, const char* doing) const {
    if (status != 0) report(status, doing);
  }
  std::string error_text(ov_status status) const;

 private:
  [[noreturn]] void report(ov_status status, const char* doing) const;
};

/// Owns one OpenVINO object.
template <class T>
struct Freer {
  void (*free)(T*) = nullptr;
  void operator()(T* object) const { free(object); }
};
template <class T>
using Owned = std::unique_ptr<T, Freer<T>>;

}  // namespace epona::openvino
