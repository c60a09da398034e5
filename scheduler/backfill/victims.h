// Victims: the allocated jobs that a waiting one may preempt (7.3), as the lookahead treats them:
// gone from the beginning, and not when their time is over. VictimFinder keeps them for each kind
// of job, and the partitions and QOS that allocated jobs have, by which most jobs may preempt
// none.
//
// Threads: none. Cost: may_be_any() O(kinds of allocated jobs), and once after each change of the
// books O(allocated jobs); of() O(allocated jobs × log), once for each kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "scheduler/backfill/ends.h"
#include "scheduler/jobs/job_books.h"
#include "scheduler/model/cluster.h"
#include "scheduler/select/selector.h"

namespace sched {

struct Victims {
  enum class Fate : std::uint8_t { kStays, kIsSuspended, kMustEnd };
  // The jobs in the order in which they would be preempted, with what they leave on their nodes.
  using Jobs = std::vector<std::pair<const SelectJob*, Selector::Trial::Keep>>;
  Jobs jobs;
  std::vector<Fate> fates;       // of each of the ends
  bool takes_extra_row = false;  // SelectRequest

  bool contains(std::size_t end) const { return fates[end] != Fate::kStays; }
  bool must_end(std::size_t end) const { return fates[end] == Fate::kMustEnd; }
};

class VictimFinder {
 public:
  // The arguments must outlive this object.
  VictimFinder(const Cluster& cluster, const JobBooks& books, Ends& ends)
      : cluster_{cluster}, books_{books}, ends_{ends} {}

  // Returns false if the job may take no allocated one, whichever priorities they have.
  bool may_be_any(const Job& job, PartitionIndex partition);
  // Returns the victims of the job; null if there are none. `kind`: jobs of one number may preempt
  // the same ones. Reads the ends if there may be any. Valid until forget(), and without a kind
  // until the next call.
  const Victims* of(const Job& job, PartitionIndex partition, std::optional<int> kind);
  // The books or the order of the ends have changed.
  void forget();

 private:
  Victims find(const Job& job, PartitionIndex partition);

  const Cluster& cluster_;
  const JobBooks& books_;
  Ends& ends_;
  std::optional<std::vector<const Job*>> allocated_kinds_;  // one job of each partition and QOS
  std::map<std::optional<int>, Victims> found_;  // by kind; of jobs without one, the last one's
};

}  // namespace sched
