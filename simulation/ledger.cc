#include "simulation/ledger.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/wellknown.h"
#include "simulation/paths.h"
#include "timetable/timetable.h"

namespace simulation {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

// How the ledger judges. It sees three kinds of things, and each has checkers of its own:
//
// 1. Every version of every object that was stored (`on_job`, `on_pod`, `on_table`,
//    `on_batch_job`). These checkers compare a version with the one before it, and with what else
//    is stored at that instant. They need no tolerance: a wrong version is a finding even if it
//    stands for a microsecond.
// 2. Every start and end of a program, and every thaw (`program_started`, `program_ended`,
//    `thawed`). These come from the models of kubelet and kernel and so are true whatever the API
//    server was told.
// 3. A sample of all machines every 100 ms (`sample`). A state that a promise allows for some time,
//    such as two gangs on one node while pods freeze, is a finding only when it has lasted for
//    longer than its bound: `streak()` measures that, from the first sample that showed the state.
//
// A checker must accept everything that docs/design/faults.md does not promise. Such excuses are
// narrow on purpose: one node, one pod, or one minute after a restore. Most checkers count a look
// in `tally_.looked` only if no excuse held, so a campaign fails if excuses swallow a checker.

// Bounds that are promised (docs/design/faults.md, section 1), and how long explanations hold.
//
// The supervisor acts 5 s after its worker hangs; the rest is the time between two of its looks.
constexpr Time kFrozenMax = seconds{6};
constexpr Time kThawedWithin = seconds{1};
// Three samples: a switch itself lasts some milliseconds.
constexpr Time kOverlapMax = milliseconds{300};
// How long a process may need to hear again after its link was cut or its worker was started.
constexpr Time kHearsWithin = seconds{3};
// A watch may die unnoticed. The agent then asks at least every 6 s, and needs one more request for
// the quorum read that confirms an older timetable.
constexpr Time kObeysWithin = seconds{10};
constexpr Time kGangAgreesWithin = seconds{5};
// After etcd was restored statuses and timetables describe a past that the programs have left
// behind. Until the operator has put them right nothing that is compared with them counts.
constexpr Time kAfterRestore = seconds{60};
// As World::kSampleEvery: sample_times() adds one such step for each look.
constexpr Time kSample = milliseconds{100};
// `barrier` and the settle time of the agent, stated again here and not included from there: a
// wrong constant in the agent is a finding, too.
constexpr base::Duration kBarrier = milliseconds{20};
constexpr base::Duration kSettle = seconds{2};
// Nodes whose clocks differ by more than this reach a boundary at different true times by right.
constexpr base::Duration kClockPromised = milliseconds{100};

std::string text_of(base::Duration duration) {
  return std::to_string(duration / milliseconds{1}) + " ms";
}

bool is_final_state(const kube::Job& job) {
  return job.status.state && kube::is_final(*job.status.state);
}

std::string state_of(const kube::Job& job) {
  return job.status.state ? std::string{kube::to_string(*job.status.state)} : "none";
}

// Returns the reference to the batch Job that this Job runs; null if it is a user's own.
const kube::OwnerReference* batch_owner(const kube::Job& job) {
  const kube::OwnerReference* owner = kube::controller_of(job.metadata);
  return owner != nullptr && owner->api_version.starts_with("batch/") ? owner : nullptr;
}

// Returns the name by which the plan knows the job: its own, or that of the batch Job that it runs.
const std::string& name_of(const kube::Job& job) {
  const kube::OwnerReference* owner = batch_owner(job);
  return owner == nullptr ? job.metadata.name : owner->name;
}

// Returns true if the status has this condition with the value True.
bool says(const json& object, const char* type) {
  const json status = object.value("status", json::object());
  for (const json& condition : status.value("conditions", json::array())) {
    if (condition.value("type", "") == type) return condition.value("status", "") == "True";
  }
  return false;
}

// Returns the number in a pod's label; 0 for a pod that kubegang did not make.
std::int64_t label_number(const json& pod, std::string_view label) {
  const json& metadata = pod["metadata"];
  const auto labels = metadata.find("labels");
  if (labels == metadata.end()) return 0;
  return std::stoll(labels->value(std::string{label}, "0"));
}

}  // namespace

Ledger::Ledger(devcluster::ApiServer& server, const Time& now, const Plan& plan, Tally& tally)
    : server_{server}, now_{now}, plan_{plan}, tally_{tally} {
  // Jobs before the batch Jobs that follow from them.
  for (const char* path :
       {paths::kAllJobs, paths::kAllBatchJobs, paths::kTables, paths::kAllPods, paths::kLeases}) {
    streams_.push_back({path, nullptr});
  }
}

void Ledger::find(const std::string& checker, const std::string& text) {
  // The first one: what is wrong after it mostly follows from it.
  if (!finding_) finding_ = {checker, text, now_};
}

// Returns for how long a condition has held without a break, by the looks so far. A bound in
// seconds is a bound on this time, so a state that comes and goes is judged anew each time.
Time Ledger::streak(const std::string& name, bool holds) {
  if (!holds) {
    streaks_.erase(name);
    return {};
  }
  seen_streaks_.insert(name);
  return now_ - streaks_.try_emplace(name, now_).first->second;
}

void Ledger::restored() {
  restored_at_ = now_;
  jobs_.clear();
  batch_.clear();
  pods_.clear();
  tables_.clear();
  // After a restore from a backup nothing that was seen before counts; the watches begin with what
  // is stored now.
  for (Stream& stream : streams_) stream.stream.reset();
}

void Ledger::partition_goes() {
  for (auto& [uid, facts] : jobs_) {
    if (facts.job.status.allocation) facts.unsliced_start = facts.job.status.starts.value_or(0);
  }
}

// A partition that was deleted leaves its running jobs without turns until they start anew: their
// overlap is not a finding.
bool Ledger::is_unsliced(const std::string& job_uid, std::int64_t start) const {
  const auto job = jobs_.find(job_uid);
  return job != jobs_.end() && job->second.unsliced_start == start;
}

// Marks the instant of the last fault: accounted times are only compared if nothing was done to the
// cluster for some time before the job became ready.
void Ledger::fault() {
  fault_at_ = now_;
}

// --- what was written ---

void Ledger::look() {
  for (Stream& stream : streams_) read(stream);
}

// The ledger judges every version that was ever stored, and not what a poll happens to see: a state
// that stands for a moment only is enough for a program to act on it.
void Ledger::read(Stream& stream) {
  for (;;) {
    // A watch that ended is opened again at once: what is written before the next look would not be
    // seen.
    if (!stream.stream) {
      devcluster::ApiRequest request;
      request.http.path = stream.path + "?watch=true";
      stream.stream = server_.handle(request).stream;
    }
    std::string data;
    const auto state = stream.stream->read(data, base::Duration{0});
    for (std::size_t begin = 0; begin < data.size();) {
      const std::size_t end = std::min(data.find('\n', begin), data.size());
      take(stream.path, data.substr(begin, end - begin));
      begin = end + 1;
    }
    if (state != devcluster::StreamState::kOpen) {
      stream.stream.reset();
    } else if (data.empty()) {
      return;
    }
  }
}

void Ledger::take(const std::string& path, const std::string& line) {
  const json event = json::parse(line, nullptr, false);
  const std::string type = event.value("type", "");
  if (type != "ADDED" && type != "MODIFIED" && type != "DELETED") return;
  const json& object = event["object"];
  // Bookmarks and errors (410 after a compaction) carry no object; the watch is opened again by
  // read().
  if (path == paths::kAllJobs) {
    if (auto job = kube::decode<kube::Job>(object); job.ok()) on_job(type, std::move(*job));
  } else if (path == paths::kAllBatchJobs) {
    on_batch_job(type, object);
  } else if (path == paths::kTables) {
    auto table = kube::decode<kube::NodeTimetable>(object);
    if (table.ok()) on_table(type, std::move(*table));
  } else if (path == paths::kAllPods) {
    on_pod(type, object);
  } else if (object["spec"].value("renewTime", "") != lease_renewed_) {
    lease_renewed_ = object["spec"].value("renewTime", "");
    lease_seen_at_ = now_;
  }
}

void Ledger::on_job(const std::string& type, kube::Job job) {
  const std::string uid = job.metadata.uid;
  const std::string name = name_of(job);
  if (type == "DELETED") {
    ++tally_.looked["lost"];
    // A restore may take the batch Job away, and that takes this one along; or leave a Job that has
    // not ended beside a batch Job that has.
    const kube::OwnerReference* owner = batch_owner(job);
    const bool excused = owner != nullptr && (now_ < restored_at_ + kAfterRestore ||
                                              (!is_final_state(job) && has_ended(owner->uid)));
    if (!deleted_by_user_.contains(name) && !excused) {
      find("lost", "job " + name + " was deleted by no user");
    }
    jobs_went_ = true;
    jobs_.erase(uid);
    return;
  }
  // The version before stays in `before`: all rules below compare the two.
  const auto [entry, fresh] = jobs_.try_emplace(uid);
  JobFacts& facts = entry->second;
  if (const kube::OwnerReference* owner = batch_owner(job)) {
    facts.owner = owner->uid;
    owners_[uid] = owner->uid;
  }
  const kube::Job before = std::exchange(facts.job, std::move(job));
  const kube::JobStatus& status = facts.job.status;
  // There is nothing to compare it with.
  if (fresh) return;
  ++tally_.looked["verdict"];
  // For so long a leader may not have noticed that the store was set back.
  const bool two_leaders = now_ < restored_at_ + kHearsWithin;
  if (is_final_state(before) && before.status.state != status.state && !two_leaders) {
    find("verdict",
         "job " + name + " was " + state_of(before) + " and became " + state_of(facts.job));
  }
  // Both are counters that every later decision builds on: a lower one would give two pods the same
  // name, or let an old leader write again.
  const bool went_back = before.status.starts.value_or(0) > status.starts.value_or(0) ||
                         before.status.term.value_or(0) > status.term.value_or(0);
  if (went_back && !two_leaders) {
    find("verdict", "starts or term of job " + name + " went back");
  }
  if (status.starts != before.status.starts) {
    facts.ready_at = kNoTime;
    // A new start: run times are those of one start.
    facts.was_ready = false;
    facts.ran = base::Duration{0};
  }
  const bool ready = kube::is_true(status.conditions, kube::kReady);
  if (ready && !kube::is_true(before.status.conditions, kube::kReady)) facts.ready_at = now_;
  facts.was_ready = facts.was_ready || ready;
  if (!is_final_state(before) && is_final_state(facts.job)) on_final(facts);
}

// Checks a verdict at the instant at which it is stored: the state that a job is said to have ended
// in is what its programs did.
//
// 1. Completed: as many different tasks have ended well in this start as the job has nodes. A job
//    without an allocation any more is judged by its plan.
// 2. Cancelled: a user asked for it, or preemption cancels its victims.
// 3. The run time that is accounted is what was sampled, give or take one slice and 2 s: the slice
//    because a switch may fall anywhere within it, 2 s because containers' times are stored in
//    whole seconds, one at each end.
void Ledger::on_final(const JobFacts& facts) {
  const kube::Job& job = facts.job;
  const std::string& name = name_of(job);
  const std::int64_t start = job.status.starts.value_or(0);
  const auto planned = std::find_if(plan_.jobs.begin(), plan_.jobs.end(),
                                    [&](const JobPlan& one) { return one.name == name; });
  ++tally_.looked["verdict at the end"];
  const std::size_t tasks =
      job.status.allocation         ? static_cast<std::size_t>(job.status.allocation->nodes)
      : planned == plan_.jobs.end() ? 1
                                    : static_cast<std::size_t>(planned->nodes);
  if (job.status.state == kube::JobState::kCompleted &&
      succeeded_[job.metadata.uid][start].size() < tasks) {
    find("verdict", "job " + name + " is Completed, but not all of its programs were");
  }
  if (job.status.state == kube::JobState::kCancelled && !ended_by_user_.contains(name) &&
      plan_.preempt_mode != "Cancel") {
    find("verdict", "job " + name + " is Cancelled by no user");
  }
  // Times as accounted, where nothing went wrong since it was ready.
  // Faults move times by right: an agent that fails open, or a leader that comes late, lets a job
  // run longer than planned.
  const bool calm = facts.ready_at != kNoTime && fault_at_ + seconds{15} < facts.ready_at;
  if (!calm || !job.status.run_time || job.status.state != kube::JobState::kCompleted) return;
  ++tally_.looked["time"];
  const base::Duration off = job.status.run_time->elapsed - facts.ran;
  if (std::chrono::abs(off) > plan_.slice + seconds{2}) {
    find("time", "job " + name + " ran " + text_of(facts.ran) + ", accounted " +
                     text_of(job.status.run_time->elapsed));
  }
}

// Checks what is stored of a batch Job: its conditions are final, and it is Complete only if a Job
// that runs it is stored as Completed.
void Ledger::on_batch_job(const std::string& type, const json& object) {
  const std::string uid = object["metadata"].value("uid", "");
  if (type == "DELETED") {
    batch_.erase(uid);
    return;
  }
  BatchFacts& facts = batch_[uid];
  facts.name = object["metadata"].value("name", "");
  const BatchFacts before = facts;
  facts.complete = says(object, "Complete");
  facts.failed = says(object, "Failed");
  ++tally_.looked["batch verdict"];
  if (before.complete != facts.complete || before.failed != facts.failed) {
    if (before.complete || before.failed) {
      find("batch verdict", "batch Job " + facts.name + " had ended and its conditions changed");
    }
  }
  // The batch Job's status must follow from a Job that is stored: an operator that reports success
  // first and then dies would leave a batch Job Complete whose Job runs again.
  if (!facts.complete || before.complete || now_ < restored_at_ + kAfterRestore) return;
  const bool stored = std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& entry) {
    return entry.second.owner == uid && entry.second.job.status.state == kube::JobState::kCompleted;
  });
  if (!stored) {
    find("batch verdict",
         "batch Job " + facts.name + " is Complete, no Job of it is stored as Completed");
  }
}

// A pod exists only for a start that is stored.
void Ledger::on_pod(const std::string& type, const json& pod) {
  const json& metadata = pod["metadata"];
  const std::string uid = metadata.value("uid", "");
  if (type == "DELETED") {
    pods_.erase(uid);
    return;
  }
  // Only two instants of a pod are judged: the one at which it appears, and the one at which its
  // deletion begins. Everything between is kubelet's.
  const bool fresh = !pods_.contains(uid);
  PodFacts& facts = pods_[uid];
  const bool was_deleting = std::exchange(facts.deleting, metadata.contains("deletionTimestamp"));
  if (!fresh && facts.deleting && !was_deleting) on_torn_down(pod, facts);
  // A new pod. The job may be gone already, which the garbage collector repairs, so there is
  // nothing to compare with then.
  if (!fresh || !metadata.contains("ownerReferences")) return;
  facts.job_uid = metadata["ownerReferences"][0].value("uid", "");
  const auto job = jobs_.find(facts.job_uid);
  if (job == jobs_.end() || now_ < restored_at_ + kAfterRestore) return;
  ++tally_.looked["commit"];
  const kube::JobStatus& status = job->second.job.status;
  const std::int64_t start = label_number(pod, kube::kLabelStart);
  // A create that was long on its way may come after the end of its start, but not before it.
  if (status.starts.value_or(0) < start) {
    find("commit", "pod " + metadata.value("name", "") + " of start " + std::to_string(start) +
                       " exists, job has " + std::to_string(status.starts.value_or(0)));
  }
}

// A pod that runs is told to end only when its job's ending is stored: by the operator, since the
// other events delete pods without a grace time.
void Ledger::on_torn_down(const json& pod, const PodFacts& facts) {
  const auto found = jobs_.find(facts.job_uid);
  if (found == jobs_.end() || now_ < restored_at_ + kAfterRestore) return;
  ++tally_.looked["teardown"];
  const kube::Job& job = found->second.job;
  const bool current = job.status.starts.value_or(0) == label_number(pod, kube::kLabelStart);
  if (!current || job.status.ending || is_final_state(job) || job.metadata.deletion_timestamp)
    return;
  find("teardown", "pod " + pod["metadata"].value("name", "") + " is deleted, job is " +
                       state_of(job) + " and no ending is stored");
}

// No object may let two gangs run in one slot of one node.
void Ledger::on_table(const std::string& type, kube::NodeTimetable table) {
  const std::string node = table.metadata.name;
  if (type == "DELETED") {
    tables_.erase(node);
    return;
  }
  const kube::NodeTimetableSpec& spec = table.spec;
  if (!timetable::validate(spec.timetable).ok()) {
    find("timetable", "the timetable of " + node + " is invalid");
    return;
  }
  // Checks one set of pods that run together: all of one job, except for jobs without turns.
  ++tally_.looked["timetable"];
  const auto check = [&](const timetable::PodSet& run) {
    std::set<std::string> jobs;
    for (const std::uint16_t index : run) {
      const std::string& uid = spec.pods[index].job_uid;
      const auto job = jobs_.find(uid);
      // A job of a partition that was deleted runs at all times; it is listed for as long as others
      // of its node take turns.
      if (job == jobs_.end() || !is_unsliced(uid, job->second.job.status.starts.value_or(0))) {
        jobs.insert(uid);
      }
    }
    if (jobs.size() > 1) find("timetable", "two gangs in one slot of " + node);
  };
  for (const timetable::PlanEntry& entry : spec.timetable.plan) {
    const base::Instant t = kube::ManualClock::kStart + now_;
    // Entries that have passed may name pods that are no longer in force.
    if (entry.until > t) check(entry.run);
  }
  for (const timetable::PodSet& slot : spec.timetable.cycle) check(slot);
  tables_[node] = std::move(table);
}

// --- programs ---

void Ledger::program_started(const Program& program) {
  ++tally_.looked["started twice"];
  // 1. No program runs beside one of another start of its job, or beside the same task of its
  //    start.
  // 2. A task that has ended well in a start does not run again in it.
  // 3. A job that is final starts nothing, unless its ending is still being carried out.
  // 4. The rule for the attempts of a batch Job.
  std::vector<Program>& running = running_[program.job_uid];
  const auto job = jobs_.find(program.job_uid);
  // A pod that was deleted by force is made again whatever its program does, and the state
  // of a machine that has failed is unknown: two that run are no finding then.
  const bool excused = now_ < restored_at_ + kAfterRestore || lost_pods_.contains(program.name) ||
                       suffered_.contains(program.node);
  for (const Program& other : running) {
    if (excused || suffered_.contains(other.node) || lost_pods_.contains(other.name)) continue;
    // Tasks of one start run side by side; anything else is two runs of one job.
    if (other.start != program.start || other.task == program.task) {
      find("started twice", program.name + " starts while " + other.name + " runs");
    }
  }
  if (!excused && job != jobs_.end()) {
    const auto& done = succeeded_[program.job_uid][program.start];
    const auto ended = done.find(program.task);
    // A start that a restore took back is made again under its number.
    if (ended != done.end() && ended->second > restored_at_) {
      find("started twice", program.name + " has ended well and starts again");
    }
    if (is_final_state(job->second.job) && !job->second.job.status.ending &&
        program.start >= job->second.job.status.starts.value_or(0)) {
      find("started twice", program.name + " starts, its job is final");
    }
  }
  if (!excused) check_attempts(program);
  running.push_back(program);
}

bool Ledger::has_ended(const std::string& batch_uid) const {
  const auto found = batch_.find(batch_uid);
  return found != batch_.end() && (found->second.complete || found->second.failed);
}

// Of the Jobs that run one batch Job one has programs, but for those that are told to end. A batch
// Job that has ended starts none.
void Ledger::check_attempts(const Program& program) {
  const auto owner = owners_.find(program.job_uid);
  if (owner == owners_.end()) return;
  ++tally_.looked["attempts"];
  if (has_ended(owner->second)) {
    find("attempts", program.name + " starts, its batch Job has ended");
  }
  for (const auto& [uid, running] : running_) {
    const auto other = owners_.find(uid);
    if (uid == program.job_uid || other == owners_.end() || other->second != owner->second) {
      continue;
    }
    for (const Program& one : running) {
      if (is_ending(one) || suffered_.contains(one.node) || lost_pods_.contains(one.name)) continue;
      find("started twice", program.name + " starts while " + one.name + " runs for it");
    }
  }
}

// Remembers when a task ended well. `exit_code` is the planned one, so it counts only for a program
// that ended by itself.
void Ledger::program_ended(const Program& program, bool by_itself) {
  std::erase_if(running_[program.job_uid],
                [&](const Program& one) { return one.uid == program.uid; });
  if (by_itself && program.exit_code == 0) {
    succeeded_[program.job_uid][program.start][program.task] = now_;
  }
}

// --- machines ---

// Returns true if the agent may freeze the pod: its container has been running for the settle time,
// and the agent has had the time to see that. `startedAt` has whole seconds, so the true start may
// be up to 1 s later than the stored one; 500 ms are left for the watch to bring it.
bool Ledger::is_settled(const Node& node, const Program& program) const {
  if (!program.running || !program.started_wall) return false;
  const base::Instant began{std::chrono::floor<seconds>(*program.started_wall)};
  return node.machine->clock.wall() > began + seconds{1} + kSettle + milliseconds{500};
}

// Returns true if the pod is about to go for any reason that is stored. Such a pod is thawed
// whatever the timetable says, so that its program hears SIGTERM, and may run beside another gang
// for its grace time.
bool Ledger::is_ending(const Program& program) const {
  const auto pod = pods_.find(program.uid);
  if (program.terminated_at || pod == pods_.end() || pod->second.deleting) return true;
  const auto job = jobs_.find(program.job_uid);
  return job == jobs_.end() || job->second.job.status.ending.has_value() ||
         is_final_state(job->second.job) ||
         job->second.job.status.starts.value_or(0) != program.start;
}

// Returns true if the agent follows the very version of the timetable that is stored. The UID is a
// part of it, because a reinstallation begins again with revision 1.
bool Ledger::obeys(const Node& node) const {
  const auto obeyed = node.agent->obeyed();
  const auto stored = tables_.find(node.machine->name);
  if (stored == tables_.end()) return obeyed == nullptr;
  return obeyed != nullptr && obeyed->metadata.uid == stored->second.metadata.uid &&
         obeyed->spec.term == stored->second.spec.term &&
         obeyed->spec.revision == stored->second.spec.revision;
}

// Returns true if nothing can be asked of this node now, as docs/concepts.md says:
//
// * it is off, or given up with its Node object
// * its agent is not there, hangs, or was started a moment ago
// * its agent lets everything run: the kill switch, or failed open
// * agent or kubelet cannot hear, or have not heard all that was written
// * the agent does not obey the stored timetable yet, for which there is a checker of its own
//   (`obeys`)
// * etcd was restored, or the clock was set, a moment ago
bool Ledger::is_excused(const Node& node) const {
  NodeAgent& agent = *node.agent;
  return !node.machine->is_on || node.given_up || !agent.is_working() ||
         now_ < agent.worker_since() + kHearsWithin || agent.everything_runs() ||
         !agent.link().was_whole_for(kHearsWithin) || !agent.link().is_up_to_date() ||
         !node.kubelet->link().was_whole_for(kHearsWithin) || !obeys(node) ||
         now_ < restored_at_ + kAfterRestore || now_ < node.machine->clock_wrong_until;
}

void Ledger::sample(std::vector<Node>& nodes, bool operator_is_well) {
  seen_streaks_.clear();
  for (Node& node : nodes) {
    sample_overlaps(node);
    sample_frozen(node);
    sample_fail_open(node);
    sample_deleted(node);
    sample_obedience(node);
    sample_going_back(node);
  }
  sample_gangs(nodes, operator_is_well);
  sample_times(nodes);
  std::erase_if(streaks_, [&](const auto& one) { return !seen_streaks_.contains(one.first); });
}

// Two gangs on one core: only while one of them starts or ends, while the kernel cannot stop a
// task, or where the agent cannot do its work.
void Ledger::sample_overlaps(Node& node) {
  if (is_excused(node)) return;
  Kernel& kernel = node.machine->kernel;
  std::vector<const Program*> running;
  for (const auto& [uid, program] : node.kubelet->programs()) {
    if (!is_settled(node, program) || is_ending(program) || kernel.stands(uid)) continue;
    if (is_unsliced(program.job_uid, program.start)) continue;
    // The agent has done its part. The kernel cannot stop the task, and no scheduler could.
    if (kernel.is_asked_frozen(uid)) {
      ++tally_.looked["overlap of a task that does not freeze"];
      continue;
    }
    running.push_back(&program);
  }
  // Pairs of pods of different jobs that both run. Each pair has its own streak: one long overlap
  // is a finding, several short ones between different pairs at the boundaries of slots are not.
  for (std::size_t i = 0; i < running.size(); ++i) {
    ++tally_.looked["overlap"];
    for (std::size_t k = 0; k < i; ++k) {
      if (running[i]->job_uid == running[k]->job_uid) continue;
      const Time since = streak("overlap " + running[i]->uid + running[k]->uid, true);
      if (since > kOverlapMax) {
        find("overlap", running[i]->name + " and " + running[k]->name + " run together on " +
                            node.machine->name + " for " + text_of(since));
      }
    }
  }
}

// Returns true if the pod must not be frozen now, by what its own agent knows:
//
// 1. The agent does not work: its supervisor thaws everything, if there is one.
// 2. It lets everything run, or has no timetable.
// 3. The pod has heard SIGTERM and is within its grace time. The agent learns of that by its watch.
// 4. The timetable that it obeys does not list the pod, or says that the pod runs at this instant
//    by the node's own clock. That clock may be wrong; how far nodes may disagree is a matter of
//    `gang agrees`.
bool Ledger::should_run(const Node& node, const Program& program) const {
  const NodeAgent& agent = *node.agent;
  if (!agent.is_working()) return agent.is_alive();  // its supervisor is there
  if (agent.everything_runs()) return true;
  if (program.terminated_at && now_ < *program.terminated_at + program.grace &&
      node.agent->link().was_whole_for(kHearsWithin)) {
    return true;
  }
  const auto table = agent.obeyed();
  if (!table) return true;
  const auto& pods = table->spec.pods;
  const auto listed = std::find_if(pods.begin(), pods.end(), [&](const kube::TimetablePod& pod) {
    return pod.name == program.name && pod.job_uid == program.job_uid;
  });
  if (listed == pods.end()) return true;
  return timetable::runs_at(table->spec.timetable,
                            static_cast<std::uint16_t>(listed - pods.begin()),
                            node.machine->clock.wall());
}

// No pod stays frozen beyond its turn. A pod that is frozen before its program was started is a
// finding at once: a container cannot be started in a frozen cgroup, and the start would never end.
void Ledger::sample_frozen(Node& node) {
  if (!node.machine->is_on || !node.agent->is_alive()) return;
  for (const auto& [uid, program] : node.kubelet->programs()) {
    if (!node.machine->kernel.is_asked_frozen(uid) || program.over) continue;
    ++tally_.looked["frozen"];
    if (!program.running) {
      find("frozen", program.name + " is frozen before it was started");
      continue;
    }
    const Time since = streak("frozen " + uid, should_run(node, program));
    if (since > kFrozenMax) {
      find("frozen", program.name + " is frozen for " + text_of(since) + " beyond its turn");
    }
  }
}

// Nobody leads, or is not heard: the node fails open.
void Ledger::sample_fail_open(Node& node) {
  // The agent counts from the last renewal that it has seen. It reads the Lease at intervals that
  // grow with failOpenAfter, hence the half on top. 15 s are for a read that fails and is repeated;
  // an agent that is new begins to count when it starts.
  const Time after = plan_.fail_open_after * 3 / 2 + seconds{15};
  const bool nobody_leads = now_ > lease_seen_at_ + after &&
                            now_ > node.agent->alive_since() + after &&
                            now_ > node.agent->worker_since() + seconds{5};
  if (!nobody_leads || !node.machine->is_on || !node.agent->is_working()) return;
  ++tally_.looked["fail open"];
  for (const auto& [uid, program] : node.kubelet->programs()) {
    if (program.running && node.machine->kernel.is_asked_frozen(uid)) {
      find("fail open", program.name + " is frozen, no operator leads");
    }
  }
}

// A pod that is being deleted goes on at once, so that its program hears SIGTERM.
void Ledger::sample_deleted(Node& node) {
  const bool excused = is_excused(node);
  for (const auto& [uid, program] : node.kubelet->programs()) {
    if (!program.running || !program.terminated_at || excused) continue;
    ++tally_.looked["deleted"];
    const Time since = streak("deleted " + uid, node.machine->kernel.is_asked_frozen(uid));
    if (since > kThawedWithin) {
      find("deleted", program.name + " is being deleted and frozen for " + text_of(since));
    }
  }
}

// An agent that can hear obeys the timetable that is stored. Its link must have been whole for a
// second only: the bound itself leaves time for the rest.
void Ledger::sample_obedience(Node& node) {
  const bool hears = node.machine->is_on && node.agent->is_working() && !node.given_up &&
                     node.agent->link().was_whole_for(seconds{1}) &&
                     tables_.contains(node.machine->name);
  if (hears) ++tally_.looked["obeys"];
  const Time since = streak("disobeys " + node.machine->name, hears && !obeys(node));
  if (since > kObeysWithin) {
    find("obeys", node.machine->name + " does not obey its timetable for " + text_of(since));
  }
}

// An agent does not return to an older timetable than it has obeyed while the newer one is stored.
// A new worker begins without memory, a reinstalled timetable has another UID, and a store that was
// set back has itself lost the newer one: those are compared with nothing.
void Ledger::sample_going_back(Node& node) {
  const std::string& name = node.machine->name;
  const auto table = node.agent->obeyed();
  if (!table || now_ < restored_at_ + kAfterRestore) {
    obeyed_.erase(name);
    return;
  }
  const Obeyed now{table->metadata.uid, table->spec.term, table->spec.revision,
                   node.agent->worker_since()};
  const auto [entry, fresh] = obeyed_.try_emplace(name, now);
  const Obeyed before = std::exchange(entry->second, now);
  const auto stored = tables_.find(name);
  const bool same = !fresh && before.uid == now.uid && before.worker_since == now.worker_since &&
                    stored != tables_.end() && stored->second.metadata.uid == now.uid;
  if (!same) return;
  ++tally_.looked["goes back"];
  const auto is_older = [](std::int64_t term, std::int64_t revision, const Obeyed& than) {
    return std::pair{term, revision} < std::pair{than.term, than.revision};
  };
  const kube::NodeTimetableSpec& spec = stored->second.spec;
  if (is_older(now.term, now.revision, before) && !is_older(spec.term, spec.revision, before)) {
    find("goes back", name + " obeyed revision " + std::to_string(before.revision) + " and obeys " +
                          std::to_string(now.revision));
  }
}

// All pods of a gang stand or go. While a boundary passes some nodes have switched and others have
// not, and a new revision reaches the nodes one by one: for that the streak may last 5 s. One node
// that is excused excuses the whole job, because nothing says which side of the disagreement is
// right.
void Ledger::sample_gangs(std::vector<Node>& nodes, bool operator_is_well) {
  std::map<std::string, int> state;  // by job: 1 = some go, 2 = some stand
  std::set<std::string> excused;
  for (Node& node : nodes) {
    const bool unclear =
        is_excused(node) || std::chrono::abs(node.machine->clock.offset()) > kClockPromised;
    for (const auto& [uid, program] : node.kubelet->programs()) {
      const bool slow =
          node.machine->kernel.is_asked_frozen(uid) && !node.machine->kernel.stands(uid);
      if (unclear || slow || !is_settled(node, program) || is_ending(program)) {
        excused.insert(program.job_uid);
      }
      state[program.job_uid] |= node.machine->kernel.stands(uid) ? 2 : 1;
    }
  }
  for (const auto& [uid, seen] : state) {
    const auto job = jobs_.find(uid);
    const bool clear = operator_is_well && !excused.contains(uid) && job != jobs_.end() &&
                       kube::is_true(job->second.job.status.conditions, kube::kReady);
    if (clear) ++tally_.looked["gang agrees"];
    const Time since = streak("disagrees " + uid, clear && seen == 3);
    if (since > kGangAgreesWithin) {
      find("gang agrees",
           "the nodes of job " + job->second.job.metadata.name + " differ for " + text_of(since));
    }
  }
}

// Adds one sampling step to each job of which at least one program goes on. That is not how the
// operator accounts (in closed form, over the timetable), so the two can be compared.
void Ledger::sample_times(std::vector<Node>& nodes) {
  std::set<std::string> going;
  for (Node& node : nodes) {
    for (const auto& [uid, program] : node.kubelet->programs()) {
      if (program.running && !node.machine->kernel.stands(uid)) going.insert(program.job_uid);
    }
  }
  for (auto& [uid, facts] : jobs_) {
    if (facts.ready_at != kNoTime && going.contains(uid)) facts.ran += kSample;
  }
}

// A pod that comes on waits until those that go off stand still, or for the barrier.
void Ledger::thawed(Node& node, const std::string& uid) {
  const auto& programs = node.kubelet->programs();
  const auto on = programs.find(uid);
  if (on == programs.end() || !on->second.running || node.agent->everything_runs()) return;
  // Its supervisor thaws all that the journal names, and waits for nothing.
  if (!node.agent->is_working()) return;
  const base::Duration now = node.machine->clock.monotonic();
  for (const auto& [other, program] : programs) {
    const Kernel::Cgroup* cgroup = node.machine->kernel.find(other);
    if (program.job_uid == on->second.job_uid || !program.running || cgroup == nullptr) continue;
    // Only pods that are on their way off are waited for. One that was never asked to freeze runs
    // beside it by right or is a matter of `overlap`.
    if (cgroup->request != agent::FreezeRequest::kFrozen) continue;
    ++tally_.looked["barrier"];
    if (now < cgroup->stands_from && now < cgroup->asked_at + kBarrier && !is_ending(on->second)) {
      find("barrier", on->second.name + " comes on " + text_of(cgroup->stands_from - now) +
                          " before " + program.name + " stands still");
    }
  }
}

// --- at the end ---

// Returns true if every job and every batch Job that is stored has ended.
bool Ledger::all_final() const {
  return std::all_of(jobs_.begin(), jobs_.end(),
                     [](const auto& entry) { return is_final_state(entry.second.job); }) &&
         std::all_of(batch_.begin(), batch_.end(),
                     [this](const auto& entry) { return has_ended(entry.first); });
}

std::string Ledger::unfinished() const {
  std::string text;
  for (const auto& [uid, facts] : jobs_) {
    if (is_final_state(facts.job)) continue;
    text += facts.job.metadata.name + " is " + state_of(facts.job) + " (" +
            facts.job.status.reason + "), starts " +
            std::to_string(facts.job.status.starts.value_or(0)) + "; ";
  }
  for (const auto& [uid, facts] : batch_) {
    if (!facts.complete && !facts.failed) text += "batch Job " + facts.name + " has not ended; ";
  }
  return text;
}

// Two looks that need a cluster at rest: numbers of jobs are unique, and no program was left behind
// when its job ended.
void Ledger::check_end() {
  std::map<std::int64_t, std::string> numbers;
  for (const auto& [uid, facts] : jobs_) {
    ++tally_.looked["job numbers"];
    const std::int64_t id = facts.job.status.job_id.value_or(0);
    // A job has no number until the operator has taken it in.
    if (id == 0) continue;
    if (!numbers.try_emplace(id, uid).second) {
      find("job numbers", "two jobs have the number " + std::to_string(id));
    }
  }
  for (const auto& [uid, running] : running_) {
    for (const Program& program : running) {
      if (!suffered_.contains(program.node)) {
        find("left running", program.name + " runs after its job has ended");
      }
    }
  }
}

// Compares the usage that was recorded for all jobs with the run times in their statuses.
//
// Each run of a job is charged once, in whole seconds, so each job may differ by less than a
// second: `rounding`. A status tells the last run only. Runs before a requeue and jobs that were
// deleted have been charged, too, and are unknown here, so with any of those the record may be
// larger (`all_told` is false). It may never be smaller. A restore of etcd takes back statuses and
// records at different instants and is not judged at all.
void Ledger::check_usage(base::Duration recorded) {
  if (restored_at_ >= Time{0}) return;
  ++tally_.looked["usage"];
  base::Duration ran{0};
  bool all_told = !jobs_went_;
  std::string text;
  for (const auto& [uid, facts] : jobs_) {
    const kube::JobStatus& status = facts.job.status;
    if (status.starts.value_or(0) > 1) all_told = false;
    if (!facts.was_ready) continue;
    if (!status.run_time || !status.allocation) {
      all_told = false;
      continue;
    }
    ran += status.run_time->elapsed;
    text += " " + facts.job.metadata.name + " " + text_of(status.run_time->elapsed);
  }
  const base::Duration rounding = seconds{1} * static_cast<std::int64_t>(jobs_.size());
  const bool too_much = all_told && recorded > ran + rounding;
  if (recorded + rounding >= ran && !too_much) return;
  find("usage", "recorded are " + text_of(recorded) + ", jobs ran:" + text);
}

}  // namespace simulation
