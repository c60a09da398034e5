// The user's name, as the API server knows it.
#pragma once

#include <optional>
#include <string>

#include "api/job.h"
#include "cli/cluster/session.h"

namespace cli {

// Returns the name by which the API server knows the user of the session. nullopt if it does not
// say it: SelfSubjectReview is missing in an API server before 1.28 and in the devcluster.
std::optional<std::string> own_user(const Session& session);

// Notes in a job that is going to be created who submits it (kubegang.io/user).
void set_user(const Session& session, kube::Job& job);

}  // namespace cli
