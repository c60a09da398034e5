#include "scheduler/testing/succession.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>

#include "scheduler/testing/cluster_driver.h"

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
    return "start in " + scheduler.partition_name(d.partition) + " limit " + text(d.time_limit) +
           text(d.allocation);
  }
  std::string operator()(const End& d) const {
    return "end " + std::to_string(static_cast<int>(d.verdict)) + " until " + text(d.kill_at) +
           " for " + (d.preemptor ? to_string(*d.preemptor) : "nobody");
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
  return all;
}

// For failures: the waiting jobs in the order of their priorities.
std::string queue_text(const Scheduler& scheduler, base::Instant now) {
  std::multimap<std::int64_t, std::string> lines;
  for (const JobId id : scheduler.jobs()) {
    const JobView view = *scheduler.job(id, now);
    if (view.state != JobState::kPending) continue;
    std::string line = "  job " + to_string(id) + " priority " +
                       std::to_string(view.priority.value()) + " reason " +
                       std::to_string(static_cast<int>(view.reason)) + " eligible at " +
                       text(view.eligible_time) + " terms ";
    for (const TermState each : view.facts->terms) line += std::to_string(static_cast<int>(each));
    if (view.facts->array) line += " tasks " + std::to_string(view.facts->array->waiting.size());
    for (const std::string& name : view.facts->request->partitions) line += " " + name;
    lines.emplace(-std::int64_t{view.priority.value()}, line + "\n");
  }
  std::string all;
  for (const auto& [order, line] : lines) all += line;
  return all;
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

void Succession::take(Side& side) const {
  for (const Decision& decision : side.scheduler.take_decisions()) {
    if (const auto* start = std::get_if<Start>(&decision)) {
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
  side.scheduler.take_plans(now_);
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

std::string Succession::play(Scheduler& old_leader, Scheduler& new_leader, int events) {
  Side before{old_leader, {}, {}, {}};
  Side after{new_leader, {}, {}, {}};
  std::string story;
  for (int i = 0; i < events; ++i) {
    // From the same instant up to many slices, and beyond most timers.
    const std::array gaps{0.0, 0.0, 0.5, 2.0, 6.0, 31.0, 200.0};
    const base::Instant to = now_ + seconds(gaps[static_cast<std::size_t>(pick(7))]);
    wake_until(before, to);
    wake_until(after, to);
    now_ = to;
    if (std::string found = difference(before, after); !found.empty()) return story + found;
    if (turns_differ_ || cores_differ_ || room_differs_) return {};
    const Event event = random_event(old_leader);
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
    if (turns_differ_ || cores_differ_ || room_differs_) return {};
  }
  return {};
}

std::string Succession::difference(Side& before, Side& after) {
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
           ", to the new one: " + new_view;
  }
  return {};
}

Event Succession::random_event(const Scheduler& leader) {
  const std::vector<JobId> jobs = leader.jobs();
  if (jobs.empty() || (jobs.size() < 14 && pick(4) == 0)) {
    JobRequest request = random_request(prng_, next_, world_, now_);
    request.submit_time = now_;
    if (pick(4) == 0) {
      request.array.emplace().tasks.insert(0, 1 + pick(4));
      if (pick(3) == 0) request.array->at_once = 1 + pick(2);
    }
    next_ = JobId{next_.number() + 1};
    return Submit{request};
  }
  if (pick(16) == 0) {
    NodeSpec& node =
        world_.nodes[static_cast<std::size_t>(pick(static_cast<int>(world_.nodes.size())))];
    node = random_change(prng_, node);
    return NodeUpdate{node};
  }
  return about(leader, any(jobs));
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
  switch (pick(11)) {
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
    default: {
      JobRequest changed = random_request(prng_, id, world_, now_);
      changed.submit_time = now_;
      return Update{changed};
    }
  }
}

}  // namespace sched::testing
