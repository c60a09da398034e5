// The rest of the pitfall matrix (freezer.md 2.5) with real processes in real cgroups: what
// of a frozen pod is seen from outside, what comes into it, and how its waiting calls go on.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/aio_abi.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "linux/file_descriptor.h"
#include "node-agent/freezer/frozen_time.h"
#include "node-agent/itest/pitfalls_fixture.h"

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

// Words that a test and its processes share. Memory that is mapped shared before the fork: a frozen
// process can answer nothing, but what it has written can still be read.
class SharedWords {
 public:
  static constexpr std::size_t kWordsMax = 16;

  SharedWords() {
    void* memory =
        ::mmap(nullptr, sizeof(Words), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    words_ = static_cast<Words*>(memory);  // zeros
  }
  ~SharedWords() { ::munmap(words_, sizeof(Words)); }
  SharedWords(const SharedWords&) = delete;
  SharedWords& operator=(const SharedWords&) = delete;

  std::atomic<std::int64_t>& operator[](std::size_t index) const {
    CHECK(index < kWordsMax);
    return words_->word[index];
  }

 private:
  struct Words {
    std::atomic<std::int64_t> word[kWordsMax];
  };
  Words* words_ = nullptr;
};

// Until the process is killed: a test looks at its state, or the pod must not become empty.
void stand_by() {
  for (;;) ::pause();
}

// Returns a line of /proc/PID/status behind `field`, which ends with a colon.
std::string status_line(pid_t process, const std::string& field) {
  std::ifstream status{"/proc/" + std::to_string(process) + "/status"};
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(field)) continue;
    const std::size_t at = line.find_first_not_of(" \t", field.size());
    return at == line.npos ? "" : line.substr(at);
  }
  return {};
}

// One pod, and a cgroup beside it. Each test runs on cgroup v2 and on v1.
class FrozenTasksTest : public PitfallsTest {
 protected:
  void SetUp() override {
    PitfallsTest::SetUp();
    if (!switcher_) return;
    pod_ = add_pod();
    cgroups_->make("outside");
  }
  // Both wait until the kernel has done it: what a test sees in between is neither of the two.
  void freeze() {
    freeze_all();
    ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  }
  void thaw() {
    run_everything();
    ASSERT_TRUE(has_state(0, FreezeState::kThawed));
  }
  bool is_v2() const { return GetParam() == CgroupVersion::kV2; }
  std::string file_of_pod(const std::string& name) const {
    return cgroups_->root() + "/" + pod_ + "/" + name;
  }

  std::string pod_;
};

// Makes this process another user for as long as it lives: all of its threads, the switcher's too
// (glibc does that). Root passes each check of rights, so without this the test would show nothing.
class AsNobody {
 public:
  AsNobody() { CHECK(::seteuid(kNobody) == 0); }
  ~AsNobody() { CHECK(::seteuid(0) == 0); }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;

 private:
  static constexpr uid_t kNobody = 65534;
};

// The kernel checks rights when a file is opened. So a pod that was opened once can be thawed
// whatever happens to rights later. The file loses all its rights, and the process becomes another
// user.
TEST_P(FrozenTasksTest, AHandleThatIsOpenNeedsNoRightAnyMore) {
  Progress& progress = cgroups_->spawn_counter(pod_, milliseconds{1});
  const char* file = is_v2() ? "cgroup.freeze" : "freezer.state";
  ASSERT_EQ(::chmod(file_of_pod(file).c_str(), 0), 0);
  const AsNobody nobody;
  ASSERT_LT(::open(file_of_pod(file).c_str(), O_RDWR | O_CLOEXEC), 0);
  freeze();
  EXPECT_TRUE(stands_still(progress));
  thaw();
  EXPECT_TRUE(moves(progress));
}

// Tools that take "D" for a disk that hangs would raise an alarm for every frozen pod of v1. The
// state is the kernel's, and the agent cannot change it.
TEST_P(FrozenTasksTest, LooksAsleepToPsOnV2AndInTheKernelOnV1) {
  const pid_t waiting = cgroups_->spawn(pod_, stand_by);
  freeze();
  EXPECT_EQ(status_line(waiting, "State:").substr(0, 1), is_v2() ? "S" : "D");
  thaw();
  EXPECT_TRUE(eventually([&] { return status_line(waiting, "State:").starts_with("S"); }));
}

// The kernel works the average out every five seconds; tasks that it counted would raise it by a
// twelfth of their number each time. Autoscalers and alerts read the load; a node that only holds
// suspended jobs must look idle.
TEST_P(FrozenTasksTest, TwoHundredOfThemAreNoLoad) {
  // Two hundred that counted would raise the average by 16. The bound is half of that, since other
  // processes of the machine count, too.
  constexpr std::size_t kTasks = 200;
  cgroups_->spawn(pod_, [] {
    for (std::size_t i = 1; i < kTasks; ++i) {
      if (::fork() == 0) break;
    }
    stand_by();
  });
  ASSERT_TRUE(eventually([&] { return cgroups_->processes_count(pod_) == kTasks; }));
  const auto load = [] {
    double minute = 0;
    std::ifstream{"/proc/loadavg"} >> minute;
    return minute;
  };
  freeze();
  const double before = load();
  // One whole interval of five seconds and a bit.
  std::this_thread::sleep_for(milliseconds{5200});
  EXPECT_LT(load() - before, kTasks / 12.0 / 2);
}

// The metric of frozen seconds is read from there, so the number must not count the time before the
// freeze or after it.
TEST_P(FrozenTasksTest, TheKernelCountsForHowLongTheyStood) {
  if (!is_v2()) GTEST_SKIP() << "SKIPPED: cgroup v1 does not count the time of a frozen cgroup";
  if (::access(file_of_pod("cgroup.stat.local").c_str(), F_OK) != 0) {
    GTEST_SKIP() << "SKIPPED: this kernel, older than 6.18, has no cgroup.stat.local";
  }
  cgroups_->spawn_counter(pod_, milliseconds{1});
  const auto frozen_time = [&] {
    const base::Result<PodCgroup> cgroup = tree_->at(pod_, controls_[0]->identity.uid);
    CHECK(cgroup.ok());
    return read_frozen_time(*cgroup).value_or(base::Duration{-1});
  };
  // It begins at 0 with the cgroup, not with the machine.
  EXPECT_EQ(frozen_time(), base::Duration{0});
  const base::Duration begin = clock_.monotonic();
  freeze();
  std::this_thread::sleep_for(milliseconds{100});
  thaw();
  const base::Duration counted = frozen_time();
  // At least the sleep between the two, at most the time in which both took place.
  EXPECT_GE(counted, milliseconds{100});
  EXPECT_LE(counted, clock_.monotonic() - begin);
  std::this_thread::sleep_for(milliseconds{20});
  EXPECT_EQ(frozen_time(), counted);
}

// The kernel has taken the signal and delivers it after the thaw: it is not lost. Users who look
// for a signal that seems to be lost find it there.
TEST_P(FrozenTasksTest, APendingSigtermIsSeenInProc) {
  SharedWords words;
  const pid_t task = cgroups_->spawn(pod_, [&words] {
    ::signal(SIGTERM, [](int) {});
    words[0].store(1);
    stand_by();
  });
  ASSERT_TRUE(eventually([&] { return words[0].load() == 1; }));
  freeze();
  ::kill(task, SIGTERM);
  // The mask has one bit for each signal, the first signal being bit 0.
  constexpr unsigned long long kTermBit = 1ULL << (SIGTERM - 1);
  const auto is_pending = [&] {
    const std::string mask = status_line(task, "ShdPnd:");
    return (std::strtoull(mask.c_str(), nullptr, 16) & kTermBit) != 0;
  };
  EXPECT_TRUE(is_pending());
  thaw();
  EXPECT_TRUE(eventually([&] { return !is_pending(); }));
}

// As the first process of a container without a handler of its own. The kernel drops signals for
// which the first process has no handler, frozen or not, so a freeze must not change that. SIGKILL
// from outside ends it, on v1 only after the thaw.
TEST_P(FrozenTasksTest, ThePidNamespacesFirstProcessIgnoresSigtermAndSigkillEndsIt) {
  SharedWords words;
  constexpr std::int64_t kRefused = -1;
  const pid_t maker = cgroups_->spawn(pod_, [&words] {
    if (::unshare(CLONE_NEWPID) != 0) {
      words[0].store(kRefused);
      stand_by();
    }
    const pid_t first = ::fork();
    if (first == 0) stand_by();
    words[0].store(first);
    int status = 0;
    ::waitpid(first, &status, 0);
    words[1].store(WIFSIGNALED(status) ? WTERMSIG(status) : kRefused);
    stand_by();
  });
  ASSERT_TRUE(eventually([&] { return words[0].load() != 0; }));
  if (words[0].load() == kRefused) GTEST_SKIP() << "SKIPPED: no pid namespace can be made here";
  const auto first = static_cast<pid_t>(words[0].load());
  freeze();
  ::kill(first, SIGTERM);
  std::this_thread::sleep_for(milliseconds{100});
  const auto is_there = [&] {
    const std::string state = status_line(first, "State:");
    return !state.empty() && !state.starts_with("Z") && !state.starts_with("X");
  };
  EXPECT_TRUE(is_there());
  thaw();
  std::this_thread::sleep_for(milliseconds{100});
  EXPECT_TRUE(is_there());
  freeze();
  ::kill(first, SIGKILL);
  EXPECT_EQ(eventually([&] { return !is_there(); }, is_v2() ? seconds{5} : milliseconds{200}),
            is_v2());
  thaw();
  EXPECT_TRUE(eventually([&] { return words[1].load() == SIGKILL; }));
  ::kill(maker, SIGKILL);
}

// As a runtime does that makes a process right in the container's cgroup. A task that ran even for
// a moment would run in another gang's turn.
TEST_P(FrozenTasksTest, ATaskThatIsForkedIntoItStandsStillFromItsFirstStep) {
  if (!is_v2()) GTEST_SKIP() << "SKIPPED: cgroup v1 knows no fork into another cgroup";
  freeze();
  SharedWords words;
  // CLONE_INTO_CGROUP takes a descriptor of the directory.
  const os::FileDescriptor place{
      ::open(file_of_pod("").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  cgroups_->spawn("outside", [&] {
    clone_args arguments{};
    arguments.flags = CLONE_INTO_CGROUP;
    arguments.exit_signal = SIGCHLD;
    arguments.cgroup = static_cast<__u64>(place.get());
    const long child = ::syscall(SYS_clone3, &arguments, sizeof arguments);
    if (child == 0) {
      for (;;) {
        words[1].fetch_add(1);
        ::usleep(1'000);
      }
    }
    words[0].store(child);
    stand_by();
  });
  ASSERT_TRUE(eventually([&] { return words[0].load() != 0; }));
  ASSERT_GT(words[0].load(), 0);
  // The clone is done and the child is in the cgroup, though it has not run one instruction.
  EXPECT_EQ(cgroups_->processes_count(pod_), 1U);
  std::this_thread::sleep_for(milliseconds{50});
  EXPECT_EQ(words[1].load(), 0);
  EXPECT_TRUE(eventually([&] { return cgroups_->is_frozen(pod_); }));
  EXPECT_TRUE(has_state(0, FreezeState::kFrozen));
  thaw();
  EXPECT_TRUE(eventually([&] { return words[1].load() > 1; }));
}

// Their time runs out while they stand still, and they end as soon as they are thawed. One waits by
// a relative time and one by an absolute one. So a program's own time limits go on while it stands
// still, and users must know that.
TEST_P(FrozenTasksTest, ASleepIsNotMadeLongerByAFreeze) {
  constexpr seconds kSleep{2};
  SharedWords words;
  const auto begin = clock_.monotonic();
  cgroups_->spawn(pod_, [&] {
    const timespec time{.tv_sec = kSleep.count(), .tv_nsec = 0};
    words[0].store(::nanosleep(&time, nullptr) == 0 ? 1 : -1);
    stand_by();
  });
  cgroups_->spawn(pod_, [&] {
    timespec until{};
    ::clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += kSleep.count();
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    ::pthread_mutex_lock(&mutex);
    words[1].store(::pthread_cond_timedwait(&condition, &mutex, &until) == ETIMEDOUT ? 1 : -1);
    stand_by();
  });
  std::this_thread::sleep_for(milliseconds{200});
  freeze();
  // Both time limits pass within the freeze.
  std::this_thread::sleep_for(kSleep + milliseconds{300});
  EXPECT_EQ(words[0].load(), 0);
  EXPECT_EQ(words[1].load(), 0);
  thaw();
  const auto thawed = clock_.monotonic();
  EXPECT_TRUE(eventually([&] { return words[0].load() != 0 && words[1].load() != 0; }));
  EXPECT_EQ(words[0].load(), 1);
  EXPECT_EQ(words[1].load(), 1);
  // Had the freeze been added to it, it would have lasted nearly as long again.
  EXPECT_LT(clock_.monotonic() - thawed, kSleep / 2);
  EXPECT_GE(clock_.monotonic() - begin, kSleep);
}

// A process in the pod that waits in a call: 0 in its word while it does, then kWell or the errno.
class Waiting {
 public:
  static constexpr std::int64_t kWell = -1;

  Waiting(const RealCgroups& cgroups, const std::string& pod, std::string name,
          const SharedWords& words, std::size_t index, const std::function<bool()>& call)
      : name_{std::move(name)}, word_{words[index]} {
    cgroups.spawn(pod, [this, &call] {
      word_.store(call() ? kWell : errno);
      stand_by();
    });
  }
  const std::string& name() const { return name_; }
  bool waits() const { return word_.load() == 0; }
  bool ends() const {
    return eventually([&] { return !waits(); });
  }
  std::int64_t said() const { return word_.load(); }

 private:
  const std::string name_;
  std::atomic<std::int64_t>& word_;
};

// The minute is for a test that fails: no call may wait forever.
bool waits_for_a_semaphore(int semaphore) {
  sembuf down{.sem_num = 0, .sem_op = -1, .sem_flg = 0};
  const timespec limit{.tv_sec = 60, .tv_nsec = 0};
  return ::semtimedop(semaphore, &down, 1, &limit) == 0;
}

// It prints its process ID, so that the test can send the signal.
bool waits_for_a_signal(SharedWords& words) {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGUSR1);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  // The last word, which no call has as its own.
  words[SharedWords::kWordsMax - 1].store(::getpid());
  const timespec limit{.tv_sec = 60, .tv_nsec = 0};
  return ::sigtimedwait(&set, nullptr, &limit) == SIGUSR1;
}

// No event comes: it ends when its time is over.
bool waits_for_events() {
  aio_context_t context = 0;
  if (::syscall(SYS_io_setup, 1, &context) != 0) return false;
  io_event event{};
  timespec limit{.tv_sec = 2, .tv_nsec = 0};
  return ::syscall(SYS_io_getevents, context, 1, 1, &event, &limit) == 0;
}

// The calls that pitfalls_waiting_test.cc does not have: a pipe and select go on; those that
// docs/what-frozen-means.md names may say EINTR, and nothing else. A call that says something else
// would break programs that the docs call safe.
TEST_P(FrozenTasksTest, MoreWaitingCallsGoOnOrSayWhatUsersAreToldOf) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const os::FileDescriptor readable{ends[0]};
  const os::FileDescriptor writable{ends[1]};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const os::FileDescriptor readable_too{ends[0]};
  const os::FileDescriptor writable_too{ends[1]};
  const int semaphore = ::semget(IPC_PRIVATE, 1, 0600);
  ASSERT_GE(semaphore, 0);
  SharedWords words;
  std::vector<std::unique_ptr<Waiting>> going_on;
  std::vector<std::unique_ptr<Waiting>> maybe_not;
  const auto wait = [&](std::vector<std::unique_ptr<Waiting>>& to, const char* name,
                        const std::function<bool()>& call) {
    const std::size_t index = going_on.size() + maybe_not.size();
    to.push_back(std::make_unique<Waiting>(*cgroups_, pod_, name, words, index, call));
    return to.back().get();
  };
  wait(going_on, "read of a pipe", [&] {
    char byte = 0;
    return ::read(readable.get(), &byte, 1) == 1;
  });
  wait(going_on, "select", [&] {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(readable_too.get(), &set);
    timeval limit{.tv_sec = 60, .tv_usec = 0};
    return ::select(readable_too.get() + 1, &set, nullptr, nullptr, &limit) == 1;
  });
  wait(maybe_not, "semtimedop", [&] { return waits_for_a_semaphore(semaphore); });
  Waiting* signalled =
      wait(maybe_not, "sigtimedwait", [&words] { return waits_for_a_signal(words); });
  wait(maybe_not, "io_getevents", waits_for_events);
  // All five must wait before the freeze; one that had ended at once would pass without having
  // shown anything.
  std::this_thread::sleep_for(milliseconds{200});
  for (const auto* list : {&going_on, &maybe_not}) {
    for (const auto& call : *list) ASSERT_TRUE(call->waits()) << call->name() << call->said();
  }
  // The freeze and thaw that a call must survive, and time for it to say EINTR.
  freeze();
  std::this_thread::sleep_for(milliseconds{50});
  thaw();
  std::this_thread::sleep_for(milliseconds{100});
  for (const auto& call : going_on) EXPECT_TRUE(call->waits()) << call->name();
  // Now what each waits for. The signal only if its call still waits: after EINTR, it would stay
  // blocked and pending forever.
  ASSERT_EQ(::write(writable.get(), "x", 1), 1);
  ASSERT_EQ(::write(writable_too.get(), "x", 1), 1);
  sembuf up{.sem_num = 0, .sem_op = 1, .sem_flg = 0};
  ASSERT_EQ(::semop(semaphore, &up, 1), 0);
  if (signalled->waits()) {
    ::kill(static_cast<pid_t>(words[SharedWords::kWordsMax - 1].load()), SIGUSR1);
  }
  for (const auto& call : going_on) {
    EXPECT_TRUE(call->ends()) << call->name();
    EXPECT_EQ(call->said(), Waiting::kWell) << call->name();
  }
  // The result may differ between kernels, hence the print and no expectation.
  for (const auto& call : maybe_not) {
    EXPECT_TRUE(call->ends()) << call->name();
    EXPECT_TRUE(call->said() == Waiting::kWell || call->said() == EINTR)
        << call->name() << ": " << std::strerror(static_cast<int>(call->said()));
    std::printf("%s after freeze and thaw: %s\n", call->name().c_str(),
                call->said() == Waiting::kWell ? "goes on" : "EINTR");
  }
  ::semctl(semaphore, 0, IPC_RMID);
}

// The kernel takes what fits into its buffers and no more; nothing of it is lost. The sender fills
// the buffers until the kernel takes no more, and the bytes are counted on both sides. A connection
// between two gangs, or to a storage server, is one to a slow peer and does not break.
TEST_P(FrozenTasksTest, WhoSendsToAFrozenTcpReceiverWaitsAndAllOfItArrives) {
  os::FileDescriptor listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  SharedWords words;
  cgroups_->spawn(pod_, [&] {
    const int client = ::accept(listener.get(), nullptr, nullptr);
    std::vector<char> buffer(1 << 16);
    for (ssize_t got = 0; (got = ::read(client, buffer.data(), buffer.size())) > 0;) {
      words[0].fetch_add(got);
    }
    words[1].store(1);
    stand_by();
  });
  os::FileDescriptor client{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  ASSERT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
            0);
  // One byte first, so that the receiver is known to be in its loop when the freeze comes.
  std::int64_t sent = ::send(client.get(), "x", 1, MSG_NOSIGNAL);
  ASSERT_TRUE(eventually([&] { return words[0].load() == 1; }));
  freeze();
  const std::vector<char> block(1 << 16);
  constexpr int kBlocksMax = 4096;  // 256 MiB: no buffer is that large
  bool waits = false;
  // EAGAIN alone may pass: acknowledgements of the kernel make room again, although the receiver
  // stands still. Only if there is no room for 200 ms, the buffers of both ends are full.
  for (int i = 0; i < kBlocksMax && !waits; ++i) {
    const ssize_t now =
        ::send(client.get(), block.data(), block.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (now > 0) sent += now;
    pollfd room{.fd = client.get(), .events = POLLOUT, .revents = 0};
    waits = now < 0 && errno == EAGAIN && ::poll(&room, 1, 200) == 0;
  }
  EXPECT_TRUE(waits);
  EXPECT_EQ(words[0].load(), 1);
  thaw();
  // The end of the stream, behind the last byte, ends the receiver's loop.
  client.reset();
  EXPECT_TRUE(eventually([&] { return words[1].load() == 1; }));
  EXPECT_EQ(words[0].load(), sent);
}

INSTANTIATE_TEST_SUITE_P(Real, FrozenTasksTest,
                         ::testing::Values(CgroupVersion::kV2, CgroupVersion::kV1),
                         [](const auto& version) { return to_string(version.param); });

}  // namespace
}  // namespace agent
