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

struct Limits {
  std::size_t connections;
  std::size_t streams;  // browsers' tabs
  std::size_t calls;    // of hooks, at once
};
constexpr Limits kOneReader{.connections = 64, .streams = 16, .calls = 4};
constexpr Limits kManyReaders{.connections = 512, .streams = 256, .calls = 16};
// Streams that are sent all of the board at the same time: each such text lies in memory until it
// is sent.
constexpr std::size_t kFirstPicturesMax = 4;
constexpr std::size_t kAcceptedMax = 16;
constexpr std::size_t kPieceBytes = 16 * 1024;
// Browsers take the server for gone if they hear nothing for a few of these.
constexpr base::Duration kBeat = std::chrono::seconds{5};
// The interval of looks for the end of a hook that works on another thread.
constexpr base::Duration kLookForCalls = std::chrono::milliseconds{5};

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

// The page asks for a token where this header stands.
std::string sign_in_refusal(const std::string& why) {
  return answer_of(401, "text/plain; charset=utf-8", why + "\n", "WWW-Authenticate: Bearer\r\n");
}

// Returns the HTTP status for a hook's error.
int status_of(base::Code code) {
  if (code == base::Code::kInvalidArgument) return 400;
  if (code == base::Code::kUnauthenticated) return 401;
  if (code == base::Code::kPermissionDenied) return 403;
  if (code == base::Code::kNotFound) return 404;
  return code == base::Code::kConflict ? 409 : 503;
}

const Limits& limits_of(const PageServer::Hooks& hooks) {
  return hooks.readers != nullptr ? kManyReaders : kOneReader;
}

std::string event(const std::string& json) {
  return "data: " + json + "\n\n";
}

// Without SO_REUSEPORT, with which two servers on one port would go unnoticed.
os::FileDescriptor listen_on(int port, in_addr_t where) {
  os::FileDescriptor socket{::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (!socket.is_open()) return {};
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(where);
  const bool listens =
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::listen(socket.get(), SOMAXCONN) == 0;
  return listens ? std::move(socket) : os::FileDescriptor{};
}

// On all addresses. A machine without IPv6 has those of IPv4 alone.
os::FileDescriptor listen_everywhere(int port) {
  os::FileDescriptor socket{::socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  const int on = 1;
  const int off = 0;
  sockaddr_in6 all{};
  all.sin6_family = AF_INET6;
  all.sin6_port = htons(static_cast<std::uint16_t>(port));
  if (socket.is_open()) {
    setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&all), sizeof all) == 0 &&
        ::listen(socket.get(), SOMAXCONN) == 0) {
      return socket;
    }
  }
  return listen_on(port, INADDR_ANY);
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
  bool is_first_picture = false;         // what is being sent of a stream
  std::uint64_t seen = 0;                // of the board
  base::Duration updated{};              // when the last update was made
  std::future<Text> call{};              // of a hook
  HttpRequest request{};                 // that the call is for
  std::string token{};                   // of its reader, if there are several
  std::shared_ptr<const Sight> sight{};  // with which the last update was made

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
  const bool is_shared = hooks.readers != nullptr;
  os::FileDescriptor listener =
      is_shared ? listen_everywhere(options.port) : listen_on(options.port, INADDR_LOOPBACK);
  os::FileDescriptor wake{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  sockaddr_in6 address{};  // a port stands where that of sockaddr_in does
  socklen_t size = sizeof address;
  if (!listener.is_open() || !wake.is_open() ||
      getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return base::Error{base::Code::kUnavailable, std::string{"cannot listen on "} +
                                                     (is_shared ? "port " : "127.0.0.1:") +
                                                     std::to_string(options.port) +
                                                     ": the port is in use; give another --port"};
  }
  return std::unique_ptr<PageServer>{new PageServer{std::move(listener), std::move(wake),
                                                    ntohs(address.sin6_port), options, board, clock,
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
      gate_{port, random_secret, options_.hosts} {
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
    const auto owner = has_readers()
                           ? std::nullopt
                           : hooks_.owner({.client_port = port_of(peer),
                                           .server_port = static_cast<std::uint16_t>(port_)});
    auto connection = std::make_unique<Connection>(
        Connection{.socket = std::move(socket), .until = clock_.monotonic() + options_.patience});
    if (!has_readers() && owner != options_.reader) {
      connection->say(refusal(403, "this page belongs to another user of this machine"));
    }
    if (connections_.size() >= limits_of(hooks_).connections) {
      const auto oldest = std::ranges::find_if(
          connections_, [](const auto& each) { return !each->is_stream && !each->call.valid(); });
      // There are fewer of those than connections, so there is one.
      connections_.erase(oldest);
    }
    connections_.push_back(std::move(connection));
  }
}

// One piece at a time, so that no client keeps the others waiting. Bytes after the request are read
// and dropped.
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
  // kubelet asks by the pod's address.
  if (has_readers() && request.path == "/healthz") {
    connection.say(answer_of(200, "text/plain; charset=utf-8", "ok\n"));
    return;
  }
  if (const auto refused = gate_.refuses(request)) {
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
  if (has_readers()) {
    admit(connection, request, request.body);
    return;
  }
  const auto cookie = gate_.sign_in(request);
  if (!cookie) {
    connection.say(refusal(403, "the code is wrong or has been used"));
    return;
  }
  connection.say(answer_of(200, "application/json", "{}", "Set-Cookie: " + *cookie + "\r\n"));
  if (hooks_.on_new_code) hooks_.on_new_code(address());
}

// Asks who the reader is; the answer to the request follows when that is known (take_answer).
void PageServer::admit(Connection& connection, const HttpRequest& request, std::string token) {
  if (token.empty()) {
    connection.say(sign_in_refusal("sign in with a token of this cluster"));
    return;
  }
  connection.token = token;
  connection.request = {.method = request.method, .path = request.path, .headers = request.headers};
  begin_call(connection, [readers = hooks_.readers, token = std::move(token)]() -> Text {
    const auto reader = readers->admit(token);
    if (!reader) return reader.error();
    return nlohmann::json{{"user", reader->name}, {"sees", *reader->sight}}.dump(
        -1, ' ', false, nlohmann::json::error_handler_t::replace);
  });
}

void PageServer::answer_signed_in(Connection& connection, const HttpRequest& request) {
  if (!has_readers()) {
    if (gate_.is_signed_in(request)) {
      answer_known(connection, request);
    } else {
      connection.say(refusal(401, "open the address that kubectl gang dashboard has printed"));
    }
    return;
  }
  if (request.method == "POST" && request.path == "/sign-out") {
    connection.say(answer_of(200, "application/json", "{}",
                             "Set-Cookie: " + gate_.end_session(request) + "\r\n"));
    return;
  }
  std::string token = gate_.token_of(request, clock_.monotonic()).value_or("");
  const bool is_about_reader = request.path == "/session" || request.path == "/events";
  const bool is_known = hooks_.readers->sight(token) != nullptr;
  if (is_known && request.method == "GET" && request.path == "/events") {
    connection.token = std::move(token);
    begin_events(connection);
    return;
  }
  if (token.empty() || (request.method == "GET" && is_about_reader)) {
    admit(connection, request, std::move(token));
    return;
  }
  connection.token = std::move(token);
  answer_known(connection, request);
}

// The API server checks the token of a reader whose request goes on to it.
void PageServer::answer_known(Connection& connection, const HttpRequest& request) {
  const bool posts = request.method == "POST";
  if (const auto hook = hooks_.posts.find(request.path); posts && hook != hooks_.posts.end()) {
    begin_call(connection, [act = hook->second, token = connection.token, body = request.body] {
      return act(token, body);
    });
  } else if (posts) {
    connection.say(refusal(404, "there is nothing to post to here"));
  } else if (request.path == "/events") {
    begin_events(connection);
  } else if (request.path == "/session") {
    connection.say(answer_of(200, "application/json", "{}"));
  } else if (request.path == "/job" && hooks_.job) {
    begin_call(connection,
               [job = hooks_.job, token = connection.token, ns = request.parameter("ns"),
                name = request.parameter("name")] { return job(token, ns, name); });
  } else {
    connection.say(refusal(404, "there is no such page"));
  }
}

void PageServer::begin_events(Connection& connection) {
  const auto streams =
      std::ranges::count_if(connections_, [](const auto& each) { return each->is_stream; });
  if (static_cast<std::size_t>(streams) >= limits_of(hooks_).streams) {
    connection.say(refusal(503, "too many tabs show this page; close some"));
    return;
  }
  connection.say(head_of(200, "text/event-stream") + "\r\n");
  connection.is_stream = true;
  connection.until = base::Duration::max();
}

// A hook that was called goes on to its end, also when the browser hangs up.
void PageServer::begin_call(Connection& connection, std::function<Text()> call) {
  const auto under_way =
      std::ranges::count_if(connections_, [](const auto& each) { return each->call.valid(); });
  if (static_cast<std::size_t>(under_way) >= limits_of(hooks_).calls) {
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
  const Text json = connection.call.get();
  connection.until = clock_.monotonic() + options_.patience;
  const HttpRequest& request = connection.request;
  if (!json) {
    const bool is_unknown = has_readers() && json.error().code == base::Code::kUnauthenticated;
    if (is_unknown) gate_.forget(connection.token);
    connection.say(is_unknown ? sign_in_refusal(json.error().message)
                              : refusal(status_of(json.error().code), json.error().message));
  } else if (request.path == "/events") {
    begin_events(connection);
  } else if (request.method == "POST" && request.path == "/session") {
    const std::string cookie = gate_.begin_session(request, connection.token, clock_.monotonic());
    connection.say(answer_of(200, "application/json", *json, "Set-Cookie: " + cookie + "\r\n"));
  } else {
    connection.say(answer_of(200, "application/json", *json));
  }
}

// Returns false if the reader's token is no longer good. With another sight all is sent once more.
bool PageServer::look_at_rights(Connection& connection) const {
  if (!has_readers()) return true;
  const auto sight = hooks_.readers->sight(connection.token);
  if (sight == nullptr) return false;
  if (connection.sight != nullptr && sight != connection.sight && *sight != *connection.sight) {
    connection.seen = 0;
  }
  connection.sight = sight;
  return true;
}

// A browser that has not taken the last update gets no other one, so what waits for it is bounded
// by the size of the board; it must have taken it after a while.
void PageServer::update(Connection& connection, base::Duration now) {
  if (!connection.is_stream || connection.is_sending()) return;
  if (!look_at_rights(connection)) {
    connection.socket.reset();
    return;
  }
  connection.until = base::Duration::max();
  const bool is_first = connection.seen == 0;
  if (is_first && first_pictures() >= kFirstPicturesMax) return;
  if (!is_first && now - connection.updated < options_.update_every) return;
  const bool is_news = board_.version() != connection.seen;
  if (!is_news && now - connection.updated < kBeat) return;
  Board::Update update = board_.since(connection.seen, clock_.wall(), connection.sight.get());
  connection.is_first_picture = is_first;
  connection.seen = update.version;
  connection.updated = now;
  connection.until = now + options_.patience;
  connection.out = event(update.json);
  connection.sent = 0;
}

std::size_t PageServer::first_pictures() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      connections_, [](const auto& each) { return each->is_first_picture && each->is_sending(); }));
}

int PageServer::wait_ms(base::Duration now) const {
  base::Duration wait = std::chrono::hours{1};
  const bool is_crowded = first_pictures() >= kFirstPicturesMax;
  for (const auto& each : connections_) {
    if (each->until != base::Duration::max()) wait = std::min(wait, each->until - now);
    if (each->call.valid()) wait = std::min(wait, kLookForCalls);
    if (!each->is_stream || each->is_sending()) continue;
    if (each->seen == 0 && is_crowded) {
      wait = std::min(wait, kLookForCalls);
      continue;
    }
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
