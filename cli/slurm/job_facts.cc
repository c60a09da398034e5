#include "cli/slurm/job_facts.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <set>

#include "api/annotations.h"
#include "api/job_annotations.h"
#include "api/partition.h"
#include "api/scheduler_config.h"
#include "cli/cluster/read.h"
#include "cli/cluster/user.h"
#include "cli/local_zone.h"
#include "slurm/file_name.h"
#include "slurm/hostlist.h"
#include "slurm/quantities.h"
#include "slurm/text.h"
#include "view/job_time.h"

namespace cli {
namespace {

// A pod reports a signal as 128 + its number; codes above the last signal are the script's own.
constexpr int kSignalCodes = 128;
constexpr int kSignalsMax = 64;

struct State {
  const char* code;
  const char* name;
};
// SOURCE: squeue(1), "JOB STATE CODES".
constexpr std::array kStates = {
    State{"PD", "PENDING"},   State{"R", "RUNNING"},         State{"S", "SUSPENDED"},
    State{"CD", "COMPLETED"}, State{"CA", "CANCELLED"},      State{"F", "FAILED"},
    State{"TO", "TIMEOUT"},   State{"NF", "NODE_FAIL"},      State{"PR", "PREEMPTED"},
    State{"DL", "DEADLINE"},  State{"OOM", "OUT_OF_MEMORY"}, State{"CG", "COMPLETING"}};

const PartitionDefaults* partition_of(const kube::Job& job,
                                      const std::vector<PartitionDefaults>& partitions) {
  // A job that waits has the names of all that it may run in: "a,b".
  const std::string& all = job.status.partition;
  const std::string name = !all.empty()                   ? all.substr(0, all.find(','))
                           : !job.spec.partitions.empty() ? job.spec.partitions.front()
                                                          : "";
  const auto found = std::ranges::find_if(partitions, [&](const PartitionDefaults& partition) {
    return name.empty() ? partition.is_default : partition.name == name;
  });
  return found == partitions.end() ? nullptr : &*found;
}

// SOURCE: recorded: a job that was canceled while it waited keeps the reason.
// Returns "" for one that its object does not say.
std::string reason_before_cancel(const kube::Job& job) {
  if (job.spec.control.hold.value_or(false)) return "JobHeldUser";
  if (job.status.reason == "DependencyNeverSatisfied") return job.status.reason;
  const bool depends = std::ranges::any_of(job.status.dependency, [](const auto& term) {
    return term.state == kube::DependencyState::kUnfulfilled;
  });
  if (depends) return "Dependency";
  const auto& begin = job.spec.schedule.begin_time;
  return begin && job.status.end_time && *begin > *job.status.end_time ? "BeginTime" : "";
}

// SOURCE: slurmctld shows such a reason for a script that a signal has ended, too.
std::string reason_of(const kube::Job& job, const std::string& state_code, int exit_signal) {
  if (state_code == "F") return exit_signal != 0 ? "JobLaunchFailure" : "NonZeroExitCode";
  if (state_code == "TO") return "TimeLimit";
  if (state_code == "CA" && !job.status.start_time) {
    if (const std::string why = reason_before_cancel(job); !why.empty()) return why;
  }
  const bool waits = state_code == "PD" || state_code == "S";
  return waits && !job.status.reason.empty() ? job.status.reason : "None";
}

// It is written with the run time, and goes on while the job stands still.
base::Duration suspended_until(const kube::Job& job, base::Instant now) {
  const auto& time = job.status.suspend_time;
  if (!time) return base::Duration{0};
  const bool goes_on = job.status.state == kube::JobState::kSuspended;
  return time->elapsed +
         (goes_on ? std::max(base::Duration{0}, now - time->as_of) : base::Duration{0});
}

bool asks_for_gpus(const kube::JobResources& asked) {
  return asked.tasks_per_gpu ||
         std::ranges::any_of(std::array{&asked.devices, &asked.devices_of_job,
                                        &asked.devices_per_task, &asked.devices_per_socket},
                             [](const std::vector<kube::JobDevice>* devices) {
                               return std::ranges::find(*devices, "gpu", &kube::JobDevice::name) !=
                                      devices->end();
                             });
}

// Sets the nodes and CPUs of a job without an allocation: one that waits, or a task of an array
// that has ended. SOURCE: slurmctld estimates the nodes of a job that waits by the CPUs of a node;
// the rest is recorded (session squeue_overcommit).
void set_without_allocation(JobFacts& facts, const kube::Job& job,
                            const PartitionDefaults* partition) {
  const kube::JobResources& asked = job.spec.resources;
  const bool overcommits = asked.overcommit.value_or(false);
  const bool has_ended = job.status.state && kube::is_final(*job.status.state);
  const bool is_alone = job.spec.placement.sharing == kube::JobSharing::kNode;
  const int per_node = partition != nullptr ? partition->cpus_per_node : 0;
  if (overcommits) {
    facts.cpus = facts.nodes * (has_ended ? asked.cpus_per_task.value_or(1) : 1);
  }
  if (per_node > 0 && !(overcommits && has_ended)) {
    facts.nodes = std::max(facts.nodes, (facts.asked_cpus + per_node - 1) / per_node);
  }
  if (per_node > 0 && is_alone && has_ended) facts.cpus = facts.nodes * per_node;
}

void set_sizes(JobFacts& facts, const kube::Job& job, const PartitionDefaults* partition) {
  const kube::JobResources& asked = job.spec.resources;
  facts.asked_nodes = asked.nodes ? asked.nodes->min : 1;
  facts.nodes = view::node_count(job);
  facts.tasks = asked.tasks.value_or(asked.tasks_per_node.value_or(1) * facts.nodes);
  facts.asked_cpus = facts.cpus = facts.tasks * asked.cpus_per_task.value_or(1);
  facts.min_cpus = std::max({job.spec.placement.min_cpus_per_node.value_or(1),
                             asked.cpus_per_task.value_or(1) * asked.tasks_per_node.value_or(1)});
  if (job.status.allocation) {
    facts.nodes = job.status.allocation->nodes;
    facts.cpus = job.status.allocation->cpus;
  } else {
    set_without_allocation(facts, job, partition);
  }
  facts.memory_per_cpu = asked.memory_per_cpu;
  facts.memory_per_node = asked.memory_per_node;
  const bool has_gpus = asks_for_gpus(asked);
  if (has_gpus) facts.memory_per_gpu = asked.memory_per_gpu;
  const bool has_memory = asked.memory_per_cpu || asked.memory_per_node || facts.memory_per_gpu ||
                          asked.all_memory.value_or(false);
  if (partition != nullptr && has_gpus) {
    if (!asked.cpus_per_gpu && !asked.cpus_per_task) {
      facts.default_cpus_per_gpu = partition->cpus_per_gpu;
    }
    facts.default_memory_per_gpu = partition->memory_per_gpu;
  }
  if (!has_memory && facts.default_memory_per_gpu) {
    facts.memory_per_gpu = facts.default_memory_per_gpu;
  } else if (partition != nullptr && !has_memory) {
    facts.memory_per_cpu = partition->memory_per_cpu;
    facts.memory_per_node = partition->memory_per_node;
  }
  const auto& asked_limit = job.spec.schedule.time_limit;
  const bool is_in_force = job.status.time_limit && job.status.observed &&
                           job.status.observed->time_limit == asked_limit;
  facts.limit = is_in_force || !asked_limit ? job.status.time_limit : asked_limit;
  if (!facts.limit && partition != nullptr) facts.limit = partition->time;
  if (facts.limit == slurm::kUnlimited) facts.limit.reset();
}

}  // namespace

// The template and the script are most of a job's text, and nothing of them is shown.
const kube::KnownFields& fields_of_jobs() {
  static const kube::KnownFields kFields = [] {
    kube::KnownFields fields = kube::known_fields<kube::Job>();
    fields.remove({"spec", "template"});
    fields.remove({"spec", "batch", "script"});
    fields.remove({"spec", "batch", "environment"});
    return fields;
  }();
  return kFields;
}

std::string sharing_text(const kube::Job& job) {
  const auto& sharing = job.spec.placement.sharing;
  if (!sharing) return "OK";
  if (*sharing == kube::JobSharing::kUser) return "USER";
  return *sharing == kube::JobSharing::kNode ? "NO" : "YES";
}

std::string licenses_text(const kube::Job& job) {
  std::string text;
  for (const auto& [name, count] : job.spec.resources.licenses) {
    text += (text.empty() ? "" : ",") + name + ":" + std::to_string(count);
  }
  return text;
}

std::string devices_text(const std::vector<kube::JobDevice>& devices) {
  std::string text;
  for (const kube::JobDevice& each : devices) {
    text += (text.empty() ? "gres:" : ",gres:") + each.name + ":" +
            (each.type.empty() ? "" : each.type + ":") + std::to_string(each.count);
  }
  return text;
}

// SOURCE: recorded: defaults have no "gres:".
std::string cpus_per_gpu_text(const JobFacts& facts) {
  if (const auto& asked = facts.job->spec.resources.cpus_per_gpu) {
    return "gres:gpu:" + std::to_string(*asked);
  }
  return facts.default_cpus_per_gpu ? "gpu:" + std::to_string(*facts.default_cpus_per_gpu) : "";
}

std::int64_t cpus_per_task(const JobFacts& facts) {
  const kube::JobResources& asked = facts.job->spec.resources;
  if (asked.cpus_per_task) return *asked.cpus_per_task;
  const auto& per_gpu = asked.cpus_per_gpu ? asked.cpus_per_gpu : facts.default_cpus_per_gpu;
  std::int64_t gpus = 0;
  for (const kube::JobDevice& each : asked.devices_per_task) {
    if (each.name == "gpu") gpus += each.count;
  }
  return std::max<std::int64_t>(gpus * per_gpu.value_or(0), 1);
}

std::string memory_per_gpu_text(const JobFacts& facts) {
  constexpr std::int64_t kMiB = 1 << 20;
  const auto& asked = facts.job->spec.resources.memory_per_gpu;
  if (asked) return "gres:gpu:" + std::to_string(asked->value() / kMiB);
  const auto& usual = facts.default_memory_per_gpu;
  return usual ? "gpu:" + std::to_string(usual->value() / kMiB) : "";
}

// Leaves out terms that are fulfilled, as Slurm does.
std::string dependency_text(const kube::Job& job) {
  const bool any = job.spec.dependency && job.spec.dependency->match == kube::DependencyMatch::kAny;
  std::string text;
  for (const kube::DependencyStatus& term : job.status.dependency) {
    if (term.state == kube::DependencyState::kFulfilled) {
      if (any) return "(null)";
      continue;
    }
    text += text.empty() ? "" : any ? "?" : ",";
    text += slurm::lower_case(kube::to_string(term.type));
    if (term.job_id || !term.job_name.empty()) {
      text += ":" + (term.job_id ? std::to_string(*term.job_id) : term.job_name);
      if (term.task) text += "_" + std::to_string(*term.task);
    }
    if (term.delay) {
      const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(*term.delay);
      text += "+" + std::to_string(minutes.count());
    }
    text += term.state == kube::DependencyState::kFailed ? "(failed)" : "(unfulfilled)";
  }
  return text.empty() ? "(null)" : text;
}

namespace {

// More numbers than that are looked for in one list of all jobs.
constexpr std::size_t kSingleListsMax = 8;

// `list` of all namespaces, or of the session's own if the others may not be read.
template <typename List>
auto list_anywhere(const Session& session, List list) {
  auto jobs = list("");
  if (!jobs && jobs.error().code == base::Code::kPermissionDenied) jobs = list(session.ns);
  return jobs;
}

// nullopt: to find what these words name takes a list of all jobs.
base::Result<std::optional<std::vector<kube::Job>>> list_named(const Session& session,
                                                               std::span<const std::string> words,
                                                               Output output) {
  using Named = std::optional<std::vector<kube::Job>>;
  if (words.empty() || words.size() > kSingleListsMax) return Named{};
  std::set<std::int64_t> numbers;
  for (const std::string& word : words) {
    const auto read = parse_job_word(word);
    if (!read) return Named{};
    numbers.insert(read->id);
  }
  std::vector<kube::Job> all;
  const auto with_number = [&](const std::string& ns, std::int64_t number) {
    return list_numbered(session, ns, number, output, &fields_of_jobs());
  };
  for (const std::int64_t number : numbers) {
    // An API server looks through all jobs of a list's scope; people mostly ask for jobs of their
    // own namespace.
    auto jobs = with_number(session.ns, number);
    if (jobs ? jobs->empty() : jobs.error().code == base::Code::kPermissionDenied) {
      auto of_all = with_number("", number);
      const bool may_read = of_all || of_all.error().code != base::Code::kPermissionDenied;
      if (may_read) jobs = std::move(of_all);
    }
    if (!jobs) return jobs.error();
    // Perhaps the number of a task, which only its array's object says.
    if (jobs->empty()) return Named{};
    std::ranges::move(*jobs, std::back_inserter(all));
  }
  return Named{std::move(all)};
}

// Selectors are lists of terms: in a value "," and "=" and "\\" stand for others.
std::string selector_of(const std::string& user) {
  std::string text = "status.user=";
  for (const char c : user) {
    if (c == ',' || c == '=' || c == '\\') text += '\\';
    text += c;
  }
  return text;
}

// nullopt: the server cannot select by users.
base::Result<std::optional<std::vector<kube::Job>>> list_jobs_of_in(
    const Session& session, const std::string& ns, const std::set<std::string>& users,
    Output output) {
  std::vector<kube::Job> all;
  for (const std::string& user : users) {
    auto jobs = list_all<kube::Job>(session, ns, output, &fields_of_jobs(), selector_of(user));
    if (!jobs && jobs.error().code == base::Code::kInvalidArgument) {
      return std::optional<std::vector<kube::Job>>{};
    }
    if (!jobs) return jobs.error();
    std::ranges::move(*jobs, std::back_inserter(all));
  }
  return std::optional{std::move(all)};
}

}  // namespace

base::Result<std::vector<kube::Job>> list_jobs_of(const Session& session,
                                                  const std::set<std::string>& users,
                                                  Output output) {
  if (users.size() > kSingleListsMax) return list_jobs(session, output);
  auto jobs = list_anywhere(
      session, [&](const std::string& ns) { return list_jobs_of_in(session, ns, users, output); });
  if (!jobs) return jobs.error();
  if (!*jobs) return list_jobs(session, output);
  return numbered(**std::move(jobs));
}

base::Result<std::vector<kube::Job>> list_own_jobs(const Session& session, const Caller& caller,
                                                   Output output) {
  if (caller.user.empty()) {
    auto of_all = list_all<kube::Job>(session, caller.ns, output, &fields_of_jobs());
    if (!of_all) return of_all.error();
    return numbered(*std::move(of_all));
  }
  auto jobs = list_jobs_of(session, {caller.user}, output);
  if (!jobs || caller.ns == caller.user) return jobs;
  auto of_nobody = list_jobs_of_in(session, caller.ns, {caller.ns}, output);
  if (!of_nobody) return of_nobody.error();
  if (!*of_nobody) return jobs;  // they are of all users, too
  std::ranges::move(**of_nobody, std::back_inserter(*jobs));
  return numbered(*std::move(jobs));
}

// Each Job is moved once: they are large.
std::vector<kube::Job> numbered(std::vector<kube::Job> jobs) {
  std::vector<kube::Job*> order;
  for (kube::Job& job : jobs) {
    if (job.status.job_id) order.push_back(&job);
  }
  std::ranges::sort(order, {}, [](const kube::Job* job) { return *job->status.job_id; });
  std::vector<kube::Job> sorted;
  sorted.reserve(order.size());
  for (kube::Job* job : order) sorted.push_back(std::move(*job));
  return sorted;
}

base::Result<std::vector<kube::Job>> list_jobs(const Session& session, Output output,
                                               std::span<const std::string> words) {
  auto named = list_named(session, words, output);
  if (!named) return named.error();
  if (*named) return numbered(**std::move(named));
  auto jobs = list_anywhere(session, [&](const std::string& ns) {
    return list_all<kube::Job>(session, ns, output, &fields_of_jobs());
  });
  if (!jobs) return jobs.error();
  return numbered(*std::move(jobs));
}

base::Result<std::vector<JobPart>> list_parts(const Session& session, ArrayView view,
                                              bool has_ended, Output output,
                                              std::span<const std::string> words) {
  auto jobs = list_jobs(session, output, words);
  if (!jobs) return jobs.error();
  return array_parts(std::move(*jobs), view, has_ended);
}

base::Result<JobPart> find_part(const Session& session, const std::string& word, Output output) {
  const auto read = parse_job_word(word);
  if (!read || !read->tasks) {
    auto job = find_job(session, word, output);
    const bool is_number = read && !job && job.error().code == base::Code::kNotFound;
    if (!is_number && !job) return job.error();
    if (job && job->spec.array) {
      return base::invalid_argument("job " + word + " is an array: name one of its tasks, " + word +
                                    "_N");
    }
    if (job) return JobPart{.job = std::make_shared<kube::Job>(*std::move(job))};
  }
  auto parts = list_parts(session, ArrayView::kEach, false, output, std::span{&word, 1});
  if (!parts) return parts.error();
  std::erase_if(*parts, [&](const JobPart& part) {
    return !part.array || !is_named(*read, part.job->status.job_id.value_or(0), part.array);
  });
  if (parts->size() == 1) return std::move(parts->front());
  return base::Error{base::Code::kNotFound, parts->empty()
                                                ? "there is no job " + word + " that runs or waits"
                                                : "job " + word + " names several tasks; name one"};
}

// A user who may not read these sees jobs without them.
base::Result<std::vector<PartitionDefaults>> list_partition_defaults(const Session& session,
                                                                     Output output) {
  const auto partitions = list_all<kube::Partition>(session, "", output);
  if (!partitions) {
    const bool is_hidden = partitions.error().code == base::Code::kPermissionDenied;
    if (is_hidden) return std::vector<PartitionDefaults>{};
    return partitions.error();
  }
  const auto config = session.client.get<kube::SchedulerConfig>(
      {.ns = "", .name = std::string{kube::kSchedulerConfigName}});
  std::vector<PartitionDefaults> all;
  for (const kube::Partition& partition : *partitions) {
    PartitionDefaults one{.name = partition.metadata.name};
    one.is_default = partition.spec.is_default.value_or(false);
    const std::int32_t nodes = partition.status.nodes.value_or(0);
    if (nodes > 0) one.cpus_per_node = partition.status.cpus.value_or(0) / nodes;
    if (const auto& limits = partition.spec.limits) {
      one.time = limits->default_time ? limits->default_time : limits->max_time;
    }
    const kube::MemoryLimits own = partition.spec.memory.value_or(kube::MemoryLimits{});
    const kube::SchedulerConfigSpec cluster =
        config.ok() ? config->spec : kube::SchedulerConfigSpec{};
    const kube::MemoryLimits all_memory = cluster.memory.value_or(kube::MemoryLimits{});
    const bool has_own = own.default_per_cpu || own.default_per_node;
    const kube::MemoryLimits& memory = has_own ? own : all_memory;
    one.memory_per_cpu = memory.default_per_cpu;
    one.memory_per_node = memory.default_per_node;
    one.memory_per_gpu = own.default_per_gpu ? own.default_per_gpu : all_memory.default_per_gpu;
    one.cpus_per_gpu = partition.spec.default_cpus_per_gpu ? partition.spec.default_cpus_per_gpu
                                                           : cluster.default_cpus_per_gpu;
    all.push_back(std::move(one));
  }
  return all;
}

ExitStatus exit_status(const kube::Job& job) {
  const int code = job.status.exit_code.value_or(0);
  if (code <= kSignalCodes || code > kSignalCodes + kSignalsMax) return {.code = code};
  const auto& usage = job.status.usage;
  // bash -e exits by itself with the code of a task that a signal has ended.
  const bool is_of_script =
      usage && std::ranges::any_of(usage->steps, [&](const kube::StepUsage& step) {
        return step.id == "batch" && step.signal == 0 && step.exit_code == code;
      });
  if (is_of_script) return {.code = code};
  return {.signal = code - kSignalCodes};
}

JobFacts facts_of(const kube::Job& job, const std::vector<PartitionDefaults>& partitions,
                  base::Instant now) {
  const PartitionDefaults* const partition = partition_of(job, partitions);
  JobFacts facts{.id = job.status.job_id.value_or(0), .now = now, .job = &job};
  facts.user = annotation_of(job, kube::kAnnotationUser).value_or(job.metadata.ns);
  facts.name = kube::shown_name(job);
  facts.comment = kube::shown_comment(job);
  facts.partition = job.status.partition;
  // A change of a moment ago counts at once, as in Slurm.
  const bool waits = job.status.state == kube::JobState::kPending;
  if (waits && !job.spec.partitions.empty()) {
    facts.partition.clear();
    for (const std::string& name : job.spec.partitions) {
      facts.partition += (facts.partition.empty() ? "" : ",") + name;
    }
  }
  if (facts.partition.empty() && partition != nullptr) facts.partition = partition->name;
  // Turns are not shown: to Slurm's users a job that takes turns runs.
  const view::JobMoment moment = view::job_moment(
      job, [](const std::string&) { return nullptr; }, now);
  // CF is a node that boots; here it would be a pod that starts.
  facts.state_code = moment.code == "CF" ? "R" : moment.code;
  // A job that its user or jobs of a higher tier have suspended takes no turns.
  const bool is_suspended =
      job.status.state == kube::JobState::kSuspended &&
      (job.spec.control.suspend.value_or(false) || job.status.reason == "Preempted");
  if (facts.state_code == "R" && is_suspended) facts.state_code = "S";
  for (const State& state : kStates) {
    if (facts.state_code == state.code) facts.state = state.name;
  }
  facts.run_time = moment.run_time;
  facts.suspend_time = suspended_until(job, now);
  facts.start_time = job.status.start_time ? job.status.start_time : view::expected_start(job, now);
  const ExitStatus exit = exit_status(job);
  facts.exit_signal = exit.signal;
  facts.exit_code = exit.code;
  // A job that ran when it was canceled has got SIGTERM; what its script made of it is not kept.
  const bool is_canceled = facts.state_code == "CA" && facts.run_time > base::Duration{0};
  if (is_canceled && exit.code == 0 && exit.signal == 0) facts.exit_signal = SIGTERM;
  facts.reason = reason_of(job, facts.state_code, facts.exit_signal);
  if (job.status.allocation) {
    facts.hostlist = job.status.allocation->hostlist;
    const auto nodes = slurm::expand_hostlist(facts.hostlist);
    if (nodes.ok() && !nodes->empty()) facts.batch_host = nodes->front();
  }
  set_sizes(facts, job, partition);
  // SOURCE: a held job has the priority 0.
  const bool is_held = job.spec.control.hold.value_or(false) || job.status.held;
  facts.priority = is_held ? 0 : job.status.priority.value_or(0);
  return facts;
}

JobFacts facts_of(const JobPart& part, const std::vector<PartitionDefaults>& partitions,
                  base::Instant now) {
  JobFacts facts = facts_of(*part.job, partitions, now);
  facts.array = part.array;
  return facts;
}

Caller caller_of(const Session& session) {
  Caller caller{.user = "", .ns = session.ns};
  const auto user = session.user ? session.user : own_user(session);
  if (user) caller.user = *user;
  return caller;
}

bool is_own(const kube::Job& job, const Caller& caller) {
  if (caller.user.empty()) return job.metadata.ns == caller.ns;
  return annotation_of(job, kube::kAnnotationUser) == caller.user;
}

ScriptFiles script_files(const JobFacts& facts) {
  if (!facts.job->spec.batch) return {};
  const kube::JobBatch& batch = *facts.job->spec.batch;
  const auto absolute = [&](const std::string& name) {
    const std::string& directory = batch.working_directory;
    if (name.starts_with('/') || directory.empty()) return name;
    return directory + (directory.ends_with('/') ? "" : "/") + name;
  };
  const char* const by_default = facts.array ? slurm::kTaskOutput : slurm::kScriptOutput;
  const std::string output = batch.output.empty() ? by_default : batch.output;
  return {.input = absolute(batch.input.empty() ? "/dev/null" : batch.input),
          .output = absolute(output),
          .error = absolute(batch.error.empty() ? output : batch.error)};
}

ScriptFiles expanded_files(const JobFacts& facts) {
  slurm::NameParts parts{.job_id = std::to_string(facts.id),
                         .step_id = "batch",
                         .job_name = facts.name,
                         .user = facts.user,
                         .node = facts.batch_host};
  if (facts.array) parts.array_id = std::to_string(facts.array->array_id);
  if (facts.array && facts.array->tasks.size() == 1) {
    parts.array_task = std::to_string(facts.array->tasks.front());
  }
  const ScriptFiles files = script_files(facts);
  return {.input = slurm::file_name(files.input, parts),
          .output = slurm::file_name(files.output, parts),
          .error = slurm::file_name(files.error, parts)};
}

// Sums the memory of all nodes, as it was allocated.
kube::Bytes allocated_memory(const kube::Allocation& allocation) {
  std::int64_t bytes = 0;
  for (const kube::NodeShare& share : allocation.shares) {
    const auto nodes = slurm::expand_hostlist(share.hostlist);
    if (!nodes || !share.memory) continue;
    bytes += share.memory->value() * std::ssize(*nodes);
  }
  return kube::Bytes{bytes};
}

std::string tres_of(const JobFacts& facts) {
  std::string text = "cpu=" + std::to_string(facts.cpus);
  std::int64_t bytes = 0;
  if (facts.memory_per_cpu) bytes = facts.memory_per_cpu->value() * facts.cpus;
  if (facts.memory_per_node) bytes = facts.memory_per_node->value() * facts.nodes;
  const auto& allocation = facts.job->status.allocation;
  if (facts.memory_per_gpu && allocation) bytes = allocated_memory(*allocation).value();
  if (bytes > 0) text += ",mem=" + tres_memory(kube::Bytes{bytes});
  return text + ",node=" + std::to_string(facts.nodes) + ",billing=" + std::to_string(facts.cpus);
}

std::size_t state_rank(const std::string& code) {
  return static_cast<std::size_t>(
      std::ranges::find_if(kStates, [&](const State& state) { return code == state.code; }) -
      kStates.begin());
}

std::string state_code_of(const std::string& text) {
  for (const State& state : kStates) {
    if (slurm::same_word(text, state.code) || slurm::same_word(text, state.name)) return state.code;
  }
  return "";
}

std::string all_states() {
  std::string names;
  for (const State& state : kStates) names += (names.empty() ? "" : ",") + std::string{state.name};
  return names;
}

namespace {

std::string local_text(base::Instant instant, const char* format) {
  const base::Instant local = instant + local_time(instant).zone;
  const std::time_t seconds = base::micros_since_epoch(local) / 1'000'000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[64];
  const std::size_t size = std::strftime(text, sizeof text, format, &parts);
  return {text, size};
}

}  // namespace

std::string slurm_time(const std::optional<base::Instant>& instant) {
  return instant ? local_text(*instant, "%Y-%m-%dT%H:%M:%S") : "Unknown";
}

std::string long_time(base::Duration duration) {
  const std::int64_t seconds = duration.count() / 1'000'000;
  const std::int64_t days = seconds / 86'400;
  char text[64];
  std::snprintf(text, sizeof text, "%02d:%02d:%02d", static_cast<int>(seconds / 3'600 % 24),
                static_cast<int>(seconds / 60 % 60), static_cast<int>(seconds % 60));
  return (days > 0 ? std::to_string(days) + "-" : "") + text;
}

std::string slurm_date(base::Instant instant) {
  return local_text(instant, "%a %b %d %H:%M:%S %Y");
}

// SOURCE: convert_num_unit() with CONVERT_NUM_UNIT_EXACT.
std::string exact_memory(kube::Bytes bytes) {
  constexpr std::array kUnits = {"", "K", "M", "G", "T", "P", "E"};
  std::int64_t amount = bytes.value();
  std::size_t unit = 0;
  while (amount != 0 && amount % 1024 == 0 && unit + 1 < kUnits.size()) {
    amount /= 1024;
    ++unit;
  }
  return std::to_string(amount) + kUnits[unit];
}

std::string slurm_memory(kube::Bytes bytes) {
  constexpr std::int64_t kMiB = 1 << 20;
  return exact_memory(kube::Bytes{bytes.value() / kMiB * kMiB});
}

// SOURCE: recorded: "1400M" is not 1.37G. Slurm counts in MiB.
std::string tres_memory(kube::Bytes bytes) {
  constexpr std::int64_t kMiB = 1 << 20;
  return exact_memory(kube::Bytes{(bytes.value() + kMiB - 1) / kMiB * kMiB});
}

// SOURCE: _elapsed_time() of sacct.
std::string cpu_time(base::Duration duration) {
  const std::int64_t milliseconds = duration.count() / 1'000 % 1'000;
  if (milliseconds == 0 || duration >= std::chrono::hours{1}) return long_time(duration);
  const std::int64_t seconds = duration.count() / 1'000'000;
  char text[32];
  std::snprintf(text, sizeof text, "%02d:%02d.%03d", static_cast<int>(seconds / 60),
                static_cast<int>(seconds % 60), static_cast<int>(milliseconds));
  return text;
}

}  // namespace cli
