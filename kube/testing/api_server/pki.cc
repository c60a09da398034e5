#include "kube/testing/api_server/pki.h"

#include <utility>

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "kube/testing/api_server/openssl_ptr.h"

namespace devcluster {
namespace {

// Takes the oldest error of the thread's queue, which is the cause of the others.
base::Error openssl_error(const char* what) {
  char reason[256];
  ERR_error_string_n(ERR_get_error(), reason, sizeof reason);
  return {base::Code::kInternal, std::string{what} + ": " + reason};
}

// Certificates count whole seconds.
std::time_t seconds_of(base::Instant t) {
  return static_cast<std::time_t>(
      std::chrono::floor<std::chrono::seconds>(t).time_since_epoch().count());
}

// Adds CN or O to a name: of a client certificate these are the user and its groups.
bool add_name(X509_NAME* name, const char* field, const std::string& value) {
  return X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(value.c_str()), -1, -1,
                                    0) == 1;
}

// The issuer is needed for the authority key identifier, which is copied from its certificate.
bool add_extension(X509* certificate, X509* issuer, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str());
  if (extension == nullptr) return false;
  const bool added = X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

// OpenSSL's spelling: "DNS:localhost,IP:127.0.0.1".
std::string alternative_names(const CertificateRequest& request) {
  std::string names;
  for (const std::string& name : request.dns_names)
    names += (names.empty() ? "DNS:" : ",DNS:") + name;
  for (const std::string& address : request.addresses)
    names += (names.empty() ? "IP:" : ",IP:") + address;
  return names;
}

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

// Works in memory only: no key is written to disk by these functions.
std::string pem_of(X509* certificate) {
  const Bio bio{BIO_new(BIO_s_mem())};
  PEM_write_bio_X509(bio.get(), certificate);
  return text_of(bio.get());
}

std::string pem_of(EVP_PKEY* key) {
  const Bio bio{BIO_new(BIO_s_mem())};
  PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return text_of(bio.get());
}

// Everything of a certificate but its extensions and signature. Version numbers count from 0: 2 is
// X.509 v3, the first that has extensions. The serial number is random, so that no two of an issuer
// are equal, and without its top bit, so that it is positive in 8 bytes.
base::Result<Certificate> blank(const CertificateRequest& request, EVP_PKEY* key) {
  Certificate certificate{X509_new()};
  std::uint64_t serial = 0;
  if (!certificate || RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) != 1 ||
      X509_set_version(certificate.get(), 2) != 1 ||
      ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate.get()), serial >> 1U) != 1 ||
      X509_set_pubkey(certificate.get(), key) != 1 ||
      ASN1_TIME_set(X509_getm_notBefore(certificate.get()), seconds_of(request.not_before)) ==
          nullptr ||
      ASN1_TIME_set(X509_getm_notAfter(certificate.get()), seconds_of(request.not_after)) ==
          nullptr) {
    return openssl_error("make a certificate");
  }
  X509_NAME* name = X509_get_subject_name(certificate.get());
  bool named = add_name(name, "CN", request.common_name);
  for (const std::string& group : request.organizations)
    named = named && add_name(name, "O", group);
  if (!named) return openssl_error("name a certificate");
  return certificate;
}

}  // namespace

struct CertificateAuthority::Parts {
  Key key;
  Certificate certificate;
  std::string pem;
};

CertificateAuthority::CertificateAuthority(std::unique_ptr<Parts> parts)
    : parts_{std::move(parts)} {}
CertificateAuthority::~CertificateAuthority() = default;

const std::string& CertificateAuthority::certificate_pem() const {
  return parts_->pem;
}

// Self-signed: subject and issuer are the same. It is valid from an hour ago, for machines whose
// clock is behind.
base::Result<std::unique_ptr<CertificateAuthority>> CertificateAuthority::create(
    const std::string& common_name, base::Instant now) {
  auto parts = std::make_unique<Parts>();
  parts->key.reset(EVP_EC_gen("P-256"));
  if (!parts->key) return openssl_error("make the key of the certificate authority");
  CertificateRequest request;
  request.common_name = common_name;
  request.not_before = now - std::chrono::hours{1};
  request.not_after = now + std::chrono::days{3650};
  auto certificate = blank(request, parts->key.get());
  if (!certificate.ok()) return certificate.error();
  X509* const self = certificate->get();
  X509_set_issuer_name(self, X509_get_subject_name(self));
  if (!add_extension(self, self, NID_basic_constraints, "critical,CA:TRUE") ||
      !add_extension(self, self, NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !add_extension(self, self, NID_subject_key_identifier, "hash") ||
      X509_sign(self, parts->key.get(), EVP_sha256()) == 0) {
    return openssl_error("sign the certificate authority's certificate");
  }
  parts->pem = pem_of(self);
  parts->certificate = std::move(*certificate);
  return std::unique_ptr<CertificateAuthority>{new CertificateAuthority{std::move(parts)}};
}

// Issues a certificate. Servers and clients get different extended key usages, which TLS checks on
// both sides. Clients compare the host that they wanted with the alternative names; kubectl no
// longer looks at the common name.
base::Result<KeyPair> CertificateAuthority::issue(const CertificateRequest& request) const {
  const Key key{EVP_EC_gen("P-256")};
  if (!key) return openssl_error("make a key");
  auto certificate = blank(request, key.get());
  if (!certificate.ok()) return certificate.error();
  X509* const self = certificate->get();
  X509* const issuer = parts_->certificate.get();
  X509_set_issuer_name(self, X509_get_subject_name(issuer));
  const std::string names = alternative_names(request);
  if (!add_extension(self, issuer, NID_basic_constraints, "critical,CA:FALSE") ||
      !add_extension(self, issuer, NID_key_usage, "critical,digitalSignature") ||
      !add_extension(self, issuer, NID_ext_key_usage,
                     request.server ? "serverAuth" : "clientAuth") ||
      !add_extension(self, issuer, NID_authority_key_identifier, "keyid") ||
      (!names.empty() && !add_extension(self, issuer, NID_subject_alt_name, names)) ||
      X509_sign(self, parts_->key.get(), EVP_sha256()) == 0) {
    return openssl_error("sign a certificate");
  }
  return KeyPair{pem_of(self), pem_of(key.get())};
}

}  // namespace devcluster
