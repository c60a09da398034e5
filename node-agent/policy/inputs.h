// The inputs of the policy, as of one instant: what the API server says about this node,
// and what this process knows by itself. A value; who fills in what stands beside each part.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "api/node_timetable.h"
#include "base/time.h"
#include "node-agent/policy/pod_facts.h"
#include "node-agent/survival/journal.h"
#include "node-agent/survival/lease_watch.h"

namespace agent {

struct Inputs {
  base::Instant wall{};
  base::Duration monotonic{};

  // From the API server (program/node_watch.h).
  bool pods_known = false;  // the list of this node's pods has been read once
  std::map<kube::ObjectKey, PodFacts> pods{};
  bool timetable_known = false;
  std::shared_ptr<const kube::NodeTimetable> timetable{};  // null = there is none
  // The result of the last quorum read of the object; null = none was made.
  std::shared_ptr<const kube::NodeTimetable> confirmed{};
  std::string timetable_undecodable{};  // why the newest version could not be read; "" = it could
  // `settings` and `kill_switch` are the API server's, or were those of the process before. As long
  // as they are not, no further pod comes under control.
  bool rules_known = false;
  TimetableSettings settings{};
  bool kill_switch = false;

  // From this process (program/policy_loop.h).
  std::optional<LeaseSeen> lease{};
  bool failed_open = false;
  bool stopping = false;
  std::string cpu_ids{};  // that are online, as the kernel lists them; "" = not known
};

}  // namespace agent
