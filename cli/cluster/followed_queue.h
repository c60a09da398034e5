// Jobs and timetables as they are on the server, kept up by watches: what `queue --watch` shows.
// One list of each at the beginning, then only what changes.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cli/cluster/session.h"
#include "kube/informer.h"
#include "kube/run_loop.h"
#include "view/job_time.h"

namespace cli {

class FollowedQueue {
 public:
  // Jobs of namespace `ns`, "" = all. Starts two threads; `session` must live longer.
  FollowedQueue(const Session& session, const std::string& ns);
  ~FollowedQueue();

  // Returns true if both lists are complete, or that of the jobs is and the user may not read
  // timetables; before, the others return what has arrived.
  bool has_synced() const;
  // Returns the last error since the previous call. The watches try again by themselves.
  std::optional<base::Error> take_error();
  // Returns, once, the error that says that the user may not read timetables.
  std::optional<base::Error> take_refusal();

  std::vector<std::shared_ptr<const kube::Job>> jobs() const;
  // Keeps what it has returned; to be dropped after use.
  view::TimetableOf timetable_of() const;

 private:
  void note(const base::Error& error);
  void note_of_timetables(const base::Error& error);

  mutable std::mutex mu_;
  std::optional<base::Error> error_;  // guarded by mu_, as the next two
  bool timetables_refused_ = false;
  std::optional<base::Error> refusal_;  // not taken yet
  kube::Informer<kube::Job> jobs_;
  kube::Informer<kube::NodeTimetable> timetables_;
  kube::RunLoop loops_;  // ends before what it drives
};

}  // namespace cli
