#include "cli/slurm/scancel_command.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "cli/cluster/control.h"
#include "cli/cluster/read.h"
#include "cli/slurm/job_facts.h"
#include "cli/slurm/remote_step.h"
#include "slurm/hostlist.h"
#include "slurm/sbatch.h"
#include "slurm/text.h"

namespace cli {
namespace {

constexpr std::array kOptions = {
    WordOption{'n', "name", WordTakes::kValue, "only jobs of these names"},
    WordOption{'\0', "jobname", WordTakes::kValue, "the same"},
    WordOption{'u', "user", WordTakes::kValue, "only jobs of these users"},
    WordOption{'\0', "me", WordTakes::kNothing, "only the caller's jobs"},
    WordOption{'t', "state", WordTakes::kValue, "PENDING, RUNNING or SUSPENDED"},
    WordOption{'p', "partition", WordTakes::kValue, "only jobs of these partitions"},
    WordOption{'A', "account", WordTakes::kValue, "only jobs of these accounts"},
    WordOption{'q', "qos", WordTakes::kValue, "only jobs of these QOS"},
    WordOption{'w', "nodelist", WordTakes::kValue, "only jobs that have one of these nodes"},
    WordOption{'M', "clusters", WordTakes::kValue, "a context of the kubeconfig"},
    WordOption{'s', "signal", WordTakes::kValue,
               "sends this signal, to the job's steps; KILL ends the job"},
    WordOption{'b', "batch", WordTakes::kNothing, "with -s: to the script alone"},
    WordOption{'f', "full", WordTakes::kNothing, "with -s: to the script and all steps"},
    WordOption{'Q', "quiet", WordTakes::kNothing, "says no errors of jobs"},
    WordOption{'v', "verbose", WordTakes::kNothing, "says which jobs"},
    WordOption{'i', "interactive", WordTakes::kNothing, "", "is not there yet"},
    WordOption{'H', "hurry", WordTakes::kNothing, "", "kubegang has no burst buffers"},
    WordOption{'R', "reservation", WordTakes::kValue, "", "kubegang has no reservations"},
    WordOption{'\0', "sibling", WordTakes::kValue, "", "kubegang has no federations"},
    WordOption{'\0', "wckey", WordTakes::kValue, "", "kubegang has no workload keys"}};

// Turns that are off hold a signal up. So long for all jobs together, and for each at least the
// second: in one that runs a program is started in less.
constexpr std::chrono::seconds kSignalsMax{60};
constexpr std::chrono::seconds kSignalMin{2};

struct ScancelOptions {
  std::set<std::string> names, users, states, partitions, accounts, qos, nodes;
  std::vector<std::string> jobs;
  std::vector<JobWord> asked;      // the same, read
  std::vector<std::string> steps;  // JOB.STEP
  bool is_own = false;
  bool is_quiet = false;
  bool is_verbose = false;
  bool to_script = false;     // -b
  bool to_all = false;        // -f
  std::optional<int> signal;  // -s; else the job ends
  std::string context;
  bool has_filter() const {
    return is_own || !names.empty() || !users.empty() || !states.empty() || !partitions.empty() ||
           !accounts.empty() || !qos.empty() || !nodes.empty();
  }
};

int fail(Output output, const std::string& message) {
  output.err << "scancel: error: " << message << "\n";
  return kExitFailed;
}

base::Status apply(const ReadOption& option, ScancelOptions& options) {
  const auto add = [&](std::set<std::string>& to) {
    for (std::string& word : list_of(option.value)) to.insert(std::move(word));
  };
  const std::string& name = option.name;
  if (name == "name" || name == "jobname") add(options.names);
  if (name == "user") add(options.users);
  if (name == "partition") add(options.partitions);
  if (name == "me") options.is_own = true;
  if (name == "quiet") options.is_quiet = true;
  if (name == "verbose") options.is_verbose = true;
  if (name == "account") add(options.accounts);
  if (name == "qos") add(options.qos);
  if (name == "clusters") options.context = option.value;
  if (name == "nodelist") {
    const auto nodes = slurm::expand_hostlist(option.value);
    if (!nodes) return nodes.error();
    options.nodes.insert(nodes->begin(), nodes->end());
  }
  if (name == "state") {
    const std::string code = state_code_of(option.value);
    if (code != "PD" && code != "R" && code != "S") {
      return base::invalid_argument("Invalid job state specified: " + option.value +
                                    "\nValid job states are PENDING, RUNNING, and SUSPENDED");
    }
    options.states.insert(code);
  }
  if (name == "batch") options.to_script = true;
  if (name == "full") options.to_all = true;
  if (name == "signal") {
    options.signal = slurm::signal_number(option.value);
    if (!options.signal) return base::invalid_argument("Unknown job signal: " + option.value);
  }
  return {};
}

bool is_on(const JobFacts& facts, const std::set<std::string>& nodes) {
  const auto own = slurm::expand_hostlist(facts.hostlist);
  return own.ok() && std::ranges::any_of(*own, [&](const auto& n) { return nodes.contains(n); });
}

bool fits(const std::set<std::string>& wanted, const std::string& value) {
  return wanted.empty() || wanted.contains(value);
}

// Filters by what all tasks of an array share, before each of them becomes a job.
bool may_be_meant(const kube::Job& job, const ScancelOptions& options, const Caller& caller) {
  const JobFacts facts = facts_of(job, {}, base::Instant{});
  return fits(options.names, facts.name) && fits(options.users, facts.user) &&
         fits(options.accounts, job.spec.schedule.account.value_or("")) &&
         fits(options.qos, job.spec.schedule.qos.value_or("")) &&
         (!options.is_own || is_own(job, caller));
}

bool is_meant(const JobFacts& facts, const ScancelOptions& options) {
  const bool is_listed =
      options.asked.empty() || std::ranges::any_of(options.asked, [&](const JobWord& word) {
        return is_named(word, facts.id, facts.array);
      });
  return is_listed && fits(options.states, facts.state_code) &&
         fits(options.partitions, facts.partition) &&
         (options.nodes.empty() || is_on(facts, options.nodes));
}

// SOURCE: recorded (session scancel_kill): KILL ends the job, unless it is for a script that runs.
bool ends_jobs(const ScancelOptions& options, const JobFacts& facts) {
  if (!options.signal) return true;
  return *options.signal == SIGKILL && (!options.to_script || facts.state_code == "PD");
}

// Sends a signal to those who hear it: a step by its number, the script, all, or the steps.
// SOURCE: one that its user has suspended is refused, as recorded.
base::Status send_signal(const Session& session, const JobPart& part, int signal,
                         const std::string& who, base::Duration deadline, Output output) {
  const kube::Job& job = *part.job;
  if (job.spec.control.suspend.value_or(false)) {
    return base::Error{base::Code::kUnavailable, "Job can not be altered now, try again later"};
  }
  const TakenSignals signals;
  const auto task = part.array ? std::optional{part.array->tasks.front()} : std::nullopt;
  const auto pod = first_pod(session, job, task);
  if (!pod) return pod.error();
  if (!*pod) return base::Error{base::Code::kUnavailable, "Job is pending execution"};
  const base::Duration until = std::max(deadline, session.clock.monotonic() + kSignalMin);
  const auto code =
      ask_launcher(session, **pod, {"signal", std::to_string(signal), who}, signals, output, until);
  if (!code && code.error().code == base::Code::kTimeout) {
    return base::Error{code.error().code,
                       "its turn is off: the signal has not been sent, or comes with its turn"};
  }
  if (!code) return code.error();
  if (*code != 0) return base::Error{base::Code::kUnavailable, "its launcher has refused"};
  return {};
}

// The tasks of an array that a word means; all that have not ended are the array.
struct MeantTasks {
  std::shared_ptr<const kube::Job> array;
  std::vector<int> tasks;
  std::size_t all = 0;

  bool is_whole() const { return tasks.size() == all; }
  std::string label(std::int64_t id) const {
    return job_label(id, is_whole() ? std::nullopt : std::optional{ArrayPart{id, tasks}});
  }
};

base::Status cancel_tasks(const Session& session, const MeantTasks& meant) {
  if (meant.is_whole()) return cancel_job(session, *meant.array);
  const kube::ObjectMeta& array = meant.array->metadata;
  const SeenJob seen{.ns = array.ns, .name = array.name, .uid = array.uid, .tasks = meant.tasks};
  return control_seen_job(session, ControlVerb::kCancel, seen).status();
}

// SOURCE: recorded: of an array those tasks hear a signal that run; others that wait are passed
// over.
base::Status signal_part(const Session& session, const JobPart& part, const ScancelOptions& options,
                         base::Duration deadline, Output output) {
  if (part.array && !part.job->status.allocation) return {};
  const char* const who = options.to_script ? "script" : options.to_all ? "all" : "steps";
  return send_signal(session, part, *options.signal, who, deadline, output);
}

// JOB.STEP: its tasks are killed, unless a signal is named.
int cancel_step(const Session& session, const std::string& word, const ScancelOptions& options,
                base::Duration deadline, Output output) {
  const std::size_t dot = word.find('.');
  const auto part = find_part(session, word.substr(0, dot), output);
  const base::Status sent = part ? send_signal(session, *part, options.signal.value_or(SIGKILL),
                                               word.substr(dot + 1), deadline, output)
                                 : part.status();
  if (sent) return kExitOk;
  return fail(output, "Kill job error on job step id " + word + ": " + sent.error().message);
}

// Passes over jobs of a filter that have ended. SOURCE: a number that does not exist is reported.
// It changes the exit code only with a signal, for which a job that has ended does not exist
// either.
int cancel(const Session& session, const ScancelOptions& options, Output output) {
  auto jobs = list_jobs(session, output, options.jobs);
  if (!jobs) return fail(output, jobs.error().message);
  const auto partitions = list_partition_defaults(session, output);
  if (!partitions) return fail(output, partitions.error().message);
  const Caller caller = options.is_own ? caller_of(session) : Caller{};
  const base::Duration deadline = session.clock.monotonic() + kSignalsMax;
  int code = kExitOk;
  for (const std::string& step : options.steps) {
    code = std::max(code, cancel_step(session, step, options, deadline, output));
  }
  if (options.jobs.empty() && !options.has_filter()) return code;
  std::set<std::int64_t> known;
  std::set<std::pair<std::int64_t, int>> known_tasks;  // with a signal
  std::map<std::int64_t, MeantTasks> arrays;
  const auto tell = [&](const std::string& id, const base::Status& changed) {
    if (changed || changed.error().code == base::Code::kNotFound) return;
    code = fail(output, "Kill job error on job id " + id + ": " + changed.error().message);
  };
  for (const kube::Job& job : *jobs) {
    const bool has_ended = job.status.state && kube::is_final(*job.status.state);
    if (!has_ended || !options.signal) known.insert(*job.status.job_id);
  }
  std::erase_if(*jobs, [&](const kube::Job& job) { return !may_be_meant(job, options, caller); });
  for (const JobPart& part : array_parts(std::move(*jobs), ArrayView::kEach, false)) {
    const kube::Job& job = *part.job;
    const JobFacts facts = facts_of(part, *partitions, session.clock.wall());
    const std::string id = job_label(facts.id, facts.array);
    const bool has_ended = job.status.state && kube::is_final(*job.status.state);
    if (part.array && !has_ended) {
      known.insert(facts.id);
      MeantTasks& meant = arrays[part.array->array_id];
      if (meant.all++ == 0) meant.array = part.job;
      if (options.signal) known_tasks.insert({part.array->array_id, part.array->tasks.front()});
    }
    if (has_ended || !is_meant(facts, options)) continue;
    if (options.is_verbose) output.err << "scancel: Terminating job " << id << "\n";
    if (!ends_jobs(options, facts)) {
      tell(id, signal_part(session, part, options, deadline, output));
    } else if (part.array) {
      arrays[part.array->array_id].tasks.push_back(part.array->tasks.front());
    } else {
      tell(id, cancel_job(session, job));
    }
  }
  for (const auto& [id, meant] : arrays) {
    if (!meant.tasks.empty()) tell(meant.label(id), cancel_tasks(session, meant));
  }
  const auto tell_missing = [&](const std::string& id) {
    if (options.signal) code = kExitFailed;
    if (options.is_quiet) return;
    (void)fail(output, "Kill job error on job id " + id + ": Invalid job id specified");
  };
  for (const std::string& word : options.jobs) {
    const JobWord asked = *parse_job_word(word);
    if (!known.contains(asked.id)) {
      tell_missing(word);
    } else if (options.signal && asked.tasks && arrays.contains(asked.id)) {
      for (const int task : *asked.tasks) {
        if (known_tasks.contains({asked.id, task})) continue;
        tell_missing(std::to_string(asked.id) + "_" + std::to_string(task));
      }
    }
  }
  return code;
}

}  // namespace

int run_scancel(std::span<const std::string> arguments, const WithCluster& with_cluster,
                Output output) {
  if (const auto answer = answer_about_itself("scancel", kOptions, arguments)) {
    output.out << *answer;
    return kExitOk;
  }
  const auto words = read_words(kOptions, arguments);
  if (!words) return fail(output, words.error().message);
  ScancelOptions options;
  for (const ReadOption& option : words->options) {
    if (const base::Status status = apply(option, options); !status) {
      return fail(output, status.error().message);
    }
  }
  for (const std::string& word : words->rest) {
    for (const std::string& id : job_words(word)) {
      const std::size_t dot = std::min(id.find('.'), id.size());
      const std::string step = id.substr(std::min(dot + 1, id.size()));
      const bool has_step = dot < id.size();
      const auto is_number = [](const std::string& text) {
        return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
      };
      const auto asked = parse_job_word(id.substr(0, dot));
      const bool is_one = asked && (!asked->tasks || asked->tasks->size() == 1);
      // SOURCE: recorded: several tasks stand in brackets.
      const bool is_open = !is_one && !id.ends_with(']');
      if (!asked || is_open || (has_step && !(is_number(step) && is_one))) {
        return fail(output, "Invalid job id " + id);
      }
      (has_step ? options.steps : options.jobs).push_back(id);
      if (!has_step) options.asked.push_back(*asked);
    }
  }
  if (options.jobs.empty() && options.steps.empty() && !options.has_filter()) {
    return fail(output, "No job identification provided");
  }
  return with_cluster.in(options.context)(
      [&](const Session& session) { return cancel(session, options, output); });
}

SlurmReference scancel_reference() {
  return {.command = "scancel",
          .options = {kOptions.begin(), kOptions.end()},
          .fields = {},
          .words = {}};
}

}  // namespace cli
