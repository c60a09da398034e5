// A container is given the kubepods subtree alone, mounted below a plain directory: real cgroups,
// bind mounts in a mount namespace of the test's own.
#include "node-agent/freezer/hierarchy.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <iostream>
#include <string>
#include <utility>

#include "node-agent/freezer/pod_cgroups.h"
#include "node-agent/testing/real_cgroups.h"
#include "node-agent/testing/temporary_directory.h"

namespace agent {
namespace {

namespace fs = std::filesystem;
using testing::CgroupVersion;
using testing::RealCgroups;

// The exit code by which test drivers know a skipped test.
constexpr int kCannotMount = 77;

// In a process with mounts of its own. Returns its exit code: what `body` returned, or
// kCannotMount.
int in_own_mounts(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool alone = ::unshare(CLONE_NEWNS) == 0 &&
                       ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    ::_exit(alone ? body() : kCannotMount);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// As the container runtime mounts a host path into a container.
bool bind_mount(const std::string& from, const fs::path& to, bool read_only = false) {
  fs::create_directories(to);
  if (::mount(from.c_str(), to.c_str(), nullptr, MS_BIND, nullptr) != 0) return false;
  return !read_only ||
         ::mount(nullptr, to.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) == 0;
}

// A real kubepods tree and an empty directory to mount it into.
class MountedKubepodsTest : public ::testing::TestWithParam<CgroupVersion> {
 protected:
  void SetUp() override {
    if (const auto missing = RealCgroups::missing(GetParam())) {
      GTEST_SKIP() << "SKIPPED: " << *missing;
    }
    cgroups_ = std::make_unique<RealCgroups>(GetParam());
    cgroups_->add_pod("some-uid");
  }
  std::string kubepods() const { return cgroups_->root() + "/kubepods"; }
  // 0 when `expect` held of what the check said.
  int check(const std::function<bool()>& mount, const std::string& kubelet_root,
            const std::function<bool(const base::Status&)>& expect) {
    return in_own_mounts([&] {
      if (!mount()) return kCannotMount;
      const base::Status status = check_cgroup_root(directory_.path(), kubelet_root);
      if (expect(status)) return 0;
      std::cerr << (status ? "accepted" : status.error().message) << "\n";
      return 1;
    });
  }
  static bool says(const base::Status& status, const std::string& what) {
    return !status && status.error().message.find(what) != std::string::npos;
  }

  std::unique_ptr<RealCgroups> cgroups_;
  testing::TemporaryDirectory directory_;
};

// A macro, since GTEST_SKIP must return from the test itself.
#define EXPECT_HELD(code)                                                      \
  if (const int got = (code); got == kCannotMount) {                           \
    GTEST_SKIP() << "SKIPPED: no mount namespace of its own can be made here"; \
  } else {                                                                     \
    EXPECT_EQ(got, 0);                                                         \
  }

// The root itself is not a cgroup file system then, as in the agent's container.
TEST_P(MountedKubepodsTest, IsAcceptedBelowAPlainDirectoryAndItsPodsAreFound) {
  const fs::path place = fs::path{directory_.path()} / "kubepods";
  EXPECT_HELD(check([&] { return bind_mount(kubepods(), place); }, "",
                    [&](const base::Status& status) {
                      if (!status) return false;
                      const base::Result<PodCgroups> tree = PodCgroups::open(directory_.path(), "");
                      if (!tree) return false;
                      const base::Result<PodCgroup> pod =
                          tree->find("some-uid", kube::QosClass::kBurstable);
                      return pod.ok() && open_freezer(*pod).ok();
                    }));
}

// The two places in which kubelets of other configurations have their pods.
TEST_P(MountedKubepodsTest, IsAcceptedInSystemdsSpellingAndBelowKubeletsOwnRoot) {
  const fs::path root = directory_.path();
  EXPECT_HELD(check([&] { return bind_mount(kubepods(), root / "kubepods.slice"); }, "",
                    [](const base::Status& status) { return status.ok(); }));
  EXPECT_HELD(check([&] { return bind_mount(kubepods(), root / "kubelet/kubepods"); }, "kubelet",
                    [](const base::Status& status) { return status.ok(); }));
}

// Three mistakes in a DaemonSet's mounts. Each sentence must name the mistake, for the agent will
// not start.
TEST_P(MountedKubepodsTest, IsRefusedWhenItIsReadOnlyMissingOrPlain) {
  const fs::path place = fs::path{directory_.path()} / "kubepods";
  EXPECT_HELD(check([&] { return bind_mount(kubepods(), place, /*read_only=*/true); }, "",
                    [](const base::Status& status) { return says(status, "read-only"); }));
  EXPECT_HELD(check([] { return true; }, "",
                    [](const base::Status& status) {
                      return says(status, "not a cgroup file system") &&
                             says(status, "/kubepods.slice");
                    }));
  fs::create_directories(place);
  EXPECT_HELD(check(
      [] { return true; }, "",
      [](const base::Status& status) { return says(status, "mount the node's kubepods there"); }));
}

// A cgroup in another controller's hierarchy, which the destructor removes.
class OtherCgroup {
 public:
  explicit OtherCgroup(std::string path) : path_{std::move(path)} { fs::create_directory(path_); }
  ~OtherCgroup() {
    EXPECT_TRUE(testing::eventually([&] { return ::rmdir(path_.c_str()) == 0; })) << path_;
  }
  OtherCgroup(const OtherCgroup&) = delete;
  OtherCgroup& operator=(const OtherCgroup&) = delete;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

// On v1 each controller has a tree of its own, and all of them have a kubepods.
TEST_P(MountedKubepodsTest, OfAnotherControllerHasNoFreezer) {
  if (!fs::is_directory("/sys/fs/cgroup/pids") || !fs::is_directory("/sys/fs/cgroup/freezer")) {
    GTEST_SKIP() << "SKIPPED: no cgroup v1 hierarchy of the controller pids is mounted here";
  }
  const OtherCgroup other{"/sys/fs/cgroup/pids/kubegang-test-" + std::to_string(::getpid())};
  EXPECT_HELD(
      check([&] { return bind_mount(other.path(), fs::path{directory_.path()} / "kubepods"); }, "",
            [](const base::Status& status) { return says(status, "has no freezer"); }));
}

// A hybrid machine's root is where kubelet's pods are; if there are none yet, cgroup v2.
TEST(DetectedCgroupRoot, IsTheHierarchyThatHasKubeletsPods) {
  for (const auto version : {CgroupVersion::kV2, CgroupVersion::kV1}) {
    if (const auto missing = RealCgroups::missing(version)) {
      GTEST_SKIP() << "SKIPPED: " << *missing << ", so there is nothing to choose from";
    }
  }
  const RealCgroups of_v2{CgroupVersion::kV2};
  const RealCgroups of_v1{CgroupVersion::kV1};
  const testing::TemporaryDirectory directory;
  const std::string v2 = directory.path() + "/v2";
  const std::string v1 = directory.path() + "/v1";
  const auto detects = [&](bool with_v2, bool with_v1, bool with_pods, const std::string& want) {
    return in_own_mounts([&] {
      if (with_v2 && !bind_mount(of_v2.root(), v2)) return kCannotMount;
      if (with_v1 && !bind_mount(of_v1.root(), v1)) return kCannotMount;
      // In the mount namespace of this process alone: only the two bind mounts are left to be
      // found.
      if (::umount2("/sys/fs/cgroup", MNT_DETACH) != 0) return kCannotMount;
      if (with_pods) fs::create_directories(v1 + "/kubepods");
      const base::Result<std::string> root = detect_cgroup_root();
      const std::string got = root ? *root : root.error().message;
      if (got.starts_with(want)) return 0;
      std::cerr << got << "\n";
      return 1;
    });
  };
  EXPECT_HELD(detects(true, true, false, v2));
  EXPECT_HELD(detects(true, false, false, v2));
  EXPECT_HELD(detects(false, true, false, v1));
  EXPECT_HELD(detects(true, true, true, v1));
  EXPECT_HELD(detects(false, false, false, "no cgroup v2 hierarchy and no v1 freezer is mounted"));
}

INSTANTIATE_TEST_SUITE_P(Real, MountedKubepodsTest,
                         ::testing::Values(CgroupVersion::kV2, CgroupVersion::kV1),
                         [](const auto& version) { return to_string(version.param); });

}  // namespace
}  // namespace agent
