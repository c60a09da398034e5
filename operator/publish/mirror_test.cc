#include "operator/publish/mirror.h"

#include <gtest/gtest.h>

#include <utility>

#include "api/node_timetable.h"
#include "api/qos.h"

namespace control {
namespace {

using base::Code;
using base::Error;
using std::chrono::milliseconds;
using Table = Mirror<kube::NodeTimetable, &kube::NodeTimetable::spec, IfGone::kCreate>;

constexpr base::Instant kMirrorAt{std::chrono::seconds{1'000}};

// Returns a QOS as the API server stores it: its version, and a count in its status.
kube::Qos qos(const std::string& version, int running, const std::string& uid = "u") {
  kube::Qos object;
  object.metadata.name = "gold";
  object.metadata.uid = uid;
  object.metadata.resource_version = version;
  object.status.running = running;
  return object;
}

// Wants 5 where 1 is stored, and has begun to write it.
StatusMirror<kube::Qos> writing(WriteUrgency how = WriteUrgency::kCommit) {
  StatusMirror<kube::Qos> mirror{qos("7", 1)};
  mirror.change(how).running = 5;
  EXPECT_TRUE(mirror.may_write(kMirrorAt));
  mirror.begin(kMirrorAt);
  return mirror;
}

// The plain case. The version of the answer is the basis of the next write, so that no watch must
// be waited for.
TEST(Mirror, AWriteThatIsStoredEndsTheDifference) {
  auto mirror = writing();
  EXPECT_TRUE(mirror.is_in_flight());
  EXPECT_TRUE(mirror.is_uncommitted());
  EXPECT_FALSE(mirror.may_write(kMirrorAt)) << "one at a time";
  EXPECT_EQ(mirror.due(), base::kNever);
  EXPECT_EQ(mirror.answered(qos("8", 5), Error{}, kMirrorAt), WriteEnd::kStored);
  EXPECT_EQ(mirror.urgency(), WriteUrgency::kClean);
  EXPECT_FALSE(mirror.is_uncommitted());
  EXPECT_EQ(mirror.version(), "8");
  EXPECT_EQ(mirror.stored(), mirror.wanted());
}

// The write that was answered said 5; the difference to 6 is still marked, with its own urgency.
TEST(Mirror, WhatChangesDuringAWriteIsWrittenAfterIt) {
  auto mirror = writing(WriteUrgency::kUrgent);
  mirror.change(WriteUrgency::kCommit).running = 6;
  EXPECT_EQ(mirror.answered(qos("8", 5), Error{}, kMirrorAt), WriteEnd::kStored);
  EXPECT_TRUE(mirror.is_uncommitted());
  EXPECT_TRUE(mirror.may_write(kMirrorAt));
  EXPECT_EQ(mirror.object_with(mirror.wanted()).status.running, 6);
}

// Made for a node that was replaced, it is collected at once; the watch is faster than the answer.
TEST(Mirror, WhatWasDeletedDuringItsWriteIsGoneWhateverTheAnswerSays) {
  kube::NodeTimetable made;
  made.metadata.uid = "u";
  made.metadata.resource_version = "8";
  Table mirror;
  mirror.set_differs(true);
  mirror.begin(kMirrorAt);
  mirror.saw_gone();
  EXPECT_EQ(mirror.answered(made, Error{}, kMirrorAt), WriteEnd::kStored);
  EXPECT_FALSE(mirror.exists());
  // A deletion that was another object's: what the watch shows then is news, also at this version.
  EXPECT_TRUE(mirror.is_news(made));
  // The next write has its own answer.
  mirror.begin(kMirrorAt);
  EXPECT_EQ(mirror.answered(made, Error{}, kMirrorAt), WriteEnd::kStored);
  EXPECT_TRUE(mirror.exists());
}

// Another writer was faster. The answer brought the newest version along, so nothing is gained by a
// back-off.
TEST(Mirror, AfterAConflictTheNextTryIsOnWhatIsStoredAndNeedNotWait) {
  auto mirror = writing();
  EXPECT_EQ(mirror.answered(Error{Code::kConflict, "409"}, qos("9", 3), kMirrorAt),
            WriteEnd::kLostRace);
  EXPECT_EQ(mirror.urgency(), WriteUrgency::kCommit) << "as urgent as it was";
  EXPECT_TRUE(mirror.may_write(kMirrorAt));
  EXPECT_EQ(mirror.object_with(mirror.stored()), qos("9", 3));
  EXPECT_EQ(mirror.wanted().running, 5);
}

// The write was done, and the mirror cannot know. The second try meets its own first one, finds
// that all is as wanted, and must not take it for another writer's.
TEST(Mirror, AnAnswerThatWasLostShowsItselfAsAConflictOfTheNextTry) {
  auto mirror = writing();
  // It was stored as version 8, but the connection broke.
  EXPECT_EQ(mirror.answered(Error{Code::kUnavailable, "reset"}, Error{}, kMirrorAt),
            WriteEnd::kFailed);
  EXPECT_FALSE(mirror.may_write(kMirrorAt));
  EXPECT_EQ(mirror.due(), kMirrorAt + milliseconds{50});
  EXPECT_TRUE(mirror.is_uncommitted());
  mirror.begin(mirror.due());
  EXPECT_EQ(mirror.answered(Error{Code::kConflict, "409"}, qos("8", 5), kMirrorAt),
            WriteEnd::kLostRace);
  EXPECT_EQ(mirror.stored(), mirror.wanted());
}

// 50 ms, then 100 ms. A conflict without the newest version cannot be resolved, so it counts as a
// failure.
TEST(Mirror, FailuresInARowWaitLonger) {
  auto mirror = writing();
  (void)mirror.answered(Error{Code::kUnavailable, "503"}, Error{}, kMirrorAt);
  mirror.begin(kMirrorAt);
  (void)mirror.answered(Error{Code::kConflict, "409"}, Error{Code::kTimeout, ""}, kMirrorAt);
  EXPECT_EQ(mirror.due(), kMirrorAt + milliseconds{100}) << "a conflict with what, nobody knows";
}

// Deleted, or deleted and made again under its name: to this mirror both are the end. A watch that
// still shows the old object must not bring it back.
TEST(Mirror, OfAUsersObjectThatIsGoneNothingIsWritten) {
  for (const bool made_again : {false, true}) {
    auto mirror = writing();
    const base::Result<kube::Qos> fresh =
        made_again ? base::Result<kube::Qos>{qos("12", 0, "another")} : Error{Code::kNotFound, ""};
    EXPECT_EQ(mirror.answered(Error{Code::kConflict, "409"}, fresh, kMirrorAt), WriteEnd::kGone);
    EXPECT_FALSE(mirror.exists());
    EXPECT_FALSE(mirror.may_write(kMirrorAt + std::chrono::hours{1}));
    EXPECT_EQ(mirror.due(), base::kNever) << "a watch will show it, too";
    EXPECT_FALSE(mirror.is_uncommitted()) << "nothing waits for it";
    EXPECT_FALSE(mirror.saw(qos("7", 1))) << "the watch is behind";
    EXPECT_FALSE(mirror.exists());
  }
}

// The write met no object, and a watch still shows it: a read decides. If it finds the object, the
// next try is on what it found, after a while, as if it says nothing.
TEST(Mirror, AnObjectThatOnlyTheWriteTakesForGoneIsWrittenAgain) {
  auto mirror = writing();
  EXPECT_EQ(mirror.answered(Error{Code::kNotFound, "404"}, qos("7", 1), kMirrorAt),
            WriteEnd::kFailed);
  EXPECT_FALSE(mirror.may_write(kMirrorAt));
  EXPECT_TRUE(mirror.is_uncommitted());
  mirror.begin(mirror.due());
  EXPECT_EQ(
      mirror.answered(Error{Code::kNotFound, "404"}, Error{Code::kUnavailable, "503"}, kMirrorAt),
      WriteEnd::kFailed);
  EXPECT_TRUE(mirror.is_uncommitted());
  EXPECT_TRUE(mirror.may_write(mirror.due()));
  mirror.begin(mirror.due());
  EXPECT_EQ(
      mirror.answered(Error{Code::kNotFound, "404"}, Error{Code::kNotFound, "404"}, kMirrorAt),
      WriteEnd::kGone);
  EXPECT_FALSE(mirror.exists());
}

// A timetable is the operator's own object, unlike a user's: a hand that deletes it does not end
// the need for it.
TEST(Mirror, OurOwnObjectThatIsGoneIsMadeAgain) {
  kube::NodeTimetable object;
  object.metadata.name = "n1";
  object.metadata.uid = "u";
  object.metadata.resource_version = "7";
  Table table{object};
  table.set_differs(true);
  table.begin(kMirrorAt);
  EXPECT_EQ(table.answered(Error{Code::kNotFound, "404"}, Error{Code::kNotFound, "404"}, kMirrorAt),
            WriteEnd::kLostRace);
  EXPECT_FALSE(table.exists());
  ASSERT_TRUE(table.may_write(kMirrorAt));
  table.begin(kMirrorAt);
  object.metadata.uid = "another";
  EXPECT_EQ(table.answered(object, Error{}, kMirrorAt), WriteEnd::kStored);
  EXPECT_TRUE(table.exists());
  EXPECT_EQ(table.uid(), "another");
}

// While a write is under way its answer tells more than any watch.
TEST(Mirror, AWatchIsHeardWhenItIsNewerAndNoWriteIsUnderWay) {
  StatusMirror<kube::Qos> mirror{qos("7", 1)};
  EXPECT_FALSE(mirror.saw(qos("6", 0)));
  EXPECT_FALSE(mirror.saw(qos("8", 1))) << "newer, but nothing else is stored";
  EXPECT_EQ(mirror.version(), "8");
  EXPECT_TRUE(mirror.saw(qos("9", 2)));
  EXPECT_EQ(mirror.stored().running, 2);
  EXPECT_EQ(mirror.wanted().running, 1);
  auto busy = writing();
  EXPECT_FALSE(busy.saw(qos("99", 2)));
  EXPECT_EQ(busy.version(), "7");
}

// It is kept once then, and each of the two changes without the other.
TEST(Mirror, WhatIsStoredAsItIsWantedIsKeptOnce) {
  StatusMirror<kube::Qos> mirror{qos("7", 1)};
  const auto& fixed = std::as_const(mirror);
  EXPECT_EQ(&fixed.wanted(), &fixed.stored());
  EXPECT_TRUE(mirror.saw(qos("8", 2)));
  EXPECT_EQ(fixed.wanted().running, 1) << "what another writer has stored is not wanted";
  mirror.settle();
  EXPECT_EQ(fixed.wanted().running, 1) << "and differs still";

  auto written = writing();
  written.settle();
  EXPECT_EQ(written.stored().running, 1);
  (void)written.answered(qos("8", 5), Error{}, kMirrorAt);
  written.settle();
  EXPECT_EQ(&written.wanted(), &written.stored());
  written.wanted_unmarked().running = 6;
  EXPECT_EQ(written.stored().running, 5);

  written.wanted_unmarked().running = 5;
  written.settle();
  written.know_stored(qos("8", 4).status);
  EXPECT_EQ(written.wanted().running, 5);
}

// The rest between two writes that only inform counts from there. Other writes do not count, so
// none of them puts off the next one that informs.
TEST(Mirror, RemembersWhenItWasLastWrittenOnlyToInform) {
  EXPECT_EQ(writing(WriteUrgency::kInforms).informed_at(), kMirrorAt);
  EXPECT_EQ(writing(WriteUrgency::kUrgent).informed_at(), base::Instant{});
}

}  // namespace
}  // namespace control
