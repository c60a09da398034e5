#include "scheduler/testing/succession.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>

#include "scheduler/testing/cluster_driver.h"
#include "timetable/timetable.h"

namespace sched::testing {
namespace {

std::string text(base::Instant at) {
  return at == base::kNever ? "never" : std::to_string(base::micros_since_epoch(at));
}
std::string text(const std::optional<base::Duration>& limit) {
  return limit ? std::to_string(limit->count()) : "none";
}
std::string text(const Allocation& allocation) {
  std::string all;
  for (const NodeAllocation& use : allocation.nodes) {
    all += " " + to_string(use.node) + ":" + std::to_string(use.cpus);
  }
  return all;
}
std::string text_of_cores(const Allocation& allocation) {
  std::string all;
  for (const NodeAllocation& use : allocation.nodes) {
    for (int core = 0; core < 12; ++core) all += use.cores.test(core) ? '1' : '0';
    all += ' ';
  }
  return all;
}

// Empty if it is not compared.
struct Text {
  const Scheduler& scheduler;

  std::string operator()(const Start& d) const {
    return "start in " + scheduler.partition_name(d.partition) + " limit " + text(d.time_limit);
  }
  std::string operator()(const End& d) const {
    return "end " + std::to_string(static_cast<int>(d.verdict)) + " until " + text(d.kill_at) +
           " for " + (d.preemptor ? to_string(*d.preemptor) : "no job");
  }
  std::string operator()(const LimitChanged& d) const { return "limit " + text(d.time_limit); }
  std::string operator()(const Claim& d) const {
    return "claim" + (d.claim ? text(*d.claim) + " until " + text(d.until) : " none");
  }
  std::string operator()(const StateChange& d) const {
    return "state " + std::to_string(static_cast<int>(d.state)) + " exit code " +
           std::to_string(d.exit_code) + " restarts " + std::to_string(d.restarts) + " failures " +
           std::to_string(d.node_failures) + " retry " +
           (d.retry ? text(d.retry->at) + " " + text(d.retry->nodes_until) : "none");
  }
  std::string operator()(const SubmitRefused&) const { return "refused"; }
  std::string operator()(const CommandRefused& d) const { return "refused: " + d.message; }
  std::string operator()(const TermsChanged& d) const {
    std::string all = "terms ";
    for (const TermState each : d.terms) all += std::to_string(static_cast<int>(each));
    return all;
  }
  std::string operator()(const Suspend&) const { return {}; }
  std::string operator()(const Resume&) const { return {}; }
  std::string operator()(const Waits&) const { return {}; }
  std::string operator()(const Planned&) const { return {}; }
};

// Leaves out what is over, what the next start sets, and what follows from whose turn it is.
std::string text_of_facts(const JobFacts& facts, bool waits) {
  std::string all = ", restarts " + std::to_string(facts.restarts) + ", failures " +
                    std::to_string(facts.node_failures) + ", submitted " + text(facts.submit_time);
  if (facts.array) {
    all += ", waiting tasks";
    facts.array->waiting.each([&](int task) { all += " " + std::to_string(task); });
    all += ", outcomes";
    facts.request->array->tasks.each([&](int task) {
      all += " " + std::to_string(static_cast<int>(facts.array->outcomes.of(task)));
    });
    if (facts.array->waiting.empty()) return all;
  }
  if (!waits) return all + ", limit " + text(facts.time_limit);
  all += ", eligible " + text(facts.eligible_time) + ", exit code " +
         std::to_string(facts.exit_code) + ", terms ";
  // One that is met is enough: the others count no more.
  const bool any = facts.request->dependency.any;
  if (any && state_of(facts.terms, any) == TermState::kMet) {
    all += "met";
  } else {
    for (const TermState each : facts.terms) all += std::to_string(static_cast<int>(each));
  }
  return all + (facts.claim ? ", claims" + text(*facts.claim) : "");
}

// If a job's end is under way, only its times count: its fate is compared when it is gone. The end
// of a job that requeues itself, since its node was lost, is stored like a requeue that was
// decided.
std::string text(const JobView& view) {
  const bool waits = view.state == JobState::kPending;
  std::string all = view.completing ? "completing, ran " + std::to_string(view.run_time.count())
                    : waits         ? "waits"
                                    : "has nodes";
  if (view.ending && !view.completing) {
    all += ", ends with " + std::to_string(static_cast<int>(*view.ending));
  }
  if (view.ready) all += ", ready";
  if (view.priority.value() == 0) all += ", held";
  return all + text_of_facts(*view.facts, waits);
}

// For failures: the jobs with nodes, and the waiting ones in the order of their priorities.
std::string queue_text(const Scheduler& scheduler, base::Instant now) {
  std::multimap<std::int64_t, std::string> lines;
  std::string all;
  for (const JobId id : scheduler.jobs()) {
    const JobView view = *scheduler.job(id, now);
    if (view.state != JobState::kPending) {
      all += "  job " + to_string(id) + (view.completing ? " ends" : " has") +
             text(*view.allocation) + " cores " + text_of_cores(*view.allocation) + "in " +
             scheduler.partition_name(*view.facts->partition) + " state " +
             std::to_string(static_cast<int>(view.state)) + " priority " +
             std::to_string(view.priority.value()) + "\n";
      continue;
    }
    std::string line = "  job " + to_string(id) + " priority " +
                       std::to_string(view.priority.value()) + " reason " +
                       std::to_string(static_cast<int>(view.reason)) + " eligible at " +
                       text(view.eligible_time) + " terms ";
    for (const TermState each : view.facts->terms) line += std::to_string(static_cast<int>(each));
    for (const DependencyTerm& each : view.facts->request->dependency.terms) {
      line += " of kind " + std::to_string(static_cast<int>(each.kind)) + " on job " +
              to_string(each.job) + (each.delay.count() > 0 ? " delayed" : "");
    }
    if (view.facts->array) line += " tasks " + std::to_string(view.facts->array->waiting.size());
    for (const std::string& name : view.facts->request->partitions) line += " " + name;
    lines.emplace(-std::int64_t{view.priority.value()}, line + "\n");
  }
  for (const auto& [order, line] : lines) all += line;
  return all;
}

// Returns the jobs by their priorities, equal ones together: a number of priority/basic that was
// used up by a job that has ended is used again by a new leader.
std::string order_text(const Scheduler& scheduler, base::Instant now) {
  std::map<std::int64_t, std::string> jobs;
  for (const JobId id : scheduler.jobs()) {
    const JobView view = *scheduler.job(id, now);
    if (view.completing || (view.facts->array && view.facts->array->waiting.empty())) continue;
    jobs[-std::int64_t{view.priority.value()}] += " " + to_string(id);
  }
  std::string all;
  for (const auto& [order, equal] : jobs) all += equal + ",";
  return all;
}

// A job that the plan does not list runs always there.
bool says(const NodePlan& plan, JobId job, base::Instant t) {
  for (std::size_t i = 0; i < plan.entries.size(); ++i) {
    if (plan.entries[i].job != job) continue;
    return timetable::runs_at(plan.timetable, static_cast<std::uint16_t>(i), t);
  }
  return true;
}

// Whether it has its turn now, and how many it had.
bool same_turns(const JobView& a, const JobView& b) {
  return a.completing || (a.state == b.state && a.run_time == b.run_time);
}

}  // namespace

bool Succession::has_nodes(const Side& side, JobId id) const {
  const auto view = side.scheduler.job(id, now_);
  return view && view->allocation != nullptr;
}

void Succession::take(Side& side) {
  for (const Decision& decision : side.scheduler.take_decisions()) {
    const auto* change = std::get_if<StateChange>(&decision);
    if (change != nullptr && is_terminal(change->state)) ended_[change->job] = change->state;
    if (const auto* start = std::get_if<Start>(&decision)) {
      side.nodes.push_back(to_string(start->job) + " has" + text(start->allocation));
      side.cores.push_back(text_of_cores(start->allocation));
    }
    const std::string what = std::visit(Text{side.scheduler}, decision);
    if (what.empty()) continue;
    const auto* const end = std::get_if<End>(&decision);
    const bool makes_room = end != nullptr && end->preemptor && has_nodes(side, *end->preemptor);
    std::visit(
        [&](const auto& each) {
          (makes_room ? side.room : side.decided)
              .push_back(text(now_) + " job " + to_string(each.job) + " " + what);
        },
        decision);
  }
  for (NodePlan& plan : side.scheduler.take_plans(now_)) {
    side.published[plan.node] = std::move(plan);
  }
}

// Returns a job that is published to run when it does not, or the reverse; empty if there is none.
std::string Succession::wrongly_published(const Side& side) const {
  if (side.leader.engine.turns_move()) return {};
  for (const JobId id : side.scheduler.jobs()) {
    const JobView view = *side.scheduler.job(id, now_);
    if (view.allocation == nullptr || !view.ready || view.ending || view.completing) continue;
    for (int slot = 1; slot <= 4; ++slot) {
      const base::Instant t = now_ + seconds(9.5 * slot);
      const bool runs = side.scheduler.job(id, t)->state == JobState::kRunning;
      for (const NodeAllocation& use : view.allocation->nodes) {
        const auto plan = side.published.find(use.node);
        if (plan == side.published.end() ? runs : says(plan->second, id, t) == runs) continue;
        return text(now_) + " job " + to_string(id) + " is published otherwise at " + text(t);
      }
    }
  }
  return {};
}

void Succession::wake_until(Side& side, base::Instant to) {
  const base::Instant from = now_;
  while (const auto due = side.scheduler.next_due()) {
    if (*due > to) break;
    now_ = std::max(now_, *due);
    side.scheduler.step(now_, Wake{});
    take(side);
  }
  now_ = from;
}

std::string Succession::play(Leader& old_leader, Leader& new_leader, int events) {
  Side before{old_leader, old_leader.scheduler, published_, {}, {}, {}, {}};
  Side after{new_leader, new_leader.scheduler, published_, {}, {}, {}, {}};
  std::string story;
  for (int i = 0; i < events; ++i) {
    // From the same instant up to many slices, and beyond most timers.
    const std::array gaps{0.0, 0.0, 0.5, 2.0, 6.0, 31.0, 200.0};
    const base::Instant to = now_ + seconds(gaps[static_cast<std::size_t>(pick(7))]);
    wake_until(before, to);
    wake_until(after, to);
    now_ = to;
    if (std::string found = difference(before, after); !found.empty()) return story + found;
    if (is_over()) return {};
    const Event event = random_event(before.scheduler);
    drawn_.push_back(event.index());
    story += text(now_) + " event " + std::to_string(event.index());
    std::visit(
        [&](const auto& each) {
          if constexpr (requires { each.job; }) story += " job " + to_string(each.job);
          if constexpr (requires { each.request; }) story += " job " + to_string(each.request.id);
        },
        event);
    story += "\n";
    for (Side* side : {&before, &after}) {
      side->scheduler.step(now_, event);
      take(*side);
      wake_until(*side, now_);
    }
    if (std::string found = difference(before, after); !found.empty()) return story + found;
    if (is_over()) return {};
  }
  return {};
}

std::string Succession::difference(Side& before, Side& after) {
  for (const JobId id : before.scheduler.jobs()) {
    const auto other = after.scheduler.job(id, now_);
    if (!other) continue;
    const bool was_impossible = before.scheduler.job(id, now_)->reason == Reason::kBadConstraints;
    const bool is_impossible = other->reason == Reason::kBadConstraints;
    if (was_impossible != is_impossible) impossible_differ_ = true;
  }
  if (impossible_differ_) return {};
  const std::vector<std::string> was = std::exchange(before.decided, {});
  const std::vector<std::string> is = std::exchange(after.decided, {});
  const auto lines = [](const std::vector<std::string>& all) {
    std::string joined;
    for (const std::string& line : all) joined += "  " + line + "\n";
    return joined;
  };
  if (was != is) {
    return "the old leader decides:\n" + lines(was) + "and has the queue:\n" +
           queue_text(before.scheduler, now_) + "the new one:\n" + lines(is) +
           "and has the queue:\n" + queue_text(after.scheduler, now_);
  }
  if (std::exchange(before.room, {}) != std::exchange(after.room, {})) {
    room_differs_ = true;
    return {};
  }
  const std::vector<std::string> was_on = std::exchange(before.nodes, {});
  const std::vector<std::string> is_on = std::exchange(after.nodes, {});
  if (was_on != is_on && world_.configuration.cluster.select == SelectType::kLinear) {
    return "the old leader gives nodes:\n" + lines(was_on) + "the new one:\n" + lines(is_on);
  }
  if (was_on != is_on) nodes_differ_ = true;
  if (std::exchange(before.cores, {}) != std::exchange(after.cores, {})) cores_differ_ = true;
  if (before.scheduler.jobs() != after.scheduler.jobs()) return "they know different jobs";
  for (const JobId id : before.scheduler.jobs()) {
    const JobView was_job = *before.scheduler.job(id, now_);
    const JobView is_job = *after.scheduler.job(id, now_);
    if (!same_turns(was_job, is_job)) turns_differ_ = true;
    const std::string old_view = text(was_job);
    const std::string new_view = text(is_job);
    if (old_view == new_view) continue;
    return text(now_) + " job " + to_string(id) + " is to the old leader: " + old_view +
           ", to the new one: " + new_view + "\nthe old one has the queue:\n" +
           queue_text(before.scheduler, now_) + "the new one:\n" +
           queue_text(after.scheduler, now_);
  }
  if (is_over()) return {};
  const std::string was_order = order_text(before.scheduler, now_);
  const std::string is_order = order_text(after.scheduler, now_);
  if (was_order != is_order) {
    return text(now_) + " by priority the jobs are to the old leader" + was_order +
           " to the new one" + is_order + "\nthe old one has the queue:\n" +
           queue_text(before.scheduler, now_) + "the new one:\n" +
           queue_text(after.scheduler, now_);
  }
  for (const Side* side : {&before, &after}) {
    if (std::string found = wrongly_published(*side); !found.empty()) return found;
  }
  return {};
}

Event Succession::random_event(const Scheduler& leader) {
  const std::vector<JobId> jobs = leader.jobs();
  if (jobs.empty() || (jobs.size() < 14 && pick(4) == 0)) {
    const JobRequest request = random_submission(prng_, next_, world_, now_, false);
    next_ = JobId{next_.number() + 1};
    return Submit{request, known_of(request)};
  }
  if (pick(24) == 0) {
    world_.configuration = random_change(prng_, world_);
    return Configure{std::make_shared<const Configuration>(world_.configuration)};
  }
  if (pick(16) == 0) {
    NodeSpec& node =
        world_.nodes[static_cast<std::size_t>(pick(static_cast<int>(world_.nodes.size())))];
    if (pick(4) == 0) return NodeRemove{node.name};  // it comes back with its next change
    node = random_change(prng_, node);
    return NodeUpdate{node};
  }
  const JobId id = any(jobs);
  const auto& array = leader.job(id, now_)->facts->array;
  const auto task = array && pick(2) == 0 ? array->waiting.next(pick(6)) : std::nullopt;
  if (!task) return about(leader, id);
  // A task that waits with its array.
  const JobId one = JobId::of_task(id, *task);
  const std::array<Event, 6> events{UserSuspend{one}, UserResume{one}, Cancel{one},
                                    Hold{one},        Release{one},    Forget{one}};
  return events[static_cast<std::size_t>(pick(6))];
}

std::vector<KnownJob> Succession::known_of(const JobRequest& request) const {
  std::vector<KnownJob> known;
  for (const DependencyTerm& term : request.dependency.terms) {
    const auto at = ended_.find(term.job);
    if (at != ended_.end()) known.push_back({.job = term.job, .state = at->second});
  }
  return known;
}

// Draws another request; for a task mostly other terms alone.
Event Succession::update_of(const Scheduler& leader, JobId id) {
  const JobRequest& asked = *leader.job(id, now_)->facts->request;
  JobRequest changed = asked;
  if (id.is_task() && pick(2) == 0) {
    changed.nice = pick(2) * 1'000;
    changed.time_limit = seconds(90);
    return Update{changed};
  }
  changed = random_request(prng_, id, world_, now_);
  changed.submit_time = now_;
  changed.dependency = asked.dependency;
  if (pick(4) == 0) {
    changed.dependency = random_submission(prng_, next_, world_, now_, false).dependency;
  }
  Update update{changed, known_of(changed)};
  if (id.is_task()) update.tasks[*id.task()].nice = 2'000;
  return update;
}

// Draws an event that suits the job's state, and now and then one that makes no sense for it.
Event Succession::about(const Scheduler& leader, JobId id) {
  const JobView view = *leader.job(id, now_);
  const bool allocated = view.allocation != nullptr;
  const bool ends = view.ending || view.completing;
  if (ends && pick(2) == 0) {
    if (pick(4) == 0) return NodesClean{id, {world_.nodes.front().name}};
    return JobGone{id, pick(3) == 0 ? JobState::kCompleted : JobState::kFailed, 0};
  }
  if (allocated && !view.ready && pick(2) == 0) {
    if (pick(3) > 0) return JobReady{id};
    StartRefused refused{id, {}, seconds(20), pick(4) == 0, "refused"};
    if (pick(2) == 0) refused.avoid_nodes = {world_.nodes[0].name};
    return refused;
  }
  switch (pick(13)) {
    case 10:
      return JobRan{id, seconds(pick(20))};
    case 0:
      return UserSuspend{id};
    case 1:
      return UserResume{id};
    case 2:
      return Cancel{id};
    case 3:
      return Requeue{id};
    case 4:
      return Hold{id, pick(2) == 0};
    case 5:
      return Release{id};
    case 6:
      return JobEnding{id, pick(2) == 0 ? JobState::kFailed : JobState::kNodeFail, 1};
    case 7:
      return JobGone{id};
    case 11:
      if (!allocated) return Forget{id, pick(2) == 0};
      [[fallthrough]];
    default:
      return update_of(leader, id);
  }
}

}  // namespace sched::testing
