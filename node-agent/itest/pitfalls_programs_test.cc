// Pitfalls: what programs see of the time that they were frozen, as docs/what-frozen-means.md says.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "linux/file_descriptor.h"
#include "node-agent/itest/pitfalls_fixture.h"
#include "node-agent/testing/real_cgroups.h"
#include "node-agent/testing/temporary_directory.h"

namespace agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::eventually;

// A number that a process in a pod shares with the test.
class SharedNumber {
 public:
  SharedNumber()
      : value_{static_cast<std::atomic<int>*>(::mmap(nullptr, sizeof(std::atomic<int>),
                                                     PROT_READ | PROT_WRITE,
                                                     MAP_SHARED | MAP_ANONYMOUS, -1, 0))} {
    CHECK(value_ != MAP_FAILED);
  }
  ~SharedNumber() { ::munmap(value_, sizeof(std::atomic<int>)); }
  SharedNumber(const SharedNumber&) = delete;
  SharedNumber& operator=(const SharedNumber&) = delete;

  std::atomic<int>& operator*() const { return *value_; }

 private:
  std::atomic<int>* value_;
};

// A server in a pod that accepts one connection and reads nothing, and the test's client of it.
class SilentServer {
 public:
  SilentServer(const testing::RealCgroups& cgroups, const std::string& pod)
      : listener_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)},
        client_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)} {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    CHECK(::bind(listener_.get(), generic, length) == 0);
    CHECK(::listen(listener_.get(), 1) == 0);
    CHECK(::getsockname(listener_.get(), generic, &length) == 0);
    cgroups.spawn(pod, [this] {
      [[maybe_unused]] const int connection = ::accept(listener_.get(), nullptr, nullptr);
      for (;;) ::pause();
    });
    const int begun = ::connect(client_.get(), generic, length);
    CHECK(begun == 0 || errno == EINPROGRESS);
  }

  void set(int level, int option, int value) const {
    CHECK(::setsockopt(client_.get(), level, option, &value, sizeof value) == 0);
  }
  // Sends until neither side has room for more.
  void fill() const {
    const std::vector<char> bytes(65'536);
    for (int full = 0; full < 20;) {
      if (::send(client_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0) continue;
      CHECK(errno == EAGAIN);
      ++full;
      std::this_thread::sleep_for(milliseconds{5});
    }
  }
  // Returns the error that the kernel ended the connection with; 0 while it exists.
  int error() const {
    int error = 0;
    socklen_t length = sizeof error;
    CHECK(::getsockopt(client_.get(), SOL_SOCKET, SO_ERROR, &error, &length) == 0);
    return error;
  }

 private:
  os::FileDescriptor listener_;
  os::FileDescriptor client_;
};

// Time goes on: a timer that expires during a freeze is over at the thaw and is not extended.
TEST_P(PitfallsTest, ASleepThatEndsDuringAFreezeIsOverAtTheThaw) {
  const std::string pod = add_pod();
  SharedNumber begun;
  SharedNumber slept_millis;
  cgroups_->spawn(pod, [&] {
    const auto start = std::chrono::steady_clock::now();
    (*begun).store(1);
    ::usleep(1'000'000);
    const auto slept = std::chrono::steady_clock::now() - start;
    (*slept_millis)
        .store(static_cast<int>(std::chrono::duration_cast<milliseconds>(slept).count()));
    for (;;) ::pause();
  });
  ASSERT_TRUE(eventually([&] { return (*begun).load() == 1; }));
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  std::this_thread::sleep_for(milliseconds{1'500});
  EXPECT_EQ((*slept_millis).load(), 0);
  run_everything();
  ASSERT_TRUE(eventually([&] { return (*slept_millis).load() != 0; }));
  EXPECT_GE((*slept_millis).load(), 1'500);
  EXPECT_LT((*slept_millis).load(), 2'500);  // the second did not begin again
}

// The kernel of the frozen side answers probes, so keepalive does not end a connection.
TEST_P(PitfallsTest, KeepaliveDoesNotEndAConnectionToAFrozenPeer) {
  const SilentServer server{*cgroups_, add_pod()};
  server.set(SOL_SOCKET, SO_KEEPALIVE, 1);
  server.set(IPPROTO_TCP, TCP_KEEPIDLE, 1);
  server.set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
  server.set(IPPROTO_TCP, TCP_KEEPCNT, 1);
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  std::this_thread::sleep_for(seconds{4});
  EXPECT_EQ(server.error(), 0);
}

// TCP_USER_TIMEOUT also counts while the peer has no room: a sender that set it (gRPC does where
// keepalive is on) loses the connection to a frozen receiver that it has more to send to.
TEST_P(PitfallsTest, AUserTimeoutEndsAConnectionWhoseFrozenReceiverIsFull) {
  const SilentServer patient{*cgroups_, add_pod()};
  const SilentServer hasty{*cgroups_, add_pod()};
  hasty.set(IPPROTO_TCP, TCP_USER_TIMEOUT, 1'000);
  std::this_thread::sleep_for(milliseconds{50});
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  ASSERT_TRUE(has_state(1, FreezeState::kFrozen));
  patient.fill();
  hasty.fill();
  EXPECT_TRUE(eventually([&] { return hasty.error() == ETIMEDOUT; }, seconds{20}));
  EXPECT_EQ(patient.error(), 0);
}

// A lock is kept by a process that stands still: others wait for as long as its turn is away.
TEST_P(PitfallsTest, AFrozenProcessKeepsItsFileLock) {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path() + "/lock";
  const std::string pod = add_pod();
  SharedNumber locked;
  cgroups_->spawn(pod, [&] {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    (*locked).store(::flock(file, LOCK_EX) == 0 ? 1 : -1);
    for (;;) ::pause();
  });
  ASSERT_TRUE(eventually([&] { return (*locked).load() == 1; }));
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  const os::FileDescriptor file{::open(path.c_str(), O_RDWR | O_CLOEXEC)};
  EXPECT_EQ(::flock(file.get(), LOCK_EX | LOCK_NB), -1);
  EXPECT_EQ(errno, EWOULDBLOCK);
}

}  // namespace
}  // namespace agent
