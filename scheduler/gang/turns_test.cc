// Turns: what both kinds have in common. Two jobs hold all of one node; slices of 30 s end on the
// grid, or when the test says so. Drawings: one character for each slice, "#" = the job runs.
#include "scheduler/gang/turns.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/gang/own_turns.h"
#include "scheduler/replay/told_turns.h"
#include "scheduler/testing/cluster_driver.h"

namespace sched::gang {
namespace {

using testing::at;
using testing::seconds;

class TurnsTest : public ::testing::TestWithParam<bool>, public TurnEvents {
 protected:
  TurnsTest() {
    const std::vector<NodeSpec> one = testing::nodes("n", 1, 1);
    EXPECT_TRUE(cluster_.upsert_node(one.front()).ok());
    cluster_.configure(testing::gang_linear({testing::partition("p", one)}));
    cluster_.settle();
    books_.reshape();
    if (GetParam()) {
      auto turns = std::make_unique<ToldTurns>(cluster_, books_, *this);
      told_turns_ = turns.get();
      turns_ = std::move(turns);
    } else {
      turns_ = std::make_unique<OwnTurns>(cluster_, books_, *this, true);
    }
    turns_->configure();
  }

  // The job has started on all of the node, and is ready.
  Job& start(double t, std::int64_t id) {
    turns_->go_to(at(t), false);
    Job& job = books_.add(JobFacts::of(testing::job(id, 1, "p")));
    Allocation allocation;
    allocation.nodes.push_back(
        {.node = cluster_.find_node("n1").value(), .cores = CoreSet::first(4), .cpus = 4});
    allocation.whole_nodes = true;
    books_.begin(job, cluster_.find_partition("p").value(), std::move(allocation),
                 {.whole_nodes = true, .may_stack = true, .max_share = 4}, at(t));
    books_.set_ready(job, at(t));
    turns_->set_phase(job, JobClock::Phase::kRunning);
    turns_->start(job);
    return job;
  }
  // As the engine ends a job: first its turns, then its place in the books.
  void leave(double t, Job& job) {
    turns_->go_to(at(t), false);
    turns_->leave(job);
    books_.end(job, JobState::kCompleted);
  }
  void end_slice(int number) {
    turns_->go_to(at(30.0 * number), false);
    if (told_turns_ != nullptr) told_turns_->end_slice();
    turns_->wake();
    turns_->play();
  }
  // Slices 0 to 5 of both jobs.
  std::pair<std::string, std::string> draw(const Job& first, const Job& second) {
    std::pair<std::string, std::string> lines;
    for (int slot = 0; slot <= 5; ++slot) {
      if (slot > 0) end_slice(slot);
      lines.first += first.running() ? '#' : '.';
      lines.second += second.running() ? '#' : '.';
    }
    return lines;
  }

  void must_end(Job& victim, std::optional<JobId>) override { killed_.push_back(victim.id); }
  void times_changed(Job&) override {}
  void resumed(Job&) override {}

  Cluster cluster_;
  JobBooks books_{cluster_};
  std::unique_ptr<Turns> turns_;
  ToldTurns* told_turns_ = nullptr;  // that `turns_` is, if it is
  std::vector<JobId> killed_;
};

// 14.1: the second job waits for the second tick; from there on they take turns.
TEST_P(TurnsTest, JobsOfOneNodeRunByTurns) {
  Job& first = start(1, 1);
  Job& second = start(2, 2);
  // Job 1 is FILLER at the tick of 30 s and keeps its place in front; at 60 s it is ACTIVE and
  // moves behind job 2 (R6.6). Slots: 0 and 1 of job 1, then one each.
  const auto [one, two] = draw(first, second);
  EXPECT_EQ(one, "##.#.#");
  EXPECT_EQ(two, "..#.#.");
  EXPECT_EQ(turns_->check_invariants(), "");
  EXPECT_TRUE(killed_.empty());
}

// Run time is the time in which the job had its turn; the rest is suspended time.
TEST_P(TurnsTest, ClocksCountTurns) {
  Job& first = start(0, 1);
  Job& second = start(0, 2);
  draw(first, second);
  turns_->go_to(at(160), false);
  // Job 1 has slots 0, 1, 3 and the 10 s of slot 5 up to 160 s; job 2 has slots 2 and 4.
  EXPECT_EQ(turns_->run_time(first, at(160)), seconds(30 + 30 + 30 + 10));
  EXPECT_EQ(turns_->suspend_time(first, at(160)), seconds(30 + 30));
  EXPECT_EQ(turns_->run_time(second, at(160)), seconds(30 + 30));
}

// The same when no question is asked between the slices, and no job's record is read.
TEST_P(TurnsTest, ClocksCountTurnsThatWereNotLookedAt) {
  Job& first = start(0, 1);
  Job& second = start(0, 2);
  for (int number = 1; number <= 5; ++number) {
    turns_->go_to(at(30.0 * number), false);
    if (told_turns_ != nullptr) told_turns_->end_slice();
  }
  turns_->go_to(at(160), false);
  EXPECT_EQ(turns_->run_time(first, at(160)), seconds(30 + 30 + 30 + 10));
  EXPECT_EQ(turns_->suspend_time(first, at(160)), seconds(30 + 30));
  EXPECT_EQ(turns_->run_time(second, at(160)), seconds(30 + 30));
  EXPECT_EQ(turns_->suspend_time(second, at(160)), seconds(30 + 30 + 30 + 10));
  turns_->play();
  EXPECT_TRUE(first.running());
  EXPECT_TRUE(second.suspended());
  EXPECT_EQ(second.reason, Reason::kTimeslice);
}

// A hole is filled at once and not at the next tick (6.8).
TEST_P(TurnsTest, AJobThatIsLeftAloneRunsOn) {
  Job& first = start(0, 1);
  Job& second = start(0, 2);
  EXPECT_FALSE(second.running());
  books_.take_decisions();
  leave(10, first);
  EXPECT_TRUE(second.running());
  EXPECT_EQ(books_.take_decisions(), (std::vector<Decision>{Resume{JobId{2}}}));
  EXPECT_FALSE(first.turn.in_gang);
}

// It has run for 10 s of 60. With told turns it would have ended at 60, as Slurm takes it to.
TEST_P(TurnsTest, ExpectAJobThatItsUserHasSuspendedToGoOnNow) {
  Job& job = start(0, 1);
  turns_->go_to(at(10), false);
  books_.give_cores_back(job);
  turns_->leave(job);
  books_.suspend_by_user(job);
  turns_->set_phase(job, JobClock::Phase::kSuspended);
  turns_->go_to(at(100), false);
  EXPECT_EQ(turns_->expected_end(job, seconds(60), base::kNever), GetParam() ? at(60) : at(150));
}

INSTANTIATE_TEST_SUITE_P(Kinds, TurnsTest, ::testing::Bool(),
                         [](const auto& told) { return told.param ? "Told" : "Own"; });

}  // namespace
}  // namespace sched::gang
