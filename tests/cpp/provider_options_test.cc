#include "providers/options.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/nearest.h"
#include "placement/marks.h"
#include "providers/registry.h"

namespace epona {
namespace {

constexpr OptionSpec kOptions[] = {
    {"count", OptionType::integer, "3", "0..9", "a number"},
    {"limit", OptionType::integer, "9223372036854775807", "1..", "a size"},
    {"share", OptionType::real, "0.5", "0..1", "a share"},
    {"fast", OptionType::boolean, "0", "", "a switch"},
    {"mode", OptionType::choice, "kOne", "kOne|kTwo", "a choice"},
    {"folder", OptionType::path, "", "", "a path"},
};

std::string error_of(const OptionMap& given) {
  try {
    OptionValues values("P", kOptions, given);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    return error.what();
  }
  return "";
}

TEST(ProviderOptions, DefaultsAndValues) {
  OptionValues values("P", kOptions, {{"count", "7"}, {"fast", "True"}, {"mode", "ktwo"}});
  EXPECT_EQ(values.integer("count"), 7);
  EXPECT_EQ(values.real("share"), 0.5);
  EXPECT_TRUE(values.boolean("fast"));
  EXPECT_EQ(values.text("mode"), "kTwo");  // in the schema's spelling
  EXPECT_EQ(values.text("folder"), "");
  EXPECT_EQ(values.all().size(), std::size(kOptions));
  EXPECT_EQ(values.given().size(), 3u);
  EXPECT_TRUE(values.is_given("count"));
  EXPECT_FALSE(values.is_given("share"));
}

TEST(ProviderOptions, NoLimitOfThePeerIsTheLargestNumber) {
  OptionValues values("P", kOptions, {{"limit", "18446744073709551615"}});
  EXPECT_EQ(values.integer("limit"), INT64_MAX);
}

TEST(ProviderOptions, ErrorsNameTheKeyAndWhatIsAllowed) {
  EXPECT_NE(error_of({{"cuont", "1"}}).find("Did you mean 'count'?"), std::string::npos);
  EXPECT_NE(error_of({{"count", "10"}}).find("from 0 to 9"), std::string::npos);
  EXPECT_NE(error_of({{"count", "1.5"}}).find("'count' of P is '1.5'"), std::string::npos);
  EXPECT_NE(error_of({{"limit", "0"}}).find("at least 1"), std::string::npos);
  EXPECT_NE(error_of({{"share", "nan"}}).find("from 0 to 1"), std::string::npos);
  EXPECT_NE(error_of({{"fast", "2"}}).find("0, 1, false or true"), std::string::npos);
  EXPECT_NE(error_of({{"mode", "kThree"}}).find("one of 'kOne', 'kTwo'"), std::string::npos);
  EXPECT_EQ(error_of({{"count", ""}}).empty(), false);
}

TEST(ProviderOptions, NothingIsNearToNonsense) {
  std::string_view names[] = {"device_id", "gpu_mem_limit"};
  EXPECT_EQ(nearest("DEVICE_ID", names), "device_id");
  EXPECT_EQ(nearest("xyzzy", names), "");
}

TEST(ProviderRegistry, EveryProbeAnswersAndEverySchemaIsSound) {
  for (const ProviderDef* def : all_providers()) {
    Probe probe = probe_provider(*def);
    EXPECT_EQ(probe.available, probe.cause().empty()) << def->name << ": " << probe.cause();
    EXPECT_TRUE(def->make || !probe.available) << def->name;
    OptionValues values(def->name, def->schema(), {});
    for (const OptionSpec& spec : def->schema())
      EXPECT_EQ(check_option(def->name, spec, spec.fallback), spec.fallback) << def->name << '.' << spec.key;
  }
}

TEST(Marks, HideANodeFromEveryPattern) {
  Node node;
  node.op = "Conv";
  mark_node(node, {0, 12});
  EXPECT_TRUE(is_marked(node));
  EXPECT_FALSE(node.is("Conv"));
  EXPECT_EQ(unmark_node(node), (std::vector<int>{0, 12}));
  EXPECT_TRUE(node.is("Conv"));
  EXPECT_TRUE(unmark_node(node).empty());
}

}  // namespace
}  // namespace epona
