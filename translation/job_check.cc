#include "translation/job_check.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "api/array_status.h"
#include "api/job_size.h"
#include "base/number_list.h"
#include "kube/api/time_format.h"
#include "scheduler/place/constraint.h"
#include "slurm/array.h"
#include "slurm/hostlist.h"
#include "translation/devices.h"
#include "translation/members.h"
#include "translation/success_policy_check.h"
#include "translation/units.h"

namespace control {
namespace {

// Names of hosts add "-" and an index, and a host name is a DNS label of at most 63 characters.
constexpr std::size_t kJobNameMax = 52;
// Those of tasks of an array add the number of the task, too.
constexpr std::size_t kArrayNameMax = 48;
// Own bounds. They only keep a single job from costing the scheduler more than it may.
constexpr std::size_t kPartitionsMax = 32;
constexpr std::size_t kTermsMax = 1'024;
constexpr std::int64_t kNodesMax = 1'000'000;
constexpr std::int64_t kTasksMax = 16'777'216;
constexpr std::int64_t kPerNodeMax = 65'535;
// Slurm's own: priorities are 32 bits without a sign, NICE is offset by 0x80000000.

// The fields that may change while the job has nodes; no other field of the spec may. The CRD's
// rule lists the fields that may not.
constexpr std::array<std::string_view, 9> kMutableWhileAllocated = {
    "spec.array.parallelism",      "spec.control.tasks",          "spec.control.cancel",
    "spec.control.releaseRequest", "spec.control.requeueRequest", "spec.control.suspend",
    "spec.schedule.nice",          "spec.schedule.priority",      "spec.schedule.timeLimit",
};

// Checks what the object says by itself. Checks that depend on partitions, nodes and accounts are
// in translate_job. The CRD refuses much of it already, but an object may be older than the CRD's
// rules. Every sentence names the field, its value and a way out, and all of them are collected, so
// that a user need not find the mistakes one by one.
class Checker {
 public:
  explicit Checker(const kube::Job& job) : job_{job}, spec_{job.spec} {}

  std::vector<std::string> run() {
    check_name();
    check_partitions();
    check_sizes();
    check_adopted();
    check_completions();
    check_memory();
    check_devices();
    check_licenses();
    check_times();
    check_dependency();
    check_success_policy();
    check_array();
    check_batch();
    check_node_lists();
    check_requests();
    return std::move(problems_);
  }

 private:
  // All are collected; none ends the check.
  void problem(std::string sentence) { problems_.push_back(std::move(sentence)); }

  // A field that is absent is in range.
  template <typename T>
  void check_range(std::string_view field, const std::optional<T>& value, std::int64_t min,
                   std::int64_t max) {
    if (!value || (*value >= min && *value <= max)) return;
    problem(std::string{field} + ": " + std::to_string(*value) + " is out of range; use " +
            std::to_string(min) + " to " + std::to_string(max));
  }

  // The name becomes the beginning of the names of pods, hosts and a service, so it obeys the
  // strictest of their rules.
  void check_name() {
    const std::string& name = job_.metadata.name;
    // Not isalnum(): capitals and letters beyond ASCII are illegal in a DNS label.
    const auto legal = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    };
    const std::size_t most = spec_.array ? kArrayNameMax : kJobNameMax;
    const bool label = !name.empty() && name.size() <= most && name[0] >= 'a' && name[0] <= 'z' &&
                       name.back() != '-' && std::all_of(name.begin(), name.end(), legal);
    if (label) return;
    problem("metadata.name: \"" + name + "\" must be a DNS label of at most " +
            std::to_string(most) +
            " characters that begins with a letter, names of pods and hosts are made from it; "
            "create the job under another name");
  }

  // A partition that is named twice would give the job two records there.
  // An absent list is legal: the job goes to the default partition, which depends on the cluster.
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

  // The bounds keep every product of two of these counts within 64 bits.
  void check_sizes() {
    if (spec_.resources.nodes) {
      check_range("spec.resources.nodes.min", std::optional{spec_.resources.nodes->min}, 1,
                  kNodesMax);
      check_range("spec.resources.nodes.max", spec_.resources.nodes->max, 1, kNodesMax);
      if (spec_.resources.nodes->max && *spec_.resources.nodes->max < spec_.resources.nodes->min) {
        problem("spec.resources.nodes.max: " + std::to_string(*spec_.resources.nodes->max) +
                " is less than min " + std::to_string(spec_.resources.nodes->min) +
                "; raise max or leave it out");
      }
    }
    // Slurm's counts per node have 16 bits.
    check_range("spec.resources.tasks", spec_.resources.tasks, 1, kTasksMax);
    // A gang of pods that others have made has one task for each: otherwise slots and pods would
    // not match.
    const auto pods = static_cast<std::int64_t>(spec_.adopted.size());
    if (pods > 0 &&
        // Tasks and policy of such a Job were written by the operator (pod_gang_translation.cc); a
        // user who edits them later is refused here.
        (spec_.resources.tasks != pods || spec_.pod_policy != kube::PodPolicy::kPerTask)) {
      problem("spec.resources.tasks: must stay " + std::to_string(pods) +
              ", the number of pods in spec.adopted");
    }
    check_range("spec.resources.tasksPerNode", spec_.resources.tasks_per_node, 1, kPerNodeMax);
    check_range("spec.resources.cpusPerTask", spec_.resources.cpus_per_task, 1, kPerNodeMax);
    check_range("spec.resources.tasksPerSocket", spec_.resources.tasks_per_socket, 1, kPerNodeMax);
    check_range("spec.resources.cpusPerGPU", spec_.resources.cpus_per_gpu, 1, kPerNodeMax);
    check_range("spec.resources.tasksPerGPU", spec_.resources.tasks_per_gpu, 1, kPerNodeMax);
    check_range("spec.resources.tasksPerCore", spec_.resources.tasks_per_core, 1, kPerNodeMax);
    check_range("spec.placement.minCPUsPerNode", spec_.placement.min_cpus_per_node, 1, kPerNodeMax);
    check_range("spec.placement.socketsPerNode", spec_.placement.sockets_per_node, 1, kPerNodeMax);
    check_range("spec.placement.coresPerSocket", spec_.placement.cores_per_socket, 1, kPerNodeMax);
    check_range("spec.placement.threadsPerCore", spec_.placement.threads_per_core, 1, kPerNodeMax);
    if (spec_.resources.tasks && spec_.resources.nodes &&
        *spec_.resources.tasks < spec_.resources.nodes->min) {
      problem("spec.resources.tasks: " + std::to_string(*spec_.resources.tasks) +
              " tasks on at least " + std::to_string(spec_.resources.nodes->min) +
              " nodes, but each node runs one task at least; raise tasks or lower nodes.min");
    }
  }

  // A pod is looked up among the slots of its job by its name (JobRecord). The order makes the
  // look-up a binary search, so it is checked here instead of being made.
  // Only the first pair that is out of order is reported: after it the others mean nothing.
  void check_adopted() {
    for (std::size_t i = 1; i < spec_.adopted.size(); ++i) {
      const std::string& before = spec_.adopted[i - 1].name;
      const std::string& name = spec_.adopted[i].name;
      if (before < name) continue;
      const std::string where = "spec.adopted[" + std::to_string(i) + "]: pod \"" + name + "\" ";
      return problem(before == name
                         ? where + "is listed twice; list each pod once"
                         : where + "must come before \"" + before + "\"; sort the pods by name");
    }
  }

  // A place that pods follow one another at is a task's. Such a job has fewer pods at a time than
  // completions, and a pod that succeeds is followed by one of the next index. So the number of
  // pods must not exceed the completions that are left: a place without an index would have no pod.
  void check_completions() {
    if (!spec_.completions) {
      if (!spec_.completed_indexes.empty()) {
        problem("spec.completedIndexes: needs spec.completions; set that, or remove this");
      }
      return;
    }
    check_range("spec.completions", spec_.completions, 1, kCompletionsMax);
    if (!spec_.adopted.empty()) {
      return problem("spec.completions: pods that others have made have no successors; remove it");
    }
    if (spec_.pod_policy != kube::PodPolicy::kPerTask || !spec_.resources.tasks) {
      return problem(
          "spec.completions: needs podPolicy PerTask and spec.resources.tasks, the number of pods "
          "that run at once");
    }
    // A number list may name an index twice, so distinct ones are counted below.
    const auto done = base::parse_number_list(spec_.completed_indexes, kCompletionsMax - 1);
    if (!done || std::ranges::any_of(*done, [&](int i) { return i >= *spec_.completions; })) {
      return problem("spec.completedIndexes: \"" + spec_.completed_indexes +
                     "\" must list indexes below spec.completions (example: 0,2-3)");
    }
    // After an index has succeeded once, it needs no pod.
    const std::set<int> distinct{done->begin(), done->end()};
    const auto left = *spec_.completions - static_cast<std::int64_t>(distinct.size());
    if (*spec_.resources.tasks <= left) return;
    problem("spec.resources.tasks: " + std::to_string(*spec_.resources.tasks) + " pods, but only " +
            std::to_string(left) + " of spec.completions are left; lower tasks");
  }

  // Slurm knows memory per CPU or per node (1.5). Zero is refused, since Slurm's own spelling for
  // all memory of a node has a field of its own here.
  void check_memory() {
    if (spec_.resources.memory_per_cpu && spec_.resources.memory_per_node) {
      problem(
          "spec.resources.memoryPerCPU: excludes spec.resources.memoryPerNode; remove one of the "
          "two");
    }
    if (spec_.resources.all_memory.value_or(false) &&
        (spec_.resources.memory_per_cpu || spec_.resources.memory_per_node)) {
      problem(
          "spec.resources.allMemory: excludes memoryPerCPU and memoryPerNode; remove one of them");
    }
    if (spec_.resources.memory_per_gpu &&
        (spec_.resources.memory_per_cpu || spec_.resources.memory_per_node ||
         spec_.resources.all_memory.value_or(false))) {
      problem(
          "spec.resources.memoryPerGPU: excludes memoryPerCPU, memoryPerNode and allMemory; remove "
          "one of them");
    }
    const auto check_amount = [&](std::string_view field, const std::optional<kube::Bytes>& value,
                                  std::int64_t least, std::string_view advice) {
      if (!value) return;
      if (value->value() < least) {
        problem(std::string{field} + ": " + kube::format_bytes(*value) + " is not possible; " +
                std::string{advice});
      }
      // Without the amount: the one that is known may stand for a larger one.
      if (value->value() > kMemoryBytesMax) {
        problem(std::string{field} + ": more than " +
                kube::format_bytes(kube::Bytes{kMemoryBytesMax}) + " is not possible; use less");
      }
    };
    check_amount("spec.resources.memoryPerCPU", spec_.resources.memory_per_cpu, 1,
                 "use more than 0, or leave it out for the partition's default");
    check_amount("spec.resources.memoryPerNode", spec_.resources.memory_per_node, 1,
                 "use more than 0, or allMemory: true for all memory of the node");
    check_amount("spec.resources.memoryPerGPU", spec_.resources.memory_per_gpu, 1,
                 "use more than 0, or leave it out for the partition's default");
    check_amount("spec.placement.tmpDisk", spec_.placement.tmp_disk, 0, "use 0 or more");
  }

  // A pod of a job with a pod for each task gets its part of what its node has, which must come out
  // even on any nodes.
  void check_devices() {
    const kube::JobResources& asked = spec_.resources;
    for (const auto& [devices, field] :
         {std::pair{&asked.devices, "spec.resources.devices"},
          {&asked.devices_of_job, "spec.resources.devicesOfJob"},
          {&asked.devices_per_task, "spec.resources.devicesPerTask"},
          {&asked.devices_per_socket, "spec.resources.devicesPerSocket"}}) {
      for (std::string& sentence : device_problems(*devices, field)) problem(std::move(sentence));
    }
    if (asked.cpus_per_gpu && asked.cpus_per_task) {
      problem("spec.resources.cpusPerGPU: excludes cpusPerTask; remove one of the two");
    }
    if ((!asked.devices_per_task.empty() || asked.tasks_per_gpu) && !asked.tasks) {
      problem("spec.resources.tasks: is missing; devicesPerTask and tasksPerGPU need it");
    }
    if (!asked.devices_per_socket.empty() && !spec_.placement.sockets_per_node) {
      problem("spec.placement.socketsPerNode: is missing; devicesPerSocket needs it");
    }
    if (!spec_.adopted.empty() && kube::asks_for_devices(asked)) {
      problem(
          "spec.resources.devices: pods that others have made cannot get devices yet; leave it "
          "out");
    }
    if (spec_.pod_policy != kube::PodPolicy::kPerTask || kube::has_one_pod(spec_)) return;
    if (!asked.devices_per_socket.empty()) {
      problem(
          "spec.resources.devicesPerSocket: cannot be shared out to the pods of a node; with "
          "podPolicy PerTask use devicesPerTask");
    }
    if (!asked.devices_of_job.empty() && asked.devices_per_task.empty()) {
      problem(
          "spec.resources.devicesOfJob: cannot be shared out to the pods of a node; with podPolicy "
          "PerTask use devicesPerTask");
    }
    const std::int32_t tasks = asked.tasks_per_node.value_or(0);
    for (const kube::JobDevice& each : asked.devices) {
      if (tasks > 0 && each.count % tasks == 0) continue;
      problem("spec.resources.devices: " + std::to_string(each.count) +
              " cannot be shared out to the pods of a node; with podPolicy PerTask set "
              "spec.resources.tasksPerNode to a number that divides it");
    }
  }

  // The scheduler knows which names exist.
  void check_licenses() {
    for (const auto& [name, count] : spec_.resources.licenses) {
      check_range("spec.resources.licenses." + name, std::optional{count}, 1, 1'000'000);
    }
  }

  // A limit of 0 would end the job at once; the other times may be 0.
  void check_times() {
    const auto check_positive = [&](std::string_view field,
                                    const std::optional<base::Duration>& value, bool zero_is_legal,
                                    std::string_view advice) {
      if (!value || value->count() > 0 || (zero_is_legal && value->count() == 0)) return;
      problem(std::string{field} + ": " + kube::format_duration(*value) + " is not possible; " +
              std::string{advice});
    };
    check_positive("spec.schedule.timeLimit", spec_.schedule.time_limit, false,
                   "give a time above 0s, or leave it out for the partition's default");
    check_positive("spec.schedule.timeMin", spec_.schedule.time_min, true,
                   "give a time of 0s or more");
    check_positive("spec.lifecycle.startTimeout", spec_.lifecycle.start_timeout, true,
                   "give a time of 0s or more");
    if (spec_.lifecycle.start_timeout > kStartTimeoutMax) {
      problem(
          "spec.lifecycle.startTimeout: " + kube::format_duration(*spec_.lifecycle.start_timeout) +
          " is not possible; give at most 2h");
    }
    check_positive("spec.lifecycle.ttlAfterFinished", spec_.lifecycle.ttl_after_finished, true,
                   "give a time of 0s or more");
    if (spec_.batch && spec_.batch->signal) {
      check_positive("spec.batch.signal.before", spec_.batch->signal->before, true,
                     "give a time of 0s or more");
    }
    // timeMin is how far the scheduler may shorten the job to let it start earlier; it cannot
    // lengthen it.
    if (spec_.schedule.time_min && spec_.schedule.time_limit &&
        *spec_.schedule.time_min > *spec_.schedule.time_limit) {
      problem("spec.schedule.timeMin: " + kube::format_duration(*spec_.schedule.time_min) +
              " is longer than timeLimit " + kube::format_duration(*spec_.schedule.time_limit) +
              "; lower timeMin");
    }
  }

  void check_dependency() {
    if (!spec_.dependency) return;
    const std::vector<kube::DependencyTerm>& terms = spec_.dependency->terms;
    if (terms.empty() || terms.size() > kTermsMax) {
      problem("spec.dependency.terms: " + std::to_string(terms.size()) + " terms; use 1 to " +
              std::to_string(kTermsMax) + ", or leave spec.dependency out");
    }
    for (std::size_t i = 0; i < terms.size(); ++i) {
      const kube::DependencyTerm& term = terms[i];
      const std::string where = "spec.dependency.terms[" + std::to_string(i) + "]: ";
      const bool names_one = term.job_id.has_value() != !term.job_name.empty();
      const bool names_any = term.job_id || !term.job_name.empty();
      if (term.type == kube::DependencyType::kSingleton ? names_any : !names_one) {
        problem(where +
                "names another job by jobID or by jobName, or with type Singleton by neither");
      }
      if (term.task && (!names_one || term.type == kube::DependencyType::kAfterCorr)) {
        problem(where + "task goes with jobID or jobName, and not with type AfterCorr; remove it");
      }
      if (term.task && (*term.task < 0 || *term.task >= kube::kArrayTasksMax)) {
        problem(where + "task " + std::to_string(*term.task) + " must be 0 to 100000");
      }
      if (term.type == kube::DependencyType::kAfterCorr && !spec_.array) {
        problem(where + "type AfterCorr needs spec.array; use AfterOK");
      }
      if (term.job_id && *term.job_id < 1) {
        problem(where + "jobID " + std::to_string(*term.job_id) + " must be 1 or more");
      }
      if (term.delay && (term.type != kube::DependencyType::kAfter || term.delay->count() < 0)) {
        problem(where + "delay is a time of 0s or more, with type After alone; remove it");
      }
    }
  }

  // The sentences come with their field already.
  void check_success_policy() {
    if (!spec_.lifecycle.success_policy) return;
    for (std::string& sentence : success_policy_problems(*spec_.lifecycle.success_policy)) {
      problem(std::move(sentence));
    }
  }

  // It does not matter which of the tasks exist: the others have no wishes. Reading stops at the
  // first mistake, since texts of a few bytes can name very many tasks.
  void check_named_tasks() {
    if (kube::names_too_many_tasks(spec_.control)) {
      return problem(
          "spec.control.tasks: names more than " + std::to_string(kube::kNamedTasksMax) +
          " tasks; remove those that have ended, or use spec.control for the whole array");
    }
    for (std::size_t i = 0; i < spec_.control.tasks.size(); ++i) {
      const kube::TaskControl& entry = spec_.control.tasks[i];
      const std::string where = "spec.control.tasks[" + std::to_string(i) + "].";
      check_range(where + "priority", entry.priority, 1, kPriorityMax);
      check_range(where + "nice", entry.nice, -kNiceMax, kNiceMax);
      const base::Duration least =
          std::max(spec_.schedule.time_min.value_or(base::Duration{0}), base::Duration{1});
      if (entry.time_limit && *entry.time_limit < least) {
        problem(where + "timeLimit: " + kube::format_duration(*entry.time_limit) +
                " is not possible; give a time above 0s, and not below spec.schedule.timeMin");
      }
      if (base::parse_number_list(entry.tasks, kube::kArrayTasksMax - 1)) continue;
      return problem(where + "tasks: \"" + entry.tasks +
                     "\" must list numbers of tasks (example: 3,5-7)");
    }
  }

  void check_array() {
    check_named_tasks();
    if (!spec_.array) {
      if (spec_.control.tasks.empty()) return;
      return problem("spec.control.tasks: needs spec.array; without it use spec.control");
    }
    const auto read =
        slurm::parse_array("spec.array.tasks", spec_.array->tasks, kube::kArrayTasksMax);
    if (!read) problem(read.error().message + " (example: 0-15:4,20)");
    if (read && read->at_once) {
      problem("spec.array.tasks: \"" + spec_.array->tasks +
              "\" names tasks alone; write %N as spec.array.parallelism");
    }
    check_range("spec.array.parallelism", spec_.array->parallelism, 0, kube::kArrayTasksMax);
    if (spec_.completions || !spec_.adopted.empty()) {
      problem("spec.array: excludes completions and adopted; remove them");
    }
  }

  // The pods of a script are one for each node, and the script alone says when the job is complete.
  void check_batch() {
    if (!spec_.batch) return;
    if (spec_.pod_policy == kube::PodPolicy::kPerTask || spec_.completions ||
        !spec_.adopted.empty() || spec_.lifecycle.success_policy) {
      problem(
          "spec.batch: excludes podPolicy PerTask, completions, adopted and "
          "lifecycle.successPolicy, because its script runs once, on the first node; remove them");
    }
  }

  // translate_job() checks which of the nodes exist, since that depends on the cluster.
  void check_node_lists() {
    const auto check = [&](std::string_view field, const std::optional<std::string>& list) {
      if (!list) return;
      const auto names = slurm::expand_hostlist(*list);
      if (!names.ok()) {
        problem(std::string{field} + ": " + names.error().message + " (example: n[12-16,20])");
      }
    };
    check("spec.placement.hostlist", spec_.placement.hostlist);
    check("spec.placement.excludeHostlist", spec_.placement.exclude_hostlist);
    // The grammar of features is the scheduler's, so its own parser judges the text.
    const auto constraint = sched::Constraint::parse(spec_.placement.constraint.value_or(""));
    if (!constraint.ok()) {
      problem("spec.placement.constraint: \"" + *spec_.placement.constraint +
              "\" makes no sense: " + constraint.error().message + "; write it like gpu&fast");
    }
  }

  // The counters only grow (check_change), so a negative one is a mistake.
  void check_requests() {
    check_range("spec.schedule.priority", spec_.schedule.priority, 1, kPriorityMax);
    check_range("spec.schedule.nice", spec_.schedule.nice, -kNiceMax, kNiceMax);
    check_range("spec.control.requeueRequest", spec_.control.requeue_request, 0, INT64_MAX);
    check_range("spec.control.releaseRequest", spec_.control.release_request, 0, INT64_MAX);
  }

  const kube::Job& job_;
  const kube::JobSpec& spec_;
  std::vector<std::string> problems_;
};

}  // namespace

// Returns whole sentences; empty if the job is legal by itself.
std::vector<std::string> check_job(const kube::Job& job) {
  return Checker{job}.run();
}

// Returns why a change of the spec is refused; `before` is the spec that is in force.
// 1. A few fields never change, or only in one direction, in any state.
// 2. A job that waits may change in any other way: it is judged again.
// 3. A job that has nodes, or an array of which a task has, may change only the fields of
//    kMutableWhileAllocated: everything else would contradict what the scheduler has decided for
//    it.
std::vector<std::string> check_change(const kube::JobSpec& before, const kube::JobSpec& now,
                                      bool is_allocated) {
  std::vector<std::string> problems;
  // It decides which pods a start has, and those of the present one may exist.
  if (before.pod_policy != now.pod_policy) {
    problems.push_back("spec.podPolicy: cannot change; create another job");
  }
  // Pods that have succeeded are counted against these (architecture.md 3, commit point 5).
  if (before.completions != now.completions || before.completed_indexes != now.completed_indexes) {
    problems.emplace_back(
        "spec.completions, spec.completedIndexes: cannot change; create another job");
  }
  if (before.batch.has_value() != now.batch.has_value()) {
    problems.emplace_back("spec.batch: cannot change; create another job");
  }
  if (before.test_only.value_or(false) != now.test_only.value_or(false)) {
    problems.emplace_back("spec.testOnly: cannot change; create another job");
  }
  const auto tasks_of = [](const kube::JobSpec& spec) {
    return spec.array ? std::optional{spec.array->tasks} : std::nullopt;
  };
  if (tasks_of(before) != tasks_of(now)) {
    problems.emplace_back("spec.array.tasks: cannot change; create another job");
  }
  if (before.adopted != now.adopted) {
    problems.emplace_back("spec.adopted: cannot change; it is the operator's");
  }
  // The scheduler has got it, and its decision may be stored already.
  if (before.control.cancel.value_or(false) && !now.control.cancel.value_or(false)) {
    problems.push_back("spec.control.cancel: cannot be taken back; create another job");
  }
  // A counter that goes back would make the next request look like one that was carried out before.
  const auto check_request = [&](std::string_view field, const std::optional<std::int64_t>& was,
                                 const std::optional<std::int64_t>& is) {
    if (is.value_or(0) >= was.value_or(0)) return;
    problems.push_back(std::string{field} + ": " + std::to_string(is.value_or(0)) +
                       " is below the last value " + std::to_string(was.value_or(0)) +
                       "; raise it above that");
  };
  check_request("spec.control.requeueRequest", before.control.requeue_request,
                now.control.requeue_request);
  check_request("spec.control.releaseRequest", before.control.release_request,
                now.control.release_request);
  // A job that waits may change in any other way: it is judged again.
  if (!is_allocated) return problems;
  // A list of what may change, and not of what may not: a new field of the spec is refused until
  // its change is known to be safe.
  for (const std::string& field : kube::changed_fields(before, now)) {
    if (std::ranges::find(kMutableWhileAllocated, field) != kMutableWhileAllocated.end()) continue;
    if (now.array && field == "spec.control.hold") continue;  // holds those of its tasks that wait
    problems.push_back(field + ": cannot change while the job is allocated; requeue the job first");
  }
  return problems;
}

// The fields of kMutableWhileAllocated, and the hold where it may change. What is refused also
// alone (a cancel that is taken back, a counter that goes back) stays.
kube::JobSpec allowed_change(const kube::JobSpec& before, const kube::JobSpec& now,
                             bool is_allocated) {
  kube::JobSpec spec = before;
  spec.schedule.time_limit = now.schedule.time_limit;
  spec.schedule.priority = now.schedule.priority;
  spec.schedule.nice = now.schedule.nice;
  if (spec.array && now.array) spec.array->parallelism = now.array->parallelism;
  const kube::JobControl& was = before.control;
  spec.control = now.control;
  if (is_allocated && !now.array) spec.control.hold = was.hold;
  if (was.cancel.value_or(false)) spec.control.cancel = was.cancel;
  if (now.control.requeue_request.value_or(0) < was.requeue_request.value_or(0)) {
    spec.control.requeue_request = was.requeue_request;
  }
  if (now.control.release_request.value_or(0) < was.release_request.value_or(0)) {
    spec.control.release_request = was.release_request;
  }
  return spec;
}

}  // namespace control
