// The one seam between our code and an API server: a request goes out, an answer or a stream of
// lines comes back. Implementations: HTTPS (kube/http_transport.h), the in-memory API server
// without a network (kube/testing/api_server), and wrappers in tests that change one answer.
#pragma once

#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace kube {

enum class Method { kGet, kPost, kPut, kPatch, kDelete };

struct Request {
  Method method = Method::kGet;
  std::string path{};  // absolute, percent-encoded, with the query: "/api/v1/pods?limit=500"
  std::string body{};  // JSON, or empty
  std::string content_type = "application/json";  // a patch names its own kind
  std::string accept = "application/json";
  base::Duration timeout =
      std::chrono::seconds{30};  // of the whole call; of a stream: see stream()
  // Lines of a stream that follow an arrival within this time may be read together with it, which
  // saves a wake-up for each line of a busy stream. No line comes later by more than that, and none
  // that follows a longer silence comes later at all.
  base::Duration gather{};
};

struct Response {
  int status = 0;                                // HTTP status
  std::map<std::string, std::string> headers{};  // names in lower case
  std::string body{};
  std::string address{};  // of what answered: an API server, or a proxy or load balancer before it
};

// Thread-safe: any number of calls at the same time.
class Transport {
 public:
  virtual ~Transport() = default;

  // Any answer of the server, also 4xx and 5xx, is a Response; an Error means that there was none
  // (kUnavailable: refused, reset; kTimeout; kInvalidArgument: our own request is malformed;
  // kUnauthenticated: TLS handshake refused, certificate expired or unknown).
  virtual base::Result<Response> send(const Request& request) = 0;

  // Calls on_line for each line (without its newline, at most kWatchLineBytesMax) as it arrives, on
  // the calling thread. Returns when the server ends the stream (ok), on_line returns false (ok),
  // `stop` is requested (kCancelled, at once), nothing arrived for request.timeout (kTimeout) or
  // the connection breaks (kUnavailable). A status other than 200 is returned as the Error that
  // kube::error_from_response makes of it, for a 429 after its Retry-After; on_line is not called
  // then.
  virtual base::Status stream(const Request& request,
                              const std::function<bool(std::string_view)>& on_line,
                              std::stop_token stop) = 0;
};

inline constexpr std::size_t kWatchLineBytesMax = 8U << 20U;

}  // namespace kube
