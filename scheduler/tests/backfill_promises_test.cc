// Random queues with the backfill on, where every job runs for its limit or less: the job at the
// head of the queue starts by the first instant that it was promised, whatever starts before it.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/prng.h"
#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {
namespace {

// Far more than five nodes can run at once, so that most of the run is waiting.
constexpr int kJobs = 30;
// A job can start only in a pass, so it may be late by the time between two.
constexpr double kPassSeconds = 10;

// 30 random jobs in two partitions that share two of five nodes. All are submitted at 0, and passes
// are made until all have started.
class Queue {
 public:
  Queue(std::uint64_t seed, SelectType select) : prng_{seed} {
    const auto all = nodes("n", 1, 5);
    Configuration c =
        gang_linear({partition("p", all, OverSubscribe::kNo, 1), partition("q", {all[0], all[1]})});
    c.partitions[1].over_subscribe = OverSubscribe::kNo;
    c.cluster.gang = false;
    c.cluster.select = select;
    c.cluster.backfill.resolution = seconds(1);
    driver_.emplace(c, all, make_replay());
  }

  void run() {
    for (std::int64_t id = 1; id <= kJobs; ++id) submit(id);
    for (double now = 1; started_ < kJobs && now < 100'000; now += kPassSeconds) {
      for (const auto& [id, end] : ends_) {
        if (end > now || driver_->view(id).state != JobState::kRunning) continue;
        driver_->step(at(now), JobGone{JobId{id}});
      }
      driver_->step(at(now), Pass{.main = true, .backfill = true});
      look(now);
      ASSERT_EQ(driver_->scheduler().check_invariants(), "");
    }
    EXPECT_EQ(started_, kJobs);
    // Without any job that overtook, nothing would have been tested.
    EXPECT_GT(overtook_, 0);
  }

 private:
  int below(int bound) { return static_cast<int>(prng_.below(static_cast<std::uint64_t>(bound))); }

  void submit(std::int64_t id) {
    JobRequest request = below(2) == 0 ? job(id, 1 + below(4), "p") : job(id, 1, "q");
    if (below(2) == 0) request.tasks = request.min_nodes * (1 + below(4));
    request.time_limit = std::chrono::minutes{1 + below(6)};
    limits_[id] = 60.0 * static_cast<double>(request.time_limit->count()) / 60e6;
    driver_->step(at(0), Submit{request});
  }

  // Notes which jobs started, and what the first of those that wait was promised.
  void look(double now) {
    std::optional<std::int64_t> head;
    for (std::int64_t id = 1; id <= kJobs; ++id) {
      const JobView view = driver_->view(id);
      if (view.state == JobState::kPending) {
        if (!head) {
          head = id;
          ASSERT_TRUE(view.expected_start) << "job " << id << " at " << now;
          ASSERT_FALSE(view.planned_nodes.empty());
          const auto promised = promised_.emplace(id, *view.expected_start).first;
          // The earliest promise counts: later ones may be better, never worse.
          promised->second = std::min(promised->second, *view.expected_start);
          EXPECT_GE(promised->second + seconds(kPassSeconds), at(now)) << "job " << id;
        }
      } else if (!ends_.contains(id)) {
        ++started_;
        if (head) ++overtook_;
        // A third of the jobs end early, the others with their limit. None runs longer: then no
        // promise could be kept.
        const double work = below(3) == 0 ? limits_[id] * below(100) / 100 : limits_[id];
        ends_[id] = now + work;
        if (const auto promised = promised_.find(id); promised != promised_.end()) {
          EXPECT_LE(at(now), promised->second + seconds(kPassSeconds)) << "job " << id;
        }
      }
    }
  }

  base::Prng prng_;
  std::optional<Driver> driver_;
  std::map<std::int64_t, double> limits_, ends_;
  std::map<std::int64_t, base::Instant> promised_;
  int started_ = 0;
  int overtook_ = 0;  // jobs that started while one before them waited
};

// Goal: a job that starts before others delays none of them (R8.2). Method: 40 queues for each
// selector; the job at the head must start by its first promise.
TEST(BackfillPromises, TheHeadOfTheQueueIsNotDelayedLinear) {
  for (std::uint64_t seed = 1; seed <= 40 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Queue{seed, SelectType::kLinear}.run();
  }
}

TEST(BackfillPromises, TheHeadOfTheQueueIsNotDelayedConsTres) {
  for (std::uint64_t seed = 1; seed <= 40 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Queue{seed, SelectType::kConsTres}.run();
  }
}

}  // namespace
}  // namespace sched::testing
