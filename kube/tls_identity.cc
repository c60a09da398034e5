#include "kube/tls_identity.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <ctime>

#include "kube/api/time_format.h"

namespace kube {
namespace {

struct BioDeleter {
  void operator()(BIO* bio) const { BIO_free(bio); }
};

// Returns a BIO that reads `pem` in place, without a copy.
std::unique_ptr<BIO, BioDeleter> reader(std::string_view pem) {
  return std::unique_ptr<BIO, BioDeleter>{
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))};
}

// Returns the epoch for a time that OpenSSL cannot read: as an end it is long past, so the
// certificate counts as expired.
base::Instant instant_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return base::Instant{};
  return base::Instant{std::chrono::seconds{timegm(&parts)}};
}

}  // namespace

// Returns all certificates of the text, in its order: a client's own comes first, those of its
// issuers follow.
base::Result<std::vector<CertificatePointer>> parse_certificates(std::string_view pem) {
  const auto bio = reader(pem);
  std::vector<CertificatePointer> out;
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    out.emplace_back(certificate);
  }
  // So OpenSSL says that no more follow. Any other error is a certificate that is damaged.
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (out.empty() || !at_end) return base::invalid_argument("not a PEM certificate");
  return out;
}

// RSA, EC and Ed25519 alike; without a callback OpenSSL would ask for a password at the terminal.
base::Result<KeyPointer> parse_private_key(std::string_view pem) {
  const auto bio = reader(pem);
  // An encrypted key asks for a password; this answers that there is none.
  const auto no_password = [](char*, int, int, void*) { return -1; };
  KeyPointer key{PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr)};
  ERR_clear_error();
  if (key == nullptr) return base::invalid_argument("not a PEM private key without a password");
  return key;
}

base::Result<Identity> parse_identity(std::string_view certificate_pem, std::string_view key_pem) {
  Identity identity;
  // A key without a certificate proves nothing and was refused when the configuration was read.
  if (certificate_pem.empty()) return identity;
  auto certificates = parse_certificates(certificate_pem);
  if (!certificates.ok()) return certificates.error().with_context("client certificate");
  auto key = parse_private_key(key_pem);
  if (!key.ok()) return key.error().with_context("client key");
  // The first certificate is the client's own; the key belongs to no other.
  if (X509_check_private_key(certificates->front().get(), key->get()) != 1) {
    return base::invalid_argument("client key: it is not the key of the client certificate");
  }
  identity.certificates = std::move(*certificates);
  identity.key = std::move(*key);
  return identity;
}

base::Instant not_before(const X509& certificate) {
  return instant_of(X509_get0_notBefore(&certificate));
}

base::Instant not_after(const X509& certificate) {
  return instant_of(X509_get0_notAfter(&certificate));
}

// The messages name both times, because the reason is often a clock that is wrong and not the
// certificate.
base::Status check_dates(const X509& certificate, base::Instant now) {
  const base::Instant begin = not_before(certificate);
  const base::Instant end = not_after(certificate);
  if (now > end) {
    return base::Error{base::Code::kUnauthenticated, "expired at " + format_time(end) + " (it is " +
                                                         format_time(now) + "): renew it"};
  }
  if (now < begin) {
    return base::Error{base::Code::kUnauthenticated, "not valid before " + format_time(begin) +
                                                         " (it is " + format_time(now) +
                                                         "): check the clock"};
  }
  return {};
}

}  // namespace kube
