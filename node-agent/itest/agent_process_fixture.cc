#include "node-agent/itest/agent_process_fixture.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

namespace agent::testing {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The program itself and not its parts: what a test of this fixture sees is what a node would.
void AgentProcessFixture::SetUp() {
  if (const auto missing = RealCgroups::missing(GetParam())) {
    GTEST_SKIP() << "SKIPPED: " << *missing;
  }
  node_ = std::make_unique<AgentProcess>(GetParam(), KUBEGANG_BINARY_DIR "/bin/kubegang-agent",
                                         KUBEGANG_SOURCE_DIR "/crds");
}

void AgentProcessFixture::TearDown() {
  if (!node_) return;
  node_->end();
  const std::string text = log_text();
  // A sanitizer ends the worker, and the next one goes on as if nothing had been.
  for (const char* finding : {"AddressSanitizer", "ThreadSanitizer", "runtime error"}) {
    EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr(finding)));
  }
  if (HasFailure()) std::printf("---- agent.log\n%s----\n", text.c_str());
  node_.reset();
}

// Two gangs that take turns on this node, with a pod each. The agent is not started, so a test can
// say how.
void AgentProcessFixture::two_gangs() {
  node_->add_pod("a", "a");
  node_->add_pod("b", "b");
  node_->publish(1, 1, {"a", "b"}, {{0}, {1}}, kSlice);
}

// The state in which the agent does the most harm if it fails: everything stands still, and nothing
// but the agent would let it run again.
bool AgentProcessFixture::two_frozen_gangs() {
  two_gangs();
  // A cycle of one empty slot: neither pod ever runs.
  node_->publish(1, 2, {"a", "b"}, {{}}, kSlice);
  node_->start();
  return both_freeze();
}

bool AgentProcessFixture::both_freeze() {
  return eventually([&] { return both_frozen(); });
}

bool AgentProcessFixture::takes_turns() {
  const base::Instant now = clock_.wall();
  const base::Instant begin = base::slot_begin(base::slot_of(now, kSlice), kSlice);
  // Not close to a boundary, where the switch may be under way. Slots count from the epoch, so even
  // ones are those of "a".
  if (now - begin < milliseconds{60} || now - begin > milliseconds{180}) return false;
  const bool even = base::slot_of(now, kSlice) % 2 == 0;
  return frozen("a") == !even && frozen("b") == even;
}

// takes_turns() is false near each boundary, too, hence "soon".
bool AgentProcessFixture::takes_turns_soon(base::Duration limit) {
  return eventually([&] { return takes_turns(); }, limit);
}

// Three turns in their order; two could be what is left of an agent that has just died.
bool AgentProcessFixture::goes_on_taking_turns() {
  for (const char* off : {"a", "b", "a"}) {
    if (!eventually([&] { return takes_turns() && frozen(off); })) return false;
  }
  return true;
}

// Looked at every millisecond: a freeze shorter than that may stay unseen.
bool AgentProcessFixture::all_run_for(base::Duration span) {
  return !eventually([&] { return !all_run(); }, span);
}

std::optional<base::Duration> AgentProcessFixture::time_until(
    const std::function<bool()>& condition, base::Duration limit) const {
  const base::Duration begin = clock_.monotonic();
  base::Duration lost{0};
  for (;;) {
    const bool holds = condition();
    const base::Duration asleep = clock_.monotonic();
    const base::Duration took = asleep - begin - lost;
    if (holds) return took;
    if (took >= limit) return std::nullopt;
    std::this_thread::sleep_for(milliseconds{1});
    // A sleep of 1 ms that took more than 5 ms means that the machine was busy: that time is not
    // the agent's.
    lost += std::max(clock_.monotonic() - asleep - milliseconds{5}, base::Duration{0});
  }
}

// Each at some time and not both at once: gangs that take turns never run together.
bool AgentProcessFixture::both_have_run_within(base::Duration limit) {
  bool a = false;
  bool b = false;
  return time_until(
             [&] {
               a = a || !frozen("a");
               b = b || !frozen("b");
               return a && b;
             },
             limit)
      .has_value();
}

// Milliseconds, into the test's XML report and its output: limits that are nearly missed can be
// seen there before they are.
void AgentProcessFixture::tell(const std::string& what, base::Duration since) {
  const std::int64_t millis = (clock_.monotonic() - since).count() / 1000;
  RecordProperty(what, std::to_string(millis));
  std::printf("%s: %lld\n", what.c_str(), static_cast<long long>(millis));
}

// As kubelet ends a container: SIGTERM, and then how long it takes.
AgentProcessFixture::Stop AgentProcessFixture::stopped() {
  Stop stop;
  node_->signal(SIGTERM);
  stop.time = time_until([&] {
    stop.code = node_->wait_for_end(base::Duration{0});
    return stop.code.has_value();
  });
  return stop;
}

// As kubelet ends a container that overran its grace period, or as the OOM killer does: the
// supervisor can do nothing then.
void AgentProcessFixture::kill_container() {
  node_->signal(SIGKILL);
  ASSERT_TRUE(node_->wait_for_end(seconds{5}).has_value());
}

bool AgentProcessFixture::has_begun() {
  // Before it blocks SIGTERM, a signal would simply kill it.
  constexpr std::uint64_t kTermBit = std::uint64_t{1} << (SIGTERM - 1);
  return eventually([&] {
    if (node_->worker()) return true;  // what a supervisor waits for, does not show as blocked
    std::ifstream status{"/proc/" + std::to_string(node_->supervisor()) + "/status"};
    for (std::string word; status >> word;) {
      std::uint64_t blocked = 0;
      if (word == "SigBlk:" && status >> std::hex >> blocked) return (blocked & kTermBit) != 0;
    }
    return false;
  });
}

std::string AgentProcessFixture::log_text() const {
  std::stringstream text;
  text << std::ifstream{node_->log_path()}.rdbuf();
  return text.str();
}

// Reads the whole answer, head and body, to the connection's end; "" if there is no such server.
std::string AgentProcessFixture::get(const std::string& path) const {
  std::ifstream log{node_->log_path()};
  int port = 0;
  for (std::string line; std::getline(log, line);) {
    // The last such line: each worker takes a port of its own.
    const std::size_t at = line.find("serving metrics address=127.0.0.1 port=");
    if (at != line.npos) port = std::atoi(line.c_str() + line.rfind('=') + 1);
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const os::FileDescriptor client{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return {};
  }
  const std::string request =
      "GET " + path + " HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n";
  if (::send(client.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return {};
  std::string answer;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::recv(client.get(), buffer, sizeof buffer, 0)) > 0;) {
    answer.append(buffer, static_cast<std::size_t>(got));
  }
  return answer;
}

os::testing::Output AgentProcessFixture::run_program(const std::string& arguments) const {
  return os::testing::run_shell(KUBEGANG_BINARY_DIR "/bin/kubegang-agent " + arguments);
}

}  // namespace agent::testing
