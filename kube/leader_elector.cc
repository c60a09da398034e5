#include "kube/leader_elector.h"

#include <algorithm>

#include "base/check.h"

// How the election works:
//
// 1. A candidate reads the Lease every retry_period. It takes a Lease that is missing, that has no
//    holder, or that did not change for the duration that is written in it.
// 2. Taking is an update under the resourceVersion that was read. The server accepts one of several
//    candidates; the rest get 409, which counts as a failed try.
// 3. The leader renews in the same way. If no renewal succeeds within renew_deadline, it stops
//    being leader by itself: renew_deadline < lease_duration, and the candidates wait the whole
//    lease_duration after the last change that they saw.
// 4. A process that is not fit (may_hold) neither takes nor renews.
// 5. A leader loses at once when the Lease names another holder, is gone, or shows an older state
//    than its own last renewal.
// All waiting is on the monotonic clock of the process that waits; the times in the Lease are for
// people and for telling one renewal from another.
namespace kube {
namespace {

// The formula below would leave almost no time if renew_deadline is short.
constexpr base::Duration kCallTimeoutMin = std::chrono::milliseconds{500};

}  // namespace

LeaderElector::LeaderElector(Client client, const Clock& clock, LeaderElectionOptions options,
                             Callbacks callbacks)
    : client_{std::move(client)},
      clock_{clock},
      options_{std::move(options)},
      callbacks_{std::move(callbacks)},
      prng_{options_.seed} {
  CHECK(options_.lease_duration > options_.renew_deadline);
  CHECK(options_.renew_deadline > options_.retry_period);
  CHECK(!options_.identity.empty());
  // One try per step, and time for at least two steps within the deadline: with the usual 10 s and
  // 2 s a call may take 5 s. No retries of the Client: its back-off knows nothing of the deadline.
  const base::Duration timeout =
      std::max(options_.renew_deadline - options_.retry_period * 2, kCallTimeoutMin);
  client_ = client_.with({.timeout = std::min(timeout, options_.renew_deadline / 2),
                          .attempts_max = 1,
                          .backoff = {}});
}

// A leader that could not renew in time gives up by itself, before others may take over: the
// deadline is shorter than the Lease. It does so, too, if the renewal came a moment later all the
// same: from the deadline on is_leader() was false, and who asked then has left things undone.
base::Duration LeaderElector::step() {
  if (leading_) {
    const base::Duration deadline = renew_by();
    const bool is_fit = !callbacks_.may_hold || callbacks_.may_hold({});
    const bool renewed = clock_.monotonic() < deadline &&
                         (!is_fit || try_acquire_or_renew() != Outcome::kHeldByOther);
    if (!renewed || clock_.monotonic() >= deadline) lose();
  } else {
    try_acquire_or_renew();
  }
  if (leading_) return options_.retry_period;
  // Candidates spread, as client-go's JitterFactor 1.2 does.
  const auto jitter = static_cast<std::uint64_t>(options_.retry_period.count()) * 6 / 5;
  return options_.retry_period + base::Duration{static_cast<std::int64_t>(prng_.below(jitter + 1))};
}

// Two atomics without a lock: the writer stores the time first and `leading_` after it, so a reader
// that sees a new leader with an old time errs on the side of false.
bool LeaderElector::is_leader() const { return leading_ && clock_.monotonic() < renew_by(); }

base::Duration LeaderElector::renew_by() const {
  return base::Duration{renewed_at_micros_.load()} + options_.renew_deadline;
}

// Judges another leader by this process's clock, from when it last saw the Lease change, never by
// the times in the Lease, as client-go does. So the clocks of two machines need not agree.
LeaderElector::Outcome LeaderElector::try_acquire_or_renew() {
  const base::Instant now = clock_.wall();
  const auto lease = client_.get<Lease>(options_.lease);
  if (!lease.ok() && lease.error().code == base::Code::kNotFound) return create(now);
  if (!lease.ok()) return failed(lease.error());
  const bool mine = lease->spec.holder_identity == options_.identity;
  // Asked before observe() forgets what was seen last. A Lease in our name that is older than our
  // last renewal comes from a backup that was restored: other state of the cluster went back as
  // well, and a leader that goes on would write from a memory that is no longer true.
  const bool set_back = leading_ && mine && is_set_back(*lease);
  observe(*lease);
  if (set_back) {
    clear();  // otherwise the next leader would wait until it expires
    return Outcome::kHeldByOther;
  }
  // A Lease without a holder was released and may be taken at once.
  if (lease->spec.holder_identity && !mine && observed_is_valid()) {
    free_since_.reset();
    return Outcome::kHeldByOther;
  }
  // A leader that finds its Lease expired and taken away may not fight for it.
  if (leading_ && !mine) return Outcome::kHeldByOther;
  if (!leading_ && !may_take()) return Outcome::kHeldByOther;
  return take(*lease, now);
}

bool LeaderElector::may_take() {
  const base::Duration now = clock_.monotonic();
  if (!free_since_) free_since_ = now;
  return !callbacks_.may_hold || callbacks_.may_hold(now - *free_since_);
}

// Creates the Lease of the first leader ever, or the first after the Lease was deleted. Its
// transitions begin at 0; the API server lets only one of several creates succeed.
LeaderElector::Outcome LeaderElector::create(base::Instant now) {
  // A leader whose Lease is gone does not make a new one: others may have led meanwhile, and the
  // transitions that fence old leaders' writes would begin at 0 again.
  if (leading_ || !may_take()) return Outcome::kHeldByOther;
  Lease lease;
  lease.metadata.name = options_.lease.name;
  lease.metadata.ns = options_.lease.ns;
  lease.spec = spec_for(now, 0);
  const base::Duration sent_at = clock_.monotonic();
  const auto created = client_.create(lease);
  if (!created.ok()) return failed(created.error());
  renewed_at_micros_ = sent_at.count();
  leading_ = true;
  observe(*created);
  if (callbacks_.on_started) callbacks_.on_started(0);
  return Outcome::kHeld;
}

// The deadline counts from before the request was sent: the server may have stored it then, and the
// answer may have taken long.
LeaderElector::Outcome LeaderElector::take(const Lease& lease, base::Instant now) {
  Lease wanted = lease;
  const std::int32_t transitions = lease.spec.lease_transitions.value_or(0);
  const bool renewal = leading_;
  // Each change of hands counts one transition: the operator derives its terms from this number.
  wanted.spec = spec_for(now, renewal ? transitions : transitions + 1);
  if (renewal) wanted.spec.acquire_time = lease.spec.acquire_time;
  const base::Duration sent_at = clock_.monotonic();
  // Noted before the call: if its answer is lost, the next look finds a Lease that we do not
  // remember, and must know it for our own renewal. Only a leader asks for that, and it gives up
  // after a few renewals that fail; a candidate may try forever.
  if (renewal) unanswered_.push_back(now);
  // The resourceVersion in `wanted` lets only one of several candidates win.
  const auto updated = client_.update(wanted);
  if (!updated.ok()) return failed(updated.error());
  renewed_at_micros_ = sent_at.count();
  leading_ = true;
  observe(*updated);
  if (!renewal && callbacks_.on_started) callbacks_.on_started(*wanted.spec.lease_transitions);
  return Outcome::kHeld;
}

// Notes when the Lease was last seen to change, which is the only sign of a living holder, and
// reports a new holder once.
void LeaderElector::observe(const Lease& lease) {
  // The time of our clock at which the Lease was last seen to change is all that counts; labels and
  // the like do not show that the leader lives.
  if (!observed_ || observed_->spec != lease.spec ||
      observed_->metadata.uid != lease.metadata.uid) {
    observed_ = lease;
    unanswered_.clear();
    observed_at_ = clock_.monotonic();
  }
  const std::string leader = lease.spec.holder_identity.value_or("");
  if (leader == reported_leader_ || leader.empty()) return;
  reported_leader_ = leader;
  if (callbacks_.on_new_leader) callbacks_.on_new_leader(leader);
}

// Compares before observe() takes the new state over.
bool LeaderElector::is_set_back(const Lease& lease) const {
  // Stored is what was seen last, or a renewal whose answer was lost. Anything else in our name is
  // from before.
  if (observed_ && observed_->spec == lease.spec) return false;
  return std::none_of(unanswered_.begin(), unanswered_.end(),
                      [&](base::Instant at) { return lease.spec.renew_time == at; });
}

// Counts from when this process saw the last change, which is never before the holder made it: the
// holder may get more time than its Lease says, never less.
bool LeaderElector::observed_is_valid() const {
  const base::Duration written = std::chrono::seconds{
      observed_->spec.lease_duration_seconds.value_or(static_cast<std::int32_t>(
          std::chrono::floor<std::chrono::seconds>(options_.lease_duration).count()))};
  return clock_.monotonic() < observed_at_ + written;
}

LeaderElector::Outcome LeaderElector::failed(const base::Error& error) {
  if (callbacks_.on_error) callbacks_.on_error(error);
  return Outcome::kFailed;
}

LeaseSpec LeaderElector::spec_for(base::Instant now, std::int32_t transitions) const {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(options_.lease_duration).count();
  return {.holder_identity = options_.identity,
          // The server refuses a duration of 0.
          .lease_duration_seconds = static_cast<std::int32_t>(std::max<std::int64_t>(seconds, 1)),
          .acquire_time = now,
          .renew_time = now,
          .lease_transitions = transitions};
}

void LeaderElector::lose() {
  leading_ = false;
  if (callbacks_.on_lost) callbacks_.on_lost();
}

void LeaderElector::release() {
  // A leader whose deadline has passed must not write: another may hold the Lease by now.
  if (!is_leader() || !observed_) return;
  leading_ = false;
  clear();
}

// Under the version that was observed: if anything was written since, the server refuses, and the
// next leader waits for the expiry instead. Nothing else depends on this write.
void LeaderElector::clear() {
  Lease released = *observed_;
  const base::Instant now = clock_.wall();
  // Releases it as client-go does: no holder, and a second of duration.
  released.spec.holder_identity.reset();
  released.spec.lease_duration_seconds = 1;
  released.spec.renew_time = now;
  released.spec.acquire_time = now;
  const auto updated = client_.update(released);
  if (!updated.ok()) (void)failed(updated.error());
}

}  // namespace kube
