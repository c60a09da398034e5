// The transport against the HTTP library's own server on the loopback.
#include "kube/http_transport.h"

#include <gtest/gtest.h>
#include <httplib.h>
#include <openssl/x509.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "kube/testing/manual_clock.h"
#include "kube/testing/test_certificates.h"
#include "kube/testing/test_proxy.h"
#include "kube/tls_identity.h"

namespace kube {
namespace {

using base::Code;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Serves until it goes out of scope.
class TestServer {
 public:
  // Port 0: any free one.
  explicit TestServer(std::unique_ptr<httplib::Server> server = std::make_unique<httplib::Server>(),
                      int port = 0)
      : server_{std::move(server)} {
    server_->set_keep_alive_timeout(1);  // s; stop() waits for it
    server_->set_tcp_nodelay(true);      // as Go's server has it; before the socket is made
    port_ = port == 0 ? server_->bind_to_any_port("127.0.0.1") : port;
    if (port != 0) {
      EXPECT_TRUE(server_->bind_to_port("127.0.0.1", port));
    }
  }
  ~TestServer() { stop(); }

  httplib::Server& operator*() { return *server_; }
  httplib::Server* operator->() { return server_.get(); }
  void start() {
    thread_ = std::thread{[this] { server_->listen_after_bind(); }};
    while (!server_->is_running()) std::this_thread::yield();
  }
  void stop() {
    if (!thread_.joinable()) return;
    server_->stop();
    thread_.join();
  }
  int port() const { return port_; }
  std::string url(const char* scheme = "http") const {
    return std::string{scheme} + "://127.0.0.1:" + std::to_string(port_);
  }

 private:
  std::unique_ptr<httplib::Server> server_;
  int port_ = 0;
  std::thread thread_;
};

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

const SystemClock kClock;

std::unique_ptr<HttpTransport> transport_to(const TransportConfig& config) {
  auto transport = HttpTransport::create(config, kClock);
  if (!transport.ok()) {
    ADD_FAILURE() << transport.error().message;
    return nullptr;
  }
  return std::move(*transport);
}

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

TEST(HttpTransport, CallsShareAConnection) {
  TestServer server;
  std::set<int> ports;
  server->Get("/", [&](const httplib::Request& request, httplib::Response& response) {
    ports.insert(request.remote_port);
    response.set_content("{}", "application/json");
  });
  server.start();
  const auto transport = transport_to({.server = server.url()});
  // Fewer than the 5 that the test's server serves on one connection.
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(transport->send({.path = "/"}).ok());
  EXPECT_EQ(ports.size(), 1U);
}

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

TEST(HttpTransport, StopEndsAQuietStreamAtOnce) {
  Gate gate;
  TestServer server;
  serve_quiet_stream(server, gate);
  server.start();
  const auto transport = transport_to({.server = server.url()});
  std::stop_source stop;
  std::atomic<bool> seen{false};
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

TEST(HttpTransport, MalformedRequestsAreOurOwnFault) {
  const auto transport = transport_to({.server = "http://127.0.0.1:1"});
  EXPECT_EQ(transport->send({.path = "pods"}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(transport->send({.path = "/a b"}).error().code, Code::kInvalidArgument);
  for (const char* url : {"", "127.0.0.1:6443", "ftp://a", "https://", "https://a:b",
                          "https://a:99999", "https://[::1", "https://a:"}) {
    EXPECT_EQ(HttpTransport::create({.server = url}, kClock).error().code, Code::kInvalidArgument)
        << url;
  }
  EXPECT_TRUE(HttpTransport::create({.server = "https://[::1]:6443/a"}, kClock).ok());
}

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

class TlsTest : public testing::Test {
 protected:
  // With `clients`, the server asks for certificates of that authority.
  void serve(const CertificateOptions& options, const TestAuthority* clients = nullptr,
             int port = 0) {
    const PemPair pair = authority_.issue(options);
    auto certificates = parse_certificates(pair.certificate);
    auto key = parse_private_key(pair.key);
    X509_STORE* store = nullptr;
    if (clients != nullptr) {
      store = X509_STORE_new();  // the server takes it over
      auto authority = parse_certificates(clients->certificate());
      X509_STORE_add_cert(store, authority->front().get());
    }
    server_ = std::make_unique<TestServer>(
        std::make_unique<httplib::SSLServer>(certificates->front().get(), key->get(), store), port);
    const auto answer = [](const httplib::Request&, httplib::Response& response) {
      response.set_content("{}", "application/json");
    };
    (*server_)->Get("/", answer).Post("/", answer);
    server_->start();
  }
  TransportConfig config() const {
    return {.server = server_->url("https"),
            .ca_pem = authority_.certificate(),
            .origin = "kubeconfig test"};
  }
  base::Result<Response> get(const TransportConfig& config) const {
    return transport_to(config)->send({.path = "/"});
  }

  TestAuthority authority_;
  std::unique_ptr<TestServer> server_;
};

TEST_F(TlsTest, TrustsTheAuthorityOfTheConfiguration) {
  serve({});
  const auto response = get(config());
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->status, 200);
}

// A create cannot be repeated, so it must not be sent into a connection that has ended meanwhile.
TEST_F(TlsTest, ConnectionThatTheServerClosedIsNotUsedAgain) {
  serve({});
  const auto transport = transport_to(config());
  ASSERT_TRUE(transport->send({.path = "/"}).ok());
  const int port = server_->port();
  server_.reset();
  serve({}, nullptr, port);
  const auto response = transport->send({.method = Method::kPost, .path = "/", .body = "{}"});
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->status, 200);
}

TEST_F(TlsTest, UnknownAuthorityIsRefusedUnlessAskedToSkip) {
  serve({});
  TransportConfig other = config();
  other.ca_pem = TestAuthority{}.certificate();
  const auto response = get(other);
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, Code::kUnauthenticated);
  EXPECT_NE(response.error().message.find("is not trusted"), std::string::npos)
      << response.error().message;
  other.insecure_skip_tls_verify = true;
  EXPECT_TRUE(get(other).ok());
}

TEST_F(TlsTest, ExpiredServerCertificateSaysSo) {
  serve({.valid_from = -std::chrono::hours{2}, .valid_until = -std::chrono::hours{1}});
  const auto response = get(config());
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error(),
            (base::Error{Code::kUnauthenticated,
                         "the certificate of the server " + server_->url("https") +
                             " is not trusted: certificate has expired (kubeconfig test)"}));
}

TEST_F(TlsTest, CertificateForAnotherHostIsRefused) {
  serve({.common_name = "elsewhere", .host = "DNS:elsewhere"});
  const auto response = get(config());
  ASSERT_FALSE(response.ok());
  EXPECT_NE(response.error().message.find("it is not for the host 127.0.0.1"), std::string::npos)
      << response.error().message;
}

TEST_F(TlsTest, ClientCertificateIsPresented) {
  const TestAuthority clients;
  serve({}, &clients);
  const PemPair pair = clients.issue({.common_name = "admin", .organization = "system:masters"});
  TransportConfig with = config();
  with.client_certificate_pem = pair.certificate;
  with.client_key_pem = pair.key;
  const auto response = get(with);
  ASSERT_TRUE(response.ok()) << response.error().message;
}

TEST_F(TlsTest, ClientCertificateThatTheServerRefusesIsNotAuthenticated) {
  const TestAuthority clients;
  serve({}, &clients);
  const PemPair pair = TestAuthority{}.issue({.common_name = "stranger"});
  TransportConfig with = config();
  with.client_certificate_pem = pair.certificate;
  with.client_key_pem = pair.key;
  // The server's reset may overtake its alert; then it is one more broken connection.
  auto response = get(with);
  for (int i = 0; i < 50 && response.error().code == Code::kUnavailable; ++i) response = get(with);
  EXPECT_EQ(response.error().code, Code::kUnauthenticated) << response.error().message;
  EXPECT_NE(response.error().message.find("alert"), std::string::npos);
}

TEST_F(TlsTest, CertificateOfAPluginIsPresented) {
  const TestAuthority clients;
  serve({}, &clients);
  const PemPair pair = clients.issue({.common_name = "anna"});
  const nlohmann::json answer{
      {"apiVersion", "client.authentication.k8s.io/v1"},
      {"kind", "ExecCredential"},
      {"status", {{"clientCertificateData", pair.certificate}, {"clientKeyData", pair.key}}}};
  TransportConfig with_plugin = config();
  with_plugin.exec = ExecPlugin{.api_version = "client.authentication.k8s.io/v1",
                                .command = "printf",
                                .arguments = {"%s", answer.dump()},
                                .interactive = ExecPlugin::Interactive::kNever};
  const auto response = get(with_plugin);
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->status, 200);
  EXPECT_FALSE(get(config()).ok()) << "the server asks for a certificate";
}

// The client knows the server by a name that is in no DNS, and reaches it at its address.
TEST_F(TlsTest, TlsServerNameIsWhatTheCertificateHasToSay) {
  serve({.host = "DNS:api.internal"});
  EXPECT_EQ(get(config()).error().code, Code::kUnauthenticated);
  TransportConfig named = config();
  named.tls_server_name = "api.internal";
  const auto response = get(named);
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->status, 200);
  named.tls_server_name = "api.external";
  EXPECT_EQ(get(named).error().message,
            "the certificate of the server " + config().server +
                " is not trusted: it is not for the host api.external (kubeconfig test)");
}

TEST_F(TlsTest, ProxiesCarryTls) {
  serve({.host = "DNS:api.internal"});
  TransportConfig behind = config();
  behind.server = "https://api.internal:6443";
  const struct {
    TestProxy::Kind kind;
    const char* scheme;
    const char* user;
  } cases[] = {{TestProxy::Kind::kHttp, "http", ""},
               {TestProxy::Kind::kHttp, "http", "me"},
               {TestProxy::Kind::kSocks, "socks5", ""},
               {TestProxy::Kind::kSocks, "socks5", "me"}};
  for (const auto& one : cases) {
    const TestProxy proxy{one.kind, server_->port(), one.user};
    const std::string address = "127.0.0.1:" + std::to_string(proxy.port());
    const std::string login = *one.user == '\0' ? "" : std::string{one.user} + ":secret@";
    behind.proxy_url = std::string{one.scheme} + "://" + login + address;
    const auto transport = transport_to(behind);
    for (int i = 0; i < 2; ++i) {
      const auto response = transport->send({.path = "/"});
      ASSERT_TRUE(response.ok()) << one.scheme << one.user << ": " << response.error().message;
      EXPECT_EQ(response->status, 200);
    }
    EXPECT_EQ(proxy.asked(), std::vector<std::string>{"api.internal:6443"}) << "one connection";
    if (*one.user == '\0') continue;
    behind.proxy_url = std::string{one.scheme} + "://me:mistaken@" + address;
    const std::string error = transport_to(behind)->send({.path = "/"}).error().message;
    EXPECT_TRUE(
        error.starts_with("the proxy " + std::string{one.scheme} + "://" + address + " refused: "))
        << error;
    EXPECT_EQ(error.find("mistaken"), std::string::npos) << "the password is in the message";
  }
}

TEST_F(TlsTest, ProxyAndTlsServerNameTogether) {
  serve({.host = "DNS:api.internal"});
  const TestProxy proxy{TestProxy::Kind::kHttp, server_->port()};
  TransportConfig behind = config();
  behind.server = "https://10.0.0.1:6443";
  behind.tls_server_name = "api.internal";
  behind.proxy_url = "http://127.0.0.1:" + std::to_string(proxy.port());
  const auto response = get(behind);
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(proxy.asked(), std::vector<std::string>{"10.0.0.1:6443"});
}

TEST_F(TlsTest, ProxyThatIsNotThereIsNamed) {
  serve({});
  TransportConfig behind = config();
  behind.proxy_url = "http://127.0.0.1:1";
  EXPECT_EQ(get(behind).error(),
            (base::Error{Code::kUnavailable,
                         "cannot connect to the proxy http://127.0.0.1:1 (kubeconfig test)"}));
}

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

TEST(HttpTransportCreate, ExpiredClientCertificateIsASentence) {
  const TestAuthority authority;
  const PemPair pair = authority.issue(
      {.valid_from = -std::chrono::hours{2}, .valid_until = -std::chrono::hours{1}});
  const auto transport = HttpTransport::create({.server = "https://127.0.0.1:1",
                                                .client_certificate_pem = pair.certificate,
                                                .client_key_pem = pair.key,
                                                .origin = "kubeconfig /x, context dev"},
                                               kClock);
  ASSERT_FALSE(transport.ok());
  EXPECT_EQ(transport.error().code, Code::kUnauthenticated);
  EXPECT_NE(
      transport.error().message.find("kubeconfig /x, context dev: client certificate: expired at "),
      std::string::npos)
      << transport.error().message;
}

TEST(HttpTransportCreate, BrokenCertificatesAndKeysAreRefused) {
  const TestAuthority authority;
  const PemPair a = authority.issue({});
  const PemPair b = authority.issue({});
  const auto message = [&](const TransportConfig& config) {
    const auto transport = HttpTransport::create(config, kClock);
    return transport.ok() ? std::string{} : transport.error().message;
  };
  const std::string url = "https://127.0.0.1:1";
  EXPECT_EQ(message({.server = url, .ca_pem = "nonsense"}),
            "certificate authority: not a PEM certificate");
  EXPECT_EQ(message({.server = url, .client_certificate_pem = "x", .client_key_pem = a.key}),
            "client certificate: not a PEM certificate");
  EXPECT_EQ(
      message({.server = url, .client_certificate_pem = a.certificate, .client_key_pem = "x"}),
      "client key: not a PEM private key without a password");
  EXPECT_EQ(
      message({.server = url, .client_certificate_pem = a.certificate, .client_key_pem = b.key}),
      "client key: it is not the key of the client certificate");
}

}  // namespace
}  // namespace kube
