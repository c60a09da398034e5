// The lists of tasks in Job.status.array as one text. Each write of a status stores it as a whole,
// and the entries of tasks say nearly the same: packed they take a tenth. Internal to api: decode
// and encode do it, and programs see the lists.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "api/job.h"
#include "base/result.h"

namespace kube {

// Puts the lists of `status`, a Job's, into status.array.packed where they are long.
void pack_tasks(nlohmann::json& status);

// Takes the lists out of status.array.packed, and empties it. A text that is of another term than
// the status says nothing: a program that does not know the field has written the status since.
base::Status unpack_tasks(JobStatus& status);

}  // namespace kube
