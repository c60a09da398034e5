#include "node-agent/policy/node_policy.h"

#include <algorithm>
#include <utility>

#include "node-agent/policy/timetable_json.h"

// Each step() works out the whole assignment again from the inputs, the journal and what the
// switcher reports about its pods; nothing depends on which change woke it. The order within a step
// keeps the one promise that the rest of the agent builds on (a pod is frozen only after the
// journal names it):
//
// 1. take over what could not be opened before, then decide which timetable is in force
// 2. place every listed pod: refused, waited for, settling, exempt or controlled
// 3. add the pods that were under control and are no longer listed, to be thawed
// 4. write the journal with every pod that may be frozen by this assignment or by the one before
// 5. bind pods to their CPUs and hand the assignment to the switcher
// 6. forget pods that neither the switcher nor the API server knows
// If the journal cannot be written, new pods run (kRuns) until it can. Facts that hold for a pod's
// life are kept by its UID, because a name may come to mean another pod.
namespace agent {
namespace {

// How long to wait before a cgroup that was removed is opened again.
constexpr base::Duration kReopenAfter = std::chrono::seconds{1};
// A runtime's helper may leave the pod's cgroup; there is no hurry to notice.
constexpr base::Duration kNeverFrozenLookEvery = std::chrono::seconds{10};
// A settled pod runs, so it has a cgroup; kubelet's word of its end may be some seconds late.
constexpr base::Duration kWithoutCgroupMax = std::chrono::seconds{10};
constexpr base::Duration kJournalRetryAfter = std::chrono::seconds{1};
// The switcher obeys within a wake-up, so this wait is usually the only one.
constexpr base::Duration kCatchUpLookAfter = std::chrono::milliseconds{10};
// From the request to delete a pod until kubelet sends SIGTERM, and the fraction of a second that a
// deletionTimestamp lacks. Measured on a slow node: 3 s.
constexpr base::Duration kKubeletLag = std::chrono::seconds{5};
// How long a pod is let run for all of its ephemeral containers together: for the start of one
// kubelet waits no longer for the runtime (runtimeRequestTimeout), only for an image.
constexpr base::Duration kDebugStartMax = std::chrono::minutes{2};

// Returns true if both say the same; their numbers are not compared.
bool same(const Assignment& a, const Assignment& b) {
  return a.table == b.table && a.barrier == b.barrier && a.everything_runs == b.everything_runs &&
         std::equal(a.pods.begin(), a.pods.end(), b.pods.begin(), b.pods.end(),
                    [](const ControlledPod& x, const ControlledPod& y) {
                      return x.control == y.control && x.index == y.index && x.rule == y.rule;
                    });
}

// A pod that another program froze is not in the journal. When that freeze ends, the switcher must
// not freeze the pod yet: we first observe the end, then journal the pod, and only then let it
// rotate.
ControlledPod under_control(const std::shared_ptr<PodControl>& control, std::uint16_t index,
                            ControlRule rule) {
  const bool foreign = control->state.load(std::memory_order_acquire) == FreezeState::kForeign;
  if (foreign && rule == ControlRule::kTimetable) rule = ControlRule::kRuns;
  return {.control = control, .index = index, .rule = rule};
}

// The status and the version do not matter: each write of the agent changes them.
bool says_the_same(const kube::NodeTimetable& a, const kube::NodeTimetable& b) {
  return a.metadata.uid == b.metadata.uid && a.spec == b.spec;
}

bool is_refused(GateVerdict verdict) {
  return is_stale(verdict) || verdict == GateVerdict::kInvalid;
}

// Makes an empty slot and no pods: run_at() names no pod then, and since no pod is controlled by
// ControlRule::kTimetable, none is frozen.
std::shared_ptr<const timetable::Timetable> no_timetable() {
  static const auto table = [] {
    timetable::Timetable none;
    none.cycle = {{}};
    return std::make_shared<const timetable::Timetable>(std::move(none));
  }();
  return table;
}

}  // namespace

std::string_view to_string(PodStanding standing) {
  switch (standing) {
    case PodStanding::kWaitedFor:
      return "waited-for";
    case PodStanding::kSettling:
      return "settling";
    case PodStanding::kControlled:
      return "controlled";
    case PodStanding::kExempt:
      return "exempt";
    case PodStanding::kRefused:
      return "refused";
  }
  return "unknown";
}

NodePolicy::NodePolicy(std::string node, JournalFile journal, std::string boot_id,
                       PodOpener& opener, AssignmentSink& sink)
    : node_{std::move(node)},
      journal_file_{std::move(journal)},
      boot_id_{std::move(boot_id)},
      opener_{opener},
      sink_{sink},
      cpu_sets_{opener},
      inheritance_{opener} {}

// 1. No journal of this boot, or a damaged one: it is unknown which pods the agent
//    froze, and inherit_unknown() finds them later by what is frozen. Usually no agent was here
//    before, but a user may have removed the file.
// 2. A whole one: its pods, CPU sets and timetable go on.
NodePolicy::Inherited NodePolicy::inherit() {
  Inherited inherited;
  const base::Result<Journal> journal = journal_file_.read(boot_id_);
  unknown_ = !journal.ok();
  inherited.found = journal.ok() || journal.error().code != base::Code::kNotFound;
  if (!journal) {
    if (inherited.found) inherited.damage = journal.error().message;
    return inherited;
  }
  inherited.journal = journal_ = *journal;
  unread_.insert(journal_.unread.begin(), journal_.unread.end());
  cpu_sets_.inherit(journal_.bound);
  take_over(inheritance_.begin(journal_.pods));
  if (!journal_.timetable.empty()) {
    base::Result<kube::NodeTimetable> timetable = timetable_from_json(journal_.timetable);
    if (timetable && timetable->metadata.name == node_)
      // The timetable that was in force goes on at once, before the API server answers: a restart
      // of the agent does not change turns.
      gate_.offer(*timetable, TimetableGate::Source::kWatch);
  }
  return inherited;
}

// Inherited pods count as settled: an agent before this one let them settle before it froze them.
void NodePolicy::take_over(const PodControls& inherited) {
  for (const std::shared_ptr<PodControl>& control : inherited) {
    settled_.insert(control->identity.uid);
    known_[control->identity.uid] = control;
  }
}

void NodePolicy::inherit_waiting(const Inputs& inputs) {
  take_over(inheritance_.retry(inputs.monotonic));
  if (const auto at = inheritance_.next_try()) wake_at(*at);
}

// The last part of taking over without a whole journal, see inherit(): looks once at every pod of a
// job, and again at those that could not be opened or read.
void NodePolicy::inherit_unknown(const Inputs& inputs) {
  if (!inputs.pods_known) return;
  if (unknown_) {
    for (const auto& [key, facts] : inputs.pods) {
      if (facts.node == node_ && !facts.job_uid.empty() && !facts.finished)
        unread_.insert(facts.uid);
    }
    unknown_ = false;
  }
  if (unread_.empty()) return;
  if (inputs.monotonic >= read_again_at_) {
    read_again_at_ = inputs.monotonic + Inheritance::kRetryAfter;
    for (const auto& [key, facts] : inputs.pods) {
      if (unread_.contains(facts.uid) && inherit_if_frozen(facts)) unread_.erase(facts.uid);
    }
  }
  if (!unread_.empty()) wake_at(read_again_at_);
}

// A pod of a job that is asked to be frozen counts as frozen by us: to thaw it later is right in
// any case, to take it for foreign would leave it frozen forever. Returns false if it could not be
// looked at just now (no descriptor left, no right).
bool NodePolicy::inherit_if_frozen(const PodFacts& facts) {
  const base::Result<PodOpener::Opened> opened =
      opener_.open(facts.uid, facts.qos.value_or(kube::QosClass::kBurstable));
  if (!opened) {
    return opened.error().code == base::Code::kNotFound ||
           opened.error().code == base::Code::kInvalidArgument;
  }
  const AskedState requested = opened->freezer->asked();
  if (requested.result != IoResult::kOk) return requested.result == IoResult::kGone;
  if (requested.request != FreezeRequest::kFrozen) return true;
  const PodIdentity identity{.uid = facts.uid,
                             .name = kube::to_string(facts.key),
                             .job_uid = facts.job_uid,
                             .path = opened->path};
  take_over({std::make_shared<PodControl>(identity, opened->freezer, FoundAs::kFrozenByUs,
                                          opened->never_freeze)});
  return true;
}

// Collects the earliest instant at which a rule could give another answer without any input having
// changed. step() returns it.
void NodePolicy::wake_at(base::Duration at) {
  if (!next_step_ || at < *next_step_) next_step_ = at;
}

// 1. Deleted: everything runs. 2. A new object is offered to the gate. 3. A stale one is offered
//    again with the answer of a quorum read, if that says the same.
void NodePolicy::take_timetable(const Inputs& inputs) {
  if (!inputs.timetable_known) return;
  // Deleted: nothing is in force, and every pod runs.
  if (!inputs.timetable) {
    offered_.reset();
    last_verdict_ = GateVerdict::kUnchanged;
    gate_.withdraw();
    return;
  }
  if (inputs.timetable != offered_) {
    // Each write of the status makes a new object: a timetable that is refused is counted once.
    const bool same_content = offered_ && says_the_same(*offered_, *inputs.timetable);
    offered_ = inputs.timetable;
    if (same_content && last_verdict_ == GateVerdict::kInvalid) return;
    last_verdict_ = gate_.offer(*offered_, TimetableGate::Source::kWatch);
    if (is_refused(last_verdict_) && !same_content) ++ignored_[last_verdict_];
  }
  // If a quorum read does not say the same as the watch, it is the watch that is behind, or the
  // answer is older than what the watch has brought since. Either way the watch decides.
  if (is_stale(last_verdict_) && inputs.confirmed && says_the_same(*offered_, *inputs.confirmed)) {
    last_verdict_ = gate_.offer(*offered_, TimetableGate::Source::kQuorumRead);
    if (is_refused(last_verdict_)) ++ignored_[last_verdict_];
  }
}

std::optional<base::Duration> NodePolicy::step(const Inputs& inputs) {
  next_step_.reset();
  inherit_waiting(inputs);
  inherit_unknown(inputs);
  note_running(inputs);
  // 1. Which timetable is in force, and where each pod that it lists stands.
  take_timetable(inputs);
  placed_ = place_pods(inputs);

  // 2. Work out the switcher's assignment.
  Assignment assignment;
  const std::shared_ptr<const kube::NodeTimetable> in_force = gate_.in_force();
  assignment.table =
      in_force ? std::shared_ptr<const timetable::Timetable>{in_force, &in_force->spec.timetable}
               : no_timetable();
  assignment.barrier = inputs.settings.barrier;
  // Three reasons to let everything run: the operator has not been heard of for too long
  // (failOpenAfter), an administrator pulled the switch, or the agent is about to end.
  assignment.everything_runs = inputs.failed_open || inputs.kill_switch || inputs.stopping;
  for (const Placed& placed : placed_) {
    if (placed.controlled) assignment.pods.push_back(*placed.controlled);
  }
  add_the_unlisted(assignment.pods);

  // 3. The journal first, then the CPU sets and the switcher.
  // A pod that is frozen, or bound to CPUs, without being named in the journal would stay so if
  // this process died now.
  const std::vector<CpuSets::Wanted> cpu_sets = wanted_cpu_sets(inputs, node_);
  write_journal(inputs, cpu_sets, assignment);
  bind_to_cpus(inputs, cpu_sets);
  if (!submitted_ || !same(*submitted_, assignment)) {
    submitted_ = assignment;
    sink_.submit(std::move(assignment));
  }

  // 4. Forget what is over.
  forget_the_thawed(inputs);
  return next_step_;
}

std::vector<NodePolicy::Placed> NodePolicy::place_pods(const Inputs& inputs) {
  std::vector<Placed> placed;
  if (!gate_.in_force()) return placed;
  const std::vector<kube::TimetablePod>& pods = gate_.in_force()->spec.pods;
  placed.reserve(pods.size());
  for (std::size_t i = 0; i < pods.size(); ++i) {
    placed.push_back(place(inputs, static_cast<std::uint16_t>(i), pods[i]));
  }
  return placed;
}

// Makes the tests in order: is the API server's list known; is the pod there; may the agent switch
// it; has it ended; by which rule is it controlled; can its cgroup be opened. The first that says
// no is the pod's standing.
NodePolicy::Placed NodePolicy::place(const Inputs& inputs, std::uint16_t index,
                                     const kube::TimetablePod& listed) {
  PodView view{.name = listed.ns + "/" + listed.name, .index = index};
  if (!inputs.pods_known) return place_from_journal(std::move(view), listed);
  const auto found = inputs.pods.find({listed.ns, listed.name});
  if (found == inputs.pods.end()) return {.view = std::move(view)};
  const PodFacts& facts = found->second;
  view.uid = facts.uid;
  // The timetable names pods by namespace and name. A pod that was made again under the same name,
  // or that belongs to another Job, must not be frozen in its place.
  view.note = refusal(facts, listed);
  if (!view.note.empty()) {
    view.standing = PodStanding::kRefused;
    return {.view = std::move(view)};
  }
  if (facts.finished) {
    view.note = "finished";
    return {.view = std::move(view)};
  }
  Placed placed{.view = std::move(view)};
  const std::optional<ControlRule> rule = rule_of(inputs, facts);
  placed.view.standing = PodStanding::kSettling;
  if (!rule) {
    // Without the settings (settle, barrier) it is not known how long to wait, so no pod is frozen.
    if (!inputs.rules_known) {
      placed.view.note = "the Node or the SchedulerConfig has not been read yet";
    }
    return placed;
  }
  const std::shared_ptr<PodControl> control = known_or_open(inputs, facts, placed.view);
  if (placed.view.never_frozen) placed.view.standing = PodStanding::kRefused;
  if (!control) {
    placed.view.no_cgroup = !placed.view.never_frozen && lacks_its_cgroup(inputs, facts);
    return placed;
  }
  without_cgroup_since_.erase(facts.uid);
  placed.view.standing =
      *rule == ControlRule::kDeleted ? PodStanding::kExempt : PodStanding::kControlled;
  placed.controlled = under_control(control, index, *rule);
  return placed;
}

// Returns those of all pods of jobs, also while they start: a program may read at its start how
// many CPUs it has. None before the API server has named the pods: until then each stays as it is.
std::vector<CpuSets::Wanted> NodePolicy::wanted_cpu_sets(const Inputs& inputs,
                                                         const std::string& node) {
  std::vector<CpuSets::Wanted> wanted;
  if (!inputs.pods_known) return wanted;
  for (const auto& [key, facts] : inputs.pods) {
    const bool is_ours = facts.node == node && !facts.job_uid.empty();
    if (!is_ours || facts.finished || facts.ending_within) continue;
    wanted.push_back({.name = kube::to_string(key),
                      .uid = facts.uid,
                      .qos = facts.qos.value_or(kube::QosClass::kBurstable),
                      .cpus = facts.cpuset,
                      .online = inputs.cpu_ids});
  }
  return wanted;
}

// Only what the journal names, so that an agent after us can take it back.
void NodePolicy::bind_to_cpus(const Inputs& inputs, const std::vector<CpuSets::Wanted>& wanted) {
  cpu_notes_.clear();
  for (const CpuSets::Wanted& one : wanted) {
    const bool named = std::binary_search(journal_.bound.begin(), journal_.bound.end(), one.uid);
    if (!one.cpus.empty() && !named) continue;  // write_journal() tries again.
    const CpuSets::Outcome outcome = cpu_sets_.apply(one, inputs.monotonic);
    if (!outcome.note.empty()) cpu_notes_[one.name] = outcome.note;
    if (!one.cpus.empty() || !outcome.note.empty()) wake_at(outcome.again_at);
  }
}

// Returns the UIDs of the pods that are bound to CPUs by us or will be in this step, sorted.
std::vector<std::string> NodePolicy::bound_or_wanted(
    const std::vector<CpuSets::Wanted>& wanted) const {
  std::vector<std::string> uids = cpu_sets_.bound();
  for (const CpuSets::Wanted& one : wanted) {
    if (!one.cpus.empty()) uids.push_back(one.uid);
  }
  std::sort(uids.begin(), uids.end());
  uids.erase(std::unique(uids.begin(), uids.end()), uids.end());
  return uids;
}

// The API server has not answered yet: the pods that the journal names go on as they were.
NodePolicy::Placed NodePolicy::place_from_journal(PodView view, const kube::TimetablePod& listed) {
  for (const auto& [uid, known] : known_) {
    if (known->identity.name != view.name || known->identity.job_uid != listed.job_uid) continue;
    view.uid = uid;
    view.standing = PodStanding::kControlled;
    const std::uint16_t index = view.index;
    return {.view = std::move(view),
            .controlled = under_control(known, index, ControlRule::kTimetable)};
  }
  return {.view = std::move(view)};
}

// Returns why the pod must not be switched although the timetable lists it; "" if it may be. The
// operator's view may be older than the pod (freezer.md 4 rule 4).
std::string NodePolicy::refusal(const PodFacts& facts, const kube::TimetablePod& listed) const {
  if (facts.node != node_) return "on node " + facts.node + ", not on this one";
  if (facts.job_uid.empty()) return "not controlled by a kubegang Job";
  if (facts.job_uid != listed.job_uid) {
    return "controlled by the Job with uid " + facts.job_uid + ", listed for " + listed.job_uid;
  }
  return {};
}

// Returns the rule by which the pod is controlled; nullopt while it must be left alone.
std::optional<ControlRule> NodePolicy::rule_of(const Inputs& inputs, const PodFacts& facts) {
  // A pod that is being deleted must run, so that it can handle SIGTERM within its grace time
  // (freezer.md 4).
  if (facts.ending_within) {
    const auto known = known_.find(facts.uid);
    if (known != known_.end()) return rule_of_ending(inputs, facts, *known->second);
    // Never under control: left alone, unless another program has frozen it (freezer.md 4 rule 10).
    if (!inherit_foreign_once(facts)) return std::nullopt;
    return rule_of_ending(inputs, facts, *known_.at(facts.uid));
  }
  // A DisruptionTarget condition can be taken back. The pod then takes its turns again, and a later
  // ending has its full grace time.
  endings_.erase(facts.uid);
  if (!is_settled(inputs, facts)) return std::nullopt;
  return ControlRule::kTimetable;
}

// Takes over a pod that another program has frozen and that was being deleted when this process
// first heard of it: frozen, it could not handle SIGTERM. Returns true if it was frozen. A pod that
// is seen to run is left alone to its end; one whose cgroup could not be read is looked at again.
bool NodePolicy::inherit_foreign_once(const PodFacts& facts) {
  if (inheritance_.waits_for(facts.uid) || unread_.contains(facts.uid)) return false;
  if (looked_at_ending_.contains(facts.uid)) return false;
  const base::Result<PodOpener::Opened> opened =
      opener_.open(facts.uid, facts.qos.value_or(kube::QosClass::kBurstable));
  if (!opened) return false;
  const AskedState requested = opened->freezer->asked();
  if (requested.result != IoResult::kOk) return false;
  looked_at_ending_.insert(facts.uid);
  if (requested.request != FreezeRequest::kFrozen) return false;
  const PodIdentity identity{.uid = facts.uid,
                             .name = kube::to_string(facts.key),
                             .job_uid = facts.job_uid,
                             .path = opened->path};
  known_[facts.uid] = std::make_shared<PodControl>(identity, opened->freezer, FoundAs::kForeign);
  return true;
}

// Returns the monotonic instant until which an ending pod stays thawed. kubelet gives it the grace
// time from when it sends SIGTERM, which is some seconds after the request (kKubeletLag), and has
// begun long ago if this process saw the deletion late. So a deletion counts by its
// deletionTimestamp, but never for longer than the grace time from when we saw it: the clocks may
// differ. A disruption has no such timestamp, and the deletion that follows it counts again.
base::Duration NodePolicy::end_of_grace(const Inputs& inputs, const PodFacts& facts) {
  const bool by_deletion = facts.deleted_by.has_value();
  auto [ending, first] = endings_.try_emplace(
      facts.uid, Ending{.since = inputs.monotonic, .by_deletion = by_deletion});
  if (!first && by_deletion && !ending->second.by_deletion) {
    ending->second = {.since = inputs.monotonic, .by_deletion = true};
  }
  const base::Duration since = ending->second.since;
  base::Duration over = since + *facts.ending_within;
  if (by_deletion) {
    const base::Duration by_server = inputs.monotonic + (*facts.deleted_by - inputs.wall);
    // The API server's clock may differ from the node's by any amount. The clamp keeps the end of
    // the grace time between the instant at which we saw the deletion and a full grace time later.
    over = std::clamp(by_server, since, over);
  }
  return over + kKubeletLag;
}

// A pod whose grace time is over takes its turns again on v2: kubelet's SIGKILL ends it there even
// if it is frozen, and a pod that hangs in Terminating must not hold the cores of other gangs.
ControlRule NodePolicy::rule_of_ending(const Inputs& inputs, const PodFacts& facts,
                                       const PodControl& control) {
  const base::Duration over = end_of_grace(inputs, facts);
  // On v1 SIGKILL does not get through to a frozen pod, so it stays thawed until it is gone.
  if (!control.freezer->kill_works_while_frozen()) return ControlRule::kDeleted;
  if (inputs.monotonic >= over) return ControlRule::kTimetable;
  wake_at(over);
  return ControlRule::kDeleted;
}

// kubectl debug adds a container to a running pod; while it starts, and until it has settled, the
// pod must not be frozen. Such a container may never start (there is no such image), it stays in
// the pod's status, and users may add any number of them. So a pod has one allowance for all of
// them, for as long as it lives, whether it had to leave its turns for them or was in none:
// afterwards it takes its turns whatever is added to it, and a container starts in one of these.
bool NodePolicy::waits_for_debug(const Inputs& inputs, const PodFacts& facts) {
  const bool waits = facts.starting_count > 0;
  const auto found = waits ? debugged_.try_emplace(facts.uid).first : debugged_.find(facts.uid);
  if (found == debugged_.end()) return false;
  Debugged& debugged = found->second;
  if (debugged.since) debugged.unsettled += inputs.monotonic - *debugged.since;
  debugged.since.reset();
  if (debugged.unsettled >= kDebugStartMax) return false;
  // A pod that was let run for a waiting container is charged until it has settled.
  if (waits || !settled_.contains(facts.uid)) debugged.since = inputs.monotonic;
  if (waits) wake_at(inputs.monotonic + kDebugStartMax - debugged.unsettled);
  return waits;
}

// Keeps since when the containers of each pod are seen to run as they do now, and counts the time
// for ephemeral ones: also of pods that no timetable lists yet, which may have run for long when
// one does.
void NodePolicy::note_running(const Inputs& inputs) {
  for (const auto& [key, facts] : inputs.pods) {
    if (facts.node != node_) continue;
    Running& running = running_[facts.uid];
    if (facts.settled_at && running.settled_at != facts.settled_at) {
      running = {.settled_at = facts.settled_at, .since = inputs.monotonic};
    }
    const bool is_debugged = facts.starting_count > 0 || debugged_.contains(facts.uid);
    if (is_debugged) (void)is_settled(inputs, facts);
  }
}

// A pod has settled when all its containers have run for the settle time: while the runtime starts
// a container, a freeze would hang it (freezer.md 2.6). Counts by the wall clock, to which
// startedAt belongs, but waits at most settle + 1 s by the monotonic clock from when they were seen
// to run: a wall clock that was set back must not keep the pod out of its turns.
bool NodePolicy::is_settled(const Inputs& inputs, const PodFacts& facts) {
  if (waits_for_debug(inputs, facts)) {
    settled_.erase(facts.uid);
    return false;
  }
  if (settled_.contains(facts.uid)) return true;
  if (!facts.settled_at || !inputs.rules_known) return false;
  const base::Duration at =
      std::min(inputs.monotonic + (*facts.settled_at - inputs.wall),
               running_[facts.uid].since + inputs.settings.settle + std::chrono::seconds{1});
  if (at > inputs.monotonic) {
    wake_at(at);
    return false;
  }
  settled_.insert(facts.uid);
  return true;
}

// 1. A pod that is known keeps its descriptors, unless its cgroup was removed.
// 2. One that inheritance still tries to open, or that failed a moment ago, waits.
// 3. Otherwise its cgroup is searched, opened and looked at: how it is asked to be now decides
//    whether a freeze in it is foreign.
// Returns null, with the reason in `view`, if the pod cannot be controlled now.
std::shared_ptr<PodControl> NodePolicy::known_or_open(const Inputs& inputs, const PodFacts& facts,
                                                      PodView& view) {
  // Opened once for each pod: the descriptors are kept, since a path could come to mean another
  // cgroup.
  if (const auto known = known_.find(facts.uid); known != known_.end()) {
    if (!known->second->never_freeze.empty()) {  // inherited: an agent before us has frozen it
      view.note = known->second->never_freeze;
      view.never_frozen = true;
      return nullptr;
    }
    const bool gone = known->second->state.load(std::memory_order_acquire) == FreezeState::kGone;
    return gone ? reopened(inputs, known->second) : known->second;
  }
  if (inheritance_.waits_for(facts.uid)) {
    view.note = "its cgroup, which the agent before had under control, cannot be opened";
    return nullptr;
  }
  if (const auto retry = retries_.find(facts.uid);
      retry != retries_.end() && inputs.monotonic < retry->second.at) {
    wake_at(retry->second.at);
    view.note = retry->second.why;
    view.denied = retry->second.denied;
    view.never_frozen = retry->second.never_frozen;
    return nullptr;
  }
  base::Result<PodOpener::Opened> opened =
      opener_.open(facts.uid, facts.qos.value_or(kube::QosClass::kBurstable));
  const AskedState requested =
      opened ? opened->freezer->asked() : AskedState{.result = IoResult::kGone};
  if (requested.result != IoResult::kOk) {
    view.note = opened ? "its cgroup cannot be read" : opened.error().message;
    view.denied = !opened && opened.error().code == base::Code::kPermissionDenied;
    retries_[facts.uid] = {
        .at = inputs.monotonic + Inheritance::kRetryAfter, .why = view.note, .denied = view.denied};
    wake_at(inputs.monotonic + Inheritance::kRetryAfter);
    return nullptr;
  }
  // For example CRI-O's conmon in the pod's own cgroup: frozen with the pod, it could not answer
  // kubelet.
  if (!opened->never_freeze.empty()) {
    view.note = opened->never_freeze;
    view.never_frozen = true;
    retries_[facts.uid] = {
        .at = inputs.monotonic + kNeverFrozenLookEvery, .why = view.note, .never_frozen = true};
    wake_at(inputs.monotonic + kNeverFrozenLookEvery);
    return nullptr;
  }
  retries_.erase(facts.uid);
  // Everything that we froze is in the journal and was inherited: another program froze this one,
  // unless the journal was lost and the pod could not be read until now.
  const bool may_be_ours = unread_.erase(facts.uid) > 0;
  const FoundAs if_frozen = may_be_ours ? FoundAs::kFrozenByUs : FoundAs::kForeign;
  const FoundAs found_as =
      requested.request == FreezeRequest::kFrozen ? if_frozen : FoundAs::kRunning;
  const PodIdentity identity{
      .uid = facts.uid, .name = view.name, .job_uid = facts.job_uid, .path = opened->path};
  return known_[facts.uid] = std::make_shared<PodControl>(identity, opened->freezer, found_as);
}

// Returns true if the pod should take its turns and has not had a cgroup that can be opened for
// kWithoutCgroupMax: it runs in the turns of all others meanwhile.
bool NodePolicy::lacks_its_cgroup(const Inputs& inputs, const PodFacts& facts) {
  const base::Duration since =
      without_cgroup_since_.try_emplace(facts.uid, inputs.monotonic).first->second;
  if (inputs.monotonic - since >= kWithoutCgroupMax) return true;
  wake_at(since + kWithoutCgroupMax);
  return false;
}

// The pod's cgroup was removed, and the pod is still there: kubelet makes the cgroup again, at the
// same place, before it starts a container in it. A freeze in the new cgroup is foreign: the old
// one, with the agent's request in it, is gone.
std::shared_ptr<PodControl> NodePolicy::reopened(const Inputs& inputs,
                                                 const std::shared_ptr<PodControl>& gone) {
  const PodIdentity& identity = gone->identity;
  Retry& retry = retries_[identity.uid];
  if (inputs.monotonic >= retry.at) {
    retry = {.at = inputs.monotonic + kReopenAfter};
    const base::Result<PodOpener::Opened> opened = opener_.open_at(identity.path, identity.uid);
    const AskedState requested =
        opened ? opened->freezer->asked() : AskedState{.result = IoResult::kGone};
    if (requested.result == IoResult::kOk) {
      retries_.erase(identity.uid);
      const FoundAs found_as =
          requested.request == FreezeRequest::kFrozen ? FoundAs::kForeign : FoundAs::kRunning;
      return known_[identity.uid] =
                 std::make_shared<PodControl>(identity, opened->freezer, found_as);
    }
  }
  wake_at(retry.at);
  return gone;
}

// Adds the pods that were under control and are no longer listed or allowed: the switcher thaws
// them, and then they are forgotten.
void NodePolicy::add_the_unlisted(std::vector<ControlledPod>& pods) const {
  std::set<const PodControl*> listed;
  for (const ControlledPod& pod : pods) listed.insert(pod.control.get());
  for (const auto& [uid, control] : known_) {
    if (listed.contains(control.get()) || pods.size() >= kControlledPodsMax) continue;
    // kRuns and index 0: the pod has no place in the timetable, and the index is not used.
    if (is_frozen_by_us(control->state.load(std::memory_order_acquire))) {
      pods.push_back({.control = control, .index = 0, .rule = ControlRule::kRuns});
    }
  }
}

// Returns every pod that the agent has frozen or may freeze: the pods of the new assignment, and
// the pods that the switcher may still be switching by an older one. Left out are pods with a
// foreign freeze, once the switcher has caught up, and running pods while everything runs, because
// a freeze that appears then is foreign.
std::vector<PodIdentity> NodePolicy::pods_to_name(const Inputs& inputs,
                                                  const Assignment& assignment) {
  const bool caught_up = sink_.caught_up();
  const Assignment& before = submitted_ ? *submitted_ : assignment;
  // No freeze can come from us then: neither the old nor the new assignment asks for one, and the
  // switcher has none in hand.
  const bool nothing_freezes = assignment.everything_runs && before.everything_runs && caught_up;
  std::set<const PodControl*> may_be_frozen;
  // Both: until the switcher has taken the new assignment, it may still freeze by the old one.
  for (const Assignment* one : {&assignment, &before}) {
    for (const ControlledPod& pod : one->pods) {
      if (pod.rule == ControlRule::kTimetable) may_be_frozen.insert(pod.control.get());
    }
  }
  // The pods of the last process that could not be opened yet may be frozen.
  std::vector<PodIdentity> names = inheritance_.waiting();
  std::set<const PodControl*> seen;
  const auto name = [&](const PodControl& control) {
    if (!seen.insert(&control).second) return;
    const FreezeState state = control.state.load(std::memory_order_acquire);
    if (nothing_freezes && !is_frozen_by_us(state)) return;
    if (state == FreezeState::kForeign) {
      if (caught_up && !may_be_frozen.contains(&control)) return;
      wake_at(inputs.monotonic + kCatchUpLookAfter);
    }
    names.push_back(control.identity);
  };
  for (const ControlledPod& pod : assignment.pods) name(*pod.control);
  for (const auto& [uid, control] : known_) name(*control);
  return names;
}

// The journal is written if it would say something else, before the switcher hears of the
// assignment. A write that fails changes the assignment: pods that the journal on the disk does not
// name run.
void NodePolicy::write_journal(const Inputs& inputs, const std::vector<CpuSets::Wanted>& cpu_sets,
                               Assignment& assignment) {
  if (unknown_) return;  // A damaged one, or none, tells the next process that nothing is known.
  Journal next{.boot_id = boot_id_, .lease = inputs.lease};
  if (inputs.rules_known) {
    next.rules = Rules{.settings = inputs.settings, .kill_switch = inputs.kill_switch};
  }
  next.pods = pods_to_name(inputs, assignment);
  next.unread.assign(unread_.begin(), unread_.end());
  next.bound = bound_or_wanted(cpu_sets);
  // Compared by pointer, so that a step without a new timetable does not encode it again.
  if (gate_.in_force() != json_of_) {
    json_of_ = gate_.in_force();
    timetable_json_ = json_of_ ? timetable_to_json(*json_of_) : "";
  }
  next.timetable = timetable_json_;
  // The journal changes with pods and timetables, not with turns: no write to disk in a slice.
  if (next == journal_ && journal_error_.empty()) return;
  const base::Status status = journal_file_.write(next);
  if (status) {
    journal_error_.clear();
    journal_ = std::move(next);
    return;
  }
  journal_error_ = status.error().message;
  wake_at(inputs.monotonic + kJournalRetryAfter);
  // A pod that the journal on disk does not name must not be frozen; it may be thawed.
  for (ControlledPod& pod : assignment.pods) {
    const bool named = std::find(journal_.pods.begin(), journal_.pods.end(),
                                 pod.control->identity) != journal_.pods.end();
    if (!named && pod.rule == ControlRule::kTimetable) pod.rule = ControlRule::kRuns;
  }
}

// A PodControl is kept while the switcher has it in its table: a second one for the same pod would
// have a machine of its own, and the two would write against each other.
void NodePolicy::forget_the_thawed(const Inputs& inputs) {
  // The switcher may still hold pods by an older assignment: forgetting one now could leave it
  // frozen.
  if (!sink_.caught_up()) {
    wake_at(inputs.monotonic + kCatchUpLookAfter);
    return;
  }
  std::set<const PodControl*> assigned;
  for (const ControlledPod& pod : submitted_->pods) assigned.insert(pod.control.get());
  std::erase_if(known_, [&](const auto& entry) {
    const PodControl& control = *entry.second;
    if (assigned.contains(&control) || control.controlled.load(std::memory_order_acquire)) {
      return false;
    }
    endings_.erase(entry.first);
    return true;
  });
  if (!inputs.pods_known) return;
  std::set<std::string> exist;
  for (const auto& [key, facts] : inputs.pods) exist.insert(facts.uid);
  const auto is_over = [&](const std::string& uid) {
    return !exist.contains(uid) && !known_.contains(uid);
  };
  // Everything that is remembered by UID ends with its pod, or a node that lives for months would
  // fill up.
  std::erase_if(settled_, is_over);
  std::erase_if(looked_at_ending_, is_over);
  std::erase_if(unread_, is_over);
  cpu_sets_.forget_all_but(exist);
  std::erase_if(running_, [&](const auto& entry) { return is_over(entry.first); });
  std::erase_if(without_cgroup_since_, [&](const auto& entry) { return is_over(entry.first); });
  std::erase_if(debugged_, [&](const auto& entry) { return is_over(entry.first); });
  std::erase_if(retries_, [&](const auto& entry) { return is_over(entry.first); });
}

// The placement is that of the last step, the freezer's state is as of now.
std::vector<PodView> NodePolicy::pods() const {
  std::vector<PodView> views;
  views.reserve(placed_.size());
  for (const Placed& placed : placed_) {
    PodView& view = views.emplace_back(placed.view);
    if (!placed.controlled) continue;
    const PodControl& control = *placed.controlled->control;
    view.state = control.state.load(std::memory_order_acquire);
    view.path = control.identity.path;
    if (control.denied.load(std::memory_order_relaxed)) {
      view.note = "the kernel refuses the write to its freezer";
      view.denied = true;
    }
    view.slow_freezes = control.slow_freezes.load();
    view.slow_freeze = base::Duration{control.slow_freeze_micros.load()};
    const std::int64_t micros = control.last_switch_micros.load(std::memory_order_relaxed);
    if (micros != 0) view.last_switch = base::instant_from_micros(micros);
  }
  return views;
}

// Used at the stop: only when this is true may the process end with exit code 0, after which its
// supervisor does not thaw.
bool NodePolicy::all_thawed() const {
  if (!sink_.caught_up() || !inheritance_.waiting().empty() || !unread_.empty()) return false;
  return std::none_of(known_.begin(), known_.end(), [](const auto& entry) {
    return is_frozen_by_us(entry.second->state.load(std::memory_order_acquire));
  });
}

}  // namespace agent
