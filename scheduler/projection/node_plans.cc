#include "scheduler/projection/node_plans.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace sched {
namespace {

// The jobs that run at t, sorted.
std::vector<JobId> running_at(const NodePlan& plan, base::Instant t) {
  std::vector<JobId> jobs;
  for (const std::uint16_t pod : timetable::run_at(plan.timetable, t)) {
    jobs.push_back(plan.entries[pod].job);
  }
  std::sort(jobs.begin(), jobs.end());
  return jobs;
}

std::vector<JobId> listed(const NodePlan& plan) {
  std::vector<JobId> jobs;
  for (const NodeTimetableEntry& entry : plan.entries) jobs.push_back(entry.job);
  std::sort(jobs.begin(), jobs.end());
  return jobs;
}

base::Instant plan_end(const NodePlan& plan, base::Instant from) {
  return plan.timetable.plan.empty() ? from : std::max(from, plan.timetable.plan.back().until);
}

// Drops what is past and joins equal neighbours. What follows as_of stays even when it is past: a new
// leader advances the lists from there.
void simplify(timetable::Timetable& timetable, base::Instant before) {
  auto& plan = timetable.plan;
  std::erase_if(plan, [before](const timetable::PlanEntry& entry) {
    return entry.until <= before;
  });
  for (std::size_t i = 1; i < plan.size();) {
    if (plan[i].run == plan[i - 1].run) {
      plan[i - 1].until = plan[i].until;
      plan.erase(plan.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

}  // namespace

bool same_from(const NodePlan& a, const NodePlan& b, base::Instant from) {
  if (listed(a) != listed(b)) return false;
  if (a.entries.empty()) return true;
  if (a.timetable.slice != b.timetable.slice) return false;
  if (running_at(a, from) != running_at(b, from)) return false;
  const base::Instant end = std::max(plan_end(a, from), plan_end(b, from));
  for (const NodePlan* plan : {&a, &b}) {
    for (const timetable::PlanEntry& entry : plan->timetable.plan) {
      if (entry.until > from && running_at(a, entry.until) != running_at(b, entry.until)) return false;
    }
  }
  const base::Duration slice = a.timetable.slice;
  const auto slots = static_cast<std::int64_t>(
      std::lcm(a.timetable.cycle.size(), b.timetable.cycle.size()));
  const std::int64_t first = base::slot_of(from, slice) + 1;
  const std::int64_t last = base::slot_of(end, slice) + 1 + slots;
  for (std::int64_t slot = first; slot <= last; ++slot) {
    const base::Instant begin = base::slot_begin(slot, slice);
    if (running_at(a, begin) != running_at(b, begin)) return false;
  }
  return true;
}

bool NodePlans::sets_cores(const Job& job) const {
  const ClusterParameters& parameters = cluster_.parameters();
  return parameters.select == SelectType::kConsTres && parameters.task_affinity &&
         !job.allocation.whole_nodes;
}

// The jobs of the node in list order: the component's lists first, the others by job-table order.
std::vector<NodePlans::Listed> NodePlans::list(NodeIndex node,
                                               const gang::Component*& component) const {
  std::vector<Listed> members;
  std::vector<Listed> others;
  for (const Job* job : usage_.jobs_on(node)) {
    Listed entry{.job = job};
    if (!job->ready) {
      entry.never = job->user_suspended || std::any_of(
          usage_.jobs_on(node).begin(), usage_.jobs_on(node).end(), [&](const Job* other) {
            return other != job && !other->cores_released && components_.conflicts(*job, *other);
          });
      entry.always = !entry.never;
      entry.row = Row::kWaiting;
    } else if (!job->in_gang) {
      entry.never = job->user_suspended;
      entry.always = !entry.never;
      entry.row = entry.never ? Row::kWaiting : Row::kFiller;
    } else if (const gang::Component* part = components_.component(*job)) {
      component = part;
      members.push_back(entry);
      continue;
    } else {
      entry.always = true;
    }
    others.push_back(entry);
  }
  std::stable_sort(others.begin(), others.end(), [](const Listed& a, const Listed& b) {
    return a.job->table_order < b.job->table_order;
  });
  std::vector<Listed> all;
  if (component != nullptr) {
    for (const gang::Place& place : component->settled_places) {
      const auto at = std::find_if(members.begin(), members.end(), [&](const Listed& entry) {
        return entry.job->id == place.job;
      });
      if (at == members.end()) continue;
      at->row = place.row == gang::EntryRow::kActive   ? Row::kActive
                : place.row == gang::EntryRow::kFiller ? Row::kFiller
                                                       : Row::kWaiting;
      all.push_back(*at);
    }
  }
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

NodePlans::Full NodePlans::plan_of(NodeIndex node, base::Instant now,
                                   const RunTime& run_time) const {
  Full full;
  NodePlan& plan = full.plan;
  plan.node = node;
  plan.as_of = now;
  const gang::Component* component = nullptr;
  const std::vector<Listed> jobs = list(node, component);
  if (component != nullptr) plan.as_of = component->settled;
  const auto cut = [&](const timetable::PodSet& run) {
    timetable::PodSet pods;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const Listed& entry = jobs[i];
      const bool on = !entry.never &&
                      (entry.always || std::binary_search(run.begin(), run.end(),
                                                          component->index.at(entry.job->id)));
      if (on) pods.push_back(static_cast<std::uint16_t>(i));
    }
    return pods;
  };
  timetable::Timetable& table = plan.timetable;
  table.slice = components_.grid().slice;
  table.pods_count = jobs.size();
  table.cycle = {cut({})};
  if (component != nullptr) {
    table.cycle.clear();
    for (const auto& run : component->timeline.cycle) table.cycle.push_back(cut(run));
    for (const auto& entry : component->timeline.plan) {
      table.plan.push_back({entry.until, cut(entry.run)});
    }
  }
  simplify(table, std::min(now, plan.as_of));
  const auto somebody_off = [&](const timetable::PodSet& run) { return run.size() < jobs.size(); };
  full.needed = std::any_of(table.cycle.begin(), table.cycle.end(), somebody_off) ||
                std::any_of(table.plan.begin(), table.plan.end(),
                            [&](const timetable::PlanEntry& entry) {
                              return entry.until > now && somebody_off(entry.run);
                            }) ||
                std::any_of(jobs.begin(), jobs.end(),
                            [&](const Listed& entry) { return sets_cores(*entry.job); });
  for (const Listed& entry : jobs) {
    plan.entries.push_back({entry.job->id, entry.row, run_time(*entry.job, plan.as_of)});
  }
  return full;
}

std::vector<NodePlan> NodePlans::take(base::Instant now, const RunTime& run_time) {
  std::vector<NodePlan> plans;
  gang::DirtyNodes& dirty = components_.dirty();
  for (auto at = dirty.begin(); at != dirty.end();) {
    if (at->second > now) {
      ++at;
      continue;
    }
    const NodeIndex node = at->first;
    at = dirty.erase(at);
    if (!cluster_.exists(node)) {
      published_.erase(node);
      continue;
    }
    Full full = plan_of(node, now, run_time);
    const auto before = published_.find(node);
    const bool stands = before == published_.end()
                            ? !full.needed
                            : full.needed && same_from(full.plan, before->second, now);
    if (stands) continue;
    if (full.needed) {
      published_[node] = full.plan;
    } else {
      published_.erase(node);
      full.plan.entries.clear();
      full.plan.timetable.plan.clear();
      full.plan.timetable.cycle = {{}};
      full.plan.timetable.pods_count = 0;
    }
    plans.push_back(std::move(full.plan));
  }
  return plans;
}

std::optional<base::Instant> NodePlans::next_due() const {
  std::optional<base::Instant> due;
  for (const auto& [node, at] : components_.dirty()) due = due ? std::min(*due, at) : at;
  return due;
}

}  // namespace sched
