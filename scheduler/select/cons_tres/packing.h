// Packing: the last packing of a partition's rows, so that the next one costs what has changed.
//
// R4.11 puts all jobs again, one by one: in which row a job comes to be depends on the order of the
// rows at that time, which depends on all jobs before it. But as long as the rows stand in the same
// order nothing else changes for a job on whose nodes nothing has changed. So a packing is
// replayed:
//
//   1. Walk over the jobs in their order, with nothing but the number of cores in each row, from
//      which the order of the rows follows.
//   2. A job that was put into row r stays there if each row that now stands before r is known to
//      be taken by jobs before it (Entry::blocked). That is known from when its place was last
//      looked for, unless a job on one of its nodes has left or moved since.
//   3. For any other job its row is looked for among the jobs before it on its nodes. If it is
//      another one than before, the places of the jobs behind it on these nodes are looked for,
//      too.
//
// It holds rows with ids below 64, and jobs with a core on their first node, so that no two jobs of
// one row have the same place in the order. Otherwise PartitionRows packs from scratch.
//
// Cost: came and leaves O(jobs) in a copy of memory and O(jobs on the nodes × log jobs); replay
// O(jobs) in additions, and O(jobs on its nodes × log jobs) for each job whose row is looked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/model/core_set.h"
#include "scheduler/model/ids.h"

namespace sched::cons_tres {

// A job's cores on one node, by rank.
struct RankCores {
  int rank;
  CoreSet cores;
};

// A job in the rows of its partition.
struct RowJob {
  std::vector<RankCores> nodes;
  int cpus = 0;  // that it asked for
  int cores_count = 0;
  int row = 0;                // the row's id
  std::int64_t sequence = 0;  // order of arrival in the row
  std::size_t place = 0;      // in PartitionRows::flat_
};

class Packing {
 public:
  explicit Packing(int node_count) : node_count_{node_count} {}

  // Returns true if there is a packing to replay.
  bool known() const { return known_; }
  void forget();

  // A packing from scratch: begin(), then each job in the order in which it was put, with the rows
  // (1 << id) that were tried before its own. REQUIRES: can_hold() each of them.
  static bool can_hold(const RowJob& job);
  void begin();
  void add(RowJob& job, std::uint64_t blocked);

  // A job has been put into the row that it names, or is about to leave. The last packing is
  // forgotten when too many do. REQUIRES: known().
  void came(RowJob& job);
  void leaves(const RowJob& job);

  struct Row {
    int id;
    std::int64_t held_count;  // cores
  };
  struct Move {
    RowJob* job;
    int row;  // the id of its new row
  };
  enum class Result {
    kPacked,       // `rows` are in their new order, and `moves` are to be carried out
    kFitsNowhere,  // for a job there is no row: nothing is to be done
    kTooMuch,      // too many rows would be looked for: pack from scratch
  };
  // `rows`: as they stand now. After anything but kPacked the packing is forgotten. REQUIRES:
  // known().
  Result replay(std::vector<Row>& rows, std::vector<Move>& moves);

 private:
  // The values that the order of jobs depends on, but for the rows.
  struct Key {
    std::int32_t rank, core, cpus;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Entry {
    Key key;
    std::int32_t cores_count;
    RowJob* job;
    std::uint64_t blocked;  // rows in which jobs before it are in its way
    std::int32_t row;       // of a job that moves in this replay: the new one
    bool unknown;           // `blocked` may be out of date
  };
  struct Rows;
  static Key key_of(const RowJob& job);
  std::size_t index_of(const RowJob& job) const;
  void mark_unknown(const RowJob& job, std::size_t from);
  void order_equals(std::size_t begin, std::size_t end, const Rows& rows);
  std::uint64_t blocked_for(const RowJob& job, std::size_t index) const;
  bool count_change();

  const int node_count_;
  bool known_ = false;
  std::size_t changes_ = 0;     // jobs that came or left since the last packing
  std::vector<Entry> entries_;  // in the order of packing; equal keys as they were packed last
  std::vector<std::vector<RowJob*>> on_node_;  // by rank
};

}  // namespace sched::cons_tres
