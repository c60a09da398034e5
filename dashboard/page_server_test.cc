// The server over real sockets of this machine.
#include "dashboard/page_server.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "dashboard/bundle.h"
#include "dashboard/testing/connection.h"

namespace dashboard {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using testing::connect_to;
using testing::read_until;
using testing::send_text;

constexpr uid_t kNobody = 65534;

class PageServerTest : public ::testing::Test {
 protected:
  void SetUp() override { start({}); }

  void start(PageServer::Hooks hooks) {
    thread_ = {};
    server_.reset();
    hooks.job = [](const std::string&, const std::string& ns,
                   const std::string& name) -> base::Result<std::string> {
      if (name != "train") return base::Error{base::Code::kNotFound, "no job " + name};
      return "{\"of\":\"" + ns + "\"}";
    };
    hooks.posts["/control"] = [this](const std::string&,
                                     const std::string& body) -> base::Result<std::string> {
      ++controls_;
      if (body == "refuse") return base::Error{base::Code::kPermissionDenied, "you may not"};
      return "{\"did\":\"" + body + "\"}";
    };
    hooks.on_new_code = [](const std::string&) {};
    auto created = PageServer::create({.update_every = milliseconds{1}, .reader = ::geteuid()},
                                      board_, clock_, std::move(hooks));
    ASSERT_TRUE(created) << created.error().message;
    server_ = std::move(*created);
    code_ = server_->address().substr(server_->address().find('#') + 1);
    thread_ = std::jthread{[this](std::stop_token stop) { server_->serve(std::move(stop)); }};
  }

  std::string ask(const std::string& line, const std::string& headers = "",
                  const std::string& body = "") {
    const os::FileDescriptor socket = connect_to(server_->port());
    send_text(socket, request(line, headers, body));
    return read_until(socket, "");
  }

  std::string request(const std::string& line, const std::string& headers,
                      const std::string& body = "") const {
    const std::string host = "127.0.0.1:" + std::to_string(server_->port());
    return testing::request_text(line, host, headers, body);
  }

  std::string origin() const {
    return "Origin: http://127.0.0.1:" + std::to_string(server_->port()) + "\r\n";
  }

  // Signs in; returns the header with the cookie.
  std::string cookie() {
    const std::string answer = ask("POST /session", origin(), code_);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
    const auto begin = answer.find("Set-Cookie: ") + 12;
    return "Cookie: " + answer.substr(begin, answer.find(';', begin) - begin) + "\r\n";
  }

  const kube::SystemClock clock_{};
  Board board_;
  std::atomic<int> controls_ = 0;
  std::unique_ptr<PageServer> server_;
  std::string code_;
  std::jthread thread_;  // ends before the server
};

TEST_F(PageServerTest, ServesThePagesFilesWithoutSecretsAndInlineScripts) {
  for (const BundleFile& file : bundle_files()) {
    const std::string answer = ask("GET " + std::string{file.path});
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(answer,
                HasSubstr("Content-Security-Policy: default-src 'none'; script-src 'self'"));
    EXPECT_THAT(answer, Not(HasSubstr("unsafe-inline")));
    EXPECT_THAT(answer, HasSubstr("X-Content-Type-Options: nosniff"));
    EXPECT_TRUE(answer.ends_with(file.content)) << file.path;
  }
}

TEST_F(PageServerTest, ShowsNothingWithoutTheCookie) {
  board_.set("jobs", "secret", "1");
  for (const char* path : {"/events", "/session", "/job?ns=a&name=train", "/other"}) {
    const std::string answer = ask(std::string{"GET "} + path);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 401")) << path;
    EXPECT_THAT(answer, Not(HasSubstr("secret")));
  }
}

TEST_F(PageServerTest, ACodeWorksOnce) {
  const std::string own = cookie();
  EXPECT_THAT(ask("GET /session", own), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(ask("GET /job?ns=a&name=train", own), HasSubstr("{\"of\":\"a\"}"));
  EXPECT_THAT(ask("GET /job?ns=a&name=gone", own), StartsWith("HTTP/1.1 404"));
  const std::string again = ask("POST /session", origin(), code_);
  EXPECT_THAT(again, StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(again, Not(HasSubstr("Set-Cookie")));
}

TEST_F(PageServerTest, RefusesOtherHostsAndOrigins) {
  const std::string own = cookie();
  EXPECT_THAT(ask("POST /session", "Origin: http://evil.example\r\n", code_),
              StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(ask("GET /job?ns=a&name=train", own + "Origin: http://127.0.0.1:1\r\n"),
              StartsWith("HTTP/1.1 403"));
  const os::FileDescriptor socket = connect_to(server_->port());
  send_text(socket, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n");
  EXPECT_THAT(read_until(socket, ""), StartsWith("HTTP/1.1 403"));
}

TEST_F(PageServerTest, ControlsWithTheCookieOfItsOwnPage) {
  const std::string own = cookie();
  EXPECT_THAT(ask("POST /control", own + origin(), "hold"), HasSubstr("{\"did\":\"hold\"}"));
  const std::string refused = ask("POST /control", own + origin(), "refuse");
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(refused, HasSubstr("you may not"));
  EXPECT_EQ(controls_, 2);
}

// Goal: nothing is done for a page of another site, whatever it gets the browser to send (CSRF, DNS
// rebinding), nor for a program without the cookie.
TEST_F(PageServerTest, ControlsNothingForOthers) {
  const std::string own = cookie();
  const std::string port = std::to_string(server_->port());
  EXPECT_THAT(ask("POST /control", origin(), "hold"), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(ask("POST /control", origin() + "Cookie: kubegang_" + port + "=0\r\n", "hold"),
              StartsWith("HTTP/1.1 401"));
  for (const char* headers :
       {"", "Origin: http://evil.example\r\n", "Origin: null\r\n", "Origin: http://127.0.0.1:1\r\n",
        "Origin: http://localhost\r\n", "Referer: http://127.0.0.1/\r\n"}) {
    EXPECT_THAT(ask("POST /control", own + headers, "hold"), StartsWith("HTTP/1.1 403")) << headers;
  }
  EXPECT_THAT(ask("POST /control", own + origin() + "Sec-Fetch-Site: cross-site\r\n", "hold"),
              StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(ask("GET /control?verb=hold", own), StartsWith("HTTP/1.1 404"));
  const os::FileDescriptor socket = connect_to(server_->port());
  send_text(socket, "POST /control HTTP/1.1\r\nHost: evil.example:" + port +
                        "\r\nOrigin: http://evil.example:" + port + "\r\n" + own +
                        "Content-Length: 4\r\n\r\nhold");
  EXPECT_THAT(read_until(socket, ""), StartsWith("HTTP/1.1 403"));
  EXPECT_EQ(controls_, 0);
}

TEST_F(PageServerTest, SendsTheBoardAndThenItsChanges) {
  board_.set("jobs", "a", "1");
  const os::FileDescriptor socket = connect_to(server_->port());
  send_text(socket, request("GET /events", cookie()));
  const std::string first = read_until(socket, "\n\n");
  EXPECT_THAT(first, HasSubstr("text/event-stream"));
  EXPECT_THAT(first.find("}\n\n") == std::string::npos ? read_until(socket, "\n\n") : first,
              HasSubstr("\"full\":true,\"set\":{\"jobs\":{\"a\":1}}"));
  board_.set("jobs", "b", "2");
  EXPECT_THAT(read_until(socket, "\n\n"), HasSubstr("\"full\":false,\"set\":{\"jobs\":{\"b\":2}}"));
}

// Goal: another user of this machine gets nothing, not even the files. Method: the kernel's answer
// is replaced.
TEST_F(PageServerTest, RefusesAConnectionOfAnotherUserBeforeItIsRead) {
  PageServer::Hooks hooks;
  hooks.owner = [](const LoopbackConnection&) { return std::optional<uid_t>{kNobody}; };
  start(std::move(hooks));
  const os::FileDescriptor socket = connect_to(server_->port());
  EXPECT_THAT(read_until(socket, ""), StartsWith("HTTP/1.1 403"));
  hooks = {};
  hooks.owner = [](const LoopbackConnection&) { return std::optional<uid_t>{}; };
  start(std::move(hooks));
  EXPECT_THAT(ask("GET /"), StartsWith("HTTP/1.1 403"));
}

// The same with a process of another user, which knows the code.
TEST_F(PageServerTest, AProcessOfAnotherUserGets403) {
  if (::geteuid() != 0) GTEST_SKIP() << "becomes another user, which needs root";
  const std::string text = request("POST /session", origin(), code_);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(kNobody) != 0) ::_exit(3);
    const os::FileDescriptor socket = connect_to(server_->port());
    // The server may have answered and hung up before.
    (void)::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
    const std::string answer = read_until(socket, "");
    ::_exit(answer.starts_with("HTTP/1.1 403") ? 0 : 4);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_THAT(ask("POST /session", origin(), code_), StartsWith("HTTP/1.1 200"))
      << "the code is still good for its own user";
}

// Goal: connections without requests do not keep the user out.
TEST_F(PageServerTest, GivesUpTheOldestOfManySilentConnections) {
  std::vector<os::FileDescriptor> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(connect_to(server_->port()));
  EXPECT_THAT(ask("GET /"), StartsWith("HTTP/1.1 200"));
}

TEST_F(PageServerTest, RefusesLargeRequests) {
  EXPECT_THAT(ask("POST /session", origin(), std::string(20'000, 'x')), StartsWith("HTTP/1.1 413"));
}

TEST(PageServer, SaysThatAPortIsInUse) {
  const kube::SystemClock clock;
  Board board;
  const auto first = PageServer::create({}, board, clock, {});
  ASSERT_TRUE(first);
  Board other;
  const auto second = PageServer::create({.port = (*first)->port()}, other, clock, {});
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("the port is in use"));
}

}  // namespace
}  // namespace dashboard
