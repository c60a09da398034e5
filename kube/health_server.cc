#include "kube/health_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

// One thread and poll(): a slow client does not delay others. Not cpp-httplib's server, which
// reads a line of any length, gives each read a limit of its own and queues connections without
// end.
namespace kube {
namespace {

// kubelet has three probes, and there may be a Prometheus or two.
constexpr std::size_t kConnectionsMax = 16;
// Between two looks at those that are there: each has several before it could be the oldest.
constexpr std::size_t kAcceptedMax = 4;
constexpr std::size_t kRequestBytesMax = 4096;
// The wait when no descriptor is left for a client: this process cannot give one up.
constexpr int kAcceptAgainAfter = 100;  // ms

struct Answer {
  int status = 200;
  std::string_view reason = "OK";
  std::string body{};
  std::string_view type = "text/plain";
};

// kubelet takes any status from 200 to 399 as healthy; the text is for people with curl.
Answer answer_of(const std::function<base::Status()>& probe) {
  const base::Status status = probe ? probe() : base::Status{};
  if (status.ok()) return {.body = "ok\n"};
  return {503, "Service Unavailable", status.error().message + "\n"};
}

// `head` is all up to the empty line, of which only "GET /path?query HTTP/1.1" matters.
std::string respond_to(std::string_view head, const HealthServer::Probes& probes) {
  const std::string_view line = head.substr(0, head.find_first_of("\r\n"));
  const std::string_view method = line.substr(0, line.find(' '));
  std::string_view path = line.substr(std::min(method.size() + 1, line.size()));
  path = path.substr(0, path.find_first_of(" ?"));
  const bool is_head = method == "HEAD";
  Answer answer{404, "Not Found", "there are /healthz, /readyz and /metrics\n"};
  if (method != "GET" && !is_head) {
    answer = {405, "Method Not Allowed", "GET only\n"};
  } else if (path == "/healthz") {
    answer = answer_of(probes.alive);
  } else if (path == "/readyz") {
    answer = answer_of(probes.ready);
  } else if (path == "/metrics") {
    answer = {.body = probes.metrics ? probes.metrics() : std::string{},
              .type = "text/plain; version=0.0.4"};
  }
  std::string text = "HTTP/1.1 " + std::to_string(answer.status) + " ";
  text.append(answer.reason).append("\r\nContent-Type: ").append(answer.type);
  text += "\r\nContent-Length: " + std::to_string(answer.body.size());
  text += "\r\nConnection: close\r\n\r\n";
  return is_head ? text : text + answer.body;
}

// A client: its request comes in, the answer goes out, and then it hangs up. Closing before that
// could make the kernel reset the connection, answer included.
struct Connection {
  os::FileDescriptor socket;
  std::chrono::steady_clock::time_point until;
  std::string head{};
  std::string answer{};  // "" = the request is not whole yet
  std::size_t sent = 0;

  bool is_sending() const { return sent < answer.size(); }
  // Both return false if the connection is over.
  bool receive(const HealthServer::Probes& probes);
  bool send();
};

// One piece at a time, so that no client keeps the others waiting.
bool Connection::receive(const HealthServer::Probes& probes) {
  std::array<char, kRequestBytesMax> piece;
  const ssize_t count = ::recv(socket.get(), piece.data(), piece.size(), 0);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0 || !answer.empty()) return false;
  head.append(piece.data(), static_cast<std::size_t>(count));
  if (head.find("\r\n\r\n") != std::string::npos || head.find("\n\n") != std::string::npos) {
    answer = respond_to(head, probes);
  } else if (head.size() >= kRequestBytesMax) {
    answer = "HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n\r\n";
  }
  return answer.empty() || send();
}

bool Connection::send() {
  while (is_sending()) {
    const ssize_t count =
        ::send(socket.get(), answer.data() + sent, answer.size() - sent, MSG_NOSIGNAL);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    sent += static_cast<std::size_t>(count);
  }
  return ::shutdown(socket.get(), SHUT_WR) == 0;
}

// Takes some that wait, each at the cost of the oldest if there are too many: a probe sends its
// request at once and is answered before sixteen others have come.
void accept_some(int listener, base::Duration patience, std::vector<Connection>& connections) {
  for (std::size_t i = 0; i < kAcceptedMax; ++i) {
    os::FileDescriptor socket{::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
    if (socket.is_open()) {
      if (connections.size() == kConnectionsMax) connections.erase(connections.begin());
      connections.push_back(
          {.socket = std::move(socket), .until = std::chrono::steady_clock::now() + patience});
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN) return;
    // The process is out of descriptors or memory.
    if (connections.empty()) {
      poll(nullptr, 0, kAcceptAgainAfter);
    } else {
      connections.erase(connections.begin());
    }
    return;
  }
}

// Without SO_REUSEPORT, with which two servers on one port would go unnoticed.
os::FileDescriptor listen_at(const addrinfo& address) {
  os::FileDescriptor socket{
      ::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (!socket.is_open()) return {};
  const int on = 1;
  const int off = 0;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // "::" is IPv4, too.
  if (address.ai_family == AF_INET6) {
    setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  const bool listens = ::bind(socket.get(), address.ai_addr, address.ai_addrlen) == 0 &&
                       ::listen(socket.get(), SOMAXCONN) == 0;
  return listens ? std::move(socket) : os::FileDescriptor{};
}

os::FileDescriptor listen_on(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return {};
  os::FileDescriptor socket;
  for (const addrinfo* each = found; each != nullptr && !socket.is_open(); each = each->ai_next) {
    socket = listen_at(*each);
  }
  freeaddrinfo(found);
  return socket;
}

// 0 if the descriptor is not a socket with a port.
int port_of(int descriptor) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

// Listens here and not in serve(), so that a port in use is an error of create().
base::Result<std::unique_ptr<HealthServer>> HealthServer::create(const Options& options,
                                                                 Probes probes) {
  os::FileDescriptor listener = listen_on(options.address, options.port);
  os::FileDescriptor wake{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  if (!listener.is_open() || !wake.is_open()) {
    return base::Error{base::Code::kUnavailable,
                       "cannot listen on " + options.address + ":" + std::to_string(options.port) +
                           ": the port is in use or the address is not of this machine"};
  }
  const int port = port_of(listener.get());
  return std::unique_ptr<HealthServer>{new HealthServer{std::move(listener), std::move(wake), port,
                                                        options.patience, std::move(probes)}};
}

HealthServer::HealthServer(os::FileDescriptor listener, os::FileDescriptor wake, int port,
                           base::Duration patience, Probes probes)
    : listener_{std::move(listener)},
      wake_{std::move(wake)},
      port_{port},
      patience_{patience},
      probes_{std::move(probes)} {}

// `connections` are ordered by age, and so by their ends.
void HealthServer::serve(std::stop_token stop) {
  const std::stop_callback wakes{stop, [this] { eventfd_write(wake_.get(), 1); }};
  std::vector<Connection> connections;
  std::vector<pollfd> polled;
  while (!stop.stop_requested()) {
    polled.assign({{.fd = wake_.get(), .events = POLLIN, .revents = 0},
                   {.fd = listener_.get(), .events = POLLIN, .revents = 0}});
    for (const Connection& one : connections) {
      const short events = one.is_sending() ? POLLOUT : POLLIN;
      polled.push_back({.fd = one.socket.get(), .events = events, .revents = 0});
    }
    int wait = -1;
    if (!connections.empty()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(
          connections.front().until - std::chrono::steady_clock::now());
      wait = static_cast<int>(std::max<std::int64_t>(left.count(), 0));
    }
    if (poll(polled.data(), polled.size(), wait) < 0 && errno != EINTR) return;
    const auto now = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < connections.size(); ++i) {
      Connection& one = connections[i];
      const bool is_ready = polled[i + 2].revents != 0;
      const bool goes_on = !is_ready || (one.is_sending() ? one.send() : one.receive(probes_));
      if (!goes_on || now >= one.until) one.socket.reset();
    }
    std::erase_if(connections, [](const Connection& one) { return !one.socket.is_open(); });
    if (polled[1].revents != 0) accept_some(listener_.get(), patience_, connections);
  }
}

std::string metrics_text(const prometheus::Collectable& registry) {
  return prometheus::TextSerializer{}.Serialize(registry.Collect());
}

}  // namespace kube
