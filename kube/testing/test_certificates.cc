#include "kube/testing/test_certificates.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <chrono>
#include <random>

#include "base/check.h"
#include "kube/tls_identity.h"

namespace kube {
namespace {

// Takes the BIO over.
std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text{data, static_cast<std::size_t>(size)};
  BIO_free(bio);
  return text;
}

// Adds an extension in OpenSSL's spelling: "critical,CA:TRUE", "IP:127.0.0.1". The issuer's side of
// the context serves those that refer to its key.
void add_extension(X509* certificate, X509* issuer, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str());
  CHECK(extension != nullptr, value);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// An empty value adds nothing: certificates without an organization are a case of the tests, too.
void add_name(X509_NAME* name, const char* field, const std::string& value) {
  if (value.empty()) return;
  const std::basic_string<unsigned char> bytes{value.begin(), value.end()};
  CHECK(X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, bytes.data(), -1, -1, 0) == 1);
}

// Makes a certificate and its key, signed by the issuer; a self-signed authority if `issuer` is
// null. Dates count from the machine's clock and not from a test's: OpenSSL checks them against it.
PemPair make(const CertificateOptions& options, X509* issuer, EVP_PKEY* issuer_key) {
  const KeyPointer key{EVP_EC_gen("P-256")};
  const CertificatePointer certificate{X509_new()};
  CHECK(key != nullptr && certificate != nullptr);
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate.get()),
                          std::random_device{}() & 0x7fffffffU);
  const auto at = [](ASN1_TIME* time, base::Duration offset) {
    X509_gmtime_adj(time,
                    static_cast<long>(std::chrono::floor<std::chrono::seconds>(offset).count()));
  };
  at(X509_getm_notBefore(certificate.get()), options.valid_from);
  at(X509_getm_notAfter(certificate.get()), options.valid_until);
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME* name = X509_get_subject_name(certificate.get());
  add_name(name, "O", options.organization);
  add_name(name, "CN", options.common_name);
  X509* parent = issuer == nullptr ? certificate.get() : issuer;
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(parent));
  if (issuer == nullptr) {
    add_extension(certificate.get(), parent, NID_basic_constraints, "critical,CA:TRUE");
    add_extension(certificate.get(), parent, NID_key_usage, "critical,keyCertSign,cRLSign");
  } else if (!options.host.empty()) {
    add_extension(certificate.get(), parent, NID_subject_alt_name, options.host);
  }
  CHECK(X509_sign(certificate.get(), issuer_key == nullptr ? key.get() : issuer_key, EVP_sha256()) >
        0);
  PemPair out;
  BIO* certificate_text = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(certificate_text, certificate.get());
  out.certificate = text_of(certificate_text);
  BIO* key_text = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(key_text, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  out.key = text_of(key_text);
  return out;
}

}  // namespace

TestAuthority::TestAuthority()
    : own_{make({.common_name = "test authority", .host = ""}, nullptr, nullptr)} {}

PemPair TestAuthority::issue(const CertificateOptions& options) const {
  auto issuer = parse_certificates(own_.certificate);
  auto key = parse_private_key(own_.key);
  return make(options, issuer->front().get(), key->get());
}

}  // namespace kube
