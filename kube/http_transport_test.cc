// The transport against the HTTP library's own server on the loopback.
#include "kube/http_transport.h"

#include <gtest/gtest.h>
#include <httplib.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>

namespace kube {
namespace {

using base::Code;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Handlers wait here until the test ends.
class Gate {
 public:
  void open() {
    {
      const std::lock_guard lock{mu_};
      open_ = true;
    }
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock{mu_};
    changed_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  bool open_ = false;
};

// The path is sent as it is: it is escaped already, and escaping it again would make %252F of %2F.
// The server's address may have a path (a proxy of several clusters), which stands before that of
// the request. Names of headers in answers are in lower case.
TEST(HttpTransport, CarriesMethodPathBodyAndHeadersBothWays) {
  TestServer server;
  const auto echo = [](const httplib::Request& request, httplib::Response& response) {
    response.status = 201;
    response.set_header("X-Seen", request.method + " " + request.path + " " +
                                      request.get_param_value("a") + " " +
                                      request.get_header_value("Content-Type") + " " +
                                      request.get_header_value("Authorization"));
    response.set_content(request.body, "application/json");
  };
  server->Get(".*", echo);
  server->Post(".*", echo);
  server->Put(".*", echo);
  server->Patch(".*", echo);
  server->Delete(".*", echo);
  server.start();
  const auto transport =
      transport_to({.server = server.url() + "/prefix/", .bearer_token = "secret"});
  const struct {
    Method method;
    const char* name;
  } cases[] = {{Method::kPost, "POST"},
               {Method::kPut, "PUT"},
               {Method::kPatch, "PATCH"},
               {Method::kDelete, "DELETE"}};
  for (const auto& one : cases) {
    const auto response = transport->send({.method = one.method,
                                           .path = "/api/v1/pods%2Fx?a=b%26c%20d",
                                           .body = "{}",
                                           .content_type = "application/merge-patch+json"});
    ASSERT_TRUE(response.ok()) << response.error().message;
    EXPECT_EQ(response->status, 201);
    EXPECT_EQ(response->body, "{}");
    EXPECT_EQ(response->headers.at("x-seen"), std::string{one.name} +
                                                  " /prefix/api/v1/pods/x b&c d " +
                                                  "application/merge-patch+json Bearer secret");
  }
  const auto response = transport->send({.path = "/api/v1/pods"});
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->headers.at("x-seen"), "GET /prefix/api/v1/pods   Bearer secret");
}

// A connection of its own for each call would add a TLS handshake to each, which costs both sides
// more than most calls.
TEST(HttpTransport, CallsShareAConnection) {
  TestServer server;
  std::set<int> ports;
  server->Get("/", [&](const httplib::Request& request, httplib::Response& response) {
    // The client's port: a new connection has a new one.
    ports.insert(request.remote_port);
    response.set_content("{}", "application/json");
  });
  server.start();
  const auto transport = transport_to({.server = server.url()});
  // Fewer than the 5 that the test's server serves on one connection.
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(transport->send({.path = "/"}).ok());
  EXPECT_EQ(ports.size(), 1U);
}

// 4 threads, 25 calls each: none may fail, and none may get another's answer (ThreadSanitizer runs
// this test, too).
TEST(HttpTransport, ThreadsShareIt) {
  TestServer server;
  server->Get("/", [](const httplib::Request&, httplib::Response& response) {
    response.set_content("{}", "application/json");
  });
  server.start();
  const auto transport = transport_to({.server = server.url()});
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 25; ++j) good += transport->send({.path = "/"}).ok() ? 1 : 0;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 100);
}

// The port was served a moment ago and is not now. The sentence names the configuration,
// because a wrong kubeconfig is the usual cause.
TEST(HttpTransport, NobodyListeningIsUnavailable) {
  std::string url;
  {
    TestServer server;
    server.start();
    url = server.url();
  }
  const auto transport = transport_to({.server = url, .origin = "kubeconfig /x, context dev"});
  EXPECT_EQ(transport->send({.path = "/"}).error(),
            (base::Error{Code::kUnavailable, "cannot connect to " + url +
                                                 ": is it running? (kubeconfig /x, context dev)"}));
  EXPECT_EQ(
      transport->stream({.path = "/"}, [](std::string_view) { return true; }, {}).error().code,
      Code::kUnavailable);
}

// The handler waits for the gate, which opens only after the time-out. A timeout is not
// kUnavailable: the server may have done what it was asked for.
TEST(HttpTransport, AnswerThatDoesNotComeIsATimeout) {
  Gate gate;
  TestServer server;
  server->Get("/", [&](const httplib::Request&, httplib::Response&) { gate.wait(); });
  server.start();
  const auto transport = transport_to({.server = server.url()});
  const auto response = transport->send({.path = "/", .timeout = milliseconds{50}});
  gate.open();
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, Code::kTimeout) << response.error().message;
}

// One byte at a time, forever: no single read is slow, so only the limit of the whole answer ends
// it.
TEST(HttpTransport, AnswerThatTricklesIsATimeout) {
  TestServer server;
  server->Get("/", [](const httplib::Request&, httplib::Response& response) {
    response.set_chunked_content_provider(
        "text/plain", [](std::size_t, httplib::DataSink& sink) { return sink.write("x", 1); });
  });
  server.start();
  const auto transport = transport_to({.server = server.url()});
  EXPECT_EQ(transport->send({.path = "/", .timeout = milliseconds{50}}).error().code,
            Code::kTimeout);
}

// Lines and chunks have nothing to do with each other. Empty lines are skipped, and a rest without
// a line end is not a line.
TEST(HttpTransport, StreamDeliversLinesAcrossChunks) {
  TestServer server;
  server->Get("/", [](const httplib::Request&, httplib::Response& response) {
    response.set_chunked_content_provider(
        "application/json", [](std::size_t, httplib::DataSink& sink) {
          for (const std::string part : {"on", "e\ntwo\n\nth", "ree\n", "rest"}) {
            sink.write(part.data(), part.size());
          }
          sink.done();
          return true;
        });
  });
  server.start();
  const auto transport = transport_to({.server = server.url()});
  std::vector<std::string> lines;
  const auto all = [&](std::string_view line) {
    lines.emplace_back(line);
    return true;
  };
  const auto ended = transport->stream({.path = "/"}, all, {});
  EXPECT_TRUE(ended.ok()) << ended.error().message;
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", "three"}));

  int lines_count = 0;
  // A consumer that has had enough after one line ends the stream, and that is not an error.
  const auto first = [&](std::string_view) { return ++lines_count < 1; };
  EXPECT_TRUE(transport->stream({.path = "/"}, first, {}).ok());
  EXPECT_EQ(lines_count, 1);
}

// A server whose stream sends one line and then nothing until the gate opens.
void serve_quiet_stream(TestServer& server, Gate& gate) {
  server->Get("/", [&gate](const httplib::Request&, httplib::Response& response) {
    response.set_chunked_content_provider("application/json",
                                          [&gate](std::size_t offset, httplib::DataSink& sink) {
                                            if (offset == 0) return sink.write("one\n", 4);
                                            gate.wait();
                                            return false;
                                          });
  });
}

// With a time-out of 60 s this test would hang if stop() did not reach the read that waits. A watch
// is quiet most of the time, and a process that must end has seconds, or is killed with its
// lease held.
TEST(HttpTransport, StopEndsAQuietStreamAtOnce) {
  Gate gate;
  TestServer server;
  serve_quiet_stream(server, gate);
  server.start();
  const auto transport = transport_to({.server = server.url()});
  std::stop_source stop;
  std::atomic<bool> seen{false};
  // Stops only after the first line has come, so that the stream is in the middle of a read.
  std::thread stopper{[&] {
    while (!seen) std::this_thread::yield();
    stop.request_stop();
  }};
  const auto ended = transport->stream(
      {.path = "/", .timeout = seconds{60}},
      [&](std::string_view) {
        seen = true;
        return true;
      },
      stop.get_token());
  stopper.join();
  gate.open();
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code, Code::kCancelled);
}

// The library ignores a stop before it has a connection; the transport must not.
TEST(HttpTransport, StopBeforeTheStreamBeginsEndsItToo) {
  Gate gate;
  TestServer server;
  serve_quiet_stream(server, gate);
  server.start();
  const auto transport = transport_to({.server = server.url()});
  std::stop_source stop;
  stop.request_stop();
  const auto ended = transport->stream(
      {.path = "/", .timeout = seconds{60}}, [](std::string_view) { return true; },
      stop.get_token());
  gate.open();
  EXPECT_EQ(ended.error().code, Code::kCancelled);
}

// Reads the kernel's timers of this machine's connections to a port: 2 means keepalive (proc(5)).
std::string timers_of(int port) {
  std::ifstream table{"/proc/net/tcp"};
  std::string timers;
  for (std::string line; std::getline(table, line);) {
    std::istringstream words{line};
    std::string number, local, remote, state, queues, timer;
    words >> number >> local >> remote >> state >> queues >> timer;
    const bool is_ours =
        state == "01" && remote.size() == 13 && std::stoi(remote.substr(9), nullptr, 16) == port;
    if (is_ours) timers += timer.substr(0, 2);
  }
  return timers;
}

// An API server that is gone without a word is noticed because the kernel asks: for a connection
// that is kept for the next call, and for a stream.
TEST(HttpTransport, TheKernelLooksAfterConnectionsThatAreQuiet) {
  Gate gate;
  TestServer server;
  serve_quiet_stream(server, gate);
  server->Get("/call", [](const httplib::Request&, httplib::Response&) {});
  server.start();
  const auto transport = transport_to({.server = server.url()});
  ASSERT_TRUE(transport->send({.path = "/call"}).ok());
  EXPECT_EQ(timers_of(server.port()), "02");
  std::stop_source stop;
  std::string timers;
  (void)transport->stream(
      {.path = "/", .timeout = seconds{60}},
      [&](std::string_view) {
        timers = timers_of(server.port());
        return false;
      },
      stop.get_token());
  gate.open();
  EXPECT_EQ(timers, "0202");
}

// A watch that brings nothing for its idle time-out may be dead (a firewall forgot the connection).
// The line that came before is not lost.
TEST(HttpTransport, QuietStreamIsATimeout) {
  Gate gate;
  TestServer server;
  serve_quiet_stream(server, gate);
  server.start();
  const auto transport = transport_to({.server = server.url()});
  int lines_count = 0;
  const auto ended = transport->stream({.path = "/", .timeout = milliseconds{50}},
                                       [&](std::string_view) {
                                         ++lines_count;
                                         return true;
                                       },
                                       {});
  gate.open();
  EXPECT_EQ(ended.error().code, Code::kTimeout) << ended.error().message;
  EXPECT_EQ(lines_count, 1);
}

// A clean end of the session is OK, a broken one is not: the informer treats them differently.
TEST(HttpTransport, StreamThatBreaksIsUnavailable) {
  TestServer server;
  server->Get("/", [](const httplib::Request&, httplib::Response& response) {
    response.set_chunked_content_provider(
        "application/json", [](std::size_t offset, httplib::DataSink& sink) {
          return offset == 0 && sink.write("one\n", 4);  // then the connection is dropped
        });
  });
  server.start();
  const auto transport = transport_to({.server = server.url()});
  const auto ended = transport->stream({.path = "/"}, [](std::string_view) { return true; }, {});
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code, Code::kUnavailable) << ended.error().message;
}

// The body of the refusal is a Status and no line of events. The informer must see kGone and to
// list again; as a line it would be an event that cannot be read.
TEST(HttpTransport, StreamRefusedIsTheServersError) {
  TestServer server;
  server->Get("/", [](const httplib::Request&, httplib::Response& response) {
    response.status = 410;
    response.set_content(R"({"kind": "Status", "reason": "Expired", "message": "too old"})",
                         "application/json");
  });
  server.start();
  const auto transport = transport_to({.server = server.url()});
  const auto ended = transport->stream({.path = "/"}, [](std::string_view) { return true; }, {});
  EXPECT_EQ(ended.error(), (base::Error{Code::kGone, "too old"}));
}

// The server says for how long it wants to be left alone; a stop is obeyed meanwhile.
TEST(HttpTransport, StreamRefusedAsTooManyEndsAfterItsRetryAfter) {
  TestServer server;
  std::string pause = "1";
  server->Get("/", [&](const httplib::Request&, httplib::Response& response) {
    response.status = 429;
    response.set_header("Retry-After", pause);
  });
  server.start();
  const auto transport = transport_to({.server = server.url()});
  const auto line = [](std::string_view) { return true; };
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(transport->stream({.path = "/"}, line, {}).error().code, Code::kUnavailable);
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::seconds{1});
  pause = "60";
  std::stop_source stop;
  std::thread stopper{[&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{200});
    stop.request_stop();
  }};
  EXPECT_EQ(transport->stream({.path = "/"}, line, stop.get_token()).error().code,
            Code::kCancelled);
  stopper.join();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds{30});
}

// Two connections are idle when a call on one of them meets no answer. The other one leads to the
// same server, and is not used again.
TEST(HttpTransport, ATimeoutDropsTheIdleConnections) {
  std::mutex mu;
  std::set<int> ports;
  std::atomic<int> here = 0;
  std::atomic<bool> end = false;
  TestServer server;  // its threads use the others until it is gone
  server->Get("/", [&](const httplib::Request& request, httplib::Response&) {
    {
      const std::lock_guard lock{mu};
      ports.insert(request.remote_port);
    }
    ++here;
    while (here < 2) std::this_thread::yield();
  });
  server->Get("/hangs", [&](const httplib::Request&, httplib::Response&) {
    while (!end) std::this_thread::sleep_for(std::chrono::milliseconds{5});
  });
  server.start();
  const auto transport = transport_to({.server = server.url()});
  std::thread other{[&] { (void)transport->send({.path = "/"}); }};
  (void)transport->send({.path = "/"});
  other.join();
  ASSERT_EQ(ports.size(), 2U);
  EXPECT_EQ(
      transport->send({.path = "/hangs", .timeout = std::chrono::milliseconds{200}}).error().code,
      Code::kTimeout);
  EXPECT_TRUE(transport->send({.path = "/"}).ok());
  EXPECT_EQ(ports.size(), 3U) << "a new connection";
  end = true;
}

// Both before any connection: nothing listens on port 1. Code kInvalidArgument tells the caller
// that no retry helps. The last URL shows that brackets, a port and a path alone are allowed.
TEST(HttpTransport, MalformedRequestsAreOurOwnFault) {
  const SystemClock clock;
  const auto transport = transport_to({.server = "http://127.0.0.1:1"});
  EXPECT_EQ(transport->send({.path = "pods"}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(transport->send({.path = "/a b"}).error().code, Code::kInvalidArgument);
  for (const char* url : {"", "127.0.0.1:6443", "ftp://a", "https://", "https://a:b",
                          "https://a:99999", "https://[::1", "https://a:"}) {
    EXPECT_EQ(HttpTransport::create({.server = url}, clock).error().code, Code::kInvalidArgument)
        << url;
  }
  EXPECT_TRUE(HttpTransport::create({.server = "https://[::1]:6443/a"}, clock).ok());
}

// kubelet rotates the token in the file. The first send reads "old"; the second still has it, is
// refused with 401, reads the file again and repeats the request.
TEST(HttpTransport, RefusedTokenIsReadAgain) {
  const auto directory =
      std::filesystem::temp_directory_path() / ("kube-token-" + std::to_string(getpid()));
  std::filesystem::create_directories(directory);
  const std::string file = (directory / "token").string();
  std::ofstream{file} << "old\n";
  TestServer server;
  server->Get("/", [](const httplib::Request& request, httplib::Response& response) {
    response.status = request.get_header_value("Authorization") == "Bearer new" ? 200 : 401;
  });
  server.start();
  const auto transport = transport_to({.server = server.url(), .token_file = file});
  EXPECT_EQ(transport->send({.path = "/"})->status, 401);
  std::ofstream{file} << "new\n";
  EXPECT_EQ(transport->send({.path = "/"})->status, 200);
  std::filesystem::remove_all(directory);
}

// A slash is not allowed in a header's name and is encoded. A list of groups is one header for
// each: a comma in a single header would be part of a name.
TEST(HttpTransport, SaysAsWhomItActs) {
  std::multimap<std::string, std::string> seen;
  TestServer server;
  server->Get("/", [&](const httplib::Request& request, httplib::Response&) {
    for (const auto& [name, value] : request.headers) {
      if (name.starts_with("Impersonate-")) seen.emplace(name, value);
    }
  });
  server.start();
  const Impersonation as{.user = "anna",
                         .uid = "7",
                         .groups = {"dev", "ops"},
                         .extra = {{"example.com/scope", "view"}}};
  ASSERT_TRUE(transport_to({.server = server.url(), .impersonate = as})->send({.path = "/"}).ok());
  EXPECT_EQ(seen, (std::multimap<std::string, std::string>{
                      {"Impersonate-Extra-example.com%2Fscope", "view"},
                      {"Impersonate-Group", "dev"},
                      {"Impersonate-Group", "ops"},
                      {"Impersonate-Uid", "7"},
                      {"Impersonate-User", "anna"}}));
}

}  // namespace
}  // namespace kube
