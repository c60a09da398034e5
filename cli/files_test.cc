#include "cli/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <memory>
#include <sstream>

namespace cli {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// A program that prints into a full disk has failed, however well it has worked.
TEST(FlushOutput, TellsThatADiskIsFull) {
  const File full{std::fopen("/dev/full", "wb"), &std::fclose};
  ASSERT_NE(full, nullptr);
  std::ostringstream out;
  EXPECT_EQ(flush_output(out, full.get()), 0) << "nothing was printed";
  std::fputs("text", full.get());
  EXPECT_EQ(flush_output(out, full.get()), ENOSPC);
  std::ofstream of_stream{"/dev/full"};
  of_stream << "text";
  const File null{std::fopen("/dev/null", "wb"), &std::fclose};
  EXPECT_EQ(flush_output(of_stream, null.get()), ENOSPC) << "what the stream still had";
}

// The stream keeps that it has failed, and the file does not.
TEST(FlushOutput, TellsAnEarlierFailureOfTheStream) {
  const File null{std::fopen("/dev/null", "wb"), &std::fclose};
  ASSERT_NE(null, nullptr);
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  EXPECT_EQ(flush_output(out, null.get()), EIO);
}

// Whether the write that failed is this one or an earlier one.
TEST(FlushOutput, TellsThatNobodyReadsThePipe) {
  std::signal(SIGPIPE, SIG_IGN);
  int ends[2] = {};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const File pipe{::fdopen(ends[1], "wb"), &std::fclose};
  ASSERT_NE(pipe, nullptr);
  std::ostringstream out;
  EXPECT_EQ(flush_output(out, pipe.get()), 0);
  ASSERT_EQ(::close(ends[0]), 0);
  EXPECT_EQ(flush_output(out, pipe.get()), 0) << "nothing was lost";
  out.setstate(std::ios::badbit);
  EXPECT_EQ(flush_output(out, pipe.get()), EPIPE);
}

}  // namespace
}  // namespace cli
