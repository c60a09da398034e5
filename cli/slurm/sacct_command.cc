#include "cli/slurm/sacct_command.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "api/account.h"
#include "cli/cluster/read.h"
#include "cli/local_zone.h"
#include "cli/slurm/job_facts.h"
#include "cli/slurm/record_table.h"
#include "cli/slurm/recorded_jobs.h"
#include "kube/clock.h"
#include "records/record.h"
#include "slurm/hostlist.h"
#include "slurm/quantities.h"
#include "slurm/text.h"

namespace cli {
namespace {

// SOURCE: sacct(1), --format, --brief and --long; the last one has what kubegang knows of it.
constexpr const char* kFormat = "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode";
constexpr const char* kBrief = "JobID,State,ExitCode";
constexpr const char* kLong =
    "JobID,JobIDRaw,JobName,Partition,NTasks,AllocCPUS,Elapsed,State,ExitCode,ReqMem,AllocTRES";

// A job, its script, which Slurm has as the step "batch", or another step.
struct AcctRow {
  const JobFacts* facts = nullptr;
  bool is_script = false;
  const kube::StepUsage* step = nullptr;        // null: what the script has used is not known
  const kube::PodIdentity* identity = nullptr;  // of the namespace; null: that is not known

  const kube::JobStatus& status() const { return facts->job->status; }
  bool is_job() const { return !is_script && step == nullptr; }
  bool is_step() const { return !is_script && step != nullptr; }
};

using AcctField = RecordField<AcctRow>;

std::string id_of(const AcctRow& row) {
  const std::string job = job_label(row.facts->id, row.facts->array);
  if (row.is_step()) return job + "." + row.step->id;
  return job + (row.is_script ? ".batch" : "");
}

std::string number(std::int64_t value) {
  return std::to_string(value);
}

// A task of an array has a number of its own.
std::string raw_id_of(const AcctRow& row) {
  if (row.is_step()) return number(row.facts->id) + "." + row.step->id;
  return number(row.facts->id) + (row.is_script ? ".batch" : "");
}

// Returns the time of a step by the clock, with the turns of other jobs.
base::Duration elapsed(const AcctRow& row) {
  return row.is_step() ? row.step->elapsed : row.facts->run_time;
}

std::int64_t seconds_of(const AcctRow& row) {
  return elapsed(row).count() / 1'000'000;
}

// SOURCE: the script has the CPUs of its node. For a job of several nodes whose launcher has said
// nothing, and whose object is gone, these are as many as on the others.
std::int64_t cpus_of(const AcctRow& row) {
  if (row.is_step()) return row.step->cpus;
  const auto& allocation = row.status().allocation;
  if (!row.is_script || !allocation) return row.facts->cpus;
  if (row.step != nullptr && row.step->cpus > 0) return row.step->cpus;
  const std::int32_t known = records::cpus_of_script(*allocation);
  return known > 0 ? known : row.facts->cpus / std::max(1, row.facts->nodes);
}

int nodes_count(const AcctRow& row) {
  if (row.is_step()) return row.step->nodes;
  return row.is_script ? 1 : row.facts->nodes;
}

std::string name_of(const AcctRow& row) {
  if (row.is_step()) return row.step->name;
  return row.is_script ? "batch" : row.facts->name;
}

// SOURCE: slurmdbd: a script or step that a signal has ended is CANCELLED.
std::string state_of(const AcctRow& row) {
  const bool is_killed_script = row.is_script && row.facts->exit_signal != 0;
  if (!row.is_step()) return is_killed_script ? "CANCELLED" : row.facts->state;
  if (row.step->signal != 0) return "CANCELLED";
  return row.step->exit_code != 0 ? "FAILED" : "COMPLETED";
}

std::string tasks_of(const AcctRow& row) {
  if (row.is_step()) return number(row.step->tasks);
  return row.is_script ? "1" : "";
}

std::optional<base::Instant> start_of(const AcctRow& row) {
  return row.is_step() ? row.step->start_time : row.status().start_time;
}

std::optional<base::Instant> end_of(const AcctRow& row) {
  if (!row.is_step()) return row.status().end_time;
  return row.step->start_time ? std::optional{*row.step->start_time + row.step->elapsed}
                              : std::nullopt;
}

// User and system time of all processes of the row; nullopt if it is not known.
using CpuTimes = std::pair<base::Duration, base::Duration>;
std::optional<CpuTimes> cpu_times(const AcctRow& row) {
  const auto& usage = row.status().usage;
  if (row.step != nullptr) return CpuTimes{row.step->user_cpu, row.step->system_cpu};
  if (!row.is_job() || !usage) return std::nullopt;
  return CpuTimes{usage->user_cpu, usage->system_cpu};
}

std::string cpu_text(const AcctRow& row, base::Duration (*time)(const CpuTimes&)) {
  const auto times = cpu_times(row);
  return times ? cpu_time(time(*times)) : "";
}

// In whole seconds.
std::string average_cpu(const AcctRow& row) {
  if (row.step == nullptr) return "";
  const base::Duration all = row.step->user_cpu + row.step->system_cpu;
  return cpu_time(std::chrono::floor<std::chrono::seconds>(all / row.step->tasks));
}

// SOURCE: sacct leaves it empty for jobs; their steps have it.
std::string max_rss(const AcctRow& row) {
  return row.step == nullptr ? "" : exact_memory(row.step->max_rss);
}

// SOURCE: a job has what it asked for; its parts have asked for what they got.
std::int64_t asked_cpus(const AcctRow& row) {
  return row.is_job() ? row.facts->asked_cpus : cpus_of(row);
}

int asked_nodes(const AcctRow& row) {
  return row.is_job() ? row.facts->asked_nodes : nodes_count(row);
}

kube::Bytes memory_on(const JobFacts& facts, std::int64_t cpus, int nodes) {
  if (facts.memory_per_cpu) return kube::Bytes{facts.memory_per_cpu->value() * cpus};
  return kube::Bytes{facts.memory_per_node.value_or(kube::Bytes{}).value() * nodes};
}

// SOURCE: sacct writes the parts in the order of their names.
std::string tres_in_order(const AcctRow& row, std::int64_t cpus, int nodes, kube::Bytes memory) {
  std::string text = row.is_job() ? "billing=" + number(cpus) + "," : "";
  text += "cpu=" + number(cpus);
  if (memory > kube::Bytes{}) text += ",mem=" + tres_memory(memory);
  return text + ",node=" + number(nodes);
}

std::string allocated_tres(const AcctRow& row) {
  const auto& allocation = row.status().allocation;
  if (!allocation) return "";
  const bool is_by_gpus = row.is_job() && row.facts->memory_per_gpu;
  return tres_in_order(row, cpus_of(row), nodes_count(row),
                       is_by_gpus ? allocated_memory(*allocation)
                                  : memory_on(*row.facts, cpus_of(row), nodes_count(row)));
}

std::string asked_tres(const AcctRow& row) {
  if (!row.is_job()) return "";
  return tres_in_order(row, asked_cpus(row), asked_nodes(row),
                       memory_on(*row.facts, asked_cpus(row), asked_nodes(row)));
}

std::string exit_code(const AcctRow& row) {
  if (row.is_step()) return number(row.step->exit_code) + ":" + number(row.step->signal);
  return number(row.facts->exit_code) + ":" + number(row.facts->exit_signal);
}

// SOURCE: recorded: the worst of a job's steps, without the script. While steps are not known it is
// the job's own.
std::string highest_exit_code(const AcctRow& row) {
  const auto& usage = row.status().usage;
  if (!usage) return exit_code(row);
  std::pair<std::int64_t, std::int64_t> worst{};
  for (const kube::StepUsage& step : usage->steps) {
    if (step.id != "batch") worst = std::max(worst, {step.exit_code, step.signal});
  }
  return number(worst.first) + ":" + number(worst.second);
}

// SOURCE: recorded: a job that has ended without a start has none.
std::string start_text(const AcctRow& row) {
  const auto start = start_of(row);
  const bool has_none = !start && row.is_job() && row.status().end_time;
  return has_none ? "None" : slurm_time(start);
}

std::string limit_of(const AcctRow& row) {
  if (!row.is_job()) return "";
  return row.facts->limit ? long_time(*row.facts->limit) : "UNLIMITED";
}

std::string memory_of(const AcctRow& row) {
  const JobFacts& facts = *row.facts;
  if (!row.is_job()) return "";
  if (!facts.memory_per_cpu && !facts.memory_per_node) return "0";
  return tres_memory(memory_on(facts, facts.asked_cpus, facts.asked_nodes));
}

std::string nodes_of(const AcctRow& row) {
  if (row.is_step()) return "";  // only their number is recorded
  if (row.facts->hostlist.empty()) return "None assigned";
  return row.is_script ? row.facts->batch_host : row.facts->hostlist;
}

std::string waited(const AcctRow& row) {
  const kube::JobStatus& status = row.status();
  if (!row.is_job() || !status.eligible_time) return "";
  const base::Instant until = status.start_time ? *status.start_time
                              : status.end_time ? *status.end_time
                                                : row.facts->now;
  return long_time(std::max(base::Duration{}, until - *status.eligible_time));
}

std::string of_job(const AcctRow& row, const std::string& text) {
  return row.is_job() ? text : "";
}

// The numbers that its namespace has now: those of the files that a script reads and writes.
std::string user_number(const AcctRow& row) {
  return row.is_job() && row.identity != nullptr ? number(row.identity->uid) : "";
}

std::string group_number(const AcctRow& row) {
  return row.is_job() && row.identity != nullptr ? number(row.identity->gid) : "";
}

constexpr bool kAtLeft = true;

// SOURCE: sacct(1), "Job Accounting Fields", with sacct's widths and sides.
constexpr std::array kFields = {
    AcctField{"JobID", 12, id_of, kAtLeft},
    AcctField{"JobIDRaw", 12, raw_id_of, kAtLeft},
    AcctField{"JobName", 10, name_of},
    AcctField{"Partition", 10, [](const AcctRow& r) { return of_job(r, r.facts->partition); }},
    AcctField{"Account", 10,
              [](const AcctRow& r) { return r.facts->job->spec.schedule.account.value_or(""); }},
    AcctField{"User", 9, [](const AcctRow& r) { return of_job(r, r.facts->user); }},
    AcctField{"Group", 9, [](const AcctRow& r) { return of_job(r, r.facts->job->metadata.ns); }},
    AcctField{
        "QOS", 10,
        [](const AcctRow& r) { return of_job(r, r.facts->job->spec.schedule.qos.value_or("")); }},
    AcctField{"State", 10, state_of},
    AcctField{"ExitCode", 8, exit_code},
    AcctField{"DerivedExitCode", 15,
              [](const AcctRow& r) { return of_job(r, highest_exit_code(r)); }},
    AcctField{"Reason", 22, [](const AcctRow& r) { return of_job(r, r.facts->reason); }},
    AcctField{"AllocCPUS", 10, [](const AcctRow& r) { return number(cpus_of(r)); }},
    AcctField{"NCPUS", 10, [](const AcctRow& r) { return number(cpus_of(r)); }},
    AcctField{"ReqCPUS", 8, [](const AcctRow& r) { return number(asked_cpus(r)); }},
    AcctField{"AllocNodes", 10, [](const AcctRow& r) { return number(nodes_count(r)); }},
    AcctField{"NNodes", 8, [](const AcctRow& r) { return number(nodes_count(r)); }},
    AcctField{"ReqNodes", 8, [](const AcctRow& r) { return number(asked_nodes(r)); }},
    AcctField{"NTasks", 8, tasks_of},
    AcctField{"NodeList", 15, nodes_of},
    AcctField{"ReqMem", 10, memory_of},
    AcctField{"AllocTRES", 10, allocated_tres},
    AcctField{"ReqTRES", 10, asked_tres},
    // SOURCE: of a step the first two are its start.
    AcctField{"Submit", 19,
              [](const AcctRow& r) {
                return slurm_time(r.is_step() ? r.step->start_time : r.status().submit_time);
              }},
    AcctField{"Eligible", 19,
              [](const AcctRow& r) {
                return slurm_time(r.is_step() ? r.step->start_time : r.status().eligible_time);
              }},
    AcctField{"Start", 19, start_text},
    AcctField{"End", 19, [](const AcctRow& r) { return slurm_time(end_of(r)); }},
    AcctField{"Elapsed", 10, [](const AcctRow& r) { return long_time(elapsed(r)); }},
    AcctField{"ElapsedRaw", 10, [](const AcctRow& r) { return number(seconds_of(r)); }},
    AcctField{"CPUTime", 10,
              [](const AcctRow& r) { return long_time(elapsed(r) * cpus_of(r)); }},
    AcctField{"CPUTimeRAW", 10,
              [](const AcctRow& r) { return number(seconds_of(r) * cpus_of(r)); }},
    AcctField{"Planned", 10, waited},
    AcctField{"Reserved", 10, waited},
    AcctField{"Suspended", 10,
              [](const AcctRow& r) {
                return r.is_step() ? "" : long_time(r.facts->suspend_time);
              }},
    AcctField{"Timelimit", 10, limit_of},
    AcctField{"TimelimitRaw", 10,
              [](const AcctRow& r) {
                if (!r.is_job() || !r.facts->limit) return of_job(r, "UNLIMITED");
                return number(r.facts->limit->count() / 60'000'000);
              }},
    AcctField{"Priority", 10,
              [](const AcctRow& r) { return of_job(r, number(r.facts->priority)); }},
    AcctField{"Constraints", 19,
              [](const AcctRow& r) {
                return of_job(r, r.facts->job->spec.placement.constraint.value_or(""));
              }},
    AcctField{"Comment", 14, [](const AcctRow& r) { return of_job(r, r.facts->comment); }},
    AcctField{"WorkDir", 20,
              [](const AcctRow& r) {
                const auto& batch = r.facts->job->spec.batch;
                return of_job(r, batch ? batch->working_directory : "");
              }},
    AcctField{"Cluster", 10, [](const AcctRow&) { return std::string{"kubegang"}; }},
    AcctField{"AdminComment", 19, nullptr},
    AcctField{"AssocID", 7, nullptr},
    AcctField{"AveCPU", 10, average_cpu},
    AcctField{"AveCPUFreq", 10, nullptr},
    AcctField{"AveDiskRead", 14, nullptr},
    AcctField{"AveDiskWrite", 14, nullptr},
    AcctField{"AvePages", 10, nullptr},
    AcctField{"AveRSS", 10, nullptr},
    AcctField{"AveVMSize", 10, nullptr},
    AcctField{"BlockID", 16, nullptr},
    AcctField{"ConsumedEnergy", 14, nullptr},
    AcctField{"ConsumedEnergyRaw", 17, nullptr},
    AcctField{"Container", 19, nullptr},
    AcctField{"DBIndex", 10, nullptr, kAtLeft},
    AcctField{"Flags", 19, nullptr},
    AcctField{"GID", 6, group_number},
    AcctField{"Layout", 9, nullptr},
    AcctField{"MaxDiskRead", 12, nullptr},
    AcctField{"MaxDiskReadNode", 15, nullptr},
    AcctField{"MaxDiskReadTask", 15, nullptr},
    AcctField{"MaxDiskWrite", 12, nullptr},
    AcctField{"MaxDiskWriteNode", 16, nullptr},
    AcctField{"MaxDiskWriteTask", 16, nullptr},
    AcctField{"MaxPages", 8, nullptr},
    AcctField{"MaxPagesNode", 12, nullptr},
    AcctField{"MaxPagesTask", 14, nullptr},
    AcctField{"MaxRSS", 10, max_rss},
    AcctField{"MaxRSSNode", 10, nullptr},
    AcctField{"MaxRSSTask", 10, nullptr},
    AcctField{"MaxVMSize", 10, nullptr},
    AcctField{"MaxVMSizeNode", 14, nullptr},
    AcctField{"MaxVMSizeTask", 14, nullptr},
    AcctField{"McsLabel", 12, nullptr},
    AcctField{"MinCPU", 10, nullptr},
    AcctField{"MinCPUNode", 10, nullptr},
    AcctField{"MinCPUTask", 10, nullptr},
    AcctField{"PlannedCPU", 10, nullptr},
    AcctField{"PlannedCPURAW", 13, nullptr},
    AcctField{"QOSRAW", 10, nullptr},
    AcctField{"ReqCPUFreq", 10, nullptr},
    AcctField{"ReqCPUFreqGov", 13, nullptr},
    AcctField{"ReqCPUFreqMax", 13, nullptr},
    AcctField{"ReqCPUFreqMin", 13, nullptr},
    AcctField{"ResvCPU", 10, nullptr},
    AcctField{"ResvCPURAW", 10, nullptr},
    AcctField{"Reservation", 20, nullptr},
    AcctField{"ReservationId", 8, nullptr},
    AcctField{"SubmitLine", 20, nullptr},
    AcctField{"SystemCPU", 10,
              [](const AcctRow& r) {
                return cpu_text(r, [](const CpuTimes& times) { return times.second; });
              }},
    AcctField{"SystemComment", 15, nullptr},
    AcctField{"TotalCPU", 10,
              [](const AcctRow& r) {
                return cpu_text(r,
                                [](const CpuTimes& times) { return times.first + times.second; });
              }},
    AcctField{"TRESUsageInAve", 14, nullptr},
    AcctField{"TRESUsageInMax", 14, nullptr},
    AcctField{"TRESUsageInMaxNode", 20, nullptr},
    AcctField{"TRESUsageInMaxTask", 20, nullptr},
    AcctField{"TRESUsageInMin", 14, nullptr},
    AcctField{"TRESUsageInMinNode", 20, nullptr},
    AcctField{"TRESUsageInMinTask", 20, nullptr},
    AcctField{"TRESUsageInTot", 14, nullptr},
    AcctField{"TRESUsageOutAve", 14, nullptr},
    AcctField{"TRESUsageOutMax", 14, nullptr},
    AcctField{"TRESUsageOutMaxNode", 20, nullptr},
    AcctField{"TRESUsageOutMaxTask", 20, nullptr},
    AcctField{"TRESUsageOutMin", 14, nullptr},
    AcctField{"TRESUsageOutMinNode", 20, nullptr},
    AcctField{"TRESUsageOutMinTask", 20, nullptr},
    AcctField{"TRESUsageOutTot", 14, nullptr},
    AcctField{"UID", 6, user_number},
    AcctField{"UserCPU", 10,
              [](const AcctRow& r) {
                return cpu_text(r, [](const CpuTimes& times) { return times.first; });
              }},
    AcctField{"WCKey", 10, nullptr},
    AcctField{"WCKeyID", 10, nullptr},
};

constexpr WordTakes kNothing = WordTakes::kNothing;
constexpr WordTakes kValue = WordTakes::kValue;
constexpr std::string_view kNoEffect = "accepted; it is so anyway";
constexpr std::array kOptions = {
    WordOption{'o', "format", kValue, "names of fields, with widths: jobid%20"},
    WordOption{'b', "brief", kNothing, "JobID, State, ExitCode"},
    WordOption{'l', "long", kNothing, "a long list of fields"},
    WordOption{'n', "noheader", kNothing, "no heading"},
    WordOption{'p', "parsable", kNothing, "values with | behind each"},
    WordOption{'P', "parsable2", kNothing, "values with | between them"},
    WordOption{'\0', "delimiter", kValue, "instead of |"},
    WordOption{'X', "allocations", kNothing, "jobs alone, without their scripts and steps"},
    WordOption{'j', "jobs", kValue, "only these numbers"},
    WordOption{'\0', "name", kValue, "only jobs of these names"},
    WordOption{'u', "user", kValue, "only jobs of these users"},
    WordOption{'a', "allusers", kNothing, "jobs of all users"},
    WordOption{'A', "accounts", kValue, "only jobs of these accounts"},
    WordOption{'q', "qos", kValue, "only jobs of these QOS"},
    WordOption{'r', "partition", kValue, "only jobs of these partitions"},
    WordOption{'N', "nodelist", kValue, "only jobs that had one of these nodes"},
    WordOption{'s', "state", kValue, "only jobs that were in these states"},
    WordOption{'S', "starttime", kValue, "only jobs after this time (default: today's midnight)"},
    WordOption{'E', "endtime", kValue, "only jobs before this time"},
    WordOption{'e', "helpformat", kNothing, "lists the fields"},
    WordOption{'M', "clusters", kValue, "a context of the kubeconfig"},
    WordOption{'D', "duplicates", kNothing, "also the runs of a job that were requeued"},
    WordOption{'L', "allclusters", kNothing, kNoEffect},
    WordOption{'\0', "local", kNothing, kNoEffect},
    WordOption{'\0', "noconvert", kNothing, kNoEffect},
    WordOption{'v', "verbose", kNothing, kNoEffect},
    WordOption{'T', "truncate", kNothing, "", "is not there yet"},
    WordOption{'i', "nnodes", kValue, "only jobs on N nodes, or on N to M: N-M"},
    WordOption{'I', "ncpus", kValue, "only jobs with N CPUs, or N to M: N-M"},
    WordOption{'k', "timelimit-min", kValue, "only jobs with this time limit, or more with -K"},
    WordOption{'K', "timelimit-max", kValue, "only jobs with at most this time limit"},
    WordOption{'F', "flags", kValue, "", "is not there yet"},
    WordOption{'R', "reason", kValue, "", "is not there yet"},
    WordOption{'C', "constraints", kValue, "", "is not there yet"},
    WordOption{'x', "associations", kValue, "", "kubegang has no numbers of associations"},
    WordOption{'W', "wckeys", kValue, "", "kubegang has no workload keys"},
    WordOption{'g', "group", kValue, "", "use --user; a namespace is a group"},
    WordOption{'G', "gid", kValue, "", "use --user; a namespace is a group"},
    WordOption{'\0', "uid", kValue, "", "use --user"},
    WordOption{'f', "file", kValue, "", "there are no files of accounting"},
    WordOption{'c', "completion", kNothing, "", "there are no files of accounting"},
    WordOption{'B', "batch-script", kNothing, "", "use kubectl get gjob -o yaml"},
    WordOption{'\0', "env-vars", kNothing, "", "use kubectl get gjob -o yaml"},
    WordOption{'U', "federation", kNothing, "", "kubegang has no federations"},
    WordOption{'\0', "whole-hetjob", WordTakes::kMaybeValue, "",
               "kubegang has no heterogeneous jobs"},
    WordOption{'\0', "units", kValue, "", "is not there yet"},
    WordOption{'\0', "json", kNothing, "", "use kubectl get gjobs -o json"},
    WordOption{'\0', "yaml", kNothing, "", "use kubectl get gjobs -o yaml"}};

constexpr std::array kVariables = {InputVariable{"SACCT_FORMAT", "format"},
                                   InputVariable{"SLURM_CLUSTERS", "clusters"}};

struct SacctOptions {
  RecordTable<AcctRow> table;
  bool has_heading = true;
  bool only_jobs = false;
  bool all_users = false;
  bool has_duplicates = false;
  // A job or task, and perhaps one part of it: "batch" or the number of a step; "": all of it.
  struct Asked {
    JobWord job;
    std::string part;
  };
  std::vector<Asked> jobs;
  std::set<std::string> names, users, accounts, qos, partitions, nodes, states;
  struct Counts {
    std::int64_t min = 0;
    std::int64_t max = 0;
  };
  std::optional<Counts> node_counts{}, cpu_counts{};
  std::optional<base::Duration> limit_min{}, limit_max{};
  std::optional<base::Instant> from{}, until{};
  std::string context;
};

int fail(Output output, const std::string& message) {
  output.err << "sacct: error: " << message << "\n";
  return kExitFailed;
}

base::Status add_jobs(const std::string& text, SacctOptions& options) {
  for (const std::string& word : job_words(text)) {
    const std::size_t dot = std::min(word.find('.'), word.size());
    auto read = parse_job_word(word.substr(0, dot));
    if (!read) return base::invalid_argument("Bad job/step specified: " + word);
    options.jobs.push_back({*std::move(read), word.substr(std::min(dot + 1, word.size()))});
  }
  return {};
}

base::Status add_states(const std::string& text, SacctOptions& options) {
  for (const std::string& word : list_of(text)) {
    const std::string code = state_code_of(word);
    if (code.empty()) {
      return base::invalid_argument("Invalid job state specified: " + word +
                                    "\nsacct: error: Valid job states include: " + all_states());
    }
    options.states.insert(code);
  }
  return {};
}

base::Status set_time(std::optional<base::Instant>& field, const ReadOption& option,
                      const slurm::Now& now) {
  const auto instant = past_instant("--" + option.name, option.value, now);
  if (!instant) return instant.error();
  field = *instant;
  return {};
}

base::Status set_counts(const ReadOption& option, std::optional<SacctOptions::Counts>& counts) {
  const std::size_t dash = std::min(option.value.find('-'), option.value.size());
  const auto least = slurm::parse_integer(option.name, option.value.substr(0, dash), {.min = 0});
  if (!least) return least.error();
  counts = {*least, *least};
  if (dash == option.value.size()) return {};
  const auto most = slurm::parse_integer(option.name, option.value.substr(dash + 1), {.min = 0});
  if (!most) return most.error();
  counts->max = *most;
  return {};
}

base::Status set_limit(const ReadOption& option, std::optional<base::Duration>& limit) {
  const auto read = slurm::parse_limit(option.name, option.value);
  if (!read) return read.error();
  limit = *read;
  return {};
}

base::Status apply(const ReadOption& option, SacctOptions& options) {
  const auto add = [&](std::set<std::string>& to) {
    for (std::string& word : list_of(option.value)) to.insert(std::move(word));
  };
  const std::string& name = option.name;
  if (name == "noheader") options.has_heading = false;
  if (name == "allocations") options.only_jobs = true;
  if (name == "allusers") options.all_users = true;
  if (name == "duplicates") options.has_duplicates = true;
  if (name == "parsable") options.table.form = RecordForm::kEnded;
  if (name == "parsable2") options.table.form = RecordForm::kBetween;
  if (name == "delimiter") options.table.delimiter = option.value;
  if (name == "name") add(options.names);
  if (name == "user") add(options.users);
  if (name == "accounts") add(options.accounts);
  if (name == "qos") add(options.qos);
  if (name == "partition") add(options.partitions);
  if (name == "clusters") options.context = option.value;
  if (name == "format") return options.table.set_columns(kFields, option.value);
  if (name == "brief") return options.table.set_columns(kFields, kBrief);
  if (name == "long") return options.table.set_columns(kFields, kLong);
  if (name == "jobs") return add_jobs(option.value, options);
  if (name == "state") return add_states(option.value, options);
  if (name == "nnodes") return set_counts(option, options.node_counts);
  if (name == "ncpus") return set_counts(option, options.cpu_counts);
  if (name == "timelimit-min") return set_limit(option, options.limit_min);
  if (name == "timelimit-max") return set_limit(option, options.limit_max);
  if (name == "nodelist") {
    const auto nodes = slurm::expand_hostlist(option.value);
    if (!nodes) return nodes.error();
    options.nodes.insert(nodes->begin(), nodes->end());
  }
  return {};
}

// SOURCE: sacct(1), "DEFAULT TIME WINDOW": of numbers all times, of states alone this moment, else
// today.
base::Result<TimeWindow> window_of(const SacctOptions& options, const slurm::Now& now) {
  TimeWindow window{.from = base::Instant{}, .until = options.until.value_or(now.instant)};
  if (options.from) {
    window.from = *options.from;
  } else if (options.jobs.empty() && !options.states.empty()) {
    window.from = window.until;
  } else if (options.jobs.empty()) {
    const auto midnight = slurm::parse_instant("midnight", "today", now);
    if (!midnight) return midnight.error();
    window.from = *midnight;
  }
  if (window.from > window.until) {
    return base::invalid_argument("Start time requested is after end time.");
  }
  return window;
}

// Returns true if the job was there in the window; with states, in one of them.
bool is_in(const JobFacts& facts, const TimeWindow& window, const std::set<std::string>& states) {
  const kube::JobStatus& status = facts.job->status;
  const auto overlaps = [&](const std::optional<base::Instant>& from,
                            const std::optional<base::Instant>& until) {
    return from && *from <= window.until && (!until || *until >= window.from);
  };
  if (states.empty()) return overlaps(status.submit_time, status.end_time);
  if (states.contains("PD") &&
      overlaps(status.submit_time, status.start_time ? status.start_time : status.end_time)) {
    return true;
  }
  if (states.contains("R") && overlaps(status.start_time, status.end_time)) return true;
  if (!states.contains(facts.state_code)) return false;
  return status.end_time ? *status.end_time >= window.from && *status.end_time <= window.until
                         : overlaps(status.submit_time, std::nullopt);
}

bool is_within(const std::optional<SacctOptions::Counts>& counts, std::int64_t count) {
  return !counts || (counts->min <= count && count <= counts->max);
}

// SOURCE: recorded: the least alone is the only one.
bool has_limit(const JobFacts& facts, const SacctOptions& options) {
  if (!options.limit_min && !options.limit_max) return true;
  const auto most = options.limit_max ? options.limit_max : options.limit_min;
  return facts.limit && *facts.limit >= options.limit_min.value_or(base::Duration{}) &&
         *facts.limit <= *most;
}

bool is_shown(const JobFacts& facts, const SacctOptions& options, const Caller& caller) {
  const auto fits = [](const std::set<std::string>& wanted, const std::string& value) {
    return wanted.empty() || wanted.contains(value);
  };
  const kube::JobSchedule& schedule = facts.job->spec.schedule;
  const auto nodes = slurm::expand_hostlist(facts.hostlist);
  const bool was_on =
      options.nodes.empty() || (nodes.ok() && std::ranges::any_of(*nodes, [&](const auto& node) {
                                  return options.nodes.contains(node);
                                }));
  // The user of a job that does not say whose it is is the namespace.
  const bool is_user = options.all_users || !options.users.empty() || is_own(*facts.job, caller) ||
                       facts.user == caller.ns;
  const bool is_asked_for =
      options.jobs.empty() || std::ranges::any_of(options.jobs, [&](const auto& asked) {
        return is_named(asked.job, facts.id, facts.array);
      });
  const bool is_so_large = is_within(options.node_counts, facts.nodes) &&
                           is_within(options.cpu_counts, facts.cpus) && has_limit(facts, options);
  return is_user && was_on && is_asked_for && is_so_large && fits(options.names, facts.name) &&
         fits(options.users, facts.user) && fits(options.accounts, schedule.account.value_or("")) &&
         fits(options.qos, schedule.qos.value_or("")) && fits(options.partitions, facts.partition);
}

std::optional<base::Instant> oldest_of(const std::vector<kube::Job>& jobs) {
  std::optional<base::Instant> oldest;
  for (const kube::Job& job : jobs) {
    const auto& at = job.status.submit_time;
    if (at && (!oldest || *at < *oldest)) oldest = at;
  }
  return oldest;
}

// Once on standard error, which no program reads as records.
void tell_what_is_missing(const std::vector<kube::Job>& jobs,
                          const base::Result<RecordedJobs>& recorded, Output output) {
  if (recorded && recorded->since) {
    output.err << "sacct: jobs are recorded since " << slurm_time(recorded->since);
  } else {
    if (!recorded) {
      output.err << "sacct: records cannot be read: " << recorded.error().message << "\n";
    }
    const auto oldest = oldest_of(jobs);
    output.err << "sacct: only Jobs that have not been deleted are shown, "
               << (oldest ? "the oldest of " + slurm_time(oldest) : "of which there are none");
  }
  output.err << "\n";
}

RecordQuery query_of(const SacctOptions& options, const TimeWindow& window, const Caller& caller) {
  RecordQuery query{.window = window};
  if (options.users.size() == 1) query.user = *options.users.begin();
  if (!options.all_users && options.users.empty()) query.user = caller.user;
  for (const auto& asked : options.jobs) query.jobs.push_back(asked.job.id);
  return query;
}

// Shows the state of a record that no Job has.
void set_recorded_state(JobFacts& facts, const std::optional<records::RecordState>& state) {
  const bool was_requeued = state == records::RecordState::kRequeued;
  if (!was_requeued && state != records::RecordState::kLost) return;
  facts.state = was_requeued ? "REQUEUED" : "UNKNOWN";
  facts.state_code = was_requeued ? "RQ" : "?";
  facts.exit_signal = 0;
}

// Returns true if this part of the job was asked for; "": the job itself.
bool wants(const SacctOptions& options, const JobFacts& facts, std::string_view part) {
  return options.jobs.empty() || std::ranges::any_of(options.jobs, [&](const auto& asked) {
           const bool is_all = asked.part.empty() || asked.part == part;
           return is_all && is_named(asked.job, facts.id, facts.array);
         });
}

// The script, then the steps that are recorded.
void print_parts(const JobFacts& facts, const SacctOptions& options, Output output) {
  const auto& usage = facts.job->status.usage;
  const std::vector<kube::StepUsage> none;
  const std::vector<kube::StepUsage>& steps = usage ? usage->steps : none;
  const auto script = std::ranges::find(steps, "batch", &kube::StepUsage::id);
  if (wants(options, facts, "batch")) {
    options.table.print_row(
        {.facts = &facts, .is_script = true, .step = script == steps.end() ? nullptr : &*script},
        output.out);
  }
  for (const kube::StepUsage& step : steps) {
    if (step.id == "batch" || !wants(options, facts, step.id)) continue;
    options.table.print_row({.facts = &facts, .step = &step}, output.out);
  }
}

// No more than what is_shown() may take.
base::Result<std::vector<kube::Job>> jobs_of(const Session& session, const SacctOptions& options,
                                             const Caller& caller, Output output) {
  std::vector<std::string> numbers;
  for (const auto& asked : options.jobs) numbers.push_back(number(asked.job.id));
  if (!numbers.empty()) return list_jobs(session, output, numbers);
  if (!options.users.empty()) return list_jobs_of(session, options.users, output);
  return options.all_users ? list_jobs(session, output) : list_own_jobs(session, caller, output);
}

// By namespace. A user who may not read accounts sees none.
using Identities = std::map<std::string, kube::PodIdentity>;
Identities identities_of(const Session& session, const SacctOptions& options, Output output) {
  Identities all;
  if (!options.table.has(user_number) && !options.table.has(group_number)) return all;
  const auto accounts = list_all<kube::Account>(session, "", output);
  if (!accounts) return all;
  for (const kube::Account& account : *accounts) {
    for (const kube::AccountNamespace& one : account.spec.namespaces) {
      if (one.identity) all[one.name] = *one.identity;
    }
  }
  return all;
}

int show(const Session& session, const SacctOptions& options, const TimeWindow& window,
         Output output) {
  const bool needs_caller = !options.all_users && options.users.empty();
  const Caller caller = needs_caller ? caller_of(session) : Caller{};
  auto jobs = jobs_of(session, options, caller, output);
  if (!jobs) return fail(output, jobs.error().message);
  const auto partitions = list_partition_defaults(session, output);
  if (!partitions) return fail(output, partitions.error().message);
  const auto recorded = read_records(session, query_of(options, window, caller));
  tell_what_is_missing(*jobs, recorded, output);
  const Identities identities = identities_of(session, options, output);
  if (options.has_heading) options.table.print_heading(output.out);
  const std::vector<records::Record> none;
  for (const AccountedJob& one :
       join_records(array_parts(std::move(*jobs), ArrayView::kJoined, true),
                    recorded ? recorded->records : none, options.has_duplicates)) {
    const kube::Job& job = *one.part.job;
    JobFacts facts = facts_of(one.part, *partitions, session.clock.wall());
    set_recorded_state(facts, one.state);
    if (!is_shown(facts, options, caller) || !is_in(facts, window, options.states)) continue;
    const auto identity = identities.find(job.metadata.ns);
    if (wants(options, facts, "")) {
      options.table.print_row(
          {.facts = &facts, .identity = identity == identities.end() ? nullptr : &identity->second},
          output.out);
    }
    const bool has_run = job.spec.batch && job.status.start_time;
    if (!options.only_jobs && has_run) print_parts(facts, options, output);
  }
  return kExitOk;
}

}  // namespace

int run_sacct(std::span<const std::string> arguments, const WithCluster& with_cluster,
              Output output) {
  if (const auto answer = answer_about_itself("sacct", kOptions, arguments)) {
    output.out << *answer;
    return kExitOk;
  }
  auto words = read_options(kOptions, arguments);
  if (!words) return fail(output, words.error().message);
  add_variables(kVariables, *words);
  SacctOptions options;
  const slurm::Now now = local_time(kube::SystemClock{}.wall());
  base::Status status = options.table.set_columns(kFields, kFormat);
  for (const ReadOption& option : words->options) {
    if (option.name == "helpformat") {
      list_fields(std::span<const AcctField>{kFields}, output.out);
      return kExitOk;
    }
    if (status) status = apply(option, options);
    if (status && option.name == "starttime") status = set_time(options.from, option, now);
    if (status && option.name == "endtime") status = set_time(options.until, option, now);
  }
  if (!status) return fail(output, status.error().message);
  const auto window = window_of(options, now);
  if (!window) return fail(output, window.error().message);
  return with_cluster.in(options.context)(
      [&](const Session& session) { return show(session, options, *window, output); });
}

SlurmReference sacct_reference() {
  return {.command = "sacct",
          .options = {kOptions.begin(), kOptions.end()},
          .fields = references_of(std::span<const AcctField>{kFields}),
          .words = {}};
}

}  // namespace cli
