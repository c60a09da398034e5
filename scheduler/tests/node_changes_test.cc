// Nodes that change while jobs wait and run: labels, memory, disk, pods and states, as other pods
// and administrators change them. Everything that is kept about nodes is brought up to date by
// the changed node alone; here it is held against a scheduler that makes everything again each
// time.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/prng.h"
#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {
namespace {

constexpr int kNodes = 70;  // more than one word of a NodeSet
constexpr int kSteps = 150;

// One seed: a cluster whose nodes change between passes, and two schedulers with the same events.
// One keeps its sets of nodes and mends them, the other makes everything again before each pass.
class ChangingNodes {
 public:
  ChangingNodes(std::uint64_t seed, SelectType select) : prng_{seed} {
    configuration_.cluster.select = select;
    configuration_.cluster.memory = true;
    configuration_.cluster.default_memory.per_cpu = MemoryMiB{1000};
    for (int i = 0; i < kNodes; ++i) nodes_.push_back(node("n" + std::to_string(i), 4));
    // Weights make the groups of equal hardware differ, which half of the worlds should not need.
    const bool weights = prng_.below(2) == 0;
    for (NodeSpec& spec : nodes_) {
      change(spec);
      if (weights) spec.weight = 1 + static_cast<std::uint32_t>(prng_.below(3));
    }
    configuration_.partitions = {partition("p", nodes_, OverSubscribe::kNo, 1)};
    configuration_.partitions.front().is_default = true;
    configure(kept_);
    configure(anew_);
    for (const NodeSpec& spec : nodes_) tell(NodeUpdate{spec});
  }

  // Returns how many jobs started.
  int run() {
    int started = 0;
    for (int i = 0; i < kSteps; ++i) {
      now_ += std::chrono::seconds{1};
      happen();
      tell(Pass{});
      const std::set<JobId> starts = compare();
      running_.insert(starts.begin(), starts.end());
      started += static_cast<int>(starts.size());
      if (::testing::Test::HasFailure()) break;
    }
    return started;
  }
  int held() const { return held_; }

 private:
  void configure(Scheduler& scheduler) {
    scheduler.step(now_, Configure{std::make_shared<const Configuration>(configuration_)});
  }
  // Both get the same events. anew_ is configured again before each pass, which makes it forget
  // what it keeps.
  void tell(const Event& event) {
    kept_.step(now_, event);
    anew_.step(now_, event);
  }

  // Features are few, so that they come and go on many nodes.
  void change(NodeSpec& spec) {
    switch (prng_.below(5)) {
      case 0:
        // 0 to 8,000 MiB, around what jobs ask for, so that nodes become too small and large enough
        // again.
        spec.memory = MemoryMiB{1000 * static_cast<std::int64_t>(prng_.below(9))};
        break;
      case 1:
        spec.features.clear();
        for (const char* feature : {"a", "b", "c"}) {
          if (prng_.below(2) == 0) spec.features.emplace_back(feature);
        }
        break;
      case 2:
        spec.state = prng_.below(3) == 0 ? NodeState::kDrain : NodeState::kUp;
        break;
      case 3:
        spec.pods_max = static_cast<int>(prng_.below(3));
        break;
      default:
        spec.tmp_disk = MemoryMiB{100 * static_cast<std::int64_t>(prng_.below(3))};
    }
  }

  void submit() {
    // Each form of 4.2.3: and, or, brackets, alternatives and counts.
    static constexpr const char* kConstraints[] = {
        "", "a", "a&b", "a|b&c", "(a|b)&c", "[a|b]", "a*1&b*1", "[a|c]&b", "", "c"};
    JobRequest request = job(++last_id_, 1 + static_cast<int>(prng_.below(6)));
    request.constraint = kConstraints[prng_.below(std::size(kConstraints))];
    request.cpus_per_task = 1 + static_cast<int>(prng_.below(4));
    request.tmp_disk = MemoryMiB{100 * static_cast<std::int64_t>(prng_.below(3))};
    if (prng_.below(3) == 0) request.excluded_nodes = {nodes_[prng_.below(kNodes)].name};
    if (prng_.below(4) == 0) request.unusable_nodes = unusable_[prng_.below(2)];
    if (prng_.below(2) == 0) {
      request.memory = MemoryPerNode{MemoryMiB{1000 * static_cast<std::int64_t>(prng_.below(8))}};
    }
    tell(Submit{request});
  }

  // Between two passes: some nodes change, jobs come and go.
  void happen() {
    for (std::uint64_t i = prng_.below(4); i > 0; --i) {
      NodeSpec& spec = nodes_[prng_.below(kNodes)];
      change(spec);
      tell(NodeUpdate{spec});
    }
    configure(anew_);
    for (std::uint64_t i = prng_.below(3); i > 0; --i) submit();
    for (std::uint64_t i = prng_.below(4); i > 0 && !running_.empty(); --i) {
      const auto at =
          std::next(running_.begin(), static_cast<std::ptrdiff_t>(prng_.below(running_.size())));
      tell(JobGone{*at});
      running_.erase(at);
    }
  }

  // Both start the same jobs in the same places, and hold the same ones as impossible.
  std::set<JobId> compare() {
    std::set<JobId> started;
    std::vector<Start> kept = starts(kept_);
    EXPECT_EQ(kept, starts(anew_)) << "at " << base::micros_since_epoch(now_);
    for (const Start& start : kept) started.insert(start.job);
    for (const JobId id : kept_.jobs()) {
      const bool impossible = kept_.job(id, now_)->reason == Reason::kBadConstraints;
      held_ += impossible ? 1 : 0;
      EXPECT_EQ(impossible, anew_.job(id, now_)->reason == Reason::kBadConstraints)
          << "job " << to_string(id) << " at " << base::micros_since_epoch(now_);
    }
    return started;
  }
  static std::vector<Start> starts(Scheduler& scheduler) {
    std::vector<Start> found;
    for (Decision& decision : scheduler.take_decisions()) {
      if (auto* start = std::get_if<Start>(&decision)) found.push_back(std::move(*start));
    }
    return found;
  }

  base::Prng prng_;
  Configuration configuration_;
  std::vector<NodeSpec> nodes_;
  using Names = std::vector<std::string>;
  // Lists that jobs share, one of them with a node that does not exist.
  const std::vector<std::shared_ptr<const Names>> unusable_ = {
      std::make_shared<const Names>(Names{"n0", "n3"}),
      std::make_shared<const Names>(Names{"n1", "gone"})};
  Scheduler kept_ = make_replay();
  Scheduler anew_ = make_replay();
  base::Instant now_{};
  std::int64_t last_id_ = 0;
  std::set<JobId> running_;
  int held_ = 0;  // times that a job was found impossible
};

class NodeChanges : public ::testing::TestWithParam<SelectType> {};

TEST_P(NodeChanges, DecideAsIfEverythingWereMadeAnew) {
  int started = 0;
  int held = 0;
  for (std::uint64_t seed = 1; seed <= 6 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ChangingNodes nodes{seed, GetParam()};
    started += nodes.run();
    held += nodes.held();
  }
  EXPECT_GT(started, 150);  // it has looked at something
  EXPECT_GT(held, 50);
}

INSTANTIATE_TEST_SUITE_P(Selectors, NodeChanges,
                         ::testing::Values(SelectType::kLinear, SelectType::kConsTres),
                         [](const auto& select) {
                           return select.param == SelectType::kLinear ? "Linear" : "ConsTres";
                         });

}  // namespace
}  // namespace sched::testing
