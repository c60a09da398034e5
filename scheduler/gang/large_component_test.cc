// A component of more jobs than a node has pods: its jobs are numbered beyond 16 bits.
#include <string>

#include <gtest/gtest.h>

#include "scheduler/gang/components.h"
#include "scheduler/testing/cluster_driver.h"

namespace sched::gang {
namespace {

using testing::at;

// One-core jobs on all cores of all nodes, and one job over all of them.
class Wide {
 public:
  Wide(int nodes, int cores) {
    Configuration configuration;
    configuration.cluster.select = SelectType::kConsTres;
    configuration.cluster.unit = SelectUnit::kCore;
    configuration.cluster.memory = false;
    configuration.cluster.gang = true;
    configuration.cluster.timetable_lead = base::Duration{0};
    const std::vector<NodeSpec> all = testing::nodes("n", 1, nodes, cores);
    for (const NodeSpec& node : all) (void)cluster_.upsert_node(node);
    configuration.partitions = {testing::partition("p", all, OverSubscribe::kForce, 2)};
    cluster_.configure(configuration);
    cluster_.settle();
    usage_.reset();
    components_.configure(at(0));
    components_.on_settle([](Job&) {});
    Allocation everything;
    for (int rank = 0; rank < nodes; ++rank) {
      NodeAllocation use{.node = cluster_.node_at(rank)};
      for (int core = 0; core < cores; ++core) {
        use.cores = CoreSet{};
        use.cores.set(core);
        use.cpus = 1;
        start(Allocation{.nodes = {use}});
      }
      use.cores = CoreSet::first(cores);
      use.cpus = cores;
      everything.nodes.push_back(use);
    }
    small_count = last_id_;
    start(everything);
    components_.project_stale();
  }

  bool runs(std::int64_t id, double t) {
    return components_.runs_at(*jobs_.find(JobId{id}), at(t));
  }
  std::string check(double t) { return components_.check_invariants(at(t)); }

  std::int64_t small_count = 0;

 private:
  void start(const Allocation& allocation) {
    JobRequest request;
    request.id = JobId{++last_id_};
    Job& job = jobs_.add(JobFacts::of(request));
    job.state = JobState::kRunning;
    job.partition = *cluster_.find_partition("p");
    job.allocation = allocation;
    job.ready = true;
    usage_.add(job);
    components_.start(job, at(1));
  }

  Cluster cluster_;
  NodeUsage usage_{cluster_};
  JobTable jobs_;
  Components components_{cluster_, usage_, jobs_, /*publishes=*/true};
  std::int64_t last_id_ = 0;
};

// 66,560 small jobs run, then the wide one, then the small ones.
TEST(LargeComponent, LetsNoJobRunOverAnother) {
  Wide world{1'040, 64};
  const std::int64_t wide = world.small_count + 1;
  ASSERT_GT(world.small_count, 65'536);
  for (const double t : {2.0, 32.0, 62.0, 92.0}) {
    ASSERT_EQ(world.check(t), "") << t;
    const bool wide_runs = world.runs(wide, t);
    int running = 0;
    for (std::int64_t id = 1; id <= world.small_count; ++id) running += world.runs(id, t) ? 1 : 0;
    EXPECT_EQ(running, wide_runs ? 0 : world.small_count) << t;
  }
  EXPECT_NE(world.runs(wide, 62), world.runs(wide, 92));
}

}  // namespace
}  // namespace sched::gang
