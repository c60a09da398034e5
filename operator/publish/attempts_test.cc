#include "operator/publish/attempts.h"

#include <gtest/gtest.h>

namespace control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr base::Instant kTriedAt{std::chrono::seconds{1'000}};

// Two writes of one object could arrive in the wrong order. A race that was lost to another writer
// is not a failure: the next try has the newer version and need not wait.
TEST(Attempts, OneIsUnderWayAtATime) {
  Attempts attempts;
  EXPECT_TRUE(attempts.may_begin(kTriedAt));
  attempts.begin();
  EXPECT_FALSE(attempts.may_begin(kTriedAt));
  EXPECT_EQ(attempts.due(), base::kNever);
  attempts.lost_race();
  EXPECT_TRUE(attempts.may_begin(kTriedAt));
}

// An API server that is overloaded gets room to recover; the maximum bounds how late the first
// write after that is. A success ends the row.
TEST(Attempts, EachFailureInARowDoublesTheWaitUpToItsMaximum) {
  Attempts attempts{{.first = milliseconds{50}, .max = milliseconds{150}}};
  for (const auto wait :
       {milliseconds{50}, milliseconds{100}, milliseconds{150}, milliseconds{150}}) {
    attempts.begin();
    attempts.failed(kTriedAt);
    EXPECT_EQ(attempts.due(), kTriedAt + wait);
    EXPECT_FALSE(attempts.may_begin(kTriedAt));
  }
  attempts.begin();
  attempts.succeeded();
  attempts.begin();
  attempts.failed(kTriedAt + seconds{1});
  EXPECT_EQ(attempts.due(), kTriedAt + seconds{1} + milliseconds{50}) << "counted anew";
}

// For writes that only a watch confirms: without the rest the object would look unwritten for a
// moment, and be written a second time.
TEST(Attempts, MayBeToldToRest) {
  Attempts attempts;
  attempts.rest_until(kTriedAt + seconds{1});
  EXPECT_FALSE(attempts.may_begin(kTriedAt));
  EXPECT_TRUE(attempts.may_begin(kTriedAt + seconds{1}));
}

}  // namespace
}  // namespace control
