#include "operator/write/writer.h"

#include <gtest/gtest.h>

namespace control {
namespace {

struct FourAtOnce final : Writer {
  void submit(Effect) override {}
  int at_once() const override { return 4; }
};

// Four writes at once have room for 16, and twice the outcomes of this step are added: after 10 of
// 20 writes that is 16 + 20 less the 10 that are still under way. The next step begins without
// them.
TEST(CountedWriter, HasRoomForWhatItGetsThroughUntilTheNextStep) {
  FourAtOnce four;
  LoopCounters counters;
  CountedWriter writer{four, counters};
  writer.begin_step();
  EXPECT_EQ(writer.room(), 16U);
  for (int i = 0; i < 20; ++i) writer.submit(DeleteOrphan{});
  EXPECT_EQ(writer.room(), 0U) << "some writes are not asked whether there is room";
  EXPECT_TRUE(writer.is_busy());
  for (int i = 0; i < 10; ++i) writer.heard_outcome();
  EXPECT_EQ(writer.room(), 26U) << "it was fast";
  writer.begin_step();
  EXPECT_EQ(writer.room(), 6U) << "it was slow";
}

}  // namespace
}  // namespace control
