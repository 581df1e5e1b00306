#include "providers/openvino/find.h"
#include "providers/openvino/provider.h"
#include "providers/registry.h"

namespace epona {
namespace {

std::unique_ptr<Provider> make(const OptionValues& options, const ProviderContext& context) {
  return std::make_unique<openvino::OpenVinoProvider>(options, context);
}

}  // namespace

const ProviderDef& openvino_provider_def() {
  static const ProviderDef def{"OpenVINOExecutionProvider", "CPUs, GPUs and NPUs through OpenVINO", openvino::schema,
                               openvino::probe, make};
  return def;
}

}  // namespace epona
