#include "node-agent/policy/cpu_sets.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "linux/cpu_list.h"
#include "node-agent/freezer/pod_opener.h"

namespace agent {

CpuSets::Outcome CpuSets::apply(const Wanted& wanted, base::Duration now) {
  // A pod without a CPU set that we never bound: its cpuset file is not touched, it may be the work
  // of kubelet's CPU manager.
  if (wanted.cpus.empty() && !bound_.contains(wanted.uid)) return {.again_at = now + kLookEvery};
  Bound& bound = bound_[wanted.uid];
  // Written again at intervals and not only once: another program may have replaced the list.
  if (bound.cpus != wanted.cpus || now >= bound.outcome.again_at) {
    bound = {.cpus = wanted.cpus, .outcome = bind(wanted, now)};
  }
  const Outcome outcome = bound.outcome;
  if (wanted.cpus.empty() && outcome.note.empty()) bound_.erase(wanted.uid);  // It is done.
  return outcome;
}

// 1. An empty list takes a binding back. 2. Parse the list. 3. Leave out CPUs that are not online.
//    4. Write the rest; a cgroup that is not there yet is tried again soon.
CpuSets::Outcome CpuSets::bind(const Wanted& wanted, base::Duration now) {
  if (wanted.cpus.empty()) return take_back(wanted, now);
  Outcome outcome{.again_at = now + kLookEvery};
  const std::optional<std::vector<int>> cpus = os::parse_cpu_list(wanted.cpus);
  if (!cpus) {
    outcome.note = "its CPU set \"" + wanted.cpus + "\" is not a list of CPUs: it is not bound";
    return outcome;
  }
  // A CPU set names CPUs as the operator knew the node. If some are offline since, the pod is bound
  // to the others: with none of its list it would run on the CPUs of other gangs.
  const std::optional<std::vector<int>> online = os::parse_cpu_list(wanted.online);
  std::vector<int> there;
  std::vector<int> missing;
  for (const int cpu : *cpus) {
    // Without a list of the node's CPUs all are tried, and the kernel decides.
    const bool exists = !online || std::find(online->begin(), online->end(), cpu) != online->end();
    (exists ? there : missing).push_back(cpu);
  }
  if (!missing.empty()) {
    outcome.note = "its CPU set " + wanted.cpus + " names CPUs that this node (" + wanted.online +
                   ") does not have: " + os::format_cpu_list(missing) +
                   (there.empty() ? ": it is not bound"
                                  : ": it is bound to " + os::format_cpu_list(there) + " only");
  }
  if (there.empty()) return outcome;
  const base::Status status = opener_.bind(wanted.uid, wanted.qos, os::format_cpu_list(there));
  if (status) return outcome;
  // kubelet makes the cgroup a moment after the API server shows the pod: tried again soon, without
  // a note.
  if (status.error().code == base::Code::kNotFound) {
    outcome.again_at = now + kRetryAfter;
    return outcome;
  }
  outcome.note = status.error().message;
  return outcome;
}

// A pod whose set cannot be taken back stays in bound_, and so in the journal, and is tried again
// at every look.
CpuSets::Outcome CpuSets::take_back(const Wanted& wanted, base::Duration now) {
  // A cgroup that is gone has nothing to give back.
  const base::Status status = opener_.bind(wanted.uid, wanted.qos, "");
  if (status || status.error().code == base::Code::kNotFound) return {.again_at = now + kLookEvery};
  return {.note = status.error().message, .again_at = now + kLookEvery};
}

// With an empty list, so that the first apply() writes whatever is wanted now: the list that the
// journal's process wrote is not known.
void CpuSets::inherit(const std::vector<std::string>& uids) {
  for (const std::string& uid : uids) bound_[uid] = {};
}

std::vector<std::string> CpuSets::bound() const {
  std::vector<std::string> uids;
  for (const auto& [uid, bound] : bound_) uids.push_back(uid);
  return uids;
}

void CpuSets::forget_all_but(const std::set<std::string>& uids) {
  std::erase_if(bound_, [&](const auto& entry) { return !uids.contains(entry.first); });
}

}  // namespace agent
