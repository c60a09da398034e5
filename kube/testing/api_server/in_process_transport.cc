#include "kube/testing/api_server/in_process_transport.h"

#include <algorithm>
#include <utility>

#include "kube/api_error.h"
#include "kube/line_splitter.h"

namespace devcluster {
namespace {

// A read that finds nothing returns after this, so that the time-out is looked at.
constexpr base::Duration kReadWait = std::chrono::seconds{1};

base::Error reset_error() {
  return {base::Code::kUnavailable, "connection reset by the API server"};
}

base::Error timeout_error() {
  return {base::Code::kTimeout, "no answer of the API server in time"};
}

}  // namespace

// Injected delays and resets happen here in place of the network. A delay that is shorter than the
// time-out is not waited for.
base::Result<ApiAnswer> InProcessTransport::answer(const kube::Request& request) {
  ApiRequest api;
  api.http = request;
  api.user_agent = user_agent_;
  ApiAnswer answer = server_.handle(api);
  if (answer.reset) return reset_error();
  if (answer.delay >= request.timeout) return timeout_error();
  return answer;
}

// An answer with a stream (a log that is followed) is collected to its end.
base::Result<kube::Response> InProcessTransport::send(const kube::Request& request) {
  auto got = answer(request);
  if (!got.ok()) return got.error();
  if (!got->stream) return std::move(got->response);
  // The machine's clock: a test's clock may stand still, and this loop would never end.
  const auto give_up = std::chrono::steady_clock::now() + request.timeout;
  while (std::chrono::steady_clock::now() < give_up) {
    const StreamState state = got->stream->read(got->response.body, kReadWait);
    if (state == StreamState::kReset) return reset_error();
    if (state == StreamState::kEnd) return std::move(got->response);
  }
  return timeout_error();
}

// The same promises as HttpTransport's: `stop` ends it at once, silence of request.timeout is
// kTimeout, a broken stream is kUnavailable.
base::Status InProcessTransport::stream(const kube::Request& request,
                                        const std::function<bool(std::string_view)>& on_line,
                                        std::stop_token stop) {
  auto got = answer(request);
  if (!got.ok()) return got.error();
  if (got->response.status != 200) return kube::error_from_response(got->response, request.path);
  kube::LineSplitter lines{kube::kWatchLineBytesMax};
  using Outcome = kube::LineSplitter::Outcome;
  if (!got->stream) {
    lines.feed(got->response.body, on_line);
    return {};
  }
  const std::shared_ptr<BodyStream> body = got->stream;
  // cancel() wakes a read() that waits, so a stop takes effect at once.
  const std::stop_callback cancel{stop, [&] { body->cancel(); }};
  auto last_data = std::chrono::steady_clock::now();
  while (true) {
    std::string data;
    const auto left = std::chrono::duration_cast<base::Duration>(
        request.timeout - (std::chrono::steady_clock::now() - last_data));
    const StreamState state = body->read(data, std::clamp(left, base::Duration{0}, kReadWait));
    if (stop.stop_requested()) return base::Error{base::Code::kCancelled, "watch stopped"};
    if (!data.empty()) last_data = std::chrono::steady_clock::now();
    switch (lines.feed(data, on_line)) {
      case Outcome::kMore:
        break;
      case Outcome::kStopped:
        return {};
      case Outcome::kTooLong:
        return base::Error{base::Code::kTooLarge, "a line of the watch is too long"};
    }
    if (state == StreamState::kEnd) return {};
    if (state == StreamState::kReset) return reset_error();
    if (std::chrono::steady_clock::now() - last_data >= request.timeout) return timeout_error();
  }
}

}  // namespace devcluster
