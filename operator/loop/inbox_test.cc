#include "operator/loop/inbox.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

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

}  // namespace
}  // namespace control
