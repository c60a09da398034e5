#include "cli/slurm/scontrol_update.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "api/annotations.h"
#include "api/array_status.h"
#include "api/qos.h"
#include "api/wellknown.h"
#include "base/number_list.h"
#include "cli/cluster/after_submit.h"
#include "cli/cluster/control.h"
#include "cli/cluster/info.h"
#include "cli/cluster/licenses.h"
#include "cli/cluster/read.h"
#include "cli/cluster/submit.h"
#include "cli/cluster/task_control.h"
#include "cli/cluster/user.h"
#include "cli/local_zone.h"
#include "cli/slurm/job_facts.h"
#include "cli/slurm/words.h"
#include "kube/api/node.h"
#include "kube/api/time_format.h"
#include "slurm/array.h"
#include "slurm/dependency.h"
#include "slurm/gres.h"
#include "slurm/hostlist.h"
#include "slurm/licenses.h"
#include "slurm/quantities.h"
#include "slurm/text.h"

namespace cli {
namespace {

using slurm::KeyValue;
using slurm::same_word;

int fail(Output output, const std::string& message) {
  output.err << message << "\n";
  return kExitFailed;
}

// SOURCE: scontrol's own sentence.
base::Error unsupported(const KeyValue& change) {
  return base::invalid_argument("Update of this parameter is not supported: " + change.key + "=" +
                                change.value + "\nRequest aborted");
}

// The job as it is to be, of which the spec's groups and the annotations are sent.
struct JobChange {
  kube::Job job;
  base::Instant now{};
  std::string_view field{};  // that is being set
};

base::Status set_time_limit(JobChange& change, const std::string& text) {
  auto& limit = change.job.spec.schedule.time_limit;
  const bool is_relative = text.starts_with('+') || text.starts_with('-');
  const bool is_infinite = same_word(text, "unlimited") || same_word(text, "infinite");
  const auto read = slurm::parse_limit("TimeLimit", is_relative ? text.substr(1) : text);
  if (!read && !is_infinite) return base::invalid_argument("Invalid TimeLimit value");
  const base::Duration value = is_infinite ? slurm::kUnlimited : read->value_or(slurm::kUnlimited);
  if (!is_relative) {
    limit = value;
    return {};
  }
  const auto now = limit ? limit : change.job.status.time_limit;
  if (!now) return base::invalid_argument("TimeLimit=" + text + ": the job has no limit to change");
  limit = text.front() == '+' ? *now + value : *now - value;
  if (*limit <= base::Duration{0}) return base::invalid_argument("Invalid TimeLimit value");
  return {};
}

base::Status set_nodes(JobChange& change, const std::string& text) {
  const std::size_t dash = std::min(text.find('-'), text.size());
  const auto least = slurm::parse_integer("NumNodes", text.substr(0, dash), {.min = 1});
  if (!least) return least.error();
  kube::JobNodes nodes{.min = static_cast<std::int32_t>(*least)};
  if (dash < text.size()) {
    const auto most = slurm::parse_integer("NumNodes", text.substr(dash + 1), {.min = *least});
    if (!most) return most.error();
    nodes.max = static_cast<std::int32_t>(*most);
  }
  change.job.spec.resources.nodes = nodes;
  return {};
}

base::Status set_memory(std::optional<kube::Bytes>& field, std::optional<kube::Bytes>& other,
                        const std::string& text) {
  constexpr std::int64_t kMiB = 1 << 20;
  const auto memory = slurm::parse_memory("MinMemory", text);
  if (!memory) return memory.error();
  field = kube::Bytes{memory->value() * kMiB};
  other.reset();
  return {};
}

// SOURCE: recorded (session gpu_updates).
base::Status set_gres(JobChange& change, const std::string& text) {
  const auto devices = slurm::parse_gres("Gres", text);
  if (!devices) return base::invalid_argument("Invalid generic resource (gres) specification");
  change.job.spec.resources.devices = devices_of(*devices);
  return {};
}

base::Status set_instant(std::optional<base::Instant>& field, const std::string& text,
                         const JobChange& change) {
  const auto instant = slurm::parse_instant("time", text, local_time(change.now));
  if (!instant) return instant.error();
  field = *instant;
  return {};
}

base::Status set_count(std::optional<std::int32_t>& field, std::string_view name,
                       const std::string& text, std::int64_t least = 1) {
  const auto count = slurm::parse_integer(name, text, {.min = least});
  if (!count) return count.error();
  field = static_cast<std::int32_t>(*count);
  return {};
}

template <auto kGroup, auto kMember>
base::Status set_count_in(JobChange& change, const std::string& text) {
  return set_count((change.job.spec.*kGroup).*kMember, change.field, text);
}
template <auto kMember>
constexpr auto set_resource = set_count_in<&kube::JobSpec::resources, kMember>;
template <auto kMember>
constexpr auto set_placement = set_count_in<&kube::JobSpec::placement, kMember>;

base::Status set_disk(JobChange& change, const std::string& text) {
  constexpr std::int64_t kMiB = 1 << 20;
  const auto disk = slurm::parse_integer("MinTmpDiskNode", text, {.min = 0});
  if (!disk) return disk.error();
  change.job.spec.placement.tmp_disk = kube::Bytes{*disk * kMiB};
  return {};
}

base::Status set_priority(JobChange& change, const std::string& text) {
  const auto priority =
      slurm::parse_integer("Priority", text, {.min = 0, .max = std::int64_t{1} << 32U});
  if (!priority) return priority.error();
  // SOURCE: the priority 0 is a hold.
  if (*priority == 0) {
    change.job.spec.control.hold = true;
  } else {
    change.job.spec.schedule.priority = *priority;
  }
  return {};
}

base::Status set_sharing(JobChange& change, const std::string& text) {
  const auto yes = slurm::parse_boolean("OverSubscribe", text);
  if (!yes) return yes.error();
  change.job.spec.placement.sharing =
      *yes ? kube::JobSharing::kOverSubscribe : kube::JobSharing::kNode;
  return {};
}

// SOURCE: nothing, or 0, takes the dependency away.
base::Status set_dependency(JobChange& change, const std::string& text) {
  const auto asked = slurm::parse_dependency("Dependency", text == "0" ? "" : text);
  if (!asked) return base::invalid_argument(asked.error().message);
  auto& dependency = change.job.spec.dependency;
  const auto before = std::exchange(dependency, dependency_of(*asked));
  if (dependency && before) dependency->if_never_satisfied = before->if_never_satisfied;
  return {};
}

void annotate(JobChange& change, std::string_view name, const std::string& text) {
  change.job.metadata.annotations[std::string{name}] = text;
}

// The states of a job in which a change makes sense.
enum class Until { kEnd, kStart };

struct JobField {
  std::string_view name;
  Until until;
  base::Status (*set)(JobChange& change, const std::string& text);
  bool is_of_tasks = false;  // tasks of an array may differ in it
};

// SOURCE: scontrol(1), "JOBS - SPECIFICATIONS FOR UPDATE COMMAND".
constexpr std::array kJobFields = {
    JobField{"TimeLimit", Until::kEnd, set_time_limit, true},
    JobField{"TimeMin", Until::kStart,
             [](JobChange& c, const std::string& text) -> base::Status {
               const auto time = slurm::parse_limit("TimeMin", text);
               if (!time) return time.error();
               c.job.spec.schedule.time_min = *time;
               return {};
             }},
    JobField{"JobName", Until::kEnd,
             [](JobChange& c, const std::string& text) -> base::Status {
               annotate(c, kube::kAnnotationName, text);
               return {};
             }},
    JobField{"Name", Until::kEnd,
             [](JobChange& c, const std::string& text) -> base::Status {
               annotate(c, kube::kAnnotationName, text);
               return {};
             }},
    JobField{"Comment", Until::kEnd,
             [](JobChange& c, const std::string& text) -> base::Status {
               annotate(c, kube::kAnnotationComment, text);
               return {};
             }},
    JobField{"Partition", Until::kStart,
             [](JobChange& c, const std::string& text) -> base::Status {
               c.job.spec.partitions = list_of(text);
               return {};
             }},
    JobField{"Licenses", Until::kStart,
             [](JobChange& c, const std::string& text) -> base::Status {
               const auto licenses = slurm::parse_licenses("Licenses", text);
               if (!licenses) return licenses.error();
               c.job.spec.resources.licenses.clear();
               for (const auto& [name, count] : *licenses) {
                 if (count > 0) c.job.spec.resources.licenses[name] = count;
               }
               return {};
             }},
    JobField{"Gres", Until::kStart, set_gres},
    JobField{"QOS", Until::kStart,
             [](JobChange& c, const std::string& text) -> base::Status {
               c.job.spec.schedule.qos = text;
               return {};
             }},
    JobField{"Account", Until::kStart,
             [](JobChange& c, const std::string& text) -> base::Status {
               c.job.spec.schedule.account = text;
               return {};
             }},
    JobField{"Nice", Until::kStart,
             [](JobChange& c, const std::string& text) {
               constexpr std::int64_t kNiceMax = 2'147'483'645;
               const auto nice =
                   slurm::parse_integer("Nice", text, {.min = -kNiceMax, .max = kNiceMax});
               if (!nice) return base::Status{nice.error()};
               c.job.spec.schedule.nice = static_cast<std::int32_t>(*nice);
               return base::Status{};
             },
             true},
    JobField{"Priority", Until::kStart, set_priority, true},
    JobField{"StartTime", Until::kStart,
             [](JobChange& c, const std::string& text) {
               return set_instant(c.job.spec.schedule.begin_time, text, c);
             }},
    JobField{"EligibleTime", Until::kStart,
             [](JobChange& c, const std::string& text) {
               return set_instant(c.job.spec.schedule.begin_time, text, c);
             }},
    JobField{"Deadline", Until::kEnd,
             [](JobChange& c, const std::string& text) {
               return set_instant(c.job.spec.schedule.deadline, text, c);
             }},
    JobField{"NumNodes", Until::kStart, set_nodes},
    JobField{"ReqNodes", Until::kStart, set_nodes},
    JobField{"NumTasks", Until::kStart, set_resource<&kube::JobResources::tasks>},
    JobField{"MinMemoryCPU", Until::kStart,
             [](JobChange& c, const std::string& text) {
               kube::JobResources& r = c.job.spec.resources;
               return set_memory(r.memory_per_cpu, r.memory_per_node, text);
             }},
    JobField{"MinMemoryNode", Until::kStart,
             [](JobChange& c, const std::string& text) {
               kube::JobResources& r = c.job.spec.resources;
               return set_memory(r.memory_per_node, r.memory_per_cpu, text);
             }},
    JobField{"MinCPUsNode", Until::kStart, set_placement<&kube::JobPlacement::min_cpus_per_node>},
    JobField{"MinCPUs", Until::kStart, set_placement<&kube::JobPlacement::min_cpus_per_node>},
    JobField{"CPUsPerTask", Until::kStart, set_resource<&kube::JobResources::cpus_per_task>},
    JobField{"TasksPerNode", Until::kStart, set_resource<&kube::JobResources::tasks_per_node>},
    JobField{"MinTmpDiskNode", Until::kStart, set_disk},
    JobField{"MinTmpDisk", Until::kStart, set_disk},
    JobField{"ReqSockets", Until::kStart, set_placement<&kube::JobPlacement::sockets_per_node>},
    JobField{"ReqCores", Until::kStart, set_placement<&kube::JobPlacement::cores_per_socket>},
    JobField{"ReqThreads", Until::kStart, set_placement<&kube::JobPlacement::threads_per_core>},
    JobField{"Features", Until::kStart,
             [](JobChange& c, const std::string& text) -> base::Status {
               auto& constraint = c.job.spec.placement.constraint;
               constraint = text.empty() ? std::nullopt : std::optional{text};
               return {};
             }},
    JobField{"ReqNodeList", Until::kStart,
             [](JobChange& c, const std::string& text) -> base::Status {
               c.job.spec.placement.hostlist = text;
               return {};
             }},
    JobField{"NodeList", Until::kStart,
             [](JobChange& c, const std::string& text) -> base::Status {
               c.job.spec.placement.hostlist = text;
               return {};
             }},
    JobField{"ExcNodeList", Until::kStart,
             [](JobChange& c, const std::string& text) -> base::Status {
               c.job.spec.placement.exclude_hostlist = text;
               return {};
             }},
    JobField{"Contiguous", Until::kStart,
             [](JobChange& c, const std::string& text) -> base::Status {
               const auto yes = slurm::parse_boolean("Contiguous", text);
               if (!yes) return yes.error();
               c.job.spec.placement.contiguous = *yes;
               return {};
             }},
    JobField{"ArrayTaskThrottle", Until::kEnd,
             [](JobChange& c, const std::string& text) -> base::Status {
               if (!c.job.spec.array) return base::invalid_argument("Invalid job id specified");
               return set_count(c.job.spec.array->parallelism, "ArrayTaskThrottle", text, 0);
             }},
    JobField{"Dependency", Until::kStart, set_dependency},
    JobField{"OverSubscribe", Until::kStart, set_sharing},
    JobField{"Shared", Until::kStart, set_sharing},
    JobField{"Requeue", Until::kEnd,
             [](JobChange& c, const std::string& text) -> base::Status {
               const auto yes = slurm::parse_boolean("Requeue", text);
               if (!yes) return yes.error();
               c.job.spec.lifecycle.requeue = *yes;
               return {};
             }},
};

// Returns the differences between two JSON objects as a merge patch; null for what is gone.
nlohmann::json merge_patch(const nlohmann::json& from, const nlohmann::json& to) {
  nlohmann::json patch = nlohmann::json::object();
  for (const auto& [name, value] : to.items()) {
    const auto before = from.find(name);
    if (before != from.end() && *before == value) continue;
    const bool both_are_objects = before != from.end() && before->is_object() && value.is_object();
    patch[name] = both_are_objects ? merge_patch(*before, value) : value;
  }
  for (const auto& [name, value] : from.items()) {
    if (!to.contains(name)) patch[name] = nullptr;
  }
  return patch;
}

// Returns the numbers of the jobs that the job still waits for.
std::vector<std::int64_t> waited_for(const kube::Job& job) {
  std::vector<std::int64_t> numbers;
  const auto& terms = job.status.dependency;
  const bool any = job.spec.dependency && job.spec.dependency->match == kube::DependencyMatch::kAny;
  const auto is_met = [](const kube::DependencyStatus& term) {
    return term.state == kube::DependencyState::kFulfilled;
  };
  if (any && std::ranges::any_of(terms, is_met)) return numbers;
  for (const kube::DependencyStatus& term : terms) {
    if (term.state == kube::DependencyState::kUnfulfilled && term.job_id) {
      numbers.push_back(*term.job_id);
    }
  }
  return numbers;
}

// The operator refuses a circle as well, but says so when this command has ended. Without a list it
// has the word. Jobs of other namespaces are not waited for.
base::Status check_circle(const Session& session, const kube::Job& job,
                          const kube::JobDependency& dependency) {
  const auto all = session.client.list<kube::Job>({.ns = job.metadata.ns});
  if (!all) return {};
  std::map<std::int64_t, const kube::Job*> jobs;
  for (const kube::Job& each : all->items) {
    if (each.status.job_id) jobs[*each.status.job_id] = &each;
  }
  std::vector<std::int64_t> ahead;
  for (const kube::DependencyTerm& term : dependency.terms) {
    if (term.job_id) ahead.push_back(*term.job_id);
  }
  std::set<std::int64_t> seen;
  while (!ahead.empty()) {
    const std::int64_t number = ahead.back();
    ahead.pop_back();
    if (number == job.status.job_id) return base::invalid_argument("Circular job dependency");
    const auto found = jobs.find(number);
    if (found == jobs.end() || !seen.insert(number).second) continue;
    for (const std::int64_t next : waited_for(*found->second)) ahead.push_back(next);
  }
  return {};
}

// Returns the features that a constraint names: what stands between the signs of its grammar, but
// for the numbers behind *.
std::set<std::string> features_of(const std::string& constraint) {
  std::set<std::string> names;
  std::string name;
  bool is_count = false;
  for (const char c : constraint + "&") {
    if (std::string_view{"&|,*()[]"}.find(c) == std::string_view::npos) {
      name += c;
      continue;
    }
    if (!name.empty() && !is_count) names.insert(name);
    name.clear();
    is_count = c == '*';
  }
  return names;
}

// SOURCE: recorded: each of them must be there, also those of which one is enough. A feature is a
// label, or a label with its value. Without the right to list nodes the operator has the word.
base::Status check_features(const Session& session, const std::string& constraint) {
  const auto nodes = session.client.list<kube::Node>();
  if (!nodes) return {};
  for (const std::string& name : features_of(constraint)) {
    const std::string label = name.substr(0, name.find('='));
    const bool is_there = std::ranges::any_of(nodes->items, [&](const kube::Node& node) {
      const auto found = node.metadata.labels.find(label);
      if (found == node.metadata.labels.end() || found->second == "false") return false;
      return label == name || name == label + "=" + found->second;
    });
    if (!is_there) return base::invalid_argument("Invalid feature specification");
  }
  return {};
}

// SOURCE: slurmctld's sentences, each with the job's number behind it.
base::Status check_job(const Session& session, const kube::Job& before, const JobChange& change) {
  const auto partitions = session.client.list<kube::Partition>();
  for (const std::string& name : change.job.spec.partitions) {
    if (change.job.spec.partitions == before.spec.partitions || !partitions) break;
    const bool is_there = std::ranges::any_of(
        partitions->items, [&](const auto& partition) { return partition.metadata.name == name; });
    if (!is_there) return base::invalid_argument("Invalid partition name specified");
  }
  if (change.job.spec.resources.licenses != before.spec.resources.licenses) {
    const base::Status licenses = check_licenses(session, change.job.spec.resources);
    if (!licenses) return licenses;
  }
  if (change.job.spec.resources.devices != before.spec.resources.devices &&
      !check_devices(session, change.job)) {
    return base::invalid_argument("Invalid generic resource (gres) specification");
  }
  const auto& constraint = change.job.spec.placement.constraint;
  if (constraint && constraint != before.spec.placement.constraint) {
    const base::Status features = check_features(session, *constraint);
    if (!features) return features;
  }
  const auto& dependency = change.job.spec.dependency;
  if (dependency && dependency != before.spec.dependency) {
    const base::Status no_circle = check_circle(session, before, *dependency);
    if (!no_circle) return no_circle;
  }
  const kube::JobSchedule& now = change.job.spec.schedule;
  const bool has_names =
      now.qos != before.spec.schedule.qos || now.account != before.spec.schedule.account;
  return has_names ? check_names(session, change.job) : base::Status{};
}

const JobField* field_of(const KeyValue& change) {
  const auto field = std::ranges::find_if(
      kJobFields, [&](const JobField& f) { return same_word(f.name, change.key); });
  return field == kJobFields.end() ? nullptr : &*field;
}

base::Status apply_to_job(std::span<const KeyValue> changes, JobChange& change) {
  const kube::JobState state = change.job.status.state.value_or(kube::JobState::kPending);
  if (kube::is_final(state)) return base::invalid_argument("Job has already finished");
  for (const KeyValue& each : changes) {
    const JobField* const field = field_of(each);
    const bool may_wait = state == kube::JobState::kPending || change.job.spec.array;
    if (field->until == Until::kStart && !may_wait) {
      const bool is_size = field->set == set_nodes;
      return base::invalid_argument(is_size ? "Requested operation not supported on this system"
                                            : "Job is no longer pending execution");
    }
    change.field = field->name;
    if (const base::Status set = field->set(change, each.value); !set) return set;
  }
  return {};
}

// SOURCE: recorded: a change of the whole array is one of each task, whatever that had by itself.
void take_from_tasks(std::span<const KeyValue> changes, kube::Job& job) {
  if (job.spec.control.tasks.empty()) return;
  TaskWishes wishes{job.spec.control.tasks};
  wishes.drop_done(job.status);
  for (const KeyValue& each : changes) {
    if (same_word(each.key, "TimeLimit")) wishes.time_limit.clear();
    if (same_word(each.key, "Nice")) wishes.nice.clear();
    if (!same_word(each.key, "Priority")) continue;
    wishes.priority.clear();
    wishes.hold.clear();
  }
  job.spec.control.tasks = wishes.entries();
}

base::Result<nlohmann::json> job_patch(const Session& session, const kube::Job& job,
                                       std::span<const KeyValue> changes) {
  JobChange change{.job = job, .now = session.clock.wall()};
  if (const base::Status applied = apply_to_job(changes, change); !applied) return applied.error();
  take_from_tasks(changes, change.job);
  const base::Status checked = check_job(session, job, change);
  if (!checked) return checked.error();
  return merge_patch(kube::encode(job), kube::encode(change.job));
}

// Applies changes to one task as if it were a job of its own.
base::Status apply_to_task(std::span<const KeyValue> changes, int task, const JobChange& array,
                           const kube::ArrayTask* entry, TaskWishes& wishes) {
  JobChange change{.job = {}, .now = array.now};
  kube::JobSchedule& schedule = change.job.spec.schedule;
  const auto own = [&](const auto& of_tasks, const auto& of_array) {
    const auto found = of_tasks.find(task);
    return found == of_tasks.end() ? of_array : std::optional{found->second};
  };
  schedule.time_limit = own(wishes.time_limit, array.job.spec.schedule.time_limit);
  const bool runs = entry != nullptr && entry->allocation;
  change.job.status.state = runs ? kube::JobState::kRunning : kube::JobState::kPending;
  if (entry != nullptr) change.job.status.time_limit = entry->time_limit;
  if (const base::Status applied = apply_to_job(changes, change); !applied) return applied;
  for (const KeyValue& each : changes) {
    if (same_word(each.key, "TimeLimit")) wishes.time_limit[task] = *schedule.time_limit;
    if (same_word(each.key, "Nice")) wishes.nice[task] = *schedule.nice;
    if (!same_word(each.key, "Priority")) continue;
    if (change.job.spec.control.hold) {
      wishes.hold[task] = true;
    } else {
      wishes.priority[task] = *schedule.priority;
    }
  }
  return {};
}

// Returns the change of those tasks for which it makes sense; `refused` has the others.
base::Result<nlohmann::json> tasks_patch(const Session& session, const kube::Job& job,
                                         const std::vector<int>& tasks,
                                         std::span<const KeyValue> changes,
                                         std::map<std::string, std::vector<int>>& refused) {
  const kube::ArrayStatus status = job.status.array.value_or(kube::ArrayStatus{});
  const kube::TaskOutcomes outcomes{status};
  std::map<int, const kube::ArrayTask*> entries;
  for (const kube::ArrayTask& entry : status.tasks) entries[entry.task] = &entry;
  const std::string& text = job.spec.array->tasks;
  const auto all = slurm::parse_array("spec.array.tasks", text, kube::kArrayTasksMax);
  if (!all) return all.error();
  TaskWishes wishes{job.spec.control.tasks};
  wishes.drop_done(job.status);
  const JobChange array{.job = job, .now = session.clock.wall()};
  refused.clear();
  for (const int task : tasks) {
    if (!all->tasks.contains(task)) {
      refused["Invalid job id specified"].push_back(task);
    } else if (outcomes.of(task) != kube::TaskOutcome::kNone) {
      refused["Job has already finished"].push_back(task);
    } else {
      const auto entry = entries.find(task);
      const base::Status applied = apply_to_task(
          changes, task, array, entry == entries.end() ? nullptr : entry->second, wishes);
      if (!applied) refused[applied.error().message].push_back(task);
    }
  }
  kube::Job changed = job;
  changed.spec.control.tasks = wishes.entries();
  if (const base::Status few = check_differences(changed.spec.control); !few) return few.error();
  return merge_patch(kube::encode(job), kube::encode(changed));
}

int update_tasks(const Session& session, const kube::Job& job, const JobWord& word,
                 std::span<const KeyValue> changes, Output output) {
  const std::string id = std::to_string(word.id) + "_";
  for (const KeyValue& each : changes) {
    if (field_of(each)->is_of_tasks) continue;
    return fail(output, "tasks of an array cannot differ in " + each.key +
                            "; update the whole array for job " + id +
                            base::format_number_list(*word.tasks));
  }
  if (word.tasks->size() > kube::kNamedTasksMax) {
    return fail(output, "no more than " + std::to_string(kube::kNamedTasksMax) +
                            " tasks of an array may differ from the rest; name fewer, or the whole "
                            "array");
  }
  const kube::ObjectMeta& meta = job.metadata;
  std::map<std::string, std::vector<int>> refused;
  const auto done = patch_seen_job(
      session, {.ns = meta.ns, .name = meta.name, .uid = meta.uid}, [&](const kube::Job& now) {
        return tasks_patch(session, now, *word.tasks, changes, refused);
      });
  for (const auto& [why, tasks] : refused) {
    output.err << id << base::format_number_list(tasks) << ": " << why << "\n";
  }
  if (!done) {
    return fail(output,
                done.error().message + " for job " + id + base::format_number_list(*word.tasks));
  }
  return refused.empty() ? kExitOk : kExitFailed;
}

// A task of an array has a number of its own, too.
JobWord task_numbered(const JobWord& word, const std::vector<kube::Job>& jobs) {
  for (const kube::Job& job : jobs) {
    if (*job.status.job_id == word.id) return word;
    if (!job.status.array) continue;
    const auto& tasks = job.status.array->tasks;
    const auto task = std::ranges::find(tasks, word.id, &kube::ArrayTask::job_id);
    if (task != tasks.end()) return {.id = *job.status.job_id, .tasks = {{task->task}}};
  }
  return word;
}

int update_jobs(const Session& session, const std::string& ids, std::span<const KeyValue> changes,
                Output output) {
  // A name that does not exist is reported before any job is changed.
  for (const KeyValue& each : changes) {
    if (field_of(each) == nullptr) return fail(output, unsupported(each).message);
  }
  if (changes.empty()) return fail(output, "No changes specified");
  const std::vector<std::string> words = job_words(ids);
  const auto jobs = list_jobs(session, output, words);
  if (!jobs) return fail(output, "scontrol: error: " + jobs.error().message);
  int code = kExitOk;
  for (const std::string& id : words) {
    auto word = parse_job_word(id);
    if (word && !word->tasks) word = task_numbered(*word, *jobs);
    const auto job = std::ranges::find_if(*jobs, [&](const kube::Job& each) {
      return word && *each.status.job_id == word->id && (!word->tasks || each.spec.array);
    });
    if (job == jobs->end()) {
      code = fail(output, "Invalid job id specified for job " + id);
    } else if (word->tasks) {
      code = std::max(code, update_tasks(session, *job, *word, changes, output));
    } else {
      const kube::ObjectMeta& meta = job->metadata;
      const auto done =
          patch_seen_job(session, {.ns = meta.ns, .name = meta.name, .uid = meta.uid},
                         [&](const kube::Job& now) { return job_patch(session, now, changes); });
      if (!done) code = fail(output, done.error().message + " for job " + id);
    }
  }
  return code;
}

struct NodeChange {
  std::optional<bool> is_drained{};
  std::string reason;
  std::optional<std::string> weight{};
};

base::Result<NodeChange> read_node_change(std::span<const KeyValue> changes) {
  NodeChange change;
  for (const KeyValue& each : changes) {
    if (same_word(each.key, "Reason")) {
      change.reason = each.value;
    } else if (same_word(each.key, "Weight")) {
      if (const auto weight = slurm::parse_integer("Weight", each.value, {}); !weight) {
        return weight.error();
      }
      change.weight = each.value;
    } else if (!same_word(each.key, "State")) {
      return unsupported(each);
    } else if (same_word(each.value, "DRAIN")) {
      change.is_drained = true;
    } else if (same_word(each.value, "RESUME") || same_word(each.value, "UNDRAIN") ||
               same_word(each.value, "IDLE")) {
      change.is_drained = false;
    } else {
      return base::invalid_argument(
          "Invalid input: State=" + each.value +
          "\nRequest aborted\nValid states are: DRAIN RESUME UNDRAIN. Whether a node is down its "
          "kubelet says");
    }
  }
  if (change.is_drained.value_or(false) && change.reason.empty()) {
    return base::invalid_argument(
        "You must specify a reason when DOWNING or DRAINING a node. Request denied");
  }
  return change;
}

nlohmann::json node_patch(const Session& session, const NodeChange& change) {
  nlohmann::json patch = nlohmann::json::object();
  nlohmann::json annotations = nlohmann::json::object();
  const std::string reason{kube::kAnnotationReason};
  const std::string user{kube::kAnnotationReasonUser};
  const std::string time{kube::kAnnotationReasonTime};
  if (change.is_drained) patch["spec"]["unschedulable"] = *change.is_drained;
  if (!change.reason.empty()) {
    annotations = {{reason, change.reason},
                   {user, own_user(session).value_or(session.ns)},
                   {time, kube::format_time(session.clock.wall())}};
  } else if (change.is_drained && !*change.is_drained) {
    annotations = {{reason, nullptr}, {user, nullptr}, {time, nullptr}};
  }
  if (!annotations.empty()) patch["metadata"]["annotations"] = annotations;
  if (change.weight) {
    patch["metadata"]["labels"][std::string{kube::kLabelWeight}] = *change.weight;
  }
  return patch;
}

// SOURCE: recorded: JobName without a number selects the jobs of that name that have not ended.
int update_jobs_named(const Session& session, const std::string& name,
                      std::span<const KeyValue> changes, Output output) {
  const auto jobs = list_jobs(session, output);
  if (!jobs) return fail(output, "scontrol: error: " + jobs.error().message);
  std::string ids;
  for (const kube::Job& job : *jobs) {
    const JobFacts facts = facts_of(job, {}, session.clock.wall());
    const bool has_ended = job.status.state && kube::is_final(*job.status.state);
    if (facts.name == name && !has_ended)
      ids += (ids.empty() ? "" : ",") + std::to_string(facts.id);
  }
  if (ids.empty()) return fail(output, "Invalid job id specified for job " + name);
  return update_jobs(session, ids, changes, output);
}

// SOURCE: a drained node keeps the jobs that it has; kubectl cordon and uncordon do the same.
int update_nodes(const Session& session, const std::string& hostlist,
                 std::span<const KeyValue> changes, Output output) {
  const auto change = read_node_change(changes);
  if (!change) return fail(output, change.error().message);
  const auto names = slurm::expand_hostlist(hostlist);
  if (!names) return fail(output, "slurm_update error: Invalid node name specified");
  const nlohmann::json patch = node_patch(session, *change);
  if (patch.empty()) return fail(output, "No changes specified");
  int code = kExitOk;
  for (const std::string& name : *names) {
    // SOURCE: recorded: a node that takes jobs cannot resume.
    if (change->is_drained == false) {
      const auto node = session.client.get<kube::Node>({.ns = "", .name = name});
      if (node && !node->spec.unschedulable) {
        code = fail(output, "slurm_update error: Invalid node state specified");
        continue;
      }
    }
    const auto changed = session.client.patch<kube::Node>({.ns = "", .name = name}, patch);
    if (changed) continue;
    const bool is_missing = changed.error().code == base::Code::kNotFound;
    code = fail(output, "slurm_update error: " +
                            (is_missing ? "Invalid node name specified" : changed.error().message));
  }
  return code;
}

base::Status set_partition_state(kube::PartitionSpec& spec, const std::string& text) {
  for (const auto& [state, name] : names_of(std::type_identity<kube::PartitionState>{})) {
    if (!same_word(name, text)) continue;
    spec.state = state;
    return {};
  }
  return base::invalid_argument("Invalid input: State=" + text +
                                "\nAcceptable State values are UP, DOWN, DRAIN, and INACTIVE");
}

base::Status set_limit(std::optional<base::Duration>& field, std::string_view name,
                       const std::string& text) {
  const auto limit = slurm::parse_limit(name, text);
  if (!limit) return limit.error();
  field = *limit;
  return {};
}

// Returns the limits of a partition, which come into being when one is set.
kube::PartitionLimits& limits_of(kube::PartitionSpec& spec) {
  if (!spec.limits) spec.limits.emplace();
  return *spec.limits;
}

struct PartitionField {
  std::string_view name;
  base::Status (*set)(kube::PartitionSpec& spec, const std::string& text);
};

// SOURCE: scontrol(1), "PARTITIONS - SPECIFICATIONS FOR UPDATE COMMAND".
constexpr std::array kPartitionFields = {
    PartitionField{"State", set_partition_state},
    PartitionField{"MaxTime",
                   [](kube::PartitionSpec& s, const std::string& text) {
                     return set_limit(limits_of(s).max_time, "MaxTime", text);
                   }},
    PartitionField{"DefaultTime",
                   [](kube::PartitionSpec& s, const std::string& text) {
                     return set_limit(limits_of(s).default_time, "DefaultTime", text);
                   }},
    PartitionField{"MaxNodes",
                   [](kube::PartitionSpec& s, const std::string& text) {
                     return set_count(limits_of(s).max_nodes, "MaxNodes", text);
                   }},
    PartitionField{"MinNodes",
                   [](kube::PartitionSpec& s, const std::string& text) {
                     return set_count(limits_of(s).min_nodes, "MinNodes", text, 0);
                   }},
    PartitionField{"MaxCPUsPerNode",
                   [](kube::PartitionSpec& s, const std::string& text) {
                     return set_count(limits_of(s).max_cpus_per_node, "MaxCPUsPerNode", text);
                   }},
    PartitionField{"PriorityTier",
                   [](kube::PartitionSpec& s, const std::string& text) {
                     return set_count(s.priority_tier, "PriorityTier", text, 0);
                   }},
    PartitionField{"PriorityJobFactor",
                   [](kube::PartitionSpec& s, const std::string& text) {
                     return set_count(s.priority_job_factor, "PriorityJobFactor", text, 0);
                   }},
    PartitionField{"Default",
                   [](kube::PartitionSpec& s, const std::string& text) -> base::Status {
                     const auto yes = slurm::parse_boolean("Default", text);
                     if (!yes) return yes.error();
                     s.is_default = *yes;
                     return {};
                   }},
};

int update_partition(const Session& session, const std::string& name,
                     std::span<const KeyValue> changes, Output output) {
  if (changes.empty()) return fail(output, "No changes specified");
  const auto partition = session.client.get<kube::Partition>({.ns = "", .name = name});
  if (!partition) {
    const bool is_missing = partition.error().code == base::Code::kNotFound;
    return fail(output, "slurm_update error: " + (is_missing ? "Invalid partition name specified"
                                                             : partition.error().message));
  }
  kube::Partition changed = *partition;
  for (const KeyValue& each : changes) {
    const auto field = std::ranges::find_if(
        kPartitionFields, [&](const PartitionField& f) { return same_word(f.name, each.key); });
    if (field == kPartitionFields.end()) return fail(output, unsupported(each).message);
    if (const base::Status set = field->set(changed.spec, each.value); !set) {
      return fail(output, set.error().message);
    }
  }
  const auto done = session.client.patch<kube::Partition>(
      kube::key_of(partition->metadata),
      merge_patch(kube::encode(*partition), kube::encode(changed)),
      {.uid = partition->metadata.uid});
  return done ? kExitOk : fail(output, "slurm_update error: " + done.error().message);
}

// SOURCE: recorded: "Nice" without a value.
constexpr const char* kNiceDefault = "100";

// SOURCE: "TimeLimit+=5" is "TimeLimit=+5"; of other fields there is no such change.
KeyValue change_of(const std::string& word, std::size_t equals) {
  KeyValue change{word.substr(0, equals), word.substr(equals + 1)};
  const bool is_relative = change.key.ends_with('+') || change.key.ends_with('-');
  if (is_relative && same_word(change.key.substr(0, change.key.size() - 1), "TimeLimit")) {
    change.value = change.key.back() + change.value;
    change.key.pop_back();
  }
  return change;
}

}  // namespace

// 1. words with '=' as they are; "job 1001" is "job=1001"
// 2. the word that says what is changed; the others are the changes
int run_update(const Session& session, std::span<const std::string> words, Output output) {
  std::vector<KeyValue> changes;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    if (equals == std::string::npos && i + 1 < words.size()) {
      changes.push_back({words[i], words[i + 1]});
      ++i;
    } else if (equals == std::string::npos && same_word(words[i], "Nice")) {
      changes.push_back({words[i], kNiceDefault});
    } else if (equals == std::string::npos) {
      return fail(output, unsupported({words[i], ""}).message);
    } else {
      changes.push_back(change_of(words[i], equals));
    }
  }
  struct Kind {
    std::string_view name;
    int (*update)(const Session&, const std::string&, std::span<const KeyValue>, Output);
  };
  constexpr std::array kKinds = {
      Kind{"JobId", update_jobs},         Kind{"Job", update_jobs},
      Kind{"JobName", update_jobs_named}, Kind{"NodeName", update_nodes},
      Kind{"Node", update_nodes},         Kind{"PartitionName", update_partition},
      Kind{"Partition", update_partition}};
  if (changes.empty()) return fail(output, "too few arguments for update keyword");
  for (const Kind& kind : kKinds) {
    const auto named = std::ranges::find_if(
        changes, [&](const KeyValue& each) { return same_word(each.key, kind.name); });
    if (named == changes.end()) continue;
    const std::string which = named->value;
    changes.erase(named);
    return kind.update(session, which, changes, output);
  }
  return fail(output,
              "scontrol: error: update: name a job, a node or a partition: JobId=1001, "
              "NodeName=n1, PartitionName=main");
}

std::vector<std::string> update_reference() {
  std::vector<std::string> all;
  for (const JobField& field : kJobFields) {
    all.push_back("update JobId=… " + std::string{field.name} + "=");
  }
  for (const char* change : {"State=DRAIN Reason=", "State=RESUME", "Weight="}) {
    all.push_back("update NodeName=… " + std::string{change});
  }
  for (const PartitionField& field : kPartitionFields) {
    all.push_back("update PartitionName=… " + std::string{field.name} + "=");
  }
  return all;
}

}  // namespace cli
