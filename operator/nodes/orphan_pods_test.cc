#include "operator/nodes/orphan_pods.h"

#include <gtest/gtest.h>

#include <string>

#include "api/wellknown.h"

namespace control {
namespace {

using std::chrono::seconds;

const kube::ObjectKey kOrphan{"team-a", "gone-x-0"};
const kube::ObjectKey kOtherOrphan{"team-a", "gone-x-1"};
constexpr base::Instant kFound{seconds{1'000}};
constexpr std::size_t kOrphansRoom = 100;  // enough
constexpr seconds kOrphansGrace{30};       // grace period

// There is no outcome that counts: only the watch says whether a pod is gone, every 5 s it is asked
// again.
TEST(OrphanPods, AreTriedUntilTheWatchSaysThatTheyAreGone) {
  OrphanPods orphans;
  orphans.add(kOrphan);
  EXPECT_EQ(orphans.due(kFound, kOrphansGrace, kOrphansRoom),
            (std::vector{DeleteOrphan{kOrphan, kOrphansGrace}}));
  EXPECT_TRUE(orphans.due(kFound + seconds{4}, kOrphansGrace, kOrphansRoom).empty());
  EXPECT_EQ(orphans.next_due(kFound), kFound + seconds{5});
  EXPECT_EQ(orphans.due(kFound + seconds{5}, kOrphansGrace, kOrphansRoom),
            (std::vector{DeleteOrphan{kOrphan, kOrphansGrace}}));
  orphans.remove(kOrphan);
  EXPECT_TRUE(orphans.due(kFound + seconds{60}, kOrphansGrace, kOrphansRoom).empty());
  EXPECT_EQ(orphans.next_due(kFound), base::kNever);
}

// Each of its changes adds a pod once more.
TEST(OrphanPods, APodThatIsSeenAgainIsNotTriedSooner) {
  OrphanPods orphans;
  orphans.add(kOrphan);
  (void)orphans.due(kFound, kOrphansGrace, kOrphansRoom);
  orphans.add(kOrphan);
  orphans.add(kOtherOrphan);
  EXPECT_EQ(orphans.due(kFound + seconds{1}, kOrphansGrace, kOrphansRoom),
            (std::vector{DeleteOrphan{kOtherOrphan, kOrphansGrace}}));
}

// After a restore of etcd, or of the CRDs, thousands may be left. Those that were tried a moment
// ago must not come again before the others have had their turn.
TEST(OrphanPods, AreTriedAsFarAsThereIsRoomAndInTurn) {
  OrphanPods orphans;
  orphans.add(kOrphan);
  orphans.add(kOtherOrphan);
  EXPECT_TRUE(orphans.due(kFound, kOrphansGrace, 0).empty());
  EXPECT_EQ(orphans.next_due(kFound), base::kNever) << "no instant brings room";
  EXPECT_EQ(orphans.due(kFound, kOrphansGrace, 1),
            (std::vector{DeleteOrphan{kOrphan, kOrphansGrace}}));
  EXPECT_EQ(orphans.due(kFound + seconds{9}, kOrphansGrace, 1),
            (std::vector{DeleteOrphan{kOtherOrphan, kOrphansGrace}}));
  EXPECT_EQ(orphans.due(kFound + seconds{9}, kOrphansGrace, 1),
            (std::vector{DeleteOrphan{kOrphan, kOrphansGrace}}));
}

class OrphanVerdict : public testing::Test {
 protected:
  OrphanVerdict() {
    pod.metadata.ns = "team-a";
    pod.metadata.owner_references = {{.api_version = "kubegang.io/v1alpha1",
                                      .kind = "Job",
                                      .name = "train",
                                      .uid = "uid-train",
                                      .controller = true}};
    job.metadata.uid = "uid-train";
  }
  std::string asks_for() const {
    const auto key = job_to_ask_for(pod, kOrphansGrace);
    return key ? kube::to_string(*key) : "";
  }
  kube::Pod pod;
  kube::Job job;
};

// A watch of Jobs may be behind that of pods, so only the API server's word counts, and only one:
// that there is no such Job.
TEST_F(OrphanVerdict, OnlyAPodWhoseJobIsGoneOrHasEndedIsAnOrphan) {
  EXPECT_FALSE(is_orphan(pod, job));
  EXPECT_TRUE(is_orphan(pod, base::Error{base::Code::kNotFound, ""}));
  EXPECT_FALSE(is_orphan(pod, base::Error{base::Code::kUnavailable, ""}));
  EXPECT_FALSE(is_orphan(pod, base::Error{base::Code::kPermissionDenied, ""}));
  job.status.state = kube::JobState::kCompleted;
  EXPECT_TRUE(is_orphan(pod, job));
  job.status.state = kube::JobState::kRunning;
  job.metadata.uid = "made-again";
  EXPECT_TRUE(is_orphan(pod, job));
}

// A task that waits has no pods: it has no entry in the status of its array.
TEST_F(OrphanVerdict, APodOfATaskThatHasNotStartedIsAnOrphan) {
  job.spec.array.emplace().tasks = "0-9";
  pod.metadata.labels[std::string{kube::kLabelArrayTask}] = "3";
  EXPECT_TRUE(is_orphan(pod, job));
  kube::ArrayTask& task = job.status.array.emplace().tasks.emplace_back();
  task.task = 3;
  task.starts = 1;
  EXPECT_FALSE(is_orphan(pod, job));
}

TEST_F(OrphanVerdict, NothingIsAskedForAPodThatEndsAnyway) {
  EXPECT_EQ(asks_for(), "team-a/train");
  pod.metadata.deletion_timestamp = kFound;
  pod.metadata.deletion_grace_period_seconds = 30;
  EXPECT_EQ(asks_for(), "");
  pod.metadata.deletion_grace_period_seconds = 31;
  EXPECT_EQ(asks_for(), "team-a/train") << "it may be shortened";
  pod.status.phase = kube::PodPhase::kFailed;
  EXPECT_EQ(asks_for(), "");
}

// The labels were written with its pin; a user may have removed one.
TEST_F(OrphanVerdict, APodThatOthersHaveMadeNamesItsJobByItsLabels) {
  EXPECT_FALSE(is_made_by_others(pod));
  pod.metadata.owner_references.clear();
  EXPECT_EQ(asks_for(), "") << "of no Job";
  pod.metadata.labels[std::string{kube::kLabelJobUid}] = "uid-train";
  EXPECT_TRUE(is_made_by_others(pod));
  EXPECT_EQ(asks_for(), "team-a/uid-train");
  pod.metadata.labels[std::string{kube::kLabelJob}] = "train";
  EXPECT_EQ(asks_for(), "team-a/train");
}

}  // namespace
}  // namespace control
