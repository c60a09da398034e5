// The pitfall matrix (design/freezer.md 2.5) with real processes in real cgroups: what the kernel
// does, and that the switcher, on its own thread, copes with it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <thread>

#include "node-agent/pod_cgroups.h"
#include "node-agent/switcher.h"
#include "node-agent/testing/real_cgroups.h"
#include "node-agent/testing/temporary_directory.h"

namespace agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::CgroupVersion;
using testing::eventually;
using testing::moves;
using testing::Progress;
using testing::RealCgroups;
using testing::stands_still;

class PitfallsTest : public ::testing::TestWithParam<CgroupVersion> {
 protected:
  void SetUp() override {
    if (const auto missing = RealCgroups::missing(GetParam())) {
      GTEST_SKIP() << "SKIPPED: " << *missing;
    }
    cgroups_ = std::make_unique<RealCgroups>(GetParam());
    tree_ = std::make_unique<PodCgroups>(*PodCgroups::open(cgroups_->root(), ""));
    switcher_ = std::make_unique<Switcher>(clock_, beat_, SwitcherOptions{});
    ASSERT_TRUE(switcher_->start().ok());
  }
  void TearDown() override {
    if (!switcher_) return;
    run_everything();
    switcher_.reset();
  }

  // A pod under control; the first one added has index 0 in the timetables.
  std::string add_pod() {
    const std::string uid = "pod-" + std::to_string(controls_.size());
    const std::string path = cgroups_->add_pod(uid);
    const base::Result<PodCgroup> cgroup = tree_->find(uid, kube::QosClass::kBurstable);
    CHECK(cgroup.ok());
    base::Result<std::unique_ptr<Freezer>> freezer = open_freezer(*cgroup);
    CHECK(freezer.ok());
    controls_.push_back(std::make_shared<PodControl>(
        PodIdentity{.uid = uid, .name = uid, .path = path}, *std::move(freezer), Found::kRunning));
    return path;
  }
  Assignment assignment(std::vector<timetable::PodSet> cycle,
                        base::Duration slice = milliseconds{100}) {
    Assignment assignment;
    assignment.table = {.slice = slice, .pods_count = controls_.size(), .cycle = std::move(cycle)};
    for (std::size_t i = 0; i < controls_.size(); ++i) {
      assignment.pods.push_back({.control = controls_[i],
                                 .index = static_cast<std::uint16_t>(i),
                                 .rule = Rule::kTimetable});
    }
    return assignment;
  }
  void submit(Assignment assignment) {
    const std::uint64_t number = switcher_->submit(std::move(assignment));
    ASSERT_TRUE(eventually([&] { return switcher_->counters().obeyed_assignment >= number; }));
  }
  void freeze_all() { submit(assignment({{}})); }
  void run_everything() {
    Assignment all = assignment({{}});
    all.everything_runs = true;
    submit(std::move(all));
  }
  bool has_state(std::size_t pod, FreezeState state, base::Duration limit = seconds{5}) {
    return eventually([&] { return controls_[pod]->state.load() == state; }, limit);
  }
  // What the agent wants of pod 0 happens while `disturb`ed, and afterwards it runs.
  void expect_freeze_and_thaw(Progress& progress) {
    freeze_all();
    EXPECT_TRUE(has_state(0, FreezeState::kFrozen));
    EXPECT_TRUE(stands_still(progress));
    run_everything();
    EXPECT_TRUE(moves(progress));
    EXPECT_TRUE(has_state(0, FreezeState::kThawed));
  }

  RealSwitchClock clock_;
  std::atomic<std::uint64_t> beat_{0};
  std::unique_ptr<RealCgroups> cgroups_;
  std::unique_ptr<PodCgroups> tree_;
  std::unique_ptr<Switcher> switcher_;
  std::vector<std::shared_ptr<PodControl>> controls_;
};

TEST_P(PitfallsTest, BusyAndSleepingTasksStopAndGoOn) {
  const std::string pod = add_pod();
  Progress& busy = cgroups_->spawn_counter(pod);
  Progress& sleeping = cgroups_->spawn_counter(pod, milliseconds{1});
  expect_freeze_and_thaw(busy);
  EXPECT_TRUE(moves(sleeping));
}

TEST_P(PitfallsTest, TwoGangsNeverRunAtTheSameTime) {
  // Method: each counter's moves between two looks 5 ms apart, in the middle of the slots; in no
  // pair of looks may both have moved, but in one that a boundary lies in.
  const std::string a = add_pod();
  const std::string b = add_pod();
  Progress& of_a = cgroups_->spawn_counter(a, milliseconds{1});
  Progress& of_b = cgroups_->spawn_counter(b, milliseconds{1});
  constexpr base::Duration kSlice = milliseconds{100};
  // A busy machine may take longer than 20 ms to let a task stop; how long it takes is a
  // benchmark's affair.
  Assignment turns = assignment({{0}, {1}}, kSlice);
  turns.barrier = milliseconds{90};
  submit(std::move(turns));
  std::this_thread::sleep_for(kSlice);
  int turns_of_a = 0;
  int turns_of_b = 0;
  const base::Instant end = clock_.wall() + seconds{3};
  while (clock_.wall() < end) {
    const base::Instant before = clock_.wall();
    const std::uint64_t a_before = of_a.count.load();
    const std::uint64_t b_before = of_b.count.load();
    std::this_thread::sleep_for(milliseconds{5});
    const bool a_moved = of_a.count.load() != a_before;
    const bool b_moved = of_b.count.load() != b_before;
    const base::Instant after = clock_.wall();
    if (base::slot_of(before, kSlice) != base::slot_of(after, kSlice)) continue;
    if (before - base::slot_begin(base::slot_of(before, kSlice), kSlice) < milliseconds{20}) {
      continue;  // The switch itself may be going on on a loaded machine.
    }
    const bool even = base::slot_of(before, kSlice) % 2 == 0;
    EXPECT_FALSE(even ? b_moved : a_moved);
    if (even && a_moved) ++turns_of_a;
    if (!even && b_moved) ++turns_of_b;
  }
  EXPECT_GT(turns_of_a, 20);
  EXPECT_GT(turns_of_b, 20);
  EXPECT_EQ(switcher_->counters().overlap_micros.load(), 0U);
}

TEST_P(PitfallsTest, AThousandTasksFreeze) {
  const std::string pod = add_pod();
  for (int i = 0; i < 20; ++i) {
    cgroups_->spawn(pod, [] {
      for (int child = 0; child < 49; ++child) {
        if (::fork() == 0) break;
      }
      for (;;) ::usleep(50'000);
    });
  }
  ASSERT_TRUE(eventually([&] { return cgroups_->processes_count(pod) >= 1000; }));
  Progress& progress = cgroups_->spawn_counter(pod, milliseconds{1});
  expect_freeze_and_thaw(progress);
}

TEST_P(PitfallsTest, AForkBombFreezes) {
  const std::string pod = add_pod();
  Progress& progress = cgroups_->spawn_counter(pod, milliseconds{1});
  for (int i = 0; i < 4; ++i) {
    cgroups_->spawn(pod, [] {
      ::signal(SIGCHLD, SIG_IGN);
      for (;;) {  // each child forks on for a while: always about 60 of them
        for (int generation = 0; ::fork() == 0; ++generation) {
          if (generation == 15) ::_exit(0);
        }
        ::usleep(1'000);
        if (::getppid() == 1) ::_exit(0);
        ::waitpid(-1, nullptr, 0);
      }
    });
  }
  for (int round = 0; round < 5; ++round) expect_freeze_and_thaw(progress);
}

TEST_P(PitfallsTest, ASigkillEndsAFrozenTaskOnV2AndWaitsForTheThawOnV1) {
  const std::string pod = add_pod();
  const pid_t task = cgroups_->spawn(pod, [] {
    for (;;) ::pause();
  });
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  ::kill(task, SIGKILL);
  const auto ended = [&] { return ::waitpid(task, nullptr, WNOHANG) == task; };
  if (GetParam() == CgroupVersion::kV2) {
    EXPECT_TRUE(eventually(ended, seconds{2}));
  } else {
    EXPECT_FALSE(eventually(ended, milliseconds{200}));
    run_everything();
    EXPECT_TRUE(eventually(ended, seconds{2}));
  }
}

TEST_P(PitfallsTest, ASigtermHandlerRunsOnceTheDeletedPodIsThawed) {
  const std::string pod = add_pod();
  static std::atomic<int>* handled = static_cast<std::atomic<int>*>(
      ::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
             -1, 0));
  handled->store(0);
  const pid_t task = cgroups_->spawn(pod, [] {
    ::signal(SIGTERM, [](int) { handled->fetch_add(1); });
    handled->store(100);
    for (;;) ::pause();
  });
  ASSERT_TRUE(eventually([] { return handled->load() == 100; }));
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  ::kill(task, SIGTERM);
  EXPECT_FALSE(eventually([] { return handled->load() > 100; }, milliseconds{100}));
  Assignment deleted = assignment({{}});
  deleted.pods[0].rule = Rule::kDeleted;
  submit(std::move(deleted));
  EXPECT_TRUE(eventually([] { return handled->load() == 101; }, milliseconds{500}));
  EXPECT_TRUE(has_state(0, FreezeState::kThawed));
}

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
  run_everything();
  EXPECT_TRUE(has_state(0, FreezeState::kThawed));
}

TEST_P(PitfallsTest, ATaskThatIsMovedOutRunsAgainAndThePodStaysFrozen) {
  const std::string pod = add_pod();
  cgroups_->make("outside");
  Progress& progress = cgroups_->spawn_counter(pod, milliseconds{1});
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  std::ifstream procs{cgroups_->root() + "/" + pod + "/cgroup.procs"};
  pid_t task = 0;
  ASSERT_TRUE(procs >> task);
  std::ofstream{cgroups_->root() + "/outside/cgroup.procs"} << task;
  EXPECT_TRUE(moves(progress));
  EXPECT_TRUE(has_state(0, FreezeState::kFrozen));
}

TEST_P(PitfallsTest, ATaskThatMovesItselfInGoesOnWhenThePodIsThawed) {
  const std::string pod = add_pod();
  cgroups_->make("outside");
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  static std::atomic<int>* entered = static_cast<std::atomic<int>*>(
      ::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
             -1, 0));
  entered->store(0);
  const std::string procs = cgroups_->root() + "/" + pod + "/cgroup.procs";
  cgroups_->spawn("outside", [procs] {
    std::ofstream{procs} << ::getpid();
    entered->store(1);
    for (;;) ::pause();
  });
  EXPECT_FALSE(eventually([] { return entered->load() == 1; }, milliseconds{200}));
  run_everything();
  EXPECT_TRUE(eventually([] { return entered->load() == 1; }));
}

TEST_P(PitfallsTest, ANewChildCgroupOfAFrozenPodIsFrozenAndThawingItChangesNothing) {
  const std::string pod = add_pod();
  cgroups_->make("outside");
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  cgroups_->make(pod + "/container");
  EXPECT_FALSE(cgroups_->is_asked_frozen(pod + "/container"));
  EXPECT_TRUE(eventually([&] { return cgroups_->is_frozen(pod + "/container"); }));
  Progress& progress = cgroups_->spawn_counter("outside", milliseconds{1});
  std::ifstream procs{cgroups_->root() + "/outside/cgroup.procs"};
  pid_t task = 0;
  ASSERT_TRUE(procs >> task);
  std::ofstream{cgroups_->root() + "/" + pod + "/container/cgroup.procs"} << task;
  EXPECT_TRUE(eventually([&] { return stands_still(progress, milliseconds{20}); }));
  cgroups_->set_frozen(pod + "/container", false);
  EXPECT_TRUE(stands_still(progress));
  run_everything();
  EXPECT_TRUE(moves(progress));
}

// A small file system of its own that stands still while the test wants it.
class FrozenFileSystem {
 public:
  explicit FrozenFileSystem(const std::string& directory) : mount_{directory + "/mount"} {
    const std::string image = directory + "/image";
    const std::string make = "mkdir " + mount_ + " && truncate -s 16M " + image +
                             " && mkfs.ext2 -q " + image + " && mount -o loop " + image + " " +
                             mount_ + " >/dev/null 2>&1";
    mounted_ = std::system((make + " 2>/dev/null").c_str()) == 0;
    if (mounted_) handle_ = FileDescriptor{::open(mount_.c_str(), O_RDONLY | O_CLOEXEC)};
  }
  ~FrozenFileSystem() {
    if (!mounted_) return;
    thaw();
    handle_.reset();
    // Lazily: a task may still have a file open.
    [[maybe_unused]] const int status = std::system(("umount -l " + mount_).c_str());
  }
  FrozenFileSystem(const FrozenFileSystem&) = delete;
  FrozenFileSystem& operator=(const FrozenFileSystem&) = delete;

  bool is_there() const { return mounted_ && handle_.is_open(); }
  const std::string& path() const { return mount_; }
  bool freeze() { return ::ioctl(handle_.get(), FIFREEZE, 0) == 0; }
  bool thaw() { return ::ioctl(handle_.get(), FITHAW, 0) == 0; }

 private:
  std::string mount_;
  bool mounted_ = false;
  FileDescriptor handle_;
};

TEST_P(PitfallsTest, AWriterToAFrozenFileSystemIsStuckOnV2AndHoldsUpNobody) {
  testing::TemporaryDirectory directory;
  FrozenFileSystem files{directory.path()};
  if (!files.is_there()) {
    GTEST_SKIP()
        << "SKIPPED: no file system can be made and mounted here (mkfs.ext2, loop devices)";
  }
  const std::string writer = add_pod();
  const std::string other = add_pod();
  const std::string file = files.path() + "/file";
  Progress& beside = cgroups_->spawn_counter(writer, milliseconds{1});
  Progress& incoming = cgroups_->spawn_counter(other, milliseconds{1});
  const pid_t task = cgroups_->spawn(writer, [file] {
    const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    for (;;) {
      [[maybe_unused]] const ssize_t written = ::pwrite(fd, "x", 1, 0);
      ::usleep(1'000);
    }
  });
  submit(assignment({{0}}));
  ASSERT_TRUE(has_state(1, FreezeState::kFrozen));
  ASSERT_TRUE(eventually([&] { return ::access(file.c_str(), F_OK) == 0; }));
  ASSERT_TRUE(files.freeze());
  ASSERT_TRUE(eventually([&] {  // until the writer waits for the file system
    std::ifstream stat{"/proc/" + std::to_string(task) + "/stat"};
    std::string words;
    std::getline(stat, words);
    return words.find(") D ") != std::string::npos;
  }));
  submit(assignment({{1}}));
  EXPECT_TRUE(moves(incoming));
  EXPECT_TRUE(eventually([&] { return stands_still(beside, milliseconds{20}); }));
  if (GetParam() == CgroupVersion::kV2) {
    EXPECT_TRUE(has_state(0, FreezeState::kStuck, seconds{10}));
    EXPECT_TRUE(cgroups_->is_asked_frozen(writer));
  } else {
    EXPECT_TRUE(has_state(0, FreezeState::kFrozen));
  }
  ASSERT_TRUE(files.thaw());
  EXPECT_TRUE(has_state(0, FreezeState::kFrozen, seconds{10}));
  run_everything();
  EXPECT_TRUE(moves(beside));
}

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

// A limit of the memory of the processes that join it: a cgroup of v1's memory controller.
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

[[noreturn]] void occupy(std::size_t bytes, std::atomic<int>& done) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory != MAP_FAILED) done.store(1);
  for (;;) ::pause();
}

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
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_TRUE(eventually([] { return occupied->load() == 1; }));
  EXPECT_EQ(controls_[0]->state.load(), FreezeState::kFrozen);
  EXPECT_TRUE(cgroups_->is_asked_frozen(pod));
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
  run_everything();
  EXPECT_TRUE(has_state(0, FreezeState::kThawed));
}

TEST_P(PitfallsTest, AChildCgroupThatSomebodyElseFrozeStaysFrozen) {
  const std::string pod = add_pod();
  cgroups_->make(pod + "/container");
  Progress& of_child = cgroups_->spawn_counter(pod + "/container", milliseconds{1});
  Progress& of_pod =
      GetParam() == CgroupVersion::kV1 ? cgroups_->spawn_counter(pod, milliseconds{1}) : of_child;
  cgroups_->set_frozen(pod + "/container", true);
  ASSERT_TRUE(eventually([&] { return cgroups_->is_frozen(pod + "/container"); }));
  freeze_all();
  EXPECT_TRUE(has_state(0, FreezeState::kFrozen));
  run_everything();
  EXPECT_TRUE(stands_still(of_child));
  EXPECT_TRUE(cgroups_->is_asked_frozen(pod + "/container"));
  cgroups_->set_frozen(pod + "/container", false);
  EXPECT_TRUE(moves(of_child));
  EXPECT_TRUE(moves(of_pod));
}

TEST_P(PitfallsTest, ATaskThatEntersAFrozenPodFreezes) {
  const std::string pod = add_pod();
  cgroups_->make("outside");
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  Progress& progress = cgroups_->spawn_counter("outside", milliseconds{1});
  ASSERT_TRUE(moves(progress));
  // Find it and move it in, as `kubectl exec` would through the runtime.
  std::ifstream procs{cgroups_->root() + "/outside/cgroup.procs"};
  pid_t task = 0;
  ASSERT_TRUE(procs >> task);
  std::ofstream{cgroups_->root() + "/" + pod + "/cgroup.procs"} << task;
  EXPECT_TRUE(eventually([&] { return stands_still(progress, milliseconds{20}); }));
  EXPECT_TRUE(has_state(0, FreezeState::kFrozen));
  run_everything();
  EXPECT_TRUE(moves(progress));
}

TEST_P(PitfallsTest, ACgroupThatIsRemovedUnderItsHandsIsGone) {
  const std::string pod = add_pod();
  add_pod();
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  ASSERT_TRUE(cgroups_->remove(pod));
  EXPECT_TRUE(has_state(0, FreezeState::kGone));
  run_everything();
  EXPECT_TRUE(has_state(1, FreezeState::kThawed));
}

TEST_P(PitfallsTest, AFreezeThatSomebodyElseUndidIsMadeAgain) {
  const std::string pod = add_pod();
  Progress& progress = cgroups_->spawn_counter(pod, milliseconds{1});
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  cgroups_->set_frozen(pod, false);
  EXPECT_TRUE(eventually([&] { return cgroups_->is_frozen(pod); }, seconds{3}));
  EXPECT_TRUE(stands_still(progress));
}

TEST_P(PitfallsTest, AForeignFreezeIsLeftAlone) {
  const std::string pod = add_pod();
  const std::string other = add_pod();
  cgroups_->spawn_counter(pod, milliseconds{1});
  cgroups_->set_frozen(pod, true);
  controls_[0] =
      std::make_shared<PodControl>(controls_[0]->identity, controls_[0]->freezer, Found::kForeign);
  submit(assignment({{0}, {1}}));
  std::this_thread::sleep_for(milliseconds{1500});
  EXPECT_TRUE(cgroups_->is_asked_frozen(pod));
  EXPECT_EQ(controls_[0]->state.load(), FreezeState::kForeign);
  run_everything();
  EXPECT_TRUE(cgroups_->is_asked_frozen(pod));
  cgroups_->set_frozen(pod, false);
  EXPECT_TRUE(has_state(0, FreezeState::kThawed));
}

TEST_P(PitfallsTest, TasksInLongSystemCallsAreLateAndNothingElseIs) {
  // Two processes that populate 256 MiB again and again: a freeze waits for the call to end.
  const std::string slow = add_pod();
  const std::string quick = add_pod();
  for (int i = 0; i < 2; ++i) {
    cgroups_->spawn(slow, [] {
      constexpr std::size_t kBytes = 256U << 20U;
      for (;;) {
        void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (memory != MAP_FAILED) ::munmap(memory, kBytes);
      }
    });
  }
  Progress& progress = cgroups_->spawn_counter(quick, milliseconds{1});
  std::this_thread::sleep_for(milliseconds{200});
  submit(assignment({{1}}));
  EXPECT_TRUE(moves(progress, seconds{1}));  // the barrier ends after 20 ms
  EXPECT_TRUE(has_state(0, FreezeState::kFrozen, seconds{10}));
}

TEST_P(PitfallsTest, TwoHundredPodsTakeTurns) {
  std::vector<Progress*> progress;
  timetable::PodSet even;
  timetable::PodSet odd;
  for (std::uint16_t i = 0; i < 200; ++i) {
    const std::string pod = add_pod();
    (i % 2 == 0 ? even : odd).push_back(i);
    if (i < 8) progress.push_back(&cgroups_->spawn_counter(pod, milliseconds{5}));
  }
  submit(assignment({even, odd}, milliseconds{200}));
  std::this_thread::sleep_for(milliseconds{1500});
  submit(assignment({even}, milliseconds{200}));
  EXPECT_TRUE(eventually([&] {
    for (std::size_t i = 0; i < 200; ++i) {
      if (cgroups_->is_asked_frozen(controls_[i]->identity.path) != (i % 2 == 1)) return false;
    }
    return true;
  }));
  EXPECT_TRUE(stands_still(*progress[1]));
  EXPECT_TRUE(moves(*progress[0]));
}

TEST_P(PitfallsTest, ADeadSwitcherLeavesPodsAsTheyAre) {
  const std::string pod = add_pod();
  Progress& progress = cgroups_->spawn_counter(pod, milliseconds{1});
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  switcher_.reset();
  EXPECT_TRUE(stands_still(progress));
  EXPECT_TRUE(cgroups_->is_frozen(pod));
}

INSTANTIATE_TEST_SUITE_P(Real, PitfallsTest,
                         ::testing::Values(CgroupVersion::kV2, CgroupVersion::kV1),
                         [](const auto& version) { return to_string(version.param); });

}  // namespace
}  // namespace agent
