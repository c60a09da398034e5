#include "records/api_port.h"

#include <httplib.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "records/answers.h"

namespace records {
namespace {

// The API server keeps few connections, and passes on as many requests at a time.
constexpr int kThreads = 4;
constexpr int kPatienceSeconds = 5;
constexpr std::size_t kBodyBytesMax = 4'096;  // a request to list has none
constexpr int kNameBytesMax = 256;

template <typename T, void (*kFree)(T*)>
struct Free {
  void operator()(T* one) const { kFree(one); }
};
using BioPointer = std::unique_ptr<BIO, Free<BIO, BIO_free_all>>;
using X509Pointer = std::unique_ptr<X509, Free<X509, X509_free>>;
using KeyPointer = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY, EVP_PKEY_free>>;

BioPointer reader_of(const std::string& pem) {
  return BioPointer{::BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))};
}

std::vector<X509Pointer> certificates_in(const std::string& pem) {
  std::vector<X509Pointer> all;
  const BioPointer reader = reader_of(pem);
  while (X509* one = ::PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr)) {
    all.emplace_back(one);
  }
  ::ERR_clear_error();  // that there are no more
  return all;
}

// The certificate's chain follows it.
bool use_pair(SSL_CTX& context, const std::string& certificate, const std::string& key) {
  const std::vector<X509Pointer> chain = certificates_in(certificate);
  const BioPointer reader = reader_of(key);
  const KeyPointer own{::PEM_read_bio_PrivateKey(reader.get(), nullptr, nullptr, nullptr)};
  if (chain.empty() || !own) return false;
  if (::SSL_CTX_use_certificate(&context, chain.front().get()) != 1) return false;
  for (std::size_t i = 1; i < chain.size(); ++i) {
    if (::SSL_CTX_add1_chain_cert(&context, chain[i].get()) != 1) return false;
  }
  return ::SSL_CTX_use_PrivateKey(&context, own.get()) == 1;
}

// A handshake without a certificate that they have signed, for a client, fails.
bool trust_askers(SSL_CTX& context, const std::string& authorities) {
  const std::vector<X509Pointer> all = certificates_in(authorities);
  X509_STORE* const store = ::SSL_CTX_get_cert_store(&context);
  for (const X509Pointer& one : all) {
    if (::X509_STORE_add_cert(store, one.get()) != 1) return false;
    if (::SSL_CTX_add_client_CA(&context, one.get()) != 1) return false;
  }
  ::SSL_CTX_set_verify(&context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // Without one, a session cannot be resumed by a client that has a certificate.
  constexpr unsigned char kSessions[] = "kubegang-records";
  ::SSL_CTX_set_session_id_context(&context, kSessions, sizeof kSessions - 1);
  return !all.empty();
}

std::string common_name_of(const SSL* connection) {
  const X509Pointer peer{::SSL_get1_peer_certificate(connection)};
  if (!peer) return "";
  char name[kNameBytesMax] = "";
  const int size = ::X509_NAME_get_text_by_NID(::X509_get_subject_name(peer.get()), NID_commonName,
                                               name, sizeof name);
  return size < 0 ? "" : std::string{name, static_cast<std::size_t>(size)};
}

std::vector<std::string> list_in(const nlohmann::json& data, const char* name) {
  std::vector<std::string> texts;
  if (!data.contains(name) || !data[name].is_string()) return texts;
  const auto list = nlohmann::json::parse(data[name].get<std::string>(), nullptr, false);
  if (!list.is_array()) return texts;
  for (const auto& one : list) {
    if (one.is_string()) texts.push_back(one.get<std::string>());
  }
  return texts;
}

}  // namespace

base::Result<AskersTrust> read_trust(const kube::Client& client) {
  const auto map = client.call_json(
      kube::Method::kGet,
      "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication");
  if (!map) return map.error();
  const auto data =
      map->is_object() ? map->value("data", nlohmann::json::object()) : nlohmann::json::object();
  constexpr const char* kAuthorities = "requestheader-client-ca-file";
  AskersTrust trust;
  if (data.is_object() && data.contains(kAuthorities) && data[kAuthorities].is_string()) {
    trust.authorities = data[kAuthorities].get<std::string>();
  }
  if (trust.authorities.empty()) {
    return base::invalid_argument(
        "configmap kube-system/extension-apiserver-authentication: has no "
        "requestheader-client-ca-file; the API server needs --requestheader-client-ca-file for "
        "aggregated APIs");
  }
  trust.allowed_names = list_in(data, "requestheader-allowed-names");
  trust.user_headers = list_in(data, "requestheader-username-headers");
  if (trust.user_headers.empty()) trust.user_headers = {"X-Remote-User"};
  return trust;
}

class ApiPort::Impl {
 public:
  Impl(Options options, Reader reader)
      : options_{std::move(options)}, reader_{std::move(reader)}, server_{[this](SSL_CTX& context) {
          return ::SSL_CTX_set_min_proto_version(&context, TLS1_2_VERSION) == 1 &&
                 use_pair(context, options_.certificate, options_.key) &&
                 trust_askers(context, options_.trust.authorities);
        }} {
    server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    server_.set_read_timeout(kPatienceSeconds, 0);
    server_.set_write_timeout(kPatienceSeconds, 0);
    server_.set_payload_max_length(kBodyBytesMax);
    const auto answer = [this](const httplib::Request& request, httplib::Response& response) {
      const ApiAnswer said = answer_to(request);
      response.status = said.status;
      response.set_content(said.body, "application/json");
    };
    server_.Get(".*", answer);
    server_.Post(".*", answer);
    server_.Put(".*", answer);
    server_.Patch(".*", answer);
    server_.Delete(".*", answer);
  }

  base::Status listen() {
    if (!server_.is_valid()) {
      return base::invalid_argument(
          "the certificate, its key or the authorities of the API server cannot be read");
    }
    const bool is_any = options_.port == 0;
    if (is_any) options_.port = server_.bind_to_any_port(options_.address);
    const bool is_bound =
        is_any ? options_.port > 0 : server_.bind_to_port(options_.address, options_.port);
    if (is_bound) return {};
    return base::Error{base::Code::kUnavailable, "cannot listen on " + options_.address + ":" +
                                                     std::to_string(options_.port)};
  }

  int port() const { return options_.port; }
  void serve() { (void)server_.listen_after_bind(); }
  void stop() { server_.stop(); }

 private:
  ApiAnswer answer_to(const httplib::Request& request) {
    const auto& names = options_.trust.allowed_names;
    const bool is_allowed =
        request.ssl != nullptr &&
        (names.empty() || std::ranges::find(names, common_name_of(request.ssl)) != names.end());
    const bool has_user = std::ranges::any_of(options_.trust.user_headers, [&](const auto& name) {
      return !request.get_header_value(name.c_str()).empty();
    });
    if (!is_allowed || !has_user) {
      return refusal(401, "Unauthorized", "only the API server may ask");
    }
    ApiRequest asked{.method = request.method, .path = request.path};
    for (const auto& [name, value] : request.params) asked.query[name] = value;
    const std::lock_guard lock{mu_};
    return answer_of(asked, reader_, options_.cluster);
  }

  Options options_;
  std::mutex mu_;
  const Reader reader_;  // guarded by mu_
  httplib::SSLServer server_;
};

ApiPort::ApiPort(std::unique_ptr<Impl> impl) : impl_{std::move(impl)} {}
ApiPort::~ApiPort() = default;

base::Result<std::unique_ptr<ApiPort>> ApiPort::create(Options options, Reader reader) {
  auto impl = std::make_unique<Impl>(std::move(options), std::move(reader));
  if (const base::Status status = impl->listen(); !status) return status.error();
  return std::unique_ptr<ApiPort>{new ApiPort{std::move(impl)}};
}

int ApiPort::port() const {
  return impl_->port();
}
void ApiPort::serve() {
  impl_->serve();
}
void ApiPort::stop() {
  impl_->stop();
}

}  // namespace records
