// The verdict on one job in one partition, as a word and what belongs to it: "Fits ab",
// "NeedsVictims ab: 8", "OverLimit QOSMaxNodePerJob". Nodes are a to d.
#include "scheduler/pass/start_attempt.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "scheduler/model/reason_names.h"
#include "scheduler/testing/pass_world.h"

namespace sched::testing {
namespace {

class StartAttemptTest : public ::testing::Test {
 protected:
  // `nodes`: those that are available.
  std::string verdict(std::int64_t id, const std::string& nodes = "abcd", double now = 1) {
    return verdict(job(id, 1), nodes, now);
  }
  // Asks about the job, which is submitted when it is first asked about. A question changes
  // nothing: neither the books, nor the decisions, nor the job.
  std::string verdict(const JobRequest& request, const std::string& nodes = "abcd",
                      double now = 1) {
    Job* job = world_->books.find(request.id);
    if (job == nullptr) job = &world_->submit(request);
    StartAttempt attempt{world_->cluster, world_->groups, world_->books, world_->limits};
    NodeSet available = world_->cluster.no_nodes();
    for (const char letter : nodes) {
      available.set(world_->cluster.rank(world_->cluster.find_node(std::string{letter}).value()));
    }
    const PartitionIndex partition = job->queued.in.front().partition;
    const int count = (available & world_->cluster.partition(partition).nodes).count();
    const auto version = world_->books.version();
    (void)world_->books.take_decisions();
    StartAttempt::Answer answer =
        attempt.run(*job, partition, {.nodes = available, .in_partition = count}, at(now));
    EXPECT_EQ(world_->books.version(), version) << "it was only asked";
    EXPECT_TRUE(world_->books.take_decisions().empty());
    EXPECT_TRUE(job->pending());
    valid_until_ = answer.valid_until;
    return std::visit([&](const auto& each) { return text(each); }, answer.verdict);
  }
  std::string text(const Fits& fits) const { return "Fits " + world_->letters(fits.allocation); }
  std::string text(const NeedsVictims& needs) const {
    std::string text = "NeedsVictims " + world_->letters(needs.allocation) + ":";
    for (const Candidate& victim : needs.victims) text += " " + to_string(victim.job->id);
    return text;
  }
  static std::string text(const TooFewLeft&) { return "TooFewLeft"; }
  static std::string text(const Busy&) { return "Busy"; }
  static std::string text(const NotAvailable&) { return "NotAvailable"; }
  static std::string text(const Never&) { return "Never"; }
  static std::string text(const OverLimit& over) {
    return "OverLimit " + std::string{name_of(over.reason)};
  }
  void begin(const Configuration& configuration) {
    world_ = std::make_unique<PassWorld>(configuration);
  }
  // Tiers low and high; a job of low is safe for its first minute.
  void begin_preempting(PreemptMode mode) {
    Configuration configuration = PassWorld::one_partition();
    configuration.partitions = {PassWorld::closed("low", "abcd", 1),
                                PassWorld::closed("high", "abcd", 2)};
    configuration.cluster.preempt_type = PreemptType::kPartitionPriority;
    configuration.cluster.preempt_mode = mode;
    configuration.cluster.preempt_exempt_time = seconds(60);
    begin(configuration);
  }

  std::unique_ptr<PassWorld> world_ = std::make_unique<PassWorld>();
  base::Instant valid_until_{};
};

// Free and available are two things: node a is busy, node b is withheld from the job. The answer
// holds until an event.
TEST_F(StartAttemptTest, FitsOnTheAvailableNodesThatAreFree) {
  EXPECT_EQ(verdict(job(1, 2)), "Fits ab");
  world_->run(9, "a");
  EXPECT_EQ(verdict(job(1, 2)), "Fits bc");
  EXPECT_EQ(verdict(job(1, 2), "acd"), "Fits cd");
  EXPECT_EQ(valid_until_, base::kNever);
}

// "Left" counts nodes that are busy, too: those that wait for them wait for jobs, not for nodes.
TEST_F(StartAttemptTest, TooFewNodesLeftIsSaidBeforeAPlacementIsTried) {
  // Three nodes are wanted and two are available; in the second case four are, two of them busy.
  EXPECT_EQ(verdict(job(1, 3), "ab"), "TooFewLeft");
  world_->run(9, "ab");
  EXPECT_EQ(verdict(job(1, 3)), "Busy");
}

// 3.6 step 5: the job would fit on available nodes once they are free (busy), on nodes that are not
// available (down or withheld), or nowhere. Each has another consequence in the pass.
TEST_F(StartAttemptTest, TellsWhatIsBusyFromWhatIsMissingAndWhatIsImpossible) {
  world_->run(9, "a");
  JobRequest wants_a = job(1, 1);
  wants_a.required_nodes = {"a"};
  EXPECT_EQ(verdict(wants_a), "Busy");
  EXPECT_EQ(verdict(wants_a, "bcd"), "NotAvailable");
  EXPECT_EQ(verdict(job(2, 5)), "Never");
}

// A node that has just refused the job is not offered to it again, and the answer says how long.
TEST_F(StartAttemptTest, AvoidsTheNodesThatRefusedItUntilThen) {
  Job& job = world_->submit(1, 1);
  job.retry.nodes = {world_->cluster.find_node("a").value()};
  job.retry.nodes_until = at(30);
  EXPECT_EQ(verdict(1), "Fits b");
  EXPECT_EQ(valid_until_, at(30));
  EXPECT_EQ(verdict(1, "abcd", 30), "Fits a");
  EXPECT_EQ(valid_until_, base::kNever);
}

// PreemptExemptTime (7.3 step 5). The refusal says how long it holds, or the pass would not be made
// again at 60 without an event.
TEST_F(StartAttemptTest, VictimsHaveToEndFirstAndExemptOnesSayUntilWhen) {
  begin_preempting(PreemptMode::kCancel);
  world_->run(8, "abc", "low");
  world_->submit(1, 4, "high");
  // Job 8 runs since 0 and is exempt for 60 s; one idle node is not enough for four.
  EXPECT_EQ(verdict(1, "abcd", 59), "Busy");
  EXPECT_EQ(valid_until_, at(60));
  EXPECT_EQ(verdict(1, "abcd", 60), "NeedsVictims abcd: 8");
}

// The gang stops them when the preemptor starts.
TEST_F(StartAttemptTest, SuspendedVictimsAreNotWaitedFor) {
  begin_preempting(PreemptMode::kSuspend);
  world_->run(8, "abcd", "low");
  world_->submit(1, 4, "high");
  EXPECT_EQ(verdict(1, "abcd", 60), "Fits abcd");
}

// Node sets are kept from one question to the next and mended where something changed: the answers,
// with the numbers of nodes in them, are those of an object that was never asked before.
TEST_F(StartAttemptTest, WhatIsKeptChangesNoAnswer) {
  const auto attempt = [&] {
    return StartAttempt{world_->cluster, world_->groups, world_->books, world_->limits};
  };
  StartAttempt asked = attempt();
  // Jobs of one, two and four nodes wait all the time, and are asked about while jobs of one node
  // come and go and nodes are drained.
  std::vector<Job*> waiting;
  for (const int nodes_count : {1, 2, 4}) {
    waiting.push_back(&world_->submit(100 + nodes_count, nodes_count));
  }
  const auto answer_of = [&](StartAttempt& of, const Job& job) {
    const PartitionIndex partition = job.queued.in.front().partition;
    const NodeSet& up = world_->groups.up();
    const StartAttempt::Answer answer =
        of.run(job, partition, {.nodes = up, .in_partition = up.count()}, at(1));
    const auto* busy = std::get_if<Busy>(&answer.verdict);
    return std::visit([&](const auto& each) { return text(each); }, answer.verdict) +
           (busy == nullptr ? "" : ": " + busy->message);
  };
  base::Prng prng{11};
  std::map<std::int64_t, std::string> runs;  // by number: its node
  for (std::int64_t i = 1; i <= 400; ++i) {
    const std::string node(1, static_cast<char>('a' + prng.below(4)));
    const auto on_node =
        std::ranges::find(runs, node, &std::pair<const std::int64_t, std::string>::second);
    if (prng.below(4) == 0) {
      world_->set_state(node, prng.below(3) == 0 ? NodeState::kDrain : NodeState::kUp);
    } else if (on_node == runs.end()) {
      world_->run(1000 + i, node);
      runs[1000 + i] = node;
    } else {
      world_->end(on_node->first);
      runs.erase(on_node);
    }
    if (prng.below(3) == 0) continue;  // several changes at once
    const Job& job = *waiting[prng.below(waiting.size())];
    StartAttempt fresh = attempt();
    ASSERT_EQ(answer_of(asked, job), answer_of(fresh, job)) << "step " << i;
  }
}

// A limit on jobs is asked first, one on resources only of what was found; if nothing is free, it
// is asked of what the job wants, so that the job does not hold up the jobs behind it.
TEST_F(StartAttemptTest, LimitsAreAskedBeforeAndAfterThePlacement) {
  Configuration configuration = PassWorld::one_partition();
  configuration.qos = {{.name = "one"}, {.name = "small"}};
  configuration.qos[0].limits.group_jobs = 0;
  configuration.qos[1].limits.group_tres[Tres::kNode] = 1;
  begin(configuration);
  JobRequest first = job(1, 2);
  first.qos = "one";
  EXPECT_EQ(verdict(first), "OverLimit QOSGrpJobsLimit");
  JobRequest second = job(2, 2);
  second.qos = "small";
  EXPECT_EQ(verdict(second), "OverLimit QOSGrpNodeLimit");
  world_->run(9, "abcd");
  EXPECT_EQ(verdict(second), "OverLimit QOSGrpNodeLimit");
  EXPECT_EQ(verdict(job(3, 1)), "Busy");
}

}  // namespace
}  // namespace sched::testing
