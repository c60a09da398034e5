#include "launcher/user.h"

#include <gtest/gtest.h>

namespace launcher {
namespace {

constexpr std::string_view kPasswd =
    "root:x:0:0:root:/root:/bin/sh\n# a comment\nann:x:1000:100::/home/ann:/bin/bash\nshort:x:7";

TEST(User, IsFoundByTheNumber) {
  EXPECT_EQ(entry_of(kPasswd, 1000)->name, "ann");
  EXPECT_EQ(entry_of(kPasswd, 1000)->home, "/home/ann");
  EXPECT_EQ(entry_of(kPasswd, 7)->home, "");
  EXPECT_FALSE(entry_of(kPasswd, 100)) << "that is a group";
  EXPECT_FALSE(entry_of("", 0));
}

// A container runtime gives a user that the image does not know the home "/".
TEST(User, WhomTheImageDoesNotKnowHasAHomeThatCanBeWritten) {
  Environment environment{"HOME=/", "SLURM_JOB_USER=physics"};
  set_user(environment, std::nullopt, "/tmp");
  EXPECT_EQ(value_of(environment, "HOME"), "/tmp");
  EXPECT_EQ(value_of(environment, "USER"), "physics");
  EXPECT_EQ(value_of(environment, "LOGNAME"), "physics");
  EXPECT_EQ(value_of(environment, "TMPDIR"), "/tmp");
  EXPECT_EQ(value_of(environment, "SLURM_TMPDIR"), "/tmp");
}

TEST(User, WhatIsSetStays) {
  Environment environment{"HOME=/home/bob", "USER=bob", "TMPDIR=/scratch"};
  set_user(environment, entry_of(kPasswd, 1000), "/tmp");
  EXPECT_EQ(value_of(environment, "HOME"), "/home/bob");
  EXPECT_EQ(value_of(environment, "USER"), "bob");
  EXPECT_EQ(value_of(environment, "LOGNAME"), "ann");
  EXPECT_EQ(value_of(environment, "SLURM_TMPDIR"), "/scratch");
}

}  // namespace
}  // namespace launcher
