#include "node-agent/policy/keeper.h"

#include <algorithm>
#include <utility>

#include "node-agent/policy/timetable_json.h"

namespace agent {
namespace {

constexpr base::Duration kReopenAfter = std::chrono::seconds{1};
constexpr base::Duration kJournalRetryAfter = std::chrono::seconds{1};
constexpr base::Duration kCatchUpLookAfter = std::chrono::milliseconds{10};

bool is_off_or_on_its_way(FreezeState state) {
  return state == FreezeState::kFreezing || state == FreezeState::kFrozen ||
         state == FreezeState::kStuck || state == FreezeState::kThawing;
}

bool same_pods(const std::vector<ControlledPod>& a, const std::vector<ControlledPod>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const ControlledPod& x, const ControlledPod& y) {
                      return x.control == y.control && x.index == y.index && x.rule == y.rule;
                    });
}

// What somebody else has frozen is in no journal, so the switcher may not freeze it when that ends:
// first it is said to have ended, then named, then it takes its turns.
ControlledPod under_control(const std::shared_ptr<PodControl>& control, std::uint16_t index,
                            Rule rule) {
  const bool foreign = control->state.load(std::memory_order_acquire) == FreezeState::kForeign;
  if (foreign && rule == Rule::kTimetable) rule = Rule::kRuns;
  return {.control = control, .index = index, .rule = rule};
}

timetable::Timetable nobody_listed() {
  timetable::Timetable table;
  table.cycle = {{}};
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

Keeper::Keeper(std::string node, JournalFile journal, std::string boot_id, PodOpener& opener,
               AssignmentSink& sink)
    : node_{std::move(node)},
      journal_file_{std::move(journal)},
      boot_id_{std::move(boot_id)},
      opener_{opener},
      sink_{sink},
      cpu_sets_{opener},
      adoption_{opener} {}

Keeper::Adopted Keeper::adopt() {
  Adopted adopted;
  const base::Result<Journal> journal = journal_file_.read(boot_id_);
  if (!journal && journal.error().code == base::Code::kNotFound) return adopted;
  adopted.found = true;
  if (!journal) {
    adopted.damage = journal.error().message;
    unknown_ = true;
    return adopted;
  }
  adopted.journal = journal_ = *journal;
  take_over(adoption_.begin(journal_.pods));
  if (!journal_.timetable.empty()) {
    base::Result<kube::NodeTimetable> timetable = timetable_from_json(journal_.timetable);
    if (timetable && timetable->metadata.name == node_) gate_.offer(*timetable);
  }
  return adopted;
}

void Keeper::take_over(const PodControls& adopted) {
  for (const std::shared_ptr<PodControl>& control : adopted) {
    settled_.insert(control->identity.uid);
    known_[control->identity.uid] = control;
  }
}

void Keeper::adopt_waiting(const World& world) {
  take_over(adoption_.retry(world.monotonic));
  if (const auto at = adoption_.next_try()) wake_at(*at);
}

// The last part of taking over with a damaged journal, see adopt(): once.
void Keeper::adopt_unknown(const World& world) {
  if (!unknown_ || !world.pods_known) return;
  for (const auto& [key, facts] : world.pods) {
    if (facts.node != node_ || facts.job_uid.empty() || facts.finished) continue;
    const base::Result<PodOpener::Opened> opened =
        opener_.open(facts.uid, facts.qos.value_or(kube::QosClass::kBurstable));
    if (!opened) continue;
    const Requested requested = opened->freezer->requested();
    if (requested != Requested{.result = IoResult::kOk, .wish = Wish::kFrozen}) continue;
    const PodIdentity identity{.uid = facts.uid,
                               .name = kube::to_string(key),
                               .job_uid = facts.job_uid,
                               .path = opened->path};
    take_over({std::make_shared<PodControl>(identity, opened->freezer, Found::kFrozenByUs)});
  }
  unknown_ = false;
}

void Keeper::wake_at(base::Duration at) {
  if (!next_step_ || at < *next_step_) next_step_ = at;
}

void Keeper::take_timetable(const World& world) {
  if (!world.timetable_known || world.timetable == offered_) {
    if (world.timetable_known && !world.timetable) gate_.withdraw();
    return;
  }
  offered_ = world.timetable;
  if (!world.timetable) {
    gate_.withdraw();
    return;
  }
  last_verdict_ = gate_.offer(*world.timetable);
  if (last_verdict_ != GateVerdict::kObeyed && last_verdict_ != GateVerdict::kUnchanged) {
    ++ignored_[last_verdict_];
  }
}

std::uint64_t Keeper::offers_ignored(GateVerdict verdict) const {
  const auto found = ignored_.find(verdict);
  return found == ignored_.end() ? 0 : found->second;
}

std::optional<base::Duration> Keeper::step(const World& world) {
  next_step_.reset();
  adopt_waiting(world);
  adopt_unknown(world);
  // 1. Which timetable is in force, and where each pod that it lists stands.
  take_timetable(world);
  placed_ = place_pods(world);

  // 2. What the switcher has to do.
  Assignment assignment;
  assignment.table = gate_.in_force() ? gate_.in_force()->spec.timetable : nobody_listed();
  assignment.barrier = world.settings.barrier;
  assignment.everything_runs = world.failed_open || world.kill_switch || world.stopping;
  for (const Placed& placed : placed_) {
    if (placed.controlled) assignment.pods.push_back(*placed.controlled);
  }
  add_the_unlisted(assignment.pods);

  // 3. The journal first, then the switcher.
  write_journal(world, assignment);
  const bool same = submitted_once_ && submitted_timetable_ == gate_.in_force() &&
                    submitted_.barrier == assignment.barrier &&
                    submitted_.everything_runs == assignment.everything_runs &&
                    same_pods(submitted_.pods, assignment.pods);
  if (!same) {
    submitted_once_ = true;
    submitted_ = assignment;
    submitted_timetable_ = gate_.in_force();
    sink_.submit(std::move(assignment));
  }

  // 4. What is over.
  forget_the_thawed(world);
  return next_step_;
}

std::vector<Keeper::Placed> Keeper::place_pods(const World& world) {
  std::vector<Placed> placed;
  if (!gate_.in_force()) return placed;
  const std::vector<kube::TimetablePod>& pods = gate_.in_force()->spec.pods;
  placed.reserve(pods.size());
  for (std::size_t i = 0; i < pods.size(); ++i) {
    placed.push_back(place(world, static_cast<std::uint16_t>(i), pods[i]));
  }
  return placed;
}

Keeper::Placed Keeper::place(const World& world, std::uint16_t index,
                             const kube::TimetablePod& listed) {
  PodView view{.name = listed.ns + "/" + listed.name, .index = index};
  if (!world.pods_known) return place_from_journal(std::move(view), listed);
  const auto found = world.pods.find({listed.ns, listed.name});
  if (found == world.pods.end()) return {std::move(view), std::nullopt};
  const PodFacts& facts = found->second;
  view.uid = facts.uid;
  view.note = refusal(facts, listed);
  if (!view.note.empty()) {
    view.standing = PodStanding::kRefused;
    return {std::move(view), std::nullopt};
  }
  if (facts.finished) {
    view.note = "finished";
    return {std::move(view), std::nullopt};
  }
  bind_to_cpus(world, facts, listed, view);
  const std::optional<Rule> rule = rule_of(world, facts);
  view.standing = PodStanding::kSettling;
  if (!rule) {
    if (!world.rules_known) view.note = "the Node or the SchedulerConfig has not been read yet";
    return {std::move(view), std::nullopt};
  }
  const std::shared_ptr<PodControl> control = known_or_open(world, facts, view);
  if (!control) return {std::move(view), std::nullopt};
  view.standing = *rule == Rule::kDeleted ? PodStanding::kExempt : PodStanding::kControlled;
  return {std::move(view), under_control(control, index, *rule)};
}

// Also while it starts: a program may read at its start how many CPUs it has.
void Keeper::bind_to_cpus(const World& world, const PodFacts& facts,
                          const kube::TimetablePod& listed, PodView& view) {
  if (listed.cpuset.empty() || facts.ending_within) return;
  const CpuSets::Outcome outcome =
      cpu_sets_.apply({.uid = facts.uid,
                       .qos = facts.qos.value_or(kube::QosClass::kBurstable),
                       .cpus = listed.cpuset,
                       .online = world.cpu_ids},
                      world.monotonic);
  view.cpu_note = outcome.note;
  wake_at(outcome.again_at);
}

// The API server has not answered yet: the pods that the journal names go on as they were.
Keeper::Placed Keeper::place_from_journal(PodView view, const kube::TimetablePod& listed) {
  for (const auto& [uid, known] : known_) {
    if (known->identity.name != view.name || known->identity.job_uid != listed.job_uid) continue;
    view.uid = uid;
    view.standing = PodStanding::kControlled;
    const std::uint16_t index = view.index;
    return {std::move(view), under_control(known, index, Rule::kTimetable)};
  }
  return {std::move(view), std::nullopt};
}

std::string Keeper::refusal(const PodFacts& facts, const kube::TimetablePod& listed) const {
  if (facts.node != node_) return "on node " + facts.node + ", not on this one";
  if (facts.job_uid.empty()) return "not controlled by a kubegang Job";
  if (facts.job_uid != listed.job_uid) {
    return "controlled by the Job with uid " + facts.job_uid + ", listed for " + listed.job_uid;
  }
  return {};
}

// By which rule the pod is to be controlled; nothing while it may not be.
std::optional<Rule> Keeper::rule_of(const World& world, const PodFacts& facts) {
  if (facts.ending_within) {
    const auto known = known_.find(facts.uid);
    if (known != known_.end()) return rule_of_ending(world, facts, *known->second);
    // Never under control: left alone, unless somebody has frozen it (freezer.md 4 rule 10).
    if (!is_found_frozen(facts)) return std::nullopt;
    return rule_of_ending(world, facts, *known_.at(facts.uid));
  }
  endings_.erase(facts.uid);
  if (!is_settled(world, facts)) return std::nullopt;
  return Rule::kTimetable;
}

// Of a pod that was being deleted already when this process first heard of it. Looks once. If so,
// it is known from then on.
bool Keeper::is_found_frozen(const PodFacts& facts) {
  if (adoption_.waits_for(facts.uid) || !looked_at_ending_.insert(facts.uid).second) return false;
  const base::Result<PodOpener::Opened> opened =
      opener_.open(facts.uid, facts.qos.value_or(kube::QosClass::kBurstable));
  if (!opened) return false;
  const Requested requested = opened->freezer->requested();
  if (requested != Requested{.result = IoResult::kOk, .wish = Wish::kFrozen}) return false;
  const PodIdentity identity{.uid = facts.uid,
                             .name = kube::to_string(facts.key),
                             .job_uid = facts.job_uid,
                             .path = opened->path};
  known_[facts.uid] = std::make_shared<PodControl>(identity, opened->freezer, Found::kForeign);
  return true;
}

Rule Keeper::rule_of_ending(const World& world, const PodFacts& facts, const PodControl& control) {
  auto [ending, first] = endings_.try_emplace(
      facts.uid, Ending{.since = world.monotonic, .deletion_seen = facts.deletion_seen});
  if (!first && facts.deletion_seen && !ending->second.deletion_seen) {
    ending->second = {.since = world.monotonic, .deletion_seen = true};
  }
  // Where SIGKILL does not get through, it stays thawed until it is gone (rule 9).
  if (!control.freezer->kill_works_while_frozen()) return Rule::kDeleted;
  const base::Duration over = ending->second.since + *facts.ending_within;
  if (world.monotonic >= over) return Rule::kTimetable;
  wake_at(over);
  return Rule::kDeleted;
}

// By the wall clock, to which startedAt belongs; if that was set back meanwhile, by our own.
bool Keeper::is_settled(const World& world, const PodFacts& facts) {
  if (settled_.contains(facts.uid)) return true;
  if (!facts.settled_at || !world.rules_known) return false;
  const base::Duration since =
      settling_since_.try_emplace(facts.uid, world.monotonic).first->second;
  const base::Duration at = std::min(world.monotonic + (*facts.settled_at - world.wall),
                                     since + world.settings.settle + std::chrono::seconds{1});
  if (at > world.monotonic) {
    wake_at(at);
    return false;
  }
  settling_since_.erase(facts.uid);
  settled_.insert(facts.uid);
  return true;
}

std::shared_ptr<PodControl> Keeper::known_or_open(const World& world, const PodFacts& facts,
                                                  PodView& view) {
  if (const auto known = known_.find(facts.uid); known != known_.end()) {
    const bool gone = known->second->state.load(std::memory_order_acquire) == FreezeState::kGone;
    return gone ? reopened(world, known->second) : known->second;
  }
  if (adoption_.waits_for(facts.uid)) {
    view.note = "its cgroup, which the agent before had under control, cannot be opened";
    return nullptr;
  }
  if (const auto retry = retries_.find(facts.uid);
      retry != retries_.end() && world.monotonic < retry->second.at) {
    wake_at(retry->second.at);
    view.note = retry->second.why;
    view.denied = retry->second.denied;
    return nullptr;
  }
  base::Result<PodOpener::Opened> opened =
      opener_.open(facts.uid, facts.qos.value_or(kube::QosClass::kBurstable));
  const Requested requested =
      opened ? opened->freezer->requested() : Requested{.result = IoResult::kGone};
  if (requested.result != IoResult::kOk) {
    view.note = opened ? "its cgroup cannot be read" : opened.error().message;
    view.denied = !opened && opened.error().code == base::Code::kPermissionDenied;
    retries_[facts.uid] = {
        .at = world.monotonic + Adoption::kRetryAfter, .why = view.note, .denied = view.denied};
    wake_at(world.monotonic + Adoption::kRetryAfter);
    return nullptr;
  }
  retries_.erase(facts.uid);
  // Everything that we froze is in the journal and was adopted: this one somebody else froze.
  const Found found = requested.wish == Wish::kFrozen ? Found::kForeign : Found::kRunning;
  const PodIdentity identity{
      .uid = facts.uid, .name = view.name, .job_uid = facts.job_uid, .path = opened->path};
  return known_[facts.uid] = std::make_shared<PodControl>(identity, opened->freezer, found);
}

// Its cgroup was removed, and the pod is still there: kubelet makes the cgroup again, at the same
// place, before it starts a container in it.
std::shared_ptr<PodControl> Keeper::reopened(const World& world,
                                             const std::shared_ptr<PodControl>& gone) {
  const PodIdentity& identity = gone->identity;
  Retry& retry = retries_[identity.uid];
  if (world.monotonic >= retry.at) {
    retry = {.at = world.monotonic + kReopenAfter};
    const base::Result<PodOpener::Opened> opened = opener_.open_at(identity.path, identity.uid);
    const Requested requested =
        opened ? opened->freezer->requested() : Requested{.result = IoResult::kGone};
    if (requested.result == IoResult::kOk) {
      retries_.erase(identity.uid);
      const Found found = requested.wish == Wish::kFrozen ? Found::kForeign : Found::kRunning;
      return known_[identity.uid] = std::make_shared<PodControl>(identity, opened->freezer, found);
    }
  }
  wake_at(retry.at);
  return gone;
}

// Under control before, listed no more, or not allowed any more: thawed by the switcher, then
// forgotten.
void Keeper::add_the_unlisted(std::vector<ControlledPod>& pods) const {
  std::set<const PodControl*> listed;
  for (const ControlledPod& pod : pods) listed.insert(pod.control.get());
  for (const auto& [uid, control] : known_) {
    if (listed.contains(control.get()) || pods.size() >= kControlledPodsMax) continue;
    if (is_off_or_on_its_way(control->state.load(std::memory_order_acquire))) {
      pods.push_back({.control = control, .index = 0, .rule = Rule::kRuns});
    }
  }
}

// Everything that may be frozen by us, or may be soon: what the assignment controls, and whatever
// the switcher has not let go, as it may be switching by an older assignment still. Not what
// somebody else has frozen, once the switcher does not freeze it when that ends; and nobody who
// runs while nothing is frozen at all: who freezes one of them then is somebody else.
std::vector<PodIdentity> Keeper::pods_to_name(const World& world, const Assignment& assignment) {
  const bool caught_up = sink_.caught_up();
  const bool nothing_freezes =
      assignment.everything_runs && submitted_.everything_runs && caught_up;
  std::set<const PodControl*> may_be_frozen;
  for (const Assignment* one : {&assignment, &std::as_const(submitted_)}) {
    for (const ControlledPod& pod : one->pods) {
      if (pod.rule == Rule::kTimetable) may_be_frozen.insert(pod.control.get());
    }
  }
  std::vector<PodIdentity> names = adoption_.waiting();
  std::set<const PodControl*> seen;
  const auto name = [&](const PodControl& control) {
    if (!seen.insert(&control).second) return;
    const FreezeState state = control.state.load(std::memory_order_acquire);
    if (nothing_freezes && !is_off_or_on_its_way(state)) return;
    if (state == FreezeState::kForeign) {
      if (caught_up && !may_be_frozen.contains(&control)) return;
      wake_at(world.monotonic + kCatchUpLookAfter);
    }
    names.push_back(control.identity);
  };
  for (const ControlledPod& pod : assignment.pods) name(*pod.control);
  for (const auto& [uid, control] : known_) name(*control);
  return names;
}

void Keeper::write_journal(const World& world, Assignment& assignment) {
  if (unknown_) return;  // The damaged one tells the next process that nothing is known.
  Journal next{.boot_id = boot_id_, .lease = world.lease};
  if (world.rules_known) {
    next.rules = Rules{.settings = world.settings, .kill_switch = world.kill_switch};
  }
  next.pods = pods_to_name(world, assignment);
  if (gate_.in_force() != json_of_) {
    json_of_ = gate_.in_force();
    timetable_json_ = json_of_ ? timetable_to_json(*json_of_) : "";
  }
  next.timetable = timetable_json_;
  if (next == journal_ && journal_error_.empty()) return;
  const base::Status status = journal_file_.write(next);
  if (status) {
    journal_error_.clear();
    journal_ = std::move(next);
    return;
  }
  journal_error_ = status.error().message;
  wake_at(world.monotonic + kJournalRetryAfter);
  // What the journal on disk does not name must not be frozen; it may be thawed.
  for (ControlledPod& pod : assignment.pods) {
    const bool named = std::find(journal_.pods.begin(), journal_.pods.end(),
                                 pod.control->identity) != journal_.pods.end();
    if (!named && pod.rule == Rule::kTimetable) pod.rule = Rule::kRuns;
  }
}

void Keeper::forget_the_thawed(const World& world) {
  if (!sink_.caught_up()) {
    wake_at(world.monotonic + kCatchUpLookAfter);
    return;
  }
  std::set<const PodControl*> assigned;
  for (const ControlledPod& pod : submitted_.pods) assigned.insert(pod.control.get());
  std::erase_if(known_, [&](const auto& entry) {
    const PodControl& control = *entry.second;
    if (assigned.contains(&control) || control.controlled.load(std::memory_order_acquire)) {
      return false;
    }
    endings_.erase(entry.first);
    return true;
  });
  if (!world.pods_known) return;
  std::set<std::string> exist;
  for (const auto& [key, facts] : world.pods) exist.insert(facts.uid);
  const auto is_over = [&](const std::string& uid) {
    return !exist.contains(uid) && !known_.contains(uid);
  };
  std::erase_if(settled_, is_over);
  std::erase_if(looked_at_ending_, is_over);
  cpu_sets_.forget_all_but(exist);
  std::erase_if(settling_since_, [&](const auto& entry) { return is_over(entry.first); });
  std::erase_if(retries_, [&](const auto& entry) { return is_over(entry.first); });
}

std::vector<PodView> Keeper::pods() const {
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

bool Keeper::all_thawed() const {
  if (!sink_.caught_up() || !adoption_.waiting().empty()) return false;
  return std::none_of(known_.begin(), known_.end(), [](const auto& entry) {
    return is_off_or_on_its_way(entry.second->state.load(std::memory_order_acquire));
  });
}

}  // namespace agent
