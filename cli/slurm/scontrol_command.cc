#include "cli/slurm/scontrol_command.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>

#include "api/array_status.h"
#include "base/number_list.h"
#include "cli/cluster/control.h"
#include "cli/slurm/job_facts.h"
#include "cli/slurm/scontrol_show.h"
#include "cli/slurm/scontrol_update.h"
#include "slurm/array.h"
#include "slurm/hostlist.h"
#include "slurm/text.h"

namespace cli {
namespace {

int fail(Output output, const std::string& message) {
  output.err << "scontrol: error: " << message << "\n";
  return kExitFailed;
}

// Names that follow each other: "n" and 08 to 11. The numbers are digits; "" of a name without.
struct HostRange {
  std::string prefix, first, last;
};

// The number after this one, as wide as it.
std::string next_number(const std::string& digits) {
  std::string next = std::to_string(std::stoll(digits) + 1);
  next.insert(0, digits.size() - std::min(digits.size(), next.size()), '0');
  return next;
}

std::vector<HostRange> ranges_of(const std::vector<std::string>& names) {
  constexpr std::size_t kDigitsMax = 18;
  std::vector<HostRange> ranges;
  for (const std::string& name : names) {
    const std::size_t at = name.find_last_not_of("0123456789") + 1;
    const std::string prefix = name.substr(0, at);
    const std::string number = name.substr(at);
    const bool has_number = !number.empty() && number.size() <= kDigitsMax;
    const bool follows = has_number && !ranges.empty() && ranges.back().prefix == prefix &&
                         !ranges.back().last.empty() && next_number(ranges.back().last) == number;
    if (follows) {
      ranges.back().last = number;
    } else if (has_number) {
      ranges.push_back({prefix, number, number});
    } else {
      ranges.push_back({name, "", ""});
    }
  }
  return ranges;
}

// SOURCE: recorded: "n3,n1,n2" is "n[3,1-2]": names stay where they are, and only those that follow
// each other are joined.
std::string list_in_order(const std::vector<std::string>& names) {
  const std::vector<HostRange> ranges = ranges_of(names);
  std::string text;
  for (std::size_t from = 0, end = 0; from < ranges.size(); from = end) {
    std::string numbers;
    for (end = from; end < ranges.size() && ranges[end].prefix == ranges[from].prefix; ++end) {
      const auto& [prefix, first, last] = ranges[end];
      if (end > from && first.empty()) break;
      numbers += (end == from ? "" : ",") + first + (first == last ? "" : "-" + last);
    }
    const bool is_one = numbers == ranges[from].first;
    text += (text.empty() ? "" : ",") + ranges[from].prefix;
    text += is_one ? numbers : "[" + numbers + "]";
  }
  return text;
}

int show_hosts(const std::string& what, const std::string& list, Output output) {
  const auto names = slurm::expand_hostlist(list);
  if (!names) return fail(output, "Invalid hostlist: " + list);
  if (what == "hostnames") {
    for (const std::string& name : *names) output.out << name << "\n";
  } else {
    output.out << (what == "hostlist" ? list_in_order(*names) : slurm::compress_hostlist(*names))
               << "\n";
  }
  return kExitOk;
}

struct Verb {
  std::string_view name;
  ControlVerb verb;
};
constexpr std::array kVerbs = {
    Verb{"hold", ControlVerb::kHold},       Verb{"uhold", ControlVerb::kHold},
    Verb{"release", ControlVerb::kRelease}, Verb{"requeue", ControlVerb::kRequeue},
    Verb{"suspend", ControlVerb::kSuspend}, Verb{"resume", ControlVerb::kResume},
};

// Why slurmctld would refuse it, in its words; "" if it would not.
std::string refusal(const kube::Job& job, ControlVerb verb) {
  const kube::JobState state = job.status.state.value_or(kube::JobState::kPending);
  if (kube::is_final(state)) return "Job has already finished";
  if (job.spec.array) return "";  // each of its tasks has a state of its own
  if (verb == ControlVerb::kRequeue) {
    // SOURCE: the sentence for a job with --no-requeue.
    if (!job.spec.lifecycle.requeue.value_or(true)) {
      return "Requested operation is presently disabled";
    }
    if (state == kube::JobState::kPending) return "Job is pending execution";
  }
  if (verb == ControlVerb::kSuspend && state == kube::JobState::kPending) {
    return "Job is pending execution";
  }
  if (verb == ControlVerb::kResume && !job.spec.control.suspend.value_or(false)) {
    return "Job is not suspended";
  }
  return "";
}

// A job, or some tasks of it.
struct Named {
  const kube::Job* job = nullptr;
  std::optional<std::vector<int>> tasks{};
};

// Returns what a number names: a job, or, by the number that it has for itself, a task.
std::optional<Named> named_by(const JobWord& word, const kube::Job& job) {
  if (*job.status.job_id == word.id) {
    return Named{&job, word.tasks};
  }
  if (word.tasks || !job.status.array) return std::nullopt;
  for (const kube::ArrayTask& task : job.status.array->tasks) {
    if (task.job_id == word.id) return Named{&job, std::vector{task.task}};
  }
  return std::nullopt;
}

// Returns the jobs of a word: a number, or jobname=NAME, or name=NAME.
std::vector<Named> jobs_of(const std::string& word, const std::vector<kube::Job>& all,
                           base::Instant now) {
  const std::size_t equals = word.find('=');
  const std::string key = word.substr(0, std::min(equals, word.size()));
  const bool by_name = equals != std::string::npos &&
                       (slurm::same_word(key, "jobname") || slurm::same_word(key, "name"));
  const auto number = parse_job_word(word);
  std::vector<Named> found;
  for (const kube::Job& job : all) {
    if (by_name) {
      if (facts_of(job, {}, now).name == word.substr(equals + 1)) found.push_back({&job});
    } else if (const auto named = number ? named_by(*number, job) : std::nullopt) {
      found.push_back(*named);
    }
  }
  return found;
}

// Takes out of the named tasks those of which slurmctld would refuse it, and returns why, in its
// words. SOURCE: recorded: it is done to the others.
std::map<std::string, std::vector<int>> take_refused(Named& named, ControlVerb verb) {
  const kube::Job& job = *named.job;
  const kube::ArrayStatus status = job.status.array.value_or(kube::ArrayStatus{});
  const kube::TaskOutcomes outcomes{status};
  sched::TaskSet exist, run;
  const std::string all = job.spec.array ? job.spec.array->tasks : "";
  const auto array = slurm::parse_array("spec.array.tasks", all, kube::kArrayTasksMax);
  if (array) exist = array->tasks;
  for (const kube::ArrayTask& task : status.tasks) {
    if (task.allocation) run.insert(task.task);
  }
  const bool is_for_running = verb == ControlVerb::kRequeue || verb == ControlVerb::kSuspend;
  std::map<std::string, std::vector<int>> refused;
  std::erase_if(*named.tasks, [&](int task) {
    const std::string why = !exist.contains(task) ? "Invalid job id specified"
                            : outcomes.of(task) != kube::TaskOutcome::kNone
                                ? "Job has already finished"
                            : is_for_running && !run.contains(task) ? "Job is pending execution"
                                                                    : "";
    if (!why.empty()) refused[why].push_back(task);
    return !why.empty();
  });
  return refused;
}

// Does it to one job, or to tasks of one; returns true if nothing of it was refused. A job that is
// named by its name is called by its number.
bool change_named(const Session& session, ControlVerb verb, Named named, const std::string& word,
                  Output output) {
  const std::int64_t id = *named.job->status.job_id;
  const kube::Job& as_it_is = *named.job;
  const bool is_held = as_it_is.status.held || as_it_is.spec.control.hold.value_or(false);
  // SOURCE: recorded: it succeeds.
  const bool is_in_vain = verb == ControlVerb::kRelease && !is_held && !as_it_is.spec.array;
  if (is_in_vain && refusal(as_it_is, verb).empty()) return true;
  if (const std::string why = refusal(*named.job, verb); !why.empty()) {
    output.err << why << " for job " << id << "\n";
    return false;
  }
  bool is_done = true;
  if (named.tasks) {
    for (const auto& [why, tasks] : take_refused(named, verb)) {
      output.err << id << "_" << base::format_number_list(tasks) << ": " << why << "\n";
      is_done = false;
    }
    if (named.tasks->empty()) return is_done;
  }
  const kube::ObjectMeta& job = named.job->metadata;
  const SeenJob seen{.ns = job.ns, .name = job.name, .uid = job.uid, .tasks = named.tasks};
  const auto changed = control_seen_job(session, verb, seen);
  if (changed) return is_done;
  const bool is_name = word.find('=') != std::string::npos;
  (void)fail(output,
             "job " + (is_name ? std::to_string(id) : word) + ": " + changed.error().message);
  return false;
}

int change(const Session& session, ControlVerb verb, const std::vector<std::string>& words,
           Output output) {
  const auto all = list_jobs(session, output, words);
  if (!all) return fail(output, all.error().message);
  int code = kExitOk;
  for (const std::string& word : words) {
    const std::vector<Named> jobs = jobs_of(word, *all, session.clock.wall());
    // SOURCE: recorded: it succeeds for a name that no job has.
    if (jobs.empty() && word.find('=') == std::string::npos) {
      output.err << "Invalid job id specified for job " << word << "\n";
      code = kExitFailed;
    }
    for (const Named& named : jobs) {
      if (!change_named(session, verb, named, word, output)) code = kExitFailed;
    }
  }
  return code;
}

constexpr std::array kOptions = {
    WordOption{'o', "oneliner", WordTakes::kNothing, "a line for each record"},
    WordOption{'Q', "quiet", WordTakes::kNothing, "says no errors"},
    WordOption{'M', "clusters", WordTakes::kValue, "a context of the kubeconfig"},
    WordOption{'a', "all", WordTakes::kNothing, "accepted; it is so anyway"},
    WordOption{'d', "details", WordTakes::kNothing, "accepted without effect"},
    WordOption{'\0', "hide", WordTakes::kNothing, "accepted; it is so anyway"},
    WordOption{'\0', "local", WordTakes::kNothing, "accepted; it is so anyway"},
    WordOption{'v', "verbose", WordTakes::kNothing, "accepted without effect"},
    WordOption{'F', "future", WordTakes::kNothing, "", "kubegang has no future nodes"},
    WordOption{'u', "uid", WordTakes::kValue, "", "use kubectl's --as"},
    WordOption{'\0', "json", WordTakes::kNothing, "", "use kubectl get -o json"},
    WordOption{'\0', "yaml", WordTakes::kNothing, "", "use kubectl get -o yaml"}};

struct Scontrol {
  std::vector<std::string> words;
  ShowOptions show;
  bool is_quiet = false;
};

// "job=1001" and "job 1001" are the same.
int show(const Scontrol& asked, const WithCluster& with_cluster, Output output) {
  if (asked.words.size() < 2) return fail(output, "too few arguments for keyword:show");
  std::string what = asked.words[1];
  std::string which = asked.words.size() > 2 ? asked.words[2] : "";
  if (const std::size_t equals = what.find('='); equals != std::string::npos) {
    which = what.substr(equals + 1);
    what.resize(equals);
    if (asked.words.size() > 2) return fail(output, "too many arguments for keyword:show");
  }
  if (asked.words.size() > 3) return fail(output, "too many arguments for keyword:show");
  if (what == "hostname") what = "hostnames";
  if (what == "hostnames" || what == "hostlist" || what == "hostlistsorted") {
    const char* own = std::getenv("SLURM_JOB_NODELIST");
    if (which.empty() && what == "hostnames" && own != nullptr) which = own;
    // SOURCE: recorded: one of the two is an error.
    if (which.empty() && what != "hostnames") return fail(output, "invalid encode argument");
    if (which.empty()) {
      (void)fail(output, "host list is empty");
      return kExitOk;
    }
    return show_hosts(what, which, output);
  }
  const auto is = [&](std::string_view name, std::size_t least) {
    return what.size() >= least && slurm::same_word(name.substr(0, what.size()), what);
  };
  using Show = std::function<int(const Session&)>;
  Show use;
  if (is("jobids", 1)) {
    use = [&](const Session& s) { return show_job(s, which, asked.show, output); };
  } else if (is("jobs", 1)) {
    use = [&](const Session& s) { return show_job(s, which, asked.show, output); };
  } else if (is("nodes", 1)) {
    use = [&](const Session& s) { return show_node(s, which, asked.show, output); };
  } else if (is("partitions", 1)) {
    use = [&](const Session& s) { return show_partition(s, which, asked.show, output); };
  } else if (is("licenses", 2)) {
    use = [&](const Session& s) { return show_licenses(s, which, asked.show, output); };
  } else if (is("config", 2)) {
    use = [&](const Session& s) { return show_config(s, output); };
  } else {
    output.err << "invalid entity:" << what << " for keyword:show (here are job, node, partition, "
               << "licenses, config, hostnames, hostlist, hostlistsorted)\n";
    return kExitFailed;
  }
  return with_cluster(use);
}

int run_verb(const Scontrol& asked, const WithCluster& with_cluster, Output output) {
  const std::string& name = asked.words[0];
  const auto verb = std::ranges::find(kVerbs, std::string_view{name}, &Verb::name);
  if (verb == kVerbs.end()) {
    output.err << "invalid keyword: " << name << " (here are show, update, ping, hold, uhold, "
               << "release, requeue, suspend, resume, version)\n";
    return kExitFailed;
  }
  std::vector<std::string> jobs;
  for (std::size_t i = 1; i < asked.words.size(); ++i) {
    for (std::string& id : job_words(asked.words[i])) {
      const std::string_view key = "jobid=";
      const bool has_key = slurm::lower_case(id).starts_with(key);
      jobs.push_back(has_key ? id.substr(key.size()) : std::move(id));
    }
  }
  if (jobs.empty()) {
    output.err << "too few arguments for keyword:" << name << "\n";
    return kExitFailed;
  }
  return with_cluster([&](const Session& s) { return change(s, verb->verb, jobs, output); });
}

int run(const Scontrol& asked, const WithCluster& with_cluster, Output output) {
  const std::string& verb = asked.words.front();
  if (verb == "show") return show(asked, with_cluster, output);
  if (verb == "ping") return with_cluster([&](const Session& s) { return show_ping(s, output); });
  if (verb == "update") {
    return with_cluster(
        [&](const Session& s) { return run_update(s, std::span{asked.words}.subspan(1), output); });
  }
  return run_verb(asked, with_cluster, output);
}

}  // namespace

int run_scontrol(std::span<const std::string> arguments, const WithCluster& with_cluster,
                 Output output) {
  auto about = answer_about_itself("scontrol", kOptions, arguments);
  if (!arguments.empty() && arguments[0] == "version") {
    about = answer_about_itself("scontrol", kOptions, std::vector<std::string>{"--version"});
  }
  if (about) {
    output.out << *about;
    return kExitOk;
  }
  auto words = read_words(kOptions, arguments);
  if (!words) return fail(output, words.error().message);
  Scontrol asked;
  asked.words = std::move(words->rest);
  std::string context;
  for (const ReadOption& option : words->options) {
    if (option.name == "oneliner") asked.show.one_line = true;
    if (option.name == "quiet") asked.is_quiet = true;
    if (option.name == "clusters") context = option.value;
  }
  if (asked.words.empty()) {
    return fail(output, "say what to do, for example: scontrol show job 1001");
  }
  std::ostringstream unsaid;
  const Output told{.out = output.out, .err = asked.is_quiet ? unsaid : output.err};
  return run(asked, with_cluster.in(context), told);
}

SlurmReference scontrol_reference() {
  SlurmReference reference{
      .command = "scontrol",
      .options = {kOptions.begin(), kOptions.end()},
      .fields = {},
      .words = {"show job", "show node", "show partition", "show licenses", "show config",
                "show hostnames", "show hostlist", "show hostlistsorted", "ping", "version"}};
  for (const Verb& verb : kVerbs) reference.words.emplace_back(verb.name);
  for (std::string& update : update_reference()) reference.words.push_back(std::move(update));
  return reference;
}

}  // namespace cli
