// Pitfalls: signals, tracers and the kernel itself end or stop tasks that are frozen.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>

#include "node-agent/itest/pitfalls_fixture.h"

namespace agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::CgroupVersion;
using testing::eventually;
using testing::moves;
using testing::Progress;
using testing::stands_still;

// This difference is why a deleted pod stays thawed until it is gone on v1, and only for its grace
// time on v2 (freezer.md 4 rules 5 and 9). kubelet's last resort is SIGKILL: were it in vain, the
// pod would never be gone, nor its memory.
TEST_P(PitfallsTest, ASigkillEndsAFrozenTaskOnV2AndWaitsForTheThawOnV1) {
  const std::string pod = add_pod();
  const pid_t task = cgroups_->spawn(pod, [] {
    for (;;) ::pause();
  });
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  ::kill(task, SIGKILL);
  const auto ended = [&] { return ::waitpid(task, nullptr, WNOHANG) == task; };
  // On v1, 200 ms without an end are taken as "not before the thaw".
  if (GetParam() == CgroupVersion::kV2) {
    EXPECT_TRUE(eventually(ended, seconds{2}));
  } else {
    EXPECT_FALSE(eventually(ended, milliseconds{200}));
    run_everything();
    EXPECT_TRUE(eventually(ended, seconds{2}));
  }
}

// A handler is user code and needs a running task: without the thaw of a deleted pod it would miss
// its grace time.
TEST_P(PitfallsTest, ASigtermHandlerRunsOnceTheDeletedPodIsThawed) {
  const std::string pod = add_pod();
  static std::atomic<int>* handled = static_cast<std::atomic<int>*>(
      ::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
             -1, 0));
  handled->store(0);
  const pid_t task = cgroups_->spawn(pod, [] {
    ::signal(SIGTERM, [](int) { handled->fetch_add(1); });
    // 100 and not 1: the test can tell "the handler is set" from "the handler ran".
    handled->store(100);
    for (;;) ::pause();
  });
  ASSERT_TRUE(eventually([] { return handled->load() == 100; }));
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  ::kill(task, SIGTERM);
  EXPECT_FALSE(eventually([] { return handled->load() > 100; }, milliseconds{100}));
  // The pod has no turn in this cycle; only the rule for deleted pods thaws it.
  Assignment deleted = assignment({{}});
  deleted.pods[0].rule = ControlRule::kDeleted;
  submit(std::move(deleted));
  EXPECT_TRUE(eventually([] { return handled->load() == 101; }, milliseconds{500}));
  EXPECT_TRUE(has_state(0, FreezeState::kThawed));
}

// A fatal signal is delivered on v2 even to a frozen task; on v1 the task sees no signal before its
// thaw.
TEST_P(PitfallsTest, ASigtermWithoutAHandlerEndsAFrozenTaskOnV2AndWaitsForTheThawOnV1) {
  const std::string pod = add_pod();
  const pid_t task = cgroups_->spawn(pod, [] {
    for (;;) ::pause();
  });
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  ::kill(task, SIGTERM);
  const auto ended = [&] { return ::waitpid(task, nullptr, WNOHANG) == task; };
  if (GetParam() == CgroupVersion::kV1) {
    EXPECT_FALSE(eventually(ended, milliseconds{200}));
    run_everything();
  }
  EXPECT_TRUE(eventually(ended));
}

// The freeze belongs to the cgroup and not to its tasks: an empty cgroup keeps it, and a task that
// enters later would be stopped. Runtimes use cgroup.kill to end a container, so this is the way in
// which frozen pods often end.
TEST_P(PitfallsTest, CgroupKillEmptiesAFrozenPodAndItStaysFrozen) {
  if (GetParam() == CgroupVersion::kV1) GTEST_SKIP() << "SKIPPED: cgroup v1 has no cgroup.kill";
  const std::string pod = add_pod();
  const pid_t task = cgroups_->spawn(pod, [] {
    for (;;) ::pause();
  });
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  std::ofstream{cgroups_->root() + "/" + pod + "/cgroup.kill"} << "1";
  EXPECT_TRUE(eventually([&] { return ::waitpid(task, nullptr, WNOHANG) == task; }));
  EXPECT_TRUE(cgroups_->is_asked_frozen(pod));
  // An empty cgroup is thawed like any other.
  run_everything();
  EXPECT_TRUE(has_state(0, FreezeState::kThawed));
}

// Such a task is not running when the freeze comes, and does not stop once more for it. The kernel
// must count it as frozen all the same, or every pod with a debugger in it would be stuck.
TEST_P(PitfallsTest, AStoppedOrTracedMemberDoesNotHinderTheFreeze) {
  const std::string pod = add_pod();
  Progress& progress = cgroups_->spawn_counter(pod, milliseconds{1});
  const pid_t stopped = cgroups_->spawn(pod, [] {
    for (;;) ::pause();
  });
  ::kill(stopped, SIGSTOP);
  const pid_t traced = cgroups_->spawn(pod, [] {
    for (;;) ::pause();
  });
  EXPECT_EQ(::ptrace(PTRACE_SEIZE, traced, nullptr, nullptr), 0);
  EXPECT_EQ(::ptrace(PTRACE_INTERRUPT, traced, nullptr, nullptr), 0);
  expect_freeze_and_thaw(progress);
  ::ptrace(PTRACE_DETACH, traced, nullptr, nullptr);
}

// A debugger must neither thaw the pod nor make it count as stuck. SEIZE with INTERRUPT stops the
// task at once on v2; ATTACH sends SIGSTOP, which waits for the thaw on both.
TEST_P(PitfallsTest, ATracerThatComesToAFrozenTaskStopsItOnV2AtOnceAndOnV1AfterTheThaw) {
  const std::string pod = add_pod();
  Progress& progress = cgroups_->spawn_counter(pod, milliseconds{1});
  const auto pause_for_ever = [] {
    for (;;) ::pause();
  };
  const pid_t seized = cgroups_->spawn(pod, pause_for_ever);
  const pid_t attached = cgroups_->spawn(pod, pause_for_ever);
  const auto stops = [](pid_t task, base::Duration limit = seconds{10}) {
    return eventually(
        [&] {
          int status = 0;
          return ::waitpid(task, &status, WNOHANG | __WALL) == task && WIFSTOPPED(status);
        },
        limit);
  };
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  ASSERT_EQ(::ptrace(PTRACE_SEIZE, seized, nullptr, nullptr), 0);
  ASSERT_EQ(::ptrace(PTRACE_INTERRUPT, seized, nullptr, nullptr), 0);
  ASSERT_EQ(::ptrace(PTRACE_ATTACH, attached, nullptr, nullptr), 0);
  const bool at_once = GetParam() == CgroupVersion::kV2;
  EXPECT_EQ(stops(seized, at_once ? seconds{10} : milliseconds{200}), at_once);
  EXPECT_TRUE(stands_still(progress));
  EXPECT_TRUE(has_state(0, FreezeState::kFrozen));
  run_everything();
  EXPECT_TRUE(moves(progress));
  EXPECT_TRUE(has_state(0, FreezeState::kThawed));
  EXPECT_TRUE(at_once || stops(seized));
  EXPECT_TRUE(stops(attached));
  ::ptrace(PTRACE_DETACH, seized, nullptr, nullptr);
  ::ptrace(PTRACE_DETACH, attached, nullptr, nullptr);
}

// A limit of the memory of the processes that join it: a cgroup of v1's memory controller. It is
// another controller's hierarchy, so the processes stay in the pod's freezer. It is small, so that
// a test can use it up without harm to the machine.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::size_t bytes) {
    std::ifstream mounts{"/proc/self/mounts"};
    for (std::string device, path, type, options, rest; mounts >> device >> path >> type >> options;
         std::getline(mounts, rest)) {
      if (type != "cgroup" || ("," + options + ",").find(",memory,") == std::string::npos) continue;
      path_ = path + "/kubegang-test-memory-" + std::to_string(::getpid());
      break;
    }
    if (!path_.empty() && ::mkdir(path_.c_str(), 0755) != 0) path_.clear();
    if (path_.empty()) return;
    // Without swap: a frozen task's pages would go there instead, and nothing would have to be
    // killed.
    there_ =
        write("memory.limit_in_bytes", std::to_string(bytes)) && write("memory.swappiness", "0");
  }
  ~MemoryLimit() {
    if (!path_.empty()) eventually([&] { return ::rmdir(path_.c_str()) == 0; });
  }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

  bool is_there() const { return there_; }
  void join() const { write("cgroup.procs", "0"); }

 private:
  bool write(const std::string& file, const std::string& text) const {
    std::ofstream out{path_ + "/" + file};
    out << text;
    out.flush();
    return out.good();
  }
  std::string path_;
  bool there_ = false;
};

// Takes memory that is really there, not only promised, and says when it has it.
[[noreturn]] void occupy(std::size_t bytes, std::atomic<int>& done) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory != MAP_FAILED) done.store(1);
  for (;;) ::pause();
}

// A frozen task still has its memory. The kernel must be able to take it back, or a frozen pod
// could bring the node down; and the pod must not count as thawed for it. Two processes of 40 MiB
// under a limit of 64 MiB: the frozen one in the pod, then one outside.
TEST_P(PitfallsTest, AFrozenTaskThatTheKernelKillsForItsMemoryIsGoneAndItsPodGoesOn) {
  constexpr std::size_t kMebibyte = 1U << 20U;
  const MemoryLimit limit{64 * kMebibyte};
  if (!limit.is_there()) {
    GTEST_SKIP() << "SKIPPED: no cgroup with a limit of memory beside the freezer can be made here "
                    "(needs the memory controller of cgroup v1)";
  }
  const std::string pod = add_pod();
  cgroups_->make("outside");
  static std::atomic<int>* occupied = static_cast<std::atomic<int>*>(
      ::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
             -1, 0));
  occupied->store(0);
  const pid_t big = cgroups_->spawn(pod, [&limit] {
    limit.join();
    std::ofstream{"/proc/self/oom_score_adj"} << 1000;  // the first to go
    occupy(40 * kMebibyte, *occupied);
  });
  ASSERT_TRUE(eventually([] { return occupied->load() == 1; }));
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  occupied->store(0);
  const pid_t other = cgroups_->spawn("outside", [&limit] {
    limit.join();
    occupy(40 * kMebibyte, *occupied);
  });
  int status = 0;
  EXPECT_TRUE(eventually([&] { return ::waitpid(big, &status, WNOHANG) == big; }));
  // 64 MiB cannot hold twice 40 MiB, so the second process makes the kernel kill the frozen one,
  // which has the highest score.
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_TRUE(eventually([] { return occupied->load() == 1; }));
  EXPECT_EQ(controls_[0]->state.load(), FreezeState::kFrozen);
  EXPECT_TRUE(cgroups_->is_asked_frozen(pod));
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
  run_everything();
  EXPECT_TRUE(has_state(0, FreezeState::kThawed));
}

}  // namespace
}  // namespace agent
