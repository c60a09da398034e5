// Pitfalls: what frozen tasks wait for, and what waits for them: file systems, system calls,
// connections.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "linux/file_descriptor.h"
#include "node-agent/itest/pitfalls_fixture.h"
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

// A small file system of its own that stands still while the test wants it. An image in a temporary
// directory, mounted by a loop device.
class FrozenFileSystem {
 public:
  explicit FrozenFileSystem(const std::string& directory) : mount_{directory + "/mount"} {
    const std::string image = directory + "/image";
    const std::string make = "mkdir " + mount_ + " && truncate -s 16M " + image +
                             " && mkfs.ext2 -q " + image + " && mount -o loop " + image + " " +
                             mount_ + " >/dev/null 2>&1";
    mounted_ = std::system((make + " 2>/dev/null").c_str()) == 0;
    if (mounted_) handle_ = os::FileDescriptor{::open(mount_.c_str(), O_RDONLY | O_CLOEXEC)};
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

  // False where no image can be made or mounted (no mkfs.ext2, no loop devices): the test is
  // skipped.
  bool is_there() const { return mounted_ && handle_.is_open(); }
  const std::string& path() const { return mount_; }
  // As fsfreeze does it: writers wait in the kernel until thaw().
  bool freeze() { return ::ioctl(handle_.get(), FIFREEZE, 0) == 0; }
  bool thaw() { return ::ioctl(handle_.get(), FITHAW, 0) == 0; }

 private:
  std::string mount_;
  bool mounted_ = false;
  os::FileDescriptor handle_;
};

// A file system that is frozen (fsfreeze) keeps a writer in an uninterruptible call, as a dead NFS
// server would. On v2 the pod then never counts as frozen; on v1 that wait is a freezable one.
// Either way the other pod's turn begins and the pod's other tasks stop. A file server that hangs
// is the usual case on clusters: one job's trouble must not stop the turns of the others on its
// nodes.
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
  // The writer's turn, so that its file is there and it is writing when the file system stops.
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
    // The request stands although the state does not come: once the call ends, the task stops
    // without another write.
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

// Processes of the pod that wait in one system call each. Their words are in memory that they share
// with the test: 0 when it ended well, else the errno. A call that waits still has −1. The calls
// wait for something that a test controls, so that a call that returned by itself is seen.
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
    ends_.push_back({os::FileDescriptor{ends[0]}, os::FileDescriptor{ends[1]}});
    shared_->said[index].store(kStillThere);
    cgroups_.spawn(pod_, [this, index, call] {
      shared_->begun.fetch_add(1);
      const bool good = call(ends_[index].ours.get());
      shared_->said[index].store(good ? 0 : errno);
      for (;;) ::pause();
    });
    return index;
  }
  // True if every process has begun its call and none has returned from it.
  bool all_wait() const {
    if (shared_->begun.load() != static_cast<int>(ends_.size())) return false;
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      if (said(i) != kStillThere) return false;
    }
    return true;
  }
  // Ends all calls in the ordinary way: by a byte, or by the semaphore.
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
    os::FileDescriptor ours;  // the pod's
    os::FileDescriptor theirs;
  };
  const RealCgroups& cgroups_;
  const std::string pod_;
  std::vector<Ends> ends_;
  Shared* shared_ = nullptr;
};

// No signal comes, and still some calls end with EINTR after a thaw; docs/what-frozen-means.md
// names them. The other test of this kind is in frozen_tasks_test.cc. Whether they do depends on
// the kernel and its version, so both answers are right for those calls, and the one that was seen
// is printed. For all others EINTR would be an error in programs that worked before.
TEST_P(PitfallsTest, WaitingCallsGoOnAfterTheThawButForThoseThatUsersAreToldOf) {
  WaitingCalls calls{*cgroups_, add_pod()};
  constexpr int kMillisMax = 60'000;
  std::vector<std::pair<std::string, std::size_t>> going_on;
  std::vector<std::pair<std::string, std::size_t>> maybe_not;
  // Each call waits for something that comes only with release(), or by its own time limit.
  going_on.emplace_back("nanosleep", calls.begin([](int) {
    // Longer than freeze and thaw together, so it must wait on after them.
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
  // A frozen task cannot have said anything; this would show that it was not frozen.
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

// A client with a time limit of 200 ms for each answer. recv then fails instead of waiting forever
// for a server that stands still.
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
  os::FileDescriptor socket_;
  bool connected_ = false;
};

// The kernel completes handshakes and takes data for a process that stands still, so clients see a
// slow server and not a dead one. One client is connected before the freeze, and one connects
// during it. TCP itself does not notice: acknowledgments are the kernel's, so no keepalive ends the
// connection.
TEST_P(PitfallsTest, AFrozenTcpServerIsConnectedToAndItsConnectionsSurvive) {
  const std::string pod = add_pod();
  os::FileDescriptor listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
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

}  // namespace
}  // namespace agent
