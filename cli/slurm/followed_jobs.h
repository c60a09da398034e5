// The jobs that have a number, kept up by a watch: what `squeue -i` shows. One list at the
// beginning, then only what changes.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/job.h"
#include "base/result.h"
#include "cli/cluster/session.h"
#include "kube/informer.h"
#include "kube/run_loop.h"

namespace cli {

class FollowedJobs {
 public:
  // Blocks until the first list is complete. Jobs of all namespaces, or of the session's own if the
  // others may not be read. `session` must live longer.
  static base::Result<std::unique_ptr<FollowedJobs>> begin(const Session& session);
  ~FollowedJobs();

  // Returns the jobs by their numbers. Cost: a copy of each.
  std::vector<kube::Job> jobs() const;
  // Returns the last error of the watch since the previous call. It tries again by itself.
  std::optional<base::Error> take_error();

 private:
  FollowedJobs(const Session& session, const std::string& ns);

  base::Status wait_for_list();
  void note(const base::Error& error);

  std::mutex mu_;
  std::optional<base::Error> error_;  // guarded by mu_
  kube::Informer<kube::Job> jobs_;
  kube::RunLoop loop_;  // ends before what it drives
};

}  // namespace cli
