#include "node-agent/freezer/pod_cgroups.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "node-agent/testing/temporary_directory.h"

namespace agent {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kUid = "0b2d5f1a-77c0-4b7e-9f1e-0123456789ab";
// The same UID as systemd's unit names have it: '-' would separate slices there.
constexpr std::string_view kUnitUid = "0b2d5f1a_77c0_4b7e_9f1e_0123456789ab";

// A directory as kubelet makes it, with the files of a v2 cgroup.
void make_v2(const fs::path& path) {
  fs::create_directories(path);
  std::ofstream{path / "cgroup.freeze"} << "0\n";
  std::ofstream{path / "cgroup.events"} << "populated 1\nfrozen 0\n";
}

// A directory in /tmp in place of /sys/fs/cgroup: finding is by names only.
class PodCgroupsTest : public ::testing::Test {
 protected:
  base::Result<PodCgroup> find(QosClass qos, const std::string& kubelet_root = "") {
    base::Result<PodCgroups> cgroups = PodCgroups::open(root_.path(), kubelet_root);
    if (!cgroups) return cgroups.error();
    return cgroups->find(kUid, qos);
  }
  std::string path_found(QosClass qos, const std::string& kubelet_root = "") {
    const base::Result<PodCgroup> found = find(qos, kubelet_root);
    return found ? found->path : found.error().message;
  }
  fs::path root() const { return root_.path(); }

  testing::TemporaryDirectory root_;
};

// The two drivers of kubelets spell paths in their own ways; agents do not know which one is used.
TEST_F(PodCgroupsTest, FindsEveryQosClassOfTheCgroupfsDriver) {
  const std::string pod = "pod" + std::string{kUid};
  for (const auto& [qos, path] : std::vector<std::pair<QosClass, std::string>>{
           {QosClass::kGuaranteed, "kubepods/" + pod},
           {QosClass::kBurstable, "kubepods/burstable/" + pod},
           {QosClass::kBestEffort, "kubepods/besteffort/" + pod}}) {
    make_v2(root() / path);
    EXPECT_EQ(path_found(qos), path);
    fs::remove_all(root() / path);
  }
}

// As CRI-O lays it out with conmon_cgroup = "pod"; by default the monitor is elsewhere. A pod that
// holds it must never be frozen, since the runtime would hang with it.
TEST_F(PodCgroupsTest, SeesCriOsMonitorInThePod) {
  const std::string pod = "kubepods/pod" + std::string{kUid};
  make_v2(root() / pod);
  make_v2(root() / pod / "crio-0123456789ab.scope");
  EXPECT_EQ(runtime_cgroup_in(*find(QosClass::kGuaranteed)), "");
  for (const std::string name : {"crio-conmon-0123456789ab", "crio-conmon-0123456789ab.scope"}) {
    make_v2(root() / pod / name);
    EXPECT_EQ(runtime_cgroup_in(*find(QosClass::kGuaranteed)), name);
    fs::remove_all(root() / pod / name);
  }
}

// The names of the parents are repeated in each unit's name.
TEST_F(PodCgroupsTest, FindsEveryQosClassOfTheSystemdDriver) {
  const std::string uid{kUnitUid};
  for (const auto& [qos, path] : std::vector<std::pair<QosClass, std::string>>{
           {QosClass::kGuaranteed, "kubepods.slice/kubepods-pod" + uid + ".slice"},
           {QosClass::kBurstable,
            "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + uid + ".slice"},
           {QosClass::kBestEffort,
            "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + uid + ".slice"}}) {
    make_v2(root() / path);
    EXPECT_EQ(path_found(qos), path);
    fs::remove_all(root() / path);
  }
}

// kubelet's option --cgroup-root, with and without a slash in front.
TEST_F(PodCgroupsTest, AddsKubeletsCgroupRootInBothSpellings) {
  const std::string plain = "kubelet/kubepods/burstable/pod" + std::string{kUid};
  make_v2(root() / plain);
  EXPECT_EQ(path_found(QosClass::kBurstable, "kubelet"), plain);
  const std::string unit =
      "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
      "kubelet-kubepods-burstable-pod" +
      std::string{kUnitUid} + ".slice";
  make_v2(root() / unit);
  EXPECT_EQ(path_found(QosClass::kBurstable, "/kubelet"), unit);
}

// For kubelets and runtimes that lay their trees out in another way.
TEST_F(PodCgroupsTest, ScansForTheUidWhereTheNamesDiffer) {
  // Neither layout of kubelet, but a directory on the way has "kubepods" in its name.
  const std::string path = "outer/x.kubepods.y/other/pod" + std::string{kUid};
  make_v2(root() / path);
  EXPECT_EQ(path_found(QosClass::kBurstable), path);
}

// A container may make cgroups of any name inside its pod's own: one that is called like another
// pod must not be frozen for it.
TEST_F(PodCgroupsTest, DoesNotScanOutsideOfTheKubepodsTreeNorInsideOfAnotherPod) {
  make_v2(root() / ("system.slice/pod" + std::string{kUid}));
  make_v2(root() / ("kubepods/burstable/podother/pod" + std::string{kUid}));
  make_v2(root() / ("kubepods/a/b/c/d/e/f/pod" + std::string{kUid}));  // deeper than kScanDepthMax
  EXPECT_EQ(find(QosClass::kBurstable).error().code, base::Code::kNotFound);
}

// The pod is there, behind more directories than are looked at. The agent must not stand still for
// a scan.
TEST_F(PodCgroupsTest, GivesUpAScanThatWouldTakeTooLong) {
  for (std::size_t i = 0; i < kScanDirectoriesMax; ++i) {
    fs::create_directories(root() / "kubepods" / ("a" + std::to_string(i)));
  }
  make_v2(root() / "kubepods" / ("z-pod" + std::string{kUnitUid} + ".slice"));
  const base::Result<PodCgroup> found = find(QosClass::kBurstable);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, base::Code::kNotFound);
  EXPECT_NE(found.error().message.find("not among the first 20000"), std::string::npos)
      << found.error().message;
}

// cgroupfs has no links; another file system at the same place could.
TEST_F(PodCgroupsTest, RefusesSymbolicLinks) {
  make_v2(root() / "elsewhere");
  fs::create_directories(root() / "kubepods/burstable");
  fs::create_directory_symlink(root() / "elsewhere",
                               root() / ("kubepods/burstable/pod" + std::string{kUid}));
  EXPECT_EQ(find(QosClass::kBurstable).error().code, base::Code::kPermissionDenied);
}

// Paths come from the journal, which could have been changed. A path to another cgroup would freeze
// the wrong processes.
TEST_F(PodCgroupsTest, RefusesAPathThatLeavesTheRootOrDoesNotNameTheUid) {
  make_v2(root() / ("kubepods/pod" + std::string{kUid}));
  make_v2(root() / "inner/kubepods");
  base::Result<PodCgroups> cgroups = PodCgroups::open(root() / "inner", "");
  ASSERT_TRUE(cgroups.ok());
  EXPECT_EQ(cgroups->at("../kubepods/pod" + std::string{kUid}, kUid).error().code,
            base::Code::kPermissionDenied);
  EXPECT_EQ(cgroups->at("kubepods", kUid).error().code, base::Code::kInvalidArgument);
  EXPECT_EQ(cgroups->at("kubepods/pod1", "../../x").error().code, base::Code::kInvalidArgument);
}

// Found out at the start, with a sentence, and not as a failure of each pod.
TEST_F(PodCgroupsTest, RefusesAKubeletRootBelowWhichNoPathIsShortEnough) {
  std::string deep;
  for (int i = 0; i < 60; ++i)
    deep += "/deeper";  // short, but systemd's names repeat their parents'
  const base::Result<PodCgroups> cgroups = PodCgroups::open(root(), deep);
  ASSERT_FALSE(cgroups.ok());
  EXPECT_EQ(
      cgroups.error().message,
      "kubelet's cgroup root of 420 characters: the path of a pod below it would be too long");
  EXPECT_TRUE(PodCgroups::open(root(), "/a/b/c/d").ok());
}

// On a hybrid machine both versions exist. Which of them a pod has shows in its files.
TEST_F(PodCgroupsTest, OpensTheFreezerOfTheVersionThatThePodHas) {
  const std::string v2 = "kubepods/burstable/pod" + std::string{kUid};
  make_v2(root() / v2);
  base::Result<PodCgroup> cgroup = find(QosClass::kBurstable);
  ASSERT_TRUE(cgroup.ok());
  EXPECT_TRUE((*open_freezer(*cgroup))->kill_works_while_frozen());

  const std::string v1 = "kubepods/besteffort/pod" + std::string{kUid};
  fs::create_directories(root() / v1);
  EXPECT_EQ(open_freezer(*find(QosClass::kBestEffort)).error().code, base::Code::kNotFound);
  std::ofstream{root() / v1 / "freezer.state"} << "THAWED\n";
  std::ofstream{root() / v1 / "freezer.self_freezing"} << "0\n";
  base::Result<std::unique_ptr<Freezer>> freezer = open_freezer(*find(QosClass::kBestEffort));
  ASSERT_TRUE(freezer.ok());
  EXPECT_FALSE((*freezer)->kill_works_while_frozen());
}

}  // namespace
}  // namespace agent
