// New priorities of all waiting jobs in steps, and events between two of them.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {
namespace {

constexpr std::size_t kAll = 1'000'000'000;

// Three nodes for one job each; partitions p and q of one tier, r of a higher one; ada and bob have
// an account each.
Configuration configuration() {
  const std::vector<NodeSpec> all = nodes("n", 1, 3);
  Configuration c = gang_linear({partition("p", all, OverSubscribe::kNo, 1, 1),
                                 partition("q", all, OverSubscribe::kNo, 1, 1),
                                 partition("r", all, OverSubscribe::kNo, 1, 2)});
  c.partitions[1].priority_job_factor = 7;
  c.cluster.gang = false;
  PriorityParameters& priority = c.cluster.priority;
  priority.type = PriorityType::kMultifactor;
  priority.calc_period = seconds(60);
  priority.max_age = seconds(200);
  priority.weight_age = priority.weight_fair_share = priority.weight_job_size = 1000;
  priority.weight_partition = 500;
  c.accounts = {{.name = "a"}, {.name = "b"}};
  c.users = {{.name = "ada", .account = "a"}, {.name = "bob", .account = "b"}};
  return c;
}

class StepsTest : public ::testing::Test {
 protected:
  Driver& begin(std::size_t per_step) {
    driver_.emplace(c_, nodes("n", 1, 3), Options{.priorities_per_step = per_step});
    return *driver_;
  }
  static JobRequest of(const std::string& user, std::int64_t id) {
    JobRequest request = job(id, 3, "p");
    request.user = user;
    return request;
  }

  Configuration c_ = configuration();
  std::optional<Driver> driver_;
};

// ada has used the nodes until 60, so bob's jobs go first from then on. In between a job of bob's
// leaves, and the nodes come free.
TEST_F(StepsTest, PassesWaitForTheLastOne) {
  begin(2).step(at(0), Submit{of("ada", 1)});
  for (std::int64_t id = 2; id <= 7; ++id) {
    driver_->step(at(1), Submit{of(id % 2 == 0 ? "ada" : "bob", id)});
  }
  driver_->run_until(at(59));
  Scheduler& scheduler = driver_->scheduler();
  EXPECT_EQ(scheduler.head_of_queue(2), (std::vector<JobId>{JobId{2}, JobId{3}}));
  EXPECT_EQ(scheduler.next_due(), at(60));
  scheduler.step(at(60), Wake{});
  EXPECT_TRUE(scheduler.works_priorities_out());
  EXPECT_EQ(scheduler.next_due(), at(60)) << "the next step";
  EXPECT_EQ(scheduler.head_of_queue(2), std::vector<JobId>{}) << "no order";
  scheduler.step(at(60), Cancel{JobId{3}});
  scheduler.step(at(60), JobGone{JobId{1}});
  int steps = 1;
  for (; scheduler.works_priorities_out(); ++steps) {
    for (const Decision& decision : scheduler.take_decisions()) {
      EXPECT_FALSE(std::holds_alternative<Start>(decision));
    }
    scheduler.step(at(61), Wake{});
  }
  // Three for five jobs, two at a time; the last merges four records, and one is left.
  EXPECT_EQ(steps, 4);
  EXPECT_EQ(driver_->view(5).state, JobState::kRunning) << "the first of bob's that is left";
  EXPECT_EQ(scheduler.head_of_queue(5),
            (std::vector<JobId>{JobId{7}, JobId{2}, JobId{4}, JobId{6}}));
}

// The classic rule looks at a user's usage when it is first asked for in a period (R9.14), so it
// must not depend on the number of steps: no event comes in between.
TEST_F(StepsTest, AreOneUnderTheClassicRule) {
  c_.cluster.priority.fair_tree = false;
  begin(2);
  for (std::int64_t id = 1; id <= 7; ++id) driver_->step(at(1), Submit{of("ada", id)});
  driver_->run_until(at(59));
  driver_->scheduler().step(at(60), Wake{});
  EXPECT_FALSE(driver_->scheduler().works_priorities_out());
}

// One step would have come to the first two jobs alone: job 3 was held when the period ended. Its
// release in between does not change its priority.
TEST_F(StepsTest, AJobThatWasHeldIsNotWorkedOutWhenItIsReleased) {
  c_.cluster.priority.weight_fair_share = 0;
  begin(1).step(at(0), Submit{of("ada", 1)});
  driver_->run_until(at(0));
  JobRequest later = of("ada", 2);
  later.begin_time = at(500);
  driver_->step(at(1), Submit{later});
  JobRequest large = of("ada", 3);
  large.constraint = "large";
  driver_->step(at(1), Submit{large});
  const Priority before = driver_->view(3).priority;
  driver_->run_until(at(59));
  ASSERT_EQ(driver_->view(3).reason, Reason::kBadConstraints);
  Scheduler& scheduler = driver_->scheduler();
  scheduler.step(at(60), Wake{});
  for (NodeSpec node : nodes("n", 1, 3)) {
    node.features = {"large"};
    scheduler.step(at(60), NodeUpdate{node});
  }
  scheduler.step(at(60), Wake{});
  ASSERT_NE(driver_->view(3).reason, Reason::kBadConstraints) << "it waits for job 1 now";
  driver_->run_until(at(61));
  EXPECT_EQ(driver_->view(3).priority, before);
  driver_->run_until(at(120));
  EXPECT_GT(driver_->view(3).priority, before);
}

// A node that was removed is gone with its last job.
TEST_F(StepsTest, AreMadeAtOnceBeforeTheNodesChange) {
  begin(1).step(at(0), Submit{of("ada", 1)});
  driver_->run_until(at(0));
  for (std::int64_t id = 2; id <= 9; ++id) driver_->step(at(1), Submit{job(id, 1, "p")});
  driver_->step(at(2), NodeRemove{"n3"});
  driver_->run_until(at(59));
  driver_->scheduler().step(at(60), Wake{});
  EXPECT_TRUE(driver_->scheduler().works_priorities_out());
  driver_->step(at(60), JobGone{JobId{1}});
  EXPECT_FALSE(driver_->scheduler().works_priorities_out());
  driver_->run_until(at(61));
  EXPECT_EQ(driver_->scheduler().check_invariants(), "");
}

// Goal: whatever happens between two steps, all is in the end as if all steps had been made at once
// when the period ended. Method: two schedulers get the same events; one of them makes all steps at
// once. All nodes are taken when a period ends, and nothing is woken between the steps but them, so
// no pass makes a difference.
class Pair {
 public:
  explicit Pair(std::uint64_t seed) : prng_{seed}, now_{at(1)} {
    PriorityParameters& priority = c_.cluster.priority;
    priority.increase_only = one_in(3);
    priority.calculate_running = one_in(3);
    priority.accrue_always = one_in(3);
    priority.fair_tree = !one_in(6);
    if (one_in(3)) {  // lanes, in one of which priority goes before tiers; and no victims
      c_.cluster.preempt_type = PreemptType::kQos;
      c_.cluster.preempt_mode = PreemptMode::kCancel;
      c_.cluster.preempt_exempt_time = seconds(1e9);
      c_.qos = {{.name = "within", .preempt = {"plain"}, .preempt_within = true},
                {.name = "plain"}};
    }
    const std::size_t per_step[] = {1, 3, 10, 40};
    stepping_.emplace(Options{.publishes = false, .priorities_per_step = per_step[pick(4)]});
    for (Scheduler* each : both()) {
      each->step({}, Configure{std::make_shared<const Configuration>(c_)});
      for (const NodeSpec& spec : nodes_) each->step({}, NodeUpdate{spec});
    }
  }

  // Several periods, with events before and between the steps. Returns how many steps were made.
  int run() {
    int steps = 0;
    for (; period_ <= 4; ++period_) {
      for (int i = 0; i < 40; ++i) event();
      while (waiting() < 30) submit();
      std::vector<JobId> started;
      for (Scheduler* each : both()) settle(*each, started);
      now_ = std::max(now_, at(60 * period_));
      steps += end_period();
    }
    return steps;
  }

 private:
  std::vector<Scheduler*> both() { return {&*stepping_, &at_once_}; }
  int pick(int bound) { return static_cast<int>(prng_.below(static_cast<std::uint64_t>(bound))); }
  bool one_in(int times) { return pick(times) == 0; }

  void tell(const Event& event) {
    for (Scheduler* each : both()) each->step(now_, event);
    EXPECT_EQ(take(*stepping_), take(at_once_)) << "event " << event.index();
  }
  // Returns the decisions without reasons, which depend on the passes that were made before.
  static std::vector<Decision> take(Scheduler& scheduler) {
    std::vector<Decision> decisions = scheduler.take_decisions();
    std::erase_if(decisions,
                  [](const Decision& each) { return std::holds_alternative<Waits>(each); });
    return decisions;
  }
  // Jobs that start are ready at once.
  void wake(Scheduler& scheduler, std::vector<JobId>& started) {
    scheduler.step(now_, Wake{});
    for (const Decision& decision : take(scheduler)) {
      const auto* start = std::get_if<Start>(&decision);
      if (start == nullptr) continue;
      started.push_back(start->job);
      scheduler.step(now_, JobReady{start->job});
    }
  }
  // All that is due.
  void settle(Scheduler& scheduler, std::vector<JobId>& started) {
    for (auto due = scheduler.next_due(); due && *due <= now_; due = scheduler.next_due()) {
      wake(scheduler, started);
    }
  }
  // A period ends. Returns how many steps one of them has made.
  int end_period() {
    std::vector<JobId> started, by_now, at_once;
    for (Scheduler* each : both()) wake(*each, by_now);
    EXPECT_EQ(by_now, std::vector<JobId>{}) << "all nodes are taken";
    EXPECT_FALSE(at_once_.works_priorities_out());
    int steps = 1;
    for (; stepping_->works_priorities_out(); ++steps) {
      if (one_in(3)) now_ += base::Duration{static_cast<std::int64_t>(prng_.below(500'000))};
      for (int i = pick(3); i > 0; --i) event();
      if (stepping_->works_priorities_out()) wake(*stepping_, started);
    }
    settle(*stepping_, started);
    settle(at_once_, at_once);
    EXPECT_EQ(started, at_once);
    compare();
    return steps;
  }
  static std::string order_of(const Scheduler& scheduler) {
    std::string order;
    for (const JobId id : scheduler.head_of_queue(kAll)) order += " " + to_string(id);
    return order;
  }
  void compare() {
    EXPECT_EQ(order_of(*stepping_), order_of(at_once_));
    EXPECT_EQ(stepping_->usage(), at_once_.usage());
    ASSERT_EQ(stepping_->jobs(), at_once_.jobs());
    for (const JobId id : at_once_.jobs()) {
      const JobView one = *stepping_->job(id, now_);
      const JobView other = *at_once_.job(id, now_);
      EXPECT_EQ(one.priority, other.priority) << "job " << to_string(id);
      EXPECT_EQ(one.state, other.state) << "job " << to_string(id);
    }
    EXPECT_EQ(stepping_->check_invariants(), "");
  }

  int waiting() const {
    int count = 0;
    for (const JobRequest& request : requests_) {
      const auto view = at_once_.job(request.id, now_);
      if (!view || view->state != JobState::kPending) continue;
      if (view->reason != Reason::kJobHeldUser) ++count;
    }
    return count;
  }
  JobRequest random_request() {
    JobRequest request = job(static_cast<std::int64_t>(requests_.size()) + 1, 1);
    const std::vector<std::string> wishes[] = {{"p"}, {"q"}, {"r"}, {"q", "p"}, {"p", "r"}};
    request.partitions = wishes[pick(5)];
    request.user = one_in(2) ? "ada" : "bob";
    request.tasks = 1 + pick(4);
    if (!c_.qos.empty()) request.qos = c_.qos[static_cast<std::size_t>(pick(2))].name;
    if (one_in(8)) request.priority = Priority{static_cast<std::uint32_t>(1 + pick(2500))};
    // Many of them between the steps of a period that is still to end.
    if (one_in(4)) {
      const int minute = 60 * (period_ + pick(2));
      request.begin_time = at(minute + 0.1 * pick(40));
    }
    request.hold = one_in(12);
    return request;
  }
  void submit() {
    JobRequest request = random_request();
    request.submit_time = now_;
    requests_.push_back(request);
    tell(Submit{request});
  }
  // Another request for the same job.
  void update(JobRequest& request) {
    JobRequest changed = one_in(2) ? request : random_request();
    changed.id = request.id;
    changed.submit_time = request.submit_time;
    changed.nice = pick(400) - 200;
    request = changed;
    tell(Update{request});
  }
  void event() {
    if (requests_.empty() || one_in(4)) return submit();
    // Mostly a job that came lately; many of those before have ended.
    const std::size_t back = std::min<std::size_t>(requests_.size(), one_in(3) ? 1000 : 40);
    JobRequest& request = requests_[requests_.size() - 1 - prng_.below(back)];
    switch (pick(16)) {
      case 0:
      case 1:
      case 2:
        return tell(Hold{request.id});
      case 3:
      case 4:
        return tell(Release{request.id});
      case 5:
      case 6:
      case 7:
        return update(request);
      case 8:
        return tell(Cancel{request.id});
      case 9:
        return tell(UserSuspend{request.id});
      case 10:
        return tell(UserResume{request.id});
      case 11:
        return tell(Requeue{running()});
      case 12:
      case 13:
        return tell(JobGone{running()});
      default:
        return change_cluster();
    }
  }
  JobId running() {
    for (const JobId id : at_once_.jobs()) {
      if (at_once_.job(id, now_)->allocation != nullptr && one_in(2)) return id;
    }
    return JobId{1};
  }
  // Seldom, since much of it makes all steps that are left.
  void change_cluster() {
    if (!one_in(4)) return;
    NodeSpec& node = nodes_[2];
    switch (pick(5)) {
      case 0: {  // its jobs leave the queue, or come back
        PartitionConfig& q = c_.partitions[1];
        q.state = q.state == PartitionState::kUp ? PartitionState::kDown : PartitionState::kUp;
        return tell(Configure{std::make_shared<const Configuration>(c_)});
      }
      case 1:
        c_.cluster.priority.weight_job_size = static_cast<std::uint32_t>(500 + pick(1000));
        c_.users.resize(2);
        if (one_in(2)) c_.users.push_back({.name = "eve", .account = "b"});
        return tell(Configure{std::make_shared<const Configuration>(c_)});
      case 2:
        node.memory = MemoryMiB{1 + pick(100)};
        return tell(NodeUpdate{node});
      case 3:
        node.cores_per_socket = node.cpus = node.cpus == 4 ? 6 : 4;
        return tell(NodeUpdate{node});
      default:
        return tell(NodeRemove{node.name});  // case 2 or 3 brings it back
    }
  }

  base::Prng prng_;
  base::Instant now_;
  int period_ = 1;
  Configuration c_ = configuration();
  std::vector<NodeSpec> nodes_ = nodes("n", 1, 3);
  std::vector<JobRequest> requests_;  // by number
  std::optional<Scheduler> stepping_;
  Scheduler at_once_{Options{.publishes = false, .priorities_per_step = kAll}};
};

TEST(PrioritySteps, AreInTheEndAsOneStep) {
  int steps = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    steps += Pair{seed}.run();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(steps, 10'000);
}

}  // namespace
}  // namespace sched::testing
