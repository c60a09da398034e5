#include "scheduler/backfill/end_batches.h"

#include <chrono>
#include <vector>

#include "scheduler/model/allocation_nodes.h"

namespace sched {
namespace {

// Returns the end of the half minute of Slurm's clock in which a job ends; the middle of the half
// minute after its end if nothing says what the clock showed.
base::Instant half_minute_after(const ClusterParameters& parameters, base::Instant end) {
  constexpr base::Duration kHalfMinute = std::chrono::seconds{30};
  if (!parameters.recorded_clock) return end + kHalfMinute / 2;
  const base::Instant on_clock = end + *parameters.recorded_clock;
  return base::slot_begin(base::slot_of(on_clock, kHalfMinute) + 1, kHalfMinute) -
         *parameters.recorded_clock;
}

}  // namespace

std::optional<std::size_t> EndBatches::next() {
  const ClusterParameters& parameters = cluster_.parameters();
  const bool single =
      !parameters.quirks.ends_come_in_batches || parameters.select == SelectType::kLinear;
  const std::vector<Ends::End>& ends = ends_.all();
  std::optional<base::Instant> limit;
  std::size_t i = from_;
  for (bool follows = false; i < ends.size(); ++i) {
    if (victims_ != nullptr && victims_->contains(i)) continue;
    if (follows && ends[i].at > *limit) break;
    follows = has_node_in(cluster_, ends[i].job->allocation, nodes_);
    if (!follows) continue;
    from_ = i + 1;
    if (single) return from_;
    if (!windows_begin_) windows_begin_ = half_minute_after(parameters, ends[i].at);
    limit = *windows_begin_ + window_;
  }
  if (!limit) return std::nullopt;
  widen(i < ends.size() ? ends[i].at : *limit);
  return from_;
}

// `bf_window_linear` adds the same to each window instead of doubling it. The next window reaches
// at least as far as its first job.
void EndBatches::widen(base::Instant next) {
  const base::Duration step = cluster_.parameters().backfill.window_linear;
  do {
    window_ = step.count() > 0 ? window_ + step : window_ * 2;
  } while (next > *windows_begin_ + window_);
}

}  // namespace sched
