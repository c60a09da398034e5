#include "operator/translate/reason_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace control {
namespace {

TEST(Names, EveryReasonComesBack) {
  for (int i = 1; i <= static_cast<int>(sched::Reason::kUser); ++i) {
    const auto reason = static_cast<sched::Reason>(i);
    EXPECT_EQ(parse_reason(reason_name(reason)), reason) << i;
  }
}

}  // namespace
}  // namespace control
