// Records in blocks against a set: the same order, whatever comes, goes and changes.
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

  // So many times: a job comes, or one that may be there goes.
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
  // One in `every` jobs gets another priority. Returns what change_all() returns.
  bool change(std::uint64_t every) {
    std::set<QueueRecord> changed;
    const std::vector<std::int64_t> before = order(expected_);
    const bool moved = records_.change_all([&](QueueRecord& record) {
      if (prng_.below(every) == 0) priority_of(record.job) = prng_.below(50);
      record = record_of(record.job.value());
      changed.insert(record);
    });
    expected_ = changed;
    EXPECT_EQ(moved, order(expected_) != before);
    return moved;
  }
  void expect_same() const {
    std::vector<std::int64_t> walked;
    for (SortedRecords::Position at; !records_.is_end(at); at = records_.next(at)) {
      walked.push_back(records_[at].job.value());
    }
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
  static std::vector<std::int64_t> order(const std::set<QueueRecord>& records) {
    std::vector<std::int64_t> jobs;
    for (const QueueRecord& record : records) jobs.push_back(record.job.value());
    return jobs;
  }
  std::uint64_t& priority_of(JobId job) const { return priorities_[job.index()]; }
  QueueRecord record_of(std::int64_t job) const {
    return {.priority = Priority{static_cast<std::uint32_t>(priority_of(JobId{job}))},
            .job = JobId{job},
            .record = &job_};
  }

  base::Prng prng_;
  mutable Job job_;
  // Equal priorities at first: then the number of the job decides.
  mutable std::vector<std::uint64_t> priorities_ = std::vector<std::uint64_t>(4000, 7);
  SortedRecords records_;
  std::set<QueueRecord> expected_;
};

TEST(SortedRecords, AreInTheOrderOfASet) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    Both both{seed};
    both.expect_same();
    // An empty list does not change.
    EXPECT_FALSE(both.change(1));
    // A block holds 56 records: 3 jobs are one block, 600 some ten, and 3000 some fifty, which are
    // split and emptied.
    for (const std::uint64_t jobs : {3U, 600U, 3000U}) {
      both.come_and_go(5000, jobs);
      both.expect_same();
      // All, some and few priorities change: many records out of order are sorted, few are merged
      // in.
      for (const std::uint64_t every : {1U, 5U, 100U}) {
        both.change(every);
        both.expect_same();
        both.come_and_go(100, jobs);
      }
      // Nothing else than before.
      EXPECT_FALSE(both.change(1'000'000'000));
    }
  }
}

}  // namespace
}  // namespace sched
