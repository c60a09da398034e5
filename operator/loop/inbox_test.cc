#include "operator/loop/inbox.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "api/wellknown.h"

namespace control {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::shared_ptr<const kube::Pod> pod(const std::string& name) {
  kube::Pod pod;
  pod.metadata.name = name;
  pod.metadata.uid = "u-" + name;
  return std::make_shared<const kube::Pod>(pod);
}

// Goal: hundreds of changes that may wait cost the loop one wake-up. Method: after two of them a
// wait goes on for as long as they may gather. It then ends, or the test hangs.
TEST(Inbox, ChangesThatMayWaitGather) {
  kube::Waker waker;
  Inbox inbox{waker};
  (void)inbox.take();
  const auto began = steady_clock::now();
  inbox.changed<kube::Pod>(pod("a"), /*may_wait=*/true);
  inbox.deleted<kube::Pod>(pod("b"), /*may_wait=*/true);
  waker.wait_for(std::chrono::hours{1}, {});
  EXPECT_GE(steady_clock::now() - began, milliseconds{50});
  EXPECT_EQ(inbox.take().of<kube::Pod>().size(), 2U);
}

// The test hangs if the wait does not end at once.
TEST(Inbox, AnyOtherChangeIsToldAtOnceWithThoseThatWait) {
  kube::Waker waker;
  Inbox inbox{waker};
  inbox.changed<kube::Pod>(pod("a"), /*may_wait=*/true);
  inbox.changed<kube::Pod>(pod("b"));
  waker.wait_for(std::chrono::hours{1}, {});
  EXPECT_EQ(inbox.take().of<kube::Pod>().size(), 2U);
}

// A stand-by watches for weeks: it holds the objects that exist, and no trace of the others.
TEST(Inbox, WhatIsGoneBeforeTheFirstLookWasNever) {
  kube::Waker waker;
  Inbox inbox{waker};
  inbox.changed<kube::Pod>(pod("a"));
  inbox.changed<kube::Pod>(pod("b"));
  inbox.deleted<kube::Pod>(pod("a"));
  Inbox::Batch batch = inbox.take();
  EXPECT_EQ(batch.of<kube::Pod>().size(), 1U);
  EXPECT_TRUE(batch.gone_of<kube::Pod>().empty());
  // From then on each deletion is kept, with the UID, also of recreated objects.
  inbox.deleted<kube::Pod>(pod("b"));
  inbox.replaced<kube::Pod>(*pod("c"), pod("c"));
  batch = inbox.take();
  EXPECT_EQ(batch.of<kube::Pod>().at({"", "b"}), nullptr);
  EXPECT_NE(batch.of<kube::Pod>().at({"", "c"}), nullptr);
  std::vector<std::string> uids;
  for (const auto& gone : batch.gone_of<kube::Pod>()) uids.push_back(gone.uid);
  EXPECT_EQ(uids, (std::vector<std::string>{"u-b", "u-c"}));
}

// A loop that stood still sees only the last state of a pod. Whether it had ended when it was
// deleted is seen in the one before, whatever the clock of its node says.
TEST(Inbox, TellsWhetherAPodHadEndedWhenItWasDeleted) {
  kube::Waker waker;
  Inbox inbox{waker};
  (void)inbox.take();
  const auto state = [](bool is_deleted, bool has_ended) {
    kube::Pod pod;
    pod.metadata = {.name = "a", .uid = "u-a"};
    pod.metadata.labels[std::string{kube::kLabelJobUid}] = "job";
    if (is_deleted) pod.metadata.deletion_timestamp = base::Instant{std::chrono::hours{1}};
    pod.status.phase = has_ended ? kube::PodPhase::kFailed : kube::PodPhase::kRunning;
    return std::make_shared<const kube::Pod>(pod);
  };
  const auto running = state(false, false);
  const auto both = state(true, true);
  for (const auto& first : {state(true, false), state(false, true)}) {
    inbox.changed<kube::Pod>(running);
    inbox.changed<kube::Pod>(first);
    inbox.changed<kube::Pod>(both);
    const auto earlier = inbox.take().earlier_pods;
    ASSERT_EQ(earlier.size(), 1U);
    EXPECT_EQ(earlier[0], first);
  }
  // With its deletion, its last state comes as well.
  inbox.changed<kube::Pod>(state(true, false));
  inbox.changed<kube::Pod>(both);
  inbox.deleted<kube::Pod>(both);
  EXPECT_EQ(inbox.take().earlier_pods.size(), 2U);
  // Nothing follows from other states.
  inbox.changed<kube::Pod>(running);
  inbox.changed<kube::Pod>(both);
  EXPECT_TRUE(inbox.take().earlier_pods.empty());
}

}  // namespace
}  // namespace control
