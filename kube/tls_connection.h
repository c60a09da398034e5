// TLS towards one server. Internal to kube/.
#pragma once

#include <openssl/ssl.h>

#include <sys/types.h>
#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "kube/tls_identity.h"

namespace kube {

// The servers that are trusted.
struct TlsTrust {
  std::vector<CertificatePointer> authorities{};  // none: the machine's own
  bool checks_server = true;
  std::string server_name{};  // or address, that the server's certificate must be for
};

// The things that connections of one identity share: the authorities, the client's certificate, and
// the server's last session, with which the next connection needs neither certificates nor
// signatures. Thread-safe. Cost: about a millisecond to make; a connection a tenth of that.
class TlsContext {
 public:
  // kInternal: OpenSSL refuses it. Nothing of `trust` and `identity` is kept.
  static base::Result<std::shared_ptr<TlsContext>> create(const TlsTrust& trust,
                                                          const Identity& identity);
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class TlsConnection;
  struct Deleter {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL_SESSION* session) const { SSL_SESSION_free(session); }
  };

  explicit TlsContext(std::string server_name);
  bool prepare(const TlsTrust& trust, const Identity& identity);
  static int keep_session(SSL* connection, SSL_SESSION* session);
  // False: there is none.
  bool offer_session(SSL* connection) const;
  void stop_resuming();

  const std::string server_name_;
  const std::unique_ptr<SSL_CTX, Deleter> context_;

  mutable std::mutex mu_;
  std::unique_ptr<SSL_SESSION, Deleter> session_;  // guarded by mu_
  bool resumes_ = true;                            // guarded by mu_
};

// One connection, read and written in large pieces: head and body of a request go out together,
// and the head of an answer is not read byte by byte. Belongs to one thread at a time.
class TlsConnection {
 public:
  // The descriptor stays the caller's, and open for as long as this.
  // Bytes that arrive within `gather` after a read are read at once (Request::gather).
  TlsConnection(std::shared_ptr<TlsContext> context, int descriptor, base::Duration gather);
  // Says goodbye to the server, unless it was dropped.
  ~TlsConnection();
  TlsConnection(const TlsConnection&) = delete;
  TlsConnection& operator=(const TlsConnection&) = delete;

  // False: it broke, took longer as a whole, or the server is not the one that is trusted
  // (verify_result()).
  bool handshake(base::Duration timeout);
  // X509_V_OK unless it was the server's certificate.
  long verify_result() const { return verify_result_; }
  // It was the session that the server refused. No further connection of the context offers one.
  bool is_session_refused() const { return is_session_refused_; }

  // Sets the limits of one system call.
  void set_timeouts(base::Duration read, base::Duration write);
  bool is_readable() const;
  bool is_writable() const;
  // Sends first what was written, since an answer may wait for it. Returns how many bytes arrived;
  // 0 at the end, less if it broke or took too long.
  ssize_t read(char* out, std::size_t size);
  bool write(std::string_view data);
  // Sends what was written. False: the connection broke, or it took too long.
  bool flush();
  // More arrived than was asked for.
  bool has_more() const { return at_ < end_; }
  // Also what OpenSSL has read and not yet given out, both of which poll() does not see.
  bool has_more_than_poll() const { return has_more() || SSL_has_pending(connection_.get()) == 1; }
  // Without a goodbye, which could block on a connection that is broken.
  void drop();

  int descriptor() const { return descriptor_; }

 private:
  struct Deleter {
    void operator()(SSL* connection) const { SSL_free(connection); }
  };
  static constexpr std::size_t kBytes = 16U << 10U;  // the most that a record of TLS has
  static constexpr int kRecordsMax = 1000;           // without data, in a row

  int fill();
  bool is_ready(short events, base::Duration timeout) const;

  const std::shared_ptr<TlsContext> context_;
  const int descriptor_;
  const base::Duration gather_;
  std::unique_ptr<SSL, Deleter> connection_;
  long verify_result_ = X509_V_OK;
  bool is_session_refused_ = false;
  base::Duration read_timeout_{};
  base::Duration write_timeout_{};
  std::array<char, kBytes> read_;
  std::size_t at_ = 0, end_ = 0;  // of what is left of read_
  std::string written_;
};

}  // namespace kube
