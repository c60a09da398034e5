#include "translation/members.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace control {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Members, OfWhatIsDoneTheStatusTellsMoreThanTheSpec) {
  kube::JobSpec spec;
  kube::JobStatus status;
  spec.completed_indexes = "0-1";
  EXPECT_EQ(done_indexes(spec, status), "") << "its pods do not follow one another";
  spec.completions = 6;
  EXPECT_EQ(done_indexes(spec, status), "0-1");
  status.succeeded_indexes = "0-2,4";
  EXPECT_EQ(done_indexes(spec, status), "0-2,4");
}

TEST(Members, BeginWithTheLowestIndexesThatAreLeft) {
  // Six completions at three places; 0 and 2 have succeeded before. Without stored members the
  // lowest are taken, in their order, so each leader comes to the same.
  const Members members{6, {.succeeded = "0,2", .members = ""}, 3};
  EXPECT_THAT(members.at_places(), ElementsAre(1, 3, 4));
  EXPECT_EQ(members.place_of(3), 1);
  EXPECT_FALSE(members.place_of(0).has_value());
}

// A gang that is requeued has as many places as before, and fewer pods. The pod's name follows from
// its index and not from its place.
TEST(Members, LeavePlacesEmptyIfFewerAreLeft) {
  const Members members{5, {.succeeded = "0-3", .members = ""}, 3};
  EXPECT_THAT(members.at_places(), ElementsAre(4));
  std::vector<PodSlot> slots(3);
  name_slots({"train", "uid", 2}, members, slots);
  EXPECT_EQ(slots[0].name, pod_name("train", "uid", 2, 4));
  EXPECT_EQ(slots[0].pod_index, 4);
  EXPECT_FALSE(slots[1].has_pod());
}

// fill() gives the places that have a new index; the pods at the others run on. When no index is
// left a place stays as it is.
TEST(Members, FollowEachOtherAtTheirPlaces) {
  Members members{5, {}, 2};
  EXPECT_THAT(members.fill(), IsEmpty());
  EXPECT_TRUE(members.note_success(1));
  EXPECT_FALSE(members.note_success(1));
  EXPECT_THAT(members.fill(), ElementsAre(1));
  EXPECT_THAT(members.at_places(), ElementsAre(0, 2));
  EXPECT_TRUE(members.note_success(0));
  EXPECT_TRUE(members.note_success(2));
  EXPECT_THAT(members.fill(), ElementsAre(0, 1));
  EXPECT_THAT(members.at_places(), ElementsAre(3, 4));
  EXPECT_TRUE(members.note_success(3));
  EXPECT_THAT(members.fill(), IsEmpty());
  EXPECT_FALSE(members.all_have_succeeded());
  EXPECT_TRUE(members.note_success(4));
  EXPECT_TRUE(members.all_have_succeeded());
  EXPECT_EQ(members.succeeded_text(), "0-4");
}

// At each step of any order of successes, what is stored gives a new leader the same members. Each
// index has a place once, and no place has two.
TEST(Members, AreTheSameToANewLeader) {
  constexpr int kCompletions = 7;
  constexpr int kPlaces = 3;
  for (int order = 0; order < 729; ++order) {  // of which of three places is done next, six times
    Members members{kCompletions, {.succeeded = "3", .members = ""}, kPlaces};
    std::set<int> had{members.at_places().begin(), members.at_places().end()};
    for (int step = 0, rest = order; step < 6; ++step, rest /= 3) {
      (void)members.note_success(members.at_places()[static_cast<std::size_t>(rest % 3)]);
      for (const int place : members.fill()) {
        const int index = members.at_places()[static_cast<std::size_t>(place)];
        EXPECT_TRUE(had.insert(index).second) << "index " << index << " had a place before";
      }
      const std::string succeeded = members.succeeded_text();
      const std::string stored = members.members_text();
      Members again{kCompletions, {.succeeded = succeeded, .members = stored}, kPlaces};
      EXPECT_EQ(again.succeeded_text(), succeeded);
      EXPECT_EQ(again.members_text(), stored);
      EXPECT_THAT(again.fill(), IsEmpty());
      for (int place = 0; place < kPlaces; ++place) {
        const int index = members.at_places()[static_cast<std::size_t>(place)];
        EXPECT_EQ(again.place_of(index), place);
      }
    }
    EXPECT_FALSE(had.contains(3)) << "it had succeeded before";
  }
}

// Not the operator's, or written by hand. There is no index 9, so the second list is foreign, too.
// The gang then begins from the start: some work is done twice, and none is lost.
TEST(Members, ReadNothingFromWhatIsNoList) {
  const Members members{3, {.succeeded = "a", .members = "9,1"}, 2};
  EXPECT_THAT(members.at_places(), ElementsAre(0, 1));
  EXPECT_EQ(members.succeeded_text(), "");
}

}  // namespace
}  // namespace control
