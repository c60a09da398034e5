// Every small world of cores: two nodes of two cores, up to three jobs (KUBEGANG_LONG: four),
// CR_Core, GANG, a high partition over a low one whose jobs are suspended, canceled or requeued
// under it, against a model that is written to be understood. The model says on which cores a job
// is placed (4.5 to 4.7, 4.11), which jobs run after every event (chapter 6) and which must end
// (6.4, 6.11). small_worlds_test.cc does the same for whole nodes. Each world is played with told
// and with own timing (small_world_player.h).
#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/testing/small_world_player.h"

namespace sched::testing {
namespace {

using Units = unsigned;  // bit 2 × node + core

constexpr Units kAll = 0b1111;
constexpr std::array<Units, 2> kNodes{0b0011, 0b1100};

struct Shape {
  int nodes;
  int tasks_per_node;
};
// One core, one node, one core of each node, everything: all the ways in which two jobs can overlap
// here.
constexpr std::array<Shape, 4> kShapes{{{1, 1}, {1, 2}, {2, 1}, {2, 2}}};

// A job as the model keeps it: what it asked for, its cores, and its row in the list of its
// partition.
struct CoreJob {
  // The states of an entry in the list of the gang (6.5): not in the active row, in it, or in it
  // only to fill a hole.
  enum class Row { kNone, kActive, kFiller };
  int id = 0;
  bool high = false;
  Shape shape{};
  Units units = 0;  // 0 = waits
  Row row = Row::kNone;
  bool dying = false;
  bool gone = false;

  bool runs() const { return units != 0 && row != Row::kNone; }
};
using List = std::vector<CoreJob*>;

// The rows of one partition (R4.8 to R4.12).
class Rows {
 public:
  explicit Rows(int count) : rows_(static_cast<std::size_t>(count)) {}

  // R4.10: the first row in which its cores are free. The model placed it, so there must be one.
  void add(CoreJob& job) {
    pack();
    for (List& row : rows_) {
      if ((units_of(row) & job.units) != 0) continue;
      row.push_back(&job);
      return;
    }
    ADD_FAILURE() << "job " << job.id << " is placed and has no row";
  }
  // As in Slurm rows are packed when they are looked at again, and by then more jobs may have gone.
  void remove(CoreJob& job) {
    for (List& row : rows_) std::erase(row, &job);
    unpacked_ = true;
  }
  Units used() const {
    Units used = 0;
    for (const List& row : rows_) used |= units_of(row);
    return used;
  }
  // The fullest row comes first (R4.12).
  std::vector<Units> densest_first() {
    pack();
    sort(rows_);
    std::vector<Units> units;
    for (const List& row : rows_) units.push_back(units_of(row));
    return units;
  }

 private:
  static Units units_of(const List& row) {
    Units units = 0;
    for (const CoreJob* job : row) units |= job->units;
    return units;
  }
  // Slurm's exchange sort, step by step: it is not stable, so the order of equally full rows, and
  // with it the row that Test 4 tries first, depends on how it swaps.
  static void sort(std::vector<List>& rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t j = i + 1; j < rows.size(); ++j) {
        if (std::popcount(units_of(rows[j])) > std::popcount(units_of(rows[i]))) {
          std::swap(rows[i], rows[j]);
        }
      }
    }
  }
  // Packs the rows (R4.11). If one row holds all jobs, and it is the first, nothing is left to do.
  void pack() {
    if (!std::exchange(unpacked_, false)) return;
    const auto in_use =
        std::count_if(rows_.begin(), rows_.end(), [](const List& row) { return !row.empty(); });
    if (in_use == 0 || (in_use == 1 && !rows_.front().empty())) return;
    List order;
    for (const List& row : rows_) order.insert(order.end(), row.begin(), row.end());
    std::stable_sort(order.begin(), order.end(), [](const CoreJob* a, const CoreJob* b) {
      const int x = std::countr_zero(a->units), y = std::countr_zero(b->units);
      return x != y ? x < y : std::popcount(a->units) < std::popcount(b->units);
    });
    std::vector<List> packed(rows_.size());
    for (CoreJob* job : order) {
      const auto row = std::find_if(packed.begin(), packed.end(), [&](const List& candidate) {
        return (units_of(candidate) & job->units) == 0;
      });
      if (row == packed.end()) return;  // the old rows stay
      row->push_back(job);
      sort(packed);
    }
    rows_ = packed;
  }

  std::vector<List> rows_;
  bool unpacked_ = false;
};

// The model. As in small_worlds_test.cc it works everything out from the list of jobs and never
// asks the scheduler. With 4 cores a set of cores is a number of 4 bits, and all rules are
// operations on sets:
//
// 1. place() is 4.5.2, and Rows the layout that it reads (4.5). Cores depend on rows, and rows on
//    the order in which jobs came and went, so Rows must follow Slurm exactly, with its lazy
//    packing.
// 2. refill() and rotate() are 6.5 and 6.6; jobs conflict only if they have a core in common.
// 3. stop() is the point at which preemption comes in: a low job that a high one has put out of the
//    active row is suspended, or ends, by the mode (6.4).
// 4. With own timing, merge() and split() keep the groups of jobs that are turned together. A
//    running job without rivals is in none.
class CoreModel {
 public:
  CoreModel(int low_share, int high_share, PreemptMode mode, Turned turned)
      : mode_{mode}, rows_{Rows{low_share}, Rows{high_share}}, turned_{turned} {
    jobs_.reserve(8);  // they keep their addresses
    if (turned_ == Turned::kAsOne) groups_.emplace_back();
  }

  void submit(int id, bool high, Shape shape) {
    jobs_.push_back({.id = id, .high = high, .shape = shape});
  }

  // A job that cannot start takes all nodes away from the jobs behind it (3.4). Nodes of a job that
  // must end take no other until it is gone (R2.1), which it is after the pass.
  void pass() {
    bool blocked = false;
    for (const bool high : {true, false}) {
      for (CoreJob& job : jobs_) {
        if (blocked || job.high != high || job.units != 0 || job.gone) continue;
        job.units = place(job);
        blocked = job.units == 0;
        if (blocked) continue;
        rows_[high].add(job);
        start(job);
      }
    }
    bury();
  }

  // The rows first, then the gang: a job that resumes keeps its row, and one that is placed later
  // finds the room.
  void end(int id) {
    CoreJob& job = jobs_[static_cast<std::size_t>(id - 1)];
    job.gone = true;
    rows_[job.high].remove(job);
    release(job);
    bury();
  }

  // 6.7, with P1.
  void tick() {
    for (Group& group : groups_) {
      for (const bool high : {true, false}) {
        const std::set<int> now = high ? std::set<int>{} : group.running_high();
        const List& list = group.list[high];
        const bool waits =
            std::any_of(list.begin(), list.end(), [](const CoreJob* job) { return !job->runs(); });
        if (waits || (!high && now.size() > group.shadows.size())) {
          rotate(group, high);
        } else if (!high && now != group.shadows) {
          refill(group, high);
        }
      }
    }
    bury();
  }

  const std::vector<CoreJob>& jobs() const { return jobs_; }

 private:
  // 4.5.2 for sharing jobs under GANG. Lower tiers' cores are free for the taking (Test 3).
  Units place(const CoreJob& job) {
    // Test 0 always succeeds here: each shape fits two empty nodes.
    Units all = kAll;
    for (const CoreJob* other : dying_) {
      for (const Units node : kNodes) {
        if ((node & other->units) != 0) all &= ~node;
      }
    }
    if (const Units idle = pick(all & ~rows_[0].used() & ~rows_[1].used(), job.shape)) return idle;
    const Units mine = job.high ? all : all & ~rows_[1].used();  // Test 2
    if (pick(mine, job.shape) == 0) return 0;
    // Test 3 would then avoid lower tiers as well. The high partition has one below it, and
    // avoiding both leaves the idle cores, on which Test 1 has just failed.
    if (const Units over = pick(mine & ~rows_[job.high].used(), job.shape)) return over;  // 3
    for (const Units row : rows_[job.high].densest_first()) {                             // 4
      if (const Units beside = pick(mine & ~row, job.shape)) return beside;
    }
    return 0;
  }
  // Returns the first node that suffices, or both; the lowest cores.
  static Units pick(Units free, Shape shape) {
    Units picked = 0;
    int nodes = 0;
    for (const Units node : kNodes) {
      if (nodes == shape.nodes || std::popcount(free & node) < shape.tasks_per_node) continue;
      ++nodes;
      Units left = free & node;
      for (int i = 0; i < shape.tasks_per_node; ++i) {
        // The lowest core that is left, and then the others.
        picked |= left & ~(left - 1);
        left &= left - 1;
      }
    }
    return nodes == shape.nodes ? picked : 0;
  }

  // Jobs that are turned together.
  struct Group {
    std::array<List, 2> list;  // of the low and of the high partition
    std::set<int> shadows;     // over the low partition at its last rebuild

    List all() const {  // high before low
      List jobs = list[true];
      jobs.insert(jobs.end(), list[false].begin(), list[false].end());
      return jobs;
    }
    // Returns the shadows over the low partition.
    std::set<int> running_high() const {
      std::set<int> ids;
      for (const CoreJob* job : list[true]) {
        if (job->runs()) ids.insert(job->id);
      }
      return ids;
    }
    Units units_running(bool high) const {
      Units units = 0;
      for (const CoreJob* job : list[high]) {
        if (job->runs()) units |= job->units;
      }
      return units;
    }
  };
  // groups_.end() = it is in no conflict.
  std::vector<Group>::iterator group_of(const CoreJob& job) {
    return std::find_if(groups_.begin(), groups_.end(), [&](const Group& group) {
      const List& list = group.list[job.high];
      return std::find(list.begin(), list.end(), &job) != list.end();
    });
  }
  // On whichever cores. A node has one timetable, so its jobs belong to one group.
  static bool share_a_node(const CoreJob& a, const CoreJob& b) {
    return std::any_of(kNodes.begin(), kNodes.end(),
                       [&](Units node) { return (node & a.units) != 0 && (node & b.units) != 0; });
  }
  // Jobs that have ended hold no cores, so they are not rivals.
  bool has_rivals(const CoreJob& job) const {
    return std::any_of(jobs_.begin(), jobs_.end(), [&](const CoreJob& other) {
      return &other != &job && (other.units & job.units) != 0;
    });
  }
  // Returns the jobs that must be turned together when the job comes, without it: its rivals, their
  // rivals, and so on, and all groups on their nodes, as no node is in two groups. Lists are
  // merged: of the jobs that are next in their lists the one that was submitted first goes first.
  Group& merge(CoreJob& joins) {
    std::vector<List> lists;
    std::vector<const CoreJob*> open{&joins};
    std::set<const CoreJob*> seen{&joins};
    while (!open.empty()) {
      const CoreJob& job = *open.back();
      open.pop_back();
      for (CoreJob& other : jobs_) {
        if (other.units == 0 || seen.contains(&other)) continue;
        const auto group = group_of(other);
        // A job in a group is reached by a common node, one in no group only by a common core.
        if (group != groups_.end() ? !share_a_node(job, other) : (job.units & other.units) == 0) {
          continue;
        }
        if (group == groups_.end()) {
          lists.push_back({&other});
          seen.insert(&other);
          open.push_back(&other);
        } else {
          lists.push_back(group->all());
          seen.insert(lists.back().begin(), lists.back().end());
          groups_.erase(group);
        }
      }
    }
    Group& merged = groups_.emplace_back();
    while (true) {
      List* best = nullptr;
      for (List& list : lists) {
        if (list.empty()) continue;
        if (best == nullptr || list.front()->id < best->front()->id) best = &list;
      }
      if (best == nullptr) break;
      merged.list[best->front()->high].push_back(best->front());
      best->erase(best->begin());
    }
    merged.shadows = merged.running_high();
    return merged;
  }
  // Jobs that run and have no rivals leave the group; the others stay together where they share
  // nodes.
  void split(std::vector<Group>::iterator group) {
    List left = group->all();
    groups_.erase(group);
    while (!left.empty()) {
      Group part;
      // The part grows until no other job is connected with it.
      std::set<const CoreJob*> in_part{left.front()};
      for (std::size_t grown = 0; grown != in_part.size();) {
        grown = in_part.size();
        for (const CoreJob* job : left) {
          const bool connected =
              contended(*job) && std::any_of(in_part.begin(), in_part.end(), [&](auto* other) {
                return contended(*other) && share_a_node(*job, *other);
              });
          if (connected) in_part.insert(job);
        }
      }
      for (CoreJob* job : left) {
        if (in_part.contains(job)) part.list[job->high].push_back(job);
      }
      std::erase_if(left, [&](const CoreJob* job) { return in_part.contains(job); });
      const List jobs = part.all();
      if (jobs.size() == 1 && jobs.front()->runs()) {
        jobs.front()->row = CoreJob::Row::kFiller;
      } else {
        part.shadows = part.running_high();
        groups_.push_back(part);
      }
    }
  }
  // A job that waits is in a conflict, or it would run.
  bool contended(const CoreJob& job) const { return !job.runs() || has_rivals(job); }

  // Returns the cores that are taken before any job of the partition is looked at.
  static Units shadows(Group& group, bool high) {
    if (high) return 0;
    group.shadows = group.running_high();
    return group.units_running(true);
  }
  // 6.4, P17: a shadow over this very job ends it where its mode says so.
  void stop(const Group& group, CoreJob& job) {
    job.row = CoreJob::Row::kNone;
    if (mode_ == PreemptMode::kSuspend || job.high) return;
    if ((group.units_running(true) & job.units) == 0) return;
    job.dying = true;
    dying_.push_back(&job);
    rows_[job.high].remove(job);
  }
  // A job starts (6.9).
  void start(CoreJob& job) {
    if (turned_ == Turned::kByConflict && !has_rivals(job)) {
      job.row = CoreJob::Row::kFiller;
      return;
    }
    Group& group = turned_ == Turned::kAsOne ? groups_.front() : merge(job);
    group.list[job.high].push_back(&job);
    const Units taken = group.units_running(job.high) | (job.high ? 0 : group.units_running(true));
    if ((taken & job.units) != 0) return stop(group, job);
    job.row = CoreJob::Row::kFiller;
    refill_all(group);
  }
  void refill_all(Group& group) {
    refill(group, true);
    refill(group, false);
  }
  // Fills holes (6.5).
  void refill(Group& group, bool high) {
    Units taken = shadows(group, high);
    // Those that have a place in the row keep it while it is free, the chosen before those that
    // fill holes. Then the others come, in the order of the list.
    for (const auto row : {CoreJob::Row::kActive, CoreJob::Row::kFiller}) {
      for (CoreJob* job : group.list[high]) {
        if (job->row != row) continue;
        if ((taken & job->units) != 0) {
          stop(group, *job);
        } else {
          taken |= job->units;
        }
      }
    }
    for (CoreJob* job : group.list[high]) {
      if (job->row != CoreJob::Row::kNone || job->dying || (taken & job->units) != 0) continue;
      taken |= job->units;
      job->row = CoreJob::Row::kFiller;
    }
  }
  // The end of a slice (6.6).
  void rotate(Group& group, bool high) {
    List& list = group.list[high];
    std::stable_partition(list.begin(), list.end(),
                          [](const CoreJob* job) { return job->row != CoreJob::Row::kActive; });
    List ran;
    for (CoreJob* job : list) {
      if (job->runs()) ran.push_back(job);
      job->row = CoreJob::Row::kNone;
    }
    Units taken = shadows(group, high);
    for (CoreJob* job : list) {
      if (job->dying || (taken & job->units) != 0) continue;
      taken |= job->units;
      job->row = CoreJob::Row::kActive;
    }
    // A job stops only now: it may have been chosen again.
    for (CoreJob* job : ran) {
      if (!job->runs()) stop(group, *job);
    }
  }
  // A job that must end is gone at once, and waits again if it is requeued (T5 to T7).
  void bury() {
    while (!dying_.empty()) {
      CoreJob& job = *dying_.front();
      dying_.erase(dying_.begin());
      job.dying = false;
      job.gone = mode_ == PreemptMode::kCancel;
      release(job);
    }
  }
  // It leaves its cores and its group, and the hole is filled at once (6.8).
  void release(CoreJob& job) {
    const auto group = group_of(job);
    if (group != groups_.end()) std::erase(group->list[job.high], &job);
    job.units = 0;
    job.row = CoreJob::Row::kNone;
    if (group == groups_.end()) return;
    refill_all(*group);
    if (turned_ == Turned::kByConflict) split(group);
  }

  const PreemptMode mode_;
  std::array<Rows, 2> rows_;
  std::vector<CoreJob> jobs_;
  List dying_;
  const Turned turned_;
  std::vector<Group> groups_;
};

// One world: how deep each partition is stacked, what becomes of victims, and the jobs in the order
// of their submission.
struct CoreWorld {
  int low_share = 1, high_share = 1;
  PreemptMode mode = PreemptMode::kSuspend;
  std::vector<std::size_t> jobs;  // index into kShapes, plus 4 in the high partition
  std::size_t ends = 0;           // index of the job that ends in the middle
};

// "L1x2" is a job of the low partition with two tasks on one node; H is the high one.
std::string to_text(const CoreWorld& world) {
  std::string text = "mode " + std::to_string(static_cast<int>(world.mode)) +
                     ", FORCE:" + std::to_string(world.low_share) +
                     " under FORCE:" + std::to_string(world.high_share) + ", jobs";
  for (const std::size_t job : world.jobs) {
    const Shape shape = kShapes[job % kShapes.size()];
    text += (job >= kShapes.size() ? " H" : " L") + std::to_string(shape.nodes) + "x" +
            std::to_string(shape.tasks_per_node);
  }
  return text + ", job " + std::to_string(world.ends + 1) + " ends";
}

class CorePlayer final : public SmallWorldPlayer {
 public:
  CorePlayer(const CoreWorld& world, Turned turned)
      : SmallWorldPlayer{turned, configuration(world), nodes("n", 1, 2, 2)},
        world_{world},
        model_{world.low_share, world.high_share, world.mode, turned} {}

 private:
  static Configuration configuration(const CoreWorld& world) {
    const std::vector<NodeSpec> two = nodes("n", 1, 2, 2);
    Configuration c =
        gang_linear({partition("low", two, OverSubscribe::kForce, world.low_share, 1),
                     partition("high", two, OverSubscribe::kForce, world.high_share, 2)});
    c.cluster.select = SelectType::kConsTres;
    c.cluster.unit = SelectUnit::kCore;
    c.cluster.preempt_type = PreemptType::kPartitionPriority;
    c.cluster.preempt_mode = world.mode;
    return c;
  }
  // The scheduler and the model get the same job.
  void submit(int id, std::size_t index) override {
    const std::size_t kind = world_.jobs[index];
    const bool high = kind >= kShapes.size();
    const Shape shape = kShapes[kind % kShapes.size()];
    model_.submit(id, high, shape);
    JobRequest request = job(id, shape.nodes, high ? "high" : "low");
    request.tasks = shape.nodes * shape.tasks_per_node;
    tell(Submit{request});
  }
  // With own timing another pass is due when a job that had to end is gone. Each ends at most one
  // job for each of the world's, so that this many are enough; another one changes nothing.
  void model_pass() override {
    const std::size_t more = told() ? 0 : world_.jobs.size();
    for (std::size_t i = 0; i <= more; ++i) model_.pass();
  }
  void model_tick() override { model_.tick(); }
  void model_end(int id) override { model_.end(id); }
  // Returns the cores that the scheduler gave the job, as the model writes them.
  Units units_of(int id) const {
    Units units = 0;
    const JobView view = driver().view(id);
    if (view.allocation == nullptr) return 0;
    for (const NodeAllocation& use : view.allocation->nodes) {
      for (int core = 0; core < 2; ++core) {
        const int first = driver().scheduler().node_name(use.node) == "n1" ? 0 : 2;
        if (use.cores.test(core)) units |= 1U << (first + core);
      }
    }
    return units;
  }
  // Returns the first thing in which scheduler and model differ, or empty.
  std::string differs() const override {
    for (const CoreJob& job : model_.jobs()) {
      const std::string name = "job " + std::to_string(job.id);
      const JobState state = driver().view(job.id).state;
      if (is_terminal(state) != job.gone) return name + (job.gone ? " goes on" : " has ended");
      if (units_of(job.id) != job.units) {
        return name + " holds " + std::to_string(units_of(job.id)) + ", in the model " +
               std::to_string(job.units);
      }
      const bool runs = state == JobState::kRunning;
      if (runs != job.runs()) return name + (runs ? " runs" : " does not run");
    }
    return {};
  }

  const CoreWorld& world_;
  CoreModel model_;
};

// 4.8, also for a job that may have one node only: Slurm 22.05 has no path of its own for it (4.7).
TEST(SmallCoreWorld, OneNodeIsTheTightestThatSuffices) {
  const std::vector<NodeSpec> two = nodes("n", 1, 2, 2);
  Configuration c = gang_linear({partition("p", two, OverSubscribe::kNo)});
  c.cluster.select = SelectType::kConsTres;
  c.cluster.unit = SelectUnit::kCore;
  Driver driver{c, two, make_replay()};
  JobRequest on_second = job(1, 1);
  on_second.tasks = 1;
  on_second.required_nodes = {"n2"};
  JobRequest one_node = job(2, 1);
  one_node.tasks = 1;
  JobRequest one_task = job(3, 1);
  one_task.tasks = 1;
  one_task.max_nodes.reset();
  one_task.nodes_given = false;
  for (const JobRequest& request : {on_second, one_node}) driver.step(at(1), Submit{request});
  // Job 1 leaves one core of n2 free; n1 has two. One core suffices for each of the others, and n2
  // is the tighter node.
  driver.step(at(2), Pass{});
  EXPECT_EQ(driver.nodes_of(2), (std::vector<std::string>{"n2"}));
  driver.step(at(3), JobGone{JobId{2}});
  driver.step(at(4), Submit{one_task});
  driver.step(at(5), Pass{});
  EXPECT_EQ(driver.nodes_of(3), (std::vector<std::string>{"n2"}));
}

// A mode of preemption and a timing: six combinations, each with all of the worlds.
struct CoreWorldsOf {
  PreemptMode mode;
  Turned turned;
};

class SmallCoreWorlds : public ::testing::TestWithParam<CoreWorldsOf> {};

// Goal and method as in small_worlds_test.cc; compared are the cores of each job, its state, and
// whether it has ended.
TEST_P(SmallCoreWorlds, AllOfThemAreAsInTheModel) {
  const auto [mode, turned] = GetParam();
  std::int64_t tried = 0;
  for (const int low : {1, 2}) {
    for (const int high : {1, 2}) {
      for (std::size_t jobs = 1; jobs <= 3; ++jobs) {
        CoreWorld world{.low_share = low, .high_share = high, .mode = mode};
        tried += play_all<CorePlayer>(world, jobs, 2 * kShapes.size(), turned);
      }
    }
  }
  const bool longer = std::getenv("KUBEGANG_LONG") != nullptr;
  CoreWorld deep{.low_share = 2, .high_share = 2, .mode = mode};
  if (longer) tried += play_all<CorePlayer>(deep, 4, 2 * kShapes.size(), turned);
  // Eight kinds of jobs (four shapes, two partitions): 8 + 64 × 2 + 512 × 3 = 1672 worlds for each
  // of the four pairs of shares, and 4096 × 4 of four jobs.
  const std::int64_t all = longer ? 6'688 + 16'384 : 6'688;
  EXPECT_EQ(tried, HasFailure() ? tried : all) << "the number of small worlds";
}

INSTANTIATE_TEST_SUITE_P(Modes, SmallCoreWorlds,
                         ::testing::Values(CoreWorldsOf{PreemptMode::kSuspend, Turned::kAsOne},
                                           CoreWorldsOf{PreemptMode::kCancel, Turned::kAsOne},
                                           CoreWorldsOf{PreemptMode::kRequeue, Turned::kAsOne},
                                           CoreWorldsOf{PreemptMode::kSuspend, Turned::kByConflict},
                                           CoreWorldsOf{PreemptMode::kCancel, Turned::kByConflict},
                                           CoreWorldsOf{PreemptMode::kRequeue,
                                                        Turned::kByConflict}));

}  // namespace
}  // namespace sched::testing
