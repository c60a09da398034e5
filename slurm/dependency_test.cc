#include "slurm/dependency.h"

#include <gtest/gtest.h>

namespace slurm {
namespace {

std::string read_and_formatted(std::string_view text) {
  const auto read = parse_dependency("--dependency", text);
  if (!read) return read.error().message;
  std::string all;
  for (const sched::DependencyTerm& term : read->terms) {
    if (!all.empty()) all += read->any ? "?" : ",";
    all += format_term(term);
  }
  return all;
}

// As squeue %E showed them (13.1): each job stands by itself, once; a delay holds for what follows.
TEST(Dependency, IsReadAsSlurmReadsIt) {
  EXPECT_EQ(read_and_formatted(""), "");
  EXPECT_EQ(read_and_formatted("afterok:12"), "afterok:12");
  EXPECT_EQ(read_and_formatted("afterany:12:13"), "afterany:12,afterany:13");
  EXPECT_EQ(read_and_formatted("afterok:12_3,aftercorr:13"), "afterok:12_3,aftercorr:13");
  EXPECT_EQ(read_and_formatted("12:13"), "afterany:12,afterany:13");
  EXPECT_EQ(read_and_formatted("AFTEROK:1,afterok:1"), "afterok:1");
  EXPECT_EQ(read_and_formatted("after:1+5:2,singleton"), "after:1+5,after:2+5,singleton");
  EXPECT_EQ(read_and_formatted("afterok:1?afternotok:2"), "afterok:1?afternotok:2");
}

TEST(Dependency, SaysWhatIsWrong) {
  const auto says = [](std::string_view text, std::string_view part) {
    EXPECT_NE(read_and_formatted(text).find(part), std::string::npos) << read_and_formatted(text);
  };
  says("afterok:1,afterany:2?afterok:3", "either , (all) or ? (any)");
  says("afterok", "number of a job is missing");
  says("afterok:", "number of a job is missing");
  says("afterany:3,", "a part is empty");
  says(" ", "no kind of dependency");
  says("nonsense:1", "no kind of dependency \"nonsense\"");
  says("after:xyz", "\"xyz\" is not the number of a job");
  says("after:3+x", "\"3+x\" is not a job and minutes");
  says("after:3+0", "\"3+0\" is not a job and minutes");
  says("afterok:3+5", "with after alone");
  says("singleton:3", "names no job");
  says("afterok:3_x", "is not the number of a job");
  says("aftercorr:3_1", "names an array as a whole");
  says("expand:3", "expand is not supported");
}

}  // namespace
}  // namespace slurm
