// suspend, resume, cancel, requeue, hold, release: each changes one field of Job.spec; the operator
// does the rest (api.md, "Job").
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/job.h"
#include "base/result.h"
#include "cli/cluster/session.h"
#include "cli/program.h"

namespace cli {

enum class ControlVerb { kSuspend, kResume, kCancel, kRequeue, kHold, kRelease };

// Prints one line per job that was changed. Goes on after a failure; kExitFailed if there was one.
// `jobs` are names or numbers.
int run_control(const Session& session, ControlVerb verb, const std::vector<std::string>& jobs,
                Output output);

// A job as the user has seen it. Another job that has its name since is not meant.
struct SeenJob {
  std::string ns;
  std::string name;
  std::string uid;
  std::optional<std::vector<int>> tasks{};  // of an array; nullopt: the whole job
};

// Does it to that job, as run_control. kNotFound: the job is gone, also if another one has its
// name. kInvalidArgument: it makes no sense in the job's state; the message does not name the job.
base::Result<kube::Job> control_seen_job(const Session& session, ControlVerb verb,
                                         const SeenJob& seen);

// Works out a merge patch of a job; an error that is kInvalidArgument does not name the job.
using WorkOut = std::function<base::Result<nlohmann::json>(const kube::Job&)>;
// Reads that job, and writes what is worked out of it on the condition that it has not changed in
// between; starts over if it has. kNotFound as above.
base::Result<kube::Job> patch_seen_job(const Session& session, const SeenJob& seen,
                                       const WorkOut& work_out);

// More tasks differ from the rest than may, or in more ways.
base::Status check_differences(const kube::JobControl& control);

// Says why it makes no sense for the whole job in its state.
base::Status can_control(const kube::Job& job, ControlVerb verb);

}  // namespace cli
