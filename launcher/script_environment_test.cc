#include "launcher/script_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace launcher {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// `variables` are those of the user, as the operator has put them into the pod.
Environment of_user(const std::string& variables, Environment given = {}) {
  given.push_back("KUBEGANG_ENVIRONMENT_0=" + variables);
  return script_environment(given, {}, "/home/ann", "steps");
}

TEST(ScriptEnvironment, TheUsersBashEnvIsReadByThatOfTheLauncher) {
  const std::string own = "BASH_ENV=" + own_directory() + "/env.sh";
  const Environment plain = of_user("A=1\n");
  EXPECT_THAT(plain, Contains(own));
  EXPECT_THAT(plain, Not(Contains(StartsWith("KUBEGANG_BASH_ENV="))));
  const Environment with = of_user("BASH_ENV=/home/ann/.env\n");
  EXPECT_THAT(with, Contains(own));
  EXPECT_THAT(with, Contains("KUBEGANG_BASH_ENV=/home/ann/.env"));
  // A script that was submitted by a script: the file would read itself forever.
  EXPECT_THAT(of_user(own + "\n"), Not(Contains(StartsWith("KUBEGANG_BASH_ENV="))));
}

TEST(ScriptEnvironment, WhatSrunKnowsOfTheJobIsNoVariableOfSlurmTwice) {
  for (const std::string& entry : of_user("", {"SLURM_JOBID=7", "SLURMD_NODENAME=n1"})) {
    if (!entry.starts_with("KUBEGANG_")) continue;
    EXPECT_THAT(entry, Not(HasSubstr("SLURM")));
    if (entry.starts_with("KUBEGANG_JOB=")) {
      EXPECT_THAT(entry, StartsWith("KUBEGANG_JOB=_JOBID=7 "));
      EXPECT_THAT(entry, HasSubstr(" D_NODENAME=n1 "));
    }
  }
}

}  // namespace
}  // namespace launcher
