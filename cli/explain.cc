#include <cstdio>

#include "commands.h"
#include "json.h"

namespace epona::cli {

int command_explain(const std::vector<std::string>& words) {
  Args args = parse(words, session_specs({}));
  std::string path = model_argument(args);
  auto session = [&] {
    Progress progress("loading " + path);
    return std::make_unique<Session>(path, session_options(args));
  }();
  const Placement& placement = session->placement();
  if (args.has("json")) {
    JsonWriter json;
    json.begin_object().field("model", path).key("counts").begin_object();
    for (auto& [provider, count] : placement.counts()) json.field(provider, count);
    json.end_object().key("inactive").begin_object();
    for (auto& one : placement.inactive) json.field(one.provider, one.sentence());
    json.end_object().key("nodes").begin_array();
    for (const NodePlacement& node : placement.nodes) {
      json.begin_object().field("name", node.name).field("op", node.op).field("domain", node.domain);
      json.field("graph", node.graph).field("provider", node.provider).key("declined").begin_array();
      for (const auto& declined : node.declined)
        json.begin_object()
            .field("provider", declined.provider)
            .field("reason", declined.reason)
            .field("text", declined.text)
            .end_object();
      json.end_array().end_object();
    }
    json.end_array().end_object();
    std::printf("%s\n", json.text().c_str());
    return 0;
  }
  for (auto& one : placement.inactive) std::printf("%s\n", one.sentence().c_str());
  for (const NodePlacement& node : placement.nodes) {
    std::printf("%-24s %-28s %s", node.provider.c_str(),
                (node.domain.empty() ? node.op : node.domain + ":" + node.op).c_str(), node.name.c_str());
    for (const auto& declined : node.declined)
      std::printf("\n    %s: %s: %s", declined.provider.c_str(), declined.reason.c_str(), declined.text.c_str());
    std::printf("\n");
  }
  for (auto& [provider, count] : placement.counts())
    std::printf("%s: %d of %zu nodes\n", provider.c_str(), count, placement.nodes.size());
  for (const PassRecord& pass : session->passes())
    if (pass.rewrites) std::printf("pass %s: %d rewrites, %.2f ms\n", pass.name.c_str(), pass.rewrites, pass.milliseconds);
  return 0;
}

}  // namespace epona::cli
