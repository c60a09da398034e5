#include "operator/jobs/time_to_live.h"

#include <gtest/gtest.h>

namespace control {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr base::Instant kEnd{seconds{1'000}};
const kube::ObjectKey kKey{"team-a", "train"};
const DeleteJob kDelete{kKey, "uid"};
constexpr std::size_t kTtlRoom = 100;  // enough
const Recorded kNoRecords;

// Returns a Job with that ttlAfterFinished, or without one.
kube::Job lives(std::optional<base::Duration> after, const std::string& uid = "uid") {
  kube::Job job;
  job.metadata.name = kKey.name;
  job.metadata.ns = kKey.ns;
  job.metadata.uid = uid;
  job.spec.lifecycle.ttl_after_finished = after;
  return job;
}

// Returns the status of a job that ended at that time.
kube::JobStatus ended(std::optional<base::Instant> at) {
  kube::JobStatus status;
  status.end_time = at;
  return status;
}

// From the end of the job, not from its start, and not a second early: until then its user may read
// the result. The UID goes with the deletion, so a new Job of the same name is not hit.
TEST(TimeToLive, DeletesAJobWhenItsTimeIsOver) {
  TimeToLive ttl{kNoRecords};
  ttl.observe(lives(seconds{30}), ended(kEnd));
  EXPECT_EQ(ttl.next_due(kEnd), kEnd + seconds{30});
  EXPECT_TRUE(ttl.due(kEnd + seconds{29}, kTtlRoom).empty());
  EXPECT_EQ(ttl.due(kEnd + seconds{30}, kTtlRoom), std::vector{kDelete});
}

// A deletion may fail; no answer is needed, since only the watch ends the tries. A status that is
// stored meanwhile must not begin the minute again, nor bring a second try at once.
TEST(TimeToLive, TriesOnceAMinuteUntilTheJobIsGone) {
  TimeToLive ttl{kNoRecords};
  ttl.observe(lives(seconds{0}), ended(kEnd));
  EXPECT_EQ(ttl.due(kEnd, kTtlRoom), std::vector{kDelete});
  ttl.observe(lives(seconds{0}), ended(kEnd));  // its status was stored meanwhile
  EXPECT_TRUE(ttl.due(kEnd + seconds{59}, kTtlRoom).empty());
  EXPECT_EQ(ttl.next_due(kEnd), kEnd + minutes{1});
  EXPECT_EQ(ttl.due(kEnd + minutes{1}, kTtlRoom), std::vector{kDelete});
  ttl.forget_job("uid");
  EXPECT_EQ(ttl.next_due(kEnd), base::kNever);
  EXPECT_TRUE(ttl.due(kEnd + minutes{10}, kTtlRoom).empty());
}

// A finalizer of a user keeps the object. The deletion has been taken down, and each further one
// would be a request for nothing, for as long as the finalizer stays.
TEST(TimeToLive, TriesNoMoreOnceTheJobIsBeingDeleted) {
  TimeToLive ttl{kNoRecords};
  kube::Job job = lives(seconds{0});
  ttl.observe(job, ended(kEnd));
  EXPECT_EQ(ttl.due(kEnd, kTtlRoom), std::vector{kDelete});
  job.metadata.deletion_timestamp = kEnd;
  ttl.observe(job, ended(kEnd));
  EXPECT_EQ(ttl.next_due(kEnd), base::kNever);
  EXPECT_TRUE(ttl.due(kEnd + minutes{10}, kTtlRoom).empty());
}

// The operator was away for a day, or a user has given thousands of jobs a time to live. The one
// whose time was over first goes first; the others wait for the outcomes of what was written.
TEST(TimeToLive, DeletesAsManyAsThereIsRoomFor) {
  TimeToLive ttl{kNoRecords};
  ttl.observe(lives(seconds{2}, "b"), ended(kEnd));
  ttl.observe(lives(seconds{1}, "c"), ended(kEnd));
  ttl.observe(lives(seconds{3}, "a"), ended(kEnd));
  const base::Instant later = kEnd + minutes{1};
  EXPECT_TRUE(ttl.due(later, 0).empty());
  EXPECT_EQ(ttl.next_due(later), base::kNever) << "no instant brings room";
  EXPECT_EQ(ttl.due(later, 2), (std::vector<DeleteJob>{{kKey, "b"}, {kKey, "c"}}));
  EXPECT_EQ(ttl.due(later, 2), (std::vector<DeleteJob>{{kKey, "a"}}));
  EXPECT_EQ(ttl.next_due(later), later + minutes{1});
}

// The field may be edited after the end, also taken away: then the job stays.
TEST(TimeToLive, FollowsTheSpec) {
  TimeToLive ttl{kNoRecords};
  ttl.observe(lives(std::nullopt), ended(kEnd));
  EXPECT_EQ(ttl.next_due(kEnd), base::kNever);
  ttl.observe(lives(minutes{5}), ended(kEnd));
  EXPECT_EQ(ttl.next_due(kEnd), kEnd + minutes{5});
  ttl.observe(lives(minutes{1}), ended(kEnd));
  EXPECT_EQ(ttl.next_due(kEnd), kEnd + minutes{1});
  ttl.observe(lives(std::nullopt), ended(kEnd));
  EXPECT_EQ(ttl.next_due(kEnd), base::kNever);
}

// There is nothing to count from. Counted from the epoch it would be deleted at once.
TEST(TimeToLive, LeavesAJobWhoseEndHasNoTime) {
  TimeToLive ttl{kNoRecords};
  ttl.observe(lives(seconds{1}), ended(std::nullopt));
  EXPECT_EQ(ttl.next_due(kEnd), base::kNever);
}

// With kubegang-records.
class TimeToLiveWithRecords : public ::testing::Test {
 protected:
  TimeToLiveWithRecords() { recorded_.follow({"kubegang-system", "kubegang-records"}); }

  // Returns a Job that has ended, as it is stored in that version.
  static kube::Job stored(const std::string& uid, const std::string& version) {
    kube::Job job = lives(minutes{1}, uid);
    job.metadata.resource_version = version;
    job.status = ended(kEnd);
    return job;
  }
  void observe(const kube::Job& job) { ttl_.observe(job, ended(kEnd)); }
  void answer(std::int64_t version, base::Instant now) {
    kube::Lease lease;
    lease.metadata.annotations["kubegang.io/recorded-version"] = std::to_string(version);
    take({lease}, now);
  }
  void take(const RecordedRead& outcome, base::Instant now) {
    recorded_.answered(outcome, now);
    ttl_.look_again(now);
  }
  std::optional<ReadRecorded> due_question(base::Instant now) {
    return recorded_.due_question(ttl_.waiting_count() > 0, now);
  }
  base::Instant next_due(base::Instant now) const {
    return std::min(ttl_.next_due(now), recorded_.next_due());
  }

  Recorded recorded_;
  TimeToLive ttl_{recorded_};
  const base::Instant over_ = kEnd + minutes{1};
};

TEST_F(TimeToLiveWithRecords, DeletesTheVersionThatIsRecorded) {
  observe(stored("a", "7"));
  observe(stored("b", "9"));
  EXPECT_FALSE(due_question(over_)) << "nothing waits for the answer";
  EXPECT_TRUE(ttl_.due(over_, kTtlRoom).empty());
  EXPECT_EQ(due_question(over_), (ReadRecorded{{"kubegang-system", "kubegang-records"}}));
  EXPECT_FALSE(due_question(over_)) << "one at a time";
  answer(8, over_);
  EXPECT_EQ(ttl_.due(over_, kTtlRoom), (std::vector<DeleteJob>{{kKey, "a", "7"}}));
  EXPECT_EQ(ttl_.waiting_count(), 1U);
  EXPECT_EQ(next_due(over_), over_ + seconds{2}) << "the next question";
  EXPECT_TRUE(due_question(over_ + seconds{2}));
  answer(9, over_ + seconds{2});
  EXPECT_EQ(ttl_.due(over_ + seconds{2}, kTtlRoom), (std::vector<DeleteJob>{{kKey, "b", "9"}}));
  EXPECT_EQ(ttl_.unrecorded_count(), 0);
}

// The version before the end is recorded, which says nothing of the end.
TEST_F(TimeToLiveWithRecords, WaitsForTheEndThatIsNotStoredYet) {
  kube::Job running = stored("a", "7");
  running.status.end_time.reset();
  observe(running);
  EXPECT_TRUE(ttl_.due(over_, kTtlRoom).empty());
  answer(7, over_);
  EXPECT_TRUE(ttl_.due(over_, kTtlRoom).empty());
  observe(stored("a", "8"));
  answer(8, over_ + seconds{2});
  EXPECT_EQ(ttl_.due(over_ + seconds{2}, kTtlRoom), (std::vector<DeleteJob>{{kKey, "a", "8"}}));
}

TEST_F(TimeToLiveWithRecords, WaitsForADayAtMost) {
  observe(stored("a", "7"));
  EXPECT_TRUE(ttl_.due(over_, kTtlRoom).empty());
  EXPECT_TRUE(due_question(over_));
  take({base::Error{base::Code::kNotFound, "no Lease"}}, over_);
  EXPECT_EQ(next_due(over_), over_ + minutes{1}) << "asks less often what fails";
  const base::Instant day_later = over_ + std::chrono::hours{24};
  EXPECT_TRUE(ttl_.due(day_later - seconds{1}, kTtlRoom).empty());
  EXPECT_EQ(ttl_.due(day_later, kTtlRoom), (std::vector<DeleteJob>{{kKey, "a"}}));
  EXPECT_EQ(ttl_.due(day_later + minutes{1}, kTtlRoom).size(), 1U) << "tried again";
  EXPECT_EQ(ttl_.unrecorded_count(), 1) << "and counted once";
  EXPECT_EQ(ttl_.waiting_count(), 0U);
}

// Thousands that wait keep no room from those that may go.
TEST_F(TimeToLiveWithRecords, WhatWaitsTakesNoRoom) {
  answer(5, over_);
  for (int i = 0; i < 50; ++i) observe(stored("late" + std::to_string(i), "9"));
  observe(stored("z", "5"));
  EXPECT_EQ(ttl_.due(over_, 1), (std::vector<DeleteJob>{{kKey, "z", "5"}}));
  for (int i = 0; i < 50; ++i) ttl_.forget_job("late" + std::to_string(i));
  EXPECT_EQ(ttl_.waiting_count(), 0U);
}

// An answer is not a run of a job, and is not recorded.
TEST_F(TimeToLiveWithRecords, AnAnswerDoesNotWait) {
  kube::JobStatus status;
  status.forecast.emplace().as_of = kEnd;
  ttl_.observe(lives(std::nullopt), status);
  EXPECT_EQ(ttl_.due(kEnd + minutes{1}, kTtlRoom), std::vector{kDelete});
}

}  // namespace
}  // namespace control
