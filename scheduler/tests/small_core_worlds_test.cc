// Every small world of cores: two nodes of two cores, up to three jobs (KUBEGANG_LONG: four),
// CR_Core, GANG, a high partition over a low one whose jobs are suspended, cancelled or requeued
// under it, against a model that is written to be understood. The model says on which cores a job
// is placed (4.5 to 4.7, 4.11), who runs after every event (chapter 6) and who has to end
// (6.4, 6.11). small_worlds_test.cc does the same for whole nodes.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {
namespace {

using Units = unsigned;  // bit 2 × node + core

constexpr Units kAll = 0b1111;
constexpr std::array<Units, 2> kNodes{0b0011, 0b1100};

struct Shape {
  int nodes;
  int tasks_per_node;
};
constexpr std::array<Shape, 4> kShapes{{{1, 1}, {1, 2}, {2, 1}, {2, 2}}};

struct CoreJob {
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

  void add(CoreJob& job) {
    pack();
    for (List& row : rows_) {
      if ((units_of(row) & job.units) != 0) continue;
      row.push_back(&job);
      return;
    }
    ADD_FAILURE() << "job " << job.id << " is placed and has no row";
  }
  void remove(CoreJob& job) {
    for (List& row : rows_) std::erase(row, &job);
    unpacked_ = true;
  }
  Units used() const {
    Units used = 0;
    for (const List& row : rows_) used |= units_of(row);
    return used;
  }
  // R4.12
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
  static void sort(std::vector<List>& rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t j = i + 1; j < rows.size(); ++j) {
        if (std::popcount(units_of(rows[j])) > std::popcount(units_of(rows[i]))) {
          std::swap(rows[i], rows[j]);
        }
      }
    }
  }
  // R4.11. Where one row holds everybody, and it is the first, there is nothing to pack.
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

class CoreModel {
 public:
  CoreModel(int low_share, int high_share, PreemptMode mode)
      : mode_{mode}, rows_{Rows{low_share}, Rows{high_share}} {
    jobs_.reserve(8);  // they keep their addresses
  }

  void submit(int id, bool high, Shape shape) {
    jobs_.push_back({.id = id, .high = high, .shape = shape});
  }

  // 3.4: whoever cannot start takes all nodes away from those behind it. Nodes of a job that has to
  // end take nobody until it is gone (R2.1), which it is after the pass.
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

  void end(int id) {
    CoreJob& job = jobs_[static_cast<std::size_t>(id - 1)];
    job.gone = true;
    rows_[job.high].remove(job);
    release(job);
    bury();
  }

  // 6.7, with P1.
  void tick() {
    for (const bool high : {true, false}) {
      const std::set<int> now = high ? std::set<int>{} : running_high();
      const List& list = list_[high];
      const bool waits =
          std::any_of(list.begin(), list.end(), [](const CoreJob* job) { return !job->runs(); });
      if (waits || (!high && now.size() > shadows_.size())) {
        rotate(high);
      } else if (!high && now != shadows_) {
        refill(high);
      }
    }
    bury();
  }

  const std::vector<CoreJob>& jobs() const { return jobs_; }

 private:
  // 4.5.2 for sharing jobs under GANG. Lower tiers' cores are free for the taking (Test 3).
  Units place(const CoreJob& job) {
    Units all = kAll;
    for (const CoreJob* other : dying_) {
      for (const Units node : kNodes) {
        if ((node & other->units) != 0) all &= ~node;
      }
    }
    if (const Units idle = pick(all & ~rows_[0].used() & ~rows_[1].used(), job.shape)) return idle;
    const Units mine = job.high ? all : all & ~rows_[1].used();  // Test 2
    if (pick(mine, job.shape) == 0) return 0;
    if (const Units over = pick(mine & ~rows_[job.high].used(), job.shape)) return over;  // 3
    for (const Units row : rows_[job.high].densest_first()) {                             // 4
      if (const Units beside = pick(mine & ~row, job.shape)) return beside;
    }
    return 0;
  }
  // The first node that suffices, or both; the lowest cores.
  static Units pick(Units free, Shape shape) {
    Units picked = 0;
    int nodes = 0;
    for (const Units node : kNodes) {
      if (nodes == shape.nodes || std::popcount(free & node) < shape.tasks_per_node) continue;
      ++nodes;
      Units left = free & node;
      for (int i = 0; i < shape.tasks_per_node; ++i) {
        picked |= left & ~(left - 1);
        left &= left - 1;
      }
    }
    return nodes == shape.nodes ? picked : 0;
  }

  std::set<int> running_high() const {
    std::set<int> ids;
    for (const CoreJob* job : list_[true]) {
      if (job->runs()) ids.insert(job->id);
    }
    return ids;
  }
  // What is taken before any job of the partition is looked at.
  Units shadows(bool high) {
    if (high) return 0;
    shadows_ = running_high();
    return units_running(true);
  }
  Units units_running(bool high) const {
    Units units = 0;
    for (const CoreJob* job : list_[high]) {
      if (job->runs()) units |= job->units;
    }
    return units;
  }
  // 6.4, P17: a shadow over this very job ends it where its mode says so.
  void stop(CoreJob& job) {
    job.row = CoreJob::Row::kNone;
    if (mode_ == PreemptMode::kSuspend || job.high) return;
    if ((units_running(true) & job.units) == 0) return;
    job.dying = true;
    dying_.push_back(&job);
    rows_[job.high].remove(job);
  }
  // 6.9
  void start(CoreJob& job) {
    list_[job.high].push_back(&job);
    const Units taken = units_running(job.high) | (job.high ? 0 : units_running(true));
    if ((taken & job.units) != 0) return stop(job);
    job.row = CoreJob::Row::kFiller;
    refill_all();
  }
  void refill_all() {
    refill(true);
    refill(false);
  }
  // 6.5
  void refill(bool high) {
    Units taken = shadows(high);
    for (const auto row : {CoreJob::Row::kActive, CoreJob::Row::kFiller}) {
      for (CoreJob* job : list_[high]) {
        if (job->row != row) continue;
        if ((taken & job->units) != 0) {
          stop(*job);
        } else {
          taken |= job->units;
        }
      }
    }
    for (CoreJob* job : list_[high]) {
      if (job->row != CoreJob::Row::kNone || job->dying || (taken & job->units) != 0) continue;
      taken |= job->units;
      job->row = CoreJob::Row::kFiller;
    }
  }
  // 6.6
  void rotate(bool high) {
    List& list = list_[high];
    std::stable_partition(list.begin(), list.end(),
                          [](const CoreJob* job) { return job->row != CoreJob::Row::kActive; });
    List ran;
    for (CoreJob* job : list) {
      if (job->runs()) ran.push_back(job);
      job->row = CoreJob::Row::kNone;
    }
    Units taken = shadows(high);
    for (CoreJob* job : list) {
      if (job->dying || (taken & job->units) != 0) continue;
      taken |= job->units;
      job->row = CoreJob::Row::kActive;
    }
    for (CoreJob* job : ran) {
      if (!job->runs()) stop(*job);
    }
  }
  // T5 to T7: whoever has to end is gone at once, and waits again where it is requeued.
  void bury() {
    while (!dying_.empty()) {
      CoreJob& job = *dying_.front();
      dying_.erase(dying_.begin());
      job.dying = false;
      job.gone = mode_ == PreemptMode::kCancel;
      release(job);
    }
  }
  void release(CoreJob& job) {
    std::erase(list_[job.high], &job);
    job.units = 0;
    job.row = CoreJob::Row::kNone;
    refill_all();
  }

  const PreemptMode mode_;
  std::array<Rows, 2> rows_;
  std::vector<CoreJob> jobs_;
  std::array<List, 2> list_;  // of the low and of the high partition
  List dying_;
  std::set<int> shadows_;  // over the low partition at its last rebuild
};

struct CoreWorld {
  int low_share = 1, high_share = 1;
  PreemptMode mode = PreemptMode::kSuspend;
  std::vector<std::size_t> jobs;  // index into kShapes, plus 4 in the high partition
  std::size_t ends = 0;           // index of the job that ends in the middle
};

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

class CoreDuel {
 public:
  explicit CoreDuel(const CoreWorld& world)
      : world_{world},
        model_{world.low_share, world.high_share, world.mode},
        driver_{configuration(world), nodes("n", 1, 2, 2), Options{.told_timing = true}} {}

  // Empty, or what differs.
  std::string run() {
    for (std::size_t i = 0; i < world_.jobs.size(); ++i) {
      submit(static_cast<int>(i) + 1, world_.jobs[i]);
      pass();
      if (auto found = compare("after job " + std::to_string(i + 1)); !found.empty()) return found;
    }
    if (std::string found = ticks(4); !found.empty()) return found;
    const int ended = static_cast<int>(world_.ends) + 1;
    if (model_.jobs()[world_.ends].units != 0) {
      model_.end(ended);
      tell(JobGone{JobId{ended}});
      if (std::string found = compare("after the end"); !found.empty()) return found;
    }
    pass();
    if (std::string found = compare("after the last pass"); !found.empty()) return found;
    return ticks(4);
  }

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
  void submit(int id, std::size_t kind) {
    const bool high = kind >= kShapes.size();
    const Shape shape = kShapes[kind % kShapes.size()];
    model_.submit(id, high, shape);
    JobRequest request = job(id, shape.nodes, high ? "high" : "low");
    request.tasks = shape.nodes * shape.tasks_per_node;
    tell(Submit{request});
  }
  void tell(const Event& event) {
    driver_.step(at(static_cast<double>(++time_)), event);
    for (const Decision& decision : driver_.take_log()) {
      const auto* waits = std::get_if<Waits>(&decision);
      if (waits != nullptr) last_word_ = "; job " + to_string(waits->job) + ": " + waits->message;
    }
  }
  void pass() {
    model_.pass();
    tell(Pass{});
  }
  std::string ticks(int count) {
    for (int i = 1; i <= count; ++i) {
      model_.tick();
      tell(SliceEnd{});
      if (std::string found = compare("tick " + std::to_string(i)); !found.empty()) return found;
    }
    return {};
  }
  Units units_of(int id) const {
    Units units = 0;
    const JobView view = driver_.view(id);
    if (view.allocation == nullptr) return 0;
    for (const NodeAllocation& use : view.allocation->nodes) {
      for (int core = 0; core < 2; ++core) {
        const int first = driver_.scheduler().node_name(use.node) == "n1" ? 0 : 2;
        if (use.cores.test(core)) units |= 1U << (first + core);
      }
    }
    return units;
  }
  std::string compare(const std::string& when) const {
    for (const CoreJob& job : model_.jobs()) {
      const std::string name = when + ": job " + std::to_string(job.id);
      const JobState state = driver_.view(job.id).state;
      if (is_terminal(state) != job.gone) return name + (job.gone ? " goes on" : " has ended");
      if (units_of(job.id) != job.units) {
        return name + " holds " + std::to_string(units_of(job.id)) + ", in the model " +
               std::to_string(job.units) + last_word_;
      }
      const bool runs = state == JobState::kRunning;
      if (runs != job.runs()) return name + (runs ? " runs" : " does not run");
    }
    return driver_.scheduler().check_invariants();
  }

  const CoreWorld& world_;
  CoreModel model_;
  Driver driver_;
  int time_ = 0;
  std::string last_word_;  // why somebody waits, for a failure
};

// All sequences of jobs; each is one of 8 kinds.
std::int64_t try_all(CoreWorld& world, std::size_t jobs_count) {
  if (world.jobs.size() < jobs_count) {
    std::int64_t tried = 0;
    for (std::size_t kind = 0; kind < 2 * kShapes.size() && !::testing::Test::HasFailure();
         ++kind) {
      world.jobs.push_back(kind);
      tried += try_all(world, jobs_count);
      world.jobs.pop_back();
    }
    return tried;
  }
  for (world.ends = 0; world.ends < jobs_count; ++world.ends) {
    const std::string difference = CoreDuel{world}.run();
    EXPECT_EQ(difference, "") << to_text(world);
    if (!difference.empty()) break;
  }
  return static_cast<std::int64_t>(jobs_count);
}

// 4.8, also for who may have one node only: Slurm 22.05 has no path of its own for it (4.7).
TEST(SmallCoreWorld, OneNodeIsTheTightestThatSuffices) {
  const std::vector<NodeSpec> two = nodes("n", 1, 2, 2);
  Configuration c = gang_linear({partition("p", two, OverSubscribe::kNo)});
  c.cluster.select = SelectType::kConsTres;
  c.cluster.unit = SelectUnit::kCore;
  Driver driver{c, two, Options{.told_timing = true}};
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
  driver.step(at(2), Pass{});
  EXPECT_EQ(driver.nodes_of(2), (std::vector<std::string>{"n2"}));
  driver.step(at(3), JobGone{JobId{2}});
  driver.step(at(4), Submit{one_task});
  driver.step(at(5), Pass{});
  EXPECT_EQ(driver.nodes_of(3), (std::vector<std::string>{"n2"}));
}

class SmallCoreWorlds : public ::testing::TestWithParam<PreemptMode> {};

TEST_P(SmallCoreWorlds, AllOfThemAreAsInTheModel) {
  std::int64_t tried = 0;
  for (const int low : {1, 2}) {
    for (const int high : {1, 2}) {
      for (std::size_t jobs = 1; jobs <= 3; ++jobs) {
        CoreWorld world{.low_share = low, .high_share = high, .mode = GetParam()};
        tried += try_all(world, jobs);
      }
    }
  }
  const bool longer = std::getenv("KUBEGANG_LONG") != nullptr;
  CoreWorld deep{.low_share = 2, .high_share = 2, .mode = GetParam()};
  if (longer) tried += try_all(deep, 4);
  const std::int64_t all = longer ? 6'688 + 16'384 : 6'688;
  EXPECT_EQ(tried, HasFailure() ? tried : all) << "the number of small worlds";
}

INSTANTIATE_TEST_SUITE_P(Modes, SmallCoreWorlds,
                         ::testing::Values(PreemptMode::kSuspend, PreemptMode::kCancel,
                                           PreemptMode::kRequeue));

}  // namespace
}  // namespace sched::testing
