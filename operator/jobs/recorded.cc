#include "operator/jobs/recorded.h"

namespace control {
namespace {

constexpr base::Duration kAskAgain = std::chrono::seconds{2};
constexpr base::Duration kAskAfterError = std::chrono::minutes{1};

}  // namespace

std::optional<ReadRecorded> Recorded::due_question(bool is_awaited, base::Instant now) {
  is_awaited_ = is_awaited;
  if (!lease_ || !is_awaited || asks_ || next_question_ > now) return std::nullopt;
  asks_ = true;
  return ReadRecorded{*lease_};
}

void Recorded::answered(const RecordedRead& outcome, base::Instant now) {
  asks_ = false;
  next_question_ = now + (outcome.lease.ok() ? kAskAgain : kAskAfterError);
  if (outcome.lease.ok()) said_ = kube::recorded_versions(*outcome.lease);
}

}  // namespace control
