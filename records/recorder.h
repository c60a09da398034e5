// From the watch of Jobs into the database: the informer's thread leaves changes in a queue, and
// the recorder writes what has gathered as one transaction.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/job.h"
#include "api/records_lease.h"
#include "base/result.h"
#include "kube/client.h"
#include "kube/clock.h"
#include "kube/informer.h"
#include "kube/run_loop.h"
#include "records/job_changes.h"
#include "records/store.h"

namespace records {

// Thread-safe.
class ChangeQueue {
 public:
  explicit ChangeQueue(kube::Waker& waker) : waker_{waker} {}

  // Adds changes of a Job; may be none.
  void add(std::vector<Change> changes);
  // All changes of Jobs up to this version of the API server's store have been added.
  void reach(std::int64_t version);
  // That version is a list's: what came and went before it may not have been seen.
  void list(std::int64_t version);

  struct Taken {
    std::vector<Change> changes{};
    // If it has risen by changes of Jobs, and all of them have been taken.
    std::optional<std::int64_t> version{};
    std::int64_t since = -1;  // of the last list, if there is a version
  };
  // Takes the oldest ones, `most` at most.
  Taken take(std::size_t most);
  std::size_t size() const;

 private:
  kube::Waker& waker_;
  mutable std::mutex mu_;
  // Guarded by mu_:
  std::vector<Change> changes_;
  bool has_added_ = false;  // since the version was reached
  std::int64_t reached_ = 0;
  std::int64_t listed_ = -1;
  bool is_reached_ = false;  // since the last one was taken
};

// Follows the Jobs of all namespaces. step() belongs to one thread.
class JobFollower {
 public:
  JobFollower(kube::Client client, const kube::Clock& clock, std::string cluster,
              ChangeQueue& queue, std::function<void(const base::Error&)> on_error);

  base::Duration step(std::stop_token stop) { return jobs_.step(std::move(stop)); }
  // The first list is complete, and all its changes are in the queue.
  bool has_synced() const { return jobs_.has_synced(); }
  std::set<std::string> uids() const;

 private:
  kube::Informer<kube::Job> jobs_;
};

struct RecorderCounters {
  std::atomic<std::int64_t> changes{0};  // written
  std::atomic<std::int64_t> batches{0};
  std::atomic<std::int64_t> errors{0};
  std::atomic<std::int64_t> lost_jobs{0};  // whose end was not seen
  // Tasks of arrays of whose ends nothing was seen but the outcome.
  std::atomic<std::int64_t> bare_ends{0};
};

// One thread.
class Recorder {
 public:
  Recorder(Writer writer, ChangeQueue& queue, const JobFollower& follower, std::string cluster,
           const kube::Clock& clock)
      : writer_{std::move(writer)},
        queue_{queue},
        follower_{follower},
        cluster_{std::move(cluster)},
        clock_{clock} {}

  // Writes one batch. After an error nothing of it is lost: the next step tries it again. Once the
  // first list is written, jobs that have no object are lost. Returns the changes that were
  // written.
  base::Result<std::size_t> step();
  // All that existed at the start is written.
  bool is_up_to_date() const { return is_reconciled_; }
  const RecorderCounters& counters() const { return counters_; }
  // Returns what the Lease may say: every state of every Job up to the version is on the disk; -1:
  // the first list is not. Rises only with what Jobs do. Any thread.
  kube::RecordedVersions stored() const {
    const std::lock_guard lock{mu_};
    return stored_;
  }

 private:
  void fill_batch();
  base::Status write_batch();
  base::Status reconcile();

  Writer writer_;
  ChangeQueue& queue_;
  const JobFollower& follower_;
  const std::string cluster_;
  const kube::Clock& clock_;
  ChangeQueue::Taken batch_;  // and not written
  kube::RecordedVersions written_;
  mutable std::mutex mu_;
  kube::RecordedVersions stored_;  // guarded by mu_
  RecorderCounters counters_;
  std::atomic<bool> is_reconciled_{false};
};

}  // namespace records
