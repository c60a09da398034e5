// A packing that is replayed is the packing from scratch (R4.11), whatever came and went.
#include "scheduler/select/cons_tres/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "scheduler/select/cons_tres/partition_rows.h"

namespace sched::cons_tres {
namespace {

constexpr int kNodes = 7, kCores = 4;

// Returns the cores that each row holds, in the order of the rows.
std::string text_of(PartitionRows& rows) {
  std::string text;
  for (int i = 0; i < rows.count(); ++i) {
    text += std::to_string(rows.row_id(i)) + ":";
    for (int rank = 0; rank < kNodes; ++rank) {
      text += ' ';
      for (int core = 0; core < kCores; ++core) {
        text += rows.row(i) != nullptr && rows.row(i)[rank].test(core) ? 'x' : '.';
      }
    }
    text += '\n';
  }
  return text;
}

// Rows that remember their packing, and others to which the same happens, which do not.
class Twins {
 public:
  explicit Twins(std::uint64_t seed) : prng_{seed} {
    const int count = 2 + static_cast<int>(prng_.below(4));
    for (PartitionRows* const rows : both_) rows->set_count(count);
  }

  // plain_ forgets its packing before each step, so it always packs from scratch.
  void step() {
    plain_.forget_packing();
    const std::uint64_t what = prng_.below(10);
    if (what < 4) {
      add();
    } else if (what < 7) {
      remove();
    } else if (what < 9) {
      for (PartitionRows* const rows : both_) {
        rows->pack();
        rows->sort_densest_first();
      }
    } else {
      try_without();
    }
    ASSERT_EQ(text_of(remembering_), text_of(plain_));
  }

 private:
  // On about a third of the nodes. Half of the jobs take whole nodes, and so begin on the same
  // cores as others: equal keys, whose order depends on the rows.
  std::vector<RankCores> some_cores() {
    std::vector<RankCores> nodes;
    const bool whole = prng_.below(2) == 0;
    for (int rank = 0; rank < kNodes; ++rank) {
      if (prng_.below(3) != 0) continue;
      RankCores node{.rank = rank, .cores = {}};
      for (int core = 0; core < kCores; ++core) {
        if (whole || prng_.below(2) == 0) node.cores.set(core);
      }
      if (!node.cores.empty()) nodes.push_back(node);
    }
    return nodes;
  }
  // Only where a row has room, as the selector does, and into packed rows, which is what the
  // selector looks at.
  void add() {
    std::vector<RankCores> nodes = some_cores();
    if (nodes.empty()) return;
    for (PartitionRows* const rows : both_) rows->pack();
    if (!plain_.has_room(nodes)) return;
    const int cpus = 1 + static_cast<int>(prng_.below(3));
    jobs_.push_back(JobId{++last_id_});
    for (PartitionRows* const rows : both_) rows->add(jobs_.back(), nodes, cpus);
  }
  // Moved to the end of the list, where the caller can drop it.
  JobId some_job() {
    std::swap(jobs_[prng_.below(jobs_.size())], jobs_.back());
    return jobs_.back();
  }
  void remove() {
    if (jobs_.empty()) return;
    const JobId job = some_job();
    jobs_.pop_back();
    for (PartitionRows* const rows : both_) rows->remove(job);
  }
  // Takes up to two jobs out. It packs in between or puts the last one back, which both twins must
  // do or refuse alike (after a packing it cannot be done). A copy is as it would be packed next.
  // The end of the trial must restore both to the same rows.
  void try_without() {
    for (PartitionRows* const rows : both_) rows->begin_trial();
    const std::vector<JobId> all = jobs_;
    for (std::uint64_t i = prng_.below(3); i > 0 && !jobs_.empty(); --i) {
      const JobId job = some_job();
      jobs_.pop_back();
      for (PartitionRows* const rows : both_) rows->remove_for_trial(job);
      const std::string before = text_of(plain_);
      const std::unique_ptr<PartitionRows> copy = plain_.packed_copy(plain_.count());
      EXPECT_EQ(text_of(plain_), before) << "it was only copied";
      if (prng_.below(2) == 0) {
        for (PartitionRows* const rows : both_) rows->pack();
        EXPECT_EQ(text_of(*copy), text_of(plain_));
        EXPECT_EQ(text_of(remembering_), text_of(plain_));
      } else if (prng_.below(2) == 0) {
        const bool back = plain_.put_back();
        EXPECT_EQ(remembering_.put_back(), back);
        if (back) jobs_.push_back(job);
      }
    }
    for (PartitionRows* const rows : both_) rows->end_trial();
    jobs_ = all;
  }

  base::Prng prng_;
  PartitionRows remembering_{kNodes}, plain_{kNodes};
  const std::vector<PartitionRows*> both_{&remembering_, &plain_};
  std::vector<JobId> jobs_;
  std::int64_t last_id_ = 0;
};

// Goal: a replay that leaves something out is found. Method: 300 random histories of 200 steps on
// seven nodes, with rows compared after each step; with two to five rows jobs move often.
TEST(Packing, AReplayIsAPackingFromScratch) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Twins twins{seed};
    for (int i = 0; i < 200 && !::testing::Test::HasFatalFailure(); ++i) twins.step();
  }
}

}  // namespace
}  // namespace sched::cons_tres
