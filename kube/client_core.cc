#include "kube/client_core.h"

#include "kube/api_error.h"

namespace kube {
namespace {

// Returns true if the same request may be sent again. `http_status` is 0 if there was no answer.
bool may_retry(Method method, base::Code code, int http_status) {
  // 429: the server refused before it did anything.
  if (http_status == 429) return true;
  // Without an answer it is unknown whether the object was made, and a second POST could make
  // another.
  if (method == Method::kPost) return false;
  // Reads, and writes that name their object: repeating them ends in the same state, or in a
  // conflict that the caller handles anyway.
  return code == base::Code::kUnavailable || code == base::Code::kTimeout;
}

}  // namespace

// 1. take a turn in the rate limit and a slot among the requests in flight
// 2. send, give the slot back
// 3. done, if the server said yes, or if its no (or its silence) is final for this method
// 4. wait as long as the server says (Retry-After), else with back-off and jitter, and begin again
base::Result<Response> Client::Core::call(const Request& request, const CallOptions& call) {
  Backoff backoff{call.backoff, next_seed()};
  for (int attempt = 1;; ++attempt) {
    // Each try takes its own turn in the rate limit: retries are requests like any other to the
    // server.
    if (auto slot = take_slot(); !slot.ok()) return slot.error();
    auto answer = transport_.send(request);
    give_slot_back();
    if (answer.ok() && answer->status < 400) return answer;
    const base::Error error =
        answer.ok() ? error_from_response(*answer, request.path) : answer.error();
    const int http_status = answer.ok() ? answer->status : 0;
    if (attempt >= call.attempts_max || !may_retry(request.method, error.code, http_status)) {
      return error;
    }
    // The slot was given back: a request that waits for its next try keeps no other from being
    // sent.
    base::Duration delay = backoff.next();
    if (answer.ok()) delay = retry_after(*answer).value_or(delay);
    if (auto slept = sleeper_.sleep(delay, stop_.get_token()); !slept.ok()) return slept.error();
  }
}

base::Status Client::Core::take_slot() {
  const std::stop_token stop = stop_.get_token();
  const base::Error cancelled{base::Code::kCancelled, "the client has been stopped"};
  if (stop.stop_requested()) return cancelled;
  // First the rate, then a slot: a request whose turn has not come yet holds none.
  if (const base::Duration wait = limiter_.reserve(); wait > base::Duration{}) {
    // The turn is taken even if the sleep is broken off: the process is ending then.
    if (auto slept = sleeper_.sleep(wait, stop); !slept.ok()) return slept.error();
  }
  std::unique_lock lock{mu_};
  const bool free =
      slot_free_.wait(lock, stop, [&] { return in_flight_ < options_.in_flight_max; });
  if (!free) return cancelled;
  ++in_flight_;
  return {};
}

void Client::Core::give_slot_back() {
  {
    const std::lock_guard lock{mu_};
    --in_flight_;
  }
  slot_free_.notify_one();
}

// Each call gets a back-off of its own, and each of those its own seed: calls that failed together
// come back apart.
std::uint64_t Client::Core::next_seed() {
  const std::lock_guard lock{mu_};
  return seeds_.next();
}

void Client::Core::request_stop() {
  stop_.request_stop();
}

}  // namespace kube
