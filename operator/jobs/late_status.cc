#include "operator/jobs/late_status.h"

#include <algorithm>
#include <tuple>

namespace control {
namespace {

template <typename Status>
bool is_final(const Status& status) {
  return status.state && kube::is_final(*status.state);
}

// Facts of a start and its end. The state only as such: a job that is off turn is stored as
// Suspended.
template <typename Status>
bool says_the_same(const Status& known, const Status& late) {
  const auto facts = [](const Status& status) {
    return std::tie(status.starts, status.restarts, status.node_failures, status.allocation,
                    status.start_time, status.ending, status.held, status.exit_code,
                    status.succeeded_indexes);
  };
  return is_final(known) == is_final(late) && facts(known) == facts(late);
}

// `Status`: of a job, or the entry of a task.
template <typename Status>
LateStatus late_start_or_end(const Status& known, const Status& late) {
  if (says_the_same(known, late)) return LateStatus::kInforms;
  const bool has_started = late.starts.value_or(0) > known.starts.value_or(0);
  const bool is_start = has_started && !known.allocation && !late.ending && !is_final(late);
  return is_start ? LateStatus::kStart : LateStatus::kMore;
}

// An entry goes only when there is an outcome.
LateStatus late_array(const kube::ArrayStatus& known, const kube::ArrayStatus& late) {
  const auto outcomes = [](const kube::ArrayStatus& array) {
    return std::tie(array.succeeded, array.failed, array.cancelled, array.outcomes);
  };
  if (outcomes(known) != outcomes(late)) return LateStatus::kMore;
  LateStatus most = LateStatus::kInforms;
  for (const kube::ArrayTask& entry : late.tasks) {
    const auto same = std::ranges::find(known.tasks, entry.task, &kube::ArrayTask::task);
    const kube::ArrayTask before = same == known.tasks.end() ? kube::ArrayTask{} : *same;
    most = std::max(most, late_start_or_end(before, entry));
  }
  return most;
}

}  // namespace

LateStatus late_status(const kube::JobStatus& known, const kube::JobStatus& late) {
  // No operator has written that: an end is final.
  if (is_final(known) && !is_final(late)) return LateStatus::kInforms;
  if (is_final(known) != is_final(late)) return LateStatus::kMore;
  if (known.array || late.array) {
    return late_array(known.array.value_or(kube::ArrayStatus{}),
                      late.array.value_or(kube::ArrayStatus{}));
  }
  const bool pods_followed = known.allocation && known.member_indexes != late.member_indexes;
  return pods_followed ? LateStatus::kMore : late_start_or_end(known, late);
}

}  // namespace control
