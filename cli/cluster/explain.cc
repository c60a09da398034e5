#include "cli/cluster/explain.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "api/array_status.h"
#include "api/device_resources.h"
#include "api/partition.h"
#include "cli/cluster/outlook.h"
#include "cli/cluster/read.h"
#include "cli/cluster/task_control.h"
#include "kube/api/event.h"
#include "kube/api/json_text.h"
#include "kube/api/time_format.h"
#include "slurm/array.h"
#include "slurm/hostlist.h"
#include "slurm/quantities.h"
#include "view/queue_lines.h"

namespace cli {
namespace {

using Json = nlohmann::ordered_json;

// The facts behind an explanation. `moment` and `turns` hold for the instant `now`, as all of it
// does.
struct Facts {
  kube::Job job;                            // of a task of an array its own
  std::optional<int> task;                  // of an array
  std::int64_t array = 0;                   // its number
  std::vector<kube::Partition> partitions;  // those of the job that may be read
  std::vector<kube::Job> others;            // that it may wait for, or take turns with
  std::vector<kube::Event> events;          // of the job, the oldest first
  base::Instant now{};
  view::JobMoment moment;
  std::optional<view::SharedTurns> turns;
};

// Returns the job of this UID; null if it may not be read or is gone.
const kube::Job* find_uid(const std::vector<kube::Job>& jobs, const std::string& uid) {
  const auto found =
      std::ranges::find_if(jobs, [&](const kube::Job& job) { return job.metadata.uid == uid; });
  return found == jobs.end() ? nullptr : &*found;
}

// Returns "default/big (7)", the number once an operator has given it one.
std::string name_of(const kube::Job& job) {
  return job.metadata.ns + "/" + job.metadata.name +
         (job.status.job_id ? " (" + std::to_string(*job.status.job_id) + ")" : "");
}

std::string name_of(const Facts& facts) {
  if (!facts.task) return name_of(facts.job);
  const std::string task = "_" + std::to_string(*facts.task);
  return facts.job.metadata.ns + "/" + facts.job.metadata.name + task + " (" +
         std::to_string(facts.array) + task + ")";
}

// Returns the array as the job that one of its tasks is: as its entry says, as it has ended, or as
// the rest waits.
kube::Job task_of(kube::Job job, int task) {
  const TaskWishes wishes{job.spec.control.tasks};
  const kube::ArrayStatus array = job.status.array.value_or(kube::ArrayStatus{});
  job.spec.array.reset();
  job.spec.control.tasks.clear();
  job.status.array.reset();
  const kube::TaskOutcome outcome = kube::TaskOutcomes{array}.of(task);
  const auto entry = std::ranges::find(array.tasks, task, &kube::ArrayTask::task);
  const auto end = std::ranges::find(array.ended, task, &kube::TaskEnd::task);
  if (outcome == kube::TaskOutcome::kNone && entry != array.tasks.end()) {
    job.status = kube::task_status(*entry, job.status);
  } else if (outcome != kube::TaskOutcome::kNone && end != array.ended.end()) {
    job.status = kube::task_status(*end, job.status);
  } else if (outcome != kube::TaskOutcome::kNone) {
    job.status = {.state = kube::state_of(outcome), .submit_time = job.status.submit_time};
    job.status.message = "an array keeps no more of it; sacct shows what is recorded";
  } else {
    job.status.job_id.reset();
    job.status.state = kube::JobState::kPending;
    job.status.exit_code.reset();
  }
  const auto hold = wishes.hold.find(task);
  if (hold != wishes.hold.end()) job.spec.control.hold = hold->second;
  return job;
}

// Returns "Label       text", the text broken at blanks so that no line is longer than the terminal
// is wide and later lines stand below the text. Without a terminal nothing is broken: a program
// looks for a line.
// Counts bytes, so a text with letters beyond ASCII gets somewhat shorter lines.
std::string paragraph(const std::string& label, const std::string& text,
                      std::optional<std::size_t> columns) {
  constexpr std::size_t kLabelWidth = 12;
  std::string out = label + std::string(kLabelWidth - std::min(kLabelWidth, label.size()), ' ');
  std::size_t column = out.size();
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    begin = end + 1;
    // A word that is longer than a line stands in a line of its own: it may be a name to copy.
    if (columns && column > kLabelWidth && column + 1 + word.size() > *columns) {
      out += "\n" + std::string(kLabelWidth, ' ');
      column = kLabelWidth;
    } else if (column > kLabelWidth) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out + "\n";
}

// Returns "" for an instant that is not known, which add() leaves out.
std::string instant(const std::optional<base::Instant>& t) {
  return t ? kube::format_time(*t) : "";
}

// Adds a line; nothing without a text.
void add(Lines& out, const std::string& label, const std::string& text) {
  if (!text.empty()) out.emplace_back(label, text);
}

// Returns "ends as Preempted, …, for ns/name; killed at …": an ending is under way as long as the
// job's pods have their grace time.
std::string ending_text(const kube::JobEnding& ending) {
  std::string text = "ends as " + std::string{to_string(ending.verdict)};
  if (!ending.reason.empty()) text += ", " + ending.reason;
  if (ending.by) text += ", for " + kube::to_string(*ending.by);
  if (ending.grace_end) text += "; killed at " + kube::format_time(*ending.grace_end);
  return text;
}

// Adds why nodes take no new jobs: the nodes of a job that has some, else all nodes of the
// partition, since a waiting job gets none of them.
void add_unusable(Lines& out, const kube::Job& job, const kube::Partition& partition) {
  std::set<std::string> own;
  if (job.status.allocation) {
    const auto names = slurm::expand_hostlist(job.status.allocation->hostlist);
    if (names) own.insert(names->begin(), names->end());
  }
  for (const kube::UnusableNodes& group : partition.status.unusable) {
    std::string which = std::to_string(group.nodes) + " of " +
                        std::to_string(partition.status.nodes.value_or(0)) + " nodes of " +
                        partition.metadata.name + " take no new jobs: " + group.hostlist;
    if (job.status.allocation) {
      auto names = slurm::expand_hostlist(group.hostlist);
      if (!names) continue;
      std::erase_if(*names, [&](const std::string& name) { return !own.contains(name); });
      if (names->empty()) continue;
      which = slurm::compress_hostlist(*names);
    }
    add(out, "Unusable", which + " " + group.message + " (" + group.reason + ")");
  }
}

// Returns the partitions that the job is in, or waits for: the status lists those with commas. A
// job that runs is in one of them.
std::vector<std::string> partitions_of(const kube::Job& job) {
  std::vector<std::string> names;
  std::istringstream list{job.status.partition};
  for (std::string name; std::getline(list, name, ',');) names.push_back(name);
  return names;
}

// Returns the state, and what the job does at this moment if that differs.
std::string state_text(const kube::JobStatus& status, const view::JobMoment& moment) {
  std::string state = status.state ? std::string{to_string(*status.state)}
                                   : std::string{"not seen by an operator yet"};
  // Time slices are shorter than the time between two writes of the status, so what runs at this
  // moment is worked out from the timetables and may differ from the state that is stored.
  if (moment.code == "S" && status.state != kube::JobState::kSuspended) state += ", suspended now";
  if (moment.code == "R" && status.state == kube::JobState::kSuspended) state += ", runs now";
  if (moment.code == "CF") state += ", its pods start";
  if (moment.code == "CG") state += ", its pods end";
  return state;
}

// Returns "of partition main: image a; volumes home, software": what the pods get beside
// what the job says. "" if they get nothing.
std::string defaults_text(const kube::Job& job, const kube::Partition& partition) {
  const auto otherwise =
      job.spec.batch ? kube::PodDefaultsUse::kUse : kube::PodDefaultsUse::kIgnore;
  const auto& accepted = partition.status.accepted;
  if (job.spec.pod_defaults.value_or(otherwise) != kube::PodDefaultsUse::kUse || !accepted ||
      !accepted->pod_defaults) {
    return "";
  }
  const kube::PodDefaults& defaults = *accepted->pod_defaults;
  std::string text = "of partition " + partition.metadata.name;
  std::string separator = ": ";
  const auto say = [&](const std::string& what) { text += std::exchange(separator, "; ") + what; };
  if (!defaults.image.empty()) say("image " + defaults.image);
  const std::pair<const char*, const kube::RawJson*> lists[] = {
      {"pull secrets", &defaults.image_pull_secrets},
      {"volumes", &defaults.volumes},
      {"variables", &defaults.env}};
  for (const auto& [label, list] : lists) {
    std::string names;
    for (const nlohmann::json& each : list->json()) {
      names += (names.empty() ? " " : ", ") + kube::text_at(each, "name");
    }
    if (!names.empty()) say(label + names);
  }
  if (!defaults.security_context.empty()) say("a security context");
  return text;
}

// Conditions and events, for users who look closer. The sentence of the message is not repeated.
void add_details(Lines& out, const kube::JobStatus& status,
                 const std::vector<kube::Event>& events) {
  for (const kube::Condition& condition : status.conditions) {
    std::string text = condition.type + "=" + std::string{to_string(condition.status)};
    if (!condition.reason.empty()) text += " " + condition.reason;
    const bool is_said = condition.message == status.message;
    if (!condition.message.empty() && !is_said) text += ": " + condition.message;
    add(out, "Condition", text);
  }
  for (const kube::Event& event : events) {
    if (event.message == status.message) continue;
    add(out, "Event", instant(event.last_timestamp) + " " + event.reason + ": " + event.message);
  }
}

// Adds the jobs that the job waits for, and how far they have come.
void add_dependency(Lines& out, const Facts& facts) {
  for (const kube::DependencyStatus& term : facts.job.status.dependency) {
    if (term.state == kube::DependencyState::kFulfilled) continue;
    std::string text{to_string(term.type)};
    const auto other = std::ranges::find_if(facts.others, [&](const kube::Job& job) {
      return term.job_id && job.status.job_id == term.job_id;
    });
    if (other != facts.others.end()) {
      text += " " + name_of(*other);
    } else if (term.job_id) {
      text += " job " + std::to_string(*term.job_id);
    } else if (!term.job_name.empty()) {
      text += " " + facts.job.metadata.ns + "/" + term.job_name + ", which does not exist yet";
    }
    if (term.state == kube::DependencyState::kFailed) {
      text += ": can never be";
    } else if (other != facts.others.end() && other->status.state) {
      const kube::JobStatus& status = other->status;
      text += ", which is " + std::string{to_string(*status.state)};
      const auto& limit = other->spec.schedule.time_limit;
      if (status.time_limit || limit) {
        text += " and has a time limit of " +
                slurm::format_run_time(status.time_limit ? *status.time_limit : *limit);
      }
    }
    add(out, "Waits for", text);
  }
}

// The job's part of the cycle, and the jobs that have the rest of it.
void add_turns(Lines& out, const Facts& facts) {
  const view::SharedTurns& turns = *facts.turns;
  std::string text = std::to_string(turns.own) + " of " + std::to_string(turns.all) + ", " +
                     kube::format_duration(turns.slice) + " each";
  if (turns.next_change) {
    text += facts.moment.code == "S" ? "; it runs again at " : "; it stands still at ";
    text += kube::format_time(*turns.next_change);
  }
  add(out, "Turns", text);
  for (const auto& [uid, other] : turns.with) {
    const kube::Job* job = find_uid(facts.others, uid);
    add(out, "Shares with",
        (job == nullptr ? "a job of namespace " + other.ns : name_of(*job)) + " on " +
            slurm::compress_hostlist(other.nodes));
  }
}

// Returns "gpu:tesla-v100:4 on n1, gpu:1 on n[2-3]"; "" if it has none.
std::string devices_text(const kube::Allocation& allocation) {
  std::string text;
  for (const kube::NodeShare& share : allocation.shares) {
    if (share.devices.empty()) continue;
    text += (text.empty() ? "" : ", ") + kube::gres_text(share.devices) + " on " + share.hostlist;
  }
  return text;
}

// Returns "16Gi on each node", "4Gi for each CPU"; "" if none is known. A job that has nodes
// shows what it got there, which the partition may have set; any other what it asks for.
std::string memory_text(const kube::Job& job) {
  std::optional<kube::Bytes> most;
  std::optional<kube::Bytes> least;
  if (job.status.allocation) {
    for (const kube::NodeShare& share : job.status.allocation->shares) {
      if (!share.memory) continue;
      most = std::max(most.value_or(*share.memory), *share.memory);
      least = std::min(least.value_or(*share.memory), *share.memory);
    }
  }
  if (most) {
    return (*least == *most ? "" : kube::format_bytes(*least) + " to ") +
           kube::format_bytes(*most) + " on each node";
  }
  const kube::JobResources& asked = job.spec.resources;
  if (asked.memory_per_node) return kube::format_bytes(*asked.memory_per_node) + " on each node";
  if (asked.memory_per_cpu) return kube::format_bytes(*asked.memory_per_cpu) + " for each CPU";
  if (asked.memory_per_gpu) return kube::format_bytes(*asked.memory_per_gpu) + " for each GPU";
  return asked.all_memory.value_or(false) ? "all of each node" : "";
}

// Returns "2026-01-01T00:10:00Z, in 10:00, by its time limit" of a job that runs; "" without a
// limit, and while it stands still for longer than a turn, for then its end is not known.
std::string end_text(const Facts& facts) {
  const auto limit = limit_in_force(facts.job);
  const bool takes_turns = facts.turns.has_value();
  if (!limit || (facts.moment.code != "R" && !takes_turns)) return "";
  const base::Instant end = facts.now + std::max(base::Duration{0}, *limit - facts.moment.run_time);
  return when(end, facts.now) + ", by its time limit" +
         (takes_turns ? " if it took no turns; later as it does" : "");
}

// Answers in the order in which a person asks: which job, what does it do, where, why not, since
// when, and at last the conditions and events for those who look closer. Lines without a value are
// left out. For example "State  Running, suspended now" is a job whose turn is over at this
// instant; the status was written during one of its turns.
Lines explanation(const Facts& facts) {
  const kube::Job& job = facts.job;
  const view::JobMoment& moment = facts.moment;
  const kube::JobStatus& status = job.status;
  Lines out;
  add(out, "Job", name_of(facts) + of_batch_job(job));
  if (facts.task && status.job_id) add(out, "Job ID", std::to_string(*status.job_id));
  add(out, "State", state_text(status, moment));
  if (status.array) {
    add(out, "Tasks", status.array->summary);
    add(out, "Failed", status.array->failed);
  }
  add(out, "Partition", status.partition);
  if (status.allocation) {
    add(out, "Nodes", status.allocation->hostlist);
    add(out, "CPUs", std::to_string(status.allocation->cpus));
    add(out, "Memory", memory_text(job));
    add(out, "Devices", devices_text(*status.allocation));
    add(out, "Run time", slurm::format_run_time(moment.run_time));
    const auto limit = limit_in_force(job);
    if (limit) add(out, "Time limit", slurm::format_run_time(*limit));
    if (!status.ending) add(out, "Ends", end_text(facts));
  } else {
    add(out, "Memory", memory_text(job));
  }
  if (facts.turns) add_turns(out, facts);
  add(out, "Account", job.spec.schedule.account.value_or(""));
  add(out, "QOS", job.spec.schedule.qos.value_or(""));
  if (const auto progress = view::progress_of(job)) {
    add(out, "Succeeded",
        std::to_string(progress->succeeded) + " of " + std::to_string(progress->completions) +
            " completions");
  }
  // The reason of a suspension may still be stored although, by the timetables, the job runs at
  // this moment.
  if (!status.allocation || moment.code == "S") add(out, "Reason", status.reason);
  add(out, "Message", status.message);
  if (!status.allocation) add_dependency(out, facts);
  const bool has_ended = status.state && kube::is_final(*status.state);
  for (const kube::Partition& partition : facts.partitions) {
    add(out, "Pod defaults", defaults_text(job, partition));
    if (!has_ended) add_unusable(out, job, partition);
  }
  if (status.held) add(out, "Held", status.held->reason + "; kubectl gang release ends that");
  if (job.spec.control.hold.value_or(false))
    add(out, "Held", "by its user; kubectl gang release ends that");
  if (status.priority) add(out, "Priority", std::to_string(*status.priority));
  add(out, "Submitted", instant(status.submit_time));
  // The future: only a job that has no nodes waits for them.
  if (!status.allocation) {
    add(out, "Eligible", instant(status.eligible_time));
    if (status.retry) add(out, "Not before", instant(status.retry->at));
    for (const auto& [label, sentence] : outlook(job, facts.others, facts.partitions, facts.now)) {
      add(out, label, sentence);
    }
  }
  add(out, "Started", instant(status.start_time));
  add(out, "Ended", instant(status.end_time));
  if (status.claim) {
    add(out, "Claim",
        "waits for its victims on " + status.claim->hostlist +
            (status.claim->until ? " until " + instant(status.claim->until) : ""));
  }
  if (status.ending) add(out, "Ending", ending_text(*status.ending));
  if (status.exit_code) add(out, "Exit code", std::to_string(*status.exit_code));
  add_details(out, status, facts.events);
  return out;
}

Json word_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

double in_seconds(base::Duration duration) {
  return static_cast<double>(duration.count()) / 1e6;
}

Json instant_or_null(const std::optional<base::Instant>& at) {
  return at ? Json(in_seconds(at->time_since_epoch())) : Json(nullptr);
}

// Times and durations are as in `queue -o json`. `lines` is what a person reads, for what has no
// field of its own.
std::string explanation_json(const Facts& facts) {
  const kube::JobStatus& status = facts.job.status;
  Json turns = nullptr;
  Json others = Json::array();
  if (facts.turns) {
    turns = {{"sliceSeconds", in_seconds(facts.turns->slice)},
             {"own", facts.turns->own},
             {"all", facts.turns->all},
             {"nextChange", instant_or_null(facts.turns->next_change)}};
    for (const auto& [uid, other] : facts.turns->with) {
      const kube::Job* job = find_uid(facts.others, uid);
      const bool has_number = job != nullptr && job->status.job_id.has_value();
      others.push_back({{"jobID", has_number ? Json(*job->status.job_id) : Json(nullptr)},
                        {"name", job == nullptr ? Json(nullptr) : Json(job->metadata.name)},
                        {"namespace", other.ns},
                        {"hostlist", slurm::compress_hostlist(other.nodes)}});
    }
  }
  Json lines = Json::array();
  for (const auto& [label, text] : explanation(facts)) {
    lines.push_back({{"label", label}, {"text", text}});
  }
  const Json all = {
      {"asOf", in_seconds(facts.now.time_since_epoch())},
      {"jobID", status.job_id ? Json(*status.job_id) : Json(nullptr)},
      {"task", facts.task ? Json(*facts.task) : Json(nullptr)},
      {"partition", word_or_null(status.partition)},
      {"name", facts.job.metadata.name},
      {"batchJob", word_or_null(view::batch_job_of(facts.job))},
      {"namespace", facts.job.metadata.ns},
      {"state", facts.moment.code},
      {"runSeconds", in_seconds(facts.moment.run_time)},
      {"hostlist", status.allocation ? Json(status.allocation->hostlist) : Json(nullptr)},
      {"reason", word_or_null(status.reason)},
      {"message", word_or_null(status.message)},
      {"turns", turns},
      {"sharesWith", others},
      {"lines", lines}};
  return all.dump(2) + "\n";
}

// Reads the jobs that a waiting job may wait for, or that a running one takes turns with: those of
// all namespaces, or of its own if the user may not read the rest. None for any other job, which
// saves the largest request. An outlook without other namespaces' jobs is better than none, and the
// sentence says what is missing.
base::Result<std::vector<kube::Job>> read_others(const Session& session, const Facts& facts,
                                                 Output output) {
  const kube::JobStatus& status = facts.job.status;
  const bool waits = !status.allocation && !(status.state && kube::is_final(*status.state));
  if (!waits && !facts.turns) return std::vector<kube::Job>{};
  auto all = list_all<kube::Job>(session, "", output);
  if (all || all.error().code != base::Code::kPermissionDenied) return all;
  output.err << "kubectl-gang explain: jobs of other namespaces may not be read, so they are not "
                "shown\n";
  return list_all<kube::Job>(session, session.ns, output);
}

// Returns the job's events, the oldest first. They add to what the status says, so they are left
// out if the user has no right to them: the roles of the chart do not give it.
base::Result<std::vector<kube::Event>> read_events(const Session& session, const kube::Job& job,
                                                   Output output) {
  std::vector<kube::Event> of_job;
  base::Result<kube::ObjectList<kube::Event>> events = session.client.list<kube::Event>(
      // The server selects by name, and the UID is compared below: events of a job that had the
      // name before may still be there.
      {.ns = session.ns, .field_selector = "involvedObject.name=" + job.metadata.name});
  if (!events && events.error().code == base::Code::kPermissionDenied) {
    output.err << "kubectl-gang explain: events may not be read, so they are not shown\n";
    return of_job;
  }
  if (!events) return events.error();
  for (kube::Event& event : events->items) {
    if (event.involved_object.uid == job.metadata.uid) of_job.push_back(std::move(event));
  }
  std::sort(of_job.begin(), of_job.end(), [](const kube::Event& a, const kube::Event& b) {
    return a.last_timestamp < b.last_timestamp;
  });
  return of_job;
}

// Returns "8", or "8_3": one task of it.
base::Result<Facts> read_job(const Session& session, const std::string& word, Output output) {
  const auto named = read_job_and_tasks(word);
  if (!named) return named.error();
  auto job = find_job(session, named->job, output);
  if (!job) return job.error();
  if (!named->tasks) return Facts{.job = std::move(*job)};
  if (!job->spec.array)
    return base::invalid_argument(named->job + " has no tasks: it is not an array");
  const auto all =
      slurm::parse_array("spec.array.tasks", job->spec.array->tasks, kube::kArrayTasksMax);
  if (!all) return all.error();
  if (named->tasks->size() != 1) return base::invalid_argument("one task at a time");
  const int task = named->tasks->front();
  if (!all->tasks.contains(task)) {
    return base::Error{base::Code::kNotFound, named->job + " has no task " + std::to_string(task)};
  }
  Facts facts{.job = {}, .task = task, .array = job->status.job_id.value_or(0)};
  facts.job = task_of(std::move(*job), task);
  return facts;
}

}  // namespace

// Reads everything about one job: the job, its partitions, its events, the timetables of its nodes,
// and other jobs if it waits or takes turns. Whatever the user has no right to is left out with a
// sentence, or, for partitions, without: the rest is still worth showing.
// Requests: the job, one for each partition, the events, all jobs if it waits or takes turns, and,
// if it runs, timetables of its nodes until one lists it, or of all if it takes turns.
// The clock is read once, so all lines agree.
int run_explain(const Session& session, const std::string& name, bool as_json, Output output) {
  const auto fail = [&](const base::Error& error) {
    output.err << "kubectl-gang explain: " << error.message << "\n";
    return kExitFailed;
  };
  base::Result<Facts> read = read_job(session, name, output);
  if (!read) return fail(read.error());
  Facts facts = std::move(*read);
  for (const std::string& partition_name : partitions_of(facts.job)) {
    // Without the right to read it the rest is still worth showing.
    auto partition = session.client.get<kube::Partition>({"", partition_name});
    if (partition) facts.partitions.push_back(std::move(*partition));
  }
  base::Result<std::vector<kube::Event>> events = read_events(session, facts.job, output);
  if (!events) return fail(events.error());
  facts.events = std::move(*events);
  TimetableReader timetables{session, output};
  facts.now = session.clock.wall();
  facts.moment = view::job_moment(facts.job, timetables.lookup(), facts.now);
  facts.turns = view::shared_turns(facts.job, timetables.lookup(), facts.now);
  if (!timetables.status()) return fail(timetables.status().error());
  base::Result<std::vector<kube::Job>> others = read_others(session, facts, output);
  if (!others) return fail(others.error());
  facts.others = std::move(*others);
  if (as_json) {
    output.out << explanation_json(facts);
    return kExitOk;
  }
  for (const auto& [label, line] : explanation(facts)) {
    output.out << paragraph(label, line, output.columns);
  }
  return kExitOk;
}

}  // namespace cli
