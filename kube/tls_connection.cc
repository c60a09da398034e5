#include "kube/tls_connection.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

// A connection goes through three states:
//
// 1. The handshake, on a socket that does not block. OpenSSL says which of the two, bytes to read
//    or room to write, it waits for; poll() waits for that, with a limit.
// 2. Data, on a socket that blocks, but only after poll() has said that it is ready. Writes gather
//    up to the size of a record; a read sends them first.
// 3. The end: a goodbye (close_notify) on a connection that works, none on one that was dropped.
//
// Bytes that have arrived can be in three places: in read_, in OpenSSL (records read ahead, or the
// rest of one), in the socket. poll() sees only the last, so each question whether there is
// something to read asks all three, in this order.
namespace kube {
namespace {

// Makes the handshake fail unless the server's certificate is for `name`. Without this any
// certificate of a trusted authority would do. Returns false if OpenSSL refuses the name. OpenSSL
// asks for the address or for the name, never for both.
bool expect_server(SSL* connection, const std::string& name) {
  X509_VERIFY_PARAM* const expected = SSL_get0_param(connection);
  X509_VERIFY_PARAM_set_hostflags(expected, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (X509_VERIFY_PARAM_set1_ip_asc(expected, name.c_str()) == 1) return true;
  // An address is not a name that a server could choose its certificate by (RFC 6066, section 3).
  return X509_VERIFY_PARAM_set1_host(expected, name.data(), name.size()) == 1 &&
         SSL_ctrl(connection, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                  const_cast<char*>(name.c_str())) == 1;  // it is copied
}

// Returns false if the descriptor is not open.
bool set_blocking(int descriptor, bool blocking) {
  const int flags = fcntl(descriptor, F_GETFL, 0);
  if (flags < 0) return false;
  return fcntl(descriptor, F_SETFL, blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK) == 0;
}

}  // namespace

base::Result<std::shared_ptr<TlsContext>> TlsContext::create(const TlsTrust& trust,
                                                             const Identity& identity) {
  const std::shared_ptr<TlsContext> made{new TlsContext{trust.server_name}};
  const bool is_prepared = made->context_ != nullptr && made->prepare(trust, identity);
  // An error that a failure leaves behind would be taken for one of this thread's next call.
  ERR_clear_error();
  if (!is_prepared) return base::Error{base::Code::kInternal, "cannot set up TLS"};
  return made;
}

TlsContext::TlsContext(std::string server_name)
    : server_name_{std::move(server_name)}, context_{SSL_CTX_new(TLS_client_method())} {}

// 1. TLS 1.2 at least, which is also the lowest version of Kubernetes' servers
// 2. who may sign the server's certificate
// 3. our own certificate; without those between it and its authority the server could not follow it
//    there
// 4. sessions are kept here and not by OpenSSL, which would look for them by an id that clients
//    do not have
bool TlsContext::prepare(const TlsTrust& trust, const Identity& identity) {
  SSL_CTX* const context = context_.get();
  if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1) return false;
  SSL_CTX_set_verify(context, trust.checks_server ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  X509_STORE* const store = SSL_CTX_get_cert_store(context);
  for (const CertificatePointer& authority : trust.authorities) {
    if (X509_STORE_add_cert(store, authority.get()) != 1) return false;
  }
  if (trust.authorities.empty() && trust.checks_server) SSL_CTX_set_default_verify_paths(context);
  if (!identity.certificates.empty()) {
    if (SSL_CTX_use_certificate(context, identity.certificates.front().get()) != 1 ||
        SSL_CTX_use_PrivateKey(context, identity.key.get()) != 1) {
      return false;
    }
    for (std::size_t i = 1; i < identity.certificates.size(); ++i) {
      if (SSL_CTX_add1_chain_cert(context, identity.certificates[i].get()) != 1) return false;
    }
  }
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
  SSL_CTX_set_app_data(context, this);
  SSL_CTX_sess_set_new_cb(context, keep_session);
  return true;
}

// Called by OpenSSL, with the server's ticket. One of a server that was not trusted does not come.
int TlsContext::keep_session(SSL* connection, SSL_SESSION* session) {
  auto* const self = static_cast<TlsContext*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(connection)));
  std::unique_ptr<SSL_SESSION, Deleter> kept{session};
  const std::lock_guard lock{self->mu_};
  if (self->resumes_) self->session_.swap(kept);
  return 1;  // kept: this object frees it
}

// Several connections may begin with the same session: servers remember nothing of it.
bool TlsContext::offer_session(SSL* connection) const {
  const std::lock_guard lock{mu_};
  return session_ != nullptr && SSL_set_session(connection, session_.get()) == 1;
}

void TlsContext::stop_resuming() {
  const std::lock_guard lock{mu_};
  resumes_ = false;
  session_.reset();
}

// SSL_new() may fail for lack of memory; handshake() looks at it.
TlsConnection::TlsConnection(std::shared_ptr<TlsContext> context, int descriptor,
                             base::Duration gather)
    : context_{std::move(context)},
      descriptor_{descriptor},
      gather_{gather},
      connection_{SSL_new(context_->context_.get())} {}

// SSL_shutdown() before the end of a handshake is an error of its own.
TlsConnection::~TlsConnection() {
  if (connection_ != nullptr && SSL_is_init_finished(connection_.get())) {
    SSL_shutdown(connection_.get());
  }
}

// 1. prepare: which server is expected, and a session to resume if the last connection left one
// 2. step by step, until OpenSSL is done or `timeout` is over: a server that sends a byte now and
//    then keeps no step waiting, but all of them
// 3. on success back to a socket that blocks
// 4. on failure find out whose fault it was: a certificate that is not trusted is final, a session
//    that was refused is not, and the caller connects again without one
bool TlsConnection::handshake(base::Duration timeout) {
  ERR_clear_error();  // SSL_get_error() would take an older one for this one's
  SSL* const connection = connection_.get();
  if (connection == nullptr || SSL_set_fd(connection, descriptor_) != 1 ||
      !expect_server(connection, context_->server_name_)) {
    return false;
  }
  // Else a read would wait, without a limit, for what follows a record that is not data.
  SSL_clear_mode(connection, SSL_MODE_AUTO_RETRY);
  const bool offers_session = context_->offer_session(connection);
  if (!set_blocking(descriptor_, false)) return false;
  const auto until = std::chrono::steady_clock::now() + timeout;
  int error = SSL_ERROR_NONE;
  while (true) {
    error = SSL_get_error(connection, SSL_connect(connection));
    const bool waits = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
    const short events = error == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN;
    const auto left = std::chrono::ceil<base::Duration>(until - std::chrono::steady_clock::now());
    if (!waits || left.count() <= 0 || !is_ready(events, left)) break;
  }
  if (error == SSL_ERROR_NONE) {
    // All records that have arrived with one system call. Only here: what has been read behind an
    // answer to a call would not be seen when the connection is used again.
    if (gather_.count() > 0) SSL_set_read_ahead(connection, 1);
    return set_blocking(descriptor_, true);
  }
  // Also if it is not looked at, there is a result.
  if (SSL_get_verify_mode(connection) == SSL_VERIFY_PEER) {
    verify_result_ = SSL_get_verify_result(connection);
  }
  // There are servers that hand out sessions and then refuse each connection that begins with one:
  // those that ask for client certificates, and whose author has not named the sessions' context.
  is_session_refused_ = offers_session && error == SSL_ERROR_SSL && verify_result_ == X509_V_OK;
  if (is_session_refused_) context_->stop_resuming();
  return false;
}

void TlsConnection::set_timeouts(base::Duration read, base::Duration write) {
  read_timeout_ = read;
  write_timeout_ = write;
}

bool TlsConnection::is_readable() const {
  return has_more() || SSL_has_pending(connection_.get()) == 1 || is_ready(POLLIN, read_timeout_);
}

bool TlsConnection::is_writable() const {
  return is_ready(POLLOUT, write_timeout_);
}

// Takes from read_, and fills it when it is empty: the HTTP library reads the head of an answer
// byte by byte, which would be a call of OpenSSL for each.
ssize_t TlsConnection::read(char* out, std::size_t size) {
  if (at_ == end_) {
    if (!flush()) return -1;
    const int count = fill();
    if (count <= 0) return count;
  }
  const std::size_t count = std::min(size, end_ - at_);
  std::copy_n(read_.data() + at_, count, out);
  at_ += count;
  return static_cast<ssize_t>(count);
}

// A request and its body, which the library writes apart, go out as one record if they are small.
bool TlsConnection::write(std::string_view data) {
  written_.append(data);
  return written_.size() < kBytes || flush();
}

// Sends the whole of written_ or fails: a socket that blocks takes all that SSL_write() is given.
bool TlsConnection::flush() {
  constexpr std::size_t kPieceMax = 1U << 30U;  // SSL_write() takes an int
  std::string_view left = written_;
  while (!left.empty()) {
    const auto piece = static_cast<int>(std::min(left.size(), kPieceMax));
    const int count = is_writable() ? SSL_write(connection_.get(), left.data(), piece) : -1;
    if (count <= 0) return false;
    left.remove_prefix(static_cast<std::size_t>(count));
  }
  written_.clear();
  return true;
}

void TlsConnection::drop() {
  SSL_set_quiet_shutdown(connection_.get(), 1);
}

// Reads what has arrived into read_, at most one record. Returns its bytes, 0 at the end of the
// connection, less if it broke or took too long.
//
// With `gather` a watch of 100 events per second wakes up less often. A read that finds nothing,
// neither in OpenSSL nor on the socket, rests for that time first; OpenSSL then takes what has come
// with one system call, up to a record, and the next reads are served from there. What is more lies
// on the socket, and is read without a rest: else no watch would get more than 16 KiB in that time.
// The first read does not rest, since it is the head of the answer.
int TlsConnection::fill() {
  const bool is_first = end_ == 0;
  at_ = end_ = 0;
  // The caller has done with all that had arrived. New data wakes it once.
  const bool may_rest = !is_first && gather_.count() > 0;
  if (may_rest && SSL_has_pending(connection_.get()) == 0 && !is_ready(POLLIN, {})) {
    std::this_thread::sleep_for(gather_);
  }
  int count = -1;
  // A record may hold no data: tickets come behind a handshake, and keys are renewed. Then the next
  // one is waited for.
  for (int record = 0; record < kRecordsMax && is_readable(); ++record) {
    count = SSL_read(connection_.get(), read_.data(), static_cast<int>(read_.size()));
    if (count >= 0 || SSL_get_error(connection_.get(), count) != SSL_ERROR_WANT_READ) break;
  }
  end_ = static_cast<std::size_t>(std::max(count, 0));
  return count;
}

// Returns false if the time is over or poll() fails. A connection that broke counts as ready: the
// read or write that follows reports the error.
bool TlsConnection::is_ready(short events, base::Duration timeout) const {
  pollfd poll_one{.fd = descriptor_, .events = events, .revents = 0};
  // Rounded up: half a millisecond must not become a poll that does not wait.
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
  int ready = -1;
  do {
    ready = poll(&poll_one, 1, static_cast<int>(wait));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

}  // namespace kube
