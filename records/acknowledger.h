// Acknowledger: tells the operator how far Jobs are stored, in the Lease that api/records_lease.h
// describes. Jobs that have ended are not deleted sooner.
#pragma once

#include <functional>
#include <optional>

#include "api/records_lease.h"
#include "base/time.h"
#include "kube/client.h"

namespace records {

// One thread. One write for as many changes of Jobs as there are in two seconds; none while nothing
// changes.
class Acknowledger {
 public:
  // `stored`: Recorder::stored(), on this thread.
  Acknowledger(kube::Client client, kube::ObjectKey lease,
               std::function<kube::RecordedVersions()> stored,
               std::function<void(const base::Error&)> on_error)
      : client_{std::move(client)},
        lease_{std::move(lease)},
        stored_{std::move(stored)},
        on_error_{std::move(on_error)} {}

  // Returns how long to wait before the next one.
  base::Duration step();

 private:
  kube::Client client_;
  const kube::ObjectKey lease_;
  const std::function<kube::RecordedVersions()> stored_;
  const std::function<void(const base::Error&)> on_error_;
  kube::RecordedVersions told_;
};

}  // namespace records
