// Backfill with real processes: a wide job waits for nodes that are taken, short ones run before it
// in the gap, and it starts when it was said to.
#include <nlohmann/json.hpp>

#include "e2e/scenarios/both/on_both.h"
#include "slurm/hostlist.h"

namespace scenarios {
namespace {

using std::chrono::abs;

class Backfill : public OnBoth {
 protected:
  // Runs until it gets SIGTERM.
  static std::vector<std::string> endless() {
    return {"sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait"};
  }
  JobOptions in_batch(const std::string& name, int nodes_count, const std::string& limit,
                      const std::vector<std::string>& command) const {
    return {.name = name,
            .nodes_count = nodes_count,
            .command = command,
            .partition = name_of("batch"),
            .patch = {{"spec", {{"schedule", {{"timeLimit", limit}}}}}}};
  }
};

// Three nodes. `runs` has two of them for at most 40 s; `wide` needs all three, so it is expected
// when that time is over. The third node is free until then: `short` (5 s) ends before and may have
// it, `long` (120 s) would delay `wide` and may not.
TEST_F(Backfill, AWideJobStartsWhenItsEstimateSaidThoughAShortOneRanBefore) {
  if (IsSkipped()) return;
  const std::string nodes = slurm::compress_hostlist(all_nodes());
  make_partition(name_of("batch"),
                 {{"nodes", {{"hostlist", nodes}}}, {"overSubscribe", {{"policy", "Never"}}}});
  // One of them may still be without its agent, after a test that powered it off.
  ASSERT_NO_FATAL_FAILURE(wait_until("all three nodes are usable", [&] {
    const json partition = get("/apis/kubegang.io/v1alpha1/partitions/" + name_of("batch"));
    const json status = partition.value("status", json::object());
    return status.value("nodes", 0) == 3 && status.value("unusableNodes", 0) == 0;
  }));
  ASSERT_NO_FATAL_FAILURE(submit_ready(in_batch("runs", 2, "40s", endless())));
  // The limit of `runs` counts from a first container that started between these instants.
  const Instant free_from = *job("runs").status.start_time + seconds{40};
  const Instant free_until = now() + seconds{40};

  ASSERT_NO_FATAL_FAILURE(submit(in_batch("wide", 3, "60s", endless())));
  ASSERT_NO_FATAL_FAILURE(wait_until(
      "wide is expected", [&] { return job("wide").status.expected_start_time.has_value(); }));
  const Instant expected = *job("wide").status.expected_start_time;
  EXPECT_GE(expected, free_from - seconds{2});
  EXPECT_LE(expected, free_until + seconds{2});
  EXPECT_EQ(job("wide").status.planned_nodes, nodes);

  ASSERT_NO_FATAL_FAILURE(submit(in_batch("long", 1, "120s", endless())));
  ASSERT_NO_FATAL_FAILURE(submit(in_batch("short", 1, "5s", {"sleep", "2"})));
  ASSERT_NO_FATAL_FAILURE(wait_state("short", "Completed"));
  EXPECT_EQ(state("wide"), "Pending");
  EXPECT_EQ(state("long"), "Pending") << "it might delay the wide one";

  ASSERT_NO_FATAL_FAILURE(wait_state("wide", "Running", seconds{60}));
  EXPECT_LE(abs(now() - expected), seconds{5});
  ASSERT_NO_FATAL_FAILURE(wait_ready("wide"));
  EXPECT_LE(abs(*job("wide").status.start_time - expected), seconds{5} + kLaunchTakes);
  EXPECT_EQ(state("runs"), "Timeout");
  EXPECT_EQ(state("long"), "Pending");
}

}  // namespace
}  // namespace scenarios
