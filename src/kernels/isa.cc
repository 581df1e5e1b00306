#include "kernels/isa.h"

#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>

#include "base/error.h"
#include "hwy/targets.h"

namespace epona {
namespace {

struct Tier {
  const char* name;
  int64_t target;
};

constexpr Tier kTiers[] = {
    {"sse2", HWY_SSE2},
    {"avx2", HWY_AVX2},
    {"avx512", HWY_AVX3},
    {"avx512_vnni", HWY_AVX3_DL},
};
constexpr int kTierCount = 4;

// Lower bits are better targets, so this is every target above tier i.
int64_t above(int i) { return kTiers[i].target - 1; }

// SupportedTargets() leaves the chosen target at what the CPU has, whatever is disabled: update it again.
int64_t refresh() {
  const int64_t targets = hwy::SupportedTargets();
  hwy::GetChosenTarget().Update(targets);
  return targets;
}

int64_t cpu_targets() {
  static const int64_t targets = [] {
    hwy::DisableTargets(0);
    return hwy::SupportedTargets();
  }();
  return targets;
}

bool available(int i) { return (cpu_targets() & kTiers[i].target) != 0; }

int best() {
  int i = kTierCount - 1;
  while (i > 0 && !available(i)) --i;
  return i;
}

int g_tier = -1;

void use(int i) {
  (void)cpu_targets();
  hwy::DisableTargets(i == kTierCount - 1 ? 0 : above(i));
  refresh();
  g_tier = i;
}

[[noreturn]] void reject(std::string_view name, const char* why) {
  std::string names;
  for (const char* n : available_isas()) names += std::string(" ") + n;
  fail(Code::invalid_argument, "EPONA_ISA: instruction set '", name, "' ", why, "; available here:", names);
}

int find(std::string_view name) {
  for (int i = 0; i < kTierCount; ++i) {
    if (name != kTiers[i].name) continue;
    if (!available(i)) reject(name, "is not supported by this CPU");
    return i;
  }
  reject(name, "is not known");
}

std::once_flag g_once;

}  // namespace

void init_isa() {
  std::call_once(g_once, [] {
    const char* name = std::getenv("EPONA_ISA");
    use(name && *name ? find(name) : best());
  });
}

void set_isa(std::string_view name) {
  init_isa();
  use(find(name));
}

Isa isa() {
  init_isa();
  return static_cast<Isa>(g_tier);
}

const char* isa_name() { return kTiers[static_cast<int>(isa())].name; }

std::vector<const char*> available_isas() {
  std::vector<const char*> names;
  for (int i = 0; i < kTierCount; ++i) {
    if (available(i)) names.push_back(kTiers[i].name);
  }
  return names;
}

}  // namespace epona
