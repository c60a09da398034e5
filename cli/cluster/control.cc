#include "cli/cluster/control.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "api/array_status.h"
#include "cli/cluster/read.h"
#include "cli/cluster/task_control.h"
#include "kube/api/json_text.h"
#include "slurm/array.h"

namespace cli {
namespace {

// For the line that says what was done, in kubectl's manner: "job.kubegang.io/a suspended".
const char* past_tense(ControlVerb verb) {
  switch (verb) {
    case ControlVerb::kSuspend:
      return "suspended";
    case ControlVerb::kResume:
      return "resumed";
    case ControlVerb::kCancel:
      return "canceled";
    case ControlVerb::kRequeue:
      return "requeued";
    case ControlVerb::kHold:
      return "held";
    case ControlVerb::kRelease:
      return "released";
  }
  return "changed";
}

// Returns true if the job has nodes. A suspended job keeps them. Tasks of an array may wait while
// others run.
bool is_allocated(const kube::Job& job) {
  return !job.spec.array && (job.status.state == kube::JobState::kRunning ||
                             job.status.state == kube::JobState::kSuspended);
}

// Returns the next value of a request counter. requeue and release are events, not states: each
// request raises a counter in the spec, and the operator copies it to status.observed when it has
// carried it out. One above the larger of the two is a new request, even if the spec was replaced
// by a manifest without the counter.
std::int64_t raised(const std::optional<std::int64_t>& asked, std::int64_t done) {
  return std::max(asked.value_or(0), done) + 1;
}

// Tasks count, not entries: the operator keeps what is wished for each of them.
base::Error too_many_tasks() {
  return base::invalid_argument("no more than " + std::to_string(kube::kNamedTasksMax) +
                                " tasks of an array may differ from the rest; name fewer, or the "
                                "whole array");
}

nlohmann::json encoded(const std::vector<kube::TaskControl>& entries) {
  if (entries.empty()) return nullptr;
  kube::Job job;
  job.spec.control.tasks = entries;
  return kube::encode(job)["spec"]["control"]["tasks"];
}

// Raises the counter of each of these tasks above what was asked of it and what was carried out.
// Tasks of the same count are one entry of control.tasks, and most of them have the same.
void raise_requests(std::map<int, std::int64_t>& asked, const std::vector<int>& tasks,
                    const kube::JobStatus& of_array, std::int64_t kube::JobObserved::*counter) {
  std::map<int, std::int64_t> done;
  if (of_array.array) {
    for (const kube::ArrayTask& entry : of_array.array->tasks) {
      if (entry.observed) done[entry.task] = (*entry.observed).*counter;
    }
  }
  for (const int task : tasks) asked[task] = std::max(asked[task], done[task]) + 1;
}

// Refuses tasks that the array does not have, and more than may be named. Before any work: a few
// bytes name all tasks.
base::Status check_tasks(const kube::Job& job, const std::vector<int>& tasks) {
  if (!job.spec.array) {
    return base::invalid_argument("it has no tasks; leave out what stands behind the _");
  }
  if (tasks.size() > kube::kNamedTasksMax) return too_many_tasks();
  const std::string& all = job.spec.array->tasks;
  const auto array = slurm::parse_array("spec.array.tasks", all, kube::kArrayTasksMax);
  if (!array) return array.error();
  const auto exists = [&](int task) { return array->tasks.contains(task); };
  const auto missing = std::ranges::find_if_not(tasks, exists);
  if (missing == tasks.end()) return {};
  return base::invalid_argument("task " + std::to_string(*missing) +
                                " does not exist; name some of " + all);
}

// Returns the change of spec.control that does it to some tasks of an array.
base::Result<nlohmann::json> task_change(const kube::Job& job, ControlVerb verb,
                                         const std::vector<int>& tasks) {
  if (const base::Status checked = check_tasks(job, tasks); !checked) return checked.error();
  TaskWishes wishes{job.spec.control.tasks};
  wishes.drop_done(job.status);
  const auto set = [&](auto& field, auto value) {
    for (const int task : tasks) field[task] = value;
  };
  switch (verb) {
    case ControlVerb::kSuspend:
      set(wishes.suspend, true);
      break;
    case ControlVerb::kResume:
      set(wishes.suspend, false);
      break;
    case ControlVerb::kCancel:
      set(wishes.cancel, true);
      break;
    case ControlVerb::kRequeue:
      raise_requests(wishes.requeue_request, tasks, job.status,
                     &kube::JobObserved::requeue_request);
      break;
    case ControlVerb::kHold:
      set(wishes.hold, true);
      break;
    case ControlVerb::kRelease:
      set(wishes.hold, false);
      raise_requests(wishes.release_request, tasks, job.status,
                     &kube::JobObserved::release_request);
      break;
  }
  kube::JobControl changed;
  changed.tasks = wishes.entries();
  if (const base::Status few = check_differences(changed); !few) return few.error();
  return nlohmann::json{{"tasks", encoded(changed.tasks)}};
}

// A command for a whole array applies to each task, whatever was asked for it before.
nlohmann::json for_all_tasks(const kube::Job& job, ControlVerb verb, nlohmann::json change) {
  if (job.spec.control.tasks.empty()) return change;
  TaskWishes wishes{job.spec.control.tasks};
  wishes.drop_done(job.status);
  const bool is_hold = verb == ControlVerb::kHold || verb == ControlVerb::kRelease;
  if (is_hold) wishes.hold.clear();
  if (verb == ControlVerb::kSuspend || verb == ControlVerb::kResume) wishes.suspend.clear();
  change["tasks"] = encoded(wishes.entries());
  return change;
}

// Returns the change of spec.control, or why it makes no sense in the job's state (R2.3, 13.2). The
// operator would refuse or ignore it, too, but only here the user is still there to read it. The
// result is a merge patch of spec.control. A release takes back both kinds of hold: the user's by
// the field, the operator's by a request. A second suspend, hold or cancel writes what is there
// already: it is not an error, as with kubectl.
base::Result<nlohmann::json> control_change(const kube::Job& job, ControlVerb verb) {
  const kube::JobObserved done = job.status.observed.value_or(kube::JobObserved{});
  if (job.status.state && kube::is_final(*job.status.state)) {
    return base::invalid_argument("it has ended (" + std::string{to_string(*job.status.state)} +
                                  ")");
  }
  switch (verb) {
    case ControlVerb::kSuspend:
      return nlohmann::json{{"suspend", true}};
    case ControlVerb::kResume:
      if (!job.spec.control.suspend.value_or(false) && job.spec.control.tasks.empty()) {
        return base::invalid_argument("it is not suspended by its user");
      }
      return nlohmann::json{{"suspend", false}};
    case ControlVerb::kCancel:
      return nlohmann::json{{"cancel", true}};
    case ControlVerb::kRequeue:
      if (!is_allocated(job) && !job.spec.array) return base::invalid_argument("it does not run");
      return nlohmann::json{
          {"requeueRequest", raised(job.spec.control.requeue_request, done.requeue_request)}};
    case ControlVerb::kHold:
      if (is_allocated(job)) {
        return base::invalid_argument("the job is running; use kubectl gang suspend");
      }
      return nlohmann::json{{"hold", true}};
    case ControlVerb::kRelease: {
      if (!job.status.held && !job.spec.control.hold.value_or(false) && !job.spec.array) {
        return base::invalid_argument("it is not held");
      }
      nlohmann::json change = {{"hold", false}};
      if (job.status.held || job.spec.array) {
        change["releaseRequest"] = raised(job.spec.control.release_request, done.release_request);
      }
      return change;
    }
  }
  return base::invalid_argument("unknown command");
}

using FindJob = std::function<base::Result<kube::Job>()>;

// Reads the job, works out the patch, and writes it on the condition that the job has not changed
// in between. After a conflict it starts over. The UID is a condition as well: a job that was
// deleted and made again under its name is another job, and the user did not mean it.
// The operator writes the status of a job that starts or ends, and each write is a new version, so
// a conflict is nothing unusual.
base::Result<kube::Job> patch_found_job(const Session& session, const FindJob& find,
                                        const WorkOut& work_out) {
  // The counters are relative, so a change in between is read again.
  constexpr int kTriesMax = 5;
  base::Result<kube::Job> job = find();
  for (int attempt = 0; job.ok(); ++attempt) {
    const base::Result<nlohmann::json> patch = work_out(*job);
    if (!patch) return patch.error();
    base::Result<kube::Job> changed = session.client.patch<kube::Job>(
        kube::key_of(job->metadata), *patch,
        {.resource_version = job->metadata.resource_version, .uid = job->metadata.uid});
    if (changed || changed.error().code != base::Code::kConflict || attempt + 1 == kTriesMax) {
      return changed;
    }
    job = find();
  }
  return job;
}

// kInvalidArgument: it makes no sense; only this message does not name the job.
base::Result<kube::Job> change_job(const Session& session, ControlVerb verb,
                                   const std::optional<std::vector<int>>& tasks,
                                   const FindJob& find) {
  return patch_found_job(session, find, [&](const kube::Job& job) -> base::Result<nlohmann::json> {
    base::Result<nlohmann::json> change =
        tasks ? task_change(job, verb, *tasks) : control_change(job, verb);
    if (change && !tasks) change = for_all_tasks(job, verb, std::move(*change));
    if (!change) return change;
    return nlohmann::json{{"spec", {{"control", *std::move(change)}}}};
  });
}

FindJob find_seen(const Session& session, const SeenJob& seen) {
  return [&session, &seen]() -> base::Result<kube::Job> {
    base::Result<kube::Job> job = session.client.get<kube::Job>({.ns = seen.ns, .name = seen.name});
    if (job && job->metadata.uid != seen.uid) {
      return base::Error{base::Code::kNotFound,
                         "job " + seen.name + " is gone, and another one has its name now"};
    }
    return job;
  };
}

base::Result<kube::Job> change_named_job(const Session& session, ControlVerb verb,
                                         const std::string& name, Output output) {
  const base::Result<JobAndTasks> target = read_job_and_tasks(name);
  if (!target) return target.error();
  auto changed = change_job(session, verb, target->tasks,
                            [&] { return find_job(session, target->job, output); });
  if (changed || changed.error().code != base::Code::kInvalidArgument) return changed;
  return changed.error().with_context("job " + name);
}

}  // namespace

// Every job is tried, also after one has failed: `cancel a b c` with a misspelled b must not leave
// c running. The exit code tells that one failed.
int run_control(const Session& session, ControlVerb verb, const std::vector<std::string>& jobs,
                Output output) {
  int code = kExitOk;
  for (const std::string& name : jobs) {
    const base::Result<kube::Job> changed = change_named_job(session, verb, name, output);
    if (changed) {
      // For single tasks it says so: "sweep_[7,10-20] canceled".
      const std::string tasks = name.substr(std::min(name.find('_'), name.size()));
      output.out << "job.kubegang.io/" << changed->metadata.name << tasks << " " << past_tense(verb)
                 << of_batch_job(*changed) << "\n";
    } else {
      output.err << "kubectl-gang: " << changed.error().message << "\n";
      code = kExitFailed;
    }
  }
  return code;
}

base::Result<kube::Job> control_seen_job(const Session& session, ControlVerb verb,
                                         const SeenJob& seen) {
  return change_job(session, verb, seen.tasks, find_seen(session, seen));
}

base::Result<kube::Job> patch_seen_job(const Session& session, const SeenJob& seen,
                                       const WorkOut& work_out) {
  return patch_found_job(session, find_seen(session, seen), work_out);
}

// The schema has the bound of the entries.
base::Status check_differences(const kube::JobControl& control) {
  constexpr std::size_t kEntriesMax = 64;
  if (kube::names_too_many_tasks(control)) return too_many_tasks();
  if (control.tasks.size() <= kEntriesMax) return {};
  return base::invalid_argument("tasks of an array may differ from the rest in no more than " +
                                std::to_string(kEntriesMax) +
                                " ways; give more of them the same, or change the whole array");
}

base::Status can_control(const kube::Job& job, ControlVerb verb) {
  const base::Result<nlohmann::json> change = control_change(job, verb);
  return change ? base::Status{} : base::Status{change.error()};
}

}  // namespace cli
