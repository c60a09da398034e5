#include "kube/pod_exec.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
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

// The end of the program, as the server tells it.
// SOURCE: a Status; of a program that has ended by itself, a cause "ExitCode".
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
  Conversation(Duplex& connection, ExecCaller& caller, std::chrono::milliseconds idle_after)
      : connection_{connection},
        caller_{caller},
        idle_after_{idle_after},
        socket_{
            WebSocket::Side::kClient,
            {.read = [this](char* out, std::size_t size) { return connection_.read(out, size); },
             .write = [this](std::string_view bytes) { return connection_.write(bytes); },
             .message = [this](std::string_view message) { hear(message); }}} {}

  base::Result<int> run() {
    pending_ = caller_.first();
    bool is_open = true;
    while (is_open && !status_ && !caller_.gives_up()) is_open = wait();
    if (status_) {
      socket_.close();
      return *status_;
    }
    if (caller_.gives_up()) return base::Error{base::Code::kCancelled, "exec: given up"};
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
    std::vector<pollfd> ready;
    for (const int fd : caller_.descriptors(pending_.size() < kInputBytesMax)) {
      ready.push_back({fd, POLLIN, 0});
    }
    if (pending_.empty() && Clock::now() - sent_at_ >= idle_after_) {
      pending_ += caller_.idle();
      sent_at_ = Clock::now();
    }
    const bool writes = !pending_.empty();
    ready.push_back(
        {connection_.descriptor(), static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN), 0});
    const bool has_more = connection_.has_more();
    const auto patience = has_more ? std::chrono::milliseconds{0} : std::min(kLook, idle_after_);
    const int count = ::poll(ready.data(), ready.size(), static_cast<int>(patience.count()));
    if (count < 0 && errno != EINTR) return false;
    const pollfd connection = ready.back();
    ready.pop_back();
    for (const pollfd& one : ready) {
      if (one.revents != 0) pending_ += caller_.ready(one.fd);
    }
    if ((connection.revents & POLLOUT) != 0) {
      const std::string piece = pending_.substr(0, kPieceBytesMax);
      pending_.erase(0, piece.size());
      if (!socket_.send(std::string(1, kInputChannel) + piece)) return false;
      sent_at_ = Clock::now();
    }
    if (has_more || (connection.revents & ~POLLOUT) != 0) return socket_.receive();
    return true;
  }

  Duplex& connection_;
  ExecCaller& caller_;
  const std::chrono::milliseconds idle_after_;
  WebSocket socket_;
  std::string pending_;
  Clock::time_point sent_at_ = Clock::now();
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
        end = Conversation{connection, caller, request.idle_after}.run();
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
