// Random events over random configurations, from a seed that a failure prints. After every event:
// the core's invariants (6.13), the books and reasons of a simple watch, and the same decisions and
// plans from a twin that is given the same events and asked nothing in between (questions work some
// things out early: that must not change anything). With the scheduler's own timing also: what is
// published is what the core does, now, ahead, and when it is played; and what a new leader
// restores is what was published.
//
// KUBEGANG_LONG: a million events per test. KUBEGANG_RANDOM_EVENTS: the number of events per test.
// KUBEGANG_SEED repeats one run, with KUBEGANG_TRACE it tells its events and decisions.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "scheduler/testing/cluster_driver.h"
#include "scheduler/testing/random_world.h"
#include "scheduler/testing/stored_jobs.h"
#include "scheduler/testing/succession.h"
#include "scheduler/testing/watch.h"

namespace sched::testing {
namespace {

// Enough to fill the few nodes of a world several times over, few enough to read a trace.
constexpr int kJobsMax = 14;

// How often there was something to look at.
struct Looks {
  std::int64_t later = 0;        // what a job does at a time to come, as published
  std::int64_t has_run = 0;      // when a job will have run for a time
  std::int64_t leaders = 0;      // new leaders, with a job that had started
  std::int64_t mixtures = 0;     // likewise, some of whose nodes have a timetable of before
  std::int64_t played = 0;       // what a job does when the core is played
  std::int64_t successions = 0;  // new leaders that were played on beside the old one
  std::int64_t backfills = 0;    // those of them with backfill
  std::array<std::int64_t, std::variant_size_v<Event>> events{};  // of all of them, by kind
  std::int64_t turns_apart = 0;       // those of them that gave the turns to other jobs
  std::int64_t cores_apart = 0;       // those of them that gave a job other cores
  std::int64_t nodes_apart = 0;       // likewise other nodes
  std::int64_t impossible_apart = 0;  // those of them in which one found that a job fits nowhere
  std::int64_t room_apart = 0;        // likewise for jobs that were resumed
};

// One run of random events. Beside the scheduler under test, which the driver owns, there are:
//
// * `watch_`, which keeps books of its own from events and decisions and finds contradictions
//   (watch.h);
// * `twin_`, which gets the same events and is never asked anything: decisions and plans must be
//   equal, or a question has changed something;
// * `simulated_`, with own timing only, whose run(t) is not published: it works run(t) out lazily
//   and must decide the same;
// * `starter_`, with told timing only, which is never asked when jobs will start: a pass of its
//   backfill may end early, and must have started the same jobs;
// * new leaders, made now and then from what is published at the moment and thrown away;
// * a new leader that is made from what `stored_` has kept, and is played on beside the old one;
// * a scheduler that is brought to the present by `history_` and then played ahead.
//
// Each step moves time, sends one event, and checks. All choices come from one generator, so a seed
// is a run; a check that makes a choice of its own (check()) is part of it.
class RandomRun {
 public:
  RandomRun(std::uint64_t seed, SelectType select, bool told, Looks& looks,
            PriorityType priority = PriorityType::kBasic)
      : prng_{seed},
        told_{told},
        looks_{looks},
        world_{random_world(prng_, select, priority)},
        first_world_{world_},
        driver_{world_.configuration, world_.nodes, begun_by(told)},
        watch_{driver_.scheduler()},
        twin_{begun_by(told)} {
    // The run tells itself when pods are ready and when victims are gone, at any later time and in
    // any order.
    driver_.ready_after.reset();
    driver_.ends_at_once = false;
    const Configure begun{std::make_shared<const Configuration>(world_.configuration)};
    watch_.on_event({}, begun);
    stored_.on_event({}, begun);
    for (const NodeSpec& spec : world_.nodes) watch_.on_event({}, NodeUpdate{spec});
    // Sees all events of the scheduler: the run's own, and those by which the driver answers
    // decisions.
    driver_.on_event = [this](base::Instant now, const Event& event) {
      watch_.on_event(now, event);
      stored_.on_event(now, event);
      history_.push_back({now, event});
      twin_.step(now, event);
      if (starter_) starter_->step(now, event);
      step_simulated(now, event);
    };
    begin(twin_);
    if (told) begin(starter_.emplace(make_replay({.tells_starts = false})));
    simulate();
    driver_.on_decisions = [this](const std::vector<Decision>& decisions) {
      watch_.on_decisions(decisions, driver_.now());
      stored_.on_decisions(driver_.now(), decisions);
      trace(decisions);
      for (const Decision& decision : decisions) {
        if (const auto* start = std::get_if<Start>(&decision)) unready_.push_back(start->job);
        if (const auto* end = std::get_if<End>(&decision)) ending_.push_back(end->job);
      }
      compare_simulated(decisions);
      check_starter(decisions);
      const std::vector<Decision> its = twin_.take_decisions();
      EXPECT_TRUE(its == decisions) << "its twin decides otherwise: " << text_of(its)
                                    << "\ninstead of: " << text_of(decisions);
    };
    driver_.on_plans = [this](base::Instant now, const std::vector<NodePlan>& plans) {
      // Kept for check_leader_of_a_mixture(): the plan that each node had before its last one.
      for (const NodePlan& plan : plans) {
        const auto before = driver_.published().find(plan.node);
        if (before != driver_.published().end()) older_[plan.node] = before->second;
      }
      for (const NodePlan& plan : plans) {
        for (const NodeTimetableEntry& entry : plan.entries) {
          EXPECT_GE(entry.ran.count(), 0) << "ran of job " << entry.job.number() << " at "
                                          << base::micros_since_epoch(now) << ": " << to_text(plan);
        }
      }
      history_.push_back({now, std::nullopt});
      const std::vector<NodePlan> its = twin_.take_plans(now);
      EXPECT_TRUE(its == plans) << "its twin plans otherwise:" << text_of(its)
                                << "\ninstead of:" << text_of(plans);
    };
  }

  static Scheduler begun_by(bool told) { return told ? make_replay() : Scheduler{Options{}}; }
  // The nodes and the configuration that the run began with.
  void begin(Scheduler& scheduler) const {
    scheduler.step({},
                   Configure{std::make_shared<const Configuration>(first_world_.configuration)});
    for (const NodeSpec& spec : first_world_.nodes) scheduler.step({}, NodeUpdate{spec});
  }

  // It decides the same, except when and where jobs are expected to start.
  void check_starter(std::vector<Decision> decisions) {
    if (!starter_) return;
    std::vector<Decision> its = starter_->take_decisions();
    const auto is_planned = [](const Decision& decision) {
      return std::holds_alternative<Planned>(decision);
    };
    std::erase_if(its, is_planned);
    std::erase_if(decisions, is_planned);
    EXPECT_TRUE(its == decisions) << "a pass that ends early decides otherwise: " << text_of(its)
                                  << "\ninstead of: " << text_of(decisions);
  }

  // Another one whose run(t) is not published, for simulations: it decides the same.
  void simulate() {
    if (told_) return;
    simulated_.emplace(Options{.publishes = false});
    begin(*simulated_);
  }

  // Own wakes, at which it works out what the other one knows already, decide nothing.
  void step_simulated(base::Instant now, const Event& event) {
    if (!simulated_) return;
    // Only wakes before `now`: at `now` it gets the event, which may be a wake itself.
    while (const auto due = simulated_->next_due()) {
      if (*due >= now) break;
      simulated_->step(*due, Wake{});
    }
    simulated_->step(now, event);
  }

  void compare_simulated(const std::vector<Decision>& decisions) {
    if (!simulated_) return;
    const std::vector<Decision> its = simulated_->take_decisions();
    EXPECT_TRUE(its == decisions) << "without plans it decides otherwise: " << text_of(its)
                                  << "\ninstead of: " << text_of(decisions);
    take_runs();
    for (const Decision& decision : decisions) {
      if (const auto* start = std::get_if<Start>(&decision)) ran_.erase(start->job);
    }
  }

  // It says the same as the other one about when jobs ran, and when they will have run.
  void check_simulated() {
    if (!simulated_) return;
    const base::Instant now = driver_.now();
    take_runs();
    std::map<JobId, base::Duration> open;
    for (const JobRun& run : simulated_->open_runs()) open[run.job] += time_of(run, now);
    for (const JobId id : core().jobs()) {
      const auto view = core().job(id, now);
      if (view->allocation == nullptr || view->completing) continue;
      // Settled runs and the open one together are the run time that the other one says.
      EXPECT_EQ(ran_[id] + open[id], view->run_time) << "job " << to_string(id);
      const base::Instant later = now + seconds(17);
      const base::Duration work = core().job(id, later)->run_time;
      if (work == view->run_time) continue;
      ++looks_.has_run;
      // The inverse of run time: at that instant the job has run for exactly `work`, and it does
      // not reach a microsecond more by `later`.
      EXPECT_EQ(core().job(id, simulated_->when_has_run(id, work, later))->run_time, work)
          << "job " << to_string(id);
      EXPECT_GT(simulated_->when_has_run(id, work + base::Duration{1}, later), later)
          << "job " << to_string(id);
    }
  }

  // Runs that are settled, added up for each job since it last started.
  void take_runs() {
    for (const JobRun& run : simulated_->take_runs()) ran_[run.job] += time_of(run, run.to);
  }

  // Returns how long the job ran in a run's part before `to`; without a timetable, all of the time.
  static base::Duration time_of(const JobRun& run, base::Instant to) {
    if (to <= run.from) return base::Duration{0};
    if (run.timetable == nullptr) return to - run.from;
    return timetable::run_time(*run.timetable, run.pod, run.from, to);
  }

  // For failures and traces: what was decided about which job, and of a start the cores on each
  // node.
  static std::string text_of(const std::vector<Decision>& decisions) {
    static const char* const kNames[] = {"start",   "suspend", "resume", "end",
                                         "limit",   "claim",   "change", "waits",
                                         "planned", "terms",   "refuse", "refuse-command"};
    static_assert(std::size(kNames) == std::variant_size_v<Decision>);
    std::string text;
    for (const Decision& decision : decisions) {
      text += std::string{" "} + kNames[decision.index()];
      std::visit([&](const auto& each) { text += " " + to_string(each.job); }, decision);
      if (const auto* waits = std::get_if<Waits>(&decision)) {
        text += " (" + std::to_string(static_cast<int>(waits->reason)) + " " + waits->message + ")";
      }
      if (const auto* start = std::get_if<Start>(&decision)) {
        for (const NodeAllocation& use : start->allocation.nodes) {
          text += " " + to_string(use.node) + ":";
          for (int core = 0; core < 12; ++core) text += use.cores.test(core) ? '1' : '0';
        }
      }
    }
    return text;
  }

  static std::string text_of(const std::vector<NodePlan>& plans) {
    std::string text;
    for (const NodePlan& plan : plans) text += "\n  " + to_text(plan);
    return text;
  }

  // False after a failure.
  bool run(int steps) {
    for (int step = 0; step < steps; ++step) {
      SCOPED_TRACE("step " + std::to_string(step) + " at " +
                   std::to_string(base::micros_since_epoch(driver_.now())));
      move_time();
      one_event();
      driver_.run_until(driver_.now());
      driver_.take_log();
      check();
      if (::testing::Test::HasFailure()) return false;
    }
    return true;
  }

 private:
  int pick(int bound) { return static_cast<int>(prng_.below(static_cast<std::uint64_t>(bound))); }
  const Scheduler& core() const { return driver_.scheduler(); }

  // From the same instant up to many slices, which are of 5 to 30 s.
  void move_time() {
    // The same instant, within a slice, just beyond the shortest and the longest slice, and beyond
    // most timers.
    const double gaps[] = {0, 0.5, 2, 6, 31, 500};
    const base::Instant to = driver_.now() + seconds(gaps[pick(6)]);
    if (!told_ && world_.configuration.cluster.priority.type == PriorityType::kMultifactor) {
      const base::Instant period_end = base::boundary_at_or_after(
          driver_.now() + base::Duration{1}, world_.configuration.cluster.priority.calc_period);
      if (period_end <= to) {
        driver_.run_until(period_end);
        check_succession();
      }
    }
    driver_.run_until(to);
    if (!told_ && pick(8) == 0) check_succession();
  }

  // Removes one at random.
  std::optional<JobId> take(std::vector<JobId>& from) {
    if (from.empty()) return std::nullopt;
    const auto index = static_cast<std::size_t>(pick(static_cast<int>(from.size())));
    const JobId id = from[index];
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(index));
    return id;
  }
  // Any job that has not ended: most events may come for a job in any state, and must have no
  // effect if they make no sense.
  std::optional<JobId> any() {
    const std::vector<JobId> ids = core().jobs();
    if (ids.empty()) return std::nullopt;
    return ids[static_cast<std::size_t>(pick(static_cast<int>(ids.size())))];
  }
  // Only one of the holds that are not in the spec is stored. A hold of an array is one of its
  // tasks.
  bool is_held_by_system(JobId id) const {
    return std::ranges::any_of(core().jobs(), [&](JobId each) {
      if (each != id && (id.is_task() || each.array() != id)) return false;
      const Reason reason = driver_.view(each).reason;
      return reason == Reason::kLaunchFailedRequeuedHeld || reason == Reason::kJobHoldMaxRequeue;
    });
  }
  bool allocated(JobId id) const {
    const auto view = core().job(id, driver_.now());
    return view && view->allocation != nullptr;
  }
  // Likewise, or a task that waits with its array.
  std::optional<JobId> any_task() {
    const auto id = any();
    if (!id || pick(2) == 0) return id;
    const auto& array = driver_.view(*id).facts->array;
    if (!array) return id;
    const auto task = array->waiting.next(pick(6));
    return task ? JobId::of_task(*id, *task) : id;
  }

  void tell(const Event& event) {
    trace(event);
    driver_.step(driver_.now(), event);
  }
  static void trace(const std::vector<Decision>& decisions) {
    if (std::getenv("KUBEGANG_TRACE") == nullptr || decisions.empty()) return;
    std::printf("  ->%s\n", text_of(decisions).c_str());
  }
  void trace(const Event& event) const {
    if (std::getenv("KUBEGANG_TRACE") == nullptr) return;
    std::string job;
    std::visit(
        [&](const auto& each) {
          if constexpr (requires { each.job; }) job = to_string(each.job);
          if constexpr (requires { each.request; }) {
            job = to_string(each.request.id) + " of " + std::to_string(each.request.min_nodes) +
                  " nodes in " + each.request.partitions.front() + ", " + each.request.user +
                  ", named \"" + each.request.name + "\", QOS " + each.request.qos + ", sharing " +
                  std::to_string(static_cast<int>(each.request.sharing));
          }
        },
        event);
    static const char* const kNames[] = {
        "configure", "node",   "node-remove", "submit",  "update", "hold",  "release",
        "suspend",   "resume", "cancel",      "requeue", "forget", "ready", "ran",
        "ending",    "gone",   "refused",     "wake",    "slice",  "pass",  "limit"};
    std::printf("%.6f %s %s\n", static_cast<double>(base::micros_since_epoch(driver_.now())) / 1e6,
                kNames[event.index()], job.c_str());
  }

  // The usual events are several times as likely as the others; those of told timing come last.
  void one_event() {
    switch (pick(told_ ? 18 : 15)) {
      case 0:
      case 1:
      case 2:
        if (core().jobs().size() < kJobsMax) submit_one();
        break;
      case 3:
      case 4:
      case 5:
        if (const auto id = take(unready_)) tell(JobReady{*id});
        break;
      case 6:
      case 7:
        if (const auto id = take(ending_)) tell(JobGone{*id});
        break;
      case 8:
        // An end that the scheduler has not asked for. The pods are gone at once, or the end of the
        // processes, or of the node, comes first and the pods go later.
        if (const auto id = any(); id && allocated(*id)) {
          if (pick(3) == 0) {
            tell(JobEnding{*id, pick(2) == 0 ? JobState::kFailed : JobState::kNodeFail, 1});
            ending_.push_back(*id);
          } else {
            tell(JobGone{*id});
          }
        }
        break;
      case 9:
        if (const auto id = any_task()) tell(UserSuspend{*id});
        break;
      case 10:
        if (const auto id = any_task()) tell(UserResume{*id});
        break;
      case 11:
        if (const auto id = any_task()) tell(Cancel{*id});
        break;
      case 12:
        if (const auto id = any_task()) tell(Requeue{*id});
        break;
      case 13:
        rare_event();
        break;
      case 14:
        // Only of jobs that wait: with own timing the hold of a job that runs is refused (13.2).
        if (const auto id = any_task(); id && !allocated(*id)) {
          if (pick(2) == 0) {
            tell(Hold{*id, pick(2) == 0 && !is_held_by_system(*id)});
          } else {
            tell(Release{*id});
          }
        }
        break;
      case 15:
        tell(SliceEnd{});
        break;
      case 16:
        // Every other one is followed by the backfill.
        tell(Pass{.backfill = history_.size() % 2 == 0});
        break;
      case 17:
        if (const auto id = any(); id && pick(3) == 0) tell(TimeLimitReached{*id});
        break;
      default:
        break;
    }
  }

  void submit_one() {
    const JobId id{next_id_++};
    const JobRequest request = random_submission(prng_, id, world_, driver_.now(), told_);
    tell(Submit{request, watch_.known_of(request)});
  }

  // Other terms of the task, if it is one.
  std::map<int, TaskTerms> random_terms(JobId task) {
    std::map<int, TaskTerms> terms;
    if (!task.is_task() || pick(2) == 0) return terms;
    TaskTerms& own = terms[*task.task()];
    if (pick(2) == 0) own.time_limit = seconds(90);
    if (pick(2) == 0) own.priority = Priority{static_cast<std::uint32_t>(1 + pick(100))};
    if (pick(2) == 0) own.nice = 2'000;
    return terms;
  }

  // Events that change much at once: one in fifteen, or worlds would never settle.
  void rare_event() {
    switch (pick(6)) {
      case 0:
        world_.configuration = random_change(prng_, world_);
        tell(Configure{std::make_shared<const Configuration>(world_.configuration)});
        configured_at_ = driver_.now();
        break;
      case 1: {
        NodeSpec& node =
            world_.nodes[static_cast<std::size_t>(pick(static_cast<int>(world_.nodes.size())))];
        node = random_change(prng_, node);
        tell(NodeUpdate{node});
        break;
      }
      case 2:
        if (const auto one = any()) {
          const JobId id = one->array();  // a task has no spec of its own
          JobRequest changed = random_request(prng_, id, world_, driver_.now());
          // These stay as the spec has them: they have events of their own.
          changed.hold = stored_.asks_for_hold(id);
          changed.suspend = stored_.asks_for_suspend(id);
          const JobRequest& now = watch_.books().at(id).request;
          changed.user = now.user;
          changed.dependency = now.dependency;
          if (pick(3) == 0) {
            const JobId next{next_id_};  // waits for any that came before, itself and others
            changed.dependency =
                random_submission(prng_, next, world_, driver_.now(), told_).dependency;
            if (core().refused_dependency(changed)) changed.dependency = now.dependency;
          }
          // Such a change is refused, which is a matter of other tests.
          std::erase_if(changed.licenses, [&](const auto& asked) {
            return asked.second > licenses_of(world_.configuration.cluster.licenses, asked.first);
          });
          tell(Update{changed, watch_.known_of(changed), random_terms(*one)});
        }
        break;
      case 3:
        // Kubelets refuse the pods of a job that is not ready. Sometimes one node is to blame,
        // sometimes none, and sometimes the job is held for it.
        if (const auto id = any(); id && allocated(*id) && !driver_.view(*id).ready) {
          StartRefused refused{*id, {}, seconds(20), pick(4) == 0, "refused"};
          if (pick(2) == 0) refused.avoid_nodes = {world_.nodes[0].name};
          tell(refused);
        }
        break;
      case 4:
        if (const auto id = any(); id && !allocated(*id)) tell(Forget{*id});
        break;
      case 5:
        if (const auto id = any()) {
          const base::Duration before = driver_.view(*id).run_time;
          tell(JobRan{*id, seconds(pick(60))});
          const base::Duration more = driver_.view(*id).run_time - before;
          if (more > base::Duration{0}) ran_[*id] += more;  // what no timetable tells
        }
        break;
      default:
        break;
    }
  }

  // If one does, CompleteWait may keep passes from what has come since.
  bool a_job_completes() {
    const std::vector<JobId> jobs = core().jobs();
    return std::any_of(jobs.begin(), jobs.end(),
                       [&](JobId id) { return driver_.view(id).facts->completing(); });
  }

  bool a_job_completes_by_itself() {
    return std::ranges::any_of(core().jobs(), [&](JobId id) {
      const JobView view = driver_.view(id);
      return view.completing && !view.ending;
    });
  }

  // With own timing everything that is published, or would be restored or played, is checked too.
  // The expensive checks are made only after one event in 4, 8 or 16.
  void check() {
    ASSERT_EQ(core().check_invariants(), "");
    const auto due = core().next_due();
    const bool quiet = !due || *due > driver_.now();
    watch_.check_jobs(driver_.now(), !told_ && quiet && !a_job_completes());
    ASSERT_EQ(watch_.take_findings(), "");
    if (told_) return;
    ASSERT_EQ(stored_.not_told(core(), driver_.now()), "");
    check_published();
    if (pick(4) == 0) check_new_leader();
    if (pick(8) == 0) check_leader_of_a_mixture();
    check_simulated();
    if (pick(16) == 0) check_played();
    if (pick(16) == 0) check_succession();
  }

  // A rewrite that may wait is not out yet: then the plans are those of before.
  bool all_published() const {
    const auto due = core().next_due();
    return !due || *due > driver_.now() + seconds(1000);
  }
  // Turns decide when such a job runs. Any other runs or ends, whatever is published.
  bool is_sliced(const JobView& view) const {
    return view.allocation != nullptr && view.ready && !view.ending && !view.completing;
  }

  // run(t) as published is what the core would do, for every job and for times to come.
  void check_published() {
    const base::Instant now = driver_.now();
    for (const JobId id : core().jobs()) {
      const JobView view = driver_.view(id);
      if (!is_sliced(view)) continue;
      if (view.state == JobState::kRunning) {
        EXPECT_EQ(driver_.published_says(id, now), Driver::Says::kRuns) << "job " << to_string(id);
      }
      if (!all_published()) continue;
      // Over 30 s, which is one slice where slices are longest.
      for (int slot = 1; slot <= 12; ++slot) {
        const base::Instant t = now + seconds(2.5 * slot);
        const bool runs = core().job(id, t)->state == JobState::kRunning;
        EXPECT_EQ(driver_.published_says(id, t) == Driver::Says::kRuns, runs)
            << "job " << to_string(id) << " after " << 2.5 * slot << " s";
        ++looks_.later;
      }
    }
  }

  // Brings a new scheduler to where the core is, by all events of the core.
  void replay(Scheduler& scheduler) const {
    begin(scheduler);
    for (const auto& [now, event] : history_) {
      if (event) {
        scheduler.step(now, *event);
      } else {
        scheduler.take_plans(now);
      }
    }
    scheduler.take_decisions();
  }

  // Played, the core does what it says now that it is going to do, as long as no job's time ends.
  void check_played() {
    Scheduler played{Options{}};
    replay(played);
    base::Instant t = driver_.now();
    // 20 looks over 34 s, a little more than one of the longest slices. Slices of 5, 7 and 30 s are
    // not multiples of the step, so the looks fall into different parts of slots.
    for (int i = 0; i < 20; ++i) {
      t += seconds(1.7);
      while (const auto due = played.next_due()) {
        if (*due > t) break;
        played.step(*due, Wake{});
        for (const Decision& decision : played.take_decisions()) {
          const auto* resume = std::get_if<Resume>(&decision);
          const bool told_more =
              std::holds_alternative<Start>(decision) || std::holds_alternative<End>(decision) ||
              std::holds_alternative<StateChange>(decision) ||
              // A row came free for a job that its user has resumed.
              (resume != nullptr && core().job(resume->job, t)->reason == Reason::kUser);
          if (told_more) return;
        }
        played.take_plans(*due);
      }
      for (const JobId id : core().jobs()) {
        if (!is_sliced(driver_.view(id))) continue;
        EXPECT_EQ(played.job(id, t)->state, core().job(id, t)->state)
            << "job " << to_string(id) << " after " << 1.7 * (i + 1) << " s";
        ++looks_.played;
      }
    }
  }

  // Tells the cluster to a new leader. Returns the jobs as the API server has them; nullopt while
  // jobs are being killed, and lists are in motion.
  std::optional<std::vector<JobFacts>> begin_leader(Scheduler& other) const {
    const base::Instant now = driver_.now();
    other.step(now, Configure{std::make_shared<const Configuration>(world_.configuration)});
    for (const NodeSpec& spec : world_.nodes) other.step(now, NodeUpdate{spec});
    for (const JobId id : core().jobs()) {
      const JobView view = driver_.view(id);
      if (view.ending || view.completing) return std::nullopt;
      // A new leader does not know the tier that a deleted partition had.
      if (view.facts->partition &&
          !other.find_partition(core().partition_name(*view.facts->partition))) {
        return std::nullopt;
      }
    }
    return stored_for(other);
  }

  std::vector<JobFacts> stored_for(Scheduler& other) const {
    return stored_.restored(core(), driver_.now(), [&](PartitionIndex partition) {
      return other.known_partition(core().partition_name(partition));
    });
  }

  // Returns true if all its jobs are on the node now.
  bool is_of_these_jobs(const NodePlan& plan) const {
    return std::ranges::all_of(plan.entries, [&](const NodeTimetableEntry& entry) {
      const auto view = core().job(entry.job, driver_.now());
      return view && is_sliced(*view) &&
             std::ranges::any_of(view->allocation->nodes,
                                 [&](const NodeAllocation& use) { return use.node == plan.node; });
    });
  }

  // A leader that was lost while it wrote left some nodes with the timetable before. Together these
  // may be impossible; the lists of the new leader are sound all the same, now and later.
  void check_leader_of_a_mixture() {
    const base::Instant now = driver_.now();
    Scheduler other{Options{}};
    const auto jobs = begin_leader(other);
    if (!jobs) return;
    std::vector<NodePlan> plans;
    base::Instant settled = now;  // until then what was published stands, and the lists lie ahead
    bool mixed = false;
    for (const auto& [node, plan] : driver_.published()) {
      // A plan of before may name jobs that have left. The new leader restores only jobs that are
      // there, so the older plan is taken only if all its jobs are still on the node.
      const auto older = older_.find(node);
      const bool takes_older =
          older != older_.end() && is_of_these_jobs(older->second) && pick(2) == 0;
      mixed = mixed || takes_older;
      plans.push_back(takes_older ? older->second : plan);
      settled = std::max(settled, plans.back().as_of);
    }
    if (!mixed) return;
    ++looks_.mixtures;
    other.restore_from_published(now, *jobs, plans);
    if (settled == now) {
      ASSERT_EQ(other.check_invariants(), "");
    }
    while (const auto due = other.next_due()) {
      if (*due > now + seconds(100)) break;
      other.step(*due, Wake{});
      other.take_decisions();
      other.take_plans(*due);
      if (*due < settled) continue;
      ASSERT_EQ(other.check_invariants(), "");
    }
  }

  bool runs_since_before(base::Instant at) const {
    return std::ranges::any_of(core().jobs(), [&](JobId id) {
      const std::optional<base::Instant> started = stored_.allocated_at(id);
      return started && *started <= at;
    });
  }

  // A new leader, from what is stored and published, goes on as the old one would.
  void check_succession() {
    const base::Instant now = driver_.now();
    // How a running job shares its nodes is not stored: to a new leader it follows from the
    // partition as it is now.
    if (runs_since_before(configured_at_)) return;
    // Since when a job completes that ended by itself is not stored: to a new leader, since it sees
    // that.
    if (world_.configuration.cluster.queue.complete_wait > base::Duration{0} &&
        a_job_completes_by_itself()) {
      return;
    }
    // Priorities are those of the last end of a period, and a new leader works them out as of now.
    // What accounts had used before that end (R9.14) is not stored: usage is, as of now.
    const PriorityParameters& priority = world_.configuration.cluster.priority;
    if (priority.type == PriorityType::kMultifactor) {
      if (core().usage_as_of() != now) return;
      if (!priority.fair_tree && priority.weight_fair_share > 0) return;
    }
    // The old leader does not count jobs that are impossible; the new one does until it finds out.
    if (stored_.has_impossible()) return;
    Leader old_leader, new_leader;
    replay(old_leader.scheduler);
    if (old_leader.engine.turns_move()) return;
    // The sizes of such jobs count as asked for (R9.3) until they are tested once more.
    if (priority.weight_job_size > 0 && old_leader.engine.has_tested_before_hold()) return;
    // Both get to know from their caller how these have ended. As long as the old one has a record
    // of an array, the tasks of another one that wait in vain for its tasks become jobs one by one.
    for (const auto& [id, state] : watch_.ended()) {
      if (!id.is_task()) old_leader.scheduler.step(now, Forget{id});
    }
    old_leader.scheduler.take_decisions();
    Scheduler& after = new_leader.scheduler;
    const Configure configure{std::make_shared<const Configuration>(world_.configuration)};
    after.step(now, configure);
    for (const NodeSpec& spec : world_.nodes) after.step(now, NodeUpdate{spec});
    const std::vector<JobFacts> jobs = stored_for(after);
    std::vector<NodePlan> plans;
    for (const auto& [node, plan] : driver_.published()) plans.push_back(plan);
    std::vector<KnownJob> known;
    for (const JobFacts& job : jobs)
      std::ranges::copy(watch_.known_of(*job.request), std::back_inserter(known));
    after.restore_from_published(now, jobs, plans, known);
    if (priority.type == PriorityType::kMultifactor) after.restore_usage(core().usage());
    for (const Event& wish : stored_.wishes(jobs)) after.step(now, wish);
    after.take_decisions();
    // When the backfill passed last is not stored. So both make a pass now: the interval of the old
    // one must be over, a job wait, and something have changed, here by the configuration.
    if (world_.configuration.cluster.backfill.interval >= base::Duration{0}) {
      for (Leader* each : {&old_leader, &new_leader}) each->scheduler.step(now, configure);
      if (!old_leader.engine.backfill_is_due(now) || !new_leader.engine.backfill_is_due(now))
        return;
      ++looks_.backfills;
    }
    ++looks_.successions;
    Succession succession{base::Prng{prng_.next()}, world_,        now, JobId{next_id_},
                          driver_.published(),      watch_.ended()};
    EXPECT_EQ(succession.play(old_leader, new_leader, 50), "");
    for (const std::size_t event : succession.drawn()) ++looks_.events[event];
    looks_.turns_apart += succession.turns_differ() ? 1 : 0;
    looks_.nodes_apart += succession.nodes_differ() ? 1 : 0;
    looks_.cores_apart += succession.cores_differ() ? 1 : 0;
    looks_.impossible_apart += succession.impossible_differ() ? 1 : 0;
    looks_.room_apart += succession.room_differs() ? 1 : 0;
  }

  // Restored from published plans + projection = what was published.
  void check_new_leader() {
    const base::Instant now = driver_.now();
    if (!all_published()) return;
    Scheduler other{Options{}};
    const auto stored = begin_leader(other);
    if (!stored) return;
    const std::vector<JobFacts>& jobs = *stored;
    std::vector<NodePlan> plans;
    for (const auto& [node, plan] : driver_.published()) plans.push_back(plan);
    other.restore_from_published(now, jobs, plans);
    // A plan that the new leader would write is a difference: it writes only what does not stand
    // there already.
    for (const NodePlan& plan : other.take_plans(now)) {
      const auto published = driver_.published().find(plan.node);
      ADD_FAILURE() << "differs: " << to_text(plan) << "\npublished: "
                    << (published == driver_.published().end() ? "" : to_text(published->second));
    }
    const auto is_pending = [](const JobFacts& job) { return job.state == JobState::kPending; };
    looks_.leaders += std::all_of(jobs.begin(), jobs.end(), is_pending) ? 0 : 1;
    for (const JobFacts& job : jobs) {
      if (is_pending(job)) continue;
      EXPECT_EQ(other.job(job.id, now)->run_time, job.clock.run) << "job " << to_string(job.id);
      for (int slot = 0; slot <= 8; ++slot) {
        const base::Instant t = now + seconds(3.5 * slot);
        EXPECT_EQ(other.job(job.id, t)->state, core().job(job.id, t)->state)
            << "job " << to_string(job.id) << " after " << 3.5 * slot << " s";
      }
    }
  }

  base::Prng prng_;
  const bool told_;
  Looks& looks_;
  RandomWorld world_;
  const RandomWorld first_world_;  // before any change
  Driver driver_;
  Watch watch_;
  StoredJobs stored_;
  Scheduler twin_;
  // An event of the core since it began; nullopt = its plans were taken.
  struct Told {
    base::Instant at;
    std::optional<Event> event;
  };
  std::vector<Told> history_;
  std::optional<Scheduler> simulated_;
  std::optional<Scheduler> starter_;
  std::map<NodeIndex, NodePlan> older_;  // what nodes had before what is published now
  std::map<JobId, base::Duration> ran_;  // in the present incarnation, as it says
  base::Instant configured_at_ = base::Instant::min();
  std::int64_t next_id_ = 1;
  std::vector<JobId> unready_;
  std::vector<JobId> ending_;
};

template <typename One>
std::size_t event_index() {
  return Event{One{}}.index();
}

std::int64_t from_environment(const char* name, std::int64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::atoll(value);
}

// Runs of 100 events, each from a seed of its own: long enough for a world to fill up and change
// its configuration a few times, short enough for a failure to be read.
void run_many(SelectType select, bool told, std::uint64_t first_seed,
              PriorityType priority = PriorityType::kBasic) {
  constexpr int kSteps = 100;
  const bool longer = std::getenv("KUBEGANG_LONG") != nullptr;
  const std::int64_t events =
      from_environment("KUBEGANG_RANDOM_EVENTS", longer ? 1'000'000 : 30'000);
  const std::int64_t only = from_environment("KUBEGANG_SEED", 0);
  Looks looks;
  for (std::int64_t i = 0; i * kSteps < events; ++i) {
    const auto seed =
        only != 0 ? static_cast<std::uint64_t>(only) : first_seed + static_cast<std::uint64_t>(i);
    SCOPED_TRACE("KUBEGANG_SEED=" + std::to_string(seed));
    if (!RandomRun{seed, select, told, looks, priority}.run(kSteps) || only != 0) return;
  }
  // A random test that never met a case proves nothing about it: these are the least numbers of
  // cases that must have come up.
  if (told || events < 30'000) return;
  if (priority == PriorityType::kBasic) {  // periods of priorities are always due
    EXPECT_GT(looks.later, events);
    EXPECT_GT(looks.leaders, events / 100);
  }
  EXPECT_GT(looks.has_run, events / 10);
  EXPECT_GT(looks.mixtures, events / 1000);
  EXPECT_GT(looks.played, events / 10);
  EXPECT_GT(looks.successions, events / 200);
  EXPECT_GT(looks.backfills, events / 500);
  for (const std::size_t missing : {event_index<Wake>(), event_index<SliceEnd>(),
                                    event_index<Pass>(), event_index<TimeLimitReached>()}) {
    ++looks.events[missing];  // needs a replay
  }
  for (std::size_t i = 0; i < looks.events.size(); ++i) {
    EXPECT_GT(looks.events[i], 0) << "no succession was told event " << i;
  }
  EXPECT_LT(looks.turns_apart, looks.successions / 5);
  EXPECT_LT(looks.cores_apart, looks.successions / 20);
  EXPECT_LT(looks.nodes_apart, looks.successions / 100);
  EXPECT_LT(looks.impossible_apart, looks.successions / 50);
  EXPECT_LT(looks.room_apart, looks.successions / 100);
}

// All fields. One that is new does not compile until it is named here, and then it must be drawn.
auto fields_of(const JobRequest& request) {
  const auto& [id, name, user, account, submit_time, partitions, min_nodes, nodes_given, max_nodes,
               tasks, tasks_per_node, tasks_per_socket, tasks_per_core, cpus_per_task,
               min_cpus_per_node, sockets_per_node, cores_per_socket, threads_per_core, overcommit,
               use_min_nodes, memory, tmp_disk, devices, devices_of_job, devices_per_task,
               devices_per_socket, per_gpu, licenses, sharing, required_nodes, excluded_nodes,
               unusable_nodes, contiguous, constraint, time_limit, time_min, begin_time, deadline,
               dependency, qos, priority, nice, hold, suspend, requeue, array, pod_per_task] =
      request;
  const auto& [gpu_cpus, gpu_tasks, gpu_memory] = per_gpu;
  const auto& [any, kill_invalid, terms] = dependency;
  const auto& [array_tasks, at_once, begun_most] = array.value_or(ArrayRequest{});
  const auto& [kind, job, delay] = terms.empty() ? DependencyTerm{} : terms.back();
  return std::tuple{id,
                    name,
                    user,
                    account,
                    submit_time,
                    partitions,
                    min_nodes,
                    nodes_given,
                    max_nodes,
                    tasks,
                    tasks_per_node,
                    tasks_per_socket,
                    tasks_per_core,
                    cpus_per_task,
                    min_cpus_per_node,
                    sockets_per_node,
                    cores_per_socket,
                    threads_per_core,
                    overcommit,
                    use_min_nodes,
                    memory,
                    tmp_disk,
                    devices,
                    devices_of_job,
                    devices_per_task,
                    devices_per_socket,
                    gpu_cpus,
                    gpu_tasks,
                    gpu_memory,
                    licenses,
                    sharing,
                    required_nodes,
                    excluded_nodes,
                    unusable_nodes,
                    contiguous,
                    constraint,
                    time_limit,
                    time_min,
                    begin_time,
                    deadline,
                    any,
                    kill_invalid,
                    kind,
                    job,
                    delay,
                    qos,
                    priority,
                    nice,
                    hold,
                    suspend,
                    requeue,
                    array_tasks,
                    at_once,
                    begun_most,
                    pod_per_task};
}

// Each has more than one value in a thousand worlds.
TEST(RandomEvents, RequestsDrawEveryField) {
  using Fields = decltype(fields_of(JobRequest{}));
  std::optional<Fields> first;
  std::array<bool, std::tuple_size_v<Fields>> varies{};
  for (std::uint64_t seed = 1; seed <= 1'000; ++seed) {
    base::Prng prng{seed};
    const RandomWorld world = random_world(prng, SelectType::kConsTres);
    for (std::int64_t id = 1; id <= 12; ++id) {
      const Fields fields =
          fields_of(random_submission(prng, JobId{id}, world, at(static_cast<double>(id)), true));
      if (!first) first = fields;
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        ((varies[I] = varies[I] || std::get<I>(fields) != std::get<I>(*first)), ...);
      }
      (std::make_index_sequence<std::tuple_size_v<Fields>>{});
    }
  }
  for (std::size_t i = 0; i < varies.size(); ++i) EXPECT_TRUE(varies[i]) << "field " << i;
}

// Each found something once; changes of random_world make other runs of them.
TEST(RandomEvents, SeedsThatFoundSomething) {
  Looks looks;
  for (const std::uint64_t seed :
       {1'000'164U, 1'000'274U, 1'000'401U, 1'001'102U, 1'001'375U, 1'001'389U, 1'001'407U,
        1'001'600U, 1'002'305U, 1'002'546U, 1'002'565U, 1'003'033U, 1'008'692U}) {
    SCOPED_TRACE("KUBEGANG_SEED=" + std::to_string(seed));
    ASSERT_TRUE((RandomRun{seed, SelectType::kLinear, false, looks}.run(100)));
  }
  for (const std::uint64_t seed :
       {2'000'126U, 2'000'257U, 2'000'343U, 2'000'499U, 2'000'589U, 2'000'609U, 2'001'368U,
        2'001'997U, 2'002'319U, 2'002'353U, 2'002'673U, 2'003'932U}) {
    SCOPED_TRACE("KUBEGANG_SEED=" + std::to_string(seed));
    ASSERT_TRUE((RandomRun{seed, SelectType::kConsTres, false, looks}.run(100)));
  }
  ASSERT_TRUE((RandomRun{3'000'693, SelectType::kLinear, true, looks}.run(100)));
  ASSERT_TRUE((RandomRun{4'001'696, SelectType::kConsTres, true, looks}.run(100)));
}

// First seeds lie a million apart, and a test with KUBEGANG_LONG uses 10,000 seeds: a seed that is
// printed belongs to one of the six tests.
TEST(RandomEvents, Linear) {
  run_many(SelectType::kLinear, false, 1'000'000);
}
TEST(RandomEvents, ConsTres) {
  run_many(SelectType::kConsTres, false, 2'000'000);
}
TEST(RandomEvents, LinearMultifactor) {
  run_many(SelectType::kLinear, false, 5'000'000, PriorityType::kMultifactor);
}
TEST(RandomEvents, ConsTresMultifactor) {
  run_many(SelectType::kConsTres, false, 6'000'000, PriorityType::kMultifactor);
}
TEST(RandomEvents, LinearToldTiming) {
  run_many(SelectType::kLinear, true, 3'000'000);
}
TEST(RandomEvents, ConsTresToldTiming) {
  run_many(SelectType::kConsTres, true, 4'000'000);
}

}  // namespace
}  // namespace sched::testing
