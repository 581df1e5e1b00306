#include "providers/doctor.h"

#include <algorithm>

#include "base/json.h"
#include "base/thread_pool.h"
#include "kernels/isa.h"
#include "providers/vendor_files.h"

namespace epona {
namespace {

std::string padded(std::string text, size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string allowed_text(const OptionSpec& spec) {
  if (spec.type == OptionType::boolean) return "0, 1";
  std::string text = spec.allowed;
  for (size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at)) text.replace(at, 1, ", ");
  return text;
}

}  // namespace

Diagnosis diagnose() {
  Diagnosis diagnosis;
  diagnosis.platform = platform_text();
  diagnosis.isa = isa_name();
  diagnosis.threads = cpu_budget();
  for (const ProviderDef* def : all_providers()) diagnosis.rows.push_back({def, probe_provider(*def)});
  return diagnosis;
}

std::string to_table(const Diagnosis& diagnosis) {
  std::string text = cat("epona on ", diagnosis.platform, ", ", diagnosis.isa, ", ", diagnosis.threads, " threads\n\n");
  for (auto& [def, probe] : diagnosis.rows) {
    text += cat(probe.available ? "yes  " : "no   ", padded(def->name, 27), def->summary);
    if (!probe.version.empty()) text += cat(", version ", probe.version);
    text += '\n';
    for (const Finding& finding : probe.findings) {
      text += cat("       ", finding.ok ? "ok       " : "missing  ", finding.what, ": ",
                  finding.found.empty() ? "nothing" : finding.found);
      if (!finding.ok && !finding.needed.empty()) text += cat("; needed: ", finding.needed);
      text += '\n';
      if (!finding.ok && !finding.fix.empty()) text += cat("         fix:   ", finding.fix, '\n');
    }
  }
  return text;
}

std::string to_json(const Diagnosis& diagnosis) {
  JsonWriter json;
  json.begin_object().field("platform", diagnosis.platform).field("isa", diagnosis.isa);
  json.field("threads", diagnosis.threads).key("providers").begin_array();
  for (auto& [def, probe] : diagnosis.rows) {
    json.begin_object().field("name", def->name).field("summary", def->summary).field("available", probe.available);
    json.field("version", probe.version).field("cause", probe.cause()).field("fix", probe.fix());
    json.key("findings").begin_array();
    for (const Finding& finding : probe.findings)
      json.begin_object()
          .field("what", finding.what)
          .field("found", finding.found)
          .field("needed", finding.needed)
          .field("fix", finding.fix)
          .field("ok", finding.ok)
          .end_object();
    json.end_array().end_object();
  }
  return json.end_array().end_object().text();
}

std::string schema_table(const ProviderDef& def) {
  std::string text = cat(def.name, ": ", def.summary, "\n");
  if (!def.make) text += "not part of this build yet\n";
  size_t width = 0;
  for (const OptionSpec& spec : def.schema()) width = std::max(width, std::string_view(spec.key).size());
  for (const OptionSpec& spec : def.schema()) {
    std::string fallback = *spec.fallback ? spec.fallback : "\"\"";
    text += cat("  ", padded(spec.key, width), "  ", padded(option_type_name(spec.type), 5), "  default ", fallback);
    if (std::string allowed = allowed_text(spec); !allowed.empty()) text += cat("  (", allowed, ")");
    text +=
        cat("\n    ", padded("", width), spec.help, spec.live ? "; may be changed while the session lives" : "", "\n");
  }
  if (def.schema().empty()) text += "  no options\n";
  return text;
}

std::string schema_json(const ProviderDef& def) {
  JsonWriter json;
  json.begin_array();
  for (const OptionSpec& spec : def.schema())
    json.begin_object()
        .field("key", spec.key)
        .field("type", option_type_name(spec.type))
        .field("default", spec.fallback)
        .field("allowed", spec.allowed)
        .field("help", spec.help)
        .field("live", spec.live)
        .end_object();
  return json.end_array().text();
}

std::string schema_document() {
  std::string text =
      "# Providers and their options\n\n"
      "<!-- Written by `epona providers --markdown`; scripts/provider_docs.py keeps it up to date. -->\n\n"
      "In order of preference. `epona doctor` says which can run here and what the others need. Values may be given "
      "as\n"
      "str, int, bool or float; an unknown key or a value out of range is an error. Options marked *live* can be "
      "changed\n"
      "with `set_ep_dynamic_options` while a session lives. The session configuration may hold options too, as\n"
      "`ep.cuda.device_id` or `ep.cudaexecutionprovider.device_id`; those given with the provider come first.\n";
  for (const ProviderDef* def : all_providers()) {
    text += cat("\n## ", def->name, "\n\n", def->summary, ".", def->make ? "" : " Not part of this build yet.", "\n\n");
    if (def->schema().empty()) {
      text += "No options.\n";
      continue;
    }
    text += "| option | type | default | allowed | meaning |\n|---|---|---|---|---|\n";
    for (const OptionSpec& spec : def->schema()) {
      std::string fallback = *spec.fallback ? cat("`", spec.fallback, "`") : "";
      text += cat("| `", spec.key, "` | ", option_type_name(spec.type), " | ", fallback, " | ", allowed_text(spec),
                  " | ", spec.help, spec.live ? " *(live)*" : "", " |\n");
    }
  }
  return text;
}

}  // namespace epona
