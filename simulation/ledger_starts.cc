// Where jobs start, for how long they may take for it, and that none starts that is done.
#include <algorithm>
#include <utility>

#include "api/wellknown.h"
#include "simulation/ledger.h"
#include "simulation/ledger_terms.h"

namespace simulation {
namespace {

using std::chrono::seconds;

// A start that takes longer than its timeout is ended within this time: by then the operator has
// decided and stored that, and programs have had their grace time (killWait of World).
constexpr Time kUndoneWithin = seconds{10};
// A node that refused a job is not asked again for 60 s; the rest is for kubelets and agents that
// come back.
constexpr Time kIdleMax = seconds{90};
// A plan is made every 30 s (backfill.interval); the rest is for a pass that comes before a change
// is heard.
constexpr Time kPlannedWithin = seconds{40};
// How much sooner a job must be gone than others must go, for seconds that are cut off and
// run times that are stored late.
constexpr base::Duration kPlanSlack = std::chrono::minutes{1} + seconds{5};

// Returns true if its dependency is open by its status, which does not show one that differs from
// task to task. Pending writes are stored when the operator is well.
bool waits_for_others(const kube::Job& job) {
  return std::any_of(job.status.dependency.begin(), job.status.dependency.end(),
                     [](const kube::DependencyStatus& term) {
                       return term.state != kube::DependencyState::kFulfilled ||
                              term.type == kube::DependencyType::kAfterCorr;
                     });
}

// Returns true if the job is in the queue: it may start as soon as there is a node for it.
bool is_in_queue(const kube::Job& job) {
  const kube::JobControl& control = job.spec.control;
  const bool is_pending = job.status.state == kube::JobState::kPending;
  return (is_pending || job.spec.array) && !job.status.allocation && !job.status.held &&
         !control.hold.value_or(false) && !control.suspend.value_or(false) &&
         kube::is_true(job.status.conditions, kube::kAccepted) && !waits_for_others(job);
}

}  // namespace

// If the job is an array, a task without an entry of its own waits.
bool Ledger::waits(const JobFacts& facts) const {
  const bool is_whole = facts.job.spec.array && !facts.task;
  return is_in_queue(facts.job) && (!is_whole || some_task_waits(facts));
}

void Ledger::node_closes(const std::string& node, bool taint, bool closed) {
  closed_.erase({node, taint});
  if (closed) closed_[{node, taint}] = {.taint = taint};
  if (!taint) cordoned_until_[node] = closed ? Time::max() : now_;
}

// A start that is new is on nodes that its template allows, and none of them was closed to it when
// the operator had heard of that.
void Ledger::check_placement(const JobFacts& facts) {
  const JobPlan* plan = plan_of_job(facts.job);
  if (plan == nullptr || now_ < restored_at_ + kAfterRestore) return;
  for (const std::string& node : nodes_of(facts.allocation)) {
    ++tally_.looked["placement"];
    const std::string where = "job " + title_of(facts.job) + " starts on " + node + ", ";
    if (!plan->rack.empty() && plan->rack != rack_of(node)) {
      find("placement", where + "its nodeSelector wants the rack " + plan->rack);
    }
    for (const bool taint : {false, true}) {
      const auto closed = closed_.find({node, taint});
      if (closed == closed_.end() || !closed->second.is_known) continue;
      if (taint && plan->tolerates) continue;
      find("placement", where + "which is " + (taint ? "tainted" : "cordoned"));
    }
  }
}

// A job that starts gets no devices that other jobs have, as is stored, also those that are frozen.
// One whose programs have ended there has none: that its pods are gone, or that it has ended, may
// be stored after the start of the job that it makes room for.
void Ledger::check_devices(const JobFacts& facts) {
  const JobPlan* plan = plan_of_job(facts.job);
  if (plan == nullptr || plan->devices == 0 || now_ < restored_at_ + kAfterRestore) return;
  ++tally_.looked["devices"];
  for (const std::string& node : nodes_of(facts.allocation)) {
    int all = 0;
    for (const auto& [uid, other] : jobs_) {
      const JobPlan* its = plan_of_job(other.job);
      const auto runs = running_.find(uid);
      // By a clock that is ahead a job is ready as soon as it runs, before any sample sees it.
      const bool has_run =
          other.job.status.ending || other.began_at != kNoTime || other.ready_at != kNoTime;
      const bool is_gone =
          has_run && (runs == running_.end() ||
                      std::none_of(runs->second.begin(), runs->second.end(),
                                   [&](const Program& one) { return one.node == node; }));
      const bool has_nodes = other.job.status.allocation && !is_final_state(other.job) &&
                             other.job.status.state != kube::JobState::kPending && !is_gone;
      const bool counts = has_nodes || uid == facts.job.metadata.uid;
      if (its == nullptr || !counts || !nodes_of(other.allocation).contains(node)) continue;
      all += its->devices;
    }
    if (all <= kDevices) continue;
    find("devices", "job " + title_of(facts.job) + " starts on " + node + ", of which jobs have " +
                        std::to_string(all) + " devices");
  }
}

// A job all of whose pods have succeeded, as is stored and as the operator knows, has ended: it
// does not start again. REQUIRES: the job's start is new, and what is known is of the one before.
void Ledger::check_done_again(const JobFacts& facts) {
  if (facts.job.spec.completions || now_ < restored_at_ + kAfterRestore) return;
  ++tally_.looked["done again"];
  if (!facts.is_known_done) return;
  find("done again", "job " + title_of(facts.job) + " starts again, all its pods had succeeded");
}

// Notes the stored fate of jobs that others may wait for, in the words of the terms that it
// fulfills. A fate counts forever, whatever a restore of etcd undoes.
void Ledger::note_fate(const kube::Job& job) {
  // For an array as a whole see note_array_fate().
  if (job.spec.array && !control::task_in(job.metadata.uid)) return;
  std::set<std::string>& fate = fates_[title_of(job)];
  if (job.status.starts.value_or(0) > 0) fate.insert("After");
  if (!is_final_state(job)) return;
  const bool succeeded = job.status.state == kube::JobState::kCompleted;
  fate.insert({"After", "AfterAny", succeeded ? "AfterOK" : "AfterNotOK"});
}

// A job, or a task of an array, is no longer stored. To an operator that had heard of the ends of
// its programs it may have succeeded, although that was never stored.
void Ledger::note_fate_of_gone(const std::string& uid, const std::string& title) {
  std::set<std::string>& fate = fates_[title];
  fate.merge(fate_of_deleted());
  const auto known = jobs_.find(uid);
  if (known != jobs_.end() && have_ended_well(known->second)) fate.insert("AfterOK");
}

// A job starts for the first time only when what it waits for is stored of another one.
void Ledger::check_dependency(const JobFacts& facts) {
  const auto& dependency = facts.job.spec.dependency;
  if (!dependency || facts.job.status.starts.value_or(0) != 1) return;
  ++tally_.looked["dependency"];
  for (const kube::DependencyTerm& term : dependency->terms) {
    std::string kind{to_string(term.type)};
    std::optional<int> task = term.task;
    if (term.type == kube::DependencyType::kAfterCorr) {
      // One without a counterpart waits for the whole array (slurm-semantics.md, 13.4).
      kind = "AfterOK";
      if (fates_.contains(title_of(term.job_name, facts.task))) task = facts.task;
    } else if (task && fates_.contains(term.job_name) &&
               !fates_.contains(title_of(term.job_name, task))) {
      continue;  // the array has no such task
    }
    const std::set<std::string>& fate = fates_[title_of(term.job_name, task)];
    if (fate.contains(kind)) continue;
    find("dependency", "job " + title_of(facts.job) + " starts before the " + kind + " of job " +
                           title_of(term.job_name, task));
  }
}

// All nodes are not idle for long while jobs wait for them.
void Ledger::sample_idle() {
  bool some_wait = false, some_have_nodes = false;
  for (const auto& [uid, facts] : jobs_) {
    if (is_final_state(facts.job)) continue;
    some_wait = some_wait || waits(facts);
    some_have_nodes = some_have_nodes || facts.job.status.allocation || facts.job.status.ending;
  }
  // A start that is undone at once is seen by no sample.
  const bool some_started = last_start_at_ > now_ - kSample;
  const bool idle = operator_is_well_ && now_ >= faults_until_ && closed_.empty() && some_wait &&
                    !some_have_nodes && !some_started;
  if (idle) ++tally_.looked["idle"];
  const Time since = streak("idle", idle);
  if (since > kIdleMax) {
    find("idle", "all nodes are idle for " + text_of(since) + ": " + unfinished());
  }
}

// Returns the nodes that take jobs, and on which there is none, nor was since the last sample: a
// start that is undone at once is seen by no sample, and has taken the nodes for which a plan was
// made. The next plan comes with the next backfill.interval.
std::set<std::string> Ledger::idle_nodes(const std::vector<Node>& nodes) const {
  std::set<std::string> idle;
  for (const Node& node : nodes) {
    const auto& programs = node.kubelet->programs();
    const bool runs = std::any_of(programs.begin(), programs.end(), [](const auto& one) {
      return one.second.running || one.second.in_init;
    });
    if (!runs && !is_excused(node)) idle.insert(node.machine->name);
  }
  for (const auto& [uid, facts] : jobs_) {
    if (is_final_state(facts.job)) continue;
    if (!facts.job.status.allocation && !facts.job.status.ending) continue;
    for (const std::string& node : nodes_of(facts.allocation)) idle.erase(node);
  }
  for (const std::string& node : started_on_) idle.erase(node);
  return idle;
}

// Returns the least time that a job with nodes may yet run.
base::Duration Ledger::least_left() const {
  base::Duration least = base::Duration::max();
  for (const auto& [uid, facts] : jobs_) {
    const kube::JobStatus& status = facts.job.status;
    const auto limit = facts.job.spec.schedule.time_limit;
    if (is_final_state(facts.job) || !status.allocation || !limit) continue;
    const base::Duration ran = status.run_time ? status.run_time->elapsed : base::Duration{0};
    least = std::min(least, *limit - ran);
  }
  return least;
}

// Returns true if enough nodes that the job may have are idle, and none of them is kept for another
// one: the job is the first of all that wait, or it will be gone before any other job must go
// that the ones before it wait for.
bool Ledger::must_start(const JobFacts& facts, const std::set<std::string>& idle) const {
  const JobPlan* plan = plan_of_job(facts.job);
  if (plan == nullptr || is_throttled(facts)) return false;
  const auto may_have = std::count_if(idle.begin(), idle.end(), [&](const std::string& node) {
    return plan->rack.empty() || plan->rack == rack_of(node);
  });
  const auto& asked = facts.job.spec.resources.nodes;
  if (may_have < (asked ? asked->min : 1)) return false;
  const auto tier = [](const kube::Job& job) { return job.status.partition == "high" ? 2 : 1; };
  const auto order = [&](const kube::Job& job) {
    return std::pair{tier(job), job.status.priority.value_or(0)};
  };
  bool is_first = true, is_highest = true;
  for (const auto& [uid, other] : jobs_) {
    // Tasks of one array are in no order.
    const bool is_own = control::uid_in(uid) == control::uid_in(facts.job.metadata.uid);
    if (is_own || !waits(other)) continue;
    is_first = is_first && order(other.job) < order(facts.job);
    is_highest = is_highest && tier(other.job) <= tier(facts.job);
  }
  const auto limit = facts.job.spec.schedule.time_limit;
  const bool is_gone_in_time = limit && *limit + kPlanSlack <= least_left();
  return is_first || (is_highest && is_gone_in_time && !may_be_builtin_);
}

// No node is idle for long that a waiting job could have.
void Ledger::sample_idle_nodes(const std::vector<Node>& nodes) {
  if (!operator_is_well_ || now_ < faults_until_ || !closed_.empty()) return;
  const std::set<std::string> idle = idle_nodes(nodes);
  for (const auto& [uid, facts] : jobs_) {
    if (is_final_state(facts.job) || !waits(facts)) continue;
    const bool must = must_start(facts, idle);
    if (must) ++tally_.looked["idle node"];
    // A new start that is undone begins the wait again, and leaves out nodes that refused it.
    const auto array = arrays_.find(uid);
    const std::int64_t starts =
        array == arrays_.end() ? facts.job.status.starts.value_or(0) : array->second.starts;
    const Time since = streak("kept off " + uid + " " + std::to_string(starts), must);
    if (since > (starts == 0 ? kPlannedWithin : kIdleMax)) {
      find("idle node", "job " + title_of(facts.job) + " waits for " + text_of(since) +
                            " while nodes that it could have are idle");
    }
  }
}

// 1. The operator must have heard by now that nodes are closed, and that jobs are done.
// 2. A job whose programs run and that is not ready is within its start timeout: that time is not
//    charged.
void Ledger::sample_starts(std::vector<Node>& nodes) {
  if (operator_is_well_) {
    for (auto& [key, closed] : closed_) closed.is_known = true;
  }
  std::set<std::string> at_work;
  for (const Node& node : nodes) {
    for (const auto& [uid, program] : node.kubelet->programs()) {
      const auto job = jobs_.find(program.job_uid);
      if (job == jobs_.end() || job->second.job.status.starts != program.start) continue;
      if (program.running || program.in_init) at_work.insert(program.job_uid);
    }
  }
  for (auto& [uid, facts] : jobs_) {
    const kube::JobStatus& status = facts.job.status;
    const bool goes_on = !status.ending && !is_final_state(facts.job);
    const bool all_succeeded =
        status.allocation && !facts.job.spec.completions && !facts.succeeded.empty() &&
        facts.succeeded.size() >= pods_at_once(facts.job, *status.allocation);
    if (goes_on && all_succeeded && operator_is_well_) facts.is_known_done = true;
    const auto timeout = facts.job.spec.lifecycle.start_timeout;
    if (!timeout) continue;
    const bool starts = operator_is_well_ && now_ >= faults_until_ && goes_on &&
                        facts.ready_at == kNoTime && at_work.contains(uid);
    if (starts) ++tally_.looked["start timeout"];
    const Time since = streak("starts " + uid, starts);
    if (since > *timeout + kUndoneWithin) {
      find("start timeout", "job " + title_of(facts.job) + " works for " + text_of(since) +
                                " and is not ready, its startTimeout is " + text_of(*timeout));
    }
  }
}

}  // namespace simulation
