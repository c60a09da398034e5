// Random events over random configurations, from a seed that a failure prints. After every event:
// the core's invariants; what is published is what the core does; nothing runs over anything else; a
// restored scheduler has the same future; and what a new leader restores is what was published.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/base/prng.h"
#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {
namespace {

struct World {
  Configuration configuration;
  std::vector<NodeSpec> nodes;
};

World random_world(base::Prng& prng, bool cons_tres) {
  World world;
  world.nodes = nodes("n", 1, 2 + static_cast<int>(prng.below(4)), 4);
  Configuration& c = world.configuration;
  c = gang_linear({});
  if (cons_tres) {
    c.cluster.select = SelectType::kConsTres;
    c.cluster.memory = prng.below(2) == 0;
    c.cluster.unit = SelectUnit::kCore;
    c.cluster.default_memory.per_cpu = MemoryMiB{500};
  }
  const bool preempts = prng.below(2) == 0;
  if (preempts) {
    c.cluster.preempt_type = PreemptType::kPartitionPriority;
    const PreemptMode modes[] = {PreemptMode::kSuspend, PreemptMode::kCancel,
                                 PreemptMode::kRequeue};
    c.cluster.preempt_mode = modes[prng.below(3)];
  }
  const int partitions = 1 + static_cast<int>(prng.below(3));
  for (int i = 0; i < partitions; ++i) {
    std::vector<NodeSpec> some;
    for (const NodeSpec& spec : world.nodes) {
      if (prng.below(4) > 0) some.push_back(spec);
    }
    if (some.empty()) some = world.nodes;
    PartitionConfig p = partition("p" + std::to_string(i), some, OverSubscribe::kForce,
                                  1 + static_cast<int>(prng.below(4)),
                                  static_cast<std::uint16_t>(preempts ? i + 1 : 1));
    if (prng.below(5) == 0) p.over_subscribe = OverSubscribe::kNo;
    if (preempts && prng.below(4) == 0) p.grace_time = seconds(20);
    c.partitions.push_back(p);
  }
  c.partitions.front().is_default = true;
  const double slices[] = {5, 7, 30};
  c.cluster.time_slice = seconds(slices[prng.below(3)]);
  const double leads[] = {0, 3, 12};
  c.cluster.timetable_lead = seconds(leads[prng.below(3)]);
  return world;
}

JobRequest random_job(base::Prng& prng, std::int64_t id, const World& world) {
  const auto& partitions = world.configuration.partitions;
  const PartitionConfig& p = partitions[prng.below(partitions.size())];
  JobRequest request = job(id, 1 + static_cast<int>(prng.below(p.nodes.size())), p.name);
  if (world.configuration.cluster.select == SelectType::kConsTres) {
    request.tasks = request.min_nodes * (1 + static_cast<int>(prng.below(3)));
  }
  if (prng.below(6) == 0) request.time_limit = seconds(60);
  if (prng.below(8) == 0) request.requeue = false;
  return request;
}

class RandomRun {
 public:
  RandomRun(std::uint64_t seed, bool cons_tres)
      : prng_{seed},
        cons_tres_{cons_tres},
        world_{random_world(prng_, cons_tres)},
        driver_{world_.configuration, world_.nodes} {
    driver_.ready_after.reset();
    driver_.ends_at_once = false;
  }

  // False after a failure.
  bool run(int steps) {
    for (int step = 0; step < steps; ++step) {
      move_time();
      one_event();
      driver_.run_until(driver_.now());
      follow();
      check(step);
      if (::testing::Test::HasFailure()) return false;
    }
    return true;
  }

 private:
  void move_time() {
    const double gaps[] = {0, 0.5, 2, 6, 31, 500};
    driver_.run_until(driver_.now() + seconds(gaps[prng_.below(6)]));
    follow();
  }

  // Starts become ready and endings become gone later, by events of their own.
  void follow() {
    for (const Decision& decision : driver_.take_log()) {
      if (const auto* start = std::get_if<Start>(&decision)) unready_.push_back(start->job);
      if (const auto* end = std::get_if<End>(&decision)) ending_.push_back(end->job);
    }
  }

  std::optional<JobId> take(std::vector<JobId>& from) {
    if (from.empty()) return std::nullopt;
    const std::size_t at = prng_.below(from.size());
    const JobId id = from[at];
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(at));
    return id;
  }
  std::optional<JobId> any() {
    const std::vector<JobId> ids = driver_.scheduler().jobs();
    if (ids.empty()) return std::nullopt;
    return ids[prng_.below(ids.size())];
  }

  // With KUBEGANG_TRACE the events and decisions of the run are printed.
  void tell(const Event& event) {
    trace_event(event);
    driver_.step(driver_.now(), event);
  }
  void trace_event(const Event& event) const {
    if (std::getenv("KUBEGANG_TRACE") == nullptr) return;
    std::string job;
    std::visit(
        [&](const auto& each) {
          if constexpr (requires { each.job; }) job = to_string(each.job);
          if constexpr (requires { each.request; }) {
            job = to_string(each.request.id) + " of " + std::to_string(each.request.min_nodes) +
                  " nodes in " + each.request.partitions.front();
          }
        },
        event);
    static const char* const kNames[] = {
        "configure", "node",     "node-remove", "submit", "update", "hold",   "release",
        "suspend",   "resume",   "cancel",      "requeue", "forget", "ready",  "ending",
        "gone",      "refused",  "wake",        "slice",  "pass",   "limit"};
    std::printf("%.6f %s %s\n", static_cast<double>(base::micros_since_epoch(driver_.now())) / 1e6,
                kNames[event.index()], job.c_str());
  }

  void one_event() {
    switch (prng_.below(12)) {
      case 0:
      case 1:
      case 2:
        if (driver_.scheduler().jobs().size() < 14) {
          tell(Submit{random_job(prng_, next_id_++, world_)});
        }
        break;
      case 3:
      case 4:
      case 5:
        if (const auto id = take(unready_)) tell(JobReady{*id});
        break;
      case 6:
        if (const auto id = take(ending_)) tell(JobGone{*id});
        break;
      case 7:
        if (const auto id = any(); id && driver_.view(id->value()).allocation != nullptr) {
          tell(JobGone{*id});
        }
        break;
      case 8:
        if (const auto id = any()) tell(UserSuspend{*id});
        break;
      case 9:
        if (const auto id = any()) tell(UserResume{*id});
        break;
      case 10:
        if (const auto id = any()) tell(Cancel{*id});
        break;
      case 11:
        if (const auto id = any()) tell(Requeue{*id});
        break;
      default:
        break;
    }
  }

  void check(int step) {
    SCOPED_TRACE("step " + std::to_string(step) + " at " +
                 std::to_string(base::micros_since_epoch(driver_.now())));
    ASSERT_EQ(driver_.scheduler().check_invariants(), "");
    check_published();
    if (!cons_tres_ && prng_.below(4) == 0) check_saved();
    if (prng_.below(4) == 0) check_new_leader();
  }

  // A rewrite that may wait is not out yet: then the plans are those of before.
  bool all_published() const {
    const auto due = driver_.scheduler().next_due();
    return !due || *due > driver_.now() + seconds(1000);
  }

  // run(t) as published is what the core would do, for every job and for times to come.
  void check_published() {
    const base::Instant now = driver_.now();
    for (const JobId id : driver_.scheduler().jobs()) {
      const JobView view = driver_.view(id.value());
      if (view.allocation == nullptr || !view.ready || view.ending || view.completing) continue;
      const auto says = driver_.published_says(id, now);
      if (view.state == JobState::kRunning) {
        EXPECT_EQ(says, Driver::Says::kRuns) << "job " << to_string(id) << " now";
      }
      if (!all_published()) continue;
      for (int slot = 1; slot <= 12; ++slot) {
        const base::Instant t = now + seconds(2.5 * slot);
        const auto later = driver_.scheduler().job(id, t);
        const bool runs = later->state == JobState::kRunning;
        EXPECT_EQ(driver_.published_says(id, t) == Driver::Says::kRuns, runs)
            << "job " << to_string(id) << " after " << 2.5 * slot << " s";
      }
    }
  }

  // The same future: decisions and plans of the restored one are those of the original.
  void check_saved() {
    const std::string saved = driver_.scheduler().save();
    auto restored = Scheduler::restore(saved);
    ASSERT_TRUE(restored.ok()) << restored.error().message;
    EXPECT_EQ(restored->save(), saved);
    driver_.replace_scheduler(std::move(restored).value());
  }

  RestoredJob restored_job(JobId id) const {
    const JobView view = driver_.view(id.value());
    RestoredJob from;
    from.request = requests_of(id);
    from.state = view.state;
    from.priority = view.priority.value() == 0 ? Priority{1} : view.priority;
    from.eligible_time = view.eligible_time;
    from.restarts = view.restarts;
    if (view.state == JobState::kPending) {
      if (view.priority.value() == 0) from.held_by_system = view.reason;
      return from;
    }
    from.partition = view.partition;
    from.allocation = *view.allocation;
    from.ready = view.ready;
    from.start_time = view.start_time;
    from.run_time = view.run_time;
    from.suspend_time = view.suspend_time;
    from.times_as_of = driver_.now();
    from.user_suspended = view.reason == Reason::kUser;
    from.ending = view.ending;
    if (view.ending) from.kill_at = driver_.now();
    return from;
  }
  JobRequest requests_of(JobId id) const {
    JobRequest request;
    request.id = id;
    const JobView view = driver_.view(id.value());
    if (view.allocation != nullptr) {
      request.min_nodes = static_cast<int>(view.allocation->nodes.size());
    }
    return request;
  }

  // Restored from published plans + projection = what was published.
  void check_new_leader() {
    const base::Instant now = driver_.now();
    if (!all_published()) return;
    Scheduler other{Options{}};
    other.step(now, Configure{std::make_shared<const Configuration>(world_.configuration)});
    for (const NodeSpec& spec : world_.nodes) other.step(now, NodeUpdate{spec});
    std::vector<RestoredJob> jobs;
    for (const JobId id : driver_.scheduler().jobs()) {
      if (driver_.view(id.value()).ending) return;  // being killed: lists are in motion
      jobs.push_back(restored_job(id));
    }
    std::vector<NodePlan> plans;
    for (const auto& [node, plan] : driver_.published()) plans.push_back(plan);
    other.restore_from_published(now, jobs, plans);
    for (const NodePlan& plan : other.take_plans(now)) {
      const auto published = driver_.published().find(plan.node);
      ADD_FAILURE() << "differs: " << to_text(plan) << "\npublished: "
                    << (published == driver_.published().end() ? "" : to_text(published->second));
    }
    for (const RestoredJob& job : jobs) {
      if (job.state == JobState::kPending) continue;
      EXPECT_EQ(other.job(job.request.id, now)->run_time, job.run_time)
          << "job " << to_string(job.request.id);
      for (int slot = 0; slot <= 8; ++slot) {
        const base::Instant t = now + seconds(3.5 * slot);
        EXPECT_EQ(other.job(job.request.id, t)->state,
                  driver_.scheduler().job(job.request.id, t)->state)
            << "job " << to_string(job.request.id) << " after " << 3.5 * slot << " s";
      }
    }
  }

  base::Prng prng_;
  const bool cons_tres_;
  World world_;
  Driver driver_;
  std::int64_t next_id_ = 1;
  std::vector<JobId> unready_;
  std::vector<JobId> ending_;
};

// KUBEGANG_RANDOM_EVENTS raises the number of events, KUBEGANG_SEED repeats one run.
std::int64_t from_environment(const char* name, std::int64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::atoll(value);
}

void run_many(bool cons_tres, std::uint64_t first_seed) {
  constexpr int kSteps = 120;
  const std::int64_t events = from_environment("KUBEGANG_RANDOM_EVENTS", 12'000);
  const std::int64_t only = from_environment("KUBEGANG_SEED", 0);
  for (std::int64_t i = 0; i * kSteps < events; ++i) {
    const auto seed = only != 0 ? static_cast<std::uint64_t>(only)
                                : first_seed + static_cast<std::uint64_t>(i);
    SCOPED_TRACE("KUBEGANG_SEED=" + std::to_string(seed));
    if (!RandomRun{seed, cons_tres}.run(kSteps) || only != 0) return;
  }
}

TEST(RandomEvents, LinearKeepsItsInvariantsAndItsWord) {
  run_many(false, 1000);
}
TEST(RandomEvents, ConsTresKeepsItsInvariantsAndItsWord) {
  run_many(true, 500'000);
}

}  // namespace
}  // namespace sched::testing
