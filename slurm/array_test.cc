#include "slurm/array.h"

#include <gtest/gtest.h>

namespace slurm {
namespace {

// As it is written again; or the message.
std::string as_written(std::string_view text) {
  const auto read = parse_array("--array", text, 1'001);
  return read ? format_array(*read) : read.error().message;
}

TEST(Array, IsReadAsSlurmReadsIt) {
  EXPECT_EQ(as_written("7"), "7");
  EXPECT_EQ(as_written("0-15"), "0-15");
  EXPECT_EQ(as_written("5-7,1,3,6"), "1,3,5-7");
  EXPECT_EQ(as_written("1-7:2"), "1-7:2");
  EXPECT_EQ(as_written("1-8:2%2"), "1-7:2%2");
  EXPECT_EQ(as_written("0-1000%0"), "0-1000") << "no bound";
  EXPECT_EQ(as_written("0-3%"), "0-3") << "no bound either, as recorded";
  EXPECT_EQ(as_written("0-1000,5,0-7"), "0-1000");
  EXPECT_EQ(as_written("63-64,127-129"), "63-64,127-129");
  EXPECT_EQ(as_written("[0-1],5"), "0-1,5");
  EXPECT_EQ(as_written("[4]%2"), "4%2");
}

TEST(Array, SaysWhatIsWrong) {
  const auto says = [](std::string_view text, std::string_view part) {
    EXPECT_NE(as_written(text).find(part), std::string::npos) << as_written(text);
  };
  says("", "names no tasks");
  says("1,", "from 0 to 1000");
  says("x", "\"x\": tasks are numbers");
  says("-1", "from 0 to 1000");
  says("1001", "from 0 to 1000");
  says("7-5", "backwards");
  says("5:2", "goes with a range");
  says("1-9:0", "step must be a number");
  says("1-9%x", "how many tasks run at once");
  says("%4", "names no tasks");
  says("0-1000,0-1000,0-1000", "named before");
}

TEST(Array, NamesOfJobs) {
  EXPECT_EQ(parse_job_id("12"), sched::JobId{12});
  EXPECT_EQ(parse_job_id("12_0"), sched::JobId::of_task(sched::JobId{12}, 0));
  for (const char* wrong : {"", "0", "12_", "_3", "12_3_4", "12_4194303", "-1"}) {
    EXPECT_EQ(parse_job_id(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace slurm
