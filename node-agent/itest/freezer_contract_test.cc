// One suite for every implementation of Freezer: the fake in memory, and the real ones on the real
// kernel. The fake cannot drift from the kernel unnoticed.
#include <gtest/gtest.h>
#include <poll.h>

#include <memory>

#include "node-agent/freezer/pod_cgroups.h"
#include "node-agent/testing/fake_freezer.h"
#include "node-agent/testing/fake_switch_clock.h"
#include "node-agent/testing/real_cgroups.h"

namespace agent {
namespace {

constexpr char kUid[] = "0b2d5f1a-77c0-4b7e-9f1e-0123456789ab";

// One pod's cgroup, in memory and in the kernel; time passes by the fake clock or really.
class FakePlace {
 public:
  // True if the freezer has a descriptor that notifies of changes.
  static constexpr bool kTells = false;
  static std::optional<std::string> missing() { return std::nullopt; }
  std::shared_ptr<Freezer> open() { return kernel_.open("pod"); }
  // A second of the fake clock at most, which passes in no time.
  bool eventually(const std::function<bool()>& condition) {
    for (int i = 0; i < 1000 && !condition(); ++i) clock_.advance(std::chrono::milliseconds{1});
    return condition();
  }
  void remove() { kernel_.cgroup("pod").removed = true; }
  void freeze_ancestor(bool frozen) { kernel_.cgroup("pod").ancestor_frozen = frozen; }

 private:
  testing::FakeSwitchClock clock_{base::Instant{std::chrono::seconds{1'000'000}}};
  testing::FakeKernel kernel_{clock_};
};

// A pod's cgroup below a kubepods tree of the test's own.
template <testing::CgroupVersion kVersion>
class RealPlace {
 public:
  static constexpr bool kTells = kVersion == testing::CgroupVersion::kV2;
  static std::optional<std::string> missing() { return testing::RealCgroups::missing(kVersion); }
  RealPlace() : cgroups_{kVersion}, pod_{cgroups_.add_pod(kUid)} {}
  std::shared_ptr<Freezer> open() {
    const base::Result<PodCgroups> tree = PodCgroups::open(cgroups_.root(), "");
    CHECK(tree.ok());
    const base::Result<PodCgroup> cgroup = tree->find(kUid, kube::QosClass::kBurstable);
    CHECK(cgroup.ok());
    base::Result<std::unique_ptr<Freezer>> freezer = open_freezer(*cgroup);
    CHECK(freezer.ok());
    return *std::move(freezer);
  }
  bool eventually(const std::function<bool()>& condition) { return testing::eventually(condition); }
  void remove() { cgroups_.remove(pod_); }
  void freeze_ancestor(bool frozen) { cgroups_.set_frozen("kubepods", frozen); }

 private:
  testing::RealCgroups cgroups_;
  std::string pod_;
};

// A test sees only the interface, so it cannot tell which of them it has.
template <typename Place>
class FreezerContract : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::optional<std::string> missing = Place::missing()) {
      GTEST_SKIP() << "SKIPPED: " << *missing;
    }
    place_ = std::make_unique<Place>();
    freezer_ = place_->open();
  }
  bool becomes_frozen(bool frozen) {
    return place_->eventually([&] {
      return freezer_->observe() == Observation{.result = IoResult::kOk, .frozen = frozen};
    });
  }
  std::unique_ptr<Place> place_;
  std::shared_ptr<Freezer> freezer_;
};

using Places = ::testing::Types<FakePlace, RealPlace<testing::CgroupVersion::kV2>,
                                RealPlace<testing::CgroupVersion::kV1>>;
TYPED_TEST_SUITE(FreezerContract, Places);

constexpr AskedState kFrozen{.result = IoResult::kOk, .request = FreezeRequest::kFrozen};
constexpr AskedState kThawed{.result = IoResult::kOk, .request = FreezeRequest::kThawed};

// As kubelet makes a pod's cgroup.
TYPED_TEST(FreezerContract, BeginsThawed) {
  EXPECT_EQ(this->freezer_->asked(), kThawed);
  EXPECT_EQ(this->freezer_->observe(), (Observation{.result = IoResult::kOk, .frozen = false}));
}

// The request is there at once and the effect comes after it: callers must be able to see the two
// apart.
TYPED_TEST(FreezerContract, FreezesAndThawsAndSaysSo) {
  // Several rounds: on v2 a notification within 10 ms of the last one is delayed, which must not
  // show in what is read.
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(this->freezer_->request(FreezeRequest::kFrozen), IoResult::kOk);
    EXPECT_EQ(this->freezer_->asked(), kFrozen);
    EXPECT_TRUE(this->becomes_frozen(true));
    ASSERT_EQ(this->freezer_->request(FreezeRequest::kThawed), IoResult::kOk);
    EXPECT_EQ(this->freezer_->asked(), kThawed);
    EXPECT_TRUE(this->becomes_frozen(false));
  }
}

// One thaw undoes any number of freezes: requests are a state, not a count.
TYPED_TEST(FreezerContract, AskingTwiceIsTheSameAsOnce) {
  ASSERT_EQ(this->freezer_->request(FreezeRequest::kFrozen), IoResult::kOk);
  ASSERT_EQ(this->freezer_->request(FreezeRequest::kFrozen), IoResult::kOk);
  EXPECT_TRUE(this->becomes_frozen(true));
  ASSERT_EQ(this->freezer_->request(FreezeRequest::kThawed), IoResult::kOk);
  EXPECT_TRUE(this->becomes_frozen(false));
}

// Request and effect are two things (freeze_machine.cc): the thaw of the pod itself is accepted and
// changes nothing while the ancestor is frozen.
TYPED_TEST(FreezerContract, SeesAnAncestorsFreezeThatIsNotItsOwn) {
  this->place_->freeze_ancestor(true);
  EXPECT_TRUE(this->becomes_frozen(true));
  EXPECT_EQ(this->freezer_->asked(), kThawed);
  ASSERT_EQ(this->freezer_->request(FreezeRequest::kThawed), IoResult::kOk);
  EXPECT_TRUE(this->becomes_frozen(true));
  this->place_->freeze_ancestor(false);
  EXPECT_TRUE(this->becomes_frozen(false));
}

// The switcher waits on that descriptor instead of looking again and again.
TYPED_TEST(FreezerContract, TellsOfAFreezeWhereItSaysThatItTells) {
  const std::optional<int> changes = this->freezer_->changes_fd();
  EXPECT_EQ(changes.has_value(), TypeParam::kTells);
  if (!changes) GTEST_SKIP() << "SKIPPED: only the kernel's cgroup v2 tells of changes";
  EXPECT_FALSE(this->freezer_->observe().frozen);
  pollfd wait{.fd = *changes, .events = POLLPRI, .revents = 0};
  EXPECT_EQ(::poll(&wait, 1, 0), 0);
  ASSERT_EQ(this->freezer_->request(FreezeRequest::kFrozen), IoResult::kOk);
  constexpr int kMillisMax = 10'000;  // it comes within 10 ms of the one before
  EXPECT_EQ(::poll(&wait, 1, kMillisMax), 1);
  EXPECT_TRUE(this->freezer_->observe().frozen);
}

// The descriptors are still open: the kernel answers ENODEV to reads and writes. Gone is not an
// error: the pod has ended, and the other pods of the switch go on.
TYPED_TEST(FreezerContract, ARemovedCgroupIsGone) {
  ASSERT_EQ(this->freezer_->request(FreezeRequest::kFrozen), IoResult::kOk);
  this->place_->remove();
  EXPECT_EQ(this->freezer_->observe().result, IoResult::kGone);
  EXPECT_EQ(this->freezer_->asked().result, IoResult::kGone);
  EXPECT_EQ(this->freezer_->request(FreezeRequest::kThawed), IoResult::kGone);
}

// As in a container without the right to write below /sys/fs/cgroup.
TEST(FreezerRights, ACgroupThatIsNotOursToWriteIsDenied) {
  for (const auto version : {testing::CgroupVersion::kV2, testing::CgroupVersion::kV1}) {
    if (const auto missing = testing::RealCgroups::missing(version)) {
      std::printf("SKIPPED %s: %s\n", to_string(version).c_str(), missing->c_str());
      continue;
    }
    testing::RealCgroups cgroups{version};
    cgroups.add_pod(kUid);
    const base::Result<PodCgroups> tree = PodCgroups::open(cgroups.root(), "");
    const base::Result<PodCgroup> cgroup = tree->find(kUid, kube::QosClass::kBurstable);
    ASSERT_TRUE(cgroup.ok());
    constexpr uid_t kNobody = 65534;
    ASSERT_EQ(::seteuid(kNobody), 0);
    const base::Result<std::unique_ptr<Freezer>> freezer = open_freezer(*cgroup);
    ASSERT_EQ(::seteuid(0), 0);
    ASSERT_FALSE(freezer.ok());
    EXPECT_EQ(freezer.error().code, base::Code::kPermissionDenied) << freezer.error().message;
  }
}

}  // namespace
}  // namespace agent
