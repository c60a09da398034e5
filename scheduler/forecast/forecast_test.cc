// Tests that forecasts come true if nothing else happens.
#include "scheduler/forecast/forecast.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "scheduler/testing/cluster_driver.h"
#include "scheduler/testing/random_world.h"

namespace sched::testing {
namespace {

ForecastQuestion question(const Driver& driver, const Configuration& configuration,
                          JobRequest request) {
  ForecastQuestion question{.state = driver.scheduler().copy(driver.now()),
                            .request = std::move(request)};
  question.state.configuration = std::make_shared<const Configuration>(configuration);
  return question;
}

// A cluster of two nodes with one partition, in which jobs do not share nodes.
class ForecastTest : public ::testing::Test {
 protected:
  JobRequest asked(std::int64_t id, int nodes_count, double limit) const {
    JobRequest request = job(id, nodes_count, "p");
    request.time_limit = seconds(limit);
    return request;
  }
  Forecast ask(const JobRequest& request, const ForecastBounds& bounds = {}) const {
    return forecast(question(driver_, configuration_, request), bounds);
  }

  std::vector<NodeSpec> nodes_ = nodes("n", 1, 2);
  Configuration configuration_ =
      gang_linear({partition("p", nodes_, OverSubscribe::kNo, 1),
                   partition("high", nodes_, OverSubscribe::kNo, 1, 9)});
  Driver driver_{configuration_, nodes_};
};

TEST_F(ForecastTest, OnFreeNodesItStartsNow) {
  driver_.run_until(at(100));
  const Forecast answer = ask(asked(1, 2, 60));
  EXPECT_EQ(answer.outcome, Forecast::Outcome::kStarts);
  EXPECT_EQ(answer.start, at(100));
  EXPECT_EQ(answer.partition, "p");
  EXPECT_EQ(answer.nodes, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_EQ(answer.cpus, 8);
  EXPECT_TRUE(driver_.scheduler().jobs().empty());
}

TEST_F(ForecastTest, ItStartsWhenThoseBeforeItHaveUsedUpTheirLimits) {
  driver_.step(at(0), Submit{asked(1, 2, 300)});
  driver_.run_until(at(10));
  driver_.step(at(10), Submit{asked(2, 1, 60)});
  driver_.run_until(at(20));
  const Forecast answer = ask(asked(3, 2, 60));
  EXPECT_EQ(answer.outcome, Forecast::Outcome::kStarts);
  EXPECT_EQ(answer.start, at(360));
  // The scheduler that was asked knows nothing of it.
  EXPECT_EQ(driver_.scheduler().jobs().size(), 2U);
}

TEST_F(ForecastTest, WhatTakesForEverOrNeverFitsIsSaidToBeSo) {
  JobRequest endless = job(1, 2, "p");
  driver_.step(at(0), Submit{endless});
  driver_.run_until(at(20));
  EXPECT_EQ(ask(asked(2, 1, 60)).outcome, Forecast::Outcome::kNotWithin);
  EXPECT_EQ(ask(asked(2, 1, 60)).reason, Reason::kResources);
  const Forecast impossible = ask(asked(2, 3, 60));
  EXPECT_EQ(impossible.outcome, Forecast::Outcome::kNever);
  const Forecast given_up = ask(asked(2, 1, 60), {.gives_up = [] { return true; }});
  EXPECT_EQ(given_up.outcome, Forecast::Outcome::kGaveUp);
}

TEST_F(ForecastTest, JobsThatItPreemptsAreNamed) {
  configuration_.cluster.preempt_type = PreemptType::kPartitionPriority;
  for (const PreemptMode mode :
       {PreemptMode::kSuspend, PreemptMode::kRequeue, PreemptMode::kCancel}) {
    configuration_.cluster.preempt_mode = mode;
    Driver driver{configuration_, nodes_};
    driver.step(at(0), Submit{asked(1, 1, 300)});
    driver.step(at(0), Submit{asked(2, 1, 300)});
    driver.run_until(at(20));
    JobRequest request = asked(3, 2, 60);
    request.partitions = {"high"};
    const Forecast answer = forecast(question(driver, configuration_, request));
    EXPECT_EQ(answer.start, at(20));
    const Forecast::Stop how = mode == PreemptMode::kSuspend   ? Forecast::Stop::kSuspended
                               : mode == PreemptMode::kRequeue ? Forecast::Stop::kRequeued
                                                               : Forecast::Stop::kCancelled;
    EXPECT_EQ(answer.stopped,
              (std::vector<Forecast::Stopped>{{JobId{1}, how}, {JobId{2}, how}}));
  }
}

// One of two that take turns stands still anyhow when it comes, and its turn no longer comes.
TEST_F(ForecastTest, AJobBetweenTwoOfItsTurnsIsStoppedToo) {
  configuration_.cluster.preempt_type = PreemptType::kPartitionPriority;
  configuration_.cluster.preempt_mode = PreemptMode::kSuspend;
  configuration_.partitions[0].over_subscribe = OverSubscribe::kForce;
  configuration_.partitions[0].max_share = 2;
  Driver driver{configuration_, nodes_};
  driver.step(at(0), Submit{asked(1, 2, 300)});
  driver.step(at(0), Submit{asked(2, 2, 300)});
  driver.run_until(at(20));
  JobRequest request = asked(3, 2, 60);
  request.partitions = {"high"};
  const Forecast answer = forecast(question(driver, configuration_, request));
  EXPECT_EQ(answer.start, at(20));
  EXPECT_EQ(answer.stopped,
            (std::vector<Forecast::Stopped>{{JobId{1}, Forecast::Stop::kSuspended},
                                            {JobId{2}, Forecast::Stop::kSuspended}}));
}

TEST_F(ForecastTest, AJobThatOthersWaitForCompletesAtItsLimit) {
  driver_.step(at(0), Submit{asked(1, 1, 300)});
  driver_.run_until(at(20));
  JobRequest request = asked(2, 1, 60);
  request.dependency.terms = {{.kind = DependencyKind::kAfterOk, .job = JobId{1}}};
  const Forecast answer = ask(request);
  EXPECT_EQ(answer.outcome, Forecast::Outcome::kStarts);
  EXPECT_EQ(answer.start, at(300));
}

// Indexes of nodes and partitions of the copy are those of the scheduler that was copied.
TEST_F(ForecastTest, NodesThatAreGoneLeaveTheirPlaces) {
  const NodeSpec third = node("n0");
  driver_.step(at(0), NodeUpdate{third});
  driver_.step(at(0), NodeRemove{"n1"});
  driver_.step(at(0), Submit{asked(1, 1, 300)});
  driver_.run_until(at(20));
  const Forecast answer = ask(asked(2, 1, 60));
  EXPECT_EQ(answer.start, at(300));
  EXPECT_EQ(answer.nodes, (std::vector<std::string>{"n2"}));
}

// A random cluster in the middle of its work: twelve jobs were submitted, of which some have ended.
class RandomCluster {
 public:
  explicit RandomCluster(std::uint64_t seed)
      : prng_{seed},
        world_{random_world(prng_, seed % 2 == 0 ? SelectType::kLinear : SelectType::kConsTres)} {
    // Jobs end at their limits here.
    world_.configuration.cluster.over_time_limit = base::Duration{0};
    for (PartitionConfig& each : world_.configuration.partitions) each.over_time_limit.reset();
    driver_.emplace(world_.configuration, world_.nodes);
    for (int i = 1; i <= 12; ++i) {
      now_ += seconds(static_cast<double>(prng_.below(40)));
      driver_->run_until(now_);
      JobRequest request = random_request(prng_, JobId{i}, world_, now_);
      if (!request.time_limit) request.time_limit = seconds(60 + 30.0 * i);
      driver_->step(now_, Submit{std::move(request)});
    }
    driver_->run_until(now_);
  }

  JobRequest request() {
    JobRequest request = random_request(prng_, JobId{100}, world_, now_);
    request.hold = request.suspend = false;
    request.submit_time = now_;
    return request;
  }
  // Preemptions may go round and round at one instant.
  Forecast ask(const JobRequest& request) const {
    int steps = 0;
    return forecast(question(*driver_, world_.configuration, request),
                    {.horizon = kHorizon, .gives_up = [&] { return ++steps > 2000; }});
  }
  // Submits it, and returns when it starts.
  std::optional<base::Instant> submit(const JobRequest& request) {
    driver_->take_log();
    driver_->step(now_, Submit{request});
    for (base::Instant t = now_; t <= now_ + kHorizon;) {
      driver_->run_until(t);
      for (const Decision& decision : driver_->take_log()) {
        const auto* const start = std::get_if<Start>(&decision);
        if (start != nullptr && start->job.array() == request.id) return t;
      }
      const auto due = driver_->scheduler().next_due();
      if (!due) break;
      t = std::max(*due, t + base::Duration{1});
    }
    return std::nullopt;
  }

 private:
  static constexpr base::Duration kHorizon = std::chrono::hours{24};

  base::Prng prng_;
  RandomWorld world_;
  std::optional<Driver> driver_;
  base::Instant now_ = at(100);
};

// The copy makes its next passes at once, and the scheduler that was copied when they are due: a
// few jobs start in another one.
TEST(ForecastOfRandomClusters, IsMostlyWhatHappens) {
  int asked = 0;
  int equal = 0;
  int waited = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    RandomCluster cluster{seed};
    const JobRequest request = cluster.request();
    const Forecast answer = cluster.ask(request);
    if (answer.outcome == Forecast::Outcome::kGaveUp) continue;
    const std::optional<base::Instant> start = cluster.submit(request);
    const bool starts = answer.outcome == Forecast::Outcome::kStarts;
    ++asked;
    if (starts != start.has_value() || (starts && answer.start != *start)) continue;
    ++equal;
    if (starts && answer.start > request.submit_time) ++waited;
  }
  // 379 of 400, of which 172 waited.
  EXPECT_GE(asked, 399);
  EXPECT_GE(equal, asked * 9 / 10);
  EXPECT_GE(waited, asked / 4);
}

// A hundred jobs wait for eight nodes, on which two take turns or each has its own. What is days
// away is foretold a little late.
TEST(ForecastOfALongQueue, IsATwentiethLateAtMost) {
  for (const OverSubscribe over : {OverSubscribe::kNo, OverSubscribe::kForce}) {
    const std::vector<NodeSpec> eight = nodes("n", 1, 8);
    Configuration configuration = gang_linear({partition("p", eight, over, 2)});
    Driver driver{configuration, eight};
    const auto asked = [](int id) {
      JobRequest request = job(id, 1 + id % 3, "p");
      request.time_limit = std::chrono::minutes{10 + id * 37 % 400};
      return request;
    };
    for (int id = 1; id <= 100; ++id) driver.step(at(0), Submit{asked(id)});
    driver.run_until(at(10));
    const Forecast answer = forecast(question(driver, configuration, asked(101)));
    ASSERT_EQ(answer.outcome, Forecast::Outcome::kStarts);
    driver.step(at(10), Submit{asked(101)});
    std::optional<base::Instant> start;
    while (!start) {
      driver.run_until(*driver.scheduler().next_due());
      const auto view = driver.scheduler().job(JobId{101}, driver.now());
      if (view && view->allocation != nullptr) start = driver.now();
    }
    const base::Duration away = *start - at(10);
    EXPECT_GT(away, std::chrono::hours{24});
    EXPECT_LE(std::chrono::abs(answer.start - *start), away / 20) << answer.start - *start;
  }
}

}  // namespace
}  // namespace sched::testing
