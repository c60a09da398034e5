// Goal: whatever is asked, in whatever order, nothing is over-committed and nothing is refused that
// a dumb look at all nodes would grant. Method: seeded random worlds of a few nodes, random starts,
// ends, suspensions and questions; after each step the books are worked out again from the
// allocations alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/prng.h"
#include "scheduler/select/cons_tres/testing/world.h"

namespace sched::cons_tres::testing {
namespace {

// Enough for a world of at most 4 × 8 cores to fill up and empty several times.
constexpr int kStepsPerWorld = 60;

int worlds() {
  return std::getenv("KUBEGANG_LONG") != nullptr ? 20'000 : 400;
}

// A job that has its nodes, as the model has it: what was asked and what it was given.
struct Held {
  Ask ask;
  Allocation allocation;
  bool suspended = false;
};

enum class Kind { kShared, kOneRow, kReserved };

// How often there was something to look at.
struct Looks {
  int started = 0, refused = 0;
  int easy = 0;  // starts that the dumb look grants
  int resumed = 0;
  int preempted = 0;  // victims
  int shared = 0;     // pairs of jobs with a core in common
  int trials = 0;     // that found room
};

// One world: the selector, and beside it a list of what each job was given. The list is the model.
// It knows no rows, offers or tiers, only what two jobs on one node may never have in common.
class RandomWorld {
 public:
  RandomWorld(std::uint64_t seed, Looks& looks) : prng_{seed}, looks_{looks}, world_{make()} {}

  void step() {
    switch (pick(9)) {
      case 0:
      case 1:
      case 2:
      case 3:
        start();
        break;
      case 4:
        end();
        break;
      case 5:
        suspend_or_resume();
        break;
      case 6:
        ask_for_victims();
        break;
      case 7:
        ask_in_trial();
        break;
      default:
        // A restart packs the same jobs again, in job-table order: the invariants must hold for
        // that layout, too.
        if (pick(10) == 0) world_.restart();
        break;
    }
    check_books();
  }

 private:
  int pick(int bound) { return static_cast<int>(prng_.below(static_cast<std::uint64_t>(bound))); }
  bool chance(int percent) { return pick(100) < percent; }

  // Small nodes and several partitions on all of them, so that jobs meet; and most settings that
  // decide which jobs may meet.
  World make() {
    nodes_ = 1 + pick(4);
    cores_ = 1 + pick(4);
    sockets_ = 1 + pick(2);
    threads_ = chance(20) ? 2 : 1;
    std::vector<PartitionConfig> partitions;
    for (int i = 0; i < 1 + pick(3); ++i) {
      const std::string name = "p" + std::to_string(i);
      const int tier = 1 + pick(2), share = 1 + pick(3);
      const int kind = pick(8);
      partitions.push_back(kind < 3    ? no(name, tier)
                           : kind < 6  ? force(name, share, tier)
                           : kind == 6 ? yes(name, share + 1, tier)
                                       : exclusive(name, tier));
    }
    parameters_ = chance(50) ? gang() : plain();
    if (chance(60)) {
      parameters_.preempt_type = chance(50) ? PreemptType::kPartitionPriority : PreemptType::kQos;
      parameters_.preempt_mode =
          parameters_.gang && chance(50) ? PreemptMode::kSuspend : PreemptMode::kCancel;
    }
    // 1,000 MiB on each node and 100 for each CPU: memory runs out before the cores in some worlds
    // and behind them in others.
    parameters_.memory = chance(50);
    parameters_.default_memory.per_cpu = MemoryMiB{100};
    const int unit = pick(4);
    parameters_.unit = unit == 0   ? SelectUnit::kCpu
                       : unit == 1 ? SelectUnit::kSocket
                                   : SelectUnit::kCore;
    partitions_ = partitions;
    return World{{{.last = nodes_,
                   .sockets = sockets_,
                   .cores = cores_,
                   .threads = threads_,
                   .memory = 1000}},
                 partitions,
                 parameters_};
  }

  int node_cpus() const { return sockets_ * cores_ * threads_; }

  // From one task to twice the CPUs of a node, so that some jobs fit beside others, some must be
  // stacked, and some need more than there is.
  Ask random_ask() {
    Ask ask;
    ask.in = partitions_[static_cast<std::size_t>(pick(static_cast<int>(partitions_.size())))].name;
    if (chance(60)) ask.nodes = 1 + pick(nodes_);
    ask.tasks = std::max(1, std::max(ask.nodes, 1 + pick(node_cpus() * 2)));
    if (ask.nodes > 0 && chance(25)) {
      ask.per_node = 1 + pick(2);
      ask.tasks = 0;
    }
    if (chance(15)) ask.cpus_per_task = 2;
    ask.exclusive = chance(10);
    ask.share = !ask.exclusive && chance(30);
    if (parameters_.memory && chance(40)) ask.mem = 1 + pick(1100);
    if (parameters_.memory && !ask.mem && chance(30)) ask.mem_per_cpu = 1 + pick(400);
    return ask;
  }

  void remember(const std::string& name, const Ask& ask) {
    held_[name] = {ask, world_.allocation(name), false};
  }

  void start() {
    const Ask ask = random_ask();
    const std::string name = "j" + std::to_string(++count_);
    // Before the start: afterwards its own cores would be in the way.
    const bool is_easy = granted_by_a_dumb_look(ask);
    const Placed again = world_.ask(ask);
    const std::string where = world_.start(name, ask);
    EXPECT_EQ(where, again.where);  // asking changes nothing
    looks_.easy += is_easy ? 1 : 0;
    if (!where.empty()) {
      ++looks_.started;
      remember(name, ask);
      check_request(held_.at(name));
    } else {
      ++looks_.refused;
      EXPECT_FALSE(is_easy) << "refused " << describe(ask);
    }
  }

  void end() {
    if (held_.empty()) return;
    const auto victim = std::next(held_.begin(), pick(static_cast<int>(held_.size())));
    world_.end(victim->first);
    held_.erase(victim);
  }

  // T10. A resume may be refused, because others can have taken the cores meanwhile; then the job
  // stays suspended.
  void suspend_or_resume() {
    if (held_.empty()) return;
    auto& [name, job] = *std::next(held_.begin(), pick(static_cast<int>(held_.size())));
    if (!job.suspended) {
      world_.suspend(name);
      job.suspended = true;
    } else if (world_.resume(name)) {
      job.suspended = false;
      ++looks_.resumed;
    }
  }

  // Each victim is on a chosen node, and with the victims gone the job fits there. Candidates are
  // any of the jobs, whatever their tier: which jobs may be preempted is the caller's business.
  void ask_for_victims() {
    if (parameters_.preempt_type == PreemptType::kNone) return;
    Ask ask = random_ask();
    for (const auto& [name, job] : held_) {
      if (chance(70)) ask.take.push_back(name);
    }
    const Placed placed = world_.ask(ask);
    const Placed again = world_.ask(ask);
    EXPECT_EQ(placed.where, again.where);
    EXPECT_EQ(placed.victims, again.victims);
    std::set<NodeIndex> chosen;
    if (placed.allocation) {
      for (const NodeAllocation& use : placed.allocation->nodes) chosen.insert(use.node);
    }
    for (const std::string& victim : placed.victims) {
      bool there = false;
      for (const NodeAllocation& use : held_.at(victim).allocation.nodes) {
        there = there || chosen.contains(use.node);
      }
      EXPECT_TRUE(there) << victim;
    }
    if (placed.victims.empty()) return;
    for (const std::string& victim : placed.victims) {
      world_.end(victim);
      held_.erase(victim);
      ++looks_.preempted;
    }
    ask.take.clear();
    EXPECT_NE(world_.ask(ask).where, "") << "its victims died for nothing: " << describe(ask);
  }

  // A trial answers as if the jobs that it has removed had never been, and leaves nothing behind.
  // Where jobs are stacked, rows depend on what came before them.
  void ask_in_trial() {
    if (parameters_.preempt_type == PreemptType::kQos) return;
    for (const PartitionConfig& config : partitions_) {
      if (rows(config) > 1) return;
    }
    const Ask ask = random_ask();
    std::vector<std::string> gone;
    for (const auto& [name, job] : held_) {
      if (chance(50)) gone.insert(gone.begin() + pick(static_cast<int>(gone.size()) + 1), name);
    }
    const int back_count = pick(static_cast<int>(gone.size()) + 1);
    const std::string before = world_.ask(ask).where;
    const std::string where = world_.ask_in_trial(gone, back_count, ask).where;
    EXPECT_EQ(world_.ask(ask).where, before) << describe(ask);
    const std::set<std::string> left_out(gone.begin(), gone.end() - back_count);
    EXPECT_EQ(where, world_.ask_without(left_out, ask).where) << describe(ask);
    looks_.trials += where.empty() ? 0 : 1;
  }

  // --- the dumb model ---

  const PartitionConfig& partition(const std::string& name) const {
    for (const PartitionConfig& config : partitions_) {
      if (config.name == name) return config;
    }
    std::abort();
  }
  // Without the extra row of preempt/qos, which check_shares() adds.
  int rows(const PartitionConfig& config) const {
    const bool stacks = config.over_subscribe == OverSubscribe::kForce ||
                        config.over_subscribe == OverSubscribe::kYes;
    return stacks ? config.max_share : 1;
  }
  // R4.14, written down a second time.
  Kind kind_of(const Ask& ask) const {
    const PartitionConfig& config = partition(ask.in);
    if (config.over_subscribe == OverSubscribe::kExclusive) return Kind::kReserved;
    if (config.over_subscribe == OverSubscribe::kForce) return Kind::kShared;
    return config.over_subscribe == OverSubscribe::kYes && config.max_share > 1 && ask.share
               ? Kind::kShared
               : Kind::kOneRow;
  }

  // From the allocations alone: no node gives more memory than it has, no core has more jobs of a
  // partition than rows, and no two jobs meet that may not (R4.16). A suspended job keeps its
  // memory and holds no cores (R5.2, T10).
  void check_books() {
    for (int node = 0; node < nodes_; ++node) {
      const NodeIndex index = world_.cluster().node_at(node);
      std::int64_t memory = 0;
      std::vector<std::pair<const Held*, CoreSet>> here;
      for (const auto& [name, job] : held_) {
        for (const NodeAllocation& use : job.allocation.nodes) {
          if (use.node != index) continue;
          memory += use.memory.value();
          if (!job.suspended) here.emplace_back(&job, use.cores);
        }
      }
      ASSERT_LE(memory, 1000) << "memory of node " << node;
      check_shares(here);
      for (std::size_t i = 0; i < here.size(); ++i) {
        for (std::size_t j = i + 1; j < here.size(); ++j) check_pair(here[i], here[j]);
      }
    }
  }

  // No core holds more jobs of a partition than its share (and one, by a QOS preemption).
  void check_shares(const std::vector<std::pair<const Held*, CoreSet>>& here) {
    const int extra = parameters_.preempt_type == PreemptType::kQos ? 1 : 0;
    for (const PartitionConfig& config : partitions_) {
      for (int core = 0; core < sockets_ * cores_; ++core) {
        int depth = 0;
        for (const auto& [job, cores] : here) {
          depth += job->ask.in == config.name && cores.test(core) ? 1 : 0;
        }
        ASSERT_LE(depth, rows(config) + extra) << config.name << " core " << core;
      }
    }
  }

  // Two jobs on one node. Their classes, their partitions, and whether something would stop one of
  // them decide what is forbidden.
  void check_pair(const std::pair<const Held*, CoreSet>& a,
                  const std::pair<const Held*, CoreSet>& b) {
    const Ask &left = a.first->ask, &right = b.first->ask;
    looks_.shared += a.second.intersects(b.second) ? 1 : 0;
    // Two jobs are on this node, so neither may be one that has it to itself.
    ASSERT_NE(kind_of(left), Kind::kReserved);
    ASSERT_NE(kind_of(right), Kind::kReserved);
    if (left.in == right.in) return;
    // A job that shares with none and one of a stack of rows, of different partitions (R4.16).
    const auto mixed = [&](const Ask& one, const Ask& other) {
      return kind_of(one) == Kind::kOneRow && kind_of(other) == Kind::kShared &&
             rows(partition(other.in)) > 1;
    };
    // Without a QOS preemption's licence to use the extra row.
    if (parameters_.preempt_type != PreemptType::kQos) {
      ASSERT_FALSE(mixed(left, right) || mixed(right, left)) << left.in << " and " << right.in;
    }
    // With gang, jobs of different partitions may meet on a core: a lower tier's in a shadow, and
    // an equal tier's in Test 4 (R4.19).
    if (!parameters_.gang && kind_of(left) == Kind::kOneRow && kind_of(right) == Kind::kOneRow) {
      ASSERT_FALSE(a.second.intersects(b.second)) << "two that do not share on one core";
    }
  }

  // The allocation is what was asked for: nodes, tasks, whole nodes, and memory by node or by CPU.
  void check_request(const Held& job) {
    const Ask& ask = job.ask;
    const int count = static_cast<int>(job.allocation.nodes.size());
    if (ask.nodes > 0) {
      EXPECT_EQ(count, ask.nodes);
    }
    int tasks = 0;
    for (const NodeAllocation& use : job.allocation.nodes) {
      tasks += use.tasks;
      EXPECT_GT(use.tasks, 0);
      EXPECT_FALSE(use.cores.empty());
      if (ask.exclusive) {
        EXPECT_EQ(use.cores.count(), sockets_ * cores_);
      }
      if (ask.per_node > 0 && !ask.exclusive) {
        EXPECT_GE(use.tasks, ask.per_node);
      }
      if (ask.mem) {
        EXPECT_EQ(use.memory.value(), *ask.mem);
      }
      if (parameters_.memory && !ask.mem) {
        EXPECT_EQ(use.memory.value(), use.cpus * ask.mem_per_cpu.value_or(100));
      }
      // The last task of a node may find less than it asked for (recorded).
      EXPECT_GT(use.cpus, (use.tasks - 1) * ask.cpus_per_task);
    }
    const int wanted = ask.tasks > 0 ? ask.tasks : ask.per_node * ask.nodes;
    EXPECT_GE(tasks, wanted);
  }

  // Idle cores alone would do: enough nodes without any conflict that offer enough CPUs. Looks only
  // at requests whose nodes need nothing but CPUs.
  bool granted_by_a_dumb_look(const Ask& ask) const {
    if (ask.mem_per_cpu || ask.per_node > 0 || ask.cpus_per_task > 1) return false;
    if (parameters_.unit != SelectUnit::kCore || (parameters_.memory && !ask.mem)) return false;
    const bool whole = ask.exclusive || kind_of(ask) == Kind::kReserved;
    std::vector<int> offers;
    for (int node = 0; node < nodes_; ++node) offers.push_back(idle_cpus(node, ask, whole));
    // Largest first: the job gets the nodes that offer most.
    std::sort(offers.rbegin(), offers.rend());
    const int count = ask.nodes > 0 ? ask.nodes : nodes_;
    int cpus = 0;
    for (int i = 0; i < count; ++i) {
      if (ask.nodes > 0 && offers[static_cast<std::size_t>(i)] == 0) return false;
      cpus += offers[static_cast<std::size_t>(i)];
    }
    return cpus >= ask.tasks;
  }

  // 0 where anything at all might be in the way: what the dumb look promises must be granted, so it
  // may promise too little and never too much.
  int idle_cpus(int node, const Ask& ask, bool whole) const {
    const NodeIndex index = world_.cluster().node_at(node);
    CoreSet idle = CoreSet::first(sockets_ * cores_);
    std::int64_t memory = 1000;
    for (const auto& [name, job] : held_) {
      for (const NodeAllocation& use : job.allocation.nodes) {
        if (use.node != index) continue;
        memory -= use.memory.value();
        if (job.suspended) continue;
        idle -= use.cores;
        // A job of another kind makes the dumb look give up on the node.
        if (kind_of(job.ask) != kind_of(ask) || kind_of(ask) == Kind::kReserved) return 0;
        if (job.ask.in != ask.in && rows(partition(job.ask.in)) > 1) return 0;
      }
    }
    if (ask.mem && *ask.mem > memory) return 0;
    if (whole && idle.count() < sockets_ * cores_) return 0;
    return idle.count() * threads_;
  }

  static std::string describe(const Ask& ask) {
    return ask.in + " -N" + std::to_string(ask.nodes) + " -n" + std::to_string(ask.tasks) +
           " per-node " + std::to_string(ask.per_node) + " -c" + std::to_string(ask.cpus_per_task) +
           (ask.exclusive ? " exclusive" : "") + (ask.share ? " share" : "") +
           (ask.mem ? " mem " + std::to_string(*ask.mem) : "");
  }

  base::Prng prng_;
  Looks& looks_;
  int nodes_ = 1, cores_ = 1, sockets_ = 1, threads_ = 1, count_ = 0;
  std::vector<PartitionConfig> partitions_;
  ClusterParameters parameters_;
  World world_;
  std::map<std::string, Held> held_;
};

TEST(Random, NothingIsOverCommittedAndNothingRefusedNeedlessly) {
  Looks looks;
  for (int round = 0; round < worlds() && !HasFailure(); ++round) {
    const auto seed = static_cast<std::uint64_t>(round) + 1;
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomWorld world{seed, looks};
    for (int step = 0; step < kStepsPerWorld && !HasFailure(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      world.step();
    }
  }
  if (HasFailure()) return;
  // A random test that never met a case proves nothing about it: each must have come up in half of
  // the worlds on average.
  for (const int count :
       {looks.started, looks.refused, looks.easy, looks.resumed, looks.preempted, looks.shared,
        looks.trials}) {
    EXPECT_GT(count, worlds() / 2);
  }
}

}  // namespace
}  // namespace sched::cons_tres::testing
