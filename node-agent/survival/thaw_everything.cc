#include "node-agent/survival/thaw_everything.h"

#include <spdlog/spdlog.h>

#include <utility>
#include <vector>

#include "base/log_fields.h"
#include "base/time.h"
#include "node-agent/freezer/pod_cgroups.h"
#include "node-agent/survival/journal.h"
#include "node-agent/survival/thaw_journaled.h"
#include "node-agent/switching/switch_clock.h"

namespace agent {
namespace {

// Meanwhile the run directory's lock is held, for which a new agent waits 2 s. A v1 cgroup with
// many tasks needs milliseconds to thaw.
constexpr base::Duration kThawAgainFor = std::chrono::seconds{1};
constexpr base::Duration kThawAgainAfter = std::chrono::milliseconds{50};

// Thaws all of them, then again those that failed.
ThawResult thaw_again_and_again(const std::vector<PodIdentity>& pods, const PodCgroups& cgroups,
                                const std::function<bool()>& give_up) {
  RealSwitchClock clock;
  const base::Duration until = clock.monotonic() + kThawAgainFor;
  ThawResult result = thaw_journaled(pods, cgroups);
  while (!result.failed.empty() && clock.monotonic() < until && !give_up()) {
    clock.pause(kThawAgainAfter);
    std::vector<PodIdentity> left;
    for (ThawResult::Failed& failed : result.failed) left.push_back(std::move(failed.pod));
    ThawResult more = thaw_journaled(left, cgroups);
    result.thawed_count += more.thawed_count;
    result.gone_count += more.gone_count;
    result.failed = std::move(more.failed);
  }
  return result;
}

}  // namespace

// Opens the tree, reads the journal, thaws, all again at each call: nothing that was learned before
// a crash is trusted. A damaged journal counts as done, because it does not name the agent's pods;
// the next worker finds them (NodePolicy::inherit).
bool thaw_everything(const AgentPlaces& places, const std::function<bool()>& give_up) {
  const base::Result<PodCgroups> cgroups =
      PodCgroups::open(places.cgroup_root, places.kubelet_root);
  if (!cgroups) {
    spdlog::error("cannot thaw error={}", base::log_value(cgroups.error().message));
    return false;
  }
  const base::Result<Journal> journal =
      JournalFile{places.run_directory + "/" + kJournalName}.read(read_boot_id());
  if (!journal) {
    if (journal.error().code == base::Code::kNotFound) return true;  // Nothing was ever frozen.
    spdlog::error("cannot thaw: the journal is damaged error={}",
                  base::log_value(journal.error().message));
    return true;
  }
  const ThawResult result = thaw_again_and_again(journal->pods, *cgroups, give_up);
  // Logging comes after the last attempt: a log that blocks must not keep a pod frozen.
  spdlog::warn("thawed what the journal names thawed={} gone={} failed={}", result.thawed_count,
               result.gone_count, result.failed.size());
  for (const auto& [pod, why] : result.failed) {
    spdlog::error("not thawed pod={} error={}", base::log_value(pod.name), base::log_value(why));
  }
  return result.failed.empty();
}

}  // namespace agent
