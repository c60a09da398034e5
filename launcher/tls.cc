#include "launcher/tls.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace launcher {
namespace {

constexpr std::size_t kKeyBytes = 32;
// The only one that both ends offer, and the one that a key's hash must fit.
constexpr const char* kCipher = "TLS_AES_128_GCM_SHA256";
constexpr unsigned char kCipherId[] = {0x13, 0x01};
// The name does not choose the key: there is one.
constexpr unsigned char kIdentity[] = "kubegang";
constexpr std::size_t kIdentityBytes = sizeof kIdentity - 1;

const Tls& owner_of(SSL* connection) {
  return *static_cast<const Tls*>(SSL_get_app_data(connection));
}

// Returns the key in the form in which OpenSSL takes keys of TLS 1.3.
SSL_SESSION* session_of(SSL* connection) {
  const std::string& key = owner_of(connection).key();
  SSL_SESSION* const session = SSL_SESSION_new();
  if (session == nullptr) return nullptr;
  const auto* bytes = reinterpret_cast<const unsigned char*>(key.data());
  if (SSL_SESSION_set1_master_key(session, bytes, key.size()) == 1 &&
      SSL_SESSION_set_cipher(session, SSL_CIPHER_find(connection, kCipherId)) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1) {
    return session;
  }
  SSL_SESSION_free(session);
  return nullptr;
}

int use_key(SSL* connection, const EVP_MD*, const unsigned char** identity, std::size_t* size,
            SSL_SESSION** session) {
  *identity = kIdentity;
  *size = kIdentityBytes;
  *session = session_of(connection);
  return *session != nullptr ? 1 : 0;
}

int find_key(SSL* connection, const unsigned char* identity, std::size_t size,
             SSL_SESSION** session) {
  const bool is_known = size == kIdentityBytes && std::memcmp(identity, kIdentity, size) == 0;
  // Without a session the handshake fails, because there is no certificate.
  *session = is_known ? session_of(connection) : nullptr;
  return 1;
}

}  // namespace

base::Result<std::unique_ptr<Tls>> Tls::from_file(const std::string& path) {
  const auto fail = [&](const std::string& why) {
    return base::Error{base::Code::kUnavailable, "the key of the job's pods: " + path + ": " + why};
  };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(std::strerror(errno));
  std::string key(kKeyBytes + 1, '\0');
  const ssize_t count = ::read(fd, key.data(), key.size());
  ::close(fd);
  if (count != static_cast<ssize_t>(kKeyBytes)) return fail("it must have 32 bytes");
  key.resize(kKeyBytes);
  return std::make_unique<Tls>(std::move(key));
}

Tls::Tls(std::string key) : key_{std::move(key)} {
  // The image's configuration of OpenSSL is for other programs, and may name modules.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  context_ = SSL_CTX_new(TLS_method());
  SSL_CTX_set_min_proto_version(context_, TLS1_3_VERSION);
  SSL_CTX_set_ciphersuites(context_, kCipher);
  SSL_CTX_set_num_tickets(context_, 0);
  SSL_CTX_set_session_cache_mode(context_, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                 SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_psk_use_session_callback(context_, use_key);
  SSL_CTX_set_psk_find_session_callback(context_, find_key);
}

Tls::~Tls() {
  SSL_CTX_free(context_);
  OPENSSL_cleanse(key_.data(), key_.size());
}

void Tls::Free::operator()(ssl_st* connection) const {
  SSL_free(connection);
}

Tls::Connection Tls::for_client(int fd) const {
  Connection connection = over(fd);
  SSL_set_connect_state(connection.get());
  return connection;
}

Tls::Connection Tls::for_server(int fd) const {
  Connection connection = over(fd);
  SSL_set_accept_state(connection.get());
  return connection;
}

Tls::Connection Tls::over(int fd) const {
  Connection connection{SSL_new(context_)};
  SSL_set_app_data(connection.get(), const_cast<Tls*>(this));
  SSL_set_fd(connection.get(), fd);
  return connection;
}

}  // namespace launcher
