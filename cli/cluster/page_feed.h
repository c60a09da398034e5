// PageFeed: keeps the page's board up to date from the API server, by one list and watch of each
// kind, however many browsers read it.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cli/cluster/page_objects.h"
#include "cli/cluster/page_tasks.h"
#include "cli/cluster/session.h"
#include "dashboard/board.h"
#include "kube/api/node.h"
#include "kube/informer.h"
#include "kube/run_loop.h"

namespace cli {

// The entries of the board:
//   jobs/UID         page_job, also of jobs that have ended or gone, as long as there is room
//   tasks/UID_TASK   page_task, of tasks of arrays (page_tasks.h)
//   nodes/NAME       page_timetable
//   past/NUMBER      page_past, of timetables that others have replaced
//   partitions/NAME  page_partition, with the nodes that its selector finds
//   about/server     since when the page watches, since when nothing of the past is missing, whose
//                    jobs, and whether the first lists are there
//   notes/KIND       why a kind is not up to date: {"text", "at", "refused"}
// The scope of each is the right to list it (page_scope()); about and notes are for all readers.
class PageFeed {
 public:
  // Jobs of namespace `ns`, "" = all. Starts five threads; both must live longer.
  PageFeed(const Session& session, const std::string& ns, dashboard::Board& board);
  ~PageFeed();

  // Returns true if all lists are complete that the user may read.
  bool has_synced() const;

 private:
  using JobPointer = std::shared_ptr<const kube::Job>;
  struct GoneJob {
    std::string uid{};
    base::Instant end{};
  };

  void on_job(const JobPointer& job);
  std::vector<std::string> stoppers(const kube::JobStatus& stopped) const;
  void on_job_gone(const JobPointer& job);
  void on_timetable(const kube::NodeTimetable& timetable);
  void on_timetable_gone(const kube::NodeTimetable& timetable, base::Instant since);
  base::Duration publish();
  void publish_partitions();
  void forget(base::Instant end);
  void note(const std::string& kind, const base::Error& error);

  const kube::Clock& clock_;
  const std::string ns_;
  const std::string home_;  // the namespace in which a question is asked unless it says another
  const base::Instant began_;
  dashboard::Board& board_;

  // Used by the jobs' thread.
  std::map<std::string, std::vector<PageStay>> stays_;  // by UID
  std::deque<GoneJob> gone_;                            // that are shown nevertheless
  PageTasks tasks_;
  // Used by the timetables' thread.
  std::map<std::string, base::Instant> in_force_;  // since when, by node
  std::deque<std::string> past_;
  std::uint64_t past_count_ = 0;

  // Used by the publishing thread.
  std::set<std::string> shown_;  // partitions

  mutable std::mutex mu_;
  std::map<std::string, bool> refused_;  // by kind; guarded by mu_
  base::Instant whole_;                  // runs that ended later are on the board; guarded by mu_

  kube::Informer<kube::Job> jobs_;
  kube::Informer<kube::NodeTimetable> timetables_;
  kube::Informer<kube::Partition> partitions_;
  kube::Informer<kube::Node> nodes_;  // for selectors; a user may lack the right to read them
  kube::Waker publishes_;
  kube::RunLoop loops_;  // ends before what it drives
};

}  // namespace cli
