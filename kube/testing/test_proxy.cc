#include "kube/testing/test_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string_view>

#include "kube/base64.h"

namespace kube {
namespace {

constexpr int kLookEvery = 20;  // ms, at the flag that ends it

// Waits for bytes, or for a client. False after `timeout` ms, so that the thread sees the stop.
bool is_readable(int descriptor, int timeout) {
  pollfd one{.fd = descriptor, .events = POLLIN, .revents = 0};
  return poll(&one, 1, timeout) > 0;
}

// MSG_NOSIGNAL: a client that has gone must not end the test by SIGPIPE.
bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

// Fewer bytes if the client has closed the connection.
std::string read_exactly(int descriptor, std::size_t size) {
  std::string bytes(size, '\0');
  const ssize_t count = recv(descriptor, bytes.data(), size, MSG_WAITALL);
  bytes.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
  return bytes;
}

// Port 0 asks the kernel for a free one.
sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Copies what is there now to the other side. Returns true if both sides are still open.
bool copy(int from, int to) {
  std::array<char, 4096> buffer{};
  const ssize_t count = recv(from, buffer.data(), buffer.size(), 0);
  return count > 0 && write_all(to, {buffer.data(), static_cast<std::size_t>(count)});
}

}  // namespace

// The socket listens before the thread runs: when this returns, the port is known, and a client
// that connects at once is not refused.
TestProxy::TestProxy(Kind kind, int target_port, std::string user)
    : kind_{kind}, target_port_{target_port}, user_{std::move(user)} {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  const bool ready = bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                     listen(listener_, 16) == 0 &&
                     getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  if (!ready) std::abort();
  port_ = ntohs(address.sin_port);
  thread_ = std::thread{[this] { serve(); }};
}

// The accepting thread first, since it adds to carriers_. Each thread sees the flag within
// kLookEvery.
TestProxy::~TestProxy() {
  stop_ = true;
  thread_.join();
  for (std::thread& carrier : carriers_) carrier.join();
  close(listener_);
}

std::vector<std::string> TestProxy::asked() const {
  const std::lock_guard lock{mu_};
  return asked_;
}

std::string TestProxy::last_head() const {
  const std::lock_guard lock{mu_};
  return last_head_;
}

// A thread for each client, since clients of a test keep their tunnels open side by side.
void TestProxy::serve() {
  while (!stop_) {
    if (!is_readable(listener_, kLookEvery)) continue;
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client >= 0) carriers_.emplace_back([this, client] { carry(client); });
  }
}

// Wherever the client wanted to go, it comes to the test's own server; asked() tells what it
// wanted.
void TestProxy::carry(int client) {
  if (kind_ == Kind::kHttp ? accept_http(client) : accept_socks(client)) {
    const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(target_port_);
    bool open = connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    // Bytes are copied both ways without looking at them: behind the tunnel there is TLS.
    while (open && !stop_) {
      std::array<pollfd, 2> both{pollfd{client, POLLIN, 0}, pollfd{server, POLLIN, 0}};
      if (poll(both.data(), both.size(), kLookEvery) <= 0) continue;
      if (both[0].revents != 0) open = copy(client, server);
      if (open && both[1].revents != 0) open = copy(server, client);
    }
    close(server);
  }
  close(client);
}

// Reads byte by byte up to the blank line: what follows belongs to TLS.
bool TestProxy::accept_http(int client) {
  std::string head;
  while (!head.ends_with("\r\n\r\n")) {
    const std::string byte = read_exactly(client, 1);
    if (byte.empty()) return false;
    head += byte;
  }
  {
    const std::lock_guard lock{mu_};
    last_head_ = head;
    asked_.push_back(head.substr(8, head.find(' ', 8) - 8));  // "CONNECT host:port HTTP/1.1"
  }
  const std::string login = "Proxy-Authorization: Basic " + encode_base64(user_ + ":secret");
  if (!user_.empty() && head.find(login) == std::string::npos) {
    write_all(client, "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
    return false;
  }
  // The header is one that the client must read past, before TLS begins.
  return write_all(client, "HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n");
}

// The server's side of RFC 1928 and RFC 1929: methods (0: without a login, 2: user and password),
// the login, the request with an IPv4 address (type 1) or else a name, and the answer with an
// address that no client needs. Only well-formed requests come from our client, so the lengths are
// not checked any further: at() ends the test if one is short.
bool TestProxy::accept_socks(int client) {
  const std::string hello = read_exactly(client, 2);
  if (hello.size() < 2) return false;
  const std::string methods = read_exactly(client, static_cast<unsigned char>(hello[1]));
  const char wanted = user_.empty() ? '\x00' : '\x02';
  if (methods.find(wanted) == std::string::npos) {
    write_all(client, "\x05\xff");
    return false;
  }
  write_all(client, std::string{'\x05', wanted});
  if (!user_.empty()) {
    const std::string user = read_exactly(client, 2);
    const std::string name = read_exactly(client, static_cast<unsigned char>(user.at(1)));
    const std::string size = read_exactly(client, 1);
    const std::string password = read_exactly(client, static_cast<unsigned char>(size.at(0)));
    const bool right = name == user_ && password == "secret";
    write_all(client, std::string{'\x01', right ? '\x00' : '\x01'});
    if (!right) return false;
  }
  const std::string request = read_exactly(client, 4);
  std::string host;
  if (request.at(3) == '\x01') {
    const std::string bytes = read_exactly(client, 4);
    std::array<char, INET_ADDRSTRLEN> text{};
    inet_ntop(AF_INET, bytes.data(), text.data(), text.size());
    host = text.data();
  } else {
    const std::string size = read_exactly(client, 1);
    host = read_exactly(client, static_cast<unsigned char>(size.at(0)));
  }
  const std::string port = read_exactly(client, 2);
  const int number =
      static_cast<unsigned char>(port.at(0)) * 256 + static_cast<unsigned char>(port.at(1));
  {
    const std::lock_guard lock{mu_};
    asked_.push_back(host + ":" + std::to_string(number));
  }
  return write_all(client, std::string{"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00", 10});
}

}  // namespace kube
