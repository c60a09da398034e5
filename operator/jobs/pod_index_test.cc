// Pods that are known from the answer to a write alone.
#include "operator/jobs/pod_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace control {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr base::Instant kAnswered{seconds{1'000}};
constexpr std::size_t kReadsRoom = 100;  // enough

// A pod of "job" on n1 that the answer to its creation has brought, 30 s before a watch must have
// shown it.
class PodIndexTest : public testing::Test {
 protected:
  PodIndexTest() {
    auto pod = std::make_shared<kube::Pod>();
    pod->metadata.labels["kubegang.io/job-uid"] = "job";
    pod->spec.node_name = "n1";
    pod_ = pod;
    (void)index_.observe(key_, pod_);
    index_.expect(key_, kAnswered);
  }
  const kube::ObjectKey key_{"team-a", "train-abcde-0"};
  std::shared_ptr<const kube::Pod> pod_;
  PodIndex index_;
};

// It was made and deleted before the answer to its creation was heard, so no watch reports it
// again. Its node would stay taken forever by a pod that does not exist. Or its watch is silent:
// then it is read again and again, as the only news of it.
TEST_F(PodIndexTest, ReturnsAPodThatNoWatchShows) {
  EXPECT_EQ(index_.next_due(kAnswered), kAnswered + seconds{30});
  EXPECT_THAT(index_.take_unseen(kAnswered + seconds{29}, kReadsRoom), IsEmpty());
  EXPECT_THAT(index_.take_unseen(kAnswered + seconds{30}, kReadsRoom), ElementsAre(key_));
  EXPECT_EQ(index_.find(key_)->job_uid, "job") << "nothing is known of it but that";
  EXPECT_TRUE(index_.is_unseen(key_));
  EXPECT_EQ(index_.next_due(kAnswered + seconds{30}), kAnswered + seconds{60});
  EXPECT_THAT(index_.take_unseen(kAnswered + seconds{60}, kReadsRoom), ElementsAre(key_));
}

// Each pod of a gang of thousands whose watch is silent is a request.
TEST_F(PodIndexTest, ReturnsAsManyPodsAsThereIsRoomFor) {
  const kube::ObjectKey other{"team-a", "train-abcde-1"};
  (void)index_.observe(other, pod_);
  index_.expect(other, kAnswered + seconds{1});
  const base::Instant later = kAnswered + seconds{40};
  EXPECT_THAT(index_.take_unseen(later, 0), IsEmpty());
  EXPECT_EQ(index_.next_due(later), base::kNever) << "no instant brings room";
  EXPECT_THAT(index_.take_unseen(later, 1), ElementsAre(key_));
  EXPECT_THAT(index_.take_unseen(later, 1), ElementsAre(other));
  EXPECT_THAT(index_.take_unseen(later, 1), IsEmpty());
}

// From then on the watch tells when it goes. The second half is the other order: the deletion is
// seen first of all.
TEST_F(PodIndexTest, WaitsNoLongerOnceAWatchHasShownIt) {
  (void)index_.observe(key_, pod_);
  EXPECT_FALSE(index_.is_unseen(key_));
  EXPECT_EQ(index_.next_due(kAnswered), base::kNever);
  index_.expect(key_, kAnswered);
  (void)index_.observe(key_, nullptr);
  EXPECT_EQ(index_.next_due(kAnswered), base::kNever);
  EXPECT_EQ(index_.find(key_), nullptr);
  index_.expect(key_, kAnswered);
  EXPECT_EQ(index_.next_due(kAnswered), base::kNever) << "there is no pod to be shown";
}

}  // namespace
}  // namespace control
