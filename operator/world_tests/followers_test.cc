// Jobs whose pods follow one another: batch Jobs with more completions than parallelism, and
// kubegang Jobs with spec.completions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "api/wellknown.h"
#include "kube/api/batch_job.h"
#include "operator/testing/batch_job_fixture.h"
#include "timetable/timetable.h"
#include "translation/members.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Returns a batch Job of `completions` pods, each of which works for `work` ("10s"), `parallelism`
// of them at once.
json sweep(const std::string& name, int parallelism, int completions, const std::string& work,
           const json& more = nullptr, const json& annotations = nullptr) {
  return make_batch_job(name, {.parallelism = parallelism, .completions = completions}, work, more,
                        annotations);
}

// A "round" below is one pod of each place: its work, and the time until the next pod runs there.
class FollowersTest : public BatchJobFixture {
 protected:
  bool ends(const std::string& name, base::Duration limit = minutes{10}) {
    return BatchJobFixture::ends(name, limit);
  }
  // Lets time pass until the status tells at least `count` successes.
  bool have_succeeded(const std::string& name, int count) {
    return world_.run_until([&] { return get(name).status.succeeded >= count; }, minutes{5});
  }
  // Returns how many pods of each index have succeeded.
  static std::map<int, int> successes(World& world) {
    std::map<int, int> count;
    for (const kube::Pod& pod : world.pods()) {
      if (pod.status.phase != kube::PodPhase::kSucceeded) continue;
      ++count[std::stoi(pod.metadata.labels.at("kubegang.io/task"))];
    }
    return count;
  }
  // Returns the result of successes() if each index has succeeded exactly once, which is the aim of
  // all tests here.
  static std::map<int, int> once_each(int completions) {
    std::map<int, int> count;
    for (int index = 0; index < completions; ++index) count[index] = 1;
    return count;
  }
};

// Two places, six pods: three rounds in one start of one kubegang Job, on one node. A requeue
// between the rounds would give the nodes away and let the queue come in between.
TEST_F(FollowersTest, TakeThePlacesOfThoseThatHaveSucceeded) {
  create(sweep("sweep", 2, 6, "10s"));
  std::int32_t succeeded = 0;
  std::int32_t active = 0;
  int rises = 0;
  const bool ended = world_.run_until(
      [&] {
        const kube::BatchJobStatus status = get("sweep").status;
        EXPECT_GE(status.succeeded, succeeded);
        EXPECT_LE(status.ready, status.active);
        if (status.succeeded > succeeded) ++rises;
        succeeded = status.succeeded;
        active = std::max(active, status.active);
        return kube::is_finished(status);
      },
      minutes{5});
  ASSERT_TRUE(ended) << world_.log_tail();
  EXPECT_EQ(active, 2);
  EXPECT_GE(rises, 2) << "it is told while the Job runs";
  const kube::BatchJobStatus done = get("sweep").status;
  EXPECT_TRUE(kube::is_true(done.conditions, kube::kBatchComplete));
  EXPECT_EQ(done.succeeded, 6);
  EXPECT_EQ(done.completed_indexes, "0-5");
  EXPECT_EQ(done.failed, 0);
  ASSERT_THAT(ours(), SizeIs(1));
  const kube::Job job = ours().front();
  EXPECT_EQ(job.status.starts, 1);
  EXPECT_EQ(job.status.succeeded_indexes, "0-5");
  EXPECT_EQ(successes(world_), once_each(6));
  // Three rounds of 10 s; its run time has not begun again.
  EXPECT_GE(job.status.run_time->elapsed, seconds{28});
  for (const kube::Pod& pod : world_.pods()) {
    const std::string index = pod.metadata.labels.at("kubegang.io/task");
    EXPECT_EQ(pod.metadata.annotations.at("batch.kubernetes.io/job-completion-index"), index);
    EXPECT_EQ(pod.spec.hostname, "sweep-" + index);
    EXPECT_EQ(pod.spec.node_name, world_.pods().front().spec.node_name);
  }
  expect_no_violations(world_);
}

// A pod has done its work before the gang has settled, and its object is deleted: nothing is made
// in its place, and the gang must not wait for it, or the Job would run forever.
TEST_F(FollowersTest, GoOnWithoutAPodThatSucceededBeforeTheGangWasReady) {
  json config = linear_config("4s");
  config["spec"]["timetable"]["settle"] = "8s";
  world_.apply(config);
  create(sweep("sweep", 2, 6, "1s", nullptr, {{"test/work-of-others", "20s"}}));
  ASSERT_TRUE(world_.run_until([&] { return !successes(world_).empty(); }, minutes{1}));
  world_.run_for(world_.tick);  // the operator has seen it
  for (const kube::Pod& pod : world_.pods()) {
    if (pod.status.phase != kube::PodPhase::kSucceeded) continue;
    ASSERT_TRUE(world_.client()
                    .remove<kube::Pod>(kube::key_of(pod.metadata), {.grace_period = seconds{0}})
                    .ok());
    break;
  }
  ASSERT_FALSE(kube::is_true(ours().front().status.conditions, kube::kReady));
  ASSERT_TRUE(ends("sweep")) << world_.log_tail();
  EXPECT_EQ(get("sweep").status.succeeded, 6);
  EXPECT_EQ(ours().front().status.starts, 1);
}

// kubectl cordon, and drain: the node empties as its pods end, and nothing new starts there. The
// gang goes on at its other place; when the node is back, so does that place.
TEST_F(FollowersTest, StartNothingOnANodeThatIsCordoned) {
  json job = sweep("sweep", 2, 12, "10s");
  job["metadata"]["annotations"]["kubegang.io/nodes"] = "2";
  create(job);
  ASSERT_TRUE(have_succeeded("sweep", 2)) << world_.log_tail();
  const std::string node = *world_.pods().front().spec.node_name;
  const auto mark = [&](bool cordoned) {
    ASSERT_TRUE(world_.client()
                    .patch<kube::Node>({"", node}, {{"spec", {{"unschedulable", cordoned}}}})
                    .ok());
  };
  const auto pods_there = [&] {
    return std::ranges::count_if(world_.pods(),
                                 [&](const kube::Pod& pod) { return pod.spec.node_name == node; });
  };
  mark(true);
  world_.run_for(world_.tick);
  const auto there = pods_there();
  ASSERT_TRUE(have_succeeded("sweep", 6)) << world_.log_tail();
  EXPECT_EQ(pods_there(), there);
  mark(false);
  ASSERT_TRUE(ends("sweep")) << world_.log_tail();
  EXPECT_GT(pods_there(), there);
  EXPECT_EQ(ours().front().status.starts, 1);
  EXPECT_EQ(successes(world_), once_each(12));
  expect_no_violations(world_);
}

// No place is left: when its last pods have ended, the rest runs on another node, and that is not a
// failure. A leader that comes meanwhile does the same.
TEST_F(FollowersTest, GoElsewhereWhenAllTheirNodesAreCordoned) {
  create(sweep("sweep", 2, 8, "10s"));
  ASSERT_TRUE(have_succeeded("sweep", 2)) << world_.log_tail();
  const std::string node = *world_.pods().front().spec.node_name;
  ASSERT_TRUE(
      world_.client().patch<kube::Node>({"", node}, {{"spec", {{"unschedulable", true}}}}).ok());
  world_.run_for(world_.tick);
  const auto pods_there = [&] {
    return std::ranges::count_if(world_.pods(),
                                 [&](const kube::Pod& pod) { return pod.spec.node_name == node; });
  };
  const auto there = pods_there();
  world_.run_for(seconds{3});
  world_.restart_operator();
  ASSERT_TRUE(ends("sweep")) << world_.log_tail();
  EXPECT_LE(pods_there(), there);
  EXPECT_EQ(get("sweep").status.succeeded, 8);
  EXPECT_EQ(get("sweep").status.failed, 0);
  EXPECT_EQ(ours().front().status.starts, 2);
  EXPECT_EQ(successes(world_), once_each(8));
  expect_no_violations(world_);
}

// The batch group promises no index in this mode, so programs must not see one. The operator still
// counts by index: the label kubegang.io/task is its own.
TEST_F(FollowersTest, NeedNoIndexes) {
  create(sweep("sweep", 3, 7, "5s", {{"completionMode", "NonIndexed"}}));
  ASSERT_TRUE(ends("sweep")) << world_.log_tail();
  EXPECT_EQ(get("sweep").status.succeeded, 7);
  EXPECT_EQ(get("sweep").status.completed_indexes, "");
  EXPECT_EQ(successes(world_), once_each(7));
  for (const kube::Pod& pod : world_.pods()) {
    EXPECT_FALSE(pod.metadata.labels.contains("batch.kubernetes.io/job-completion-index"));
  }
}

// The pod that is done first gives its place to the next one: the lowest index that is left.
// Pod 0 works for 40 s, the others for 5 s: four of them run beside it, one after the other.
TEST_F(FollowersTest, OfAPodThatTakesLongerWaitForNoOther) {
  json job = sweep("sweep", 2, 5, "40s", nullptr, {{"test/work-of-others", "5s"}});
  create(job);
  ASSERT_TRUE(have_succeeded("sweep", 4)) << world_.log_tail();
  EXPECT_EQ(get("sweep").status.completed_indexes, "1-4");
  ASSERT_TRUE(ends("sweep"));
  EXPECT_EQ(successes(world_), once_each(5));
  expect_no_violations(world_);
}

// A failure ends the gang, and the next attempt goes on where it ended: what had succeeded stays.
// Pod 3 fails once. Two kubegang Jobs: the attempt that failed and the one that ended the work.
TEST_F(FollowersTest, AFailureRunsNothingAgainThatHasSucceeded) {
  create(sweep("sweep", 2, 6, "10s", nullptr, {{"test/fails", "sweep:3"}}));
  ASSERT_TRUE(ends("sweep")) << world_.log_tail();
  const kube::BatchJobStatus done = get("sweep").status;
  EXPECT_TRUE(kube::is_true(done.conditions, kube::kBatchComplete)) << world_.log_tail();
  EXPECT_EQ(done.failed, 1);
  EXPECT_EQ(done.succeeded, 6);
  EXPECT_EQ(done.completed_indexes, "0-5");
  EXPECT_EQ(successes(world_), once_each(6));
  EXPECT_THAT(ours(), SizeIs(2));
  expect_no_violations(world_);
}

// The count is all that is left if the kubegang Job of the failed attempt is deleted. The status of
// an Indexed Job says which indexes are done, that of a NonIndexed one only how many.
TEST_F(FollowersTest, ADeletedJobOfOursTakesNothingBack) {
  for (const char* mode : {"Indexed", "NonIndexed"}) {
    const std::string name = mode == std::string{"Indexed"} ? "first" : "second";
    create(sweep(name, 2, 8, "10s", {{"completionMode", mode}}));
    ASSERT_TRUE(have_succeeded(name, 4)) << world_.log_tail();
    world_.remove_job(name);
    ASSERT_TRUE(ends(name)) << world_.log_tail();
    EXPECT_EQ(get(name).status.succeeded, 8);
    EXPECT_EQ(get(name).status.failed, 0);
    int pods = 0;
    for (const auto& [index, count] : successes(world_)) pods += count;
    EXPECT_LE(pods, 5) << "four were counted; their pods went with the Job";
    ASSERT_TRUE(world_.client().remove<kube::BatchJob>({kTeam, name}).ok());
    world_.run_for(seconds{10});
  }
  expect_no_violations(world_);
}

// A suspension deletes the kubegang Job with its pods; a success that was not written by then is
// lost and must be run again. None that was written may be.
TEST_F(FollowersTest, GoOnAfterASuspension) {
  create(sweep("sweep", 2, 6, "10s"));
  ASSERT_TRUE(have_succeeded("sweep", 2));
  // Two more succeed, and are suspended before their success is written.
  world_.run_for(seconds{6});
  const auto patch = [&](bool on) {
    ASSERT_TRUE(world_.client()
                    .patch<kube::BatchJob>({kTeam, "sweep"}, {{"spec", {{"suspend", on}}}})
                    .ok());
  };
  patch(true);
  ASSERT_TRUE(world_.run_until(
      [&] { return condition("sweep", kube::kBatchSuspended).starts_with("True"); }, minutes{1}))
      << world_.log_tail();
  const int counted = get("sweep").status.succeeded;
  EXPECT_GE(counted, 2);
  EXPECT_EQ(get("sweep").status.active, 0);
  patch(false);
  ASSERT_TRUE(ends("sweep")) << world_.log_tail();
  EXPECT_EQ(get("sweep").status.succeeded, 6);
  int pods = 0;
  for (const auto& [index, count] : successes(world_)) pods += count;
  EXPECT_EQ(pods, 6 - counted) << "the others were deleted with the Job before";
  expect_no_violations(world_);
}

// Requeued as a lost member requeues any gang; the successes stay. A deleted pod is not a failure
// of the batch Job: backoffLimit is untouched, and it is the same attempt.
TEST_F(FollowersTest, ALostMemberRequeuesTheGangWithWhatIsLeft) {
  create(sweep("sweep", 2, 6, "10s"));
  ASSERT_TRUE(have_succeeded("sweep", 2));
  for (const kube::Pod& pod : world_.pods()) {
    if (pod.status.phase != kube::PodPhase::kRunning) continue;
    ASSERT_TRUE(world_.client().remove<kube::Pod>({kTeam, pod.metadata.name}).ok());
    break;
  }
  ASSERT_TRUE(ends("sweep")) << world_.log_tail();
  EXPECT_EQ(get("sweep").status.failed, 0);
  ASSERT_THAT(ours(), SizeIs(1));
  EXPECT_EQ(ours().front().status.restarts, 1);
  EXPECT_EQ(successes(world_), once_each(6)) << "logs of all are there, of both starts";
  expect_no_violations(world_);
}

// Two of its three places stay empty in the second start. A new leader finds the same. The one
// index that is left is written down with the start (memberIndexes); a leader that computed it
// again from the pods could come to another result.
TEST_F(FollowersTest, MayBeFewerThanPlacesAfterARequeue) {
  create(sweep("sweep", 3, 4, "10s"));
  ASSERT_TRUE(have_succeeded("sweep", 3));
  for (const kube::Pod& pod : world_.pods()) {
    if (pod.status.phase != kube::PodPhase::kRunning) continue;
    ASSERT_TRUE(world_.client().remove<kube::Pod>({kTeam, pod.metadata.name}).ok());
  }
  ASSERT_TRUE(world_.run_until([&] { return world_.job("sweep").status.starts == 2; }, minutes{1}))
      << world_.log_tail();
  EXPECT_EQ(world_.job("sweep").status.member_indexes, "3");
  world_.restart_operator();
  ASSERT_TRUE(ends("sweep")) << world_.log_tail();
  EXPECT_EQ(successes(world_), once_each(4));
  expect_no_violations(world_);
}

// A success that is stored counts, whatever becomes of its pod: users and clean-up controllers
// delete finished pods.
TEST_F(FollowersTest, APodThatIsDoneMayBeDeleted) {
  create(sweep("sweep", 2, 6, "10s"));
  ASSERT_TRUE(have_succeeded("sweep", 2));
  for (const kube::Pod& pod : world_.pods()) {
    if (pod.status.phase != kube::PodPhase::kSucceeded) continue;
    ASSERT_TRUE(world_.client().remove<kube::Pod>({kTeam, pod.metadata.name}).ok());
  }
  ASSERT_TRUE(ends("sweep")) << world_.log_tail();
  EXPECT_EQ(ours().front().status.starts, 1);
  EXPECT_EQ(get("sweep").status.succeeded, 6);
}

// Three of nine are enough. The pod that runs beside the third may succeed in the same moment and
// then counts, too; no further one is started.
TEST_F(FollowersTest, EndEarlyBySuccessPolicy) {
  const json policy{{"rules", json::array({{{"succeededCount", 3}}})}};
  create(sweep("sweep", 2, 9, "10s", {{"successPolicy", policy}}));
  ASSERT_TRUE(ends("sweep")) << world_.log_tail();
  EXPECT_THAT(condition("sweep", kube::kBatchComplete), HasSubstr("True: SuccessPolicy"));
  EXPECT_GE(get("sweep").status.succeeded, 3);
  EXPECT_LE(get("sweep").status.succeeded, 4) << "two run at once";
}

// The work takes 3 rounds of 10 s, and the limit is for all of them. The third round is cut, and
// what had succeeded before stays told.
TEST_F(FollowersTest, HaveOneTimeLimitTogether) {
  create(sweep("sweep", 2, 6, "10s", {{"activeDeadlineSeconds", 25}}));
  ASSERT_TRUE(ends("sweep")) << world_.log_tail();
  EXPECT_THAT(condition("sweep", kube::kBatchFailed), HasSubstr("True: DeadlineExceeded"));
  EXPECT_EQ(get("sweep").status.completed_indexes, "0-3");
}

// Gangs whose members change take turns like any others. The World looks for overlaps. The
// timetable names pods, so it must follow each change of members: a pod that was missing in it
// would run in the time of another gang.
TEST_F(FollowersTest, TakeTurnsWithOtherGangs) {
  world_.apply(partition("batch", force()));
  world_.apply(gang_job("other", 5, "60s"));
  world_.run_for(seconds{6});
  create(sweep("sweep", 5, 15, "10s", nullptr, nullptr));
  json wide = sweep("wide", 5, 10, "9s");
  wide["metadata"]["annotations"]["kubegang.io/nodes"] = "5";
  create(wide);
  ASSERT_TRUE(ends("sweep", minutes{20})) << world_.log_tail();
  ASSERT_TRUE(ends("wide", minutes{20})) << world_.log_tail();
  EXPECT_TRUE(world_.run_until([&] { return world_.state("other") == "Completed"; }, minutes{10}));
  expect_no_violations(world_);
}

// Goal: a sweep of pods that end before they have settled gets its own turns and not the other
// gang's too. Method: pods of 1 s, each of which is followed by the next one within a second, so
// that a pod which may be made at any time would be there in most of the other gang's slots of 10
// s.
TEST_F(FollowersTest, ThatEndBeforeTheyHaveSettledKeepToTheirTurns) {
  world_.apply(linear_config("10s"));
  world_.apply(partition("batch", force()));
  world_.apply(gang_job("other", 5, ""));
  world_.run_for(seconds{6});
  json wide = sweep("wide", 5, 500, "1s");
  wide["metadata"]["annotations"]["kubegang.io/nodes"] = "5";
  create(wide);
  ASSERT_TRUE(have_succeeded("wide", 10)) << world_.log_tail();
  const auto others_turn = [this] {
    const kube::NodeTimetableSpec spec = world_.timetable("n14").spec;
    for (std::size_t i = 0; i < spec.pods.size(); ++i) {
      if (!spec.pods[i].name.starts_with("other-")) continue;
      return timetable::runs_at(spec.timetable, static_cast<std::uint16_t>(i),
                                world_.clock().wall());
    }
    return false;
  };
  const auto runs_a_pod = [this] {
    return std::ranges::any_of(world_.pods(), [](const kube::Pod& pod) {
      return pod.metadata.name.starts_with("wide-") && pod.spec.node_name == "n14" &&
             pod.status.phase == kube::PodPhase::kRunning;
    });
  };
  int turns = 0, together = 0;
  const int before = get("wide").status.succeeded;
  for (base::Duration passed{0}; passed < minutes{2}; passed += world_.tick) {
    world_.run_for(world_.tick);
    if (!others_turn()) continue;
    ++turns;
    if (runs_a_pod()) ++together;
  }
  EXPECT_GE(turns * world_.tick, seconds{48}) << "it has half of the time";
  EXPECT_LE(together, turns / 20) << "of " << turns << " looks";
  // In six turns of 10 s, of which 3 s are left for the last pod to settle: two rounds at least.
  EXPECT_GE(get("wide").status.succeeded, before + 60);
}

// Goal: a new leader names the next pods in timetables before they are made, also if it plans
// nothing else there, and if its predecessor has stored their places and named them nowhere.
// Method: an agent leaves a pod that no timetable lists alone, so each pod that runs is listed.
TEST_F(FollowersTest, AreListedByANewLeader) {
  const auto unlisted = [this](const std::string& job) {
    std::string names;
    for (const kube::Pod& pod : world_.pods_of(job)) {
      if (pod.status.phase != kube::PodPhase::kRunning) continue;
      const auto pods = world_.timetable(pod.spec.node_name.value_or("")).spec.pods;
      const std::string& name = pod.metadata.name;
      if (std::ranges::find(pods, name, &kube::TimetablePod::name) == pods.end()) names += name;
    }
    return names;
  };
  world_.apply(partition("batch", force()));
  world_.apply(gang_job("other", 5, "400s"));
  for (const std::string name : {"before", "between"}) {
    create(sweep(name, 2, 6, "10s"));
    const auto ready = [&] {
      return kube::is_true(world_.job(name).status.conditions, kube::kReady);
    };
    ASSERT_TRUE(world_.run_until(ready, minutes{5})) << world_.log_tail();
    if (name == "before") {
      world_.run_for(seconds{1});
      world_.restart_operator();
    } else {
      world_.crash_after(WritePoint::kReady);  // with which places are stored
    }
    const auto is_over = [&] { return kube::is_finished(get(name).status); };
    ASSERT_TRUE(
        world_.run_until([&] { return is_over() || !unlisted(name).empty(); }, minutes{10}));
    EXPECT_EQ(unlisted(name), "") << world_.log_tail();
    ASSERT_TRUE(world_.run_until(is_over, minutes{10}));
  }
  EXPECT_EQ(world_.crashes(), 1);
  expect_no_violations(world_);
}

// A gang that runs is requeued if a node has no room for the next pod, and fails if the pod cannot
// run anywhere. "refused": kubelet turns pod 3 away once. "stuck": the image of pod 4 cannot be
// had, and backoffLimit 0 makes that final.
TEST_F(FollowersTest, ThatCannotStartEndTheGang) {
  create(
      sweep("refused", 2, 6, "10s", {{"backoffLimit", 0}},
            {{"test/refuse", "OutOfmemory"}, {"test/refuse-index", "3"}, {"test/refusals", "1"}}));
  ASSERT_TRUE(ends("refused")) << world_.log_tail();
  EXPECT_TRUE(kube::is_true(get("refused").status.conditions, kube::kBatchComplete))
      << world_.log_tail();
  EXPECT_EQ(ours().front().status.restarts, 1);
  EXPECT_EQ(get("refused").status.succeeded, 6);
  create(sweep("stuck", 2, 6, "10s", {{"backoffLimit", 0}},
               {{"test/waiting", "ErrImagePull"}, {"test/waiting-index", "4"}}));
  ASSERT_TRUE(ends("stuck")) << world_.log_tail();
  EXPECT_THAT(condition("stuck", kube::kBatchFailed), HasSubstr("BackoffLimitExceeded"));
  EXPECT_EQ(get("stuck").status.succeeded, 5);
  expect_no_violations(world_);
}

// A kubegang Job, without any batch Job. Index 1 is given as done already, so it is not run. Pods
// per node have no indexes that could follow one another, so that policy is refused.
TEST_F(FollowersTest, AJobOfOursHasThemToo) {
  const json spec{{"podPolicy", "PerTask"}, {"completions", 5}, {"completedIndexes", "1"}};
  json job = gang_job("ours", 1, "10s", spec);
  job["spec"]["resources"] = {{"tasks", 2}};
  world_.apply(job);
  ASSERT_TRUE(world_.run_until([&] { return world_.state("ours") == "Completed"; }, minutes{3}))
      << world_.log_tail();
  EXPECT_EQ(world_.job("ours").status.succeeded_indexes, "0-4");
  std::map<int, int> want = once_each(5);
  want.erase(1);
  EXPECT_EQ(successes(world_), want);
  job["metadata"]["name"] = "wrong";
  job["spec"]["podPolicy"] = "PerNode";
  world_.apply(job);
  world_.run_for(seconds{5});
  EXPECT_THAT(world_.condition("Job", "wrong", "Accepted"), HasSubstr("needs podPolicy PerTask"));
}

// Whatever the operator was about to write when it crashed: each index succeeds once, no place has
// two pods, and all end as they would have. Three Jobs at once: one that succeeds, one without
// indexes, and one whose pod 2 fails once. With even seeds they share the nodes in time. A round
// that never crashed would prove nothing, so crashes are counted.
TEST(FollowersCrashes, AtAnyWriteRunNothingTwice) {
  struct Rounds : FollowersTest {
    using FollowersTest::create;
    using FollowersTest::furnish;
    using FollowersTest::get;
    using FollowersTest::once_each;
    void TestBody() override {}
  };
  int crashes = 0;
  const std::uint64_t rounds = std::getenv("KUBEGANG_LONG") != nullptr ? 200 : 6;
  for (std::uint64_t seed = 1; seed <= rounds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world{{.seed = seed, .crash_per_mille = 60}};
    Rounds::furnish(world);
    if (seed % 2 == 0) world.apply(partition("batch", force()));
    Rounds::create(world, sweep("good", 3, 8, "6s"));
    Rounds::create(world, sweep("plain", 2, 5, "6s", {{"completionMode", "NonIndexed"}}));
    Rounds::create(world, sweep("broken", 2, 5, "6s", nullptr, {{"test/fails", "broken:2"}}));
    world.run_for(seconds{90});
    crashes += world.crashes();
    world.set_crash_per_mille(0);
    const auto over = [&](const char* name) {
      return kube::is_finished(Rounds::get(world, name).status);
    };
    EXPECT_TRUE(world.run_until([&] { return over("good") && over("plain") && over("broken"); },
                                minutes{20}))
        << world.log_tail();
    EXPECT_EQ(Rounds::get(world, "good").status.completed_indexes, "0-7");
    EXPECT_EQ(Rounds::get(world, "plain").status.succeeded, 5);
    EXPECT_EQ(Rounds::get(world, "broken").status.completed_indexes, "0-4");
    EXPECT_EQ(Rounds::get(world, "broken").status.failed, 1);
    std::map<std::string, std::map<int, int>> succeeded;  // by batch Job and index
    for (const kube::Pod& pod : world.pods()) {
      if (pod.status.phase != kube::PodPhase::kSucceeded) continue;
      const auto& labels = pod.metadata.labels;
      ++succeeded[labels.at("batch.kubernetes.io/job-name")]
                 [std::stoi(labels.at("kubegang.io/task"))];
    }
    EXPECT_EQ(succeeded["good"], Rounds::once_each(8)) << world.log_tail();
    EXPECT_EQ(succeeded["plain"], Rounds::once_each(5));
    EXPECT_EQ(succeeded["broken"], Rounds::once_each(5));
    expect_no_violations(world);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(crashes, 0);
}

}  // namespace
}  // namespace control
