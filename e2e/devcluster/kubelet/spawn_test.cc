// With real processes; the cgroup tests need a writable hierarchy.
#include "e2e/devcluster/kubelet/spawn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace devcluster {
namespace {

using testing::HasSubstr;

// Goal: a container's process has exactly what its spec says and nothing of this program, and is in
// its cgroup from its first instruction on; a process outside would never be frozen with its pod.
class Spawn : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "spawn-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // Makes a shell script in the test's folder, its output in "out" there.
  SpawnSpec shell(const std::string& script) const {
    return {.argv = {"sh", "-c", script},
            .environment = {"PATH=/usr/bin:/bin", "NAME=value"},
            .working_dir = directory_,
            .output_path = directory_ + "/out"};
  }
  std::string output() const {
    std::ifstream in{directory_ + "/out"};
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  // Waits without an end: a test that hangs is ended by the runner.
  static ExitStatus wait_for(const Child& child) {
    pollfd fd{child.pidfd.get(), POLLIN, 0};
    ::poll(&fd, 1, -1);
    return reap(child).value_or(ExitStatus{.exit_code = -1});
  }

  std::string directory_;
};

// Standard output and standard error go into one file, in the order in which they are written.
TEST_F(Spawn, RunsTheCommandWithItsEnvironmentDirectoryAndOutput) {
  const auto child = spawn(shell("echo $NAME; pwd; echo problem >&2; exit 3"));
  ASSERT_TRUE(child.ok()) << child.error().message;
  EXPECT_EQ(wait_for(*child), (ExitStatus{.exit_code = 3}));
  EXPECT_EQ(output(), "value\n" + directory_ + "\nproblem\n");
}

// A pod has its own paths and host name, and the machine keeps its
// own.
TEST_F(Spawn, HasMountsAndAHostNameOfItsOwn) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to mount";
  std::ofstream{directory_ + "/inside"} << "inside\n";
  std::ofstream{directory_ + "/place"} << "outside\n";
  SpawnSpec spec = shell("cat place; uname -n");
  spec.mounts = {{directory_ + "/inside", directory_ + "/place"}};
  spec.hostname = "n1";
  const auto child = spawn(spec);
  ASSERT_TRUE(child.ok()) << child.error().message;
  (void)wait_for(*child);
  EXPECT_EQ(output(), "inside\nn1\n");
  const auto other = spawn(shell("cat place"));
  (void)wait_for(*other);
  EXPECT_EQ(output(), "inside\nn1\noutside\n");
  spec.mounts[0].to = directory_ + "/missing";
  EXPECT_THAT(spawn(spec).error().message, HasSubstr("mounts and host name"));
}

// A killed process must not look as if it had exited by itself.
TEST_F(Spawn, ReportsTheSignalThatEndedTheProcess) {
  const auto child = spawn(shell("kill -TERM $$"));
  ASSERT_TRUE(child.ok());
  // 128 + 15, as a shell and kubelet count.
  EXPECT_EQ(wait_for(*child), (ExitStatus{.exit_code = 143, .signal = SIGTERM}));
}

// A signal that is ignored here would stay ignored in the program: exec resets handlers only.
TEST_F(Spawn, HasDefaultHandlersAndNothingBlocked) {
  ::signal(SIGPIPE, SIG_IGN);
  const auto child = spawn(shell("grep -E 'SigBlk|SigIgn' /proc/self/status"));
  ASSERT_TRUE(child.ok());
  wait_for(*child);
  EXPECT_THAT(output(), HasSubstr("SigBlk:\t0000000000000000"));
  EXPECT_THAT(output(), HasSubstr("SigIgn:\t0000000000000000"));
}

// An inherited descriptor may keep a pipe open, such as the guardian's lifeline, and then the
// guardian would never notice that the devcluster is gone.
TEST_F(Spawn, InheritsNoDescriptorOfOurs) {
  const auto child = spawn(shell("ls /proc/self/fd | wc -l"));
  ASSERT_TRUE(child.ok());
  wait_for(*child);
  EXPECT_EQ(output(), "4\n");  // 0, 1, 2 and the one that ls reads the directory with
}

// The words of a container runtime, which users know and search for.
TEST_F(Spawn, SaysThatACommandIsNotFound) {
  SpawnSpec spec = shell("");
  spec.argv = {"no-such-program"};
  const auto child = spawn(spec);
  ASSERT_FALSE(child.ok());
  EXPECT_EQ(child.error().message, "exec: \"no-such-program\": executable file not found in $PATH");
}

// The step that failed in the child is named: here exec itself, then the folder.
TEST_F(Spawn, SaysWhyExecFailed) {
  SpawnSpec spec = shell("");
  spec.argv = {"/dev/null"};
  const auto child = spawn(spec);
  ASSERT_FALSE(child.ok());
  EXPECT_EQ(child.error().code, base::Code::kPermissionDenied);
  spec = shell("true");
  spec.working_dir = "/no/such/directory";
  EXPECT_THAT(spawn(spec).error().message, HasSubstr("chdir to \"/no/such/directory\""));
}

class SpawnIntoCgroup : public Spawn, public testing::WithParamInterface<os::CgroupVersion> {};

// A process in the background must be found, too: the cgroup has all of them, the PID only the
// first.
TEST_P(SpawnIntoCgroup, IsThereBeforeItsProgramBegins) {
  const auto root =
      os::make_cgroup_root(GetParam(), "kubegang-spawn-test-" + std::to_string(getpid()));
  if (!root.ok()) GTEST_SKIP() << root.error().message;
  SpawnSpec spec = shell("cat /proc/self/cgroup; sleep 1000 & sleep 1000");
  spec.cgroup = os::CgroupRoot{root->version, root->path + "/pod/container"};
  ASSERT_TRUE(os::make_cgroup(spec.cgroup->path).ok());
  const auto child = spawn(spec);
  ASSERT_TRUE(child.ok()) << child.error().message;
  EXPECT_FALSE(os::processes_below(root->path).empty());
  // Kills everything below, which the child's exit status shows.
  EXPECT_TRUE(os::destroy_cgroup(root->version, root->path, std::chrono::seconds{5}).ok());
  EXPECT_EQ(wait_for(*child), (ExitStatus{.exit_code = 137, .signal = SIGKILL}));
  EXPECT_FALSE(os::cgroup_exists(root->path));
}

// At the end of a demo pods are mostly frozen; processes that survived would hold their cgroup
// forever.
TEST_P(SpawnIntoCgroup, FrozenProcessesDieWhenTheCgroupIsDestroyed) {
  const auto root =
      os::make_cgroup_root(GetParam(), "kubegang-spawn-test-" + std::to_string(getpid()));
  if (!root.ok()) GTEST_SKIP() << root.error().message;
  SpawnSpec spec = shell("sleep 1000");
  spec.cgroup = os::CgroupRoot{root->version, root->path + "/pod"};
  ASSERT_TRUE(os::make_cgroup(spec.cgroup->path).ok());
  const auto child = spawn(spec);
  ASSERT_TRUE(child.ok()) << child.error().message;
  // In the freezer of cgroup v1 a frozen process takes no signal, not even SIGKILL, until it is
  // thawed.
  const bool v1 = root->version == os::CgroupVersion::kV1;
  std::ofstream{root->path + (v1 ? "/pod/freezer.state" : "/pod/cgroup.freeze")}
      << (v1 ? "FROZEN" : "1");
  EXPECT_TRUE(os::destroy_cgroup(root->version, root->path, std::chrono::seconds{5}).ok());
  wait_for(*child);
}

INSTANTIATE_TEST_SUITE_P(Versions, SpawnIntoCgroup,
                         testing::Values(os::CgroupVersion::kV1, os::CgroupVersion::kV2),
                         [](const auto& version) { return std::string{to_string(version.param)}; });

}  // namespace
}  // namespace devcluster
