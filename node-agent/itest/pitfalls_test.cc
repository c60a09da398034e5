// The pitfall matrix (design/freezer.md 2.5) with real processes in real cgroups: what the kernel
// does, and that the switcher, on its own thread, copes with it.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
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

// Processes of the pod that wait in one system call each. What it said is in memory that they share
// with the test: 0 when it ended well, else the errno.
class WaitingCalls {
 public:
  static constexpr int kStillThere = -1;
  static constexpr std::size_t kCallsMax = 8;

  WaitingCalls(const RealCgroups& cgroups, std::string pod)
      : cgroups_{cgroups}, pod_{std::move(pod)} {
    void* memory =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    shared_ = static_cast<Shared*>(memory);
    CHECK(::sem_init(&shared_->semaphore, /*pshared=*/1, 0) == 0);
  }
  ~WaitingCalls() { ::munmap(shared_, sizeof(Shared)); }
  WaitingCalls(const WaitingCalls&) = delete;
  WaitingCalls& operator=(const WaitingCalls&) = delete;

  // `call` returns whether it went well, and is given a descriptor that can be read once release()
  // was called.
  std::size_t begin(const std::function<bool(int fd)>& call) {
    const std::size_t index = ends_.size();
    CHECK(index < kCallsMax);
    int ends[2];
    CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    ends_.push_back({FileDescriptor{ends[0]}, FileDescriptor{ends[1]}});
    shared_->said[index].store(kStillThere);
    cgroups_.spawn(pod_, [this, index, call] {
      shared_->begun.fetch_add(1);
      const bool good = call(ends_[index].ours.get());
      shared_->said[index].store(good ? 0 : errno);
      for (;;) ::pause();
    });
    return index;
  }
  bool all_wait() const {
    if (shared_->begun.load() != static_cast<int>(ends_.size())) return false;
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      if (said(i) != kStillThere) return false;
    }
    return true;
  }
  void release() {
    for (const Ends& ends : ends_) CHECK(::write(ends.theirs.get(), "x", 1) == 1);
    ::sem_post(&shared_->semaphore);
  }
  int said(std::size_t index) const { return shared_->said[index].load(); }
  bool has_ended(std::size_t index) const {
    return eventually([&] { return said(index) != kStillThere; });
  }
  sem_t* semaphore() { return &shared_->semaphore; }

 private:
  struct Shared {
    std::atomic<int> begun;
    std::array<std::atomic<int>, kCallsMax> said;
    sem_t semaphore;
  };
  struct Ends {
    FileDescriptor ours;  // the pod's
    FileDescriptor theirs;
  };
  const RealCgroups& cgroups_;
  const std::string pod_;
  std::vector<Ends> ends_;
  Shared* shared_ = nullptr;
};

// No signal comes, and still some calls end with EINTR after a thaw; docs/operations.md names them.
TEST_P(PitfallsTest, WaitingCallsGoOnAfterTheThawButForThoseThatUsersAreToldOf) {
  WaitingCalls calls{*cgroups_, add_pod()};
  constexpr int kMillisMax = 60'000;
  std::vector<std::pair<std::string, std::size_t>> going_on;
  std::vector<std::pair<std::string, std::size_t>> maybe_not;
  going_on.emplace_back("nanosleep", calls.begin([](int) {
    const timespec some_time{.tv_sec = 3, .tv_nsec = 0};
    return ::nanosleep(&some_time, nullptr) == 0;
  }));
  going_on.emplace_back("poll", calls.begin([](int fd) {
    pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
    return ::poll(&wait, 1, kMillisMax) == 1;
  }));
  going_on.emplace_back("read", calls.begin([](int fd) {
    char byte = 0;
    return ::read(fd, &byte, 1) == 1;
  }));
  going_on.emplace_back("recv", calls.begin([](int fd) {
    char byte = 0;
    return ::recv(fd, &byte, 1, 0) == 1;
  }));
  sem_t* semaphore = calls.semaphore();
  going_on.emplace_back("futex",
                        calls.begin([semaphore](int) { return ::sem_wait(semaphore) == 0; }));
  maybe_not.emplace_back("epoll_wait", calls.begin([](int fd) {
    const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{.events = EPOLLIN, .data = {}};
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    return ::epoll_wait(epoll, &event, 1, kMillisMax) == 1;
  }));
  maybe_not.emplace_back("recv with SO_RCVTIMEO", calls.begin([](int fd) {
    const timeval limit{.tv_sec = 60, .tv_usec = 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    char byte = 0;
    return ::recv(fd, &byte, 1, 0) == 1;
  }));
  std::this_thread::sleep_for(milliseconds{100});
  ASSERT_TRUE(calls.all_wait());
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  std::this_thread::sleep_for(milliseconds{50});
  ASSERT_TRUE(calls.all_wait());
  run_everything();
  std::this_thread::sleep_for(milliseconds{100});
  calls.release();
  for (const auto& [name, index] : going_on) {
    EXPECT_TRUE(calls.has_ended(index)) << name;
    EXPECT_EQ(calls.said(index), 0) << name << ": " << std::strerror(calls.said(index));
  }
  for (const auto& [name, index] : maybe_not) {
    EXPECT_TRUE(calls.has_ended(index)) << name;
    const int said = calls.said(index);
    EXPECT_TRUE(said == 0 || said == EINTR) << name << ": " << std::strerror(said);
    std::printf("%s after freeze and thaw: %s\n", name.c_str(), said == 0 ? "goes on" : "EINTR");
  }
}

class TcpClient {
 public:
  explicit TcpClient(const sockaddr_in& server)
      : socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    const timeval limit{.tv_sec = 0, .tv_usec = 200'000};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    connected_ =
        ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&server), sizeof server) == 0;
  }
  bool is_connected() const { return connected_; }
  bool send(char byte) const { return ::send(socket_.get(), &byte, 1, MSG_NOSIGNAL) == 1; }
  bool receives(char wanted) const {
    char byte = 0;
    return ::recv(socket_.get(), &byte, 1, 0) == 1 && byte == wanted;
  }

 private:
  FileDescriptor socket_;
  bool connected_ = false;
};

TEST_P(PitfallsTest, AFrozenTcpServerIsConnectedToAndItsConnectionsSurvive) {
  const std::string pod = add_pod();
  FileDescriptor listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
  ASSERT_EQ(::listen(listener.get(), 8), 0);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  cgroups_->spawn(pod, [&listener] {  // says back what the first client says
    const int client = ::accept(listener.get(), nullptr, nullptr);
    for (char byte = 0; ::read(client, &byte, 1) == 1;) {
      if (::write(client, &byte, 1) != 1) break;
    }
  });
  constexpr base::Duration kLooks = milliseconds{50};  // as many, of 200 ms each
  const TcpClient before{address};
  ASSERT_TRUE(before.is_connected());
  ASSERT_TRUE(before.send('1'));
  ASSERT_TRUE(eventually([&] { return before.receives('1'); }, kLooks));
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  const TcpClient meanwhile{address};  // the kernel takes it into the backlog
  EXPECT_TRUE(meanwhile.is_connected());
  EXPECT_TRUE(before.send('2'));
  EXPECT_FALSE(before.receives('2'));
  run_everything();
  EXPECT_TRUE(eventually([&] { return before.receives('2'); }, kLooks));
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
