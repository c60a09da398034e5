// The transport over TLS: which server it trusts, and which certificate it shows.
#include <gtest/gtest.h>
#include <httplib.h>

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "kube/http_transport.h"
#include "kube/testing/test_certificates.h"
#include "kube/testing/tls_fixture.h"
#include "kube/tls_identity.h"

namespace kube {
namespace {

using base::Code;

class TlsTest : public TlsFixture {
 protected:
  // Connections to the server that began with the session of an earlier one.
  long resumed() const {
    return SSL_CTX_sess_hits(static_cast<httplib::SSLServer&>(**server_).ssl_context());
  }
};

// The base of all other tests here: what they refuse is due to the one thing that they change.
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
  // The same port again: to the transport it is the same server.
  const int port = server_->port();
  server_.reset();
  serve({}, nullptr, port);
  const auto response = transport->send({.method = Method::kPost, .path = "/", .body = "{}"});
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->status, 200);
}

// Larger than a record of TLS and than what is read at once, on one connection.
TEST_F(TlsTest, LargeBodiesGoBothWays) {
  std::set<int> ports;
  handlers_ = [&](httplib::Server& server) {
    server.Post("/echo", [&](const httplib::Request& request, httplib::Response& response) {
      ports.insert(request.remote_port);
      response.set_content(request.body, "application/json");
    });
  };
  serve({});
  const auto transport = transport_to(config());
  // At most 5, which is what the test's server serves on one connection.
  for (const std::size_t bytes : {0U, 1U, 16'383U, 300'000U}) {
    std::string body(bytes, 'x');
    for (std::size_t i = 0; i < bytes; i += 97) body[i] = 'y';
    const auto response = transport->send({.method = Method::kPost, .path = "/echo", .body = body});
    ASSERT_TRUE(response.ok()) << response.error().message;
    EXPECT_TRUE(response->body == body) << bytes;
  }
  EXPECT_EQ(ports.size(), 1U);
}

// Bytes behind an answer must not be taken for the next one.
TEST_F(TlsTest, ConnectionWithMoreThanTheAnswerIsNotUsedAgain) {
  std::set<int> ports;
  handlers_ = [&](httplib::Server& server) {
    server.Get("/more", [&](const httplib::Request& request, httplib::Response& response) {
      ports.insert(request.remote_port);
      response.set_content_provider(2, "application/json",
                                    [](std::size_t, std::size_t, httplib::DataSink& sink) {
                                      const std::string_view more = "{}HTTP/1.1 500 Late\r\n\r\n";
                                      return sink.write(more.data(), more.size());
                                    });
    });
  };
  serve({});
  const auto transport = transport_to(config());
  for (std::size_t i = 1; i <= 3; ++i) {
    const auto response = transport->send({.path = "/more"});
    ASSERT_TRUE(response.ok()) << response.error().message;
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(response->body, "{}");
    EXPECT_EQ(ports.size(), i);
  }
}

// One byte at a time, forever; and nothing at all, until the request has failed.
TEST_F(TlsTest, SlowAnswersAreTimeouts) {
  std::promise<void> end;
  handlers_ = [&, ended = end.get_future().share()](httplib::Server& server) {
    server.Get("/silent", [ended](const httplib::Request&, httplib::Response&) { ended.wait(); });
    server.Get("/trickles", [](const httplib::Request&, httplib::Response& response) {
      response.set_chunked_content_provider(
          "text/plain", [](std::size_t, httplib::DataSink& sink) { return sink.write("x", 1); });
    });
  };
  serve({});
  const auto transport = transport_to(config());
  for (const char* path : {"/silent", "/trickles"}) {
    const auto response =
        transport->send({.path = path, .timeout = std::chrono::milliseconds{300}});
    ASSERT_FALSE(response.ok()) << path;
    EXPECT_EQ(response.error().code, Code::kTimeout) << path << ": " << response.error().message;
  }
  end.set_value();
}

// A record of the handshake, announced with 16 KiB and sent a byte every 10 ms, so that no step of
// the handshake waits long.
class TricklingHandshake : public httplib::Server {
 public:
  static constexpr int kBytesMax = 500;  // 5 s
  int sent() const { return sent_; }

 private:
  bool process_and_close_socket(socket_t socket) override {
    constexpr std::string_view kHead{"\x16\x03\x03\x40\x00", 5};
    ::send(socket, kHead.data(), kHead.size(), MSG_NOSIGNAL);
    while (sent_ < kBytesMax && ::send(socket, "", 1, MSG_NOSIGNAL) == 1) {
      ++sent_;
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    ::close(socket);
    return true;
  }

  std::atomic<int> sent_ = 0;
};

TEST_F(TlsTest, HandshakeThatTricklesIsATimeout) {
  auto owned = std::make_unique<TricklingHandshake>();
  const TricklingHandshake& trickles = *owned;
  server_ = std::make_unique<TestServer>(std::move(owned));
  server_->start();
  const auto response =
      transport_to(config())->send({.path = "/", .timeout = std::chrono::milliseconds{300}});
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, Code::kTimeout) << response.error().message;
  EXPECT_LT(trickles.sent(), TricklingHandshake::kBytesMax);
}

// Goal: a stream whose arrivals are read together delivers each line, in order, and its end
// behind the last one. Method: lines of less than a record of TLS, of many records, and in
// pieces.
TEST_F(TlsTest, StreamThatGathersTellsEachLine) {
  std::vector<std::string> sent;
  for (std::size_t i = 0; i < 300; ++i) sent.emplace_back(1 + i * i % 40'000, 'a' + i % 26);
  handlers_ = [&sent](httplib::Server& server) {
    server.Get("/watch", [&sent](const httplib::Request&, httplib::Response& response) {
      response.set_chunked_content_provider("application/json",
                                            [&sent](std::size_t, httplib::DataSink& sink) {
                                              for (const std::string& line : sent) {
                                                const std::size_t half = line.size() / 2;
                                                const std::string rest = line.substr(half) + "\n";
                                                (void)sink.write(line.data(), half);
                                                (void)sink.write(rest.data(), rest.size());
                                              }
                                              sink.done();
                                              return true;
                                            });
    });
  };
  serve({});
  std::vector<std::string> told;
  const auto ended =
      transport_to(config())->stream({.path = "/watch", .gather = std::chrono::milliseconds{2}},
                                     [&](std::string_view line) {
                                       told.emplace_back(line);
                                       return true;
                                     },
                                     {});
  EXPECT_TRUE(ended.ok()) << ended.error().message;
  EXPECT_TRUE(told == sent) << told.size() << " lines";
}

// Returns how often this thread has slept so far.
long sleeps_of_thread() {
  rusage usage{};
  EXPECT_EQ(::getrusage(RUSAGE_THREAD, &usage), 0);
  return usage.ru_nvcsw;
}

// A rest is for a quiet socket: a busy watch does not fall behind.
TEST_F(TlsTest, AStreamThatGathersReadsWhatHasArrivedWithoutARest) {
  constexpr int kLines = 90;
  std::promise<void> begun, all_sent;
  handlers_ = [&, begins = begun.get_future().share()](httplib::Server& server) {
    server.Get("/watch", [&, begins](const httplib::Request&, httplib::Response& response) {
      response.set_chunked_content_provider(
          "application/json", [&, begins](std::size_t, httplib::DataSink& sink) {
            (void)sink.write("first\n", 6);
            begins.wait();
            const std::string line = std::string(1'000, 'x') + "\n";
            for (int i = 0; i < kLines; ++i) (void)sink.write(line.data(), line.size());
            sink.done();
            all_sent.set_value();
            return true;
          });
    });
  };
  serve({});
  int lines = 0;
  long slept = 0;
  const auto ended =
      transport_to(config())->stream({.path = "/watch", .gather = std::chrono::milliseconds{20}},
                                     [&](std::string_view) {
                                       if (++lines == 1) {
                                         begun.set_value();
                                         all_sent.get_future().wait();
                                         slept = sleeps_of_thread();
                                       }
                                       if (lines == kLines + 1) slept = sleeps_of_thread() - slept;
                                       return true;
                                     },
                                     {});
  EXPECT_TRUE(ended.ok()) << ended.error().message;
  EXPECT_EQ(lines, kLines + 1);
  EXPECT_LE(slept, 1);
}

// Each line is delivered when it arrives, and a stop does not wait for the next one.
TEST_F(TlsTest, StopEndsAQuietStreamAtOnce) {
  std::promise<void> end;
  handlers_ = [&, ended = end.get_future().share()](httplib::Server& server) {
    server.Get("/watch", [ended](const httplib::Request&, httplib::Response& response) {
      response.set_chunked_content_provider("application/json",
                                            [ended](std::size_t, httplib::DataSink& sink) {
                                              (void)sink.write("one\ntwo\n", 8);
                                              ended.wait();
                                              return false;
                                            });
    });
  };
  serve({});
  const auto transport = transport_to(config());
  std::stop_source stop;
  std::vector<std::string> lines;
  std::thread stopper;
  const auto ended = transport->stream(
      {.path = "/watch", .timeout = std::chrono::minutes{1}},
      [&](std::string_view line) {
        lines.emplace_back(line);
        if (lines.size() == 2) stopper = std::thread{[&] { stop.request_stop(); }};
        return true;
      },
      stop.get_token());
  end.set_value();
  stopper.join();
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two"}));
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code, Code::kCancelled) << ended.error().message;
}

// The authority has another key and the same name.
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

// A cluster's authority is replaced, and the file of it: the process goes on without a restart.
TEST_F(TlsTest, ReplacedAuthorityIsReadAgain) {
  serve({});
  TransportConfig old = config();
  old.ca_file = testing::TempDir() + "replaced-ca.crt";
  old.ca_pem = TestAuthority{}.certificate();
  std::ofstream{old.ca_file} << old.ca_pem;
  const auto transport = transport_to(old);
  EXPECT_EQ(transport->send({.path = "/"}).error().code, Code::kUnauthenticated);
  std::ofstream{old.ca_file} << "nonsense";
  EXPECT_EQ(transport->send({.path = "/"}).error().code, Code::kUnauthenticated);
  std::ofstream{old.ca_file} << config().ca_pem;
  const auto response = transport->send({.method = Method::kGet, .path = "/"});
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->status, 200);
}

// The sentence is OpenSSL's and names the cause.
TEST_F(TlsTest, ExpiredServerCertificateSaysSo) {
  serve({.valid_from = -std::chrono::hours{2}, .valid_until = -std::chrono::hours{1}});
  const auto response = get(config());
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error(),
            (base::Error{Code::kUnauthenticated,
                         "the certificate of the server " + server_->url("https") +
                             " is not trusted: certificate has expired (kubeconfig test)"}));
}

// Signed by the right authority, for a host that is not the one that was asked for. Each holder of
// any certificate of that authority could otherwise stand in for the API server.
TEST_F(TlsTest, CertificateForAnotherHostIsRefused) {
  serve({.common_name = "elsewhere", .host = "DNS:elsewhere"});
  const auto response = get(config());
  ASSERT_FALSE(response.ok());
  EXPECT_NE(response.error().message.find("it is not for the host 127.0.0.1"), std::string::npos)
      << response.error().message;
}

// The server demands a certificate of `clients`, so an answer shows that one was sent.
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

// In TLS 1.3 the client believes that the handshake is done before the server has looked at the
// certificate: the refusal comes as an alert with the first read.
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

// The first connection brings a session, and a stream has a connection of its own.
TEST_F(TlsTest, LaterConnectionsResumeTheSession) {
  serve({});
  const auto transport = transport_to(config());
  const auto stream = [&] {
    return transport->stream({.path = "/"}, [](std::string_view) { return true; }, {});
  };
  ASSERT_TRUE(transport->send({.path = "/"}).ok());
  EXPECT_EQ(resumed(), 0);
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(stream().ok());
    EXPECT_EQ(resumed(), i);
  }
}

// A server with another key knows nothing of the session, and must be trusted itself.
TEST_F(TlsTest, SessionDoesNotStandForAServerThatIsNotTrusted) {
  serve({});
  const TransportConfig trusting = config();
  const auto transport = transport_to(trusting);
  ASSERT_TRUE(transport->send({.path = "/"}).ok());
  const int port = server_->port();
  server_.reset();
  const TestAuthority ours = std::exchange(authority_, TestAuthority{});
  serve({}, nullptr, port);
  const auto response = transport->send({.path = "/"});
  ASSERT_FALSE(response.ok());
  EXPECT_NE(response.error().message.find("is not trusted"), std::string::npos)
      << response.error().message;
  server_.reset();
  authority_ = ours;
  serve({}, nullptr, port);
  EXPECT_TRUE(transport->send({.path = "/"}).ok());
}

// Without a context of its sessions the server hands them out and refuses them then.
TEST_F(TlsTest, ServerThatRefusesItsOwnSessionsIsReachedWithoutThem) {
  const TestAuthority clients;
  serve({}, &clients);
  const PemPair pair = clients.issue({.common_name = "admin"});
  TransportConfig with = config();
  with.client_certificate_pem = pair.certificate;
  with.client_key_pem = pair.key;
  const auto transport = transport_to(with);
  const auto stream = [&] {
    return transport->stream({.path = "/"}, [](std::string_view) { return true; }, {});
  };
  ASSERT_TRUE(transport->send({.path = "/"}).ok());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(stream().ok());
  EXPECT_EQ(resumed(), 0) << "it resumes: this test is about nothing";
}

// A plugin renews its certificate: from then on the server sees the new one, though it would resume
// the session in which it saw the old one.
TEST_F(TlsTest, RenewedCertificateIsPresented) {
  const TestAuthority clients;
  std::vector<std::string> seen;
  handlers_ = [&](httplib::Server& server) {
    const std::string_view context = "test";
    SSL_CTX_set_session_id_context(static_cast<httplib::SSLServer&>(server).ssl_context(),
                                   reinterpret_cast<const unsigned char*>(context.data()),
                                   static_cast<unsigned>(context.size()));
    server.Get("/me", [&](const httplib::Request& request, httplib::Response&) {
      const std::unique_ptr<X509, OpenSslDeleter> shown{SSL_get1_peer_certificate(request.ssl)};
      char name[64] = "";
      X509_NAME_get_text_by_NID(X509_get_subject_name(shown.get()), NID_commonName, name,
                                sizeof name);
      seen.emplace_back(name);
    });
  };
  serve({}, &clients);
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("kube-tls-" + std::to_string(getpid()));
  // The credential's time is over at once, so the plugin is asked for each request.
  const auto print = [&](const PemPair& pair) {
    std::ofstream{file} << nlohmann::json{{"apiVersion", "client.authentication.k8s.io/v1"},
                                          {"kind", "ExecCredential"},
                                          {"status",
                                           {{"clientCertificateData", pair.certificate},
                                            {"clientKeyData", pair.key},
                                            {"expirationTimestamp", "2020-01-01T00:00:00Z"}}}};
  };
  print(clients.issue({.common_name = "old"}));
  TransportConfig with_plugin = config();
  with_plugin.exec = ExecPlugin{.api_version = "client.authentication.k8s.io/v1",
                                .command = "cat",
                                .arguments = {file.string()},
                                .interactive = ExecPlugin::Interactive::kNever};
  const auto transport = transport_to(with_plugin);
  const auto stream = [&] {
    return transport->stream({.path = "/me"}, [](std::string_view) { return true; }, {});
  };
  EXPECT_TRUE(stream().ok());
  EXPECT_TRUE(stream().ok());
  EXPECT_EQ(resumed(), 1);
  print(clients.issue({.common_name = "new"}));
  EXPECT_TRUE(stream().ok());
  EXPECT_EQ(resumed(), 1);
  EXPECT_TRUE(stream().ok());
  EXPECT_EQ(resumed(), 2);
  EXPECT_EQ(seen, (std::vector<std::string>{"old", "old", "new", "new"}));
  std::filesystem::remove(file);
}

// printf is the plugin: it prints its argument.
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

// Found before any connection is made: a server would only answer with an alert that names no file.
TEST(HttpTransportCreate, ExpiredClientCertificateIsASentence) {
  const SystemClock clock;
  const TestAuthority authority;
  const PemPair pair = authority.issue(
      {.valid_from = -std::chrono::hours{2}, .valid_until = -std::chrono::hours{1}});
  const auto transport = HttpTransport::create({.server = "https://127.0.0.1:1",
                                                .client_certificate_pem = pair.certificate,
                                                .client_key_pem = pair.key,
                                                .origin = "kubeconfig /x, context dev"},
                                               clock);
  ASSERT_FALSE(transport.ok());
  EXPECT_EQ(transport.error().code, Code::kUnauthenticated);
  EXPECT_NE(
      transport.error().message.find("kubeconfig /x, context dev: client certificate: expired at "),
      std::string::npos)
      << transport.error().message;
}

// The agent and the operator are made without kube_login: what only a person at a terminal needs is
// refused before it is tried.
TEST(HttpTransportCreate, ProgramsInPodsDoWithoutWhatAPersonNeeds) {
  const SystemClock clock;
  const auto message = [&](const TransportConfig& config) {
    const auto transport = HttpTransport::create(config, clock);
    return transport.ok() ? std::string{} : transport.error().message;
  };
  const std::string url = "https://127.0.0.1:1";
  const std::string who = " is for kubectl gang; this program does without";
  EXPECT_EQ(
      message({.server = url, .exec = ExecPlugin{.command = "aws"}, .origin = "kubeconfig /x"}),
      "kubeconfig /x: a program that prints credentials (exec)" + who);
  EXPECT_EQ(message({.server = url, .proxy_url = "socks5://127.0.0.1:1080"}),
            "a SOCKS proxy" + who);
  EXPECT_EQ(message({.server = url, .impersonate = {.user = "anna"}}), "impersonation" + who);
  EXPECT_EQ(message({.server = url, .proxy_url = "http://127.0.0.1:3128"}), "");
}

// The last one is a pair in which certificate and key are sound, but not of each other.
TEST(HttpTransportCreate, BrokenCertificatesAndKeysAreRefused) {
  const SystemClock clock;
  const TestAuthority authority;
  const PemPair a = authority.issue({});
  const PemPair b = authority.issue({});
  const auto message = [&](const TransportConfig& config) {
    const auto transport = HttpTransport::create(config, clock);
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
