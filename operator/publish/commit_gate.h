// CommitGate: the order of writes, in one place (architecture.md 3, "Commit points").
//
// A commit point is a write of a job's status that says what was decided: its start, its readiness,
// which pod follows which (Members), its claim, its ending, its requeue, its final state.
// Everything else follows from what is stored, so that a leader that comes after a crash at any
// point goes on from there:
//
//   1. A node's timetable is written only while no commit point of a job that has, had or gets a
//      share of it is outstanding. So a timetable never runs a job whose start is not stored, and
//      never leaves one out whose end is not.
//   2. Pods are created only when the start is stored and the timetables of all its nodes are
//      published. So no pod runs in another gang's turn.
//   3. Pods are deleted only when the ending (or the requeue) is stored. So no job loses pods for
//      an ending that a new leader would not know of.
//   4. The ending of a job that is preempted is written only when the claim, or the readiness, of
//      the job that preempts it is stored. So no job is ended for one that a new leader would then
//      place elsewhere. What starts in the place of such a job under the throttle of their array is
//      written no sooner: so no more tasks than may have nodes in what is stored. But if that job
//      waits for the start of this one, as by rule 5, a start that is not stored yet comes first,
//      and the ending with it.
//   5. That a job waits no longer for another one (its dependency), and so its start, is written
//      only when the start or the end of that one is stored. So no job starts because of an end
//      that a new leader may see otherwise. For the same reason the number that a name in its
//      dependency stands for is written only when the job of that name has it.
//
// Nothing here is remembered and nothing is a script: the five questions are asked whenever a write
// is due, and what may not be written yet is asked again when an answer has come.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/node_timetable.h"
#include "translation/task_key.h"

namespace control {

class CommitGate {
 public:
  struct View {
    // Returns true if no commit point of the job, or of the task of an array, is outstanding
    // (task_key.h); also for one that is no longer known.
    std::function<bool(const std::string& key)> is_stored;
    // The node's wanted timetable is the stored one, and no write of it is under way.
    std::function<bool(const std::string& node)> is_published;
  };
  explicit CommitGate(View view) : view_{std::move(view)} {}

  // `jobs`: those with an allocation on the node, by key. Rule 1.
  bool may_publish(const std::set<std::string>& jobs, const kube::NodeTimetableSpec& wanted,
                   const kube::NodeTimetableSpec& stored) const {
    const auto lists_stored = [this](const kube::NodeTimetableSpec& spec) {
      return std::all_of(spec.pods.begin(), spec.pods.end(), [this](const kube::TimetablePod& pod) {
        return view_.is_stored(record_key(pod.job_uid, pod.task));
      });
    };
    return std::all_of(jobs.begin(), jobs.end(), view_.is_stored) && lists_stored(wanted) &&
           lists_stored(stored);
  }

  // `nodes`: of this start of the job. Rule 2.
  bool may_create_pods(const std::string& job_uid, const std::vector<std::string>& nodes) const {
    return view_.is_stored(job_uid) && std::all_of(nodes.begin(), nodes.end(), view_.is_published);
  }

  // Rule 3.
  bool may_delete_pods(const std::string& job_uid) const { return view_.is_stored(job_uid); }

  // `preemptor`: the job for which this one is ended, if any. Rule 4.
  bool may_write_ending(const std::optional<std::string>& preemptor) const {
    return !preemptor || view_.is_stored(*preemptor);
  }

  // `waited_for`: a job that has started or ended. Rule 5.
  bool may_end_wait(const std::string& waited_for) const { return view_.is_stored(waited_for); }

 private:
  const View view_;
};

}  // namespace control
