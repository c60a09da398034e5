#include "kube/testing/api_server/exec_stream.h"

#include <fcntl.h>
#include <httplib.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "kube/web_socket.h"

namespace devcluster {
namespace {

using nlohmann::json;

constexpr const char* kProtocol = "v5.channel.k8s.io";
constexpr char kInputChannel = 0;
constexpr char kOutputChannel = 1;
constexpr char kErrorOutputChannel = 2;
constexpr char kStatusChannel = 3;
constexpr char kCloseChannel = '\xFF';
constexpr int kLookMs = 200;
// The most input that the program has not read: the client's connection is not read above it.
constexpr std::size_t kInputBytesMax = 1U << 20U;

json status_of(int exit_code) {
  if (exit_code == 0) return {{"metadata", json::object()}, {"status", "Success"}};
  return {{"metadata", json::object()},
          {"status", "Failure"},
          {"message",
           "command terminated with non-zero exit code: exit status " + std::to_string(exit_code)},
          {"reason", "NonZeroExitCode"},
          {"details",
           {{"causes", {{{"reason", "ExitCode"}, {"message", std::to_string(exit_code)}}}}}}};
}

json status_of(const base::Error& error) {
  return {{"metadata", json::object()},
          {"status", "Failure"},
          {"message", "error executing command in container: " + error.message},
          {"reason", "InternalError"},
          {"code", 500}};
}

// One conversation. The socket blocks, so it is read only when it is readable.
class ExecStream {
 public:
  ExecStream(SSL* ssl, const std::atomic<bool>& stop)
      : ssl_{ssl},
        stop_{stop},
        socket_{kube::WebSocket::Side::kServer,
                {.read = [this](char* out, std::size_t size) { return read(out, size); },
                 .write = [this](std::string_view bytes) { return write(bytes); },
                 .message = [this](std::string_view message) { hear(message); }}} {}
  ~ExecStream() {
    for (const int fd : {process_.input, process_.output, process_.error, process_.pidfd}) {
      if (fd >= 0) ::close(fd);
    }
  }
  ExecStream(const ExecStream&) = delete;
  ExecStream& operator=(const ExecStream&) = delete;

  bool write(std::string_view bytes) {
    return SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size())) > 0;
  }

  void run(const std::function<base::Result<PodExecProcess>()>& begin) {
    auto begun = begin();
    if (!begun.ok()) return end(status_of(begun.error()));
    process_ = std::move(*begun);
    for (const int fd : {process_.input, process_.output, process_.error}) {
      ::fcntl(fd, F_SETFL, O_NONBLOCK);
    }
    while (is_open_ && !has_ended_ && !stop_) wait();
    if (!has_ended_) return;
    // The rest in the pipes.
    for (const auto& [fd, channel] : outputs()) {
      while (is_open_ && copy(fd, channel)) {
      }
    }
    end(status_of(process_.exit_code()));
  }

 private:
  std::array<std::pair<int*, char>, 2> outputs() {
    return {{{&process_.output, kOutputChannel}, {&process_.error, kErrorOutputChannel}}};
  }

  void end(const json& status) {
    (void)socket_.send(std::string(1, kStatusChannel) + status.dump());
    socket_.close();
  }

  bool has_arrived() const {
    pollfd look{SSL_get_fd(ssl_), POLLIN, 0};
    return SSL_has_pending(ssl_) == 1 || ::poll(&look, 1, 0) > 0;
  }

  ssize_t read(char* out, std::size_t size) {
    if (!has_arrived()) return 0;
    const int count = SSL_read(ssl_, out, static_cast<int>(size));
    return count > 0 ? count : -1;
  }

  void hear(std::string_view message) {
    if (message.size() == 2 && message[0] == kCloseChannel && message[1] == kInputChannel) {
      input_ends_ = true;
    } else if (message.size() > 1 && message[0] == kInputChannel) {
      pending_ += message.substr(1);
    }
    feed();
  }

  void feed() {
    while (!pending_.empty() && process_.input >= 0) {
      const ssize_t count = ::write(process_.input, pending_.data(), pending_.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return;
      if (count < 0) break;
      pending_.erase(0, static_cast<std::size_t>(count));
    }
    if (!pending_.empty()) pending_.clear();  // the program reads no more
    if (input_ends_ && process_.input >= 0) ::close(std::exchange(process_.input, -1));
  }

  // False: nothing is there.
  bool copy(int* fd, char channel) {
    std::array<char, 16'384> bytes{};
    if (*fd < 0) return false;
    const ssize_t count = ::read(*fd, bytes.data(), bytes.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (count <= 0) {
      ::close(std::exchange(*fd, -1));
      return false;
    }
    is_open_ = socket_.send(std::string(1, channel) +
                            std::string{bytes.data(), static_cast<std::size_t>(count)});
    return true;
  }

  void wait() {
    const bool reads = pending_.size() < kInputBytesMax;
    std::array<pollfd, 5> ready{{{reads ? SSL_get_fd(ssl_) : -1, POLLIN, 0},
                                 {process_.output, POLLIN, 0},
                                 {process_.error, POLLIN, 0},
                                 {pending_.empty() ? -1 : process_.input, POLLOUT, 0},
                                 {process_.pidfd, POLLIN, 0}}};
    const bool has_more = reads && SSL_has_pending(ssl_) == 1;
    ::poll(ready.data(), ready.size(), has_more ? 0 : kLookMs);
    if (has_more || ready[0].revents != 0) is_open_ = socket_.receive();
    std::size_t at = 1;
    for (const auto& [fd, channel] : outputs()) {
      if (ready[at++].revents != 0) (void)copy(fd, channel);
    }
    if (ready[3].revents != 0) feed();
    has_ended_ = ready[4].revents != 0;
  }

  SSL* const ssl_;
  const std::atomic<bool>& stop_;
  kube::WebSocket socket_;
  PodExecProcess process_;
  std::string pending_;
  bool input_ends_ = false;
  bool is_open_ = true;
  bool has_ended_ = false;
};

}  // namespace

bool is_exec_upgrade(const httplib::Request& request) {
  return request.get_header_value("Upgrade") == "websocket" &&
         request.get_header_value("Sec-WebSocket-Protocol").find(kProtocol) != std::string::npos;
}

void serve_exec(const httplib::Request& request,
                const std::function<base::Result<PodExecProcess>()>& begin,
                const std::atomic<bool>& stop) {
  // The library hands out its connection as a pointer to const.
  ExecStream stream{const_cast<SSL*>(request.ssl), stop};
  const std::string key = request.get_header_value("Sec-WebSocket-Key");
  const bool is_switched = stream.write(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Accept: " +
      kube::web_socket_accept(key) + "\r\nSec-WebSocket-Protocol: " + kProtocol + "\r\n\r\n");
  if (is_switched) stream.run(begin);
}

}  // namespace devcluster
