// PageTasks: the tasks of arrays on the page's board, as tasks/UID_TASK: those that have an entry
// in the status of their array, and the last ones that have ended. A task that waits for its first
// start is only a number in the text of its array (page_job). So an array of 100,000 tasks costs
// no more than the 1,000 that have begun, and a change of one task is sent alone.
//
// One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/job.h"
#include "base/time.h"
#include "cli/cluster/page_objects.h"
#include "dashboard/board.h"

namespace cli {

class PageTasks {
 public:
  // `board` must live longer.
  explicit PageTasks(dashboard::Board& board) : board_{board} {}

  // Takes the array as it is now. REQUIRES: it is an array. Cost: its entries, and its highest
  // number if one of them is over. `stoppers`: those of a task (page_stays.h).
  void on_array(
      const kube::Job& array, base::Instant now,
      const std::function<std::vector<std::string>(const kube::JobStatus& task)>& stoppers);
  // Ends what still runs of it. Returns true if tasks of it stay on the board; false for a job that
  // is not an array.
  bool on_array_gone(const kube::Job& array, base::Instant now);

  // Returns the end of the last run that was dropped to make room; 1970 if none was.
  base::Instant forgotten() const { return forgotten_; }

 private:
  // For all arrays together.
  static constexpr std::size_t kEndedMax = 2000;

  struct Task {
    std::optional<std::int64_t> job_id{};
    std::vector<PageStay> stays{};
    bool has_ended = false;
  };

  void end(const kube::Job& array, int number, kube::JobState state, base::Instant now);
  void drop(const std::string& uid, int number);

  dashboard::Board& board_;
  std::map<std::string, std::map<int, Task>> tasks_;  // by UID of the array and number
  std::deque<std::pair<std::string, int>> ended_;     // the oldest first
  base::Instant forgotten_{};
};

}  // namespace cli
