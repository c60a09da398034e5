#include "operator/translate/job_check.h"

#include <algorithm>
#include <optional>
#include <set>

#include "kube/api/time_format.h"
#include "scheduler/place/constraint.h"
#include "slurm/hostlist.h"

namespace control {
namespace {

constexpr std::size_t kJobNameMax = 52;
constexpr std::size_t kPartitionsMax = 32;
constexpr std::int64_t kNodesMax = 1'000'000;
constexpr std::int64_t kTasksMax = 16'777'216;
constexpr std::int64_t kPerNodeMax = 65'535;
constexpr std::int64_t kPriorityMax = 4'294'967'295;
constexpr std::int64_t kNiceMax = 2'147'483'645;

class Checker {
 public:
  explicit Checker(const kube::Job& job) : job_{job}, spec_{job.spec} {}

  std::vector<std::string> run() {
    check_name();
    check_partitions();
    check_sizes();
    check_memory();
    check_times();
    check_node_lists();
    check_requests();
    return std::move(problems_);
  }

 private:
  void problem(std::string sentence) { problems_.push_back(std::move(sentence)); }

  template <typename T>
  void check_range(std::string_view field, const std::optional<T>& value, std::int64_t min,
                   std::int64_t max) {
    if (!value || (*value >= min && *value <= max)) return;
    problem(std::string{field} + ": " + std::to_string(*value) + " is out of range; use " +
            std::to_string(min) + " to " + std::to_string(max));
  }

  void check_name() {
    const std::string& name = job_.metadata.name;
    const auto legal = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    };
    const bool label = !name.empty() && name.size() <= kJobNameMax && name[0] >= 'a' &&
                       name[0] <= 'z' && name.back() != '-' &&
                       std::all_of(name.begin(), name.end(), legal);
    if (label) return;
    problem("metadata.name: \"" + name + "\" must be a DNS label of at most " +
            std::to_string(kJobNameMax) +
            " characters that begins with a letter, names of pods and hosts are made from it; "
            "create the job under another name");
  }

  void check_partitions() {
    std::set<std::string> seen;
    if (spec_.partitions.size() > kPartitionsMax) {
      problem("spec.partitions: " + std::to_string(spec_.partitions.size()) +
              " partitions, at most " + std::to_string(kPartitionsMax) + " are possible");
    }
    for (const std::string& name : spec_.partitions) {
      if (name.empty()) problem("spec.partitions: a name is empty; remove it");
      if (!seen.insert(name).second) {
        problem("spec.partitions: \"" + name + "\" is named twice; name each partition once");
      }
    }
  }

  void check_sizes() {
    if (spec_.nodes) {
      check_range("spec.nodes.min", std::optional{spec_.nodes->min}, 1, kNodesMax);
      check_range("spec.nodes.max", spec_.nodes->max, 1, kNodesMax);
      if (spec_.nodes->max && *spec_.nodes->max < spec_.nodes->min) {
        problem("spec.nodes.max: " + std::to_string(*spec_.nodes->max) + " is less than min " +
                std::to_string(spec_.nodes->min) + "; raise max or leave it out");
      }
    }
    check_range("spec.tasks", spec_.tasks, 1, kTasksMax);
    check_range("spec.tasksPerNode", spec_.tasks_per_node, 1, kPerNodeMax);
    check_range("spec.cpusPerTask", spec_.cpus_per_task, 1, kPerNodeMax);
    check_range("spec.tasksPerSocket", spec_.tasks_per_socket, 1, kPerNodeMax);
    check_range("spec.tasksPerCore", spec_.tasks_per_core, 1, kPerNodeMax);
    check_range("spec.minCPUsPerNode", spec_.min_cpus_per_node, 1, kPerNodeMax);
    check_range("spec.socketsPerNode", spec_.sockets_per_node, 1, kPerNodeMax);
    check_range("spec.coresPerSocket", spec_.cores_per_socket, 1, kPerNodeMax);
    check_range("spec.threadsPerCore", spec_.threads_per_core, 1, kPerNodeMax);
    if (spec_.tasks && spec_.nodes && *spec_.tasks < spec_.nodes->min) {
      problem("spec.tasks: " + std::to_string(*spec_.tasks) + " tasks on at least " +
              std::to_string(spec_.nodes->min) +
              " nodes, but each node runs one task at least; raise tasks or lower nodes.min");
    }
  }

  void check_memory() {
    if (spec_.memory_per_cpu && spec_.memory_per_node) {
      problem("spec.memoryPerCPU: excludes spec.memoryPerNode; remove one of the two");
    }
    const auto check_negative = [&](std::string_view field,
                                    const std::optional<kube::Bytes>& value) {
      if (!value || value->value() >= 0) return;
      problem(std::string{field} + ": " + kube::format_bytes(*value) +
              " is negative; use 0 or more");
    };
    check_negative("spec.memoryPerCPU", spec_.memory_per_cpu);
    check_negative("spec.memoryPerNode", spec_.memory_per_node);
    check_negative("spec.tmpDisk", spec_.tmp_disk);
  }

  void check_times() {
    const auto check_positive = [&](std::string_view field,
                                    const std::optional<base::Duration>& value, bool zero_is_legal,
                                    std::string_view advice) {
      if (!value || value->count() > 0 || (zero_is_legal && value->count() == 0)) return;
      problem(std::string{field} + ": " + kube::format_duration(*value) + " is not possible; " +
              std::string{advice});
    };
    check_positive("spec.timeLimit", spec_.time_limit, false,
                   "give a time above 0s, or leave it out for the partition's default");
    check_positive("spec.timeMin", spec_.time_min, true, "give a time of 0s or more");
    check_positive("spec.startTimeout", spec_.start_timeout, true, "give a time of 0s or more");
    check_positive("spec.ttlAfterFinished", spec_.ttl_after_finished, true,
                   "give a time of 0s or more");
    if (spec_.time_min && spec_.time_limit && *spec_.time_min > *spec_.time_limit) {
      problem("spec.timeMin: " + kube::format_duration(*spec_.time_min) +
              " is longer than timeLimit " + kube::format_duration(*spec_.time_limit) +
              "; lower timeMin");
    }
  }

  void check_node_lists() {
    const auto check = [&](std::string_view field, const std::optional<std::string>& list) {
      if (!list) return;
      const auto names = slurm::expand_hostlist(*list);
      if (!names.ok()) {
        problem(std::string{field} + ": \"" + *list +
                "\" is no hostlist: " + names.error().message + "; write it like n[12-16,20]");
      }
    };
    check("spec.nodeList", spec_.node_list);
    check("spec.excludeNodes", spec_.exclude_nodes);
    const auto constraint = sched::Constraint::parse(spec_.constraint.value_or(""));
    if (!constraint.ok()) {
      problem("spec.constraint: \"" + *spec_.constraint +
              "\" makes no sense: " + constraint.error().message + "; write it like gpu&fast");
    }
  }

  void check_requests() {
    check_range("spec.priority", spec_.priority, 1, kPriorityMax);
    check_range("spec.nice", spec_.nice, -kNiceMax, kNiceMax);
    check_range("spec.requeueRequest", spec_.requeue_request, 0, INT64_MAX);
    check_range("spec.releaseRequest", spec_.release_request, 0, INT64_MAX);
  }

  const kube::Job& job_;
  const kube::JobSpec& spec_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> check_job(const kube::Job& job) {
  return Checker{job}.run();
}

std::vector<std::string> check_change(const kube::JobSpec& before, const kube::JobSpec& now,
                                      bool is_allocated) {
  std::vector<std::string> problems;
  if (before.pod_policy != now.pod_policy) {
    problems.push_back("spec.podPolicy: cannot change; create another job");
  }
  if (before.cancel.value_or(false) && !now.cancel.value_or(false)) {
    problems.push_back("spec.cancel: cannot be taken back; create another job");
  }
  const auto check_request = [&](std::string_view field, const std::optional<std::int64_t>& was,
                                 const std::optional<std::int64_t>& is) {
    if (is.value_or(0) >= was.value_or(0)) return;
    problems.push_back(std::string{field} + ": " + std::to_string(is.value_or(0)) +
                       " is below the last value " + std::to_string(was.value_or(0)) +
                       "; raise it above that");
  };
  check_request("spec.requeueRequest", before.requeue_request, now.requeue_request);
  check_request("spec.releaseRequest", before.release_request, now.release_request);
  if (!is_allocated) return problems;
  const auto check_same = [&](std::string_view field, const auto& was, const auto& is) {
    if (was == is) return;
    problems.push_back("spec." + std::string{field} +
                       ": cannot change while the job is allocated; requeue the job first");
  };
  check_same("partitions", before.partitions, now.partitions);
  check_same("nodes", before.nodes, now.nodes);
  check_same("tasks", before.tasks, now.tasks);
  check_same("tasksPerNode", before.tasks_per_node, now.tasks_per_node);
  check_same("cpusPerTask", before.cpus_per_task, now.cpus_per_task);
  check_same("tasksPerSocket", before.tasks_per_socket, now.tasks_per_socket);
  check_same("tasksPerCore", before.tasks_per_core, now.tasks_per_core);
  check_same("minCPUsPerNode", before.min_cpus_per_node, now.min_cpus_per_node);
  check_same("socketsPerNode", before.sockets_per_node, now.sockets_per_node);
  check_same("coresPerSocket", before.cores_per_socket, now.cores_per_socket);
  check_same("threadsPerCore", before.threads_per_core, now.threads_per_core);
  check_same("overcommit", before.overcommit, now.overcommit);
  check_same("useMinNodes", before.use_min_nodes, now.use_min_nodes);
  check_same("tmpDisk", before.tmp_disk, now.tmp_disk);
  check_same("memoryPerCPU", before.memory_per_cpu, now.memory_per_cpu);
  check_same("memoryPerNode", before.memory_per_node, now.memory_per_node);
  check_same("timeMin", before.time_min, now.time_min);
  check_same("beginTime", before.begin_time, now.begin_time);
  check_same("deadline", before.deadline, now.deadline);
  check_same("sharing", before.sharing, now.sharing);
  check_same("nodeList", before.node_list, now.node_list);
  check_same("excludeNodes", before.exclude_nodes, now.exclude_nodes);
  check_same("contiguous", before.contiguous, now.contiguous);
  check_same("constraint", before.constraint, now.constraint);
  check_same("qos", before.qos, now.qos);
  check_same("hold", before.hold, now.hold);
  check_same("requeue", before.requeue, now.requeue);
  check_same("network", before.network, now.network);
  check_same("startTimeout", before.start_timeout, now.start_timeout);
  check_same("ttlAfterFinished", before.ttl_after_finished, now.ttl_after_finished);
  return problems;
}

}  // namespace control
