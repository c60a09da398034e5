// New places for records, a part of them at a time, against a set, while records come and go.
#include "scheduler/queue/reordering.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "scheduler/jobs/job_table.h"

namespace sched {
namespace {

class Queue {
 public:
  Queue(std::uint64_t seed, std::int64_t jobs) : prng_{seed}, jobs_{jobs} {
    for (std::int64_t job = 1; job <= jobs; ++job) old_.insert(records_[job] = record_of(job));
  }

  // Gives one in `every` jobs another priority, `count` at a time; after each of these steps
  // `between` jobs come or go. Then it is merged, `count` at a time. Returns Reordering::moved().
  bool change(std::uint64_t every, std::size_t count, int between) {
    const std::vector<std::int64_t> before = order_of(old_);
    Reordering reordering;
    while (!old_.empty()) {
      SortedRecords some = old_.take_first(count);
      const bool moved = some.change_all([&](QueueRecord& record) {
        if (prng_.below(every) == 0) {
          record.priority = Priority{static_cast<std::uint32_t>(prng_.below(50))};
        }
        records_.at(record.job.number()) = record;
      });
      reordering.add(std::move(some), moved);
      come_and_go(reordering, between);
    }
    const bool moved = reordering.moved();
    std::size_t steps = 0;
    for (; !reordering.merge(count); ++steps) come_and_go(reordering, between);
    old_ = std::move(reordering).take();
    EXPECT_EQ(order_of(old_), expected());
    if (between == 0) {
      EXPECT_EQ(moved, before != expected());
      EXPECT_LE(steps, records_.size() / count);
    }
    return moved;
  }

 private:
  // A job that is there goes, wherever it stands; one that is not comes.
  void come_and_go(Reordering& reordering, int times) {
    for (int i = 0; i < times; ++i) {
      const auto job =
          static_cast<std::int64_t>(1 + prng_.below(static_cast<std::uint64_t>(jobs_)));
      const auto there = records_.find(job);
      if (there == records_.end()) {
        const QueueRecord record = records_.emplace(job, record_of(job)).first->second;
        EXPECT_TRUE(reordering.insert(record));
        EXPECT_FALSE(reordering.insert(record)) << "it is there";
      } else {
        EXPECT_NE(old_.erase(there->second), reordering.erase(there->second));
        EXPECT_FALSE(reordering.erase(there->second)) << "it is there no longer";
        records_.erase(there);
      }
    }
  }
  static std::vector<std::int64_t> order_of(const SortedRecords& records) {
    std::vector<std::int64_t> jobs;
    for (SortedRecords::Position at; !records.is_end(at); at = records.next(at)) {
      jobs.push_back(records[at].job.number());
    }
    return jobs;
  }
  std::vector<std::int64_t> expected() const {
    std::set<QueueRecord> sorted;
    for (const auto& [job, record] : records_) sorted.insert(record);
    std::vector<std::int64_t> jobs;
    for (const QueueRecord& record : sorted) jobs.push_back(record.job.number());
    return jobs;
  }
  // Two tiers; many equal priorities, among which the number of the job decides.
  QueueRecord record_of(std::int64_t job) {
    return {.tier = static_cast<int>(job % 2),
            .priority = Priority{static_cast<std::uint32_t>(prng_.below(20))},
            .job = JobId{job},
            .record = &job_};
  }

  base::Prng prng_;
  const std::int64_t jobs_;
  Job job_;
  std::map<std::int64_t, QueueRecord> records_;  // of the jobs that are there
  SortedRecords old_;
};

TEST(Reordering, PutsAllRecordsInOrderWhateverComesAndGoesMeanwhile) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    for (const std::int64_t jobs : {3, 600, 3000}) {
      Queue queue{seed, jobs};
      // All, some and few priorities change.
      for (const std::uint64_t every : {1U, 5U, 100U}) {
        for (const std::size_t count : {7U, 200U, 1'000'000U}) {
          for (const int between : {0, 1, 20}) queue.change(every, count, between);
        }
      }
      EXPECT_FALSE(queue.change(1'000'000'000, 50, 0)) << "nothing else than before";
    }
  }
}

TEST(Reordering, OfNothingIsNothing) {
  Reordering reordering;
  reordering.add({}, false);
  EXPECT_EQ(reordering.merge(5), 5U) << "done, and nothing of the five is used up";
  EXPECT_FALSE(reordering.moved());
  EXPECT_TRUE(std::move(reordering).take().empty());
}

}  // namespace
}  // namespace sched
