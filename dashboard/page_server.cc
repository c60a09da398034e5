#include "dashboard/page_server.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <future>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "dashboard/bundle.h"
#include "kube/run_loop.h"

// One thread and poll(), as kube/health_server.cc, and for the same reasons.
namespace dashboard {
namespace {

constexpr std::size_t kConnectionsMax = 64;
constexpr std::size_t kStreamsMax = 16;  // browsers' tabs
constexpr std::size_t kCallsMax = 4;     // of hooks, at once
constexpr std::size_t kAcceptedMax = 16;
constexpr std::size_t kPieceBytes = 16 * 1024;
// Browsers that hear nothing for so long take the server for gone.
constexpr base::Duration kBeat = std::chrono::seconds{5};
// While a hook works on another thread, its end is looked for so often.
constexpr base::Duration kLookForCalls = std::chrono::milliseconds{20};

// The page loads nothing from elsewhere, runs no script that is not in its files, and cannot be
// shown in a frame.
constexpr std::string_view kSecurityHeaders =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Cache-Control: no-store\r\n"
    "Connection: close\r\n";

std::string_view reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Service Unavailable";
  }
}

std::string head_of(int status, std::string_view type) {
  std::string text = "HTTP/1.1 " + std::to_string(status) + " ";
  text.append(reason_of(status)).append("\r\nContent-Type: ").append(type).append("\r\n");
  return text.append(kSecurityHeaders);
}

std::string answer_of(int status, std::string_view type, std::string_view body,
                      std::string_view headers = {}) {
  std::string text = head_of(status, type);
  text.append(headers).append("Content-Length: ").append(std::to_string(body.size()));
  return text.append("\r\n\r\n").append(body);
}

std::string refusal(int status, const std::string& why) {
  return answer_of(status, "text/plain; charset=utf-8", why + "\n");
}

// Of what a hook could not do.
int status_of(base::Code code) {
  if (code == base::Code::kInvalidArgument) return 400;
  if (code == base::Code::kPermissionDenied) return 403;
  if (code == base::Code::kNotFound) return 404;
  return code == base::Code::kConflict ? 409 : 503;
}

std::string event(const std::string& json) {
  return "data: " + json + "\n\n";
}

// Without SO_REUSEPORT, with which two servers on one port would go unnoticed.
os::FileDescriptor listen_on(int port) {
  os::FileDescriptor socket{::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (!socket.is_open()) return {};
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool listens =
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::listen(socket.get(), SOMAXCONN) == 0;
  return listens ? std::move(socket) : os::FileDescriptor{};
}

std::uint16_t port_of(const sockaddr_in& address) {
  return ntohs(address.sin_port);
}

}  // namespace

// 1. `received` grows until it is a request
// 2. `out` is sent, and then the connection is closed; a stream (`seen`) lives on
struct PageServer::Connection {
  os::FileDescriptor socket;
  base::Duration until{};  // kNever of a stream that has been sent all
  std::string received{};
  std::string out{};
  std::size_t sent = 0;
  bool is_answered = false;
  bool is_stream = false;
  std::uint64_t seen = 0;                        // of the board
  base::Duration updated{};                      // when the last update was made
  std::future<base::Result<std::string>> call{};  // of a hook

  bool is_sending() const { return sent < out.size(); }
  void say(std::string text) {
    out = std::move(text);
    sent = 0;
    is_answered = true;
  }
  bool send();
};

// Returns false if the connection is over.
bool PageServer::Connection::send() {
  while (is_sending()) {
    const ssize_t count = ::send(socket.get(), out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    sent += static_cast<std::size_t>(count);
  }
  out.clear();
  sent = 0;
  if (is_stream || !is_answered || call.valid()) return true;
  // The browser hangs up: closing before that could make the kernel reset the connection.
  return ::shutdown(socket.get(), SHUT_WR) == 0;
}

base::Result<std::unique_ptr<PageServer>> PageServer::create(const Options& options, Board& board,
                                                             const kube::Clock& clock,
                                                             Hooks hooks) {
  os::FileDescriptor listener = listen_on(options.port);
  os::FileDescriptor wake{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (!listener.is_open() || !wake.is_open() ||
      getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return base::Error{base::Code::kUnavailable,
                       "cannot listen on 127.0.0.1:" + std::to_string(options.port) +
                           ": the port is in use; give another --port"};
  }
  return std::unique_ptr<PageServer>{new PageServer{std::move(listener), std::move(wake),
                                                    port_of(address), options, board, clock,
                                                    std::move(hooks)}};
}

PageServer::PageServer(os::FileDescriptor listener, os::FileDescriptor wake, int port,
                       Options options, Board& board, const kube::Clock& clock, Hooks hooks)
    : listener_{std::move(listener)},
      wake_{std::move(wake)},
      port_{port},
      options_{options},
      board_{board},
      clock_{clock},
      hooks_{std::move(hooks)},
      gate_{port, random_secret} {
  board_.set_on_change([this] { eventfd_write(wake_.get(), 1); });
}

PageServer::~PageServer() {
  board_.set_on_change({});
}

std::string PageServer::address() const {
  return "http://127.0.0.1:" + std::to_string(port_) + "/#" + gate_.code();
}

// Takes some that wait. The kernel says who has opened them.
void PageServer::accept_some() {
  for (std::size_t i = 0; i < kAcceptedMax; ++i) {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    os::FileDescriptor socket{::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&peer), &size,
                                        SOCK_NONBLOCK | SOCK_CLOEXEC)};
    if (!socket.is_open()) return;
    const auto owner = hooks_.owner(
        {.client_port = port_of(peer), .server_port = static_cast<std::uint16_t>(port_)});
    auto connection = std::make_unique<Connection>(
        Connection{.socket = std::move(socket), .until = clock_.monotonic() + options_.patience});
    if (owner != options_.reader) {
      connection->say(refusal(403, "this page belongs to another user of this machine"));
    }
    if (connections_.size() >= kConnectionsMax) {
      const auto oldest = std::ranges::find_if(
          connections_, [](const auto& each) { return !each->is_stream && !each->call.valid(); });
      // There are fewer of those than connections, so there is one.
      connections_.erase(oldest);
    }
    connections_.push_back(std::move(connection));
  }
}

// One piece at a time, so that no client keeps the others waiting. What comes after the request is
// read and dropped.
void PageServer::receive(Connection& connection) {
  std::array<char, kPieceBytes> piece;
  const ssize_t count = ::recv(connection.socket.get(), piece.data(), piece.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    connection.socket.reset();
    return;
  }
  if (connection.is_answered) return;
  connection.received.append(piece.data(), static_cast<std::size_t>(count));
  const ParsedRequest parsed = parse_request(connection.received);
  if (parsed.status == 0) return;
  connection.received.clear();
  if (parsed.status != 200) {
    connection.say(refusal(parsed.status, "this is not a request that the page makes"));
    return;
  }
  answer(connection, parsed.request);
}

// 1. what no request may be
// 2. the page's files, and the exchange of the code for a cookie
// 3. everything else needs the cookie
void PageServer::answer(Connection& connection, const HttpRequest& request) {
  if (const auto refused = Gatekeeper::refuses(request)) {
    connection.say(refusal(refused->status, refused->why));
    return;
  }
  if (request.method == "POST" && request.path == "/session") {
    sign_in(connection, request);
    return;
  }
  for (const BundleFile& file : bundle_files()) {
    if (request.method != "GET" || file.path != request.path) continue;
    connection.say(answer_of(200, file.type, file.content));
    return;
  }
  answer_signed_in(connection, request);
}

void PageServer::sign_in(Connection& connection, const HttpRequest& request) {
  const auto cookie = gate_.sign_in(request);
  if (!cookie) {
    connection.say(refusal(403, "the code is wrong or has been used"));
    return;
  }
  connection.say(answer_of(200, "application/json", "{}", "Set-Cookie: " + *cookie + "\r\n"));
  if (hooks_.on_new_code) hooks_.on_new_code(address());
}

void PageServer::answer_signed_in(Connection& connection, const HttpRequest& request) {
  const bool posts = request.method == "POST";
  if (!gate_.is_signed_in(request)) {
    connection.say(refusal(401, "open the address that kubectl gang dashboard has printed"));
  } else if (const auto hook = hooks_.posts.find(request.path);
             posts && hook != hooks_.posts.end()) {
    begin_call(connection, [act = hook->second, body = request.body] { return act(body); });
  } else if (posts) {
    connection.say(refusal(404, "there is nothing to post to here"));
  } else if (request.path == "/events") {
    begin_events(connection);
  } else if (request.path == "/session") {
    connection.say(answer_of(200, "application/json", "{}"));
  } else if (request.path == "/job" && hooks_.job) {
    begin_call(connection, [job = hooks_.job, ns = request.parameter("ns"),
                            name = request.parameter("name")] { return job(ns, name); });
  } else {
    connection.say(refusal(404, "there is no such page"));
  }
}

void PageServer::begin_events(Connection& connection) {
  const auto streams =
      std::ranges::count_if(connections_, [](const auto& each) { return each->is_stream; });
  if (static_cast<std::size_t>(streams) >= kStreamsMax) {
    connection.say(refusal(503, "too many tabs show this page; close some"));
    return;
  }
  connection.say(head_of(200, "text/event-stream") + "\r\n");
  connection.is_stream = true;
  connection.until = base::Duration::max();
}

// A hook that was called goes on to its end, also when the browser hangs up.
void PageServer::begin_call(Connection& connection,
                            std::function<base::Result<std::string>()> call) {
  const auto under_way =
      std::ranges::count_if(connections_, [](const auto& each) { return each->call.valid(); });
  if (static_cast<std::size_t>(under_way) >= kCallsMax) {
    connection.say(refusal(503, "other requests are under way; try again"));
    return;
  }
  connection.is_answered = true;
  connection.until = base::Duration::max();  // the client of the API server has its own limit
  connection.call = kube::on_other_thread(std::move(call));
}

void PageServer::take_answer(Connection& connection) {
  using std::chrono::seconds;
  if (!connection.call.valid() ||
      connection.call.wait_for(seconds{0}) != std::future_status::ready) {
    return;
  }
  const base::Result<std::string> json = connection.call.get();
  connection.until = clock_.monotonic() + options_.patience;
  connection.say(json ? answer_of(200, "application/json", *json)
                      : refusal(status_of(json.error().code), json.error().message));
}

// A browser that has not taken the last update gets no other one, so what waits for it is bounded
// by the size of the board; it must have taken it after a while.
void PageServer::update(Connection& connection, base::Duration now) {
  if (!connection.is_stream || connection.is_sending()) return;
  connection.until = base::Duration::max();
  const bool is_first = connection.seen == 0;
  if (!is_first && now - connection.updated < options_.update_every) return;
  const bool is_news = board_.version() != connection.seen;
  if (!is_news && now - connection.updated < kBeat) return;
  Board::Update update = board_.since(connection.seen, clock_.wall());
  connection.seen = update.version;
  connection.updated = now;
  connection.until = now + options_.patience;
  connection.out = event(update.json);
  connection.sent = 0;
}

int PageServer::wait_ms(base::Duration now) const {
  base::Duration wait = std::chrono::hours{1};
  for (const auto& each : connections_) {
    if (each->until != base::Duration::max()) wait = std::min(wait, each->until - now);
    if (each->call.valid()) wait = std::min(wait, kLookForCalls);
    if (!each->is_stream || each->is_sending()) continue;
    const bool is_news = board_.version() != each->seen;
    wait = std::min(wait, each->updated + (is_news ? options_.update_every : kBeat) - now);
  }
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
  return static_cast<int>(std::max<std::int64_t>(ms, 0));
}

void PageServer::serve(std::stop_token stop) {
  const std::stop_callback wakes{stop, [this] { eventfd_write(wake_.get(), 1); }};
  std::vector<pollfd> polled;
  while (!stop.stop_requested()) {
    polled.assign({{.fd = wake_.get(), .events = POLLIN, .revents = 0},
                   {.fd = listener_.get(), .events = POLLIN, .revents = 0}});
    for (const auto& one : connections_) {
      const short events = one->is_sending() ? POLLOUT : POLLIN;
      const int fd = one->socket.is_open() ? one->socket.get() : -1;  // poll() skips that
      polled.push_back({.fd = fd, .events = events, .revents = 0});
    }
    if (poll(polled.data(), polled.size(), wait_ms(clock_.monotonic())) < 0 && errno != EINTR) {
      return;
    }
    eventfd_t ignored = 0;
    (void)eventfd_read(wake_.get(), &ignored);
    const base::Duration now = clock_.monotonic();
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      Connection& one = *connections_[i];
      if (polled[i + 2].revents != 0 && !one.is_sending()) receive(one);  // -1: no revents
      take_answer(one);
      if (one.socket.is_open()) update(one, now);
      if (one.socket.is_open() && one.is_sending() && !one.send()) one.socket.reset();
      if (now >= one.until) one.socket.reset();
    }
    // One whose call goes on stays until then: its end is waited for.
    std::erase_if(connections_,
                  [](const auto& one) { return !one->socket.is_open() && !one->call.valid(); });
    if (polled[1].revents != 0) accept_some();
  }
}

}  // namespace dashboard
