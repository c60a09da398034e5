#include "scheduler/backfill/end_batches.h"

#include <chrono>

namespace sched {
namespace {

constexpr base::Duration kFirstWindow = std::chrono::seconds{30};

// Returns the end of the half minute of Slurm's clock in which a job ends; the middle of the half
// minute after its end if nothing says what the clock showed.
base::Instant half_minute_after(const ClusterParameters& parameters, base::Instant end) {
  if (!parameters.recorded_clock) return end + kFirstWindow / 2;
  const base::Instant on_clock = end + *parameters.recorded_clock;
  return base::slot_begin(base::slot_of(on_clock, kFirstWindow) + 1, kFirstWindow) -
         *parameters.recorded_clock;
}

}  // namespace

// A question to the selector at every end would cost as many questions as jobs end; one at fixed
// steps, as many as the day has steps. Windows that double ask rarely where ends are far away: n
// windows cover 30 s × (2^n − 1), so 12 of them cover a day. Unless as recorded, the general search
// then looks for the exact end within the last batch alone.
EndBatches::EndBatches(const Cluster& cluster, const Ends& ends, const NodeSet& nodes,
                       const Victims* victims, std::size_t from)
    : cluster_{cluster},
      ends_{ends},
      nodes_{nodes},
      victims_{victims},
      from_{from},
      window_{kFirstWindow} {}

// Returns until when a batch reaches whose first end is this.
base::Instant EndBatches::window_end(base::Instant first) {
  if (!cluster_.parameters().quirks.ends_come_in_batches) return first + window_;
  if (!windows_begin_) windows_begin_ = half_minute_after(cluster_.parameters(), first);
  return *windows_begin_ + window_;
}

// `bf_window_linear` adds the same to each window instead of doubling it. With Slurm's windows the
// next one reaches at least as far as its first job.
void EndBatches::widen(base::Instant next) {
  const base::Duration step = cluster_.parameters().backfill.window_linear;
  window_ = step.count() > 0 ? window_ + step : window_ * 2;
  if (!cluster_.parameters().quirks.ends_come_in_batches) return;
  const base::Duration missing = next - (*windows_begin_ + window_);
  if (missing.count() <= 0) return;
  if (step.count() > 0) {
    window_ += (missing + step - base::Duration{1}) / step * step;
  } else {
    while (next > *windows_begin_ + window_) window_ *= 2;
  }
}

}  // namespace sched
