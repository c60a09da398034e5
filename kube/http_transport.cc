#include "kube/http_transport.h"

#include <fcntl.h>
#include <httplib.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/api_error.h"
#include "kube/credentials.h"
#include "kube/line_splitter.h"
#include "kube/proxy.h"
#include "kube/sleeper.h"
#include "kube/tls_connection.h"
#include "kube/tls_identity.h"
#include "kube/url.h"

// A call and a stream take different ways through this file:
//
// 1. send() asks for a credential, takes an idle connection or makes one, and sends. After an
//    answer that was read to its end the connection goes back to the idle list; in every other case
//    it is closed, because the bytes that would still arrive on it are those of the failed call.
// 2. stream() makes a connection for itself and never gives it back. Its length has no limit; the
//    only limit is on the silence between two arrivals.
// 3. Both turn a failure into one sentence (Connections::error_of) that names the server and where
//    its address came from, because the library reports little more than "the connection failed".
//
// The library is cpp-httplib 0.11 (Debian 12). Several steps below exist because of how that
// version behaves; each says so at its place.
namespace kube {
namespace {

using base::Code;
using base::Error;
using base::Result;

// A SYN that is not answered is given up after this, even if the request may take longer: a watch's
// time-out is minutes, and a host that drops packets would hold it for all of them.
constexpr base::Duration kConnectTimeoutMax = std::chrono::seconds{10};
// Below the idle time-outs of API servers (Go's 90 s and more), so that we close an idle connection
// before the server does.
constexpr base::Duration kIdleMax = std::chrono::seconds{30};
// For the rest of a record of TLS that has begun to arrive, or to be sent.
constexpr base::Duration kPieceTimeout = std::chrono::seconds{60};
// The most that is read of the body of an error that answers a stream. A Status is well below this;
// an HTML page of a proxy may not be.
constexpr std::size_t kErrorBytesMax = 64U << 10U;

const char* method_name(Method method) {
  switch (method) {
    case Method::kGet:
      return "GET";
    case Method::kPost:
      return "POST";
    case Method::kPut:
      return "PUT";
    case Method::kPatch:
      return "PATCH";
    case Method::kDelete:
      return "DELETE";
  }
  return "GET";
}

// Header names are compared without case (RFC 9110, section 5.1); Response promises lower case.
// Only ASCII, independent of the process's locale.
std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  });
  return text;
}

// The library's read and write time-outs are those of one system call, not of the whole request.
void set_timeouts(httplib::ClientImpl& client, base::Duration timeout) {
  client.set_connection_timeout(std::min(timeout, kConnectTimeoutMax));
  client.set_read_timeout(timeout);
  client.set_write_timeout(timeout);
}

// Makes the kernel ask the other end, if it is quiet, whether it is still there, and give up a
// connection of which nothing has been heard for ten seconds: a machine that was reset, or a load
// balancer that forgot, says nothing, and a watch would wait for it until it has been idle for
// minutes. Behind a proxy it is the proxy that answers.
void notice_a_dead_peer(int descriptor) {
  const auto set = [descriptor](int level, int option, int value) {
    setsockopt(descriptor, level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 4);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 10'000);  // ms; what was sent and is not acknowledged
}

// Returns the address of the other end, "" if the connection is closed.
std::string peer_of(int descriptor) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  char host[NI_MAXHOST] = "";
  char port[NI_MAXSERV] = "";
  // NOLINTNEXTLINE: sockets are used by this cast.
  auto* const address = reinterpret_cast<sockaddr*>(&peer);
  if (getpeername(descriptor, address, &size) != 0 ||
      getnameinfo(address, size, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return {};
  }
  return std::string{host} + " " + port;
}

// Fails the connection that is being made: its descriptor becomes one that cannot connect. (The
// library has no other way to say no at this point.)
void spoil(int descriptor) {
  // Closing the descriptor instead would let another thread get its number, and the library would
  // connect that thread's file.
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0) return;
  dup2(null, descriptor);
  close(null);
}

Result<Url> parse_server(const std::string& server) {
  auto url = parse_url(server);
  const bool is_http = url.ok() && (url->scheme == "https" || url->scheme == "http");
  if (is_http) return url;
  return base::invalid_argument("server: invalid URL \"" + server +
                                "\" (example: https://10.0.0.1:6443)");
}

// Returns a Url without a host if there is no proxy. Refuses the two combinations that this
// transport cannot do: TLS to the proxy itself, and SOCKS for a plain http server (make_plain knows
// only the library's own HTTP proxy).
Result<Url> parse_proxy(const std::string& proxy_url, const Url& server) {
  if (proxy_url.empty()) return Url{};
  auto proxy = parse_url(proxy_url);
  if (!proxy.ok()) return proxy.error().with_context("proxy");
  if (proxy->scheme == "https" || (proxy->scheme != "http" && server.scheme == "http")) {
    return base::invalid_argument("a proxy of scheme " + proxy->scheme +
                                  " is not supported for an " + server.scheme + " server");
  }
  return proxy;
}

// Returns the Host header: without the port if it is the scheme's own, as clients usually send it.
std::string host_header(const Url& url) {
  const bool usual_port = url.port == (url.scheme == "https" ? 443 : 80);
  const std::string with_port = url.host_and_port();
  return usual_port ? with_port.substr(0, with_port.rfind(':')) : with_port;
}

// Returns what the configuration asks for that needs a Login; "" for nothing.
std::string_view needs_login(const TransportConfig& config, const Url& proxy) {
  if (config.exec) return "a program that prints credentials (exec)";
  if (proxy.scheme.starts_with("socks")) return "a SOCKS proxy";
  return config.impersonate == Impersonation{} ? "" : "impersonation";
}

// A TLS connection as the library sees it, for one request.
class TlsStream final : public httplib::Stream {
 public:
  explicit TlsStream(TlsConnection& connection) : connection_{connection} {}

  bool is_readable() const override { return connection_.is_readable(); }
  bool is_writable() const override { return connection_.is_writable(); }
  ssize_t read(char* out, std::size_t size) override { return connection_.read(out, size); }
  ssize_t write(const char* data, std::size_t size) override {
    return connection_.write({data, size}) ? static_cast<ssize_t>(size) : -1;
  }
  // Not used: they are for the log of a server.
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  int socket() const override { return connection_.descriptor(); }

 private:
  TlsConnection& connection_;
};

// HTTP over TLS, directly or through a tunnel. The library's own client for TLS loads the
// authorities again for each connection, keeps no session, reads the head of an answer byte by
// byte,
// and would send the proxy's password on to the server.
class TlsClient final : public httplib::ClientImpl {
 public:
  // `proxy` has no host for a direct connection.
  TlsClient(std::shared_ptr<TlsContext> context, Url server, Url proxy, const Login* login,
            base::Duration gather)
      : ClientImpl{proxy.host.empty() ? server.host : proxy.host,
                   proxy.host.empty() ? server.port : proxy.port},
        context_{std::move(context)},
        server_{std::move(server)},
        proxy_{std::move(proxy)},
        login_{login},
        gather_{gather} {}

  // Why there is no connection, if this class knows it.
  const std::optional<Error>& failure() const { return failure_; }
  // REQUIRES: within a request, whose answer switches protocols.
  TlsConnection& connection() { return *tls_; }
  // Returns why the server's certificate was refused; X509_V_OK: it was not.
  long verify_result() const { return verify_result_; }

 private:
  // Called by the library under its lock. A session that the server refuses is not offered again.
  bool create_and_connect_socket(Socket& socket, httplib::Error& error) override {
    bool is_session_refused = false;
    return open(socket, error, is_session_refused) ||
           (is_session_refused && open(socket, error, is_session_refused));
  }

  // 1. connect, to the proxy if there is one
  // 2. behind a proxy, make the tunnel on the bare socket
  // 3. begin TLS
  bool open(Socket& socket, httplib::Error& error, bool& is_session_refused) {
    failure_.reset();
    verify_result_ = X509_V_OK;
    if (!ClientImpl::create_and_connect_socket(socket, error)) {
      if (proxy_.host.empty()) return false;
      return fail({Code::kUnavailable, "cannot connect to the proxy " + proxy_.text()}, error);
    }
    if (!proxy_.host.empty()) {
      const auto status =
          open_tunnel(socket.sock, proxy_, server_.host, server_.port, kConnectTimeoutMax, login_);
      if (!status.ok()) {
        close(socket);
        return fail(status.error(), error);
      }
    }
    tls_ = std::make_unique<TlsConnection>(context_, socket.sock, gather_);
    if (tls_->handshake(duration_of(connection_timeout_sec_, connection_timeout_usec_))) {
      return true;
    }
    verify_result_ = tls_->verify_result();
    is_session_refused = tls_->is_session_refused();
    tls_.reset();
    close(socket);
    error = verify_result_ == X509_V_OK ? httplib::Error::SSLConnection
                                        : httplib::Error::SSLServerVerification;
    return false;
  }

  // Called by the library before it closes the socket.
  void shutdown_ssl(Socket&, bool gracefully) override {
    if (tls_ != nullptr && !gracefully) tls_->drop();
    tls_.reset();
  }

  // Called by the library for each request, with what it does on the connection.
  bool process_socket(const Socket& socket,
                      std::function<bool(httplib::Stream&)> exchange) override {
    tls_->set_timeouts(duration_of(read_timeout_sec_, read_timeout_usec_),
                       duration_of(write_timeout_sec_, write_timeout_usec_));
    TlsStream stream{*tls_};
    const bool done = exchange(stream) && tls_->flush();
    // Bytes behind the answer are not the answer to the next request: as with bytes that are still
    // in the socket, the connection must not be used again (is_quiet()).
    if (tls_->has_more()) ::shutdown(socket.sock, SHUT_RDWR);
    return done;
  }

  void close(Socket& socket) {
    shutdown_socket(socket);
    close_socket(socket);
  }
  bool fail(Error why, httplib::Error& error) {
    failure_ = std::move(why);
    error = httplib::Error::Connection;
    return false;
  }
  static base::Duration duration_of(std::time_t seconds, std::time_t micros) {
    return std::chrono::seconds{seconds} + std::chrono::microseconds{micros};
  }

  const std::shared_ptr<TlsContext> context_;
  const Url server_;
  const Url proxy_;
  const Login* const login_;
  const base::Duration gather_;  // Request::gather
  std::unique_ptr<TlsConnection> tls_;
  std::optional<Error> failure_;
  long verify_result_ = X509_V_OK;
};

// The same once the server has switched protocols.
class TlsDuplex final : public Duplex {
 public:
  explicit TlsDuplex(TlsConnection& connection) : connection_{connection} {
    connection_.set_timeouts(kPieceTimeout, kPieceTimeout);
  }

  int descriptor() const override { return connection_.descriptor(); }
  bool has_more() const override { return connection_.has_more_than_poll(); }
  ssize_t read(char* out, std::size_t size) override {
    pollfd look{.fd = descriptor(), .events = POLLIN, .revents = 0};
    if (!has_more() && ::poll(&look, 1, 0) == 0) return 0;
    const ssize_t count = connection_.read(out, size);
    return count > 0 ? count : -1;
  }
  bool write(std::string_view bytes) override {
    return connection_.write(bytes) && connection_.flush();
  }

 private:
  TlsConnection& connection_;
};

}  // namespace

// Returns the alert by which the server ended the handshake ("sslv3 alert certificate expired"), or
// "" if none arrived. In TLS 1.3 the alert comes with the first read after the handshake; a server
// that closes at once may reset the connection before we read it, and then it looks like any broken
// one. Empties this thread's error queue on the way.
std::string tls_alert() {
  while (const unsigned long error = ERR_get_error()) {
    const bool alert =
        ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) >= SSL_AD_REASON_OFFSET;
    const char* reason = alert ? ERR_reason_error_string(error) : nullptr;
    if (reason != nullptr) return reason;
  }
  return {};
}

// The source of connections. Threads: many may call send() and stream() at once. mu_ guards the
// idle list and the identity, and is held for no I/O. A connection belongs to one call at a time.
class HttpTransport::Connections {
  struct Party;
  using PartyPointer = std::shared_ptr<const Party>;

 public:
  // A connection, and who we are on it.
  struct Connection {
    std::unique_ptr<httplib::ClientImpl> client;
    PartyPointer party;
  };

  Connections(TransportConfig config, Url url, Url proxy, const Clock& clock)
      : config_{std::move(config)},
        url_{std::move(url)},
        proxy_{std::move(proxy)},
        clock_{clock},
        credentials_{config_, clock},
        ca_pem_{config_.ca_pem} {
    trust_.checks_server = !config_.insecure_skip_tls_verify;
    // tls-server-name of the kubeconfig, else the host.
    trust_.server_name = config_.tls_server_name.empty() ? url_.host : config_.tls_server_name;
  }

  // Returns an error if the configuration makes no sense. Runs the exec plugin if there is one.
  base::Status prepare() {
    if (is_tls() && !config_.ca_pem.empty()) {
      auto authorities = parse_certificates(config_.ca_pem);
      if (!authorities.ok()) {
        return authorities.error().with_context("certificate authority");
      }
      trust_.authorities = std::move(*authorities);
    }
    const auto credential = credentials_.get();
    if (!credential.ok()) return credential.error();
    const auto party = party_of(*credential);
    return party.ok() ? check_dates_of(**party) : party.error();
  }

  // Returns an idle connection that can still be used, or a new one. Closes the idle ones that it
  // meets and cannot use.
  Result<Connection> take(const Credential& credential) {
    auto party = party_of(credential);
    if (!party.ok()) return party.error();
    while (true) {
      Idle idle;
      {
        const std::lock_guard lock{mu_};
        if (idle_.empty()) break;
        // The one that was used last: the server has had the least time to close it.
        idle = std::move(idle_.back());
        idle_.pop_back();
      }
      // A connection is used again only if it is fresh, has the current identity (a plugin's
      // certificate may have been renewed) and is quiet. Otherwise it is closed here, and the next
      // one is looked at. In doubt a new connection is better than one that the server is about to
      // close: a POST that is lost on it may not be repeated.
      const bool fresh = clock_.monotonic() - idle.since < kIdleMax;
      if (fresh && idle.connection.party == *party && is_quiet(*idle.connection.client)) {
        return std::move(idle.connection);
      }
    }
    return make(*std::move(party));
  }

  // REQUIRES: the answer was read to its end, so the next bytes on the connection answer the next
  // request.
  void give_back(Connection connection) {
    const base::Duration now = clock_.monotonic();
    std::vector<Idle> old;  // closed after the lock is given up
    const std::lock_guard lock{mu_};
    // Connections that a peak of requests has left behind go once it is over.
    while (!idle_.empty() && now - idle_.front().since >= kIdleMax) {
      old.push_back(std::move(idle_.front()));
      idle_.pop_front();
    }
    if (idle_.size() < kIdleConnectionsMax) idle_.push_back({std::move(connection), now});
  }

  // A call met no answer in time: what is idle may lead to the same server, which has died without
  // a word, and would cost a call each.
  void drop_idle() {
    std::deque<Idle> idle;  // closed after the lock is given up
    const std::lock_guard lock{mu_};
    idle.swap(idle_);
  }

  // The server is not trusted: its authority may have been replaced since the file was read.
  // Returns true if the file says something else now.
  bool reload_authorities() {
    if (config_.ca_file.empty()) return false;
    const auto pem = read_config_file(config_.ca_file);
    auto authorities = parse_certificates(pem.ok() ? *pem : "");
    if (!authorities.ok()) return false;
    const std::lock_guard lock{mu_};
    if (*pem == ca_pem_) return false;
    ca_pem_ = *pem;
    trust_.authorities = std::move(*authorities);
    party_ = nullptr;  // its connections trust the old ones
    return true;
  }

  // Returns a connection that no other call will use: for streams.
  Result<Connection> make(const Credential& credential, base::Duration gather) {
    auto party = party_of(credential);
    if (!party.ok()) return party.error();
    return make(*std::move(party), gather);
  }

  // Translates a request for the library. kInvalidArgument if the path is not one: a blank or a
  // line break in it would let the text behind it become a header of its own.
  Result<httplib::Request> library_request(const Request& request,
                                           const Credential& credential) const {
    httplib::Request out;
    out.method = method_name(request.method);
    out.path = url_.path + request.path;
    if (request.path.empty() || request.path[0] != '/' ||
        out.path.find_first_of(" \r\n") != std::string::npos) {
      return base::invalid_argument("malformed request path \"" + request.path + "\"");
    }
    out.body = request.body;
    out.set_header("Accept", request.accept);
    out.set_header("User-Agent", "kubegang/" KUBEGANG_VERSION);
    if (!request.body.empty()) out.set_header("Content-Type", request.content_type);
    if (!credential.authorization.empty()) {
      out.set_header("Authorization", credential.authorization);
    }
    out.set_header("Host", host_header(url_));
    if (config_.login != nullptr) {
      for (const auto& [name, value] : config_.login->impersonation_headers(config_.impersonate)) {
        out.set_header(name, value);
      }
    }
    return out;
  }

  // Returns the error in a sentence that names the server.
  // REQUIRES: the OpenSSL error queue of this thread was cleared before the call.
  Error error_of(const httplib::ClientImpl& client, httplib::Error error, bool timed_out) const {
    const auto* tls = dynamic_cast<const TlsClient*>(&client);
    // The most precise words first: the proxy's own, the library's, the alert of TLS, and only then
    // "it broke".
    if (tls != nullptr && tls->failure()) {
      // `origin` says which kubeconfig or variable named the server: a user who reaches the wrong
      // cluster sees why.
      return {tls->failure()->code, tls->failure()->message + " (" + config_.origin + ")"};
    }
    switch (error) {
      case httplib::Error::Connection:
        return {Code::kUnavailable,
                "cannot connect to " + url_.text() + ": is it running? (" + config_.origin + ")"};
      case httplib::Error::ConnectionTimeout:
        return {Code::kTimeout, "no connection to " + url_.text() + " in time"};
      case httplib::Error::SSLServerVerification:
        return verification_error(tls == nullptr ? X509_V_OK : tls->verify_result());
      // None of these says more than that the exchange failed. They are listed, without a default,
      // so that a new value of the library breaks the build.
      case httplib::Error::Success:
      case httplib::Error::Unknown:
      case httplib::Error::BindIPAddress:
      case httplib::Error::SSLConnection:
      case httplib::Error::SSLLoadingCerts:
      case httplib::Error::Read:
      case httplib::Error::Write:
      case httplib::Error::ExceedRedirectCount:
      case httplib::Error::Canceled:
      case httplib::Error::UnsupportedMultipartBoundaryChars:
      case httplib::Error::Compression:
        break;
    }
    if (const std::string alert = tls_alert(); !alert.empty()) {
      return {Code::kUnauthenticated,
              "the server " + url_.text() + " refused TLS: " + alert + " (" + config_.origin + ")"};
    }
    if (timed_out) return {Code::kTimeout, url_.text() + " did not answer in time"};
    return {Code::kUnavailable, "the connection to " + url_.text() + " broke"};
  }

  Credentials& credentials() { return credentials_; }
  const Clock& clock() const { return clock_; }
  const Url& url() const { return url_; }

 private:
  // An idle connection and the time since which it is idle, on the monotonic clock.
  struct Idle {
    Connection connection;
    base::Duration since{};
  };

  bool is_tls() const { return url_.scheme == "https"; }

  // The identity of this client. Shared and immutable: a connection keeps the identity that it was
  // made with while a newer one replaces it for the next connections.
  struct Party {
    Identity identity;                // empty if requests carry a token or nothing
    std::shared_ptr<TlsContext> tls;  // null without TLS
  };

  // Returns the identity of the credential. A plugin's certificate changes when it runs again.
  Result<PartyPointer> party_of(const Credential& credential) {
    const std::lock_guard lock{mu_};
    // Compares the text of the PEM: parsing a key costs more than a request, and a plugin prints
    // the same text until it renews it.
    const bool same = party_ != nullptr &&
                      party_pem_.client_certificate_pem == credential.client_certificate_pem &&
                      party_pem_.client_key_pem == credential.client_key_pem;
    if (same) return party_;
    auto party = std::make_shared<Party>();
    auto identity = parse_identity(credential.client_certificate_pem, credential.client_key_pem);
    if (!identity.ok()) return identity.error();
    party->identity = std::move(*identity);
    if (is_tls()) {
      // A session belongs to the certificate that it began with, so each identity has its own.
      auto context = TlsContext::create(trust_, party->identity);
      if (!context.ok()) return context.error();
      party->tls = std::move(*context);
    }
    party_ = std::move(party);
    party_pem_ = credential;
    return party_;
  }

  Result<Connection> make(PartyPointer party, base::Duration gather = {}) const {
    // Checked for each connection: a certificate expires while the process runs, and the alert of
    // the server does not always arrive (tls_alert) and never says since when.
    if (auto status = check_dates_of(*party); !status.ok()) return status.error();
    std::unique_ptr<httplib::ClientImpl> client =
        is_tls() ? std::make_unique<TlsClient>(party->tls, url_, proxy_, config_.login, gather)
                 : make_plain();
    client->set_keep_alive(true);
    // Head and body of a request are two writes; without this the second waits for the
    // acknowledgement of the first (Nagle's algorithm).
    client->set_tcp_nodelay(true);
    client->set_url_encode(false);  // paths are encoded already
    client->set_socket_options(notice_a_dead_peer);
    // An API server does not redirect. A redirect would take our credentials elsewhere.
    client->set_follow_location(false);
    return Connection{std::move(client), std::move(party)};
  }

  // For tests and for `kubectl proxy`: no TLS, and at most an HTTP proxy.
  std::unique_ptr<httplib::ClientImpl> make_plain() const {
    auto client = std::make_unique<httplib::ClientImpl>(url_.host, url_.port);
    if (!proxy_.host.empty()) client->set_proxy(proxy_.host, proxy_.port);
    if (!proxy_.user.empty()) client->set_proxy_basic_auth(proxy_.user, proxy_.password);
    return client;
  }

  // Returns true if nothing has arrived on the idle connection, not even its end. The library takes
  // TLS's goodbye for data and would send the request into it, which for a create cannot be
  // repeated.
  static bool is_quiet(const httplib::ClientImpl& client) {
    pollfd poll_one{.fd = client.socket(), .events = POLLIN, .revents = 0};
    return poll(&poll_one, 1, 0) == 0;
  }

  // Only our own certificate counts; its chain is the server's to judge.
  base::Status check_dates_of(const Party& party) const {
    if (party.identity.certificates.empty()) return {};
    const auto status = check_dates(*party.identity.certificates.front(), clock_.wall());
    if (status.ok()) return {};
    return status.error().with_context("client certificate");
  }

  Error verification_error(long result) const {
    const bool is_other =
        result == X509_V_ERR_HOSTNAME_MISMATCH || result == X509_V_ERR_IP_ADDRESS_MISMATCH;
    const std::string why = is_other ? "it is not for the host " + trust_.server_name
                                     : std::string{X509_verify_cert_error_string(result)};
    return {Code::kUnauthenticated, "the certificate of the server " + url_.text() +
                                        " is not trusted: " + why + " (" + config_.origin + ")"};
  }

  const TransportConfig config_;
  const Url url_;
  const Url proxy_;  // without a host: none
  const Clock& clock_;
  Credentials credentials_;

  std::mutex mu_;
  TlsTrust trust_;         // its authorities guarded by mu_
  std::string ca_pem_;     // guarded by mu_; that they are from
  PartyPointer party_;     // guarded by mu_
  Credential party_pem_;   // guarded by mu_; what party_ was made of
  std::deque<Idle> idle_;  // guarded by mu_; the longest idle first
};

// Checks all that can be checked without a connection, in the order in which a user can mend it:
// server, proxy, certificates, credential. Each error begins with the configuration's origin.
Result<std::unique_ptr<HttpTransport>> HttpTransport::create(const TransportConfig& config,
                                                             const Clock& clock) {
  const auto in_context = [&](const Error& error) {
    return config.origin.empty() ? error : error.with_context(config.origin);
  };
  const auto url = parse_server(config.server);
  if (!url.ok()) return in_context(url.error());
  auto proxy = parse_proxy(config.proxy_url, *url);
  if (!proxy.ok()) return in_context(proxy.error());
  if (const auto what = needs_login(config, *proxy); !what.empty() && config.login == nullptr) {
    return in_context(base::invalid_argument(std::string{what} +
                                             " is for kubectl gang; this program does without"));
  }
  auto connections = std::make_unique<Connections>(config, *url, *std::move(proxy), clock);
  if (auto status = connections->prepare(); !status.ok()) return in_context(status.error());
  // A server that closes a connection while we write would end the process otherwise.
  std::signal(SIGPIPE, SIG_IGN);
  return std::unique_ptr<HttpTransport>{new HttpTransport{std::move(connections)}};
}

HttpTransport::HttpTransport(std::unique_ptr<Connections> connections)
    : connections_{std::move(connections)} {}

HttpTransport::~HttpTransport() = default;

Result<Response> HttpTransport::send(const Request& request) {
  const auto credential = connections_->credentials().get();
  if (!credential.ok()) return credential.error();
  auto response = send_once(request, *credential);
  // No request was sent to a server that was not trusted.
  if (!response.ok() && response.error().code == Code::kUnauthenticated &&
      connections_->reload_authorities()) {
    response = send_once(request, *credential);
  }
  // A 401 may mean that a token was rotated or that a plugin's credential has expired: the request
  // is sent once more with a new one. A server that answers 401 has done nothing, so any request
  // may be repeated, a POST as well. Once only: a second 401 means that the credential itself is
  // refused, and goes to the caller.
  const bool refused = response.ok() && response->status == 401;
  if (!refused || !connections_->credentials().refresh(*credential)) return response;
  const auto fresh = connections_->credentials().get();
  return fresh.ok() ? send_once(request, *fresh) : response;
}

// 1. translate the request, 2. take a connection, 3. send and collect the body under two limits,
//    size and total time, 4. give the connection back if the answer is complete.
Result<Response> HttpTransport::send_once(const Request& request, const Credential& credential) {
  auto library_request = connections_->library_request(request, credential);
  if (!library_request.ok()) return library_request.error();
  auto taken = connections_->take(credential);
  if (!taken.ok()) return taken.error();
  httplib::ClientImpl& client = *taken->client;
  set_timeouts(client, request.timeout);

  const Clock& clock = connections_->clock();
  const base::Duration began = clock.monotonic();
  // The library's time-outs are those of one read. An answer that trickles in would never meet
  // them.
  const auto late = [&] { return clock.monotonic() - began >= request.timeout; };
  Response out;
  // A receiver that returns false makes the library break off with Error::Canceled, which says
  // nothing of the cause; hence the flag.
  bool too_large = false;
  library_request->content_receiver = [&](const char* data, std::size_t size, std::uint64_t,
                                          std::uint64_t) {
    too_large = out.body.size() + size > kResponseBytesMax;
    if (too_large || late()) return false;
    out.body.append(data, size);
    return true;
  };
  // tls_alert() reads the errors of this call only, and the queue belongs to the thread.
  ERR_clear_error();
  const httplib::Result result = client.send(*library_request);
  if (too_large) {
    return Error{Code::kTooLarge, "the answer of " + connections_->url().text() + " is above " +
                                      std::to_string(kResponseBytesMax >> 20U) + " MiB"};
  }
  if (!result) {
    const Error error = connections_->error_of(client, result.error(), late());
    if (error.code == Code::kTimeout) connections_->drop_idle();
    return error;
  }
  out.status = result->status;
  for (const auto& [name, value] : result->headers) out.headers[lower_case(name)] = value;
  out.address = peer_of(client.socket());
  // Only after an answer that was read to its end. Others return above, and their connection is
  // closed: what it would bring next is unknown.
  connections_->give_back(std::move(*taken));
  return out;
}

// The caller begins a new session in any case, and finds the new credential then. It does not learn
// for how long a server that is busy wants to be left alone, so that time passes here.
base::Status HttpTransport::refused(const Request& request, const Response& head,
                                    const Credential& credential, std::stop_token stop) {
  if (head.status == 401) (void)connections_->credentials().refresh(credential);
  if (const auto delay = retry_after(head); delay && head.status == 429) {
    if (auto slept = ThreadSleeper{}.sleep(*delay, stop); !slept.ok()) return slept;
  }
  return error_from_response(head, request.path);
}

// 1. make a connection of its own, with a way in for `stop` at each stage: before the connect
//    (socket options), then while bytes are sent and read (Client::stop(), which waits while a
//    connect is under way)
// 2. send the request; the library calls response_handler once for the head and content_receiver
//    for each piece of the body
// 3. cut the pieces into lines and hand them to on_line; the body of an error is collected instead
// 4. say why the stream ended, the most certain reason first
base::Status HttpTransport::stream(const Request& request,
                                   const std::function<bool(std::string_view)>& on_line,
                                   std::stop_token stop) {
  const Error cancelled{Code::kCancelled, "the stream was stopped"};
  const auto credential = connections_->credentials().get();
  if (!credential.ok()) return credential.error();
  auto library_request = connections_->library_request(request, *credential);
  if (!library_request.ok()) return library_request.error();
  // A connection of its own: it ends with the stream, and another thread may break it off.
  auto made = connections_->make(*credential, request.gather);
  if (!made.ok()) return made.error();
  httplib::ClientImpl& client = *made->client;
  set_timeouts(client, request.timeout);
  // stop() reaches a connection only once it is being made (it waits for the library's lock); a
  // stop before that is seen here, after the lock was taken.
  client.set_socket_options([&](int descriptor) {
    notice_a_dead_peer(descriptor);
    if (stop.stop_requested()) spoil(descriptor);
  });

  const Clock& clock = connections_->clock();
  // A stream may last forever; request.timeout is the longest silence (bookmarks break it).
  base::Duration last_arrival = clock.monotonic();
  Response head;
  LineSplitter lines{kWatchLineBytesMax};
  auto outcome = LineSplitter::Outcome::kMore;
  library_request->response_handler = [&](const httplib::Response& response) {
    head.status = response.status;
    for (const auto& [name, value] : response.headers) head.headers[lower_case(name)] = value;
    last_arrival = clock.monotonic();
    return !stop.stop_requested();
  };
  library_request->content_receiver = [&](const char* data, std::size_t size, std::uint64_t,
                                          std::uint64_t) {
    last_arrival = clock.monotonic();
    if (stop.stop_requested()) return false;
    if (head.status != 200) {
      head.body.append(data, std::min(size, kErrorBytesMax - head.body.size()));
      return true;
    }
    outcome = lines.feed({data, size}, on_line);
    return outcome == LineSplitter::Outcome::kMore;
  };
  ERR_clear_error();
  const httplib::Result result = [&] {
    // Destroyed before `client`: its destructor waits for a callback that is running.
    const std::stop_callback cancel{stop, [&client] { client.stop(); }};
    return client.send(*library_request);
  }();
  if (stop.stop_requested()) return cancelled;
  // First what we broke off ourselves, then what the server said, then what became of the
  // connection: the library reports all three as an error of the connection.
  switch (outcome) {
    case LineSplitter::Outcome::kStopped:
      return {};
    case LineSplitter::Outcome::kTooLong:
      return Error{Code::kTooLarge, "a line of the stream is above 8 MiB"};
    case LineSplitter::Outcome::kMore:
      break;
  }
  if (head.status != 0 && head.status != 200) return refused(request, head, *credential, stop);
  // The server has ended the session, as it was asked to after a time. A text may end anywhere.
  if (result && request.accept.starts_with("text/plain")) lines.finish(on_line);
  if (result) return {};
  const bool idle = clock.monotonic() - last_arrival >= request.timeout;
  const Error error = connections_->error_of(client, result.error(), idle);
  // The next session has the new authorities.
  if (error.code == Code::kUnauthenticated) (void)connections_->reload_authorities();
  return error;
}

// Works as stream(), with the head of the answer for the beginning of something else: the library
// calls response_handler when it has read the head, which may use the connection until it returns.
base::Status HttpTransport::upgrade(
    const Request& request, const std::vector<std::pair<std::string, std::string>>& headers,
    const std::function<void(const Response& head, Duplex& connection)>& use) {
  const auto credential = connections_->credentials().get();
  if (!credential.ok()) return credential.error();
  auto library_request = connections_->library_request(request, *credential);
  if (!library_request.ok()) return library_request.error();
  for (const auto& [name, value] : headers) library_request->set_header(name, value);
  auto made = connections_->make(*credential, {});
  if (!made.ok()) return made.error();
  auto* const client = dynamic_cast<TlsClient*>(made->client.get());
  if (client == nullptr) {
    return base::invalid_argument("the server " + connections_->url().text() +
                                  " is not https, which programs in pods need");
  }
  set_timeouts(*client, request.timeout);
  Response head;
  bool is_used = false;
  library_request->response_handler = [&](const httplib::Response& response) {
    head.status = response.status;
    for (const auto& [name, value] : response.headers) head.headers[lower_case(name)] = value;
    is_used = head.status == 101;
    if (!is_used) return true;
    TlsDuplex connection{client->connection()};
    use(head, connection);
    return false;
  };
  library_request->content_receiver = [&](const char* data, std::size_t size, std::uint64_t,
                                          std::uint64_t) {
    head.body.append(data, std::min(size, kErrorBytesMax - head.body.size()));
    return true;
  };
  ERR_clear_error();
  const httplib::Result result = client->send(*library_request);
  if (is_used) return {};
  if (head.status != 0) return refused(request, head, *credential, {});
  return connections_->error_of(*client, result.error(), false);
}

}  // namespace kube
