#include "operator/jobs/suspension_notes.h"

#include <gtest/gtest.h>

#include "api/wellknown.h"
#include "operator/testing/edit_owned.h"

namespace control {
namespace {

using std::chrono::seconds;

// A job of two pods, a and b. A note is a condition of the pod; its reason is that of the
// suspension.
class SuspensionNotesTest : public testing::Test {
 protected:
  static constexpr base::Instant kSuspendedAt{seconds{1'000}};
  static constexpr base::Instant kLong = kSuspendedAt + SuspensionNotes::kNotedAfter;

  SuspensionNotesTest() {
    for (const char* name : {"a", "b"}) put(name, {});
  }
  // A watch shows the pod, with this note or without one.
  void put(const std::string& name, const std::string& note) {
    kube::Pod pod;
    pod.metadata.name = name;
    pod.metadata.uid = "uid-" + name;
    if (!note.empty()) {
      pod.status.conditions.push_back({.type = std::string{kube::kPodSuspended},
                                       .status = kube::ConditionStatus::kTrue,
                                       .reason = note});
    }
    pods_[name] = std::make_shared<const kube::Pod>(std::move(pod));
    notes_.observe_pod("job", *pods_[name], kLong);
  }
  void suspend(const std::string& reason) {
    notes_.observe("job", Suspension{reason, "it is suspended"}, kSuspendedAt);
  }
  // Returns "+a -b": what is written at that instant.
  std::string written(base::Instant now) {
    InformBudget budget;
    budget.restore(now - seconds{1});
    budget.refill(now, false);
    std::string text;
    for (const Effect& one : notes_.due(budget, now, [this](const auto&) { return &pods_; })) {
      const auto& effect = std::get<NotePod>(one);
      text += (text.empty() ? "" : " ") + std::string{effect.note ? "+" : "-"} + effect.pod.name;
      if (effect.note) text += ":" + effect.note->reason;
    }
    return text;
  }
  // The answer to the write of that pod's note.
  void stored(const std::string& name, const base::Status& status) {
    notes_.answered({.uid = "uid-" + name, .job_uid = "job", .status = status}, kLong);
  }
  SuspensionNotes notes_;
  SuspensionNotes::Pods pods_;
};

// 1. not before kNotedAfter; 2. both pods, once; 3. nothing more while it lasts; 4. removed when it
//    ends.
//
// To kubelet a frozen pod is one that runs and is ready; the note is the only sign on the pod
// itself.
TEST_F(SuspensionNotesTest, PodsSayThatTheirJobIsSuspendedForLong) {
  suspend("User");
  EXPECT_EQ(notes_.next_due(kSuspendedAt), kLong);
  EXPECT_EQ(written(kLong - seconds{1}), "");
  EXPECT_EQ(written(kLong), "+a:User +b:User");
  EXPECT_EQ(written(kLong + seconds{1}), "") << "both are under way";
  stored("a", {});
  stored("b", {});
  put("a", "User");
  put("b", "User");
  EXPECT_EQ(written(kLong + seconds{2}), "");
  EXPECT_EQ(notes_.next_due(kSuspendedAt), base::kNever);
  notes_.observe("job", std::nullopt, kLong + seconds{60});
  EXPECT_EQ(written(kLong + seconds{60}), "-a -b");
}

// It ends before kNotedAfter, so no pod was ever written. Written at once, it would be two writes
// for each pod of a gang of thousands.
TEST_F(SuspensionNotesTest, AShortSuspensionCostsNothing) {
  suspend("Preempted");
  notes_.observe("job", std::nullopt, kSuspendedAt + seconds{20});
  EXPECT_EQ(written(kLong), "");
  EXPECT_EQ(notes_.next_due(kSuspendedAt), base::kNever);
}

// Only the pod whose write failed, after 10 s.
TEST_F(SuspensionNotesTest, WhatFailsIsTriedAgain) {
  suspend("User");
  EXPECT_EQ(written(kLong), "+a:User +b:User");
  stored("a", base::Error{base::Code::kUnavailable, "test"});
  stored("b", {});
  put("b", "User");
  EXPECT_EQ(written(kLong + seconds{1}), "");
  EXPECT_EQ(written(kLong + seconds{10}), "+a:User");
}

// Whatever else stops its processes, or ends them, is said elsewhere.
TEST(SuspensionOf, IsOfJobsThatAreSuspendedAndNotEnding) {
  JobRecord job;
  job.key = {"team-a", "train"};
  job.wanted_unmarked().allocation.emplace();
  job.wanted_unmarked().state = kube::JobState::kSuspended;
  for (const char* reason : {"User", "Preempted"}) {
    job.wanted_unmarked().reason = reason;
    ASSERT_TRUE(suspension_of(job)) << reason;
    EXPECT_EQ(suspension_of(job)->reason, reason);
  }
  job.wanted_unmarked().reason = "Timeslice";
  EXPECT_FALSE(suspension_of(job)) << "a turn";
  job.wanted_unmarked().reason = "User";
  job.wanted_unmarked().state = kube::JobState::kRunning;
  EXPECT_FALSE(suspension_of(job));
  job.wanted_unmarked().state = kube::JobState::kSuspended;
  edit(job.gang).never_frozen = true;
  EXPECT_FALSE(suspension_of(job));
  edit(job.gang).never_frozen = false;
  job.wanted_unmarked().ending.emplace();
  EXPECT_FALSE(suspension_of(job));
  job.wanted_unmarked().ending.reset();
  job.wanted_unmarked().allocation.reset();
  EXPECT_FALSE(suspension_of(job));
}

// A pod that ends takes its note along. a has ended, b is being deleted: a write to either would be
// in vain.
TEST_F(SuspensionNotesTest, PodsThatEndAreLeft) {
  suspend("User");
  kube::Pod done = *pods_["a"];
  done.status.phase = kube::PodPhase::kSucceeded;
  pods_["a"] = std::make_shared<const kube::Pod>(done);
  kube::Pod going = *pods_["b"];
  going.metadata.deletion_timestamp = kLong;
  pods_["b"] = std::make_shared<const kube::Pod>(going);
  EXPECT_EQ(written(kLong), "");
}

// Another reason: the notes say the new one, after it has lasted.
TEST_F(SuspensionNotesTest, AnotherReasonIsNotedWhenItHasLasted) {
  suspend("Preempted");
  EXPECT_EQ(written(kLong), "+a:Preempted +b:Preempted");
  for (const char* name : {"a", "b"}) {
    stored(name, {});
    put(name, "Preempted");
  }
  notes_.observe("job", Suspension{"User", "it is suspended"}, kLong);
  EXPECT_EQ(written(kLong + seconds{1}), "");
  EXPECT_EQ(written(kLong + SuspensionNotes::kNotedAfter), "+a:User +b:User");
}

// As a new leader finds it: its predecessor wrote the note, and the job was resumed since. Left
// there, it would say about a running pod that it is suspended.
TEST_F(SuspensionNotesTest, ANoteOfAJobThatRunsIsTakenAway) {
  put("b", "User");
  EXPECT_EQ(written(kLong), "-b");
  stored("b", {});
  notes_.drop_job("job");
  EXPECT_EQ(written(kLong + seconds{60}), "");
}

}  // namespace
}  // namespace control
