// Actions of a reader of the page on a job: hold, release and cancel, as the commands do it
// (control.h), with the rights of the user who runs the page's server.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "api/job.h"
#include "base/result.h"
#include "cli/cluster/control.h"
#include "cli/cluster/session.h"

namespace cli {

struct PageWish {
  ControlVerb verb{};
  SeenJob job{};
};

// Reads {"verb": "hold", "ns": …, "name": …, "uid": …, "tasks": "3,5-7"}; without tasks the whole
// job. kInvalidArgument names the field. Pure.
base::Result<PageWish> read_page_wish(std::string_view text);

// Carries out such a wish. Returns JSON about the job that was changed; the errors of
// read_page_wish(), control_seen_job() and the API server.
base::Result<std::string> page_control(const Session& session, std::string_view text);

// Returns why each of the verbs cannot be asked for, "" if it can: by the job's state, and by the
// user's rights, of which the API server is asked.
nlohmann::ordered_json page_refusals(const Session& session, const kube::Job& job);

}  // namespace cli
