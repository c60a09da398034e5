// CPU sets: lists, the file of a fake cgroup v2 tree, the policy, and the real controller where the
// machine has one.
#include "node-agent/policy/cpu_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "linux/cpu_list.h"
#include "node-agent/freezer/cpuset_file.h"
#include "node-agent/testing/fake_node.h"
#include "node-agent/testing/temporary_directory.h"

namespace agent {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using testing::FakeNode;
using ::testing::HasSubstr;

constexpr char kUid[] = "0b2d5f1a-77c0-4b7e-9f1e-0123456789ab";

// Returns the first line of a file, without blanks in front.
std::string text_of(const fs::path& path) {
  std::string line;
  std::getline(std::ifstream{path} >> std::ws, line);
  return line;
}

// The order of a list is kept, since it says which CPUs belong together. 8192 is beyond the highest
// CPU number that is read.
TEST(CpuList, ReadsAndWritesTheKernelsFormat) {
  EXPECT_THAT(*os::parse_cpu_list("0-2,8"), ElementsAre(0, 1, 2, 8));
  EXPECT_THAT(*os::parse_cpu_list("4,0"), ElementsAre(4, 0));
  for (const char* wrong : {"", ",", "a", "3-1", "-1", "0-", "1,,2", "8192", "0-99999999999"}) {
    EXPECT_FALSE(os::parse_cpu_list(wrong).has_value()) << wrong;
  }
  EXPECT_EQ(os::format_cpu_list({0, 1, 2, 8}), "0-2,8");
  EXPECT_EQ(os::format_cpu_list({0, 4, 1, 5}), "0,4,1,5");
  EXPECT_EQ(os::format_cpu_list({}), "");
}

// A pod's cgroup with a container in it, as files.
class CpusetFileTest : public ::testing::Test {
 protected:
  CpusetFileTest()
      : pod_{fs::path{root_.path()} / "kubepods/burstable" / ("pod" + std::string{kUid})} {
    fs::create_directories(pod_ / "container");
    std::ofstream{pod_ / "cgroup.freeze"} << "0\n";
    for (const fs::path& place : {pod_, pod_ / "container"}) {
      std::ofstream{place / "cpuset.cpus"} << "\n";
    }
  }
  // Finds the pod as the agent does and sets its CPUs.
  base::Status bind(const std::string& cpus) {
    const base::Result<PodCgroups> tree = PodCgroups::open(root_.path(), "");
    const base::Result<PodCgroup> cgroup = tree->find(kUid, kube::QosClass::kBurstable);
    if (!cgroup) return cgroup.error();
    return bind_to_cpus(*cgroup, cpus);
  }
  std::string message(const std::string& cpus) {
    const base::Status status = bind(cpus);
    return status ? "bound" : status.error().message;
  }
  testing::TemporaryDirectory root_;
  fs::path pod_;
};

// The runtime owns the containers' files.
TEST_F(CpusetFileTest, WritesThePodsSetAndNoContainers) {
  std::ofstream{pod_ / "container/cpuset.cpus"} << "0-7\n";  // wider: the kernel intersects
  ASSERT_TRUE(bind("0-1").ok());
  EXPECT_EQ(text_of(pod_ / "cpuset.cpus"), "0-1");
  EXPECT_EQ(text_of(pod_ / "container/cpuset.cpus"), "0-7");
}

// A write moves tasks among CPUs, so none without need.
TEST_F(CpusetFileTest, WritesOnlyWhatDiffers) {
  std::ofstream{pod_ / "cpuset.cpus"} << "0,1\n";  // the same CPUs in another spelling
  ASSERT_TRUE(bind("0-1").ok());
  EXPECT_EQ(text_of(pod_ / "cpuset.cpus"), "0,1");
}

// An empty list means the CPUs of the cgroup above; "0-7" would pin the pod to what the machine had
// on that day.
TEST_F(CpusetFileTest, EmptiesTheListWhenItIsTakenBack) {
  ASSERT_TRUE(bind("2-3").ok());
  const base::Result<PodCgroups> tree = PodCgroups::open(root_.path(), "");
  const base::Result<PodCgroup> cgroup = tree->find(kUid, kube::QosClass::kBurstable);
  ASSERT_TRUE(cgroup.ok());
  ASSERT_TRUE(unbind(*cgroup).ok());
  std::string line;
  std::ifstream file{pod_ / "cpuset.cpus"};
  std::getline(file, line);
  EXPECT_EQ(line, "");
}

// The kernel takes the list and grants less, when another program has restricted kubepods. The pod
// would run on fewer CPUs than its job was given.
TEST_F(CpusetFileTest, SaysWhatTheCgroupsAboveLeave) {
  std::ofstream{pod_ / "cpuset.cpus.effective"} << "0\n";
  EXPECT_THAT(message("0-1"), HasSubstr("leave 0"));
}

// Three nodes on which a set cannot be applied, each with its own sentence, since what an
// administrator can do differs.
TEST_F(CpusetFileTest, SaysThatThereIsNoControllerOrNoCgroupV2) {
  fs::remove(pod_ / "cpuset.cpus");
  EXPECT_THAT(message("0"), HasSubstr("no cpuset controller"));
  fs::remove(pod_ / "cgroup.freeze");
  EXPECT_THAT(message("0"), HasSubstr("not applied on cgroup v1"));
  fs::remove_all(pod_);
  EXPECT_EQ(bind("0").error().code, base::Code::kNotFound);
}

// A node of CPUs 0 to 3 and a pod that is on in every second slot.
class CpuSetsTest : public ::testing::Test {
 protected:
  CpuSetsTest() {
    node_.inputs().cpu_ids = "0-3";
    node_.add_pod("a", "a");
    node_.publish(node_.timetable({"a"}, {{0}, {}}));
  }
  // "" = it brings none along.
  void bring(const std::string& cpus) {
    auto& annotations = node_.pod("a").metadata.annotations;
    annotations.erase("kubegang.io/cpuset");
    if (!cpus.empty()) annotations["kubegang.io/cpuset"] = cpus;
    node_.step();
  }
  // Returns the complaint about the pod's set; "" if there is none.
  std::string note() const {
    const auto& notes = node_.cpu_notes();
    return notes.contains("default/a") ? notes.at("default/a") : "";
  }
  FakeNode node_;
};

// Programs count their CPUs as they start.
TEST_F(CpuSetsTest, BindsAPodAlsoWhileItStarts) {
  node_.pod("a").status.container_statuses[0].state = {};
  bring("2-3");
  EXPECT_EQ(node_.cgroup("a").cpus, "2-3");
  EXPECT_EQ(node_.view("a").standing, PodStanding::kSettling);
  EXPECT_EQ(note(), "");
  bring("0");
  EXPECT_EQ(node_.cgroup("a").cpus, "0");
}

// Where no jobs take turns there is no timetable, or one that lists no pods.
TEST_F(CpuSetsTest, BindsAPodThatNoTimetableLists) {
  node_.publish(node_.timetable({}, {{}}));
  bring("2-3");
  EXPECT_EQ(node_.cgroup("a").cpus, "2-3");
  node_.inputs().timetable.reset();
  bring("1");
  EXPECT_EQ(node_.cgroup("a").cpus, "1");
  EXPECT_TRUE(node_.runs("a"));
  EXPECT_THAT(node_.journal().bound, ElementsAre("uid-a"));
  bring("8");
  EXPECT_THAT(note(), HasSubstr("does not have: 8: it is not bound"));
}

// Only the agent's own sets go: those of other programs (a CPU manager, an administrator) stay.
TEST_F(CpuSetsTest, TakesASetBackThatIsNotWantedAnyMoreAndNoOther) {
  node_.cgroup("a").cpus = "1-2";  // by another program
  bring("");
  EXPECT_EQ(node_.cgroup("a").cpus, "1-2");
  bring("0");
  ASSERT_EQ(node_.cgroup("a").cpus, "0");
  bring("");
  EXPECT_EQ(node_.cgroup("a").cpus, "");
  EXPECT_EQ(note(), "");
  node_.cgroup("a").cpus = "3";  // by another program again
  node_.run_for(CpuSets::kLookEvery + milliseconds{20});
  EXPECT_EQ(node_.cgroup("a").cpus, "3");
}

// The journal names the pod before it is bound, so that the agent after this one can take it back.
TEST_F(CpuSetsTest, ARestartedAgentTakesASetBackThatTheOneBeforeHasSet) {
  node_.add_pod("b", "b");
  node_.cgroup("b").cpus = "2";  // by another program
  bring("0");
  ASSERT_EQ(node_.cgroup("a").cpus, "0");
  EXPECT_THAT(node_.journal().bound, ElementsAre("uid-a"));
  node_.restart_agent(/*pods_known=*/false);
  node_.step();
  EXPECT_EQ(node_.cgroup("a").cpus, "0");
  node_.pod("a").metadata.annotations.clear();
  node_.restart_agent();
  kube::NodeTimetable timetable = node_.timetable({"a", "b"}, {{0, 1}});
  node_.publish(timetable);
  node_.step();
  EXPECT_EQ(node_.cgroup("a").cpus, "");
  EXPECT_EQ(node_.cgroup("b").cpus, "2");
  node_.step();
  EXPECT_TRUE(node_.journal().bound.empty());
}

// Otherwise no agent could take the set back after a crash.
TEST_F(CpuSetsTest, BindsNothingThatTheJournalCannotName) {
  fs::create_directory(fs::path{node_.directory()} / "journal.next");  // where it is written first
  bring("0");
  EXPECT_EQ(node_.cgroup("a").cpus, "");
  fs::remove(fs::path{node_.directory()} / "journal.next");
  node_.run_for(milliseconds{1100});
  EXPECT_EQ(node_.cgroup("a").cpus, "0");
}

// A set that another program overwrites is made again at the next look. A cgroup that is not there
// yet is not a fault.
TEST_F(CpuSetsTest, KeepsItThereAndWaitsForItsCgroup) {
  node_.cgroup("a").removed = true;
  bring("1");
  EXPECT_EQ(note(), "");
  node_.cgroup("a").removed = false;
  node_.run_for(milliseconds{150});
  EXPECT_EQ(node_.cgroup("a").cpus, "1");
  node_.cgroup("a").cpus = "0-3";  // another program
  node_.run_for(CpuSets::kLookEvery + milliseconds{20});
  EXPECT_EQ(node_.cgroup("a").cpus, "1");
}

// A mistake in a CPU set must not keep a gang from its turns.
TEST_F(CpuSetsTest, SaysWhichCpusDoNotExistAndTheSwitchGoesOn) {
  bring("3-4");
  EXPECT_EQ(node_.cgroup("a").cpus, "3");
  EXPECT_THAT(note(), HasSubstr("does not have: 4: it is bound to 3 only"));
  bring("8-9");
  EXPECT_EQ(node_.cgroup("a").cpus, "3");
  EXPECT_THAT(note(), HasSubstr("does not have: 8-9: it is not bound"));
  bring("1-");
  EXPECT_THAT(note(), HasSubstr("not a list"));
  EXPECT_EQ(node_.view("a").standing, PodStanding::kControlled);
  EXPECT_TRUE(node_.runs("a"));
  node_.run_for(seconds{1});
  EXPECT_FALSE(node_.runs("a"));
}

// Anyone who may write pods can write the annotation.
TEST_F(CpuSetsTest, DoesNotTouchAPodThatIsNotOurs) {
  node_.pod("a").metadata.owner_references[0].kind = "ReplicaSet";
  bring("1");
  EXPECT_EQ(node_.cgroup("a").cpus, "");
}

// On a machine whose cgroup v2 has the cpuset controller.
TEST(CpuSetsReal, TheKernelBindsThePodAndLetsItGo) {
  const fs::path root = "/sys/fs/cgroup";
  std::string controllers;
  std::getline(std::ifstream{root / "cgroup.subtree_control"}, controllers);
  if ((" " + controllers + " ").find(" cpuset ") == std::string::npos) {
    GTEST_SKIP() << "SKIPPED: cgroup v2 here does not give the cpuset controller to its children";
  }
  const fs::path base = root / ("kubegang-cpuset-test-" + std::to_string(::getpid()));
  std::error_code error;
  if (!fs::create_directory(base, error)) GTEST_SKIP() << "SKIPPED: needs root";
  std::ofstream{base / "cgroup.subtree_control"} << "+cpuset";
  fs::create_directory(base / "kubepods");
  std::ofstream{base / "kubepods/cgroup.subtree_control"} << "+cpuset";
  const fs::path pod = base / "kubepods" / ("pod" + std::string{kUid});
  fs::create_directory(pod);
  const base::Result<PodCgroups> tree = PodCgroups::open(base, "");
  const base::Result<PodCgroup> cgroup = tree->find(kUid, kube::QosClass::kGuaranteed);
  ASSERT_TRUE(cgroup.ok());
  EXPECT_TRUE(bind_to_cpus(*cgroup, "0").ok());
  EXPECT_EQ(text_of(pod / "cpuset.cpus.effective"), "0");
  // Not every kernel lets the list of a cgroup with processes become empty.
  const pid_t process = ::fork();
  if (process == 0) {
    ::pause();
    ::_exit(0);
  }
  std::ofstream{pod / "cgroup.procs"} << process;
  const base::Status free = unbind(*cgroup);
  EXPECT_TRUE(free) << (free ? "" : free.error().message);
  EXPECT_EQ(text_of(pod / "cpuset.cpus.effective"),
            text_of(base / "kubepods/cpuset.cpus.effective"));
  ::kill(process, SIGKILL);
  ::waitpid(process, nullptr, 0);
  for (const fs::path& place : {pod, base / "kubepods", base}) fs::remove(place);
}

}  // namespace
}  // namespace agent
