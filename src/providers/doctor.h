#pragma once
#include <string>
#include <vector>

#include "providers/registry.h"

namespace epona {

/// What every provider needs and what is there.
struct Diagnosis {
  std::string platform, isa;
  int threads = 0;
  struct Row {
    const ProviderDef* def;
    Probe probe;
  };
  std::vector<Row> rows;
};
Diagnosis diagnose();

std::string to_table(const Diagnosis& diagnosis);
std::string to_json(const Diagnosis& diagnosis);

/// The options of a provider as a table for people.
std::string schema_table(const ProviderDef& def);
/// And as JSON: an array of objects.
std::string schema_json(const ProviderDef& def);
/// docs/providers.md: all providers with their options.
std::string schema_document();

}  // namespace epona
