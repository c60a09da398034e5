#include "kube/testing/api_server/https_front_end.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include <httplib.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "kube/base64.h"
#include "kube/clock_watch.h"
#include "kube/testing/api_server/connection_threads.h"
#include "kube/testing/api_server/exec_stream.h"
#include "kube/testing/api_server/openssl_ptr.h"

// A thread for each connection, and on it one request after the other:
//
// 1. authenticate: a client certificate of our authority (name in CN, groups in O), or a bearer
//    token
// 2. translate the library's request and hand it to the ApiServer
// 3. apply the injected delay or break of the connection
// 4. send the body, or pump a stream piece by piece until it ends, the client goes or stop()
//    cancels it
namespace devcluster {
namespace {

// How often the thread of a silent stream looks whether its client is still there.
constexpr base::Duration kClientLookInterval = std::chrono::seconds{1};
// Longer than our transport keeps an idle connection (30 s): the client closes first, so no request
// meets a connection that is being closed.
constexpr std::time_t kKeepAliveSeconds = 60;
// A client that does not read for this time loses its connection.
constexpr std::time_t kWriteTimeoutSeconds = 30;
constexpr std::size_t kPayloadBytesMax = 16U << 20U;  // the API server refuses far less, in JSON

// Reads the text in place; it must outlive the result.
Bio reader_of(const std::string& text) {
  return Bio{BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))};
}

// The server's own certificate; client certificates of `authority_pem` are asked for, not demanded.
bool set_up_tls(SSL_CTX& context, const KeyPair& own, const std::string& authority_pem) {
  // False if any of the three is not PEM: a defect of the test, since they were made by Pki.
  const Certificate certificate{
      PEM_read_bio_X509(reader_of(own.certificate_pem).get(), nullptr, nullptr, nullptr)};
  const Key key{PEM_read_bio_PrivateKey(reader_of(own.key_pem).get(), nullptr, nullptr, nullptr)};
  const Certificate authority{
      PEM_read_bio_X509(reader_of(authority_pem).get(), nullptr, nullptr, nullptr)};
  if (!certificate || !key || !authority) return false;
  SSL_CTX_set_min_proto_version(&context, TLS1_2_VERSION);
  if (SSL_CTX_use_certificate(&context, certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(&context, key.get()) != 1 ||
      X509_STORE_add_cert(SSL_CTX_get_cert_store(&context), authority.get()) != 1 ||
      SSL_CTX_add_client_CA(&context, authority.get()) != 1) {
    return false;
  }
  // Without SSL_VERIFY_FAIL_IF_NO_PEER_CERT a client without a certificate gets through the
  // handshake; it may have a token, and is answered with 401 otherwise.
  SSL_CTX_set_verify(&context, SSL_VERIFY_PEER, nullptr);
  // Sessions would be resumed without the client's certificate being looked at again.
  SSL_CTX_set_session_cache_mode(&context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(&context, SSL_OP_NO_TICKET);
  return true;
}

// A name may have an entry of one type several times: each O is a group.
std::vector<std::string> subject_entries(X509* certificate, int id) {
  std::vector<std::string> values;
  X509_NAME* name = X509_get_subject_name(certificate);
  for (int at = X509_NAME_get_index_by_NID(name, id, -1); at >= 0;
       at = X509_NAME_get_index_by_NID(name, id, at)) {
    const ASN1_STRING* value = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at));
    values.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
                        static_cast<std::size_t>(ASN1_STRING_length(value)));
  }
  return values;
}

// nullopt without a certificate, or if its chain does not end in our authority.
// SOURCE: Kubernetes, "Authenticating", X509 client certificates.
std::optional<User> user_of_certificate(const SSL* ssl) {
  if (ssl == nullptr) return std::nullopt;
  const Certificate certificate{SSL_get1_peer_certificate(ssl)};
  if (!certificate || SSL_get_verify_result(ssl) != X509_V_OK) return std::nullopt;
  const auto names = subject_entries(certificate.get(), NID_commonName);
  if (names.empty()) return std::nullopt;
  return User{names[0], subject_entries(certificate.get(), NID_organizationName)};
}

// POLLRDHUP: the other side has sent its FIN. Asked only while nothing is sent, since a write would
// notice by itself.
bool client_has_gone(int socket) {
  pollfd look{socket, POLLRDHUP, 0};
  return ::poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

// Probes of a kubelet and a client's look at the version come before any login.
// Paths that need no authentication.
bool is_public(const std::string& path) {
  return path == "/version" || path == "/healthz" || path == "/readyz" || path == "/livez";
}

kube::Method method_of(const std::string& text) {
  if (text == "POST") return kube::Method::kPost;
  if (text == "PUT") return kube::Method::kPut;
  if (text == "PATCH") return kube::Method::kPatch;
  if (text == "DELETE") return kube::Method::kDelete;
  return kube::Method::kGet;
}

// Written out: the ApiServer is not asked for requests without a user.
constexpr const char* kUnauthorized =
    R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",)"
    R"("message":"Unauthorized",)"
    R"("reason":"Unauthorized","code":401})";

// httplib compresses what it knows as text, which would hold back a watch's events; a parameter
// keeps it from recognising the type.
std::string uncompressed(const std::string& content_type) {
  if (content_type == "application/json") return "application/json;charset=utf-8";
  return content_type.starts_with("text/") ? "application/octet-stream" : content_type;
}

}  // namespace

class HttpsFrontEnd::Impl {
 public:
  Impl(ApiServer& api, const kube::Clock& clock, std::unique_ptr<CertificateAuthority> authority,
       KeyPair own, const HttpsOptions& options)
      : api_{api},
        clock_{clock},
        authority_{std::move(authority)},
        own_{std::move(own)},
        options_{options},
        port_{options.port} {}
  ~Impl() { stop(); }

  // Listens on port_; 0 becomes the port that it gets.
  base::Status listen();
  void stop();
  void handle(const httplib::Request& request, httplib::Response& response);
  std::optional<User> authenticate(const httplib::Request& request);
  void answer_stream(const httplib::Request& request, const ApiAnswer& answer,
                     httplib::Response& response);
  bool pump(BodyStream& stream, int socket, httplib::DataSink& sink);
  // An injected delay; stop() ends it.
  void wait(base::Duration delay);

  ApiServer& api_;
  const kube::Clock& clock_;
  const std::unique_ptr<CertificateAuthority> authority_;
  const KeyPair own_;
  const HttpsOptions options_;
  ConnectionRegistry connections_;
  std::unique_ptr<httplib::SSLServer> server_;
  std::thread accept_thread_;
  int port_ = 0;
  std::atomic<bool> stopping_{false};

  std::mutex mu_;
  std::condition_variable stopped_;
  std::map<std::string, User> tokens_;             // guarded by mu_
  std::set<std::shared_ptr<BodyStream>> streams_;  // guarded by mu_
};

base::Status HttpsFrontEnd::Impl::listen() {
  const std::string authority_pem = authority_->certificate_pem();
  server_ = std::make_unique<httplib::SSLServer>(
      [&](SSL_CTX& context) { return set_up_tls(context, own_, authority_pem); });
  if (!server_->is_valid()) {
    return base::Error{base::Code::kInternal, "TLS of the API server cannot be set up"};
  }
  // Each connection gets a thread of its own, up to a bound: watches hold a thread for minutes, so
  // a small pool would be full of them.
  server_->new_task_queue = [this] {
    return make_connection_threads(connections_, kConnectionsMax).release();
  };
  // Not httplib's default SO_REUSEPORT: two servers on one port would go unnoticed.
  server_->set_socket_options([](socket_t socket) {
    const int on = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  });
  // Events of a watch are small, and each must arrive at once.
  server_->set_tcp_nodelay(true);
  server_->set_keep_alive_timeout(kKeepAliveSeconds);
  // No limit on requests for each connection.
  server_->set_keep_alive_max_count(1'000'000'000);
  server_->set_write_timeout(kWriteTimeoutSeconds);
  server_->set_payload_max_length(kPayloadBytesMax);
  const auto handler = [this](const httplib::Request& request, httplib::Response& response) {
    handle(request, response);
  };
  // One handler for all: paths are the ApiServer's.
  server_->Get(".*", handler).Post(".*", handler).Put(".*", handler);
  server_->Patch(".*", handler).Delete(".*", handler);
  const bool bound = port_ == 0 ? (port_ = server_->bind_to_any_port(options_.address)) > 0
                                : server_->bind_to_port(options_.address, port_);
  if (!bound) {
    return base::Error{base::Code::kUnavailable,
                       "cannot listen on " + options_.address + ":" + std::to_string(port_) +
                           ": the port is in use; stop what listens there or choose another port"};
  }
  accept_thread_ = std::thread{[this] { server_->listen_after_bind(); }};
  return {};
}

// 1. end the streams and delays, 2. stop accepting, 3. break the connections that wait for a
//    request, 4. wait for all threads. No effect if it is stopped already.
void HttpsFrontEnd::Impl::stop() {
  {
    const std::scoped_lock lock{mu_};
    stopping_ = true;
    // Streams first: their threads wait in read(), and the library waits for its threads.
    for (const auto& stream : streams_) stream->cancel();
  }
  stopped_.notify_all();
  if (!accept_thread_.joinable()) return;
  while (!server_->is_running()) std::this_thread::yield();  // stop() is lost before that.
  server_->stop();
  connections_.break_all();
  accept_thread_.join();
}

// The certificate wins over a token, as on a real server.
std::optional<User> HttpsFrontEnd::Impl::authenticate(const httplib::Request& request) {
  if (const auto user = user_of_certificate(request.ssl)) return user;
  const std::string header = request.get_header_value("Authorization");
  const std::string scheme = "Bearer ";
  if (!header.starts_with(scheme)) return std::nullopt;
  const std::scoped_lock lock{mu_};
  const auto found = tokens_.find(header.substr(scheme.size()));
  if (found == tokens_.end()) return std::nullopt;
  return found->second;
}

// Ends early when the server stops.
void HttpsFrontEnd::Impl::wait(base::Duration delay) {
  std::unique_lock lock{mu_};
  stopped_.wait_for(lock, delay, [&] { return stopping_.load(); });
}

void HttpsFrontEnd::Impl::handle(const httplib::Request& request, httplib::Response& response) {
  const int socket = SSL_get_fd(request.ssl);
  // So that stop() can break connections that wait for a request.
  connections_.register_socket(socket);
  if (stopping_) connections_.break_all();  // It came while the others were broken.
  const auto user = authenticate(request);
  if (!user && !is_public(request.path)) {
    response.status = 401;
    response.set_content(kUnauthorized, "application/json");
    return;
  }
  ApiRequest api;
  api.http.method = method_of(request.method);
  api.http.path = request.target;
  api.http.body = request.body;
  api.http.content_type = request.get_header_value("Content-Type");
  api.http.accept = request.get_header_value("Accept");
  api.user_agent = request.get_header_value("User-Agent");
  api.upgrades = is_exec_upgrade(request);
  if (user) {
    api.user = user->name;
    api.groups = user->groups;
  }
  // Every user may do everything here, also impersonate.
  if (const std::string as = request.get_header_value("Impersonate-User"); !as.empty()) {
    api.user = as;
    api.groups = {"system:authenticated"};
  }
  const ApiAnswer answer = api_.handle(api);
  // After the request was carried out, outside any lock.
  if (answer.delay > base::Duration{0}) wait(answer.delay);
  // Without the close of TLS: the client sees a connection that broke, not an answer that ended.
  if (answer.reset) {
    ::shutdown(socket, SHUT_RDWR);
    return;
  }
  response.status = answer.response.status;
  // A real server's answers have these beside their body. Clients read headers byte by byte.
  response.set_header("Audit-Id", "5f7f2c9e-0c5b-4d0e-9f3e-3b6c9a6a1d10");
  response.set_header("Cache-Control", "no-cache, private");
  response.set_header("Date", kube::http_date(kube::SystemClock{}.wall()));
  response.set_header("X-Kubernetes-Pf-Flowschema-Uid", "0f3c2f6d-37b4-4a53-8f0e-6a4f2d9a0c21");
  response.set_header("X-Kubernetes-Pf-Prioritylevel-Uid", "b1c7f1a4-91f2-4d57-a5f5-2f1a7b3d8e32");
  std::string content_type = "application/json";
  for (const auto& [name, value] : answer.response.headers) {
    if (name == "content-type")
      content_type = value;
    else
      response.set_header(name, value);
  }
  if (answer.stream) return answer_stream(request, answer, response);
  if (answer.exec) {
    serve_exec(request, answer.exec, stopping_);
    ::shutdown(socket, SHUT_RDWR);
    return;
  }
  response.set_content(answer.response.body, uncompressed(content_type));
}

void HttpsFrontEnd::Impl::answer_stream(const httplib::Request& request, const ApiAnswer& answer,
                                        httplib::Response& response) {
  const std::shared_ptr<BodyStream> stream = answer.stream;
  {
    const std::scoped_lock lock{mu_};
    streams_.insert(stream);
    // stop() has gone through the streams already and would not see this one.
    if (stopping_) stream->cancel();
  }
  const int socket = SSL_get_fd(request.ssl);
  // The library calls the first function until it says that the stream is done, and the second once
  // at the end, whatever the cause.
  response.set_chunked_content_provider(
      uncompressed(answer.response.headers.at("content-type")),
      [this, stream, socket](std::size_t, httplib::DataSink& sink) {
        return pump(*stream, socket, sink);
      },
      [this, stream](bool) {
        const std::scoped_lock lock{mu_};
        streams_.erase(stream);
      });
}

// Called again and again until the stream or the client ends. false breaks the connection.
bool HttpsFrontEnd::Impl::pump(BodyStream& stream, int socket, httplib::DataSink& sink) {
  std::string data;
  // Waits for at most a second, then looks whether the client is still there: otherwise a client
  // that went away would hold its thread until the next event.
  const StreamState state = stream.read(data, kClientLookInterval);
  if (!data.empty() && !sink.write(data.data(), data.size())) return false;
  switch (state) {
    case StreamState::kOpen:
      break;
    case StreamState::kEnd:
      sink.done();
      return true;
    case StreamState::kReset:
      ::shutdown(socket, SHUT_RDWR);
      return false;
  }
  return !client_has_gone(socket);
}

// The server's certificate is for the names and the address that kubeconfigs of tests use.
// The authority is created for each server, so a kubeconfig of one never opens another.
base::Result<std::unique_ptr<HttpsFrontEnd>> HttpsFrontEnd::start(ApiServer& server,
                                                                  const kube::Clock& clock,
                                                                  const HttpsOptions& options) {
  const base::Instant now = clock.wall();
  auto authority = CertificateAuthority::create("kubegang-devcluster", now);
  if (!authority.ok()) return authority.error();
  auto own = (*authority)
                 ->issue({.common_name = "kube-apiserver",
                          .organizations = {},
                          .dns_names = {"localhost", "kubernetes.default.svc"},
                          .addresses = {"127.0.0.1"},
                          .server = true,
                          .not_before = now - std::chrono::hours{1},
                          .not_after = now + std::chrono::days{365}});
  if (!own.ok()) return own.error();
  auto impl =
      std::make_unique<Impl>(server, clock, std::move(*authority), std::move(*own), options);
  const base::Status status = impl->listen();
  if (!status.ok()) return status.error();
  return std::unique_ptr<HttpsFrontEnd>{new HttpsFrontEnd{std::move(impl)}};
}

HttpsFrontEnd::HttpsFrontEnd(std::unique_ptr<Impl> impl) : impl_{std::move(impl)} {}
HttpsFrontEnd::~HttpsFrontEnd() = default;

void HttpsFrontEnd::close() {
  impl_->stop();
}

// Opens the same port, with the same certificates: clients connect again by themselves.
base::Status HttpsFrontEnd::open_again() {
  impl_->stopping_ = false;
  return impl_->listen();
}

int HttpsFrontEnd::port() const {
  return impl_->port_;
}

std::string HttpsFrontEnd::url() const {
  return "https://" + impl_->options_.address + ":" + std::to_string(impl_->port_);
}

const CertificateAuthority& HttpsFrontEnd::authority() const {
  return *impl_->authority_;
}

void HttpsFrontEnd::add_token(const std::string& token, const User& user) {
  const std::scoped_lock lock{impl_->mu_};
  impl_->tokens_[token] = user;
}

// Everything is in the text itself, so the file can be moved.
base::Result<std::string> HttpsFrontEnd::kubeconfig(const User& user) const {
  const base::Instant now = impl_->clock_.wall();
  auto pair = impl_->authority_->issue({.common_name = user.name,
                                        .organizations = user.groups,
                                        .dns_names = {},
                                        .addresses = {},
                                        .server = false,
                                        .not_before = now - std::chrono::hours{1},
                                        .not_after = now + std::chrono::days{365}});
  if (!pair.ok()) return pair.error();
  return "apiVersion: v1\n"
         "kind: Config\n"
         "current-context: kubegang-devcluster\n"
         "clusters:\n"
         "- name: kubegang-devcluster\n"
         "  cluster:\n"
         "    server: " +
         url() +
         "\n"
         "    certificate-authority-data: " +
         kube::encode_base64(impl_->authority_->certificate_pem()) +
         "\n"
         "users:\n"
         "- name: " +
         user.name +
         "\n"
         "  user:\n"
         "    client-certificate-data: " +
         kube::encode_base64(pair->certificate_pem) +
         "\n"
         "    client-key-data: " +
         kube::encode_base64(pair->key_pem) +
         "\n"
         "contexts:\n"
         "- name: kubegang-devcluster\n"
         "  context:\n"
         "    cluster: kubegang-devcluster\n"
         "    user: " +
         user.name +
         "\n"
         "    namespace: default\n";
}

// Written beside and renamed: a program that waits for the file never reads half of it. The file
// holds a private key, hence the mode.
base::Status HttpsFrontEnd::write_kubeconfig(const std::string& path, const User& user) const {
  const auto text = kubeconfig(user);
  if (!text.ok()) return text.error();
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path{path}.parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  const std::string temporary = path + ".new";
  {
    std::ofstream file{temporary, std::ios::trunc};
    ::chmod(temporary.c_str(), S_IRUSR | S_IWUSR);
    file << *text;
    if (!file.flush()) {
      return base::Error{base::Code::kPermissionDenied,
                         "kubeconfig " + path + ": cannot be written"};
    }
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    return base::Error{base::Code::kPermissionDenied,
                       "kubeconfig " + path + ": cannot be replaced"};
  }
  return {};
}

}  // namespace devcluster
