#include "launcher/step_output.h"

#include <gtest/gtest.h>

namespace launcher {
namespace {

struct Written {
  std::map<int, std::string> files;
  StepOutput::Write write() {
    return [this](int fd, std::string_view bytes) { files[fd] += bytes; };
  }
};

TEST(StepOutput, LinesOfTasksAreNotMixed) {
  Written written;
  StepOutput output{{{1, 2}, {1, 2}}, false, false, written.write()};
  output.add(0, 1, "he");
  output.add(1, 1, "one\ntw");
  output.add(0, 1, "llo\n");
  output.add(1, 1, "o\n");
  output.add(0, 2, "error");
  EXPECT_EQ(written.files[1], "one\nhello\ntwo\n");
  EXPECT_EQ(written.files[2], "");
  output.end(0);
  EXPECT_EQ(written.files[2], "error") << "a line without an end is written with its task's end";
}

TEST(StepOutput, LabelsStandBeforeEachLine) {
  Written written;
  std::vector<std::array<int, 2>> fds(11, {1, 2});
  StepOutput output{std::move(fds), true, false, written.write()};
  output.add(3, 1, "a\nb\nc");
  output.add(10, 1, "x\n");
  output.end(3);
  EXPECT_EQ(written.files[1], " 3: a\n 3: b\n10: x\n 3: c\n");
}

TEST(StepOutput, UnbufferedIsWrittenAtOnce) {
  Written written;
  StepOutput output{{{1, 1}}, false, true, written.write()};
  output.add(0, 1, "half");
  EXPECT_EQ(written.files[1], "half");
}

TEST(StepOutput, UnbufferedPiecesHaveLabelsOfTheirOwn) {
  Written written;
  StepOutput output{{{1, 1}}, true, true, written.write()};
  output.add(0, 1, "part");
  output.add(0, 1, "\nnext\n");
  EXPECT_EQ(written.files[1], "0: part\n0: \n0: next\n");
}

TEST(StepOutput, ALineWithoutEndCostsNoMemory) {
  Written written;
  StepOutput output{{{1, 1}}, false, false, written.write()};
  output.add(0, 1, std::string(100'000, 'x'));
  EXPECT_EQ(written.files[1].size(), 100'000U);
}

}  // namespace
}  // namespace launcher
