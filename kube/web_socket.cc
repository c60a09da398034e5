#include "kube/web_socket.h"

#include <openssl/rand.h>
#include <openssl/sha.h>
#include <wslay/wslay.h>

#include <array>
#include <cstdint>
#include <utility>

#include "kube/base64.h"

namespace kube {
namespace {

// SOURCE: RFC 6455, section 1.3.
constexpr std::string_view kAcceptText = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
constexpr std::size_t kKeyBytes = 16;

}  // namespace

std::string web_socket_accept(const std::string& key) {
  const std::string text = key + std::string{kAcceptText};
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest{};
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return encode_base64({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

std::string web_socket_key() {
  std::string bytes(kKeyBytes, '\0');
  (void)RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  return encode_base64(bytes);
}

struct WebSocket::Impl {
  explicit Impl(Calls the_calls) : calls{std::move(the_calls)} {}
  ~Impl() { wslay_event_context_free(context); }

  static ssize_t on_read(wslay_event_context_ptr context, std::uint8_t* out, std::size_t size, int,
                         void* self) {
    const ssize_t count = of(self).calls.read(reinterpret_cast<char*>(out), size);
    if (count > 0) return count;
    wslay_event_set_error(context, count == 0 ? WSLAY_ERR_WOULDBLOCK : WSLAY_ERR_CALLBACK_FAILURE);
    return -1;
  }
  static ssize_t on_write(wslay_event_context_ptr context, const std::uint8_t* bytes,
                          std::size_t size, int, void* self) {
    if (of(self).calls.write({reinterpret_cast<const char*>(bytes), size})) {
      return static_cast<ssize_t>(size);
    }
    wslay_event_set_error(context, WSLAY_ERR_CALLBACK_FAILURE);
    return -1;
  }
  static int on_mask(wslay_event_context_ptr, std::uint8_t* out, std::size_t size, void*) {
    return RAND_bytes(out, static_cast<int>(size)) == 1 ? 0 : -1;
  }
  static void on_message(wslay_event_context_ptr, const wslay_event_on_msg_recv_arg* message,
                         void* self) {
    const std::string_view text{reinterpret_cast<const char*>(message->msg), message->msg_length};
    const Calls& calls = of(self).calls;
    if (message->opcode == WSLAY_PONG && calls.pong) calls.pong(text);
    if (!wslay_is_ctrl_frame(message->opcode)) calls.message(text);  // wslay answers the others
  }
  static Impl& of(void* self) { return *static_cast<Impl*>(self); }

  bool send(std::uint8_t opcode, std::string_view bytes) {
    const wslay_event_msg queued{opcode, reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                 bytes.size()};
    return wslay_event_queue_msg(context, &queued) == 0 && flush();
  }
  bool flush() {
    while (wslay_event_want_write(context) != 0) {
      if (wslay_event_send(context) != 0) return false;
    }
    return true;
  }

  const Calls calls;
  wslay_event_context_ptr context = nullptr;
};

WebSocket::WebSocket(Side side, Calls calls) : impl_{std::make_unique<Impl>(std::move(calls))} {
  const wslay_event_callbacks callbacks{&Impl::on_read, &Impl::on_write, &Impl::on_mask,   nullptr,
                                        nullptr,        nullptr,         &Impl::on_message};
  auto* const make =
      side == Side::kClient ? wslay_event_context_client_init : wslay_event_context_server_init;
  make(&impl_->context, &callbacks, impl_.get());
  wslay_event_config_set_max_recv_msg_length(impl_->context, kMessageBytesMax);
}

WebSocket::~WebSocket() = default;

bool WebSocket::send(std::string_view message) {
  return impl_->send(WSLAY_BINARY_FRAME, message);
}

bool WebSocket::ping(const std::string& text) {
  return impl_->send(WSLAY_PING, text);
}

bool WebSocket::receive() {
  const bool is_read = wslay_event_recv(impl_->context) == 0;
  const bool is_written = impl_->flush();
  return is_read && is_written && wslay_event_get_close_received(impl_->context) == 0 &&
         wslay_event_get_read_enabled(impl_->context) != 0;
}

void WebSocket::close() {
  if (wslay_event_queue_close(impl_->context, WSLAY_CODE_NORMAL_CLOSURE, nullptr, 0) == 0) {
    (void)impl_->flush();
  }
}

}  // namespace kube
