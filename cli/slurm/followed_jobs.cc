#include "cli/slurm/followed_jobs.h"

#include <chrono>
#include <utility>

#include "cli/cluster/read.h"
#include "cli/slurm/job_facts.h"
#include "kube/sleeper.h"

namespace cli {
FollowedJobs::FollowedJobs(const Session& session, const std::string& ns)
    : jobs_{session.client,
            session.clock,
            watch_options(ns, &fields_of_jobs()),
            {.on_error = [this](const base::Error& error) { note(error); }}} {
  loop_.start("jobs", [this](std::stop_token stop) { return jobs_.step(std::move(stop)); });
}

FollowedJobs::~FollowedJobs() {
  loop_.request_stop();
  loop_.join();
}

base::Result<std::unique_ptr<FollowedJobs>> FollowedJobs::begin(const Session& session) {
  std::unique_ptr<FollowedJobs> all{new FollowedJobs{session, ""}};
  base::Status listed = all->wait_for_list();
  if (!listed && listed.error().code == base::Code::kPermissionDenied) {
    all.reset(new FollowedJobs{session, session.ns});
    listed = all->wait_for_list();
  }
  if (!listed) return listed.error();
  return all;
}

base::Status FollowedJobs::wait_for_list() {
  kube::ThreadSleeper sleeper;
  while (!jobs_.has_synced()) {
    if (std::optional<base::Error> error = take_error()) return *std::move(error);
    (void)sleeper.sleep(std::chrono::milliseconds{10}, {});
  }
  return {};
}

std::vector<kube::Job> FollowedJobs::jobs() const {
  std::vector<kube::Job> all;
  for (const auto& job : jobs_.snapshot()) all.push_back(*job);
  return numbered(std::move(all));
}

std::optional<base::Error> FollowedJobs::take_error() {
  const std::lock_guard lock{mu_};
  return std::exchange(error_, std::nullopt);
}

// Called on the thread of the watch.
void FollowedJobs::note(const base::Error& error) {
  const std::lock_guard lock{mu_};
  error_ = error;
}

}  // namespace cli
