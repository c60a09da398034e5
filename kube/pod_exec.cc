#include "kube/pod_exec.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "kube/url.h"
#include "kube/web_socket.h"

namespace kube {
namespace {

// SOURCE: k8s.io/apimachinery/pkg/util/remotecommand: the first byte of each message.
constexpr char kInputChannel = 0;
constexpr char kOutputChannel = 1;
constexpr char kErrorOutputChannel = 2;
constexpr char kStatusChannel = 3;
constexpr const char* kProtocol = "v5.channel.k8s.io";
// Below what a socket takes at once when poll() calls it writable, so that output is read on.
constexpr std::size_t kPieceBytesMax = 8192;
constexpr std::size_t kInputBytesMax = 1U << 20U;
// Between two looks at what the caller wants to wait for.
constexpr std::chrono::milliseconds kLook{1'000};

// Null if there is none: a server may say anything.
nlohmann::json field(const nlohmann::json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? nlohmann::json{} : *found;
}
std::string text_of(const nlohmann::json& object, const char* name) {
  const nlohmann::json value = field(object, name);
  return value.is_string() ? value.get<std::string>() : "";
}

// Reads the end of the program, as the server reports it. SOURCE: a Status; if the program ended by
// itself, with a cause "ExitCode".
base::Result<int> exit_code_of(std::string_view text) {
  const auto status = nlohmann::json::parse(text, nullptr, false);
  if (!status.is_object()) return base::Error{base::Code::kInternal, "exec: no status at its end"};
  if (text_of(status, "status") == "Success") return 0;
  if (text_of(status, "reason") == "NonZeroExitCode") {
    const nlohmann::json causes = field(field(status, "details"), "causes");
    for (const auto& cause : causes.is_array() ? causes : nlohmann::json::array()) {
      const std::string number = text_of(cause, "message");
      int code = 0;
      const auto read = std::from_chars(number.data(), number.data() + number.size(), code);
      if (text_of(cause, "reason") == "ExitCode" && read.ec == std::errc{}) return code;
    }
  }
  std::string message = text_of(status, "message");
  if (message.empty()) message = "it failed";
  return base::Error{base::Code::kUnavailable, "exec: " + message};
}

using Clock = std::chrono::steady_clock;

class Conversation {
 public:
  Conversation(Duplex& connection, ExecCaller& caller, const ExecRequest& request)
      : connection_{connection},
        caller_{caller},
        request_{request},
        socket_{
            WebSocket::Side::kClient,
            {.read = [this](char* out, std::size_t size) { return connection_.read(out, size); },
             .write = [this](std::string_view bytes) { return connection_.write(bytes); },
             .message = [this](std::string_view message) { hear(message); },
             .pong = [this](std::string_view text) { hear_pong(text); }}} {}

  base::Result<int> run() {
    pending_ = caller_.first();
    bool is_open = true;
    while (is_open && !status_ && !caller_.gives_up()) is_open = wait();
    if (status_) {
      socket_.close();
      return *status_;
    }
    if (caller_.gives_up()) return base::Error{base::Code::kCancelled, "exec: given up"};
    if (is_silent_) {
      return base::Error{base::Code::kUnavailable, "exec: the server no longer answers"};
    }
    return base::Error{base::Code::kUnavailable, "exec: the connection was lost"};
  }

 private:
  void hear(std::string_view message) {
    if (message.empty()) return;
    const char channel = message.front();
    message.remove_prefix(1);
    if (channel == kOutputChannel || channel == kErrorOutputChannel) {
      if (!message.empty()) caller_.output(channel, message);
    } else if (channel == kStatusChannel) {
      status_ = exit_code_of(message);
    }
  }

  // 1. wait for the caller's descriptors and the connection
  // 2. what the caller has to say is queued, and sent as far as the connection takes it at once
  // 3. what has arrived is handed out
  bool wait() {
    std::vector<pollfd> ready = caller_.waits(pending_.size() < kInputBytesMax);
    if (pending_.empty() && Clock::now() - sent_at_ >= request_.idle_after) {
      pending_ += caller_.idle();
      sent_at_ = Clock::now();
    }
    const bool reads = caller_.takes_output();
    if (!keep_alive(reads)) return false;
    const int events = (reads ? POLLIN : 0) | (pending_.empty() ? 0 : POLLOUT);
    ready.push_back({events == 0 ? -1 : connection_.descriptor(), static_cast<short>(events), 0});
    const bool has_more = reads && connection_.has_more();
    const auto patience = has_more ? std::chrono::milliseconds{0}
                                   : std::min({kLook, request_.idle_after, request_.ping_every});
    const int count = ::poll(ready.data(), ready.size(), static_cast<int>(patience.count()));
    if (count < 0 && errno != EINTR) return false;
    const pollfd connection = ready.back();
    ready.pop_back();
    for (const pollfd& one : ready) {
      if (one.revents != 0) pending_ += caller_.ready(one);
    }
    if ((connection.revents & POLLOUT) != 0) {
      const std::string piece = pending_.substr(0, kPieceBytesMax);
      pending_.erase(0, piece.size());
      if (!socket_.send(std::string(1, kInputChannel) + piece)) return false;
      sent_at_ = Clock::now();
      sent_bytes_ += piece.size();
    }
    if (has_more || (reads && (connection.revents & ~POLLOUT) != 0)) return socket_.receive();
    is_silent_ = reads && is_overdue();
    return !is_silent_;
  }

  // The text of a ping says what was sent before it.
  bool keep_alive(bool reads) {
    if (!reads) asked_.reset();
    if (Clock::now() - pinged_at_ < request_.ping_every) return true;
    pinged_at_ = Clock::now();
    if (reads && !asked_) asked_ = Ping{pinged_at_, sent_bytes_};
    return socket_.ping(std::to_string(sent_bytes_));
  }
  void hear_pong(std::string_view text) {
    std::uint64_t bytes = 0;
    std::from_chars(text.data(), text.data() + text.size(), bytes);
    taken_bytes_ = std::max(taken_bytes_, std::min(bytes, sent_bytes_));
    asked_.reset();
  }
  // A server that has input which a frozen pod does not take answers later: it is not dead.
  bool is_overdue() const {
    return asked_ && asked_->bytes_before == taken_bytes_ &&
           Clock::now() - asked_->at >= request_.answer_within;
  }

  Duplex& connection_;
  ExecCaller& caller_;
  const ExecRequest& request_;
  WebSocket socket_;
  std::string pending_;
  Clock::time_point sent_at_ = Clock::now();
  struct Ping {
    Clock::time_point at;
    std::uint64_t bytes_before;
  };
  Clock::time_point pinged_at_ = Clock::now();
  std::optional<Ping> asked_;      // the first that has no answer
  std::uint64_t sent_bytes_ = 0;   // of input
  std::uint64_t taken_bytes_ = 0;  // of these, by the server
  bool is_silent_ = false;
  std::optional<base::Result<int>> status_;
};

}  // namespace

base::Result<int> pod_exec(Upgrader& upgrader, const ExecRequest& request, ExecCaller& caller) {
  const std::string name = request.ns + "/" + request.pod;
  std::string path = "/api/v1/namespaces/" + percent_encode(request.ns) + "/pods/" +
                     percent_encode(request.pod) +
                     "/exec?container=" + percent_encode(request.container) +
                     "&stdin=true&stdout=true&stderr=true";
  for (const std::string& word : request.command) path += "&command=" + percent_encode(word);
  const std::string key = web_socket_key();
  std::optional<base::Result<int>> end;
  const base::Status status = upgrader.upgrade(
      {.path = path, .accept = "*/*"},
      {{"Connection", "Upgrade"},
       {"Upgrade", "websocket"},
       {"Sec-WebSocket-Version", "13"},
       {"Sec-WebSocket-Key", key},
       {"Sec-WebSocket-Protocol", kProtocol}},
      [&](const Response& head, Duplex& connection) {
        const auto header = [&](const char* field) {
          const auto found = head.headers.find(field);
          return found == head.headers.end() ? std::string{} : found->second;
        };
        if (header("sec-websocket-accept") != web_socket_accept(key) ||
            header("sec-websocket-protocol") != kProtocol) {
          end = base::Error{base::Code::kInvalidArgument,
                            std::string{"the API server does not speak "} + kProtocol +
                                ", which it has since Kubernetes 1.30"};
          return;
        }
        end = Conversation{connection, caller, request}.run();
      });
  if (end && end->ok()) return *end;
  const base::Error error = end ? end->error() : status.error();
  if (error.code == base::Code::kPermissionDenied) {
    return base::Error{error.code,
                       "pod " + name + ": " + error.message +
                           " (the right to \"create\" and \"get\" pods/exec is needed)"};
  }
  return error.with_context("pod " + name);
}

}  // namespace kube
