#include "kube/http_transport.h"

#include <fcntl.h>
#include <httplib.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "kube/api_error.h"
#include "kube/line_splitter.h"
#include "kube/tls_identity.h"
#include "kube/token_source.h"

namespace kube {
namespace {

using base::Code;
using base::Error;
using base::Result;

constexpr base::Duration kConnectTimeoutMax = std::chrono::seconds{10};
// Below the idle time-outs of API servers (Go's 90 s and more).
constexpr base::Duration kIdleMax = std::chrono::seconds{30};
// Of an error's body in answer to a stream.
constexpr std::size_t kErrorBytesMax = 64U << 10U;

struct Url {
  bool tls = false;
  std::string host;
  int port = 0;
  std::string prefix;  // "" or "/k8s/clusters/a"

  std::string text() const {
    return std::string{tls ? "https" : "http"} + "://" + host + ":" + std::to_string(port);
  }
};

Result<Url> parse_url(const std::string& server) {
  const Error bad =
      base::invalid_argument("server \"" + server + "\" is no URL such as https://10.0.0.1:6443");
  Url url;
  std::string_view rest = server;
  if (rest.starts_with("https://")) {
    url.tls = true;
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else {
    return bad;
  }
  url.port = url.tls ? 443 : 80;
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  url.prefix = rest.substr(slash);
  while (url.prefix.ends_with('/')) url.prefix.pop_back();
  rest = rest.substr(0, slash);
  std::string_view port;
  if (rest.starts_with('[')) {
    const std::size_t end = rest.find(']');
    if (end == std::string_view::npos) return bad;
    url.host = rest.substr(1, end - 1);
    port = rest.substr(end + 1);
  } else {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    url.host = rest.substr(0, colon);
    port = rest.substr(colon);
  }
  if (url.host.empty()) return bad;
  if (port.empty()) return url;
  const auto [end, error] = std::from_chars(port.data() + 1, port.data() + port.size(), url.port);
  const bool whole = error == std::errc{} && end == port.data() + port.size();
  if (port[0] != ':' || !whole || url.port < 1 || url.port > 65535) return bad;
  return url;
}

// A file without a name. The library reads certificate authorities from files only, and takes the
// machine's own ones too unless it is given a file.
class MemoryFile {
 public:
  MemoryFile() = default;
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  base::Status fill(const std::string& content) {
    descriptor_ = memfd_create("kube-ca", MFD_CLOEXEC);
    const auto size = static_cast<ssize_t>(content.size());
    if (descriptor_ < 0 || write(descriptor_, content.data(), content.size()) != size) {
      return Error{Code::kInternal, "cannot keep the certificate authority in memory"};
    }
    return {};
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_ = -1;
};

struct Identity {
  std::vector<CertificatePointer> certificates;  // ours first, then its chain
  KeyPointer key;
};

Result<Identity> parse_identity(const TransportConfig& config) {
  Identity identity;
  if (config.client_certificate_pem.empty()) return identity;
  auto certificates = parse_certificates(config.client_certificate_pem);
  if (!certificates.ok()) return certificates.error().with_context("client certificate");
  auto key = parse_private_key(config.client_key_pem);
  if (!key.ok()) return key.error().with_context("client key");
  if (X509_check_private_key(certificates->front().get(), key->get()) != 1) {
    return base::invalid_argument("client key: it is not the key of the client certificate");
  }
  identity.certificates = std::move(*certificates);
  identity.key = std::move(*key);
  return identity;
}

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

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  });
  return text;
}

void set_timeouts(httplib::ClientImpl& client, base::Duration timeout) {
  client.set_connection_timeout(std::min(timeout, kConnectTimeoutMax));
  client.set_read_timeout(timeout);
  client.set_write_timeout(timeout);
}

// Fails the connection that is being made: its descriptor becomes one that cannot connect. (The
// library has no other way to say no at this point.)
void spoil(int descriptor) {
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0) return;
  dup2(null, descriptor);
  close(null);
}

}  // namespace

// The alert by which the server ended the handshake ("sslv3 alert certificate expired"), or "" when
// none arrived. In TLS 1.3 it comes with the first read after the handshake; a server that closes
// at once may reset the connection before we read it, and then it looks like any broken one.
std::string tls_alert() {
  while (const unsigned long error = ERR_get_error()) {
    const bool alert =
        ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) >= SSL_AD_REASON_OFFSET;
    const char* reason = alert ? ERR_reason_error_string(error) : nullptr;
    if (reason != nullptr) return reason;
  }
  return {};
}

// Where connections come from.
class HttpTransport::Connections {
 public:
  using Pointer = std::unique_ptr<httplib::ClientImpl>;

  Connections(TransportConfig config, Url url, Identity identity, const Clock& clock)
      : config_{std::move(config)},
        url_{std::move(url)},
        identity_{std::move(identity)},
        clock_{clock},
        tokens_{config_.bearer_token, config_.token_file, clock} {}

  base::Status prepare() {
    if (url_.tls && !config_.ca_pem.empty()) {
      const auto authorities = parse_certificates(config_.ca_pem);
      if (!authorities.ok()) {
        return authorities.error().with_context("certificate authority");
      }
      if (auto status = authority_.fill(config_.ca_pem); !status.ok()) return status;
    }
    return check_own_dates();
  }

  // An idle connection, or a new one.
  Result<Pointer> take() {
    while (true) {
      Idle idle;
      {
        const std::lock_guard lock{mu_};
        if (idle_.empty()) break;
        idle = std::move(idle_.back());
        idle_.pop_back();
      }
      const bool fresh = clock_.monotonic() - idle.since < kIdleMax;
      if (fresh && is_quiet(*idle.client)) return std::move(idle.client);
    }
    return make();
  }

  void give_back(Pointer client) {
    const base::Duration now = clock_.monotonic();
    std::vector<Idle> old;  // closed after the lock is given up
    const std::lock_guard lock{mu_};
    while (!idle_.empty() && now - idle_.front().since >= kIdleMax) {
      old.push_back(std::move(idle_.front()));
      idle_.pop_front();
    }
    if (idle_.size() < kIdleConnectionsMax) idle_.push_back({std::move(client), now});
  }

  Result<Pointer> make() const {
    if (auto status = check_own_dates(); !status.ok()) return status.error();
    Pointer client =
        url_.tls ? make_tls() : std::make_unique<httplib::ClientImpl>(url_.host, url_.port);
    if (!client->is_valid()) return Error{Code::kInternal, "cannot set up TLS"};
    client->set_keep_alive(true);
    client->set_tcp_nodelay(true);
    client->set_url_encode(false);  // paths are encoded already
    client->set_follow_location(false);
    return client;
  }

  Result<httplib::Request> library_request(const Request& request, const std::string& token) const {
    httplib::Request out;
    out.method = method_name(request.method);
    out.path = url_.prefix + request.path;
    if (request.path.empty() || request.path[0] != '/' ||
        out.path.find_first_of(" \r\n") != std::string::npos) {
      return base::invalid_argument("malformed request path \"" + request.path + "\"");
    }
    out.body = request.body;
    out.set_header("Accept", request.accept);
    out.set_header("User-Agent", "kubegang/" KUBEGANG_VERSION);
    if (!request.body.empty()) out.set_header("Content-Type", request.content_type);
    if (!token.empty()) out.set_header("Authorization", "Bearer " + token);
    return out;
  }

  // What went wrong, in a sentence that names the server.
  // REQUIRES: the OpenSSL error queue of this thread was cleared before the call.
  Error error_of(const httplib::ClientImpl& client, httplib::Error error, bool timed_out) const {
    switch (error) {
      case httplib::Error::Connection:
        return {Code::kUnavailable,
                "cannot connect to " + url_.text() + ": is it running? (" + config_.origin + ")"};
      case httplib::Error::ConnectionTimeout:
        return {Code::kTimeout, "no connection to " + url_.text() + " in time"};
      case httplib::Error::SSLServerVerification:
        return verification_error(client);
      case httplib::Error::SSLLoadingCerts:
        return {Code::kInvalidArgument,
                "cannot load the certificate authority of " + config_.origin};
      case httplib::Error::Success:
      case httplib::Error::Unknown:
      case httplib::Error::BindIPAddress:
      case httplib::Error::SSLConnection:
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

  TokenSource& tokens() { return tokens_; }
  const Clock& clock() const { return clock_; }
  const Url& url() const { return url_; }

 private:
  struct Idle {
    Pointer client;
    base::Duration since{};
  };

  // Nothing may arrive on an idle connection but its end. The library takes TLS's goodbye for data
  // and would send the request into it, which for a create cannot be repeated.
  static bool is_quiet(const httplib::ClientImpl& client) {
    pollfd poll_one{.fd = client.socket(), .events = POLLIN, .revents = 0};
    return poll(&poll_one, 1, 0) == 0;
  }

  Pointer make_tls() const {
    const bool has_identity = !identity_.certificates.empty();
    auto client = std::make_unique<httplib::SSLClient>(
        url_.host, url_.port, has_identity ? identity_.certificates.front().get() : nullptr,
        has_identity ? identity_.key.get() : nullptr);
    if (!client->is_valid()) return client;
    SSL_CTX* context = client->ssl_context();
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    for (std::size_t i = 1; i < identity_.certificates.size(); ++i) {
      SSL_CTX_add1_chain_cert(context, identity_.certificates[i].get());
    }
    client->enable_server_certificate_verification(!config_.insecure_skip_tls_verify);
    if (!config_.ca_pem.empty()) client->set_ca_cert_path(authority_.path());
    return client;
  }

  base::Status check_own_dates() const {
    if (identity_.certificates.empty()) return {};
    const auto status = check_dates(*identity_.certificates.front(), clock_.wall());
    if (status.ok()) return {};
    return status.error().with_context("client certificate");
  }

  Error verification_error(const httplib::ClientImpl& client) const {
    const auto& tls = static_cast<const httplib::SSLClient&>(client);  // only TLS verifies
    const long result = tls.get_openssl_verify_result();
    const std::string why = result == X509_V_OK
                                ? "it is not for the host " + url_.host
                                : std::string{X509_verify_cert_error_string(result)};
    return {Code::kUnauthenticated, "the certificate of the server " + url_.text() +
                                        " is not trusted: " + why + " (" + config_.origin + ")"};
  }

  const TransportConfig config_;
  const Url url_;
  const Identity identity_;
  const Clock& clock_;
  MemoryFile authority_;
  TokenSource tokens_;

  std::mutex mu_;
  std::deque<Idle> idle_;  // guarded by mu_; the longest idle first
};

Result<std::unique_ptr<HttpTransport>> HttpTransport::create(const TransportConfig& config,
                                                             const Clock& clock) {
  const auto in_context = [&](const Error& error) {
    return config.origin.empty() ? error : error.with_context(config.origin);
  };
  const auto url = parse_url(config.server);
  if (!url.ok()) return in_context(url.error());
  auto identity = parse_identity(config);
  if (!identity.ok()) return in_context(identity.error());
  auto connections = std::make_unique<Connections>(config, *url, std::move(*identity), clock);
  if (auto status = connections->prepare(); !status.ok()) return in_context(status.error());
  if (auto token = connections->tokens().token(); !token.ok()) return in_context(token.error());
  std::signal(SIGPIPE, SIG_IGN);
  return std::unique_ptr<HttpTransport>{new HttpTransport{std::move(connections)}};
}

HttpTransport::HttpTransport(std::unique_ptr<Connections> connections)
    : connections_{std::move(connections)} {}

HttpTransport::~HttpTransport() = default;

Result<Response> HttpTransport::send(const Request& request) {
  const auto token = connections_->tokens().token();
  auto response = send_once(request);
  const bool refused = response.ok() && response->status == 401 && token.ok();
  if (!refused || !connections_->tokens().refresh(*token)) return response;
  return send_once(request);
}

Result<Response> HttpTransport::send_once(const Request& request) {
  const auto token = connections_->tokens().token();
  if (!token.ok()) return token.error();
  auto library_request = connections_->library_request(request, *token);
  if (!library_request.ok()) return library_request.error();
  auto taken = connections_->take();
  if (!taken.ok()) return taken.error();
  httplib::ClientImpl& client = **taken;
  set_timeouts(client, request.timeout);

  const Clock& clock = connections_->clock();
  const base::Duration began = clock.monotonic();
  const auto late = [&] { return clock.monotonic() - began >= request.timeout; };
  Response out;
  bool too_large = false;
  library_request->content_receiver = [&](const char* data, std::size_t size, std::uint64_t,
                                          std::uint64_t) {
    too_large = out.body.size() + size > kResponseBytesMax;
    if (too_large || late()) return false;
    out.body.append(data, size);
    return true;
  };
  ERR_clear_error();
  const httplib::Result result = client.send(*library_request);
  if (too_large) {
    return Error{Code::kTooLarge,
                 "the answer of " + connections_->url().text() + " is above 256 MiB"};
  }
  if (!result) return connections_->error_of(client, result.error(), late());
  out.status = result->status;
  for (const auto& [name, value] : result->headers) out.headers[lower_case(name)] = value;
  connections_->give_back(std::move(*taken));
  return out;
}

base::Status HttpTransport::stream(const Request& request,
                                   const std::function<bool(std::string_view)>& on_line,
                                   std::stop_token stop) {
  const Error cancelled{Code::kCancelled, "the stream was stopped"};
  const auto token = connections_->tokens().token();
  if (!token.ok()) return token.error();
  auto library_request = connections_->library_request(request, *token);
  if (!library_request.ok()) return library_request.error();
  auto made = connections_->make();
  if (!made.ok()) return made.error();
  httplib::ClientImpl& client = **made;
  set_timeouts(client, request.timeout);
  // stop() reaches a connection only once it is being made (it waits for the library's lock); a
  // stop before that is seen here, after the lock was taken.
  client.set_socket_options([&](int descriptor) {
    if (stop.stop_requested()) spoil(descriptor);
  });

  const Clock& clock = connections_->clock();
  base::Duration last_arrival = clock.monotonic();
  Response head;
  LineSplitter lines{kWatchLineBytesMax};
  auto outcome = LineSplitter::Outcome::kMore;
  library_request->response_handler = [&](const httplib::Response& response) {
    head.status = response.status;
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
    const std::stop_callback cancel{stop, [&client] { client.stop(); }};
    return client.send(*library_request);
  }();
  if (stop.stop_requested()) return cancelled;
  switch (outcome) {
    case LineSplitter::Outcome::kStopped:
      return {};
    case LineSplitter::Outcome::kTooLong:
      return Error{Code::kTooLarge, "a line of the stream is above 8 MiB"};
    case LineSplitter::Outcome::kMore:
      break;
  }
  if (head.status != 0 && head.status != 200) {
    if (head.status == 401) (void)connections_->tokens().refresh(*token);
    return error_from_response(head);
  }
  if (result) return {};
  const bool idle = clock.monotonic() - last_arrival >= request.timeout;
  return connections_->error_of(client, result.error(), idle);
}

}  // namespace kube
