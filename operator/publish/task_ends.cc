#include "operator/publish/task_ends.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "api/array_status.h"
#include "api/records_lease.h"

namespace control {
namespace {

constexpr base::Duration kWaitForRecordsMax = std::chrono::hours{24};

// The oldest are dropped first.
void make_room(std::vector<kube::TaskEnd>& kept, const kube::ArrayStatus& shown) {
  const std::size_t taken = shown.tasks.size() + shown.ended.size();
  const std::size_t most =
      std::min(kube::kArrayEndsMax - std::min(kube::kArrayEndsMax, shown.ended.size()),
               kube::kArrayBegunMax - std::min<std::size_t>(kube::kArrayBegunMax, taken));
  if (kept.size() <= most) return;
  kept.erase(kept.begin(), kept.end() - static_cast<std::ptrdiff_t>(most));
}

}  // namespace

// 1. The stored version first reported the stored ends, unless that is known better.
// 2. A task that has ended may have its record still, and is reported again.
void TaskEnds::keep(JobRecord& array, kube::ArrayStatus& shown, base::Instant now) {
  if (!recorded_.is_followed()) return shown.ended.clear();
  const auto& stored = array.status.stored().array;
  if (!stored) return;
  const auto version = kube::version_number(array.status.version());
  std::set<int> told_now;
  for (const kube::TaskEnd& end : shown.ended) told_now.insert(end.task);
  const std::map<int, std::int64_t> told = std::exchange(array.array->ends_told.edit(), {});
  std::vector<kube::TaskEnd> kept;
  for (const kube::TaskEnd& end : stored->ended) {
    const auto found = told.find(end.task);
    const auto first = found != told.end() ? std::optional{found->second} : version;
    const bool is_recorded = first && *first <= recorded_.version();
    if (is_recorded || end.end_time.value_or(now) + kWaitForRecordsMax <= now) continue;
    if (first) array.array->ends_told.edit()[end.task] = *first;
    awaited_ = std::max(awaited_, first.value_or(-1));
    if (!told_now.contains(end.task)) kept.push_back(end);
  }
  make_room(kept, shown);
  shown.ended.insert(shown.ended.begin(), std::make_move_iterator(kept.begin()),
                     std::make_move_iterator(kept.end()));
}

}  // namespace control
