#include "translation/reason_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace control {
namespace {

// A new leader restores held jobs and endings by the names in their statuses: two reasons of one
// name, or one without a name, would come back as another.
TEST(Names, EveryReasonComesBack) {
  constexpr sched::Reason kLast = sched::Reason::kMaxJobsPerAccount;
  for (int i = 1; i <= static_cast<int>(kLast); ++i) {
    const auto reason = static_cast<sched::Reason>(i);
    EXPECT_EQ(parse_reason(reason_name(reason)), reason) << i;
  }
}

}  // namespace
}  // namespace control
