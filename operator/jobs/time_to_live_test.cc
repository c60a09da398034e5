#include "operator/jobs/time_to_live.h"

#include <gtest/gtest.h>

namespace control {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr base::Instant kEnd{seconds{1'000}};
const kube::ObjectKey kKey{"team-a", "train"};
const DeleteJob kDelete{kKey, "uid"};

// A spec with that ttlAfterFinished, or without one.
kube::JobSpec lives(std::optional<base::Duration> after) {
  kube::JobSpec spec;
  spec.lifecycle.ttl_after_finished = after;
  return spec;
}

// The status of a job that ended at that time.
kube::JobStatus ended(std::optional<base::Instant> at) {
  kube::JobStatus status;
  status.end_time = at;
  return status;
}

// From the end of the job, not from its start, and not a second early: until then its user may read
// the result. The UID goes with the deletion, so a new Job of the same name is not hit.
TEST(TimeToLive, DeletesAJobWhenItsTimeIsOver) {
  TimeToLive ttl;
  ttl.observe(kKey, "uid", lives(seconds{30}), ended(kEnd));
  EXPECT_EQ(ttl.next_due(), kEnd + seconds{30});
  EXPECT_TRUE(ttl.due(kEnd + seconds{29}).empty());
  EXPECT_EQ(ttl.due(kEnd + seconds{30}), std::vector{kDelete});
}

// A deletion may fail, or wait for a finalizer; no answer is needed, since only the watch ends the
// tries. A status that is stored meanwhile must not begin the minute anew, nor bring a second try
// at once.
TEST(TimeToLive, TriesOnceAMinuteUntilTheJobIsGone) {
  TimeToLive ttl;
  ttl.observe(kKey, "uid", lives(seconds{0}), ended(kEnd));
  EXPECT_EQ(ttl.due(kEnd), std::vector{kDelete});
  ttl.observe(kKey, "uid", lives(seconds{0}), ended(kEnd));  // its status was stored meanwhile
  EXPECT_TRUE(ttl.due(kEnd + seconds{59}).empty());
  EXPECT_EQ(ttl.next_due(), kEnd + minutes{1});
  EXPECT_EQ(ttl.due(kEnd + minutes{1}), std::vector{kDelete});
  ttl.forget("uid");
  EXPECT_EQ(ttl.next_due(), base::kNever);
  EXPECT_TRUE(ttl.due(kEnd + minutes{10}).empty());
}

// The field may be edited after the end, also taken away: then the job stays.
TEST(TimeToLive, FollowsTheSpec) {
  TimeToLive ttl;
  ttl.observe(kKey, "uid", lives(std::nullopt), ended(kEnd));
  EXPECT_EQ(ttl.next_due(), base::kNever);
  ttl.observe(kKey, "uid", lives(minutes{5}), ended(kEnd));
  EXPECT_EQ(ttl.next_due(), kEnd + minutes{5});
  ttl.observe(kKey, "uid", lives(minutes{1}), ended(kEnd));
  EXPECT_EQ(ttl.next_due(), kEnd + minutes{1});
  ttl.observe(kKey, "uid", lives(std::nullopt), ended(kEnd));
  EXPECT_EQ(ttl.next_due(), base::kNever);
}

// There is nothing to count from. Counted from the epoch it would be deleted at once.
TEST(TimeToLive, LeavesAJobWhoseEndHasNoTime) {
  TimeToLive ttl;
  ttl.observe(kKey, "uid", lives(seconds{1}), ended(std::nullopt));
  EXPECT_EQ(ttl.next_due(), base::kNever);
}

}  // namespace
}  // namespace control
