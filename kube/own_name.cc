#include "kube/own_name.h"

#include <openssl/x509.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "kube/base64.h"
#include "kube/tls_identity.h"

namespace kube {
namespace {

// The API server gives such names to no user of another kind.
constexpr std::string_view kServiceAccount = "system:serviceaccount:";

// SOURCE: kube-apiserver takes the common name of the subject.
std::optional<std::string> subject_of(const std::string& pem) {
  const auto certificates = parse_certificates(pem);
  if (!certificates) return std::nullopt;
  X509_NAME* const subject = X509_get_subject_name(certificates->front().get());
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0) return std::nullopt;
  unsigned char* text = nullptr;
  const int size =
      ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  if (size <= 0) return std::nullopt;
  std::string name{text, text + size};
  OPENSSL_free(text);
  return name;
}

// Reads the claims of a JSON Web Token (RFC 7519), in the alphabet of its own (RFC 4648, section
// 5).
std::optional<std::string> account_of(std::string_view token) {
  const std::size_t begin = token.find('.');
  const std::size_t end = token.find('.', begin + 1);
  if (begin == std::string_view::npos || end == std::string_view::npos) return std::nullopt;
  std::string claims{token.substr(begin + 1, end - begin - 1)};
  std::ranges::replace(claims, '-', '+');
  std::ranges::replace(claims, '_', '/');
  const auto text = decode_base64(claims);
  if (!text) return std::nullopt;
  const auto read = nlohmann::json::parse(*text, nullptr, false);
  const auto subject = read.find("sub");
  if (!read.is_object() || subject == read.end() || !subject->is_string()) return std::nullopt;
  std::string name = subject->get<std::string>();
  return name.starts_with(kServiceAccount) ? std::optional{std::move(name)} : std::nullopt;
}

}  // namespace

// A certificate beside a token, or a server without TLS, leaves it to the server which one counts.
std::optional<std::string> own_name(const TransportConfig& config) {
  if (!config.impersonate.user.empty()) return config.impersonate.user;
  const bool has_password = !config.username.empty() || !config.password.empty();
  const bool has_certificate = !config.client_certificate_pem.empty();
  const bool has_token = !config.bearer_token.empty() || !config.token_file.empty();
  if (config.exec || has_password || has_certificate == has_token) return std::nullopt;
  if (!config.server.starts_with("https://")) return std::nullopt;
  if (has_certificate) return subject_of(config.client_certificate_pem);
  if (!config.bearer_token.empty()) return account_of(config.bearer_token);
  const auto token = read_config_file(config.token_file);
  return token ? account_of(*token) : std::nullopt;
}

}  // namespace kube
