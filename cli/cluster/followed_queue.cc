#include "cli/cluster/followed_queue.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "cli/cluster/queue.h"
#include "cli/cluster/read.h"
#include "view/queue_lines.h"

namespace cli {
// Two threads, one for each watch: the queue's and the timetables'. They only keep their caches;
// the caller's thread takes pictures of both whenever it prints.
FollowedQueue::FollowedQueue(const Session& session, const std::string& ns)
    : jobs_{session.client,
            session.clock,
            watch_options(ns, &view::fields_of_queue()),
            {.on_error = [this](const base::Error& error) { note(error); }}},
      timetables_{session.client,
                  session.clock,
                  watch_options(""),
                  {.on_error = [this](const base::Error& error) { note_of_timetables(error); }}} {
  loops_.start("jobs", [this](std::stop_token stop) { return jobs_.step(std::move(stop)); });
  loops_.start("timetables",
               [this](std::stop_token stop) { return timetables_.step(std::move(stop)); });
}

FollowedQueue::~FollowedQueue() {
  // The threads call note() and the informers, which are members: they must be gone before those.
  loops_.request_stop();
  loops_.join();
}

// Timetables that may not be read do not hold up the queue forever. The informer's own word comes
// first; the lock is only needed for what its thread has noted.
bool FollowedQueue::has_synced() const {
  if (!jobs_.has_synced()) return false;
  if (timetables_.has_synced()) return true;
  const std::lock_guard lock{mu_};
  return timetables_refused_;
}

// Returns the last error since the last call: several in one second are reported once.
std::optional<base::Error> FollowedQueue::take_error() {
  const std::lock_guard lock{mu_};
  return std::exchange(error_, std::nullopt);
}

std::optional<base::Error> FollowedQueue::take_refusal() {
  const std::lock_guard lock{mu_};
  return std::exchange(refusal_, std::nullopt);
}

// A missing right is not an outage: the queue is shown without turns, as it is without --watch. The
// watch goes on asking, so a right that is given later is noticed.
void FollowedQueue::note_of_timetables(const base::Error& error) {
  if (error.code != base::Code::kPermissionDenied) {
    note(error);
    return;
  }
  const std::lock_guard lock{mu_};
  if (!std::exchange(timetables_refused_, true)) refusal_ = error;
}

// Called on the thread of a watch.
void FollowedQueue::note(const base::Error& error) {
  const std::lock_guard lock{mu_};
  error_ = error;
}

std::vector<std::shared_ptr<const kube::Job>> FollowedQueue::jobs() const {
  auto jobs = jobs_.snapshot();
  std::erase_if(jobs, [](const auto& job) { return job->spec.test_only.value_or(false); });
  return jobs;
}

// The function keeps each timetable that it returned alive as long as it lives itself: a watch may
// replace a timetable while the caller still reads the old one.
view::TimetableOf FollowedQueue::timetable_of() const {
  const auto kept = std::make_shared<std::vector<std::shared_ptr<const kube::NodeTimetable>>>();
  return [this, kept](const std::string& node) {
    kept->push_back(timetables_.find({.ns = "", .name = node}));
    return kept->back().get();
  };
}

}  // namespace cli
