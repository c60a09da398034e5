// Mates against a walk over all jobs.
#include "scheduler/select/linear/mates.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <vector>

#include "base/prng.h"
#include "scheduler/testing/cluster_driver.h"

namespace sched::linear {
namespace {

class MatesTest : public ::testing::Test {
 protected:
  static constexpr int kNodes = 5;

  MatesTest() {
    for (const NodeSpec& node : testing::nodes("n", 1, kNodes)) {
      EXPECT_TRUE(cluster_.upsert_node(node).ok());
    }
    cluster_.settle();
    books_.emplace(cluster_);
    mates_.emplace(cluster_);
  }

  // On nodes by rank.
  SelectJob& add(const std::vector<int>& ranks, bool may_stack) {
    Held& held = held_.emplace_back();
    for (const int rank : ranks) held.allocation.nodes.push_back({.node = cluster_.node_at(rank)});
    held.job = {.table_order = static_cast<std::int64_t>(held_.size()),
                .request = &held.request,
                .allocation = &held.allocation,
                .may_stack = may_stack};
    books_->add(held.job);
    mates_->add(held.job, *books_);
    running_.emplace(held.job.table_order, &held.job);
    return held.job;
  }
  void remove(const SelectJob& job) {
    books_->remove(job);
    mates_->remove(job, *books_);
    running_.erase(job.table_order);
  }
  void suspend(SelectJob& job) {
    books_->stop(job);
    mates_->remove(job, *books_);
    job.user_suspended = true;
    running_.erase(job.table_order);
    suspended_.push_back(&job);
  }
  void resume() {
    SelectJob& job = *suspended_.back();
    suspended_.pop_back();
    books_->go_on(job);
    job.user_suspended = false;
    mates_->add(job, *books_);
    running_.emplace(job.table_order, &job);
  }

  using Orders = std::vector<std::int64_t>;
  Orders found(int nodes, int most) const {
    Orders orders;
    mates_->find(nodes, false, most, [&](const SelectJob& job) {
      orders.push_back(job.table_order);
      return false;
    });
    return orders;
  }
  Orders expected(int nodes, int most) const {
    Orders orders;
    for (const auto& [order, job] : running_) {
      if (!job->may_stack || static_cast<int>(job->allocation->nodes.size()) != nodes) continue;
      bool few = true;
      for (const NodeAllocation& use : job->allocation->nodes) {
        few = few && books_->running(cluster_.rank(use.node)) <= most;
      }
      if (few) orders.push_back(order);
    }
    return orders;
  }
  void expect_same() const {
    for (int nodes = 1; nodes <= 3; ++nodes) {
      for (int most = 0; most <= 6; ++most) {
        ASSERT_EQ(found(nodes, most), expected(nodes, most)) << nodes << " nodes, " << most;
      }
    }
    for (int most = 0; most <= 6; ++most) {
      int count = 0;
      for (int rank = 0; rank < kNodes; ++rank) {
        const bool admits = books_->admits(rank, most, 1000);
        ASSERT_EQ(books_->with_running(most).test(rank), admits) << rank << ", " << most;
        count += admits ? 1 : 0;
      }
      ASSERT_EQ(books_->count_with_running(most), count) << most;
    }
  }

  struct Held {
    JobRequest request;
    Allocation allocation;
    SelectJob job;
  };
  Cluster cluster_;
  std::optional<NodeBooks> books_;
  std::optional<Mates> mates_;
  std::deque<Held> held_;
  std::map<std::int64_t, SelectJob*> running_;
  std::vector<SelectJob*> suspended_;
};

TEST_F(MatesTest, AreFoundByTheirSizeAndTheirFullestNode) {
  add({0, 1}, true);
  const SelectJob& on_one = add({1}, true);
  add({2, 3}, true);
  EXPECT_EQ(found(2, 1), (Orders{3}));
  EXPECT_EQ(found(2, 2), (Orders{1, 3}));
  EXPECT_EQ(found(1, 1), Orders{});
  remove(on_one);
  EXPECT_EQ(found(2, 1), (Orders{1, 3}));
}

// Goal: whatever comes and goes, mates and the sets of nodes are those of a walk.
TEST_F(MatesTest, AreThoseOfAWalkOverAllJobs) {
  constexpr std::uint64_t kSeed = 20261128;
  base::Prng prng{kSeed};
  for (int event = 0; event < 3'000; ++event) {
    SCOPED_TRACE(event);
    const auto kind = prng.below(10);
    if (kind < 5 || running_.empty()) {
      std::vector<int> ranks;
      const int size = 1 + static_cast<int>(prng.below(3));
      for (int rank = 0; rank < kNodes && static_cast<int>(ranks.size()) < size; ++rank) {
        if (prng.below(2) == 0) ranks.push_back(rank);
      }
      if (!ranks.empty()) add(ranks, prng.below(4) != 0);
    } else {
      auto at = running_.begin();
      std::advance(at, prng.below(running_.size()));
      if (kind < 9) {
        remove(*at->second);
      } else if (suspended_.size() < 3) {
        suspend(*at->second);
      } else {
        resume();
      }
    }
    expect_same();
  }
}

}  // namespace
}  // namespace sched::linear
