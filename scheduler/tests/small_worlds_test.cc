// Every small world, up to three nodes and four jobs, against a model that is written to be
// understood: select/linear, two partitions of different tiers on all nodes, GANG. The model says
// which job is placed where (3.4, 4.4) and which jobs run after every event (chapter 6). Each world
// is played with told and with own timing (small_world_player.h).
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/testing/small_world_player.h"

namespace sched::testing {
namespace {

using Nodes = std::set<int>;  // by rank

bool disjoint(const Nodes& a, const Nodes& b) {
  return std::none_of(a.begin(), a.end(), [&](int node) { return b.contains(node); });
}
Nodes join(Nodes a, const Nodes& b) {
  a.insert(b.begin(), b.end());
  return a;
}

// A job as the model keeps it. Row is its row in the list of its partition (6.5): kActive was
// selected at a tick, kFiller came into a hole since, kNone does not run.
struct ModelJob {
  int id = 0;
  bool high = false;
  int size = 1;
  Nodes nodes{};  // empty = waits
  bool gone = false;
  enum class Row { kNone, kActive, kFiller } row = Row::kNone;

  bool placed() const { return !nodes.empty() && !gone; }
  bool runs() const { return placed() && row != Row::kNone; }
};

// The whole model, in about 250 lines: it keeps no clock and no index, works everything out again
// from the list of jobs, and never asks the scheduler. It has two halves:
//
// 1. Placement. A pass takes jobs one by one (3.4) and places each by select/linear's rules (4.4).
//    These count jobs on nodes and do not see which of them run at the moment.
// 2. Turns. Each partition has a list, and a job runs if it has a row. Starts and ends fill holes
//    (6.5), ticks rotate (6.6). Jobs on a node conflict as a whole, so that a set of nodes is all
//    that has to be compared.
//
// With told timing one group has all jobs, as in Slurm. With the scheduler's own timing a group is
// a connected part of the conflicts: it is merged when a job comes and split when one goes.
// Placement is the same in both.
class Model {
 public:
  Model(int nodes, int low_share, int high_share, Turned turned)
      : nodes_count_{nodes}, share_{low_share, high_share}, turned_{turned} {
    if (turned_ == Turned::kAsOne) groups_.emplace_back();
  }

  void submit(int id, bool high, int size) {
    jobs_.push_back({.id = id, .high = high, .size = size});
  }

  // 3.4: higher tier first, then in the order of submission; one that cannot start takes all nodes
  // away from those behind it.
  void pass() {
    for (const bool high : {true, false}) {
      for (ModelJob& job : jobs_) {
        if (job.high != high || job.placed() || job.gone) continue;
        const Nodes chosen = place(job);
        if (chosen.empty()) return;
        job.nodes = chosen;
        start(job);
      }
    }
  }

  // Frees its nodes at once, so that holes are filled before the next pass can start a job there
  // (6.8).
  void end(int id) {
    ModelJob& job = at(id);
    if (!job.placed()) return;
    Group& group = group_of(job);
    std::erase(group.list[job.high], &job);
    job.gone = true;
    refill_all(group);
    if (turned_ == Turned::kByConflict) split(group);
  }

  // 6.7: a partition is turned when a job in it waits or a shadow came; it is filled up again when
  // its shadows changed otherwise (P1).
  void tick() {
    for (Group& group : groups_) {
      for (const bool high : {true, false}) {
        const std::set<int> now = high ? std::set<int>{} : group.running_high();
        const auto& list = group.list[high];
        const bool waits =
            std::any_of(list.begin(), list.end(), [](const ModelJob* job) { return !job->runs(); });
        const bool more = !high && now.size() > group.shadows.size();
        if (waits || more) {
          rotate(group, high);
        } else if (!high && now != group.shadows) {
          refill(group, high);
        }
      }
    }
  }

  const std::vector<ModelJob>& jobs() const { return jobs_; }

 private:
  // Jobs keep their addresses, since lists point to them.
  ModelJob& at(int id) {
    return *std::find_if(jobs_.begin(), jobs_.end(), [&](auto& job) { return job.id == id; });
  }

  // --- placement ---
  int jobs_on(int node) const {
    return static_cast<int>(std::count_if(jobs_.begin(), jobs_.end(), [&](const ModelJob& job) {
      return job.placed() && job.nodes.contains(node);
    }));
  }
  // FORCE:1 does not stack (4.3).
  bool refused(int node) const {
    return std::any_of(jobs_.begin(), jobs_.end(), [&](const ModelJob& job) {
      return job.placed() && job.nodes.contains(node) && share_[job.high] == 1;
    });
  }
  // 4.4.3: nodes with no job, then an equal-sized mate or nodes with one, and so on.
  Nodes place(const ModelJob& job) const {
    for (int k = 0; k < share_[job.high]; ++k) {
      Nodes eligible;
      for (int node = 0; node < nodes_count_; ++node) {
        if (jobs_on(node) <= k && !refused(node)) eligible.insert(node);
      }
      if (static_cast<int>(eligible.size()) < job.size) continue;
      for (const ModelJob& mate : jobs_) {
        const bool equal = mate.placed() && mate.size == job.size;
        if (k > 0 && equal &&
            std::includes(eligible.begin(), eligible.end(), mate.nodes.begin(), mate.nodes.end())) {
          return mate.nodes;
        }
      }
      return best_fit(eligible, job.size);
    }
    return {};
  }
  // 4.4.4 for equal nodes: the shortest run of neighbors that suffices, else the longest, again
  // and again.
  static Nodes best_fit(Nodes eligible, int size) {
    Nodes chosen;
    while (static_cast<int>(chosen.size()) < size) {
      const int missing = size - static_cast<int>(chosen.size());
      std::vector<int> best;
      std::vector<int> run;
      const auto better = [&] {
        if (run.empty()) return false;
        if (best.empty()) return true;
        const bool enough = static_cast<int>(run.size()) >= missing;
        const bool best_enough = static_cast<int>(best.size()) >= missing;
        if (enough != best_enough) return enough;
        return enough ? run.size() < best.size() : run.size() > best.size();
      };
      // One rank more than a world can have: it is never eligible, and closes the last run.
      for (int node = 0; node <= 3; ++node) {
        if (eligible.contains(node)) {
          run.push_back(node);
          continue;
        }
        if (better()) best = run;
        run.clear();
      }
      for (const int node : best) {
        if (static_cast<int>(chosen.size()) < size) chosen.insert(node);
        eligible.erase(node);
      }
    }
    return chosen;
  }

  // --- gang ---
  // Jobs that are turned together: a job in conflict with one of them is one of them.
  struct Group {
    std::vector<ModelJob*> list[2];  // of the low and of the high partition
    std::set<int> shadows;           // over the low partition at its last rebuild

    // Returns the shadows over the low partition.
    std::set<int> running_high() const {
      std::set<int> ids;
      for (const ModelJob* job : list[true]) {
        if (job->runs()) ids.insert(job->id);
      }
      return ids;
    }
    // High before low.
    std::vector<ModelJob*> all() const {
      std::vector<ModelJob*> jobs = list[true];
      jobs.insert(jobs.end(), list[false].begin(), list[false].end());
      return jobs;
    }
    Nodes nodes() const {
      Nodes nodes;
      for (const ModelJob* job : all()) nodes = join(nodes, job->nodes);
      return nodes;
    }
  };

  // Returns its group: each job that is placed is in one.
  Group& group_of(const ModelJob& job) {
    return *std::find_if(groups_.begin(), groups_.end(), [&](const Group& group) {
      const auto& list = group.list[job.high];
      return std::find(list.begin(), list.end(), &job) != list.end();
    });
  }
  // Makes all groups on the job's nodes one, without the job. Their lists are merged: the job that
  // was submitted first goes first, of those that are next in their groups.
  Group& merge(const ModelJob& job) {
    std::vector<std::vector<ModelJob*>> lists;
    std::erase_if(groups_, [&](const Group& group) {
      if (disjoint(group.nodes(), job.nodes)) return false;
      lists.push_back(group.all());
      return true;
    });
    Group& merged = groups_.emplace_back();
    while (true) {
      std::vector<ModelJob*>* best = nullptr;
      for (auto& list : lists) {
        if (!list.empty() && (best == nullptr || list.front()->id < best->front()->id)) {
          best = &list;
        }
      }
      if (best == nullptr) break;
      merged.list[best->front()->high].push_back(best->front());
      best->erase(best->begin());
    }
    merged.shadows = merged.running_high();
    return merged;
  }
  // The group falls apart into jobs that are still connected. A job that is left alone runs, and is
  // FILLER when a conflict arises.
  void split(const Group& group) {
    const Group whole = group;
    groups_.erase(groups_.begin() + (&group - groups_.data()));
    std::vector<ModelJob*> left = whole.all();
    while (!left.empty()) {
      // Grows over common nodes until no job is added.
      Nodes nodes = left.front()->nodes;
      for (std::size_t grown = 0; grown != nodes.size();) {
        grown = nodes.size();
        for (const ModelJob* job : left) {
          if (!disjoint(nodes, job->nodes)) nodes = join(nodes, job->nodes);
        }
      }
      Group& part = groups_.emplace_back();
      for (ModelJob* job : left) {
        if (!disjoint(nodes, job->nodes)) part.list[job->high].push_back(job);
      }
      std::erase_if(left, [&](const ModelJob* job) { return !disjoint(nodes, job->nodes); });
      if (part.all().size() == 1) part.all().front()->row = ModelJob::Row::kFiller;
      part.shadows = part.running_high();
    }
  }
  // Returns the nodes that are taken before any job of the partition is looked at.
  static Nodes shadows(Group& group, bool high) {
    Nodes taken;
    if (high) return taken;
    group.shadows = group.running_high();
    for (const ModelJob* job : group.list[true]) {
      if (job->runs()) taken = join(taken, job->nodes);
    }
    return taken;
  }
  // A job starts (6.9).
  void start(ModelJob& job) {
    Group& group = turned_ == Turned::kAsOne ? groups_.front() : merge(job);
    group.list[job.high].push_back(&job);
    // Beside the jobs that run in its own partition there are, for the low one, the shadows.
    Nodes taken;
    for (const bool high : {true, false}) {
      for (const ModelJob* other : group.list[high]) {
        const bool counts = high == job.high || (high && !job.high);
        if (counts && other->runs()) taken = join(taken, other->nodes);
      }
    }
    if (!disjoint(taken, job.nodes)) return;
    job.row = ModelJob::Row::kFiller;
    refill_all(group);
  }
  void refill_all(Group& group) {
    refill(group, true);
    refill(group, false);
  }
  // 6.5: jobs that were selected stay, then those that filled a hole, then the others as they fit.
  void refill(Group& group, bool high) {
    using Row = ModelJob::Row;
    Nodes taken = shadows(group, high);
    for (const Row row : {Row::kActive, Row::kFiller, Row::kNone}) {
      // Copied first, and every job looked at once: its row changes while the list is gone through.
      std::vector<ModelJob*> these;
      for (ModelJob* job : group.list[high]) {
        if (job->row == row && !seen_.contains(job)) these.push_back(job);
      }
      for (ModelJob* job : these) {
        seen_.insert(job);
        const bool fits = disjoint(taken, job->nodes);
        if (fits) taken = join(taken, job->nodes);
        if (row == Row::kNone) {
          if (fits) job->row = Row::kFiller;
        } else if (!fits) {
          job->row = Row::kNone;
          seen_.erase(
              job);  // among the others it gets another chance, and does not fit there either
        }
      }
    }
    seen_.clear();
  }
  // The selected jobs go to the back; then, in the order of the list, each that fits is selected
  // (6.6).
  static void rotate(Group& group, bool high) {
    auto& list = group.list[high];
    std::stable_partition(list.begin(), list.end(),
                          [](const ModelJob* job) { return job->row != ModelJob::Row::kActive; });
    for (ModelJob* job : list) job->row = ModelJob::Row::kNone;
    Nodes taken = shadows(group, high);
    for (ModelJob* job : list) {
      if (!disjoint(taken, job->nodes)) continue;
      taken = join(taken, job->nodes);
      job->row = ModelJob::Row::kActive;
    }
  }

  int nodes_count_;
  int share_[2];
  std::vector<ModelJob> jobs_ = reserved();
  Turned turned_;
  std::vector<Group> groups_;
  std::set<const ModelJob*> seen_;

  static std::vector<ModelJob> reserved() {  // its jobs keep their addresses
    std::vector<ModelJob> jobs;
    jobs.reserve(8);
    return jobs;
  }
};

// One world: how many nodes, how deep each partition is stacked, and the jobs in the order of their
// submission.
struct SmallWorld {
  int nodes_count = 1;
  int low_share = 1, high_share = 1;
  std::vector<std::size_t> jobs;  // size − 1, plus nodes_count in the high partition
  std::size_t ends = 0;           // index of the job that ends in the middle

  bool is_high(std::size_t job) const { return job >= static_cast<std::size_t>(nodes_count); }
  int size_of(std::size_t job) const { return static_cast<int>(job) % nodes_count + 1; }
};

// "L2" is a job of the low partition on two nodes; H is the high one.
std::string to_text(const SmallWorld& world) {
  std::string text = std::to_string(world.nodes_count) +
                     " nodes, FORCE:" + std::to_string(world.low_share) +
                     " under FORCE:" + std::to_string(world.high_share) + ", jobs";
  for (const std::size_t job : world.jobs) {
    text += (world.is_high(job) ? " H" : " L") + std::to_string(world.size_of(job));
  }
  return text + ", job " + std::to_string(world.ends + 1) + " ends";
}

class NodePlayer final : public SmallWorldPlayer {
 public:
  NodePlayer(const SmallWorld& world, Turned turned)
      : SmallWorldPlayer{turned, configuration(world), nodes("n", 1, world.nodes_count)},
        world_{world},
        model_{world.nodes_count, world.low_share, world.high_share, turned} {}

 private:
  static Configuration configuration(const SmallWorld& world) {
    const std::vector<NodeSpec> all = nodes("n", 1, world.nodes_count);
    return gang_linear({partition("low", all, OverSubscribe::kForce, world.low_share, 1),
                        partition("high", all, OverSubscribe::kForce, world.high_share, 2)});
  }
  void submit(int id, std::size_t index) override {
    const bool high = world_.is_high(world_.jobs[index]);
    const int size = world_.size_of(world_.jobs[index]);
    model_.submit(id, high, size);
    tell(Submit{job(id, size, high ? "high" : "low")});
  }
  void model_pass() override { model_.pass(); }
  void model_tick() override { model_.tick(); }
  void model_end(int id) override { model_.end(id); }
  // Returns the first difference of scheduler and model, or empty. An ended job has left both.
  std::string differs() const override {
    for (const ModelJob& job : model_.jobs()) {
      if (job.gone) continue;
      const std::string name = "job " + std::to_string(job.id);
      std::vector<std::string> names;
      for (const int node : job.nodes) names.push_back("n" + std::to_string(node + 1));
      if (driver().nodes_of(job.id) != names) return name + " is elsewhere than in the model";
      const bool runs = driver().view(job.id).state == JobState::kRunning;
      if (runs != job.runs()) return name + (runs ? " runs" : " does not run");
    }
    return {};
  }

  const SmallWorld& world_;
  Model model_;
};

class SmallWorlds : public ::testing::TestWithParam<Turned> {};

// Goal: placements and turns follow chapters 3, 4 and 6 in every case that a small world can show,
// not only in those that a test's author has thought of. Method: all worlds are enumerated, and
// after every event the nodes and the state of each job are compared with the model's. A world that
// differs is printed as to_text() writes it.
TEST_P(SmallWorlds, AllOfThemAreAsInTheModel) {
  std::int64_t tried = 0;
  for (const int low : {1, 2, 3}) {
    for (const int high : {1, 2}) {
      for (int count = 1; count <= 3; ++count) {
        for (std::size_t jobs = 1; jobs <= 4; ++jobs) {
          SmallWorld world{.nodes_count = count, .low_share = low, .high_share = high};
          tried +=
              play_all<NodePlayer>(world, jobs, static_cast<std::size_t>(2 * count), GetParam());
        }
      }
    }
  }
  // 2n kinds of jobs on n nodes (n sizes, two partitions); k jobs make (2n)^k sequences, each with
  // k jobs that may end. For one node 2 + 8 + 24 + 64 = 98, for two 4 + 32 + 192 + 1024 = 1252, for
  // three 6 + 72 + 648 + 5184 = 5910: 7260 worlds for each of the six pairs of shares.
  EXPECT_EQ(tried, HasFailure() ? tried : 43'560) << "the number of small worlds";
}

INSTANTIATE_TEST_SUITE_P(Timing, SmallWorlds,
                         ::testing::Values(Turned::kAsOne, Turned::kByConflict),
                         [](const auto& turned) {
                           return turned.param == Turned::kAsOne ? "Told" : "Own";
                         });

}  // namespace
}  // namespace sched::testing
