// Recorded: how far kubegang-records has stored Jobs, as its Lease says (api/records_lease.h). The
// Lease is read while a job waits for it, and never watched.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "api/records_lease.h"
#include "base/time.h"
#include "operator/write/effect.h"

namespace control {

// Belongs to the loop's thread.
class Recorded {
 public:
  // Before the first job.
  void follow(kube::ObjectKey lease) { lease_ = std::move(lease); }
  // There are records.
  bool is_followed() const { return lease_.has_value(); }

  // Every state of every Job up to this version is recorded; -1: that is not known.
  std::int64_t version() const { return said_.version; }
  const kube::RecordedVersions& said() const { return said_; }

  // `is_awaited`: a job waits for a higher version, as is remembered for next_due().
  std::optional<ReadRecorded> due_question(bool is_awaited, base::Instant now);
  // Afterwards jobs that wait are looked at again. A lower version than before: the API server's
  // store was set back.
  void answered(const RecordedRead& outcome, base::Instant now);
  base::Instant next_due() const { return is_awaited_ && !asks_ ? next_question_ : base::kNever; }

 private:
  std::optional<kube::ObjectKey> lease_;  // absent: there are no records
  kube::RecordedVersions said_;
  bool is_awaited_ = false;
  bool asks_ = false;  // the question is on its way
  base::Instant next_question_{};
};

}  // namespace control
