#include "operator/publish/timetable_publisher.h"

#include <algorithm>
#include <utility>

#include "api/wellknown.h"

namespace control {

// A timetable that was deleted is not written at once: ensure_deleted() does so when the node still
// is in a partition.
void TimetablePublisher::observe(const std::string& node, const kube::NodeTimetable* object) {
  Table& table = tables_[node];
  if (object == nullptr) {
    table.mirror.saw_gone();
    // Nothing is stored to differ from. Whether it is needed again is asked once for all that were
    // deleted.
    table.mirror.set_differs(false);
    deleted_.insert(node);
    return;
  }
  // Only a candidate: due_deletions asks whether it is needed. A name too many costs one look.
  superfluous_.insert(node);
  // Our own write that comes back, or a version older than its answer.
  if (!table.mirror.is_news(*object)) return;
  (void)table.mirror.saw(*object);
  compare(node, table);  // another writer's is written over
}

void TimetablePublisher::observe_node(const std::string& node) {
  const auto found = tables_.find(node);
  if (found == tables_.end()) return;
  // A timetable cannot be created before its Node is known, since the Node owns it.
  if (found->second.mirror.urgency() != WriteUrgency::kClean) to_write_.insert(node);
}

// The node is gone, and Kubernetes collects its timetable.
void TimetablePublisher::forget(const std::string& node) {
  to_write_.erase(node);
  superfluous_.erase(node);
  turned_.insert(node);
  const auto found = tables_.find(node);
  if (found == tables_.end()) return;
  // The answer to a write under way is heard first.
  if (!found->second.mirror.is_in_flight()) tables_.erase(found);
}

// Replaces the wanted timetable as a whole. It is compared with the stored one when it is set, and
// not in each step, so that a step costs only the nodes whose plan changed.
void TimetablePublisher::want(const sched::NodePlan& plan, const std::string& node,
                              const ListedJobs& jobs) {
  Table& table = tables_[node];
  table.mirror.wanted_unmarked() = encode_plan(plan, node, jobs);
  table.is_planned = true;
  const auto is_left_out = [&](const sched::NodeTimetableEntry& entry) { return !jobs(entry.job); };
  table.whole.reset();
  if (std::ranges::any_of(plan.entries, is_left_out)) table.whole = plan;
  compare(node, table);
}

void TimetablePublisher::list(const std::string& node, const ListedJobs& jobs) {
  const auto found = tables_.find(node);
  if (found == tables_.end()) return;
  if (const auto whole = std::exchange(found->second.whole, {})) want(*whole, node, jobs);
}

void TimetablePublisher::leave_out(const std::string& node, const std::string& job_uid) {
  const auto found = tables_.find(node);
  if (found == tables_.end() || !found->second.is_planned) return;
  TimetableMirror& mirror = found->second.mirror;
  mirror.wanted_unmarked() = without_job(mirror.wanted(), job_uid);
  compare(node, found->second);
}

// A pod follows another at its place (Members): the turns are the place's and stay. The scheduler
// knows nothing of it, so its plan stays.
void TimetablePublisher::replace_pod(const std::string& node, const Successor& successor) {
  const auto found = tables_.find(node);
  if (found == tables_.end() || !found->second.is_planned) return;
  for (kube::TimetablePod& pod : found->second.mirror.wanted_unmarked().pods) {
    const bool is_it = pod.job_uid == successor.job_uid && pod.name == successor.before;
    if (is_it) pod.name = successor.after;
  }
  compare(node, found->second);
}

// Term and revision do not count as a difference: a new leader writes only the timetables whose
// plan is another one.
void TimetablePublisher::compare(const std::string& node, Table& table) {
  TimetableMirror& mirror = table.mirror;
  const bool is_needed = table.wants_pods() || nodes_.needs_timetable(node);
  // A timetable that does not exist is made only where it is needed; one that exists is kept true
  // even where it is not, until it is deleted.
  const bool differs = table.is_planned &&
                       (mirror.exists() ? !same_plan(mirror.wanted(), mirror.stored()) : is_needed);
  // Pods may wait for this timetable, although it is no longer written: it became equal to what is
  // stored before its turn came.
  if (!differs && mirror.urgency() != WriteUrgency::kClean) settled_.insert(node);
  if (differs == (mirror.urgency() == WriteUrgency::kClean)) turned_.insert(node);
  mirror.set_differs(differs);
  if (differs) to_write_.insert(node);
  if (mirror.exists() && !is_needed) superfluous_.insert(node);
}

void TimetablePublisher::ensure_all(base::Duration slice, base::Instant now) {
  for (const kube::Node* node : nodes_.objects()) ensure(node->metadata.name, slice, now);
}

void TimetablePublisher::ensure(const std::set<std::string>& nodes, base::Duration slice,
                                base::Instant now) {
  for (const std::string& node : nodes) ensure(node, slice, now);
}

void TimetablePublisher::ensure_deleted(base::Duration slice, base::Instant now) {
  for (const std::string& node : std::exchange(deleted_, {})) ensure(node, slice, now);
}

// A node that was never planned gets an empty timetable: the agent reports its topology there.
void TimetablePublisher::ensure(const std::string& node, base::Duration slice, base::Instant now) {
  // Only nodes of partitions take jobs.
  if (!nodes_.in_partition(node) || nodes_.object(node) == nullptr) return;
  const auto found = tables_.find(node);
  const bool wants_pods = found != tables_.end() && found->second.wants_pods();
  if (!wants_pods && !nodes_.needs_timetable(node)) {
    if (found != tables_.end()) superfluous_.insert(node);
    return;
  }
  Table& table = tables_[node];
  if (table.mirror.exists()) return;
  if (!table.is_planned) {
    table.is_planned = true;
    kube::NodeTimetableSpec& wanted = table.mirror.wanted_unmarked();
    wanted.as_of = now;
    wanted.timetable.slice = slice;
    wanted.timetable.cycle = {{}};
  }
  compare(node, table);
}

// Goes on where there was no room, so that no node waits forever behind others.
std::vector<PutTimetable> TimetablePublisher::due(base::Instant now, std::int64_t term,
                                                  std::size_t room) {
  std::vector<PutTimetable> effects;
  // A ring over the names: the next call goes on behind the last one that got no room.
  auto it = to_write_.lower_bound(next_to_write_);
  for (std::size_t left = to_write_.size(); left > 0; --left) {
    if (it == to_write_.end()) it = to_write_.begin();
    if (effects.size() == room) {
      next_to_write_ = *it;
      break;
    }
    const auto found = tables_.find(*it);
    if (found == tables_.end() || nodes_.object(*it) == nullptr ||
        found->second.mirror.urgency() == WriteUrgency::kClean) {
      it = to_write_.erase(it);
      continue;
    }
    Table& table = found->second;
    const TimetableMirror& mirror = table.mirror;
    // Rule 1. A node that has to wait stays in the set and is asked again in each step; that is
    // cheap, as few wait at a time.
    // Not while the object is being deleted: the answer to that says whether to create or to patch.
    if (mirror.may_write(now) && !table.deletion.is_under_way() &&
        gate_.may_publish(nodes_.jobs_on(*it), mirror.wanted(), mirror.stored())) {
      effects.push_back(write(*it, table, now, term));
    }
    ++it;
  }
  return effects;
}

// The revision counts from what is stored, so it rises also when another writer was here in
// between.
// The write is conditional on the version that the mirror knows (Actuator). So of two leaders one
// gets a conflict, whatever their terms are.
PutTimetable TimetablePublisher::write(const std::string& node, Table& table, base::Instant now,
                                       std::int64_t term) {
  TimetableMirror& mirror = table.mirror;
  kube::NodeTimetable object;
  object.metadata.name = node;
  object.spec = mirror.wanted();
  object.spec.term = term;
  object.spec.revision = mirror.stored().revision + 1;
  mirror.begin(now);
  report_.log(
      "timetable",
      {{"node", node}, {"revision", object.spec.revision}, {"pods", object.spec.pods.size()}});
  if (!mirror.exists()) {
    // Kubernetes' garbage collector removes it with its node.
    object.metadata.owner_references.push_back({.api_version = "v1",
                                                .kind = "Node",
                                                .name = node,
                                                .uid = nodes_.object(node)->metadata.uid});
  }
  return {std::move(object), mirror.exists(), mirror.exists() ? mirror.version() : ""};
}

// After a success exactly the spec that was sent is stored; the object that comes back may have
// been rounded by the encoding.
// An answer may be lost although the write took place. Then `fresh`, which was read after the
// failure, shows our own spec, and compare() finds that it is stored.
WriteEnd TimetablePublisher::answered(TimetablePut&& outcome, base::Instant now) {
  const auto found = tables_.find(outcome.node);
  if (found == tables_.end()) return WriteEnd::kGone;
  Table& table = found->second;
  const WriteEnd end = table.mirror.answered(outcome.result, outcome.fresh, now);
  if (end == WriteEnd::kStored) table.mirror.know_stored(std::move(outcome.spec));
  if (end == WriteEnd::kFailed) {
    report_.warn("timetable not written",
                 {{"node", outcome.node}, {"error", outcome.result.error().message}});
  }
  compare(outcome.node, table);
  if (!nodes_.knows(outcome.node)) forget(outcome.node);
  return end;
}

// Returns true if nothing keeps it, as far as it is known here.
bool TimetablePublisher::is_superfluous(const std::string& node, const Table& table) const {
  return table.mirror.exists() && !table.wants_pods() && !nodes_.needs_timetable(node);
}

// Returns true if the stored timetable lists no pods, nothing else is to be stored, and the agent
// obeys it, or has never obeyed any version of it.
bool TimetablePublisher::may_go(const std::string& node, const Table& table) const {
  // 1. Nothing is about to be written there.
  const TimetableMirror& mirror = table.mirror;
  const bool is_settled = mirror.urgency() == WriteUrgency::kClean && !mirror.is_in_flight();
  const kube::NodeTimetable* seen = nodes_.table(node);
  if (!is_settled || !mirror.stored().pods.empty()) return false;
  // 2. The watch shows that very object: without its status nothing is known about the agent.
  if (seen == nullptr || seen->metadata.uid != mirror.uid()) return false;
  const kube::NodeTimetableStatus& status = seen->status;
  // Without a revision and without a condition no agent has said anything yet. One that has a
  // condition may still obey an earlier object that its journal holds.
  if (!status.observed_revision)
    return kube::find_condition(status.conditions, kube::kReady) == nullptr;
  // 3. The agent obeys exactly what is stored, and so has nothing frozen.
  return status.observed_revision == mirror.stored().revision &&
         status.observed_term.value_or(mirror.stored().term) == mirror.stored().term;
}

std::vector<DeleteTimetable> TimetablePublisher::due_deletions(base::Instant now,
                                                               std::size_t room) {
  std::vector<DeleteTimetable> effects;
  for (auto it = superfluous_.begin(); it != superfluous_.end();) {
    const auto found = tables_.find(*it);
    if (found == tables_.end() || !is_superfluous(*it, found->second)) {
      it = superfluous_.erase(it);
      continue;
    }
    Table& table = found->second;
    // Until an agent has said that it obeys an empty timetable, it may still keep pods frozen that
    // it thaws only because of this object. A watch or an answer will add the node again.
    if (!may_go(*it, table)) {
      it = superfluous_.erase(it);
      continue;
    }
    if (effects.size() < room && table.deletion.may_begin(now)) {
      table.deletion.begin();
      report_.log("timetable is needed no more", {{"node", *it}});
      // The version that may_go() has looked at. The mirror may know an older one: it ignores
      // what a watch shows while a write is under way, and its agent's word may come before the
      // answer.
      effects.push_back({*it, table.mirror.uid(), nodes_.table(*it)->metadata.resource_version});
    }
    ++it;
  }
  return effects;
}

// A conflict: it was changed meanwhile, as by its agent's word; the watch shows it.
void TimetablePublisher::answered(const TimetableDeleted& outcome, base::Instant now) {
  const auto found = tables_.find(outcome.node);
  if (found == tables_.end()) return;
  Table& table = found->second;
  const bool ok = outcome.status.ok();
  const base::Code code = ok ? base::Code::kNotFound : outcome.status.error().code;
  // Gone is gone, by whatever deletion.
  if (code == base::Code::kNotFound) {
    table.deletion.succeeded();
    table.mirror.saw_gone();
  } else {
    table.deletion.failed(now);
    if (code != base::Code::kConflict) {
      report_.warn("timetable not deleted",
                   {{"node", outcome.node}, {"error", outcome.status.error().message}});
    }
  }
  compare(outcome.node, table);
  if (!nodes_.knows(outcome.node)) forget(outcome.node);
}

base::Instant TimetablePublisher::next_due(base::Instant now) const {
  base::Instant due = base::kNever;
  for (const std::string& node : superfluous_) {
    const auto found = tables_.find(node);
    if (found == tables_.end() || !is_superfluous(node, found->second)) continue;
    // A deletion that is due by now and has not been done waits for an answer or a commit point,
    // which bring the loop back; it must not make the loop spin.
    if (const base::Instant at = found->second.deletion.due(); at > now) due = std::min(due, at);
  }
  for (const std::string& node : to_write_) {
    const auto found = tables_.find(node);
    if (found == tables_.end()) continue;
    if (const base::Instant at = found->second.mirror.due(); at > now) due = std::min(due, at);
  }
  return due;
}

bool TimetablePublisher::is_published(const std::string& node) const {
  const auto found = tables_.find(node);
  // A node without a timetable runs every pod, so pods need not wait for one.
  if (found == tables_.end()) return nodes_.knows(node);
  const TimetableMirror& mirror = found->second.mirror;
  return mirror.urgency() == WriteUrgency::kClean && !mirror.is_in_flight();
}

std::shared_ptr<const kube::NodeTimetableSpec> TimetablePublisher::stored(
    const std::string& node) const {
  const auto found = tables_.find(node);
  if (found == tables_.end() || !found->second.mirror.exists()) return nullptr;
  return found->second.mirror.shared_stored();
}

}  // namespace control
