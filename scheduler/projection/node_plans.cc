#include "scheduler/projection/node_plans.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>

#include "base/check.h"

namespace sched {
namespace {

// For each pod of `b` the pod of `a` that is the same job; nullopt if the two list different jobs.
std::optional<std::vector<std::uint16_t>> same_jobs(const NodePlan& a, const NodePlan& b) {
  if (a.entries.size() != b.entries.size()) return std::nullopt;
  // Pods in the order of their jobs, so that two plans compare entry by entry.
  const auto by_job = [](const NodePlan& plan) {
    std::vector<std::uint16_t> pods(plan.entries.size());
    std::iota(pods.begin(), pods.end(), std::uint16_t{0});
    std::sort(pods.begin(), pods.end(), [&](std::uint16_t x, std::uint16_t y) {
      return plan.entries[x].job < plan.entries[y].job;
    });
    return pods;
  };
  const std::vector<std::uint16_t> of_a = by_job(a), of_b = by_job(b);
  std::vector<std::uint16_t> pods(of_b.size());
  for (std::size_t i = 0; i < of_b.size(); ++i) {
    if (a.entries[of_a[i]].job != b.entries[of_b[i]].job) return std::nullopt;
    pods[of_b[i]] = of_a[i];
  }
  return pods;
}

// Published, so that a new leader can put the lists together again.
Row row_of(gang::EntryRow row) {
  switch (row) {
    case gang::EntryRow::kActive:
      return Row::kActive;
    case gang::EntryRow::kFiller:
      return Row::kFiller;
    case gang::EntryRow::kNone:
      return Row::kWaiting;
  }
  return Row::kWaiting;
}

// Drops plan entries that ended by `before` and joins equal neighbors. `before` is not after
// as_of: a new leader advances the lists from there, so what follows it stays even if it is past.
void simplify(timetable::Timetable& timetable, base::Instant before) {
  // Neighbors come to be equal here because a node has only some of the component's jobs: a turn
  // that passes between jobs of other nodes changes nothing on this one.
  auto& plan = timetable.plan;
  std::erase_if(plan,
                [before](const timetable::PlanEntry& entry) { return entry.until <= before; });
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

// Returns true if both plans let the same jobs run at every instant from `from` on. Then what was
// published still holds and no write is needed.
bool same_from(const NodePlan& a, const NodePlan& b, base::Instant from) {
  const auto pods = same_jobs(a, b);
  return pods && timetable::same_from(a.timetable, b.timetable, *pods, from);
}

// Returns the jobs of the node in list order: the members of the node's component in the order of
// its lists as of `settled`, then the others in job-table order. Sets `component` if there is one.
//
// 1. A job that is not ready holds its nodes and runs nothing yet; it is "never" if it would run
//    beside a job that it conflicts with, so that its pods are frozen as soon as they are there.
// 2. A ready job outside the gang runs unless its user suspended it.
// 3. A tracked job without conflicts runs always; a member of a component as its timeline says.
std::vector<NodePlans::Listed> NodePlans::list(NodeIndex node,
                                               const gang::Component*& component) const {
  std::vector<Listed> members;
  std::vector<Listed> others;
  for (const Job* job : usage_.jobs_on(node)) {
    Listed entry{.job = job};
    if (!job->ready) {  // 1
      entry.never =
          job->user_suspended || std::any_of(usage_.jobs_on(node).begin(),
                                             usage_.jobs_on(node).end(), [&](const Job* other) {
                                               return other != job && !other->cores_released &&
                                                      components_.conflicts(*job, *other);
                                             });
      entry.always = !entry.never;
      entry.row = Row::kWaiting;
    } else if (!job->turn.in_gang) {  // 2
      entry.never = job->user_suspended;
      entry.always = !entry.never;
      entry.row = entry.never ? Row::kWaiting : Row::kFiller;
    } else if (const gang::Component* part = components_.component(*job)) {
      component = entry.component = part;
      entry.pod = part->projection.pod_of(job->id);
      members.push_back(entry);
      continue;
    } else {  // 3
      entry.always = true;
    }
    others.push_back(entry);
  }
  std::stable_sort(others.begin(), others.end(), [](const Listed& a, const Listed& b) {
    return a.job->table_order < b.job->table_order;
  });
  // Members that are still to join are in no list yet.
  std::erase_if(members, [&](const Listed& entry) {
    return entry.component != component || component->projection.places[entry.pod] < 0;
  });
  std::sort(members.begin(), members.end(), [&](const Listed& a, const Listed& b) {
    return component->projection.places[a.pod] < component->projection.places[b.pod];
  });
  for (Listed& entry : members) {
    const auto place = static_cast<std::size_t>(component->projection.places[entry.pod]);
    entry.row = row_of(component->projection.settled_places[place].row);
  }
  members.insert(members.end(), others.begin(), others.end());
  return members;
}

// Returns the component's timeline, cut down to the jobs of this node.
//
// 1. List the node's jobs: an entry's position is its pod in the node's timetable.
// 2. Cut each run of the timeline down to them, cycle first; a node without a component has a cycle
//    of one slot.
// 3. A timetable is needed if a job is off at some time.
// 4. Say how long each job has run by as_of.
NodePlans::Full NodePlans::plan_of(NodeIndex node, base::Instant now,
                                   const RunTime& run_time) const {
  Full full;
  NodePlan& plan = full.plan;
  plan.node = node;
  plan.as_of = now;
  const gang::Component* component = nullptr;
  const std::vector<Listed> jobs = list(node, component);  // 1
  if (component != nullptr) plan.as_of = component->projection.settled;
  // The pods that run: those of which runs(pod of the component) holds, and those that always do.
  const auto cut = [&](const auto& runs) {
    timetable::PodSet pods;
    pods.reserve(jobs.size());
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const Listed& entry = jobs[i];
      if (!entry.never && (entry.always || runs(entry.pod))) {
        pods.push_back(static_cast<std::uint16_t>(i));
      }
    }
    return pods;
  };
  timetable::Timetable& table = plan.timetable;  // 2
  table.slice = components_.grid().slice;
  table.pods_count = jobs.size();
  if (component == nullptr) {
    table.cycle = {cut([](std::uint32_t) { return false; })};
  } else {
    const timetable::Timeline& whole = component->projection.timeline;
    table.cycle.reserve(whole.cycle.size());
    for (std::size_t slot = 0; slot < whole.cycle.size(); ++slot) {
      // Cut by the bits of the projection: a search in each slot's set would cost more, and nodes
      // are many.
      table.cycle.push_back(cut([&](std::uint32_t pod) {
        return (component->projection.cycle_slots[pod] >> slot & 1U) != 0;
      }));
    }
    table.plan.reserve(whole.plan.size());
    for (const timetable::Timeline::PlanEntry& entry : whole.plan) {
      table.plan.push_back({entry.until, cut([&](std::uint32_t pod) {
                              return std::binary_search(entry.run.begin(), entry.run.end(), pod);
                            })});
    }
  }
  simplify(table, std::min(now, plan.as_of));
  const auto off_at_some_time =  // 3
      [&](const timetable::PodSet& run) { return run.size() < jobs.size(); };
  full.needed =
      std::any_of(table.cycle.begin(), table.cycle.end(), off_at_some_time) ||
      std::any_of(table.plan.begin(), table.plan.end(), [&](const timetable::PlanEntry& entry) {
        return entry.until > now && off_at_some_time(entry.run);
      });
  for (const Listed& entry : jobs) {  // 4
    plan.entries.push_back({entry.job->id, entry.row, run_time(*entry.job, plan.as_of)});
  }
  return full;
}

// The pods that a published plan names are those of an earlier start. A job that was requeued
// starts again on a node whose published plan still lists it, with pods that are gone. Comparing by
// job would find nothing to write, so such a node is written again in any case.
void NodePlans::begin(const Job& job) {
  if (published_.empty()) return;
  for (const NodeAllocation& use : job.allocation.nodes) {
    const auto found = published_.find(use.node);
    if (found == published_.end()) continue;
    const auto& entries = found->second.entries;
    const bool listed = std::any_of(entries.begin(), entries.end(),
                                    [&](const auto& entry) { return entry.job == job.id; });
    if (listed) outdated_.insert(use.node);
  }
}

// A plan is written if the node needs one and what it published says something else, or if it
// published one and needs none: then an empty one withdraws it.
std::vector<NodePlan> NodePlans::take(base::Instant now, const RunTime& run_time) {
  std::vector<NodePlan> plans;
  // Only nodes that something has touched since, and of these only the ones that are due.
  for (const NodeIndex node : components_.dirty_nodes().take_due(now)) {
    const bool outdated = outdated_.erase(node) > 0;
    if (!cluster_.exists(node)) {
      published_.erase(node);
      continue;
    }
    Full full = plan_of(node, now, run_time);
    // The API server and the agents refuse anything else, and would go on with what they have.
    const base::Status valid = timetable::validate(full.plan.timetable);
    CHECK(valid.ok(), cluster_.node(node).name + ": " + valid.error().message);
    const auto before = published_.find(node);
    // Without a published plan a node runs everything, which is right if none is needed.
    const bool stands = before == published_.end()
                            ? !full.needed
                            : full.needed && !outdated && same_from(full.plan, before->second, now);
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

// Returns when a node that has changed is to be looked at; its plan may turn out to be the same.
std::optional<base::Instant> NodePlans::next_due() const {
  return components_.dirty_nodes().next();
}

}  // namespace sched
