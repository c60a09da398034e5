#include "linux/open_files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace os {
namespace {

rlimit open_files() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit;
}

TEST(OpenFiles, AreRaisedUpToTheHardLimitAndNeverLowered) {
  const rlimit before = open_files();
  const rlimit low{.rlim_cur = 64, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(open_files_max(), before.rlim_max);
  raise_open_files(100);
  EXPECT_EQ(open_files().rlim_cur, 100U);
  raise_open_files(10);
  EXPECT_EQ(open_files().rlim_cur, 100U);
  raise_open_files(RLIM_INFINITY);
  EXPECT_EQ(open_files().rlim_cur, before.rlim_max);
  EXPECT_EQ(open_files().rlim_max, before.rlim_max);
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace os
