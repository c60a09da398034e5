#include "e2e/kubernetes/bench/work_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <list>
#include <optional>
#include <thread>
#include <vector>

#include "base/prng.h"

namespace kubernetes_bench {
namespace {

// The queue's own invariants are checked at the end of each test, whatever it did.
class WorkQueueTest : public testing::Test {
 protected:
  ~WorkQueueTest() override { queue_.check_invariants(); }

  WorkQueue<int> queue_;
};

// The second addition of 2 changes nothing: 2 keeps its place in front. Else a key that changes
// often would be put off forever.
TEST_F(WorkQueueTest, GivesEachKeyOnceInTheOrderOfAddition) {
  queue_.add(2);
  queue_.add(1);
  queue_.add(2);
  EXPECT_EQ(queue_.size(), 2U);
  EXPECT_EQ(queue_.try_get(), 2);
  EXPECT_EQ(queue_.try_get(), 1);
  EXPECT_EQ(queue_.try_get(), std::nullopt);
}

// A key is never handed out twice at a time. Additions while it is processed are one more run after
// done(), because the run under way may have read the state before them. Two additions are one run:
// a key stands for "look at its state", and a look sees all changes before it.
TEST_F(WorkQueueTest, AddDuringProcessingRunsKeyOnceMore) {
  queue_.add(1);
  EXPECT_EQ(queue_.try_get(), 1);
  queue_.add(1);
  queue_.add(1);
  EXPECT_EQ(queue_.try_get(), std::nullopt);
  queue_.done(1);
  EXPECT_EQ(queue_.try_get(), 1);
  queue_.done(1);
  EXPECT_EQ(queue_.try_get(), std::nullopt);
}

// 7 is never done, so the second get() has nothing to return until the stop.
TEST_F(WorkQueueTest, WaitingGetEndsAtAnAdditionAndAtStop) {
  std::stop_source stop;
  std::optional<int> first;
  std::optional<int> second = 0;
  std::thread worker{[&] {
    first = queue_.get(stop.get_token());
    second = queue_.get(stop.get_token());
  }};
  queue_.add(7);
  while (queue_.size() > 0) std::this_thread::yield();
  stop.request_stop();
  worker.join();
  EXPECT_EQ(first, 7);
  EXPECT_EQ(second, std::nullopt);
}

// The same contract, written down as plainly as possible. A key is in at most one of waiting_ and
// held_, and in again_ only while it is held. Linear searches are good enough for five keys.
class ModelQueue {
 public:
  void add(int key) {
    if (contains(waiting_, key)) return;
    if (contains(held_, key)) {
      if (!contains(again_, key)) again_.push_back(key);
      return;
    }
    waiting_.push_back(key);
  }
  std::optional<int> get() {
    if (waiting_.empty()) return std::nullopt;
    const int key = waiting_.front();
    waiting_.pop_front();
    held_.push_back(key);
    return key;
  }
  void done(int key) {
    held_.remove(key);
    if (!contains(again_, key)) return;
    again_.remove(key);
    waiting_.push_back(key);
  }

 private:
  static bool contains(const std::list<int>& keys, int key) {
    return std::ranges::find(keys, key) != keys.end();
  }
  std::list<int> waiting_, held_, again_;
};

// Goal: the queue is the model, whatever is done to it. Method: 200 seeds of 500 random operations
// on five keys; invariants after each.
TEST(WorkQueue, BehavesAsTheModel) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    base::Prng prng{seed};
    WorkQueue<int> queue;
    ModelQueue model;
    std::vector<int> held;
    for (int step = 0; step < 500; ++step) {
      const int key = static_cast<int>(prng.below(5));
      switch (prng.below(3)) {
        case 0:
          queue.add(key);
          model.add(key);
          break;
        case 1: {
          const auto got = queue.try_get();
          ASSERT_EQ(got, model.get()) << "seed " << seed << " " << step;
          if (got) held.push_back(*got);
          break;
        }
        default:
          if (held.empty()) break;
          queue.done(held.back());
          model.done(held.back());
          held.pop_back();
      }
      queue.check_invariants();
    }
  }
}

// Goal: no addition is lost between threads. Method: two producers, two workers; a key's last
// processing begins after its last addition.
TEST(WorkQueue, LosesNoAdditionBetweenThreads) {
  constexpr int kKeys = 8;
  constexpr int kAdditions = 2000;
  WorkQueue<int> queue;
  std::array<std::atomic<int>, kKeys> wanted{};
  std::array<std::atomic<int>, kKeys> seen{};
  std::stop_source stop;
  // The value of a key is a count that rises before the key is added. A worker copies the count, as
  // a controller reads the state of an object, so seen == wanted means that no last change was
  // missed.
  const auto produce = [&](int offset) {
    for (int i = 0; i < kAdditions; ++i) {
      const auto key = static_cast<std::size_t>((i + offset) % kKeys);
      ++wanted[key];
      queue.add(static_cast<int>(key));
    }
  };
  const auto work = [&] {
    while (const auto key = queue.get(stop.get_token())) {
      const auto index = static_cast<std::size_t>(*key);
      seen[index] = wanted[index].load();
      queue.done(*key);
    }
  };
  std::vector<std::thread> workers;
  for (int i = 0; i < 2; ++i) workers.emplace_back(work);
  std::vector<std::thread> producers;
  for (int i = 0; i < 2; ++i) producers.emplace_back(produce, i);
  for (auto& thread : producers) thread.join();
  for (std::size_t i = 0; i < kKeys; ++i) {
    // A lost addition would leave the two different forever, and the test would hang.
    while (seen[i] != wanted[i]) std::this_thread::yield();
  }
  stop.request_stop();
  for (auto& thread : workers) thread.join();
  queue.check_invariants();
}

}  // namespace
}  // namespace kubernetes_bench
