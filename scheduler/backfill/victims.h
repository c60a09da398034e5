// Victims: the allocated jobs that a waiting one may preempt (7.3), as the lookahead treats them:
// gone from the beginning, and not when their time is over. VictimFinder keeps them for jobs of one
// standing, and the partitions and QOS that allocated jobs have, by which most jobs may preempt
// none.
//
// Threads: none. Cost: may_be_any() O(kinds of allocated jobs), and once after each change of the
// books O(allocated jobs); of() O(allocated jobs × log), once for each standing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
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
  // Returns the victims of the job; null if there are none. `by_standing`: jobs of one partition
  // and QOS may preempt the same ones. Reads the ends if there may be any. Valid until forget(),
  // and if not by standing until the next call.
  const Victims* of(const Job& job, PartitionIndex partition, bool by_standing);
  // The books or the order of the ends have changed.
  void forget();

 private:
  Victims find(const Job& job, PartitionIndex partition);

  const Cluster& cluster_;
  const JobBooks& books_;
  Ends& ends_;
  std::optional<std::vector<const Job*>> allocated_kinds_;  // one job of each partition and QOS
  using Standing = std::pair<PartitionIndex, std::string>;  // with the QOS
  std::map<std::optional<Standing>, Victims> found_;  // nullopt = of the last job looked up
};

}  // namespace sched
