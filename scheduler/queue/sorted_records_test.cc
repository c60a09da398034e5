// Records in blocks against a set: the same order, whatever comes and goes.
#include "scheduler/queue/sorted_records.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "base/prng.h"
#include "scheduler/jobs/job_table.h"

namespace sched {
namespace {

class Both {
 public:
  explicit Both(std::uint64_t seed) : prng_{seed} {}

  // Lets a job come, or one that may be there go, `times` times.
  void come_and_go(int times, std::uint64_t jobs) {
    for (int i = 0; i < times; ++i) {
      const QueueRecord record = record_of(static_cast<std::int64_t>(1 + prng_.below(jobs)));
      if (prng_.below(3) > 0) {
        EXPECT_EQ(records_.insert(record), expected_.insert(record).second);
      } else {
        EXPECT_EQ(records_.erase(record), expected_.erase(record) > 0);
      }
    }
  }
  // Takes out the first `count` ones.
  void take_first(std::size_t count) {
    const SortedRecords taken = records_.take_first(count);
    std::set<QueueRecord> rest;
    rest.swap(expected_);
    while (expected_.size() < count && !rest.empty()) expected_.insert(rest.extract(rest.begin()));
    EXPECT_EQ(order_of(taken), order(expected_));
    expected_.swap(rest);
  }
  void expect_same() const {
    const std::vector<std::int64_t> walked = order_of(records_);
    ASSERT_EQ(walked, order(expected_));
    if (walked.empty()) return;
    const QueueRecord middle = record_of(walked[walked.size() / 2]);
    const auto behind = expected_.upper_bound(middle);
    const SortedRecords::Position found = records_.behind(middle);
    ASSERT_EQ(records_.is_end(found), behind == expected_.end());
    if (behind == expected_.end()) return;
    EXPECT_EQ(records_[found].job, behind->job);
  }

 private:
  static std::vector<std::int64_t> order_of(const SortedRecords& records) {
    std::vector<std::int64_t> jobs;
    for (SortedRecords::Position at; !records.is_end(at); at = records.next(at)) {
      jobs.push_back(records[at].job.number());
    }
    return jobs;
  }
  static std::vector<std::int64_t> order(const std::set<QueueRecord>& records) {
    std::vector<std::int64_t> jobs;
    for (const QueueRecord& record : records) jobs.push_back(record.job.number());
    return jobs;
  }
  // Many equal priorities: then the number of the job decides.
  QueueRecord record_of(std::int64_t job) const {
    return {.priority = Priority{static_cast<std::uint32_t>(job * 7919 % 50)},
            .job = JobId{job},
            .record = &job_};
  }

  base::Prng prng_;
  mutable Job job_;
  SortedRecords records_;
  std::set<QueueRecord> expected_;
};

TEST(SortedRecords, AreInTheOrderOfASet) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    Both both{seed};
    both.expect_same();
    both.take_first(1);
    // A block holds 56 records: 3 jobs are one block, 600 some ten, and 3000 some fifty, which are
    // split and emptied.
    for (const std::uint64_t jobs : {3U, 600U, 3000U}) {
      both.come_and_go(5000, jobs);
      both.expect_same();
      // Nothing, a part of a block, several blocks and all.
      for (const std::size_t count : {0U, 10U, 300U, 2'000U, 10'000U}) {
        both.take_first(count);
        both.expect_same();
        both.come_and_go(1000, jobs);
        both.expect_same();
      }
    }
  }
}

}  // namespace
}  // namespace sched
