#include "translation/timetable_translation.h"

#include <algorithm>
#include <map>

#include "translation/task_key.h"
#include "translation/units.h"

namespace control {
namespace {

// Translates both ways by a switch, so that a row that is added on one side does not compile.
// The row says why a job has its turns; a new leader needs it to go on with the same rotation.
kube::TimetableRow row_of(sched::Row row) {
  switch (row) {
    case sched::Row::kActive:
      return kube::TimetableRow::kActive;
    case sched::Row::kFiller:
      return kube::TimetableRow::kFiller;
    case sched::Row::kWaiting:
      return kube::TimetableRow::kWaiting;
  }
  return kube::TimetableRow::kWaiting;
}

sched::Row row_of(const std::optional<kube::TimetableRow>& row) {
  switch (row.value_or(kube::TimetableRow::kWaiting)) {
    case kube::TimetableRow::kActive:
      return sched::Row::kActive;
    case kube::TimetableRow::kFiller:
      return sched::Row::kFiller;
    case kube::TimetableRow::kWaiting:
      return sched::Row::kWaiting;
  }
  return sched::Row::kWaiting;
}

// Each index becomes those in `images[index]`; ascending, without repetition.
timetable::PodSet map_set(const timetable::PodSet& set,
                          const std::vector<std::vector<std::uint16_t>>& images) {
  timetable::PodSet mapped;
  for (const std::uint16_t index : set) {
    // REQUIRES: `images` has an entry for each index of `from`, be it an empty one.
    mapped.insert(mapped.end(), images[index].begin(), images[index].end());
  }
  std::sort(mapped.begin(), mapped.end());
  mapped.erase(std::unique(mapped.begin(), mapped.end()), mapped.end());
  return mapped;
}

// Renames the indexes of a timetable. The scheduler's plans are about jobs, a node's timetable is
// about pods, and a job may have several pods on a node (PerTask) or, after without_job, none.
// Instants and slots stay as they are: when something changes is the scheduler's decision, and this
// only says which pods it is about.
timetable::Timetable map_timetable(const timetable::Timetable& from, std::size_t pods_count,
                                   const std::vector<std::vector<std::uint16_t>>& images) {
  timetable::Timetable to;
  to.slice = from.slice;
  to.pods_count = pods_count;
  for (const timetable::PlanEntry& entry : from.plan) {
    to.plan.push_back({entry.until, map_set(entry.run, images)});
  }
  for (const timetable::PodSet& slot : from.cycle) to.cycle.push_back(map_set(slot, images));
  // A timetable without pods is one empty slot forever, whatever the plan was: equal ones must
  // compare equal, or an empty node would be written again.
  if (pods_count == 0) {
    to.plan.clear();
    to.cycle = {{}};
  }
  return to;
}

}  // namespace

// 1. list the pods of each job on this node, in the order of the plan's entries; 2. note which pods
//    each entry became; 3. rewrite the plan and the cycle with the indexes of pods. A job's pods
//    have equal turns, so they come and go together.
kube::NodeTimetableSpec encode_plan(const sched::NodePlan& plan, const std::string& node_name,
                                    const ListedJobs& find) {
  kube::NodeTimetableSpec spec;
  spec.as_of = plan.as_of;
  std::vector<std::vector<std::uint16_t>> images(plan.entries.size());
  for (std::size_t i = 0; i < plan.entries.size(); ++i) {
    const sched::NodeTimetableEntry& entry = plan.entries[i];
    const auto job = find(entry.job);
    // A job whose pods are never frozen (or that is gone) is not listed: the agent leaves its pods
    // alone.
    if (!job) continue;
    for (const PodSlot& slot : job->slots) {
      if (!slot.has_pod() || slot.node != node_name) continue;
      // More pods than a timetable can hold are not listed and so never frozen.
      if (spec.pods.size() >= timetable::kPodsMax) break;
      images[i].push_back(static_cast<std::uint16_t>(spec.pods.size()));
      kube::TimetablePod& pod = spec.pods.emplace_back();
      pod.ns = job->ns;
      pod.name = slot.name;
      pod.job_uid = job->uid;
      pod.task = job->task;
      pod.row = row_of(entry.row);
      // Rounded down to whole seconds, which is what the object has.
      pod.ran = std::chrono::seconds{whole_seconds_down(entry.ran)};
    }
  }
  spec.timetable = map_timetable(plan.timetable, spec.pods.size(), images);
  return spec;
}

// Returns the timetable with the turns of one job emptied; its neighbors keep their turns. Used for
// a job whose pods must not be frozen, until the scheduler makes a new plan.
kube::NodeTimetableSpec without_job(const kube::NodeTimetableSpec& spec,
                                    const std::string& job_key) {
  kube::NodeTimetableSpec left;
  left.as_of = spec.as_of;
  std::vector<std::vector<std::uint16_t>> images(spec.pods.size());
  for (std::size_t i = 0; i < spec.pods.size(); ++i) {
    if (record_key(spec.pods[i].job_uid, spec.pods[i].task) == job_key) continue;
    images[i].push_back(static_cast<std::uint16_t>(left.pods.size()));
    left.pods.push_back(spec.pods[i]);
  }
  left.timetable = map_timetable(spec.timetable, left.pods.size(), images);
  return left;
}

// Goes the way back, for a new leader: nullopt if the stored object is not a timetable of
// kubegang's, since a hand or another version may have written it.
std::optional<sched::NodePlan> decode_plan(const kube::NodeTimetableSpec& spec,
                                           sched::NodeIndex node, const JobsOfPods& find) {
  // Everything that follows indexes by what the object says, so it is checked first.
  if (!timetable::validate(spec.timetable).ok() || spec.timetable.pods_count != spec.pods.size()) {
    return std::nullopt;
  }
  sched::NodePlan plan;
  plan.node = node;
  plan.as_of = spec.as_of.value_or(base::Instant{});
  std::vector<std::vector<std::uint16_t>> images(spec.pods.size());
  std::map<sched::JobId, std::uint16_t> entry_of;
  for (std::size_t i = 0; i < spec.pods.size(); ++i) {
    const auto job = find(spec.pods[i]);
    if (!job) continue;
    // The first pod of a job speaks for it: encode_plan() wrote the same row and the same time into
    // each.
    // Several pods of a job on this node are one entry to the scheduler.
    const auto [at, fresh] =
        entry_of.try_emplace(*job, static_cast<std::uint16_t>(plan.entries.size()));
    images[i].push_back(at->second);
    if (fresh) plan.entries.push_back({*job, row_of(spec.pods[i].row), spec.pods[i].ran});
  }
  plan.timetable = map_timetable(spec.timetable, plan.entries.size(), images);
  return plan;
}

// Term and revision are left out: they change with each leader and each write, and say nothing
// about turns.
bool same_plan(const kube::NodeTimetableSpec& a, const kube::NodeTimetableSpec& b) {
  return a.as_of == b.as_of && a.pods == b.pods && a.timetable == b.timetable;
}

}  // namespace control
