#include "operator/nodes/orphan_pods.h"

#include <gtest/gtest.h>

namespace control {
namespace {

using std::chrono::seconds;

const kube::ObjectKey kOrphan{"team-a", "gone-x-0"};
const kube::ObjectKey kOtherOrphan{"team-a", "gone-x-1"};
constexpr base::Instant kFound{seconds{1'000}};

// There is no outcome that counts: only the watch says whether a pod is gone, every 5 s it is asked
// again.
TEST(OrphanPods, AreTriedUntilTheWatchSaysThatTheyAreGone) {
  OrphanPods orphans;
  EXPECT_EQ(orphans.next_due(), base::kNever);
  orphans.add(kOrphan);
  EXPECT_LE(orphans.next_due(), kFound);
  EXPECT_EQ(orphans.due(kFound), std::vector{DeleteOrphan{kOrphan}});
  EXPECT_TRUE(orphans.due(kFound + seconds{4}).empty());
  EXPECT_EQ(orphans.next_due(), kFound + seconds{5});
  EXPECT_EQ(orphans.due(kFound + seconds{5}), std::vector{DeleteOrphan{kOrphan}});
  orphans.remove(kOrphan);
  EXPECT_TRUE(orphans.due(kFound + seconds{60}).empty());
  EXPECT_EQ(orphans.next_due(), base::kNever);
}

// Each of its changes adds a pod once more.
TEST(OrphanPods, APodThatIsSeenAgainIsNotTriedSooner) {
  OrphanPods orphans;
  orphans.add(kOrphan);
  (void)orphans.due(kFound);
  orphans.add(kOrphan);
  orphans.add(kOtherOrphan);
  EXPECT_EQ(orphans.due(kFound + seconds{1}), std::vector{DeleteOrphan{kOtherOrphan}});
}

}  // namespace
}  // namespace control
