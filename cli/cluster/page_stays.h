// Where a job was while the page watched it, when it was suspended there, and by its user or for
// which jobs. Its turns are in the timetables. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/job.h"
#include "base/time.h"

namespace cli {

// A time on its nodes in which it was suspended.
struct PagePause {
  bool by_user = false;           // otherwise jobs of a higher tier ran on its cores
  std::vector<std::string> by{};  // these, as far as they are seen: UID, or UID_TASK
  base::Instant from{};
  std::optional<base::Instant> to{};  // nullopt: it still is

  friend bool operator==(const PagePause&, const PagePause&) = default;
};

// A stay of a job on nodes: from its allocation, or from its start if that is known, to its end.
struct PageStay {
  std::string hostlist;
  base::Instant from;
  std::optional<base::Instant> to{};  // nullopt: it is there
  std::vector<PagePause> pauses{};
  std::string ended_for{};  // UID of the job that has preempted it

  friend bool operator==(const PageStay&, const PageStay&) = default;
};

// Asked when one begins that no user has asked for.
using PageStoppers = std::function<std::vector<std::string>()>;

// Brings the stays of a job, or of a task, up to date: one begins with an allocation and ends with
// it, or with the job.
void follow_stays(std::vector<PageStay>& stays, const kube::JobStatus& status, base::Instant now,
                  const PageStoppers& stoppers);

// Returns the jobs and tasks that have cores of this one, in partitions of higher tiers; a few of
// them, if there are many. `tiers`: by partition.
std::vector<std::string> page_stoppers(const kube::JobStatus& stopped,
                                       const std::vector<std::shared_ptr<const kube::Job>>& jobs,
                                       const std::map<std::string, std::int32_t>& tiers);

}  // namespace cli
