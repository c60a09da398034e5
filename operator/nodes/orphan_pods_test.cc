#include "operator/nodes/orphan_pods.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace control
