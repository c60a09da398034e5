// The state that copies of a Client share: limits, retries, the stop. Internal to kube/.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>

#include "kube/client.h"

namespace kube {

class Client::Core {
 public:
  Core(Transport& transport, const Clock& clock, Sleeper& sleeper, ClientOptions options)
      : transport_{transport},
        sleeper_{sleeper},
        options_{std::move(options)},
        limiter_{clock, options_.rate},
        seeds_{options_.seed} {}

  // Sends until it works or may not be tried again. An answer >= 400 is an Error.
  base::Result<Response> call(const Request& request, const CallOptions& call);

  Transport& transport() { return transport_; }
  const ClientOptions& options() const { return options_; }
  void request_stop();

 private:
  base::Status take_slot();
  void give_slot_back();
  std::uint64_t next_seed();

  Transport& transport_;
  Sleeper& sleeper_;
  const ClientOptions options_;
  RateLimiter limiter_;
  std::stop_source stop_;

  std::mutex mu_;
  std::condition_variable_any slot_free_;
  std::int32_t in_flight_ = 0;  // guarded by mu_
  base::Prng seeds_;            // guarded by mu_
};

}  // namespace kube
