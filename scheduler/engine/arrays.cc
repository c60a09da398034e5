// Arrays (13.4): one record waits for all tasks that do not differ. A task is split off when it
// starts, or when something is to happen to it alone.
#include <iterator>
#include <set>
#include <vector>

#include "scheduler/engine/engine.h"

namespace sched {

Job* Engine::find(JobId id) {
  Job* const job = books_.find(id);
  if (job != nullptr || !id.is_task()) return job;
  Job* const array = books_.find(id.array());
  const bool waits =
      array != nullptr && array->is_array() && array->array->waiting.contains(*id.task());
  return waits ? &split_off(*array, *id.task()) : nullptr;
}

// Both leave the queue, since the place of the array in the job table may change.
Job& Engine::split_off(Job& array, int task) {
  admission_.forget(array);
  Job& job = books_.split(array, task);
  dependencies_.split(array, job);
  admission_.admit(array, now_);
  admission_.admit(job, now_);
  return job;
}

// As Slurm goes through them: the one that was split off last comes first.
void Engine::each_job(JobId id, const std::function<void(Job&)>& act) {
  Job* const job = find(id);
  if (job == nullptr || is_terminal(job->state)) return;
  std::vector<JobId> tasks;
  if (job->is_array()) tasks.assign(job->tasks->own.rbegin(), job->tasks->own.rend());
  if (job->count() > 0) act(*job);
  for (const JobId task : tasks) act(*books_.find(task));
}

void Engine::reopen(Job& array, const Job* task) {
  const ArrayRequest& request = *array.request->array;
  if (!request.at_once && !request.begun_most) return;
  const auto admit = [&](Job& job) {
    if (&job != task && job.pending() && job.queued.in.empty()) admission_.admit(job, now_);
  };
  for (const JobId id : array.tasks->own) admit(*books_.find(id));
  admit(array);
}

// Lets others start in place of tasks that have ended, if none could because of `begun_most`.
void Engine::forget_ended_tasks() {
  const std::vector<JobId> ended = books_.take_ended_tasks();
  std::set<JobId> arrays;
  for (const JobId id : ended) {
    // The event may have been that it is forgotten.
    if (Job* const task = books_.find(id)) books_.erase(*task);
    arrays.insert(id.array());
  }
  for (const JobId id : arrays) {
    Job* const array = books_.find(id);
    if (array == nullptr || is_terminal(array->state)) continue;
    const auto most = array->request->array->begun_most;
    if (most && array->tasks->begun + std::ssize(ended) >= *most) reopen(*array);
  }
}

}  // namespace sched
