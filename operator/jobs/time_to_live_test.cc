#include "operator/jobs/time_to_live.h"

#include <gtest/gtest.h>

namespace control {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr base::Instant kEnd{seconds{1'000}};
const kube::ObjectKey kKey{"team-a", "train"};
const DeleteJob kDelete{kKey, "uid"};

kube::JobSpec lives(std::optional<base::Duration> after) {
  kube::JobSpec spec;
  spec.lifecycle.ttl_after_finished = after;
  return spec;
}

kube::JobStatus ended(std::optional<base::Instant> at) {
  kube::JobStatus status;
  status.end_time = at;
  return status;
}

TEST(TimeToLive, DeletesAJobWhenItsTimeIsOver) {
  TimeToLive ttl;
  ttl.observe(kKey, "uid", lives(seconds{30}), ended(kEnd));
  EXPECT_EQ(ttl.next_due(), kEnd + seconds{30});
  EXPECT_TRUE(ttl.due(kEnd + seconds{29}).empty());
  EXPECT_EQ(ttl.due(kEnd + seconds{30}), std::vector{kDelete});
}

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

TEST(TimeToLive, LeavesAJobWhoseEndHasNoTime) {
  TimeToLive ttl;
  ttl.observe(kKey, "uid", lives(seconds{1}), ended(std::nullopt));
  EXPECT_EQ(ttl.next_due(), base::kNever);
}

}  // namespace
}  // namespace control
