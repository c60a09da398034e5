#include "cli/cluster/page_stays.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "api/array_status.h"
#include "base/number_list.h"
#include "slurm/hostlist.h"

namespace cli {
namespace {

constexpr std::size_t kStaysMax = 16;   // of one job
constexpr std::size_t kPausesMax = 16;  // of one stay
constexpr std::size_t kStoppersMax = 4;
constexpr int kCoresMax = 4096;  // of a node

// The operator's words (status.reason).
constexpr const char* kByUser = "User";
constexpr const char* kByHigherTier = "Preempted";

// When the times of the status were taken, which the operator does when it decides; not before
// `from`.
base::Instant page_decided_at(const std::optional<kube::RunTime>& time, base::Instant from,
                              base::Instant now) {
  return std::max(from, std::min(now, time ? time->as_of : now));
}

void follow_pauses(PageStay& stay, const kube::JobStatus& status, base::Instant now,
                   const PageStoppers& stoppers) {
  const bool is_suspended = status.state == kube::JobState::kSuspended;
  const bool by_user = is_suspended && status.reason == kByUser;
  const bool is_pause = by_user || (is_suspended && status.reason == kByHigherTier);
  std::vector<PagePause>& pauses = stay.pauses;
  const bool is_open = !pauses.empty() && !pauses.back().to;
  if (is_open && is_pause && pauses.back().by_user == by_user) {
    // At first not all jobs are there.
    if (!by_user && pauses.back().by.empty()) pauses.back().by = stoppers();
    return;
  }
  if (is_open) pauses.back().to = page_decided_at(status.run_time, pauses.back().from, now);
  if (!is_pause) return;
  pauses.push_back({.by_user = by_user,
                    .by = by_user ? std::vector<std::string>{} : stoppers(),
                    .from = page_decided_at(status.suspend_time, stay.from, now)});
  if (pauses.size() > kPausesMax) pauses.erase(pauses.begin());
}

// The cores of each node; nullopt: all of them.
using PageCores = std::map<std::string, std::optional<std::set<int>>>;

PageCores page_cores(const kube::Allocation& allocation) {
  PageCores all;
  for (const kube::NodeShare& share : allocation.shares) {
    std::optional<std::set<int>> cores;
    if (const auto numbers = base::parse_number_list(share.cores, kCoresMax);
        numbers && !share.cores.empty()) {
      cores.emplace(numbers->begin(), numbers->end());
    }
    const auto names = slurm::expand_hostlist(share.hostlist);
    if (!names) continue;
    for (const std::string& name : *names) all[name] = cores;
  }
  return all;
}

bool page_shares_a_core(const PageCores& a, const PageCores& b) {
  return std::ranges::any_of(a, [&](const auto& entry) {
    const auto found = b.find(entry.first);
    if (found == b.end()) return false;
    const std::optional<std::set<int>>& own = entry.second;
    const std::optional<std::set<int>>& other = found->second;
    if (!own || !other) return true;
    return std::ranges::any_of(*own, [&](int core) { return other->contains(core); });
  });
}

}  // namespace

void follow_stays(std::vector<PageStay>& stays, const kube::JobStatus& status, base::Instant now,
                  const PageStoppers& stoppers) {
  const bool is_over = status.state && kube::is_final(*status.state);
  const std::string hostlist = status.allocation && !is_over ? status.allocation->hostlist : "";
  const bool is_open = !stays.empty() && !stays.back().to;
  if (is_open && stays.back().hostlist != hostlist) {
    PageStay& last = stays.back();
    last.to = is_over ? status.end_time.value_or(now) : now;
    if (!last.pauses.empty() && !last.pauses.back().to) last.pauses.back().to = last.to;
  }
  // One that had ended before the page was opened is where its status says.
  if (is_over && stays.empty() && status.allocation && status.start_time && status.end_time) {
    stays.push_back({.hostlist = status.allocation->hostlist,
                     .from = *status.start_time,
                     .to = status.end_time});
  }
  if (hostlist.empty()) return;
  if (stays.empty() || stays.back().to) {
    // A job that ran before the page was opened has been there since its start.
    const bool is_first = stays.empty();
    stays.push_back(
        {.hostlist = hostlist, .from = is_first ? status.start_time.value_or(now) : now});
    if (stays.size() > kStaysMax) stays.erase(stays.begin());
  }
  if (status.ending && status.ending->by) stays.back().ended_for = status.ending->by->uid;
  follow_pauses(stays.back(), status, now, stoppers);
}

std::vector<std::string> page_stoppers(const kube::JobStatus& stopped,
                                       const std::vector<std::shared_ptr<const kube::Job>>& jobs,
                                       const std::map<std::string, std::int32_t>& tiers) {
  std::vector<std::string> all;
  const auto tier_of = [&](const std::string& partition) {
    const auto found = tiers.find(partition);
    return found == tiers.end() ? 1 : found->second;
  };
  if (!stopped.allocation) return all;
  const std::int32_t tier = tier_of(stopped.partition);
  const PageCores cores = page_cores(*stopped.allocation);
  const auto look_at = [&](const kube::JobStatus& status, const std::string& name) {
    const bool is_there = status.allocation && status.state && !kube::is_final(*status.state);
    if (!is_there || tier_of(status.partition) <= tier || all.size() == kStoppersMax) return;
    if (page_shares_a_core(cores, page_cores(*status.allocation))) all.push_back(name);
  };
  for (const auto& job : jobs) {
    look_at(job->status, job->metadata.uid);
    if (!job->status.array) continue;
    for (const kube::ArrayTask& entry : job->status.array->tasks) {
      look_at(kube::task_status(entry, job->status),
              job->metadata.uid + "_" + std::to_string(entry.task));
    }
  }
  return all;
}

}  // namespace cli
