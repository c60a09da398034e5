#include "cli/scenario_inputs.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "cli/scenario.h"
#include "slurm/array.h"
#include "slurm/conf.h"
#include "slurm/conf_actions.h"
#include "slurm/hostlist.h"
#include "slurm/quantities.h"
#include "slurm/sbatch.h"

namespace cli {
namespace {

// An input is a map with a time (t) and one of these keys, which says what happens.
constexpr std::array<std::string_view, 13> kKinds = {
    "submit", "pass",    "slice",  "end",     "timeLimit", "suspend", "resume",
    "hold",   "release", "cancel", "requeue", "node",      "scontrol"};

// Returns the keys that may stand beside the one that names the kind; `t` and `refused` always may.
std::vector<std::string_view> companions(std::string_view kind) {
  if (kind == "submit") return {"args", "run", "user", "mode"};
  if (kind == "end") return {"exit", "signal"};
  if (kind == "node") return {"state"};
  return {};
}

}  // namespace

// The node names are kept as a list, for partitions with all nodes, and as a set, for look-ups: a
// scenario may have a million inputs.
ScenarioInputs::ScenarioInputs(const YamlFile& file, simulate::Scenario& scenario,
                               PartitionKeys partition_keys,
                               std::optional<std::set<std::string>> users)
    : file_{file},
      scenario_{scenario},
      users_{std::move(users)},
      keys_at_first_{std::move(partition_keys)},
      partition_keys_{keys_at_first_},
      configuration_{scenario.configuration} {
  for (const sched::NodeSpec& node : scenario.nodes) node_names_.push_back(node.name);
  known_nodes_.insert(node_names_.begin(), node_names_.end());
}

// Returns the kind of an input: the one key that names one. If there is none, the message names the
// first key that is not t: most likely it is a misspelled kind.
base::Result<std::string> ScenarioInputs::kind_of(const Entries& entries,
                                                  const Place& place) const {
  std::string kind;
  for (const Entry& entry : entries) {
    if (std::find(kKinds.begin(), kKinds.end(), entry.key) == kKinds.end()) continue;
    if (!kind.empty()) return at(entry.place, "an input has one of " + kind + " and " + entry.key);
    kind = entry.key;
  }
  if (!kind.empty()) return kind;
  for (const Entry& entry : entries) {
    if (entry.key != "t") return at(entry.place, slurm::unknown_word("input", entry.key, kKinds));
  }
  return at(place, slurm::unknown_word("input", "", kKinds));
}

// Reads the form of an input, whatever its kind:
// 1. the kind
// 2. every other key belongs to that kind
// 3. the time, and whether Slurm refused the input
// {t: 5, end: A, exit: 3} is of the kind `end`; `exit` is one of its companions, and `state` would
// be refused with a list of what may stand there.
base::Result<ScenarioInputs::RawInput> ScenarioInputs::read_raw(const YAML::Node& map) const {
  const base::Result<Entries> all = file_.entries(map, "an input");
  if (!all) return all.error();
  RawInput input;
  input.place = file_.place(map);
  const base::Result<std::string> kind = kind_of(*all, input.place);
  if (!kind) return kind.error();
  input.kind = *kind;
  std::vector<std::string_view> allowed = companions(input.kind);
  allowed.insert(allowed.end(), {"t", "refused", input.kind});
  for (const Entry& entry : *all) {
    if (std::find(allowed.begin(), allowed.end(), entry.key) == allowed.end()) {
      return at(entry.place,
                slurm::unknown_word("key of the input " + input.kind, entry.key, allowed));
    }
    input.fields[entry.key] = entry;
  }
  if (input.fields.count("t") == 0) return at(input.place, "t: is missing");
  const base::Result<base::Duration> t = seconds(input.fields["t"]);
  if (!t) return t.error();
  input.at = base::Instant{*t};
  if (const auto refused = input.fields.find("refused"); refused != input.fields.end()) {
    const base::Result<std::string> text = word(refused->second);
    if (!text) return text.error();
    const base::Result<bool> read = slurm::parse_boolean("refused", *text);
    if (!read) return at(refused->second.place, read.error());
    input.refused = *read;
  }
  return input;
}

// Reads all inputs, in the order of the file, which must be that of their times. While it reads,
// the state of the cluster is followed as far as inputs need it: the jobs that were submitted, by
// label and number; each job's request and the configuration with all updates so far, because the
// scheduler takes whole ones and `scontrol update` names only what changes.
//
// Only when all inputs are read is it known if the scenario tells its passes and ends, or plays by
// itself. Two errors (endless_, unknown_mode_) concern scenarios that play by themselves, so they
// are kept until then.
// So this reader plays the administrator's and the users' part ahead of the simulation: it follows
// what they change, and nothing that the scheduler decides. Whether a job still waits when an
// update comes is found out when the scenario is played.
base::Status ScenarioInputs::read(const YAML::Node& list) {
  if (!list.IsSequence()) return at(file_.place(list), "inputs: must be a list");
  if (list.size() > kScenarioInputsMax) {
    return at(file_.place(list), "inputs: more than " + std::to_string(kScenarioInputsMax));
  }
  for (const YAML::Node& map : list) {
    const base::Result<RawInput> raw = read_raw(map);
    if (!raw) return raw.error();
    if (!scenario_.inputs.empty() && raw->at < scenario_.inputs.back().at) {
      return at(raw->place, "t: is before that of the input above it");
    }
    simulate::Input input{.at = raw->at, .happening = {}};
    // An input that Slurm refused in the recording is kept as an empty happening: it takes its
    // place in the list of steps, and its arguments need not be legal here.
    if (!raw->refused) {
      base::Result<simulate::Happening> read = happening(*raw);
      if (!read) return read.error();
      input.happening = std::move(read).value();
    }
    scenario_.inputs.push_back(std::move(input));
  }
  if (scenario_.timing_is_told()) return {};
  if (unknown_mode_) return *unknown_mode_;
  if (endless_ && !scenario_.end) return *endless_;
  return {};
}

// Reads an input by its kind. The six commands and timeLimit have nothing but a job, and share one
// reader. `slice: true` has no arguments; any other value is refused, so that `slice: false` does
// not count as a slice.
base::Result<simulate::Happening> ScenarioInputs::happening(const RawInput& input) {
  if (input.kind == "submit") return submit(input);
  if (input.kind == "pass") return pass(input);
  if (input.kind == "end") return end(input);
  if (input.kind == "node") return node_state(input);
  if (input.kind == "scontrol") return scontrol(input);
  if (input.kind == "slice") {
    const Entry& entry = input.fields.at("slice");
    const base::Result<std::string> text = word(entry);
    if (!text) return text.error();
    if (*text != "true")
      return at(entry.place, "slice " + slurm::in_quotes(*text) + ": must be true");
    return simulate::Happening{simulate::TellSlice{}};
  }
  return command(input);
}

// A submission makes the job, too. Jobs are numbered in the order of the file, from 1 on, also
// those whose submission is refused later by the scheduler: so a job's number is known while the
// file is read, and {LABEL} can stand for it in later inputs.
base::Result<simulate::Happening> ScenarioInputs::submit(const RawInput& input) {
  const Entry& entry = input.fields.at("submit");
  const base::Result<std::string> label = word(entry);
  if (!label) return label.error();
  if (label->empty()) return at(entry.place, "submit: the job's name is missing");
  if (jobs_by_label_.count(*label) != 0) {
    return at(entry.place,
              "submit " + slurm::in_quotes(*label) + ": a job of this name was submitted before");
  }
  simulate::Job job;
  job.label = *label;
  base::Status status = read_job(input, job);
  if (status) status = check_names(input, job);
  if (!status) return status.error();
  if (job.request.name.empty()) job.request.name = *label;
  job.request.id = sched::JobId{static_cast<std::int64_t>(scenario_.jobs.size()) + 1};
  job.request.submit_time = input.at;
  jobs_by_label_[*label] = job.request.id;
  // Only an error if nothing ends the simulation; that is known when all inputs are read.
  if (!job.work && !endless_) {
    endless_ = at(entry.place, "submit " + slurm::in_quotes(*label) +
                                   ": say how many seconds it runs (run), or " +
                                   "when the scenario ends (end)");
  }
  requests_.push_back(job.request);
  const simulate::SubmitJob submitted{job.request.id};
  scenario_.jobs.push_back(std::move(job));
  add_tasks(submitted.job);
  return simulate::Happening{submitted};
}

// The tasks of an array are jobs of the scenario, too: LABEL_0, LABEL_1, …
void ScenarioInputs::add_tasks(sched::JobId id) {
  const simulate::Job array = scenario_.job(id);
  if (!array.request.array) return;
  simulate::Job job = array;
  job.request.array.reset();
  array.request.array->tasks.each([&](int task) {
    job.label = array.label + "_" + std::to_string(task);
    job.request.id = sched::JobId::of_task(id, task);
    jobs_by_label_[job.label] = job.request.id;
    requests_.push_back(job.request);
    scenario_.jobs.push_back(job);
  });
}

// Reads the keys that stand beside `submit`. `args` are sbatch's words, in which {LABEL} stands for
// the number of an earlier job; `run` is how long the job's program works; `mode: ignoreterm` makes
// it ignore SIGTERM, so it ends only when its kill wait is over. The users of recordings are root
// unless they say otherwise.
base::Status ScenarioInputs::read_job(const RawInput& input, simulate::Job& job) {
  if (const auto args = input.fields.find("args"); args != input.fields.end()) {
    const base::Result<std::string> text = word(args->second);
    if (!text) return text.error();
    const base::Result<std::string> line = with_job_ids(*text);
    if (!line) return at(args->second.place, line.error());
    // sbatch counts in whole seconds: "now+10" may be a little less than that.
    base::Result<slurm::BatchOptions> options = slurm::read_sbatch_line(
        *line, {.instant = sched::whole_second(scenario_.configuration.cluster, input.at)});
    if (!options) return at(args->second.place, options.error().with_context("args"));
    job.request = std::move(options->request);
  }
  if (const auto run = input.fields.find("run"); run != input.fields.end()) {
    const base::Result<base::Duration> work = seconds(run->second);
    if (!work) return work.error();
    job.work = *work;
  }
  if (const auto mode = input.fields.find("mode"); mode != input.fields.end()) {
    const base::Result<std::string> text = word(mode->second);
    if (!text) return text.error();
    job.ignores_term = *text == "ignoreterm";
    if (!job.ignores_term && !unknown_mode_) {
      unknown_mode_ = at(mode->second.place, slurm::unknown_word("mode", *text, {{"ignoreterm"}}));
    }
  }
  job.request.user = "root";
  if (const auto user = input.fields.find("user"); user != input.fields.end()) {
    const base::Result<std::string> text = word(user->second);
    if (!text) return text.error();
    if (users_ && users_->count(*text) == 0) {
      return at(user->second.place, "user " + slurm::in_quotes(*text) + ": is not among the users");
    }
    job.request.user = *text;
  }
  return {};
}

// A reference to something that does not exist is an error of the file, not a refusal by the
// scheduler: a misspelled partition would otherwise be a scenario without a job. It also fills in
// what sacctmgr would have: in the recordings every user had the QOS `normal` if there was one.
// The names are those of the file: scontrol changes partitions here, and never adds or removes one.
base::Status ScenarioInputs::check_names(const RawInput& input, simulate::Job& job) const {
  const auto named = [](const auto& list, const std::string& name) {
    return std::any_of(list.begin(), list.end(),
                       [&](const auto& item) { return item.name == name; });
  };
  sched::JobRequest& request = job.request;
  const sched::Configuration& configuration = scenario_.configuration;
  // sacctmgr gives every user the QOS `normal`.
  if (request.qos.empty() && named(configuration.qos, "normal")) request.qos = "normal";
  if (!request.qos.empty() && !named(configuration.qos, request.qos)) {
    return at(input.place, "args: there is no QOS " + slurm::in_quotes(request.qos));
  }
  for (const std::string& name : request.partitions) {
    if (!named(configuration.partitions, name)) {
      return at(input.place, "args: there is no partition " + slurm::in_quotes(name));
    }
  }
  for (const auto* list : {&request.required_nodes, &request.excluded_nodes}) {
    for (const std::string& name : *list) {
      if (known_nodes_.count(name) == 0) {
        return at(input.place, "args: there is no node " + slurm::in_quotes(name));
      }
    }
  }
  return {};
}

// Told timing: which passes Slurm made at this instant. Both in one input, because Slurm's backfill
// follows its main pass within the same second.
base::Result<simulate::Happening> ScenarioInputs::pass(const RawInput& input) const {
  const Entry& entry = input.fields.at("pass");
  const base::Result<std::string> text = word(entry);
  if (!text) return text.error();
  simulate::TellPass pass;
  pass.main = *text == "main" || *text == "both";
  pass.backfill = *text == "backfill" || *text == "both";
  if (!pass.main && !pass.backfill) {
    return at(entry.place, slurm::unknown_word("pass", *text, {"main", "backfill", "both"}));
  }
  return simulate::Happening{pass};
}

// Returns the whole number of an optional key, `otherwise` if the key is absent.
base::Result<int> ScenarioInputs::number(const RawInput& input, const std::string& key,
                                         int otherwise, slurm::IntegerRange range) const {
  const auto found = input.fields.find(key);
  if (found == input.fields.end()) return otherwise;
  const base::Result<std::string> text = word(found->second);
  if (!text) return text.error();
  const base::Result<std::int64_t> read = slurm::parse_integer(key, *text, range);
  if (!read) return at(found->second.place, read.error());
  return static_cast<int>(*read);
}

// Told timing: the job's program ends by itself with this exit code, or by this signal. The bounds
// are those of a process: an exit code has 8 bits, and Linux has 64 signals.
base::Result<simulate::Happening> ScenarioInputs::end(const RawInput& input) const {
  const base::Result<sched::JobId> id = job(input.fields.at("end"));
  if (!id) return id.error();
  const base::Result<int> exit_code = number(input, "exit", 0, {.min = 0, .max = 255});
  if (!exit_code) return exit_code.error();
  const base::Result<int> signal = number(input, "signal", 0, {.min = 0, .max = 64});
  if (!signal) return signal.error();
  return simulate::Happening{simulate::TellEnd{*id, *exit_code, *signal}};
}

// Reads an input that names only a job: one of six commands, or timeLimit, which is the instant at
// which Slurm noticed that the job had used up its limit.
base::Result<simulate::Happening> ScenarioInputs::command(const RawInput& input) const {
  const base::Result<sched::JobId> id = job(input.fields.at(input.kind));
  if (!id) return id.error();
  using simulate::CommandKind;
  constexpr std::array<std::pair<std::string_view, CommandKind>, 6> kCommands = {
      {{"suspend", CommandKind::kSuspend},
       {"resume", CommandKind::kResume},
       {"hold", CommandKind::kHold},
       {"release", CommandKind::kRelease},
       {"cancel", CommandKind::kCancel},
       {"requeue", CommandKind::kRequeue}}};
  for (const auto& [name, kind] : kCommands) {
    if (name == input.kind) return simulate::Happening{simulate::Command{kind, *id}};
  }
  return simulate::Happening{simulate::TellTimeLimit{*id}};
}

// `scontrol update NodeName=… State=…`, for a hostlist of nodes. RESUME is Slurm's word for taking
// a state back that an administrator has set. The hostlist is expanded here, so the simulation gets
// names only.
base::Result<simulate::Happening> ScenarioInputs::node_state(const RawInput& input) const {
  const Entry& entry = input.fields.at("node");
  const base::Result<std::string> text = word(entry);
  if (!text) return text.error();
  const base::Result<std::vector<std::string>> names = slurm::expand_hostlist(*text);
  if (!names) return at(entry.place, names.error().with_context("node"));
  for (const std::string& name : *names) {
    if (known_nodes_.count(name) == 0) {
      return at(entry.place, "node: there is no node " + slurm::in_quotes(name));
    }
  }
  const auto state = input.fields.find("state");
  if (state == input.fields.end()) return at(input.place, "state: is missing");
  const base::Result<std::string> wanted = word(state->second);
  if (!wanted) return wanted.error();
  simulate::SetNodeState change{.nodes = *names, .state = sched::NodeState::kUp};
  const base::Status chosen = slurm::choose(change.state, "state", *wanted,
                                            {{"DOWN", sched::NodeState::kDown},
                                             {"DRAIN", sched::NodeState::kDrain},
                                             {"RESUME", sched::NodeState::kUp}});
  if (!chosen) return at(state->second.place, chosen.error());
  return simulate::Happening{std::move(change)};
}

// Reads a line of scontrol. Three forms are understood; a scheduler does not need the rest.
// 1. reconfigure
// 2. update PartitionName=…: the configuration with one partition changed
// 3. update JobId=…: the request with some fields changed
// {LABEL} is replaced first, so "update JobId={A} Nice=5" arrives here as "update JobId=1 Nice=5".
base::Result<simulate::Happening> ScenarioInputs::scontrol(const RawInput& input) {
  const Entry& entry = input.fields.at("scontrol");
  const base::Result<std::string> text = word(entry);
  if (!text) return text.error();
  const base::Result<std::string> line = with_job_ids(*text);
  if (!line) return at(entry.place, line.error());
  const base::Result<std::vector<std::string>> words = slurm::split_words(*line);
  if (!words) return at(entry.place, words.error());
  const auto refuse = [&] {
    return at(entry.place, "scontrol " + slurm::in_quotes(*text) +
                               ": supported are reconfigure, update PartitionName=… KEY=VALUE … "
                               "and update JobId=… KEY=VALUE …");
  };
  if (words->size() == 1 && slurm::same_word(words->front(), "reconfigure")) return reconfigure();
  if (words->size() < 3 || !slurm::same_word(words->front(), "update")) return refuse();
  std::vector<slurm::KeyValue> keys;
  for (std::size_t i = 1; i < words->size(); ++i) {
    const auto [key, value] = slurm::split_option((*words)[i]);
    keys.push_back({std::string{key}, std::string{value}});
  }
  // Never returned as it is: each of the two forms below sets it.
  base::Result<simulate::Happening> read = base::invalid_argument("");
  if (slurm::same_word(keys.front().key, "PartitionName")) {
    read = scontrol_partition(keys);
  } else if (slurm::same_word(keys.front().key, "JobId")) {
    read = scontrol_job(keys);
  } else {
    return refuse();
  }
  if (!read) return at(entry.place, read.error().with_context("scontrol"));
  return read;
}

// slurm.conf is read again: what was updated since is as it was. Requests are not reset: what was
// updated of a job belongs to the job and not to the file.
// For example "update PartitionName=p MaxTime=10" and then "reconfigure": the partition has the
// MaxTime of the file again.
simulate::Happening ScenarioInputs::reconfigure() {
  partition_keys_ = keys_at_first_;
  configuration_ = scenario_.configuration;
  return simulate::SetConfiguration{configuration_};
}

// The scheduler takes whole configurations, so the input is the present one with this partition
// exchanged. It is checked before it is kept: a refused update leaves everything as it was.
// The keys that were added are kept, or the next update of the partition would undo this one.
base::Result<simulate::Happening> ScenarioInputs::scontrol_partition(
    const std::vector<slurm::KeyValue>& keys) {
  for (std::size_t i = 0; i < configuration_.partitions.size(); ++i) {
    if (configuration_.partitions[i].name != keys.front().value) continue;
    // The partition is read again from all of its keys, the new ones last: slurm.conf's rule that
    // the last value of a key wins also holds for updates.
    std::vector<slurm::KeyValue> all = partition_keys_[i];
    all.insert(all.end(), keys.begin() + 1, keys.end());
    base::Result<sched::PartitionConfig> updated = slurm::read_partition_keys(all, node_names_);
    if (!updated) return updated.error();
    sched::Configuration changed = configuration_;
    changed.partitions[i] = std::move(updated).value();
    const base::Status legal = check_legal(changed);
    if (!legal) return legal.error();
    partition_keys_[i] = std::move(all);
    configuration_ = std::move(changed);
    return simulate::Happening{simulate::SetConfiguration{configuration_}};
  }
  return base::invalid_argument("there is no partition " + slurm::in_quotes(keys.front().value));
}

// The scheduler takes whole requests, so the input is the job's present one with the fields
// changed. The number must be that of a job above in the file.
base::Result<simulate::Happening> ScenarioInputs::scontrol_job(
    const std::vector<slurm::KeyValue>& keys) {
  const std::optional<sched::JobId> named = slurm::parse_job_id(keys.front().value);
  if (!named || !scenario_.has(*named)) {
    return base::invalid_argument("JobId " + slurm::in_quotes(keys.front().value) +
                                  ": there is no such job");
  }
  const sched::JobId id = *named;
  const slurm::KeyValue& first = keys[1];
  // A priority of 0 holds the job (R9.1).
  // Beside other keys it is refused (update_job), because a hold is a command and no part of a
  // request.
  if (keys.size() == 2 && slurm::same_word(first.key, "Priority") && first.value == "0") {
    return simulate::Happening{simulate::Command{simulate::CommandKind::kHold, id}};
  }
  // An update changes some fields of the request as it stands after the updates before it.
  simulate::UpdateJob update{requests_[scenario_.index_of(id)]};
  for (std::size_t i = 1; i < keys.size(); ++i) {
    const base::Status status = update_job(keys[i], update.request);
    if (!status) return status.error();
  }
  // A change of an array holds for its tasks, too.
  requests_[scenario_.index_of(id)] = update.request;
  base::Status status;
  scenario_.each_task(id, [&](sched::JobId task) {
    sched::JobRequest& request = requests_[scenario_.index_of(task)];
    for (std::size_t i = 1; i < keys.size() && status && task != id; ++i) {
      if (!slurm::same_word(keys[i].key, "ArrayTaskThrottle"))
        status = update_job(keys[i], request);
    }
  });
  if (!status) return status.error();
  return simulate::Happening{std::move(update)};
}

// Reads one KEY=VALUE of `scontrol update JobId`. 4294967293 is Slurm's largest priority: the two
// numbers above it mean "not set" and "infinite". The keys are those of the recordings; any other
// is refused with their list. Names are checked against the configuration of this instant, with all
// updates before it.
base::Status ScenarioInputs::update_job(const slurm::KeyValue& key,
                                        sched::JobRequest& request) const {
  const auto there_is = [&](const auto& all, const std::string& name) {
    return std::any_of(all.begin(), all.end(), [&](const auto& each) { return each.name == name; });
  };
  if (slurm::same_word(key.key, "TimeLimit")) {
    const auto limit = slurm::parse_limit("TimeLimit", key.value);
    if (limit) request.time_limit = limit->value_or(slurm::kUnlimited);
    return limit.status();
  }
  if (slurm::same_word(key.key, "Priority")) {
    std::uint32_t priority = 0;
    const base::Status status =
        slurm::set_integer(priority, "Priority", key.value, {.min = 1, .max = 4'294'967'293});
    request.priority = sched::Priority{priority};
    request.hold = false;  // zero was what held it
    return status;
  }
  if (slurm::same_word(key.key, "ArrayTaskThrottle") && request.array) {
    int at_once = 0;
    const base::Status status = slurm::set_integer(at_once, "ArrayTaskThrottle", key.value,
                                                   {.min = 0, .max = sched::JobId::kTasksMax});
    request.array->at_once.reset();  // 0 means no bound
    if (at_once > 0) request.array->at_once = at_once;
    return status;
  }
  if (slurm::same_word(key.key, "Nice"))
    return slurm::set_integer(request.nice, "Nice", key.value, {.min = 0});
  if (slurm::same_word(key.key, "Partition")) {
    request.partitions = slurm::split(key.value, ',');
    for (const std::string& name : request.partitions) {
      if (there_is(configuration_.partitions, name)) continue;
      return base::invalid_argument("there is no partition " + slurm::in_quotes(name));
    }
    return {};
  }
  if (slurm::same_word(key.key, "QOS")) {
    request.qos = key.value;
    if (there_is(configuration_.qos, key.value)) return {};
    return base::invalid_argument("there is no QOS " + slurm::in_quotes(key.value));
  }
  return slurm::unknown_word(
      "update JobId", key.key,
      {"TimeLimit", "Priority", "Nice", "Partition", "QOS", "ArrayTaskThrottle"});
}

// Returns the number of the job whose label is the value of this key.
base::Result<sched::JobId> ScenarioInputs::job(const Entry& entry) const {
  const base::Result<std::string> label = word(entry);
  if (!label) return label.error();
  const auto found = jobs_by_label_.find(*label);
  if (found == jobs_by_label_.end()) {
    return at(entry.place,
              entry.key + " " + slurm::in_quotes(*label) + ": no such job was submitted before");
  }
  return found->second;
}

// Puts job numbers in the place of {LABEL}. A number has no braces, so the search goes on where the
// last one was put.
base::Result<std::string> ScenarioInputs::with_job_ids(std::string text) const {
  for (std::size_t open = text.find('{'); open != std::string::npos; open = text.find('{', open)) {
    const std::size_t close = text.find('}', open);
    if (close == std::string::npos) return base::invalid_argument("no } for the {");
    const std::string label = text.substr(open + 1, close - open - 1);
    const auto found = jobs_by_label_.find(label);
    if (found == jobs_by_label_.end()) {
      return base::invalid_argument("{" + label + "}: no such job was submitted before");
    }
    text.replace(open, close - open + 1, to_string(found->second));
  }
  return text;
}

}  // namespace cli
