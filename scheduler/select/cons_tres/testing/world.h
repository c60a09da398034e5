// World: a small cluster with a cons_tres selector and named jobs, for tests in one line per job.
// It plays the scheduler's part: it resolves sharing and node counts, offers candidates, and keeps
// books.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scheduler/model/cluster.h"
#include "scheduler/select/cons_tres/cons_tres.h"

namespace sched::cons_tres::testing {

struct Nodes {
  std::string prefix = "n";
  int first = 1, last = 1;
  int sockets = 1, cores = 4, threads = 1;
  std::int64_t memory = 8000;
  std::uint32_t weight = 1;
  Devices devices = {};
};

// The request of a test job; a test writes down only what matters to it.
struct Ask {
  std::string in = "p";  // partition
  int nodes = 0;         // -N n
  std::pair<int, int> range{0, 0};
  int tasks = 0, per_node = 0, per_socket = 0, per_core = 0, cpus_per_task = 1;
  int mincpus = 0, threads_per_core = 0, sockets_per_node = 0, cores_per_socket = 0;
  std::optional<std::int64_t> mem = {}, mem_per_cpu = {};
  bool exclusive = false, share = false, contiguous = false, overcommit = false;
  std::vector<std::string> on = {};    // --nodelist
  std::vector<std::string> take = {};  // candidates, in order
  SelectMode mode = SelectMode::kRunNow;
  Devices gres = {}, gpus = {}, gpus_per_task = {},
          gpus_per_socket = {};  // on each node, over all nodes
  PerGpu per_gpu = {};
};

struct Placed {
  std::string where;  // "n1:0-1@200+gpu:2 n2:0", "" = does not fit
  std::vector<std::string> victims;
  std::optional<Allocation> allocation;
};

class World {
 public:
  World(const std::vector<Nodes>& nodes, const std::vector<PartitionConfig>& partitions,
        const ClusterParameters& parameters);

  // Returns the selector's answer; nothing changes.
  Placed ask(const Ask& ask);
  // Asks the same as if these jobs had never been.
  Placed ask_without(const std::set<std::string>& gone, const Ask& ask);
  // Asks in a trial that removes these jobs in this order and puts the last `back_count` back.
  Placed ask_in_trial(const std::vector<std::string>& gone, int back_count, const Ask& ask);
  // Starts the job at once where it fits without victims; returns ask(…).where.
  std::string start(const std::string& name, const Ask& ask);
  void end(const std::string& name);
  void suspend(const std::string& name);
  bool resume(const std::string& name);
  // Makes a new selector with all jobs added again, as after a restart.
  void restart();
  bool has(const std::string& name) const { return jobs_.contains(name); }
  const Allocation& allocation(const std::string& name) const { return jobs_.at(name)->allocation; }
  const Cluster& cluster() const { return cluster_; }
  Selector& selector() { return *selector_; }
  std::string show(const Allocation& allocation) const;
  // How jobs are preempted; the default is the cluster's mode.
  std::map<std::string, PreemptMode> modes;

 private:
  struct Job {
    JobRequest request;
    SelectJob select;
    Allocation allocation;
  };
  std::unique_ptr<Job> make_job(const Ask& ask);
  SelectOutcome select(const Job& job, const Ask& ask);

  Cluster cluster_;
  std::unique_ptr<Selector> selector_;
  std::map<std::string, std::unique_ptr<Job>> jobs_;
  std::int64_t next_id_ = 1;
};

// Partitions in one line.
PartitionConfig no(const std::string& name, int tier = 1);
PartitionConfig yes(const std::string& name, int share = 4, int tier = 1);
PartitionConfig force(const std::string& name, int share = 4, int tier = 1);
PartitionConfig exclusive(const std::string& name, int tier = 1);

// CR_Core without memory, neither gang nor preemption.
ClusterParameters plain();
ClusterParameters gang();
ClusterParameters preempting(PreemptMode mode, bool with_gang,
                             PreemptType type = PreemptType::kPartitionPriority);

}  // namespace sched::cons_tres::testing
