#include "providers/openvino/api.h"

#include <dlfcn.h>

#include <map>
#include <mutex>

#include "base/error.h"

namespace epona::openvino {
namespace {

constexpr const char* kQueryModel =
    "_ZNK2ov4Core11query_modelERKSt10shared_ptrIKNS_5ModelEERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEERKSt3mapI"
    "SC_NS_3AnyESt4lessISC_ESaISt4pairISD_SG_EEE";

constexpr const char* kImportTensor =
    "_ZN2ov4Core12import_modelERKNS_6TensorERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEERKSt3mapIS9_NS_3AnyESt4less"
    "IS9_ESaISt4pairISA_SD_EEE";

std::unique_ptr<Api> load(const std::filesystem::path& library) {
  // RTLD_LOCAL: the process may hold another OpenVINO (the Python package's own extension opens the same file).
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* why = dlerror();
    fail(Code::ep_fail, "cannot open ", library.string(), ": ", why ? why : "no reason given");
  }
  auto api = std::make_unique<Api>();
  auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(handle, name));
    if (!function) fail(Code::ep_fail, library.string(), " has no ", name, ": OpenVINO 2024.0 or later is needed");
  };
#define EPONA_OV(name) find(api->name, "ov_" #name)
  EPONA_OV(get_openvino_version);
  EPONA_OV(version_free);
  EPONA_OV(get_last_err_msg);
  EPONA_OV(get_error_info);
  EPONA_OV(free);
  EPONA_OV(core_create);
  EPONA_OV(core_free);
  EPONA_OV(core_set_property);
  EPONA_OV(core_get_property);
  EPONA_OV(core_get_available_devices);
  EPONA_OV(available_devices_free);
  EPONA_OV(core_read_model_from_memory_buffer);
  EPONA_OV(core_compile_model);
  EPONA_OV(model_free);
  EPONA_OV(model_const_input_by_name);
  EPONA_OV(model_reshape);
  EPONA_OV(core_import_model);
  EPONA_OV(compiled_model_export_model);
  EPONA_OV(compiled_model_free);
  EPONA_OV(compiled_model_outputs_size);
  EPONA_OV(compiled_model_output_by_index);
  EPONA_OV(compiled_model_inputs_size);
  EPONA_OV(compiled_model_input_by_index);
  EPONA_OV(compiled_model_get_property);
  EPONA_OV(compiled_model_set_property);
  EPONA_OV(compiled_model_create_infer_request);
  EPONA_OV(port_get_any_name);
  EPONA_OV(port_get_partial_shape);
  EPONA_OV(port_get_element_type);
  EPONA_OV(output_const_port_free);
  EPONA_OV(partial_shape_free);
  EPONA_OV(infer_request_set_input_tensor_by_index);
  EPONA_OV(infer_request_set_output_tensor_by_index);
  EPONA_OV(infer_request_get_output_tensor_by_index);
  EPONA_OV(infer_request_infer);
  EPONA_OV(infer_request_cancel);
  EPONA_OV(infer_request_free);
  EPONA_OV(tensor_create_from_host_ptr);
  EPONA_OV(tensor_get_shape);
  EPONA_OV(tensor_data);
  EPONA_OV(tensor_free);
  EPONA_OV(shape_free);
#undef EPONA_OV
  api->query_model = dlsym(handle, kQueryModel);  // dlsym also looks into the libraries that this one needs
  api->import_tensor = dlsym(handle, kImportTensor);
  api->get_ops = dlsym(handle, "_ZNK2ov5Model7get_opsEv");
  api->get_friendly_name = dlsym(handle, "_ZNK2ov4Node17get_friendly_nameB5cxx11Ev");
  ov_version version{};
  api->check(api->get_openvino_version(&version), "asking for its version");
  api->version = version.build_number ? version.build_number : "";
  api->version_free(&version);
  api->library = library;
  return api;
}

}  // namespace

const Api& Api::open(const std::filesystem::path& library) {
  static std::mutex mutex;
  static auto* opened = new std::map<std::filesystem::path, std::unique_ptr<Api>>;  // never destroyed, see above
  std::lock_guard lock(mutex);
  auto& api = (*opened)[library];
  if (!api) api = load(library);
  return *api;
}

std::string Api::error_text(ov_status status) const {
  const char* last = get_last_err_msg();  // a copy, of the last error of any thread
  std::string text = last && *last ? last : get_error_info(status);
  free(last);
  // The first lines say where in OpenVINO's source it happened; trailing blank lines help nobody.
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

void Api::report(ov_status status, const char* doing) const {
  fail(Code::ep_fail, "OpenVINO failed while ", doing, ": ", error_text(status));
}

}  // namespace epona::openvino
