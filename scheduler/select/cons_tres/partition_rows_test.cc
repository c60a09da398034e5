// How rows are packed again after a job has gone (R4.11).
#include "scheduler/select/cons_tres/partition_rows.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <utility>
#include <vector>

namespace sched::cons_tres {
namespace {

RankCores on(int rank, std::initializer_list<int> cores) {
  RankCores node{rank, {}};
  for (const int core : cores) node.cores.set(core);
  return node;
}

// Lowest free cores on nodes 1, 2, 3 in the first row, densest first, that has some on each.
std::vector<int> first_free(PartitionRows& rows) {
  rows.pack();
  rows.sort_densest_first();
  for (int i = 0; i < rows.count(); ++i) {
    std::vector<int> found;
    for (int rank = 1; rank <= 3; ++rank) {
      const CoreSet* const row = rows.row(i);
      const CoreSet free = CoreSet::first(4) - (row ? row[rank] : CoreSet{});
      if (!free.empty()) found.push_back(free.next(0));
    }
    if (found.size() == 3) return found;
  }
  return {};
}

// Four nodes of four cores, FORCE:3, as recorded: a job of one task that holds a whole node.
std::vector<int> room_after_packing(int asked_by_the_whole_node_job) {
  PartitionRows rows{4};
  rows.set_count(3);
  const auto add = [&](int id, std::vector<RankCores> nodes, int cpus) {
    rows.add(JobId{id}, std::move(nodes), cpus);
  };
  // As the selector does it for a job that finds no idle cores: it looks at the rows first.
  const auto stack = [&](int id, std::vector<RankCores> nodes, int cpus) {
    rows.pack();
    rows.sort_densest_first();
    add(id, std::move(nodes), cpus);
  };
  add(1, {on(0, {0}), on(1, {0}), on(2, {0})}, 3);
  add(2, {on(0, {1}), on(1, {1}), on(2, {1})}, 3);
  add(3, {on(0, {2})}, 1);
  rows.remove(JobId{1});
  add(4, {on(0, {0}), on(1, {0}), on(2, {0})}, 3);
  add(5, {on(0, {3}), on(1, {2, 3}), on(2, {2})}, 4);
  stack(6, {on(1, {0, 1, 2, 3}), on(2, {0, 1})}, 6);
  stack(7, {on(0, {0}), on(2, {2}), on(3, {0})}, 3);
  add(8, {on(3, {1, 2, 3})}, 3);
  stack(9, {on(0, {1}), on(2, {3}), on(3, {1, 2})}, 4);
  stack(10, {on(0, {0, 1, 2, 3})}, asked_by_the_whole_node_job);
  rows.remove(JobId{6});
  return first_free(rows);
}

// Job 10 asks for one CPU and holds a whole node. Packed by what it asked for it goes before the
// jobs with which it shares its first core; by what it holds, behind them.
TEST(PartitionRows, ArePackedByTheCpusThatJobsAskedFor) {
  EXPECT_EQ(room_after_packing(1), (std::vector{0, 0, 3}));
  EXPECT_EQ(room_after_packing(4), (std::vector{1, 1, 0}));  // by what it holds
}

}  // namespace
}  // namespace sched::cons_tres
