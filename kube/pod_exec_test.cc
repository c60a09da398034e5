// Programs in pods, against a server's end of the protocol that a test plays on a socket.
#include "kube/pod_exec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "kube/web_socket.h"

namespace kube {
namespace {

using testing::HasSubstr;

// One end of a pair of sockets.
class SocketDuplex final : public Duplex {
 public:
  explicit SocketDuplex(int fd) : fd_{fd} {}
  int descriptor() const override { return fd_; }
  bool has_more() const override { return false; }
  ssize_t read(char* out, std::size_t size) override {
    pollfd look{fd_, POLLIN, 0};
    if (::poll(&look, 1, 0) == 0) return 0;
    const ssize_t count = ::recv(fd_, out, size, 0);
    return count > 0 ? count : -1;
  }
  bool write(std::string_view bytes) override {
    return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }

 private:
  const int fd_;
};

// An API server and a kubelet in a thread. The program is what it answers to each message.
class Server final : public Upgrader {
 public:
  // Returns messages, each with its channel; one of channel 3 is the last.
  using Program = std::function<std::vector<std::string>(std::string_view message)>;
  explicit Server(Program program, std::string protocol = "v5.channel.k8s.io")
      : program_{std::move(program)}, protocol_{std::move(protocol)} {}

  base::Status upgrade(
      const Request& request, const std::vector<std::pair<std::string, std::string>>& headers,
      const std::function<void(const Response& head, Duplex& connection)>& use) override {
    path = request.path;
    std::string key;
    for (const auto& [name, value] : headers) {
      if (name == "Sec-WebSocket-Key") key = value;
    }
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) return base::Error{};
    std::thread server{[this, fd = ends[1]] { serve(fd); }};
    SocketDuplex connection{ends[0]};
    use({.status = 101,
         .headers = {{"sec-websocket-accept", web_socket_accept(key)},
                     {"sec-websocket-protocol", protocol_}}},
        connection);
    ::close(ends[0]);
    server.join();
    return {};
  }

  std::string path;

 private:
  void serve(int fd) {
    SocketDuplex connection{fd};
    bool is_over = false;
    WebSocket* socket = nullptr;
    WebSocket made{WebSocket::Side::kServer,
                   {.read = [&](char* out, std::size_t size) { return connection.read(out, size); },
                    .write = [&](std::string_view bytes) { return connection.write(bytes); },
                    .message =
                        [&](std::string_view message) {
                          for (const std::string& answer : program_(message)) {
                            is_over = is_over || answer.empty();
                            if (!answer.empty()) (void)socket->send(answer);
                          }
                        }}};
    socket = &made;
    pollfd look{fd, POLLIN, 0};
    while (!is_over && ::poll(&look, 1, -1) > 0 && made.receive()) {
    }
    ::close(fd);
  }

  const Program program_;
  const std::string protocol_;
};

class Caller final : public ExecCaller {
 public:
  explicit Caller(std::string first) : first_{std::move(first)} {}
  std::string first() override { return first_; }
  std::vector<pollfd> waits(bool takes_input) override {
    ++waits_count;
    if (!takes_input) ++waits_without_input;
    return {};
  }
  std::string idle() override { return "nothing"; }
  std::string ready(const pollfd&) override { return ""; }
  bool takes_output() const override { return waits_count > rests_until; }
  bool gives_up() const override { return waits_count > waits_count_max; }
  void output(int stream, std::string_view bytes) override { (stream == 1 ? out : err) += bytes; }
  std::string out, err;
  int waits_without_input = 0;
  int waits_count = 0;
  int rests_until = 0;  // takes no output before
  int waits_count_max = 1'000'000;

 private:
  const std::string first_;
};

std::string on(char channel, const std::string& text) {
  return std::string(1, channel) + text;
}
const ExecRequest kRequest{.ns = "a", .pod = "p", .container = "main", .command = {"x", "y z"}};
constexpr const char* kExit6 = R"({"status":"Failure","reason":"NonZeroExitCode",)"
                               R"("details":{"causes":[{"reason":"ExitCode","message":"6"}]}})";

TEST(PodExec, CarriesInputOutputAndTheExitCode) {
  std::string heard;
  const std::string input(100'000, 'i');
  Server server{[&](std::string_view message) {
    heard += message.substr(1);
    if (heard.size() < input.size()) return std::vector<std::string>{};
    return std::vector<std::string>{on(1, "out"), on(2, "err"), on(1, "put"), on(3, kExit6)};
  }};
  Caller caller{input};
  const auto code = pod_exec(server, kRequest, caller);
  ASSERT_TRUE(code.ok()) << code.error().message;
  EXPECT_EQ(*code, 6);
  EXPECT_EQ(heard, input);
  EXPECT_EQ(caller.out, "output");
  EXPECT_EQ(caller.err, "err");
  EXPECT_EQ(server.path,
            "/api/v1/namespaces/a/pods/p/exec?container=main&stdin=true&stdout=true&stderr=true"
            "&command=x&command=y%20z");
}

TEST(PodExec, ALostConnectionIsNotAnEnd) {
  Server server{[](std::string_view) { return std::vector<std::string>{on(1, "part"), ""}; }};
  Caller caller{"x"};
  const auto code = pod_exec(server, kRequest, caller);
  ASSERT_FALSE(code.ok());
  EXPECT_EQ(code.error().code, base::Code::kUnavailable);
  EXPECT_THAT(code.error().message, HasSubstr("pod a/p: exec: the connection was lost"));
  EXPECT_EQ(caller.out, "part");
}

TEST(PodExec, AServerOfAnotherProtocolIsNamedAsSuch) {
  Server server{[](std::string_view) { return std::vector<std::string>{}; }, "v4.channel.k8s.io"};
  Caller caller{""};
  EXPECT_THAT(pod_exec(server, kRequest, caller).error().message, HasSubstr("v5.channel.k8s.io"));
}

TEST(PodExec, AProgramThatCannotBeStartedIsAnError) {
  Server server{[](std::string_view) {
    return std::vector<std::string>{
        on(3, R"({"status":"Failure","reason":"InternalError","message":"no such file"})")};
  }};
  Caller caller{"x"};
  EXPECT_THAT(pod_exec(server, kRequest, caller).error().message, HasSubstr("no such file"));
}

// Anything may be between a program and its API server, so anything may come as an answer.
TEST(PodExec, AnEndOfAnotherShapeIsAnError) {
  for (const std::string end :
       {"[]", "{}", "nonsense", R"({"status":1,"reason":null,"message":{}})",
        R"({"reason":"NonZeroExitCode","details":null})",
        R"({"reason":"NonZeroExitCode","details":{"causes":{"a":1}}})",
        R"({"reason":"NonZeroExitCode","details":{"causes":[7,{"reason":2,"message":[]}]}})"}) {
    Server server{[&](std::string_view) { return std::vector<std::string>{on(3, end)}; }};
    Caller caller{"x"};
    EXPECT_FALSE(pod_exec(server, kRequest, caller).ok()) << end;
  }
}

TEST(PodExec, AnIdleConnectionIsUsed) {
  Server server{[](std::string_view message) {
    const bool is_idle = message.substr(1) == "nothing";
    return is_idle ? std::vector<std::string>{on(3, kExit6)} : std::vector<std::string>{};
  }};
  Caller caller{"x"};
  ExecRequest request = kRequest;
  request.idle_after = std::chrono::milliseconds{20};
  const auto code = pod_exec(server, request, caller);
  ASSERT_TRUE(code.ok()) << code.error().message;
  EXPECT_EQ(*code, 6);
}

// The server answers pings while its program says nothing; it is asked every few milliseconds.
TEST(PodExec, APingThatIsAnsweredKeepsAQuietConnection) {
  Server server{[](std::string_view message) {
    const bool is_idle = message.substr(1) == "nothing";
    return is_idle ? std::vector<std::string>{on(3, kExit6)} : std::vector<std::string>{};
  }};
  Caller caller{"x"};
  ExecRequest request = kRequest;
  request.idle_after = std::chrono::milliseconds{1'500};
  request.ping_every = std::chrono::milliseconds{5};
  request.answer_within = std::chrono::milliseconds{500};
  const auto code = pod_exec(server, request, caller);
  ASSERT_TRUE(code.ok()) << code.error().message;
}

// Takes the connection, and nothing from it.
class DeadServer final : public Upgrader {
 public:
  base::Status upgrade(
      const Request&, const std::vector<std::pair<std::string, std::string>>& headers,
      const std::function<void(const Response& head, Duplex& connection)>& use) override {
    std::string key;
    for (const auto& [name, value] : headers) {
      if (name == "Sec-WebSocket-Key") key = value;
    }
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) return base::Error{};
    SocketDuplex connection{ends[0]};
    use({.status = 101,
         .headers = {{"sec-websocket-accept", web_socket_accept(key)},
                     {"sec-websocket-protocol", "v5.channel.k8s.io"}}},
        connection);
    for (const int fd : ends) ::close(fd);
    return {};
  }
};
ExecRequest impatient_request() {
  ExecRequest request = kRequest;
  request.ping_every = std::chrono::milliseconds{5};
  request.answer_within = std::chrono::milliseconds{20};
  return request;
}

TEST(PodExec, AConnectionWhoseEndDoesNotAnswerIsLost) {
  DeadServer server;
  Caller caller{""};
  caller.waits_count_max = 2'000;
  const auto code = pod_exec(server, impatient_request(), caller);
  ASSERT_FALSE(code.ok());
  EXPECT_EQ(code.error().code, base::Code::kUnavailable);
  EXPECT_THAT(code.error().message, HasSubstr("no longer answers"));
}

// The answer to a ping stands behind input, which a frozen pod does not take.
TEST(PodExec, AServerThatHasInputToPassOnMayTakeItsTime) {
  DeadServer server;
  Caller caller{"input"};
  caller.waits_count_max = 100;
  EXPECT_EQ(pod_exec(server, impatient_request(), caller).error().code, base::Code::kCancelled);
}

TEST(PodExec, OutputThatTheCallerDoesNotTakeIsLeftToTheServer) {
  Server server{[](std::string_view) {
    return std::vector<std::string>{on(1, "o"), on(3, kExit6)};
  }};
  Caller caller{"x"};
  caller.rests_until = 50;
  ExecRequest request = impatient_request();
  ASSERT_TRUE(pod_exec(server, request, caller).ok());
  EXPECT_GT(caller.waits_count, 50);
  EXPECT_EQ(caller.out, "o");
}

// A server that takes nothing for a while: what must not wait is still asked for.
TEST(PodExec, EnoughInputThatWaitsHoldsNothingElse) {
  Server server{[](std::string_view message) {
    return message.back() == 'z' ? std::vector<std::string>{on(3, kExit6)}
                                 : std::vector<std::string>{};
  }};
  Caller caller{std::string(3U << 20U, 'i') + "z"};
  ASSERT_TRUE(pod_exec(server, kRequest, caller).ok());
  EXPECT_GT(caller.waits_without_input, 0);
}

// SOURCE: the example of RFC 6455, section 1.3.
TEST(WebSocket, AcceptsAKeyAsTheStandardSays) {
  EXPECT_EQ(web_socket_accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

}  // namespace
}  // namespace kube
