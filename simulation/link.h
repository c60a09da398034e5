// The network between one process and the API server: what kube::Transport is in production. Calls
// take no virtual time; watches deliver when the link says so. The faults of the network and of the
// API server are here, so that each process can have its own.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "kube/client.h"
#include "kube/sleeper.h"
#include "kube/testing/api_server/api_server.h"
#include "kube/transport.h"
#include "simulation/breaks.h"
#include "simulation/clock.h"
#include "simulation/tally.h"

namespace simulation {

// The faults of a link, each with the true time until which it lasts. Several may hold at once.
struct Weather {
  Time partitioned_until{0};
  Time bad_until{0};  // some requests are refused, or their answers are lost
  std::uint64_t bad_per_mille = 0;
  Time delayed_until{0};  // what watches bring comes late
  Time delay_max{0};
  Time duplicated_until{0};  // watches say things twice
  Time proxy_until{0};       // some requests are answered by something between, as often
  Time stale_until{0};       // NodeTimetables are listed from a cache that stands still
  int breaks_off = 0;        // deliveries that end in the middle
  Time broke_off_at{0};      // the last of them did
};

// The transport of one process. REQUIRES: one thread, and add_feed()'s steps call back into
// stream() and send() of this link only (the feed that is being stepped is a member).
class Link final : public kube::Transport {
 public:
  Link(devcluster::ApiServer& server, const Time& now, const Breaks& breaks, Tally& tally,
       std::string name, std::uint64_t seed);

  base::Result<kube::Response> send(const kube::Request& request) override;
  base::Status stream(const kube::Request& request,
                      const std::function<bool(std::string_view)>& on_line,
                      std::stop_token stop) override;

  // Informers: stepped by the link when there is something to list or to read.
  void add_feed(std::function<base::Duration()> step);
  void drop_feeds() { feeds_.clear(); }
  // Something was written: what the watches have of it is on its way.
  void look();
  Time next_feed() const;
  // Steps those that are due; returns whether there was any.
  bool run_feeds();

  // Until then NodeTimetables are listed and watched at `cache`: an API server that is cut off from
  // its etcd, and that a load balancer still sends watches to. Reads of one object and writes go on
  // to the other servers. The watch ends with 410 at the beginning and at the end.
  void read_timetables_from(std::shared_ptr<devcluster::ApiServer> cache, Time until);
  // Writes are checked and answered, but not stored: the breaks' means.
  void set_dry_run(bool on) { dry_run_ = on; }

  // Everything that was written and that this process watches has arrived.
  bool is_up_to_date() const;
  // It can be reached, and for `time` now has been.
  bool was_whole_for(Time time) const { return now_ >= last_trouble() + time; }
  // A watch broke off since the last call.
  bool take_broke_off() { return std::exchange(broke_off_, false); }
  bool is_partitioned() const { return now_ < weather.partitioned_until; }

  Weather weather;

 private:
  struct Feed {
    std::function<base::Duration()> step;
    Time due{0};
    std::shared_ptr<devcluster::BodyStream> stream;
    std::deque<std::string> lines;  // arrived, not delivered
    bool ended = false;
    std::string path;        // of its list
    Time gone_at = kNoTime;  // its watch ends with 410
  };

  Time last_trouble() const;
  void pull(Feed& feed);
  void run(Feed& feed);
  base::Status deliver(Feed& feed, const std::function<bool(std::string_view)>& on_line);
  static std::string with_twice_the_devices(std::string text);
  bool is_lost_news(const Feed& feed, const std::string& line);
  base::Result<kube::Response> transmit(kube::Request request);
  devcluster::ApiServer& server_of(const std::string& path);
  base::Result<kube::Response> go_wrong(const kube::Request& request);
  kube::Response answer_of_proxy();
  bool lowers_term(const kube::Request& request);
  std::string as_seen(std::string text);
  std::string still_cordoned(std::string text);
  void say_again(const kube::Request& request);

  devcluster::ApiServer& server_;
  const Time& now_;
  const Breaks& breaks_;
  Tally& tally_;
  const std::string name_;
  base::Prng prng_;
  std::deque<Feed> feeds_;
  Feed* feed_ = nullptr;  // being stepped
  std::shared_ptr<devcluster::ApiServer> stale_;
  bool dry_run_ = false;
  std::set<std::string> cordoned_;     // Break::kUncordonNotSeen: nodes
  std::optional<kube::Request> said_;  // Break::kSaidAgain: the last status
  bool broke_off_ = false;
};

// Waits that are inside a call of the client library are skipped.
class NoSleep final : public kube::Sleeper {
 public:
  base::Status sleep(base::Duration, std::stop_token) override { return {}; }
};

// Returns the options of a process that talks over a link: no limit of the rate, since calls take
// no time.
inline kube::ClientOptions client_options(int attempts_max) {
  return {.rate = {.per_second = 1'000'000, .burst = 1'000'000},
          .call = {.attempts_max = attempts_max}};
}

// Returns the Lease by which the operator's replicas elect their leader.
inline kube::ObjectKey operator_lease() {
  return {"kubegang-system", "kubegang-operator"};
}

}  // namespace simulation
