// Leader election on a Lease, with client-go's semantics. The holder renews the Lease every
// retry_period. Another process may take it if the Lease has not changed for the duration that is
// written in it, measured on that process's own monotonic clock, so clocks of machines need not
// agree.
// SOURCE: k8s.io/client-go tools/leaderelection.
//
// Beyond client-go: who may hold it is asked before it is taken or renewed (may_hold), and a leader
// that finds an older state of its own Lease loses it. The API server's store was set back (etcd
// was restored), and what the process knows is not what is stored.
//
// It does not promise that no other process acts: a leader that was paused finds out late. So
// writes must carry a term (architecture.md 3).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kube/api/lease.h"
#include "kube/client.h"

namespace kube {

struct LeaderElectionOptions {
  ObjectKey lease{};
  std::string identity{};                                    // unique per process, not per machine
  base::Duration lease_duration = std::chrono::seconds{15};  // whole seconds
  base::Duration renew_deadline = std::chrono::seconds{10};  // < lease_duration
  base::Duration retry_period = std::chrono::seconds{2};     // < renew_deadline
  std::uint64_t seed = 1;
};

// step() and release() belong to one thread; is_leader() may be called from any.
class LeaderElector {
 public:
  // Called from within step(), each may be absent.
  struct Callbacks {
    // leaseTransitions of the Lease, with this election counted.
    std::function<void(std::int32_t transitions)> on_started{};
    // The Lease could not be renewed in time, was set back, or another process has it. The process
    // should exit: finishing what it has decided since is not safe.
    std::function<void()> on_lost{};
    // Returns true if this process is fit to lead; called before the Lease is taken, with for how
    // long it has been free as far as this process saw, and before it is renewed, with zero. A
    // leader that is not fit loses it at the renew deadline, so that others may take it.
    std::function<bool(base::Duration free_for)> may_hold{};
    // A new holder was seen, perhaps this process.
    std::function<void(const std::string& identity)> on_new_leader{};
    // A try failed; for logs.
    std::function<void(const base::Error&)> on_error{};
  };

  // Give it a Client of its own, so that no other request's rate limit delays a renewal.
  LeaderElector(Client client, const Clock& clock, LeaderElectionOptions options,
                Callbacks callbacks);

  // Makes one try to acquire or to renew. Returns how long to wait until the next step.
  base::Duration step();

  // Holds the Lease, renewed less than renew_deadline ago: also false in a thread that looks after
  // a pause, before step() has noticed. Once false, it stays so, and on_lost follows.
  bool is_leader() const;

  // Gives the Lease up, so that the next leader need not wait. No effect if not leading.
  void release();

 private:
  enum class Outcome { kHeld, kHeldByOther, kFailed };

  Outcome try_acquire_or_renew();
  Outcome create(base::Instant now);
  Outcome take(const Lease& lease, base::Instant now);
  void observe(const Lease& lease);
  // Returns true if `lease`, which this process holds, is not the one that it wrote last.
  bool is_set_back(const Lease& lease) const;
  bool observed_is_valid() const;
  Outcome failed(const base::Error& error);
  // Notes that the Lease is free to take. Returns true if this process may.
  bool may_take();
  LeaseSpec spec_for(base::Instant now, std::int32_t transitions) const;
  base::Duration renew_by() const;  // by the monotonic clock
  void lose();
  void clear();  // writes that the Lease as observed is free

  Client client_;
  const Clock& clock_;
  const LeaderElectionOptions options_;
  const Callbacks callbacks_;
  base::Prng prng_;

  std::optional<Lease> observed_;
  base::Duration observed_at_{};
  // The renewTime of each renewal that may be stored although no answer said so.
  std::vector<base::Instant> unanswered_;
  std::string reported_leader_;
  std::optional<base::Duration> free_since_;  // of a Lease without a holder
  std::atomic<bool> leading_{false};
  std::atomic<std::int64_t> renewed_at_micros_{0};
};

}  // namespace kube
