#include "slurm/file_name.h"

#include <gtest/gtest.h>

namespace slurm {
namespace {

const NameParts kParts{.job_id = "1001",
                       .step_id = "5",
                       .job_name = "files",
                       .user = "ann",
                       .node = "n1",
                       .node_index = 2,
                       .task = 3};

TEST(FileName, ANodeThatIsNotKnownYetStays) {
  EXPECT_EQ(file_name("%j-%N", {.job_id = "7"}), "7-%N");
}

TEST(FileName, HasEveryPatternOfSlurm) {
  EXPECT_EQ(file_name("%x.%j.%u.%n.%t.out", kParts), "files.1001.ann.2.3.out");
  EXPECT_EQ(file_name("%J-%s-%N-%A", kParts), "1001.5-5-n1-1001");
  EXPECT_EQ(file_name("%5j-%%.txt", kParts), "01001-%.txt");
  EXPECT_EQ(file_name("out-%2t", kParts), "out-03");
  EXPECT_EQ(file_name("%6J", kParts), "001001.5");
  EXPECT_EQ(file_name("%10j-%20j-%100t", kParts), "0000001001-0000001001-0000000003");
}

TEST(FileName, OfATaskOfAnArray) {
  NameParts parts = kParts;
  parts.array_id = "1000";
  parts.array_task = "7";
  EXPECT_EQ(file_name("%A-%a-%j-%4a", parts), "1000-7-1001-0007");
}

TEST(FileName, KeepsWhatIsNotAPattern) {
  EXPECT_EQ(file_name("plain", kParts), "plain");
  EXPECT_EQ(file_name("100%", kParts), "100%");
  EXPECT_EQ(file_name("%q-%3q", kParts), "%q-3q");
  EXPECT_EQ(file_name("%5%j %5", kParts), "51001 5") << "as recorded";
  EXPECT_EQ(file_name("", kParts), "");
}

TEST(FileName, ABackslashSwitchesPatternsOff) {
  EXPECT_EQ(file_name("a\\%j", kParts), "a%j");
}

// A script has no step number in %J.
TEST(FileName, OfAScript) {
  NameParts parts = kParts;
  parts.step_id = "batch";
  EXPECT_EQ(file_name("%J.%s", parts), "1001.batch");
  EXPECT_EQ(file_name("%a", parts), "4294967294") << "as recorded, in no array";
}

TEST(FileName, SaysWhetherTasksDiffer) {
  EXPECT_TRUE(names_tasks("out-%3t"));
  EXPECT_FALSE(names_tasks("out-%%t"));
  EXPECT_FALSE(names_tasks("a\\%t"));
}

}  // namespace
}  // namespace slurm
