#include "kube/testing/tls_fixture.h"

#include <httplib.h>
#include <openssl/x509.h>

#include "kube/tls_identity.h"

namespace kube {

// Each call makes a new key and certificate: a test can stop its server and go on with another one
// at the same port. "/" is answered the same for all, since these tests are about the connection.
void TlsFixture::serve(const CertificateOptions& options, const TestAuthority* clients, int port) {
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
  if (handlers_) handlers_(**server_);
  server_->start();
}

TransportConfig TlsFixture::config() const {
  return {.server = server_->url("https"),
          .ca_pem = authority_.certificate(),
          .origin = "kubeconfig test"};
}

base::Result<Response> TlsFixture::get(const TransportConfig& config) const {
  return transport_to(config)->send({.path = "/"});
}

}  // namespace kube
