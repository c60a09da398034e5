// ClockWatch: what API servers say of this machine's wall clock. Each of their answers has the time
// in its header Date, to a second.
//
// An address says that the clock is off when its answers of at least kOffFor, three or more in a
// row, differ from it by more than kOffMax. The clock is off when the majority of the addresses
// that have answered lately say so: one API server whose own clock is wrong is not enough where
// there are three. Behind a load balancer, or a Service, all of them are one address.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "kube/clock.h"
#include "kube/transport.h"

namespace kube {

// Thread-safe.
class ClockWatch {
 public:
  static constexpr base::Duration kOffMax = std::chrono::seconds{30};
  static constexpr base::Duration kOffFor = std::chrono::seconds{10};
  static constexpr int kOffAnswersMin = 3;
  static constexpr base::Duration kLately = std::chrono::minutes{5};

  explicit ClockWatch(const Clock& clock) : clock_{clock} {}

  // Notes that the API server at `address` said `date` in an answer that has just arrived, and that
  // the request before it took `took`.
  void saw(const std::string& address, base::Instant date, base::Duration took);

  // Returns by how much the wall clock is ahead (negative: behind); nullopt if it is right.
  std::optional<base::Duration> off() const;
  // Returns true if the newest answers of the majority of the addresses differ, though it may not
  // be for long: who begins something by this clock waits.
  bool is_in_doubt() const;

 private:
  struct Address {
    base::Duration ahead{};  // as of the newest answer; 0 = within what it can tell
    int answers_count = 0;   // in a row that say the same: off, or not off
    base::Duration since{};  // of the first of these
    base::Duration last{};   // of the newest
  };

  // Returns the answer of the majority of the addresses, if they say that it is off.
  template <typename Says>
  std::optional<base::Duration> majority(Says says) const;

  const Clock& clock_;
  mutable std::mutex mu_;
  std::map<std::string, Address> addresses_;  // guarded by mu_
};

// Parses "Sat, 28 Nov 2026 15:02:20 GMT", the only form that servers send (RFC 9110, 5.6.7);
// nullopt if it is not one.
std::optional<base::Instant> parse_http_date(std::string_view text);
std::string http_date(base::Instant at);

// Shows the answers that pass through to a ClockWatch.
class ClockWatchTransport final : public Transport {
 public:
  // All must live longer than this.
  ClockWatchTransport(Transport& inner, const Clock& clock, ClockWatch& watch)
      : inner_{inner}, clock_{clock}, watch_{watch} {}

  base::Result<Response> send(const Request& request) override;
  base::Status stream(const Request& request, const std::function<bool(std::string_view)>& on_line,
                      std::stop_token stop) override {
    return inner_.stream(request, on_line, std::move(stop));
  }

 private:
  Transport& inner_;
  const Clock& clock_;
  ClockWatch& watch_;
};

}  // namespace kube
