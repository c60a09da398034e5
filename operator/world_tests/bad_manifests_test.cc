// The table of bad manifests, on the operator: what the API server's schema lets through (CEL is
// not evaluated in memory) must be refused here, in a sentence that names the field.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "e2e/contract/bad_manifests.h"
#include "operator/testing/world.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;

class BadManifests : public testing::TestWithParam<contract::BadManifest> {};

// Returns those that the operator must refuse. The same files are tried on a real API server,
// which evaluates the rules, by the contract tests: so both refuse the same things.
std::vector<contract::BadManifest> table() {
  auto loaded = contract::load_bad_manifests(KUBEGANG_SOURCE_DIR "/e2e/contract/bad_manifests");
  if (!loaded.ok()) return {};
  std::vector<contract::BadManifest> ours;
  for (auto& one : *loaded) {
    // A NodeTimetable is written by the operator itself and judged by the agent.
    const bool timetable = one.refused.find("\"NodeTimetable\"") != std::string::npos;
    if (one.rejected_by != contract::RejectedBy::kSchema && !timetable) {
      ours.push_back(std::move(one));
    }
  }
  return ours;
}

// `before` are objects that have to exist first, such as the other one of a pair that is illegal
// together. A partition is added where the manifest has none, so that its absence is not what is
// refused.
TEST_P(BadManifests, AreRefusedByTheOperator) {
  World world{{.nodes = {"n1", "n2"}}};
  bool has_partition = false;
  const auto note = [&](const json& object) {
    has_partition = has_partition || object["kind"] == "Partition";
  };
  for (const std::string& text : GetParam().before) note(json::parse(text));
  const json refused = json::parse(GetParam().refused);
  note(refused);
  if (!has_partition) {
    world.apply(partition("batch", {{"nodes", {{"hostlist", "n[1-2]"}}}, {"default", true}}));
  }
  for (const std::string& text : GetParam().before) {
    world.apply(json::parse(text));
    world.run_for(seconds{1});
  }
  world.apply(refused);
  world.run_for(seconds{1});
  const std::string says =
      world.condition(refused["kind"], refused["metadata"]["name"], "Accepted");
  EXPECT_EQ(says.rfind("False", 0), 0U) << says << "\n" << refused.dump();
  EXPECT_NE(says.find(GetParam().operator_names), std::string::npos)
      << "want: " << GetParam().operator_names << "\ngot:  " << says;
}

}  // namespace
}  // namespace control

namespace contract {
void PrintTo(const BadManifest& manifest, std::ostream* out) {
  *out << manifest.name;
}
}  // namespace contract

namespace control {
namespace {

INSTANTIATE_TEST_SUITE_P(Table, BadManifests, testing::ValuesIn(table()), [](const auto& one) {
  std::string name = one.param.name;
  for (char& c : name) {
    if (c == '-' || c == '.') c = '_';
  }
  return name;
});

// 32 sentences, each of which names 20 partitions of 60 characters, are longer than the 32,768
// characters that a status message may have.
TEST(BadManifest, IsToldHoweverMuchIsWrongWithIt) {
  World world{{.nodes = {"n1"}}};
  for (int i = 10; i < 30; ++i) {
    world.apply(partition("p" + std::to_string(i) + std::string(57, 'x'),
                          {{"nodes", {{"hostlist", "n1"}}}}));
  }
  json unknown = json::array();
  for (int i = 10; i < 42; ++i) unknown.push_back("unknown" + std::to_string(i));
  world.apply(gang_job("long", 1, "5s", {{"partitions", unknown}}));
  world.run_for(seconds{1});
  const std::string says = world.condition("Job", "long", "Accepted");
  EXPECT_TRUE(says.starts_with("False: Invalid: spec.partitions: there is no partition")) << says;
  // A sentence has about 1,300 characters, so three of them fit.
  EXPECT_TRUE(says.ends_with("; and 29 more")) << says;
  EXPECT_EQ(world.job("long").status.reason, "NotAccepted");
}

// The next start would be by the old spec, and none of its statuses could be written, if the new
// object could not be read.
TEST(BadManifest, OfAnEditedJobIsRefusedThoughItsNumbersAreTooLarge) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force("n[12-16]", {{"overSubscribe", {{"policy", "Never"}}}})));
  world.apply(gang_job("runs", 5, ""));
  world.run_for(seconds{5});
  world.apply(gang_job("waits", 1, ""));
  world.run_for(seconds{5});
  world.patch_job("waits", {{"resources", {{"memoryPerNode", "99999999999Ei"}}},
                            {"lifecycle", {{"ttlAfterFinished", "9999999h"}}}});
  world.patch_job("runs", {{"control", {{"cancel", true}}}});
  world.run_for(minutes{2});
  EXPECT_EQ(
      world.condition("Job", "waits", "Accepted"),
      "False: Invalid: spec.resources.memoryPerNode: more than 8Pi is not possible; use less");
  EXPECT_EQ(world.state("waits"), "Pending");
  world.patch_job("waits", {{"resources", {{"memoryPerNode", nullptr}}}});
  ASSERT_TRUE(world.run_until([&] { return world.state("waits") == "Running"; }, minutes{1}))
      << world.log_tail();
  expect_no_violations(world);
}

// A folder that moved would leave an empty table, and no test above would run or fail.
TEST(BadManifestTable, IsThere) {
  EXPECT_GE(table().size(), 15U);
}

}  // namespace
}  // namespace control
