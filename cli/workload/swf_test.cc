#include "cli/workload/swf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Reads a trace that has to be sound; error_of() reads one that has to be refused, and returns why.
SwfTrace read(std::string_view text) {
  const base::Result<SwfTrace> trace = read_swf(text, "t.swf");
  EXPECT_TRUE(trace.ok()) << trace.error().message;
  return trace.ok() ? *trace : SwfTrace{};
}

std::string error_of(std::string_view text) {
  const base::Result<SwfTrace> trace = read_swf(text, "t.swf");
  return trace.ok() ? "" : trace.error().message;
}

// The format has 18 fields by position; each value here is another one, so that swapped fields
// would show. Requested values come before allocated ones.
TEST(Swf, EachFieldHasItsPlace) {
  const SwfTrace trace =
      read("; MaxProcs: 128\n\n 7 100 1 60 8 2 3 16 900 2048 1 4 5 6 7 8 9 10\n");
  ASSERT_EQ(trace.size(), 1U);
  EXPECT_EQ(trace[0], (SwfJob{.number = 7,
                              .submit = seconds{100},
                              .run = seconds{60},
                              .processors_allocated = 8,
                              .processors_requested = 16,
                              .requested_time = seconds{900},
                              .requested_memory_kib = 2048,
                              .status = 1,
                              .user = 4,
                              .group = 5,
                              .queue = 7}));
  EXPECT_EQ(trace[0].processors(), 16);
}

// -1 is the format's "unknown"; archives also have 0 where a request cannot be 0.
TEST(Swf, WhatIsNotKnownIsAbsent) {
  const SwfTrace trace = read("1 0 -1 -1 4 -1 -1 0.5 0 0 -1 -1 -1 -1 -1 -1 -1 -1");
  ASSERT_EQ(trace.size(), 1U);
  EXPECT_EQ(trace[0], (SwfJob{.number = 1, .processors_allocated = 4}));
  EXPECT_EQ(trace[0].processors(), 4) << "what it got";
}

// Traces come from many programs and systems, each with its own habits.
TEST(Swf, TimesMayHaveFractionsAndLinesMayEndInCarriageReturns) {
  const SwfTrace trace =
      read("1 0.5 -1 1.25 1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 ; a note\r\n");
  ASSERT_EQ(trace.size(), 1U);
  EXPECT_EQ(trace[0].submit, milliseconds{500});
  EXPECT_EQ(trace[0].run, milliseconds{1250});
}

// Some archives are ordered by end. Equal times keep the file's order.
TEST(Swf, JobsComeInTheOrderOfTheirSubmission) {
  const SwfTrace trace = read(
      "1 9 -1 1 1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1\n"
      "2 3 -1 1 1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1\n"
      "3 9 -1 1 1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1\n");
  ASSERT_EQ(trace.size(), 3U);
  EXPECT_EQ(trace[0].number, 2);
  EXPECT_EQ(trace[1].number, 1);
  EXPECT_EQ(trace[2].number, 3);
}

// Status 2 to 4: parts of a job that was checkpointed, whose whole is another line. Played beside
// the whole they would count its work twice.
TEST(Swf, PartsOfAJobAreKnown) {
  for (const auto& [status, is_part] :
       {std::pair{0, false}, {1, false}, {2, true}, {3, true}, {4, true}, {5, false}}) {
    EXPECT_EQ(SwfJob{.status = status}.is_part(), is_part) << status;
  }
  EXPECT_FALSE(SwfJob{}.is_part());
}

// Archives have hundreds of thousands of lines. "nan" is a number to std::from_chars, and compares
// as false with each bound.
TEST(Swf, AnErrorNamesFileLineAndField) {
  EXPECT_EQ(error_of("; a comment\n1 2 3\n"), "t.swf:2: has 3 fields; a job has 18");
  EXPECT_EQ(error_of("1 0 -1 soon 1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1"),
            "t.swf:1: field 4 (run time) \"soon\": must be a number of at most 3000000000");
  EXPECT_EQ(error_of("1 0 -1 5 1 -1 -1 -1 4e9 -1 -1 -1 -1 -1 -1 -1 -1 -1"),
            "t.swf:1: field 9 (requested time) \"4e9\": must be a number of at most 3000000000");
  EXPECT_THAT(error_of("1 0 -1 nan 1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1"),
              testing::HasSubstr("field 4"));
  EXPECT_EQ(error_of("\n1 -1 -1 5 1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1"),
            "t.swf:2: field 2 (submit time): is missing");
}

// A generated trace is a file like those of archives, for other simulators too. The comment says
// what made it, one line of it per line.
TEST(Swf, WhatIsWrittenIsReadAgain) {
  const SwfTrace trace = {{.number = 1, .run = seconds{5}, .processors_allocated = 2},
                          {.number = 2,
                           .submit = seconds{30},
                           .run = seconds{60},
                           .processors_requested = 16,
                           .requested_time = seconds{900},
                           .requested_memory_kib = 2048,
                           .status = 5,
                           .user = 4,
                           .group = 0,
                           .queue = 7}};
  const std::string text = write_swf(trace, "a model\nits seed");
  EXPECT_THAT(text, testing::StartsWith("; Version: 2.2\n; a model\n; its seed\n1 0 -1 5 2 "));
  EXPECT_EQ(read(text), trace);
}

}  // namespace
}  // namespace cli
