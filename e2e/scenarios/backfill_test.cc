// Backfill with real processes: a wide job waits for nodes that are taken, short ones run before it
// in the gap, and it starts when it was said to.
#include <nlohmann/json.hpp>

#include "e2e/scenarios/harness.h"

namespace scenarios {
namespace {

using std::chrono::abs;

json limit(const std::string& time) {
  return {{"spec", {{"schedule", {{"timeLimit", time}}}}}};
}

class BackfillScenario : public Scenario {};

TEST_F(BackfillScenario, AWideJobStartsWhenItsEstimateSaidThoughAShortOneRanBefore) {
  ASSERT_NO_FATAL_FAILURE(
      start({.nodes_count = 3,
             .with_partition = false,
             .config = R"({"backfill": {"interval": "1s", "resolution": "1s"}})"}));
  if (IsSkipped()) return;
  make_partition("batch",
                 {{"nodes", {{"hostlist", "n[12-14]"}}}, {"overSubscribe", {{"policy", "Never"}}}});
  const std::vector<std::string> forever = {"sleep", "1000"};
  submit({.name = "runs", .nodes_count = 2, .command = forever, .patch = limit("30s")});
  ASSERT_NO_FATAL_FAILURE(wait_ready("runs"));
  const Instant free_at = *job("runs").status.start_time + seconds{30};

  submit({.name = "wide", .nodes_count = 3, .command = forever, .patch = limit("60s")});
  ASSERT_NO_FATAL_FAILURE(wait_until(
      "wide is expected", [&] { return job("wide").status.expected_start_time.has_value(); }));
  const Instant expected = *job("wide").status.expected_start_time;
  EXPECT_LE(abs(expected - free_at), seconds{2});
  EXPECT_EQ(job("wide").status.planned_nodes, "n[12-14]");

  submit({.name = "long", .nodes_count = 1, .command = forever, .patch = limit("120s")});
  submit({.name = "short", .nodes_count = 1, .command = {"sleep", "2"}, .patch = limit("5s")});
  ASSERT_NO_FATAL_FAILURE(wait_state("short", "Completed"));
  EXPECT_EQ(state("wide"), "Pending");
  EXPECT_EQ(state("long"), "Pending") << "it might delay the wide one";

  ASSERT_NO_FATAL_FAILURE(wait_until(
      "wide runs", [&] { return is_ready("wide"); }, seconds{40}));
  EXPECT_LE(abs(*job("wide").status.start_time - expected), seconds{5});
  EXPECT_EQ(state("runs"), "Timeout");
  EXPECT_EQ(state("long"), "Pending");
}

}  // namespace
}  // namespace scenarios
