#include "scheduler/fuzz/events.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "scheduler/model/legality.h"
#include "scheduler/replay/replay.h"
#include "scheduler/scheduler.h"

namespace sched {
namespace {

// Gives zeros when the input is used up.
class Bytes {
 public:
  explicit Bytes(std::span<const std::uint8_t> bytes) : bytes_{bytes} {}
  bool empty() const { return position_ >= bytes_.size(); }
  // One byte is one choice, whatever its value: each input is a legal run, and a fuzzer that
  // changes a byte changes one choice.
  int below(int bound) {
    const int byte = empty() ? 0 : bytes_[position_];
    ++position_;
    return byte % bound;
  }
  bool flag() { return below(2) != 0; }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t position_ = 0;
};

// 1 to 5 nodes of one kind, small enough that jobs are in each other's way. Weights differ, so that
// node sets are tried one after the other (3.6).
std::vector<NodeSpec> make_nodes(Bytes& bytes) {
  std::vector<NodeSpec> nodes(static_cast<std::size_t>(1 + bytes.below(5)));
  const int sockets = 1 + bytes.below(2);
  const int cores = 1 + bytes.below(4);
  const int threads = 1 + bytes.below(2);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].name = "n" + std::to_string(i + 1);
    nodes[i].sockets = sockets;
    nodes[i].cores_per_socket = cores;
    nodes[i].threads_per_core = threads;
    nodes[i].cpus = sockets * cores * threads;
    nodes[i].memory = MemoryMiB{1'000};
    nodes[i].weight = static_cast<std::uint32_t>(1 + bytes.below(2));
  }
  return nodes;
}

// Makes each choice by itself, legal or not: decisions() drops what is_legal() refuses.
Configuration make_configuration(Bytes& bytes, const std::vector<NodeSpec>& nodes) {
  Configuration configuration;
  ClusterParameters& cluster = configuration.cluster;
  cluster.select = bytes.flag() ? SelectType::kConsTres : SelectType::kLinear;
  cluster.unit = static_cast<SelectUnit>(bytes.below(3));
  cluster.memory = bytes.flag();
  cluster.task_affinity = bytes.flag();
  cluster.gang = bytes.flag();
  cluster.preempt_type = static_cast<PreemptType>(bytes.below(3));
  cluster.preempt_mode = static_cast<PreemptMode>(bytes.below(4));
  cluster.preempt.reorder_count = bytes.below(3);
  cluster.preempt.strict_order = bytes.flag();
  cluster.preempt.youngest_first = bytes.flag();
  cluster.timetable_lead = std::chrono::seconds{bytes.below(4)};
  cluster.queue.requeue_delay = std::chrono::seconds{bytes.below(8)};
  const int partitions = 1 + bytes.below(3);
  for (int i = 0; i < partitions; ++i) {
    PartitionConfig partition;
    partition.name = "p" + std::to_string(i);
    for (const NodeSpec& node : nodes) {
      // The first partition has all nodes, so that no job is without any; the others overlap it and
      // each other in part.
      if (i == 0 || bytes.below(4) != 0) partition.nodes.push_back(node.name);
    }
    partition.is_default = i == 0;
    partition.priority_tier = static_cast<std::uint16_t>(bytes.below(3));
    partition.over_subscribe = static_cast<OverSubscribe>(bytes.below(4));
    partition.max_share = 1 + bytes.below(4);
    partition.exclusive_user = bytes.below(8) == 0;
    if (bytes.below(3) == 0) partition.preempt_mode = static_cast<PreemptMode>(bytes.below(4));
    partition.grace_time = std::chrono::seconds{bytes.below(3) * 5};
    configuration.partitions.push_back(std::move(partition));
  }
  // Two QOS, of which one may preempt the other, for preempt/qos.
  configuration.qos.resize(2);
  configuration.qos[0].name = "normal";
  configuration.qos[1].name = "high";
  configuration.qos[1].priority = 10;
  configuration.qos[1].preempt = {"normal"};
  return configuration;
}

// One run; keeps the decisions for comparing two runs.
class Run {
 public:
  explicit Run(Bytes bytes)
      : bytes_{bytes},
        told_{bytes_.flag()},
        nodes_{make_nodes(bytes_)},
        configuration_{make_configuration(bytes_, nodes_)},
        scheduler_{told_ ? make_replay() : Scheduler{Options{}}} {}

  std::vector<Decision> decisions() && {
    if (!is_legal(check(configuration_))) return {};
    step(Configure{std::make_shared<const Configuration>(configuration_)});
    for (const NodeSpec& node : nodes_) step(NodeUpdate{node});
    for (int i = 0; i < kFuzzEventsMax && !bytes_.empty(); ++i) event();
    return std::move(log_);
  }

 private:
  // The state of a job as a caller may believe it from the decisions alone. A decision that
  // contradicts it is a finding.
  struct Book {
    bool waits = true;
    bool told_to_end = false;
    bool ended = false;
    Allocation allocation;  // while allocated
  };

  void step(const Event& event) {
    scheduler_.step(now_, event);
    settle();
  }

  // Acts as a caller that is never late: it answers each decision at the same instant, and all pods
  // are ready at once.
  void settle() {
    constexpr int kRoundsMax = 10'000;
    for (int round = 0; round < kRoundsMax; ++round) {
      const std::vector<Decision> decisions = scheduler_.take_decisions();
      if (decisions.empty()) return;
      log_.insert(log_.end(), decisions.begin(), decisions.end());
      std::vector<JobId> started;
      for (const Decision& decision : decisions) note(decision, started);
      check_memory();
      for (const JobId job : started) scheduler_.step(now_, JobReady{job});
    }
    CHECK(false, "one event does not settle");
  }

  // A waiting job starts, one that is allocated gets at most one End, and nothing follows a
  // terminal state.
  void note(const Decision& decision, std::vector<JobId>& started) {
    if (const auto* start = std::get_if<Start>(&decision)) {
      Book& book = books_.at(start->job);
      CHECK(book.waits && !book.ended, to_string(start->job));
      check_allocation(start->allocation);
      book = {.waits = false, .allocation = start->allocation};
      started.push_back(start->job);
    } else if (const auto* change = std::get_if<StateChange>(&decision)) {
      Book& book = books_.at(change->job);
      CHECK(!book.ended, to_string(change->job));
      // A state change ends a run: nodes are given back, and a requeued job may get an End once
      // more.
      book = {.waits = change->state == JobState::kPending, .ended = is_terminal(change->state)};
    } else if (const auto* end = std::get_if<End>(&decision)) {
      Book& book = books_.at(end->job);
      // Only a cancel is decided over another ending.
      const bool twice = book.told_to_end && end->verdict != EndingVerdict::kCancelled;
      CHECK(!book.waits && !twice && !book.ended, to_string(end->job));
      book.told_to_end = true;
    }
  }

  // Each node once, up when the job starts, and no cores that it does not have.
  void check_allocation(const Allocation& allocation) const {
    CHECK(!allocation.nodes.empty());
    std::vector<NodeIndex> seen;
    for (const NodeAllocation& part : allocation.nodes) {
      CHECK(std::find(seen.begin(), seen.end(), part.node) == seen.end());
      seen.push_back(part.node);
      const NodeSpec& node = spec(part.node);
      CHECK(node.state == NodeState::kUp, node.name);
      CHECK(!part.cores.empty() && CoreSet::first(node.cores()).contains(part.cores), node.name);
    }
  }

  // Suspended jobs keep their memory; it is never over-committed (I9).
  void check_memory() const {
    if (!configuration_.cluster.memory) return;
    std::map<NodeIndex, std::int64_t> used;
    for (const auto& [id, book] : books_) {
      // A job with a decided end has given its memory back already (R2.1).
      if (book.told_to_end) continue;
      for (const NodeAllocation& part : book.allocation.nodes) {
        used[part.node] += part.memory.value();
      }
    }
    for (const auto& [node, memory] : used) {
      CHECK(memory <= spec(node).memory.value(), spec(node).name);
    }
  }

  // By name, because the scheduler numbers the nodes itself.
  const NodeSpec& spec(NodeIndex index) const {
    const std::string& name = scheduler_.node_name(index);
    const auto found = std::find_if(nodes_.begin(), nodes_.end(),
                                    [&](const NodeSpec& node) { return node.name == name; });
    CHECK(found != nodes_.end(), name);
    return *found;
  }

  // Values are small, so that requests fit, nearly fit and contradict each other: more tasks than
  // CPUs, --contiguous with a required node, a required node outside the partition.
  JobRequest request() {
    JobRequest job;
    job.id = JobId{++last_job_};
    job.name = "j" + std::to_string(last_job_);
    job.user = bytes_.flag() ? "alice" : "bob";
    job.submit_time = now_;
    job.partitions = {configuration_
                          .partitions[static_cast<std::size_t>(
                              bytes_.below(static_cast<int>(configuration_.partitions.size())))]
                          .name};
    job.nodes_given = bytes_.flag();
    job.min_nodes = job.nodes_given ? 1 + bytes_.below(static_cast<int>(nodes_.size())) : 1;
    if (job.nodes_given) job.max_nodes = job.min_nodes + bytes_.below(2);
    if (bytes_.flag()) job.tasks = job.min_nodes + bytes_.below(6);
    job.cpus_per_task = 1 + bytes_.below(2);
    if (bytes_.below(3) == 0) job.memory = MemoryPerNode{MemoryMiB{bytes_.below(6) * 200}};
    if (bytes_.below(3) == 0) job.sharing = static_cast<Sharing>(bytes_.below(4));
    if (bytes_.below(8) == 0) {
      job.required_nodes = {
          nodes_[static_cast<std::size_t>(bytes_.below(static_cast<int>(nodes_.size())))].name};
    }
    job.contiguous = bytes_.below(8) == 0;
    if (bytes_.flag()) job.time_limit = std::chrono::minutes{1 + bytes_.below(4)};
    job.qos = bytes_.below(3) == 0 ? "high" : "normal";
    job.nice = bytes_.below(3) * 10;
    job.hold = bytes_.below(8) == 0;
    if (bytes_.below(4) == 0) job.requeue = bytes_.flag();
    return job;
  }

  // Time goes on by 0 to 7 s, shorter than a slice and than most timers, so that several events
  // fall between two of them. Commands go to any job that was ever submitted: also to one that has
  // ended, which must change nothing.
  void event() {
    now_ += std::chrono::seconds{bytes_.below(8)};
    if (!told_) wake();
    const JobId job{1 + bytes_.below(static_cast<int>(std::max<std::int64_t>(1, last_job_)))};
    // Submissions, passes and ends are the most frequent, so that nodes fill up and become free
    // again.
    switch (bytes_.below(14)) {
      case 0:
      case 1:
      case 2: {
        const JobRequest asked = request();
        books_[asked.id] = {};
        return step(Submit{asked});
      }
      case 3:
      case 4:
        return told_ ? step(Pass{true, bytes_.flag()}) : wake();
      case 5:
        return told_ ? step(SliceEnd{}) : wake();
      case 6:
      case 7:
        return gone(job);
      case 8:
        return step(UserSuspend{job});
      case 9:
        return bytes_.below(4) == 0 ? step(JobRan{job, std::chrono::seconds{bytes_.below(100)}})
                                    : step(UserResume{job});
      case 10:
        return bytes_.flag() ? step(Hold{.job = job, .by_admin = bytes_.flag()})
                             : step(Release{job});
      case 11:
        if (bytes_.below(4) == 0) return nodes_clean(job);
        return bytes_.flag() ? step(Cancel{job}) : step(Requeue{job});
      case 12:
        return told_ ? step(TimeLimitReached{job}) : wake();
      default:
        return node_state();
    }
  }

  void gone(JobId job) {
    const auto book = books_.find(job);
    // Only processes that exist can be gone.
    if (book == books_.end() || book->second.waits || book->second.ended) return;
    step(JobGone{job, bytes_.flag() ? JobState::kCompleted : JobState::kFailed, 0});
  }

  // Some nodes, whether or not the job has them, and whether or not it ends.
  void nodes_clean(JobId job) {
    NodesClean clean{.job = job, .nodes = {}};
    for (const NodeSpec& node : nodes_) {
      if (bytes_.flag()) clean.nodes.push_back(node.name);
    }
    step(clean);
  }

  // Nodes fail and are drained under their jobs. Other events say what happens to these, or none
  // does.
  void node_state() {
    NodeSpec& node =
        nodes_[static_cast<std::size_t>(bytes_.below(static_cast<int>(nodes_.size())))];
    node.state = static_cast<NodeState>(bytes_.below(3));
    step(NodeUpdate{node});
  }

  // Own timing: plans are taken before each wake, as the operator does.
  void wake() {
    constexpr int kWakesMax = 1'000;
    for (int i = 0; i < kWakesMax; ++i) {
      (void)scheduler_.take_plans(now_);
      const std::optional<base::Instant> due = scheduler_.next_due();
      if (!due || *due > now_) return;
      step(Wake{});
    }
    CHECK(false, "due again and again at one instant");
  }

  Bytes bytes_;
  bool told_;
  std::vector<NodeSpec> nodes_;
  Configuration configuration_;
  Scheduler scheduler_;
  base::Instant now_{};
  std::int64_t last_job_ = 0;
  std::map<JobId, Book> books_;
  std::vector<Decision> log_;
};

}  // namespace

// Two runs with objects at other addresses: an order that depends on pointers shows as a
// difference.
void fuzz_events(std::span<const std::uint8_t> bytes) {
  const std::vector<Decision> once = Run{Bytes{bytes}}.decisions();
  const std::vector<Decision> twice = Run{Bytes{bytes}}.decisions();
  CHECK(once == twice, "the same events gave other decisions");
}

}  // namespace sched
