#include "node-agent/survival/thaw_everything.h"

#include <spdlog/spdlog.h>

#include "base/time.h"
#include "node-agent/freezer/pod_cgroups.h"
#include "node-agent/survival/journal.h"
#include "node-agent/survival/thaw_journaled.h"
#include "node-agent/switching/switch_clock.h"

namespace agent {
namespace {

// A second in all. A v1 cgroup with many tasks needs milliseconds to thaw.
constexpr int kAttemptsMax = 20;
constexpr base::Duration kThawAgainAfter = std::chrono::milliseconds{50};

}  // namespace

// Opens the tree, reads the journal, thaws, all anew at each call: nothing that was learned before
// a crash is trusted. A damaged journal counts as done, because it does not say which pods are
// ours; the next worker finds them (NodePolicy::adopt).
bool thaw_everything(const AgentPlaces& places, const std::function<bool()>& give_up) {
  const base::Result<PodCgroups> cgroups =
      PodCgroups::open(places.cgroup_root, places.kubelet_root);
  if (!cgroups) {
    spdlog::error("cannot thaw error=\"{}\"", cgroups.error().message);
    return false;
  }
  const base::Result<Journal> journal =
      JournalFile{places.run_directory + "/" + kJournalName}.read(read_boot_id());
  if (!journal) {
    if (journal.error().code == base::Code::kNotFound) return true;  // Nothing was ever frozen.
    spdlog::error("cannot thaw: the journal is damaged error=\"{}\"", journal.error().message);
    return true;
  }
  RealSwitchClock clock;
  ThawResult result;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    result = thaw_journaled(*journal, *cgroups);
    if (result.failed.empty() || give_up()) break;
    clock.pause(kThawAgainAfter);
  }
  // Logging comes after the last attempt: a log that blocks must not keep a pod frozen.
  spdlog::warn("thawed what the journal names thawed={} gone={} failed={}", result.thawed_count,
               result.gone_count, result.failed.size());
  for (const std::string& failure : result.failed) spdlog::error("not thawed pod={}", failure);
  return result.failed.empty();
}

}  // namespace agent
