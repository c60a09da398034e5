#include "cli/slurm/squeue_command.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <ranges>
#include <set>

#include "cli/slurm/followed_jobs.h"
#include "cli/slurm/format.h"
#include "kube/api/node.h"
#include "slurm/hostlist.h"
#include "slurm/quantities.h"
#include "slurm/text.h"

namespace cli {
namespace {

// SOURCE: squeue(1): the default format, --long and --start.
constexpr const char* kFormat = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
constexpr const char* kLongFormat = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";
constexpr const char* kStartFormat = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R";
// The order is by partition, state, priority.
constexpr const char* kSort = "P,t,-p";
constexpr const char* kStartSort = "S";

using Field = SlurmField<JobFacts>;
using Cell = FormatCell<JobFacts>;

std::string or_null(const std::string& text) {
  return text.empty() ? "(null)" : text;
}

std::string or_na(const std::string& text) {
  return text.empty() ? "N/A" : text;
}

std::string memory_of(const JobFacts& facts) {
  if (facts.memory_per_cpu) return slurm_memory(*facts.memory_per_cpu);
  return facts.memory_per_node ? slurm_memory(*facts.memory_per_node) : "0";
}

std::string limit_of(const JobFacts& facts) {
  return facts.limit ? slurm::format_run_time(*facts.limit) : "UNLIMITED";
}

std::string left_of(const JobFacts& facts) {
  if (!facts.limit) return "UNLIMITED";
  return slurm::format_run_time(std::max(base::Duration{0}, *facts.limit - facts.run_time));
}

std::optional<base::Instant> end_of(const JobFacts& facts) {
  const kube::JobStatus& status = facts.job->status;
  if (status.end_time) return status.end_time;
  if (!status.start_time || !facts.limit) return std::nullopt;
  return *status.start_time + *facts.limit;
}

// N/A as squeue writes it, where scontrol writes Unknown.
std::string time_of(const std::optional<base::Instant>& instant) {
  return instant ? slurm_time(instant) : "N/A";
}

// SOURCE: the highest priority is 2^32 - 1.
std::string priority_fraction(const JobFacts& facts) {
  char text[32];
  std::snprintf(text, sizeof text, "%.14f", static_cast<double>(facts.priority) / 4294967295.0);
  return text;
}

std::string star_or(const std::optional<std::int32_t>& count) {
  return count ? std::to_string(*count) : "*";
}

std::string star_or_none(const std::optional<std::int32_t>& count) {
  return count ? std::to_string(*count) : "N/A";
}

std::string batch_text(const JobFacts& facts, std::string kube::JobBatch::*text) {
  return facts.job->spec.batch ? (*facts.job->spec.batch).*text : std::string{};
}

std::string tmp_disk_of(const JobFacts& facts) {
  const auto& disk = facts.job->spec.placement.tmp_disk;
  return disk ? slurm_memory(*disk) : "0";
}

std::string sockets_cores_threads(const JobFacts& facts) {
  const kube::JobPlacement& place = facts.job->spec.placement;
  return star_or(place.sockets_per_node) + ":" + star_or(place.cores_per_socket) + ":" +
         star_or(place.threads_per_core);
}

std::string reason_or_nodes(const JobFacts& facts) {
  const bool waits = facts.state_code == "PD" || facts.state_code == "F" || facts.hostlist.empty();
  return waits ? "(" + facts.reason + ")" : facts.hostlist;
}

// SOURCE: recorded: times and nodes at the right are not cut.
std::string whole_at_right(const std::string& value, std::size_t width, bool at_right) {
  return at_right ? value : placed(value, width, at_right);
}

std::string cut_limit(const JobFacts& facts, const std::string& value, std::size_t width,
                      bool at_right) {
  return whole_at_right(value, width, at_right && facts.limit);
}

std::string cut_nodes(const JobFacts&, const std::string& value, std::size_t width, bool at_right) {
  return whole_at_right(value, width, at_right);
}

std::string cut_reason_or_nodes(const JobFacts&, const std::string& value, std::size_t width,
                                bool at_right) {
  return value.starts_with('(') ? placed(value, width, at_right)
                                : whole_at_right(value, width, at_right);
}

std::string pending_seconds(const JobFacts& facts) {
  const kube::JobStatus& status = facts.job->status;
  if (!status.submit_time) return "0";
  const base::Instant until = status.start_time ? *status.start_time
                              : status.end_time ? *status.end_time
                                                : facts.now;
  return std::to_string(std::max<std::int64_t>(0, (until - *status.submit_time).count()) /
                        1'000'000);
}

// SOURCE: squeue(1), --format and --Format. A field that kubegang does not have shows what a Slurm
// prints that does not use it.
constexpr std::array kFields = {
    // SOURCE: recorded: --Format's names of the two are the other way round than one expects.
    Field{'i', "jobarrayid", "JOBID",
          [](const JobFacts& f) { return short_job_label(f.id, f.array); }},
    Field{'A', "jobid", "JOBID", [](const JobFacts& f) { return std::to_string(f.id); }},
    Field{'F', "arrayjobid", "ARRAY_JOB_ID",
          [](const JobFacts& f) { return std::to_string(f.array ? f.array->array_id : f.id); }},
    Field{'K', "arraytaskid", "ARRAY_TASK_ID",
          [](const JobFacts& f) { return f.array ? task_text(*f.array) : std::string{"N/A"}; }},
    Field{'P', "partition", "PARTITION", [](const JobFacts& f) { return f.partition; }},
    Field{'j', "name", "NAME", [](const JobFacts& f) { return f.name; }},
    Field{'u', "username", "USER", [](const JobFacts& f) { return f.user; }},
    Field{'g', "groupname", "GROUP", [](const JobFacts& f) { return f.job->metadata.ns; }},
    Field{'U', "userid", "UID", nullptr, "N/A"},
    Field{'G', "groupid", "GROUP", nullptr, "N/A"},
    Field{'t', "statecompact", "ST", [](const JobFacts& f) { return f.state_code; }},
    Field{'T', "state", "STATE", [](const JobFacts& f) { return f.state; }},
    Field{'D', "numnodes", "NODES", [](const JobFacts& f) { return std::to_string(f.nodes); }},
    Field{'\0', "maxnodes", "MAX_NODES",
          [](const JobFacts& f) {
            const auto& nodes = f.job->spec.resources.nodes;
            return std::to_string(nodes ? nodes->max.value_or(nodes->min) : 0);
          }},
    Field{'C', "numcpus", "CPUS", [](const JobFacts& f) { return std::to_string(f.cpus); }},
    Field{'\0', "maxcpus", "MAX_CPUS", [](const JobFacts& f) { return std::to_string(f.cpus); }},
    Field{'\0', "numtasks", "TASKS", [](const JobFacts& f) { return std::to_string(f.tasks); }},
    Field{'\0', "cpus-per-task", "CPUS_PER_TASK",
          [](const JobFacts& f) {
            return std::to_string(f.job->spec.resources.cpus_per_task.value_or(1));
          }},
    Field{'\0', "ntpernode", "NTASKS_PER_NODE",
          [](const JobFacts& f) {
            return std::to_string(f.job->spec.resources.tasks_per_node.value_or(0));
          }},
    Field{'\0', "ntpersocket", "NTASKS_PER_SOCKET",
          [](const JobFacts& f) { return star_or_none(f.job->spec.resources.tasks_per_socket); }},
    Field{'\0', "ntpercore", "NTASKS_PER_CORE",
          [](const JobFacts& f) { return star_or_none(f.job->spec.resources.tasks_per_core); }},
    Field{'c', "mincpus", "MIN_CPUS", [](const JobFacts& f) { return std::to_string(f.min_cpus); }},
    Field{'m', "minmemory", "MIN_MEMORY", memory_of},
    Field{'d', "mintmpdisk", "MIN_TMP_DISK", tmp_disk_of},
    Field{'\0', "tres-alloc", "TRES_ALLOC", tres_of},
    Field{'l', "timelimit", "TIME_LIMIT", limit_of, {}, cut_limit},
    Field{'L', "timeleft", "TIME_LEFT", left_of, {}, cut_limit},
    Field{'M', "timeused", "TIME",
          [](const JobFacts& f) { return slurm::format_run_time(f.run_time); }},
    Field{'E', "dependency", "DEPENDENCY",
          [](const JobFacts& f) { return dependency_text(*f.job); }},
    Field{'\0', "mintime", "TIME_MIN",
          [](const JobFacts& f) {
            return slurm::format_run_time(f.job->spec.schedule.time_min.value_or(base::Duration{}));
          }},
    Field{'\0', "pendingtime", "PENDING_TIME", pending_seconds},
    Field{'r', "reason", "REASON", [](const JobFacts& f) { return f.reason; }},
    Field{'R', "reasonlist", "NODELIST(REASON)", reason_or_nodes, {}, cut_reason_or_nodes},
    Field{'N', "nodelist", "NODELIST", [](const JobFacts& f) { return f.hostlist; }, {}, cut_nodes},
    Field{'n', "reqnodes", "REQ_NODES",
          [](const JobFacts& f) { return f.job->spec.placement.hostlist.value_or(""); }},
    Field{'x', "", "EXC_NODES",
          [](const JobFacts& f) { return f.job->spec.placement.exclude_hostlist.value_or(""); }},
    Field{'Y', "schednodes", "SCHEDNODES",
          [](const JobFacts& f) { return or_null(f.job->status.planned_nodes); }},
    Field{'B', "batchhost", "EXEC_HOST",
          [](const JobFacts& f) { return f.batch_host.empty() ? "n/a" : f.batch_host; }},
    Field{'\0', "batchflag", "BATCH_FLAG",
          [](const JobFacts& f) { return std::string{f.job->spec.batch ? "1" : "0"}; }},
    Field{'W', "licenses", "LICENSES",
          [](const JobFacts& f) { return or_null(licenses_text(*f.job)); }},
    Field{'f', "feature", "FEATURES",
          [](const JobFacts& f) { return or_null(f.job->spec.placement.constraint.value_or("")); }},
    Field{'h', "oversubscribe", "OVER_SUBSCRIBE",
          [](const JobFacts& f) { return sharing_text(*f.job); }},
    Field{'O', "contiguous", "CONTIGUOUS",
          [](const JobFacts& f) {
            return std::string{f.job->spec.placement.contiguous.value_or(false) ? "1" : "0"};
          }},
    Field{'H', "sockets", "SOCKETS_PER_NODE",
          [](const JobFacts& f) { return star_or(f.job->spec.placement.sockets_per_node); }},
    Field{'I', "cores", "CORES_PER_SOCKET",
          [](const JobFacts& f) { return star_or(f.job->spec.placement.cores_per_socket); }},
    Field{'J', "threads", "THREADS_PER_CORE",
          [](const JobFacts& f) { return star_or(f.job->spec.placement.threads_per_core); }},
    Field{'z', "sct", "S:C:T", sockets_cores_threads},
    Field{'p', "priority", "PRIORITY", priority_fraction},
    Field{'Q', "prioritylong", "PRIORITY",
          [](const JobFacts& f) { return std::to_string(f.priority); }},
    Field{'y', "nice", "NICE",
          [](const JobFacts& f) { return std::to_string(f.job->spec.schedule.nice.value_or(0)); }},
    Field{'k', "comment", "COMMENT", [](const JobFacts& f) { return or_null(f.comment); }},
    Field{'a', "account", "ACCOUNT",
          [](const JobFacts& f) { return or_null(f.job->spec.schedule.account.value_or("")); }},
    Field{'q', "qos", "QOS",
          [](const JobFacts& f) { return or_null(f.job->spec.schedule.qos.value_or("")); }},
    Field{'V', "submittime", "SUBMIT_TIME",
          [](const JobFacts& f) { return time_of(f.job->status.submit_time); }},
    Field{'\0', "eligibletime", "ELIGIBLE_TIME",
          [](const JobFacts& f) { return time_of(f.job->status.eligible_time); }},
    Field{'\0', "accruetime", "ACCRUE_TIME",
          [](const JobFacts& f) { return time_of(f.job->status.eligible_time); }},
    Field{'S', "starttime", "START_TIME",
          [](const JobFacts& f) { return time_of(f.start_time); }},
    Field{'e', "endtime", "END_TIME", [](const JobFacts& f) { return time_of(end_of(f)); }},
    Field{'\0', "deadline", "DEADLINE",
          [](const JobFacts& f) { return time_of(f.job->spec.schedule.deadline); }},
    Field{'Z', "workdir", "WORK_DIR",
          [](const JobFacts& f) { return batch_text(f, &kube::JobBatch::working_directory); }},
    Field{'\0', "stdout", "STDOUT",
          [](const JobFacts& f) { return script_files(f).output; }},
    Field{'\0', "stderr", "STDERR",
          [](const JobFacts& f) { return script_files(f).error; }},
    Field{'\0', "stdin", "STDIN",
          [](const JobFacts& f) { return script_files(f).input; }},
    Field{'\0', "exit_code", "EXIT_CODE",
          [](const JobFacts& f) { return std::to_string(f.exit_code); }},
    Field{'\0', "derivedec", "DERIVED_EC",
          [](const JobFacts& f) { return std::to_string(f.exit_code); }},
    Field{'\0', "requeue", "REQUEUE",
          [](const JobFacts& f) {
            return std::string{f.job->spec.lifecycle.requeue.value_or(true) ? "1" : "0"};
          }},
    Field{'\0', "restartcnt", "RESTART_COUNT",
          [](const JobFacts& f) { return std::to_string(f.job->status.restarts.value_or(0)); }},
    Field{'b', "tres-per-node", "TRES_PER_NODE",
          [](const JobFacts& f) { return or_na(devices_text(f.job->spec.resources.devices)); }},
    Field{'\0', "tres-per-job", "TRES_PER_JOB",
          [](const JobFacts& f) {
            return or_na(devices_text(f.job->spec.resources.devices_of_job));
          }},
    Field{'\0', "tres-per-socket", "TRES_PER_SOCKET",
          [](const JobFacts& f) {
            return or_na(devices_text(f.job->spec.resources.devices_per_socket));
          }},
    Field{'\0', "tres-per-step", "TRES_PER_STEP", nullptr, "N/A"},
    Field{'\0', "tres-per-task", "TRES_PER_TASK",
          [](const JobFacts& f) {
            return or_na(devices_text(f.job->spec.resources.devices_per_task));
          }},
    Field{'\0', "cpus-per-tres", "CPUS_PER_TRES",
          [](const JobFacts& f) { return or_na(cpus_per_gpu_text(f)); }},
    Field{'\0', "mem-per-tres", "MEM_PER_TRES",
          [](const JobFacts& f) { return or_na(memory_per_gpu_text(f)); }},
    Field{'o', "command", "COMMAND", nullptr, "(null)"},
    Field{'s', "", "", nullptr, ""},
    Field{'v', "reservation", "RESERVATION", nullptr, "(null)"},
    Field{'w', "wckey", "WCKEY", nullptr, "(null)"},
    Field{'X', "corespec", "CORE_SPEC", nullptr, "N/A"},
    Field{'\0', "admin_comment", "ADMIN_COMMENT", nullptr, "(null)"},
    Field{'\0', "system_comment", "SYSTEM_COMMENT", nullptr, "(null)"},
    Field{'\0', "allocnodes", "ALLOC_NODES", nullptr, "N/A"},
    Field{'\0', "allocsid", "ALLOC_SID", nullptr, "0"},
    Field{'\0', "associd", "ASSOC_ID", nullptr, "0"},
    Field{'\0', "boardspernode", "BOARDS_PER_NODE", nullptr, "0"},
    Field{'\0', "burstbuffer", "BURST_BUFFER", nullptr, "(null)"},
    Field{'\0', "burstbufferstate", "BURST_BUFFER_STATE", nullptr, "(null)"},
    Field{'\0', "cluster", "CLUSTER", nullptr, "kubegang"},
    Field{'\0', "clusterfeature", "CLUSTER_FEATURES", nullptr, "(null)"},
    Field{'\0', "container", "CONTAINER", nullptr, "(null)"},
    Field{'\0', "delayboot", "DELAY_BOOT", nullptr, "0:00"},
    Field{'\0', "hetjobid", "HET_JOB_ID", nullptr, "N/A"},
    Field{'\0', "hetjobidset", "HET_JOB_ID_SET", nullptr, "N/A"},
    Field{'\0', "hetjoboffset", "HET_JOB_OFFSET", nullptr, "N/A"},
    Field{'\0', "lastschedeval", "LAST_SCHED_EVAL", nullptr, "N/A"},
    Field{'\0', "mcslabel", "MCSLABEL", nullptr, "(null)"},
    Field{'\0', "network", "NETWORK", nullptr, "(null)"},
    Field{'\0', "ntperboard", "NTASKS_PER_BOARD", nullptr, "0"},
    Field{'\0', "origin", "ORIGIN", nullptr, "NA"},
    Field{'\0', "originraw", "ORIGIN_RAW", nullptr, "NA"},
    Field{'\0', "preempttime", "PREEMPT_TIME", nullptr, "N/A"},
    Field{'\0', "prefer", "PREFER", nullptr, "(null)"},
    Field{'\0', "profile", "PROFILE", nullptr, "NotSet"},
    Field{'\0', "reboot", "REBOOT", nullptr, "0"},
    Field{'\0', "reqswitch", "REQ_SWITCH", nullptr, "0"},
    Field{'\0', "resizetime", "RESIZE_TIME", nullptr, "N/A"},
    Field{'\0', "siblingsactive", "ACTIVE_SIBLINGS", nullptr, "NA"},
    Field{'\0', "siblingsactiveraw", "ACTIVE_SIBLINGS_RAW", nullptr, "NA"},
    Field{'\0', "siblingsviable", "VIABLE_SIBLINGS", nullptr, "NA"},
    Field{'\0', "siblingsviableraw", "VIALBLE_SIBLINGS_RAW", nullptr, "NA"},
    Field{'\0', "sperboard", "SOCKETS_PER_BOARD", nullptr, "0"},
    Field{'\0', "wait4switch", "WAIT4SWITCH", nullptr, "0:00"},
};

const Field* field_of(char letter) {
  const auto found = std::ranges::find(kFields, letter, &Field::letter);
  return found == kFields.end() ? nullptr : &*found;
}

constexpr WordTakes kNothing = WordTakes::kNothing;
constexpr WordTakes kValue = WordTakes::kValue;
constexpr std::string_view kNoEffect = "accepted; it is so anyway";
constexpr std::array kOptions = {
    WordOption{'o', "format", kValue, "letters of fields, with widths"},
    WordOption{'O', "Format", kValue, "names of fields, with widths"},
    WordOption{'h', "noheader", kNothing, "no heading"},
    WordOption{'l', "long", kNothing, "the long format"},
    WordOption{'\0', "start", kNothing, "expected starts of jobs that wait"},
    WordOption{'S', "sort", kValue, "letters of fields, with - for the reverse"},
    WordOption{'i', "iterate", kValue, "prints again every N seconds"},
    WordOption{'j', "jobs", kValue, "only these numbers"},
    WordOption{'n', "name", kValue, "only jobs of these names"},
    WordOption{'u', "user", kValue, "only jobs of these users"},
    WordOption{'\0', "me", kNothing, "only the caller's jobs"},
    WordOption{'p', "partition", kValue, "only jobs of these partitions"},
    WordOption{'t', "states", kValue, "only jobs in these states; all"},
    WordOption{'A', "account", kValue, "only jobs of these accounts"},
    WordOption{'q', "qos", kValue, "only jobs of these QOS"},
    WordOption{'w', "nodelist", kValue, "only jobs that have one of these nodes"},
    WordOption{'M', "clusters", kValue, "a context of the kubeconfig"},
    WordOption{'a', "all", kNothing, kNoEffect},
    WordOption{'r', "array", kNothing, "a line for each task of an array"},
    WordOption{'\0', "array-unique", kNothing, kNoEffect},
    WordOption{'\0', "noconvert", kNothing, kNoEffect},
    WordOption{'\0', "hide", kNothing, kNoEffect},
    WordOption{'\0', "local", kNothing, kNoEffect},
    WordOption{'v', "verbose", kNothing, kNoEffect},
    WordOption{'s', "steps", WordTakes::kMaybeValue, "",
               "the API has no record of steps; they are in the pods of a job"},
    WordOption{'R', "reservation", kValue, "", "kubegang has no reservations"},
    WordOption{'L', "licenses", kValue, "only jobs that ask for one of these licenses"},
    WordOption{'\0', "federation", kNothing, "", "kubegang has no federations"},
    WordOption{'\0', "sibling", kNothing, "", "kubegang has no federations"},
    WordOption{'\0', "json", kNothing, "", "use kubectl gang queue -o json"},
    WordOption{'\0', "yaml", kNothing, "", "use kubectl gang queue -o yaml"}};

// SOURCE: squeue(1), "ENVIRONMENT VARIABLES".
constexpr std::array kVariables = {
    InputVariable{"SQUEUE_ACCOUNT", "account"},     InputVariable{"SQUEUE_FORMAT", "format"},
    InputVariable{"SQUEUE_FORMAT2", "Format"},      InputVariable{"SQUEUE_NAMES", "name"},
    InputVariable{"SQUEUE_PARTITION", "partition"}, InputVariable{"SQUEUE_QOS", "qos"},
    InputVariable{"SQUEUE_SORT", "sort"},           InputVariable{"SQUEUE_STATES", "states"},
    InputVariable{"SQUEUE_USERS", "user"},          InputVariable{"SLURM_CLUSTERS", "clusters"}};

struct SqueueOptions {
  std::vector<Cell> cells;
  bool has_heading = true;
  bool has_date = false;  // above the heading
  bool is_own = false;    // --me
  bool only_waiting = false;
  bool all_states = false;
  ArrayView arrays = ArrayView::kJoined;
  std::set<std::string> states, partitions, users, names, accounts, qos, nodes, licenses;
  std::vector<std::string> jobs;
  std::vector<JobWord> asked;  // the same, read
  bool names_tasks = false;    // at least one of them
  std::string sort;
  std::string context;
  std::optional<std::chrono::seconds> every{};
};

int fail(Output output, const base::Error& error) {
  output.err << "squeue: error: " << error.message << "\n";
  return kExitFailed;
}

// SOURCE: recorded: an option that is there twice counts as the last one says, and an empty list
// selects nothing. Nothing is named ",".
std::set<std::string> given(const std::string& text) {
  const auto words = list_of(text);
  return words.empty() ? std::set<std::string>{","} : std::set(words.begin(), words.end());
}

base::Status set_states(const std::string& text, SqueueOptions& options) {
  options.all_states = false;
  options.states.clear();
  if (list_of(text).empty()) options.states = given(text);
  for (const std::string& word : list_of(text)) {
    if (slurm::same_word(word, "all")) {
      options.all_states = true;
      continue;
    }
    const std::string code = state_code_of(word);
    if (code.empty()) {
      return base::invalid_argument("Invalid job state specified: " + word +
                                    "\nsqueue: error: Valid job states include: " + all_states());
    }
    options.states.insert(code);
  }
  return {};
}

// SOURCE: recorded: a step is the job that it is of.
base::Status add_jobs(const std::string& text, SqueueOptions& options) {
  for (std::string& word : job_words(text)) {
    word.resize(std::min(word.find('.'), word.size()));
    auto asked = parse_job_word(word);
    if (!asked) return base::invalid_argument("Invalid job id: " + word);
    options.names_tasks = options.names_tasks || asked->tasks;
    options.jobs.push_back(std::move(word));
    options.asked.push_back(*std::move(asked));
  }
  return {};
}

base::Status set_nodes(const std::string& text, SqueueOptions& options) {
  const auto nodes = slurm::expand_hostlist(text);
  if (!nodes) return nodes.error();
  options.nodes = {nodes->begin(), nodes->end()};
  return {};
}

base::Status apply(const ReadOption& option, SqueueOptions& options) {
  const std::string& name = option.name;
  if (name == "noheader") options.has_heading = false;
  if (name == "me") options.is_own = true;
  if (name == "start") options.only_waiting = true;
  if (name == "array") options.arrays = ArrayView::kEach;
  if (name == "long") options.has_date = true;
  if (name == "user") options.users = given(option.value);
  if (name == "partition") options.partitions = given(option.value);
  if (name == "name") options.names = given(option.value);
  if (name == "account") options.accounts = given(option.value);
  if (name == "qos") options.qos = given(option.value);
  if (name == "licenses") options.licenses = given(option.value);
  if (name == "sort") options.sort = option.value;
  if (name == "clusters") options.context = option.value;
  if (name == "states") return set_states(option.value, options);
  if (name == "jobs") return add_jobs(option.value, options);
  if (name == "nodelist") return set_nodes(option.value, options);
  if (name == "iterate") {
    const auto seconds = slurm::parse_integer("--iterate", option.value, {.min = 1});
    if (!seconds) return base::invalid_argument("--iterate=" + option.value);
    options.every = std::chrono::seconds{*seconds};
  }
  return {};
}

// The last one of --format and --Format says what is printed. SOURCE: recorded: --start and --long
// say it if there is neither. A field that does not exist is reported, and the rest is printed.
void set_cells(const ReadWords& words, SqueueOptions& options, Output output) {
  std::vector<std::string> unknown;
  const std::span<const Field> fields{kFields};
  const char* const by_default = options.only_waiting ? kStartFormat
                                 : options.has_date   ? kLongFormat
                                                      : kFormat;
  options.cells = read_letters(fields, by_default, unknown);
  for (const ReadOption& option : words.options) {
    if (option.name == "format") options.cells = read_letters(fields, option.value, unknown);
    if (option.name == "Format") options.cells = read_fields(fields, option.value, unknown);
  }
  for (const std::string& name : unknown) {
    output.err << "squeue: error: Invalid job format specification: " << name << "\n";
  }
}

// SOURCE: recorded; "" if there is none. On the command line alone: what is typed wins over
// variables.
std::string contradiction(const ReadWords& words) {
  const auto place_of = [&](std::string_view name) {
    return std::ranges::find(words.options, name, &ReadOption::name);
  };
  const auto none = words.options.end();
  const auto letters = place_of("format");
  const auto names = place_of("Format");
  if (letters != none && names != none) {
    return letters < names ? "error: -O (--Format) is incompatible with -o (--format)"
                           : "error: -o (--format) is incompatible with -O (--Format)";
  }
  if (letters != none && place_of("long") != none) {
    return "fatal: Options -o(--format) and -l(--long) are mutually exclusive. Please remove one "
           "and retry.";
  }
  return "";
}

bool is_on(const JobFacts& facts, const std::set<std::string>& nodes) {
  const auto own = slurm::expand_hostlist(facts.hostlist);
  return own.ok() && std::ranges::any_of(*own, [&](const auto& n) { return nodes.contains(n); });
}

bool asks_for_one_of(const kube::Job& job, const std::set<std::string>& licenses) {
  return std::ranges::any_of(job.spec.resources.licenses,
                             [&](const auto& license) { return licenses.contains(license.first); });
}

// A job that waits is in each of its partitions.
bool is_in(const JobFacts& facts, const std::set<std::string>& partitions) {
  return partitions.empty() || std::ranges::any_of(list_of(facts.partition), [&](const auto& name) {
           return partitions.contains(name);
         });
}

bool fits(const std::set<std::string>& wanted, const std::string& value) {
  return wanted.empty() || wanted.contains(value);
}

// Filters by what all tasks of an array share, before each of them becomes a job.
bool may_be_shown(const kube::Job& job, const SqueueOptions& options, const Caller& caller) {
  const bool has_filters = options.is_own || !options.users.empty() || !options.names.empty() ||
                           !options.accounts.empty() || !options.qos.empty() ||
                           !options.licenses.empty();
  if (!has_filters) return true;
  const JobFacts facts = facts_of(job, {}, base::Instant{});
  const kube::JobSchedule& schedule = job.spec.schedule;
  return fits(options.users, facts.user) && fits(options.names, facts.name) &&
         fits(options.accounts, schedule.account.value_or("")) &&
         fits(options.qos, schedule.qos.value_or("")) && (!options.is_own || is_own(job, caller)) &&
         (options.licenses.empty() || asks_for_one_of(job, options.licenses));
}

bool is_shown(const JobFacts& facts, const SqueueOptions& options) {
  static const std::set<std::string> kActive{"PD", "R", "S", "CG"};
  static const std::set<std::string> kWaiting{"PD"};
  const auto& by_default = options.only_waiting ? kWaiting : kActive;
  const bool state_fits =
      options.all_states ||
      (options.states.empty() ? by_default : options.states).contains(facts.state_code);
  const bool is_asked_for =
      options.asked.empty() || std::ranges::any_of(options.asked, [&](const JobWord& word) {
        return is_named(word, facts.id, facts.array);
      });
  return state_fits && is_asked_for && is_in(facts, options.partitions) &&
         (options.nodes.empty() || is_on(facts, options.nodes));
}

// Compares by what a field means, not by how it is written.
bool is_before(const Field& field, const JobFacts& a, const JobFacts& b) {
  const auto key = [](const JobFacts& facts) {
    return facts.array ? std::pair{facts.array->array_id, facts.array->tasks.front()}
                       : std::pair{facts.id, -1};
  };
  switch (field.letter) {
    case 'i':
    case 'F':
      return key(a) < key(b);
    case 'A':
      return a.id < b.id;
    case 'p':
    case 'Q':
      return a.priority < b.priority;
    case 't':
    case 'T':
      return state_rank(a.state_code) < state_rank(b.state_code);
    case 'D':
      return a.nodes < b.nodes;
    case 'C':
      return a.cpus < b.cpus;
    case 'M':
      return a.run_time < b.run_time;
    case 'P':
      return a.partition < b.partition;
    case 'j':
      return a.name < b.name;
    case 'u':
      return a.user < b.user;
    case 'l':
      return a.limit.value_or(base::Duration::max()) < b.limit.value_or(base::Duration::max());
    default:
      return field.of(a) < field.of(b);
  }
}

// SOURCE: recorded: fields that squeue prints, and refuses to sort by.
constexpr std::string_view kNotSorted = "akoqrswxyAEFKRWXYZ";

bool is_sign(char letter) {
  return letter == '-' || letter == '+' || letter == ',';
}

// SOURCE: squeue begins with the last letter, and stops at one that it does not know.
base::Status check_sort(std::string_view keys) {
  for (const char letter : keys | std::views::reverse) {
    if (is_sign(letter)) continue;
    if (field_of(letter) == nullptr || kNotSorted.find(letter) != std::string_view::npos) {
      return base::invalid_argument(std::string{"Invalid sort specification: "} + letter);
    }
  }
  return {};
}

// SOURCE: recorded: of jobs that wait and are equal in all by which they are sorted, such as those
// that are held, the last one comes first; tasks of an array stay in their order.
void put_last_waiting_first(std::vector<const JobFacts*>& all) {
  const auto running = std::ranges::stable_partition(
      all, [](const JobFacts* facts) { return facts->state_code == "PD"; });
  std::ranges::stable_sort(all.begin(), running.begin(), std::ranges::greater{}, &JobFacts::id);
}

// SOURCE: letters with + and - before them, commas or none between.
base::Status sort(std::vector<const JobFacts*>& all, const std::string& keys) {
  struct Key {
    const Field* field;
    bool is_reverse;
  };
  if (const base::Status status = check_sort(keys); !status) return status;
  std::vector<Key> order;
  bool is_reverse = false;
  for (const char letter : keys) {
    if (letter == '-' || letter == '+') is_reverse = letter == '-';
    if (is_sign(letter)) continue;
    order.push_back({field_of(letter), is_reverse});
    is_reverse = false;
  }
  put_last_waiting_first(all);
  std::ranges::stable_sort(all, [&](const JobFacts* a, const JobFacts* b) {
    for (const Key& key : order) {
      if (is_before(*key.field, *a, *b)) return !key.is_reverse;
      if (is_before(*key.field, *b, *a)) return key.is_reverse;
    }
    return false;
  });
  return {};
}

// Returns "Sat Nov 28 21:39:05 2026", above a long or a repeated list.
std::string date_line(base::Instant now) {
  return slurm_date(now) + "\n";
}

// SOURCE: a name that does not exist is an error, as recorded. Users who may not read nodes are
// believed.
base::Status check_nodes(const Session& session, const SqueueOptions& options) {
  for (const std::string& name : options.nodes) {
    const auto node = session.client.get<kube::Node>({.ns = "", .name = name});
    if (node || node.error().code == base::Code::kPermissionDenied) continue;
    const bool is_missing = node.error().code == base::Code::kNotFound;
    return is_missing ? base::invalid_argument("Invalid node name " + name) : node.error();
  }
  return {};
}

base::Result<std::vector<kube::Job>> jobs_of(const Session& session, const SqueueOptions& options,
                                             const Caller& caller, const FollowedJobs* followed,
                                             Output output) {
  if (followed != nullptr) return followed->jobs();
  if (!options.jobs.empty()) return list_jobs(session, output, options.jobs);
  if (!options.users.empty()) return list_jobs_of(session, options.users, output);
  if (options.is_own && !caller.user.empty()) return list_jobs_of(session, {caller.user}, output);
  return options.is_own ? list_own_jobs(session, caller, output) : list_jobs(session, output);
}

// Named jobs, or users, cost a list of their jobs; all others come from the watch, if there is
// one. One number alone must be seen to exist, whatever else is asked for.
base::Result<std::vector<JobPart>> parts_of(const Session& session, const SqueueOptions& options,
                                            const Caller& caller, const FollowedJobs* followed,
                                            Output output) {
  static const std::set<std::string> kNotEnded{"PD", "R", "S", "CG"};
  const bool has_ended = options.all_states || options.jobs.size() == 1 ||
                         !std::ranges::includes(kNotEnded, options.states);
  auto jobs = jobs_of(session, options, caller, followed, output);
  if (!jobs) return jobs.error();
  if (options.jobs.size() != 1) {
    std::erase_if(*jobs, [&](const kube::Job& job) { return !may_be_shown(job, options, caller); });
  }
  const ArrayView view = options.names_tasks ? ArrayView::kEach : options.arrays;
  return array_parts(std::move(*jobs), view, has_ended);
}

// Fields that no partition gives to a job that does not ask for them. Tools that ask for these
// alone, once a second, cost one request each time.
constexpr std::string_view kOfTheJobAlone = "ijtTuUgGPAFKMNrRkaqpQyVZoBhSWYZ";

// Returns true if the partition has a say in this field of the job. `facts` are those without it.
bool depends_on_partition(char letter, const JobFacts& facts) {
  switch (letter) {
    case 'D':
      // Nodes are estimated by the CPUs of a node.
      return !facts.job->status.allocation && facts.cpus > facts.nodes;
    case 'l':
    case 'L':
    case 'e':
      return !facts.limit;
    default:
      return letter == '\0' || kOfTheJobAlone.find(letter) == std::string_view::npos;
  }
}

// Beside a list of many jobs one more request is nothing.
bool needs_partitions(const SqueueOptions& options, const std::string& sort_keys,
                      const std::vector<JobPart>& jobs) {
  constexpr std::size_t kFew = 50;
  if (jobs.size() > kFew) return true;
  std::string letters;
  for (const char c : sort_keys) {
    if (!is_sign(c)) letters += c;
  }
  for (const Cell& cell : options.cells) {
    if (cell.field != nullptr) letters += cell.field->letter;
  }
  return std::ranges::any_of(jobs, [&](const JobPart& part) {
    if (part.job->status.partition.empty() && part.job->spec.partitions.empty()) return true;
    const JobFacts facts = facts_of(part, {}, base::Instant{});
    return std::ranges::any_of(letters, [&](char c) { return depends_on_partition(c, facts); });
  });
}

// SOURCE: recorded: the job must exist, but not the task of it.
bool has_number(const JobWord& word, const JobFacts& facts) {
  return word.id == facts.id || (facts.array && word.id == facts.array->array_id);
}

// SOURCE: recorded: those tasks of an array that are asked for by their numbers and wait stand in
// one line, without its throttle.
void join_waiting_tasks(std::vector<JobFacts>& all) {
  std::vector<JobFacts> joined;
  for (JobFacts& facts : all) {
    const bool joins = !joined.empty() && facts.array && joined.back().job == facts.job &&
                       facts.state_code == "PD";
    if (!joins) {
      joined.push_back(std::move(facts));
      continue;
    }
    ArrayPart& part = *joined.back().array;
    part.tasks.push_back(facts.array->tasks.front());
    part.throttle.reset();
  }
  all = std::move(joined);
}

int show(const Session& session, const SqueueOptions& options, const Caller& caller,
         const FollowedJobs* followed, Output output) {
  const auto jobs = parts_of(session, options, caller, followed, output);
  if (!jobs) return fail(output, jobs.error());
  const std::string by_default = options.only_waiting ? kStartSort : kSort;
  const std::string& sort_keys = options.sort.empty() ? by_default : options.sort;
  const auto partitions =
      needs_partitions(options, sort_keys, *jobs)
          ? list_partition_defaults(session, output)
          : base::Result<std::vector<PartitionDefaults>>{std::vector<PartitionDefaults>{}};
  if (!partitions) return fail(output, partitions.error());
  const base::Instant now = session.clock.wall();
  std::vector<JobFacts> all;
  bool is_known = options.jobs.size() != 1;
  for (const JobPart& job : *jobs) {
    JobFacts facts = facts_of(job, *partitions, now);
    is_known = is_known || has_number(options.asked.front(), facts);
    if (!is_shown(facts, options)) continue;
    if (options.jobs.size() != 1 || may_be_shown(*job.job, options, caller)) {
      all.push_back(std::move(facts));
    }
  }
  // SOURCE: one number alone that does not exist is an error, of several it is not.
  if (!is_known) {
    output.err << "slurm_load_jobs error: Invalid job id specified\n";
    return kExitFailed;
  }
  if (options.names_tasks && options.arrays == ArrayView::kJoined) join_waiting_tasks(all);
  std::vector<const JobFacts*> lines;
  for (const JobFacts& facts : all) lines.push_back(&facts);
  const base::Status sorted = sort(lines, sort_keys);
  const std::span<const Cell> cells{options.cells};
  const bool has_date = (options.has_date && options.has_heading) || options.every;
  if (has_date) output.out << date_line(now);
  if (options.has_heading) output.out << format_heading(cells) << "\n";
  if (!sorted) return fail(output, sorted.error());
  for (const JobFacts* facts : lines) output.out << format_line(cells, *facts) << "\n";
  return kExitOk;
}

// Shows the queue again and again. An error of one round may be over in the next: an API server
// restarts. The first round is an answer to what was typed.
int show_again_and_again(const Session& session, const SqueueOptions& options, const Caller& caller,
                         Output output) {
  std::unique_ptr<FollowedJobs> followed;
  if (options.jobs.empty()) {
    auto begun = FollowedJobs::begin(session);
    if (!begun) return fail(output, begun.error());
    followed = *std::move(begun);
  }
  for (bool is_first = true;; is_first = false) {
    const auto error = followed ? followed->take_error() : std::nullopt;
    if (error) output.err << "squeue: " << error->message << "; trying again\n";
    const int code = show(session, options, caller, followed.get(), output);
    if (is_first && code != kExitOk) return code;
    output.out.flush();
    if (!output.out || !session.sleeper.sleep(*options.every, {})) return kExitOk;
    output.out << "\n";
  }
}

}  // namespace

int run_squeue(std::span<const std::string> arguments, const WithCluster& with_cluster,
               Output output) {
  if (const auto answer = answer_about_itself("squeue", kOptions, arguments)) {
    output.out << *answer;
    return kExitOk;
  }
  auto words = read_options(kOptions, arguments);
  if (!words) return fail(output, words.error());
  if (const std::string wrong = contradiction(*words); !wrong.empty()) {
    output.err << "squeue: " << wrong << "\n";
    return kExitFailed;
  }
  add_variables(kVariables, *words);
  SqueueOptions options;
  for (const ReadOption& option : words->options) {
    if (const base::Status status = apply(option, options); !status) {
      return fail(output, status.error());
    }
  }
  set_cells(*words, options, output);
  return with_cluster.in(options.context)([&](const Session& session) {
    const Caller caller = options.is_own ? caller_of(session) : Caller{};
    if (const base::Status there = check_nodes(session, options); !there) {
      return fail(output, there.error());
    }
    return options.every ? show_again_and_again(session, options, caller, output)
                         : show(session, options, caller, nullptr, output);
  });
}

SlurmReference squeue_reference() {
  return reference_of<JobFacts>("squeue", kOptions, kFields);
}

std::string squeue_line(const std::string& format, const JobFacts& facts) {
  std::vector<std::string> unknown;
  const auto cells = read_letters(std::span<const Field>{kFields}, format, unknown);
  return format_line(std::span<const Cell>{cells}, facts);
}

}  // namespace cli
