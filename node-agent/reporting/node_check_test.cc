#include "node-agent/reporting/node_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "node-agent/testing/temporary_directory.h"

namespace agent {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A node that grants everything but for a kubepods tree; each test takes something away or adds a
// tree.
class NodeCheckTest : public ::testing::Test {
 protected:
  NodeCheckTest() {
    inputs_ = {.cgroup_root = root_.path(),
               .run_directory = "/dev/shm",  // a tmpfs
               .fifo = true,
               .memory_locked = true,
               .open_files_max = kOpenFilesWanted,
               .clock = {.synchronised = true, .error_max = base::Duration{1500}}};
  }
  // Makes a kubepods tree of that name, with the file by which a pod is frozen: cgroup.freeze on
  // v2, freezer.state on v1.
  void make_kubepods(const std::string& name, const std::string& freezer) {
    const fs::path path = fs::path{root_.path()} / name;
    fs::create_directories(path);
    std::ofstream{path / freezer} << "0\n";
  }
  // The controllers that the tree of the systemd driver may use.
  void give_controllers(const std::string& text) {
    std::ofstream{root_.path() + "/kubepods.slice/cgroup.controllers"} << text << "\n";
  }
  // Finds the entry about one thing that the agent needs ("driver", "FIFO"), or its grade alone.
  Grant grant(const std::string& what) const {
    for (Grant& one : check_node(inputs_)) {
      if (one.what == what) return std::move(one);
    }
    return {.found = "no such grant"};
  }
  Grade grade(const std::string& what) const { return grant(what).grade; }

  testing::TemporaryDirectory root_;
  NodeCheckInputs inputs_;
};

// A good grant has no advice, and the check passes.
TEST_F(NodeCheckTest, ANodeThatGrantsEverythingHasNothingToChange) {
  make_kubepods("kubepods.slice", "cgroup.freeze");
  give_controllers("cpuset cpu io memory");
  const std::vector<Grant> grants = check_node(inputs_);
  for (const Grant& one : grants) {
    EXPECT_EQ(one.grade, Grade::kGood) << one.what << ": " << one.found;
    EXPECT_EQ(one.change, "") << one.what;
  }
  EXPECT_TRUE(can_switch(grants));
  EXPECT_EQ(grant("driver").found, "systemd");
  EXPECT_EQ(grant("clock").found, "synchronized, within 2 ms");
  EXPECT_THAT(format_grants(grants), HasSubstr("hierarchy      good     cgroup v2, "));
}

// An empty root is one in which no hierarchy was found. The advice names the setting that is
// usually wrong: the chart looks in the tree of another driver.
TEST_F(NodeCheckTest, WithoutKubepodsGangsCannotBeSwitched) {
  for (const std::string& root : {root_.path(), std::string{}}) {
    inputs_.cgroup_root = root;
    for (const char* what : {"hierarchy", "driver", "freezer"}) {
      EXPECT_EQ(grade(what), Grade::kMissing) << what;
    }
    EXPECT_FALSE(can_switch(check_node(inputs_)));
    EXPECT_THAT(grant("hierarchy").change, HasSubstr("agent.cgroupDriver"));
  }
}

// cgroup v1 counts as such: it works, but notifies of no changes. The agent works there, so the
// check must pass, but it says what could be better.
TEST_F(NodeCheckTest, WhatMakesSwitchesWorseIsWeakAndSaysWhatToChange) {
  make_kubepods("kubepods", "freezer.state");
  inputs_.fifo = false;
  inputs_.memory_locked = false;
  inputs_.open_files_max = 1024;
  inputs_.clock = {};
  inputs_.run_directory = "/proc/self";
  for (const char* what : {"hierarchy", "cpuset", "FIFO", "locked memory", "open files", "clock"}) {
    EXPECT_EQ(grade(what), Grade::kWeak) << what;
    EXPECT_NE(grant(what).change, "") << what;
  }
  EXPECT_EQ(grant("driver").found, "cgroupfs");
  EXPECT_EQ(grant("FIFO").found, "refused");
  EXPECT_THAT(grant("open files").change, HasSubstr("no more than 384 pods"));
  inputs_.fifo_wanted = false;
  EXPECT_EQ(grant("FIFO").found, "not asked for");
}

// After a change of kubelet's driver both trees are there, and the agent may look at the dead one.
// It would freeze nothing there, and all would look well.
TEST_F(NodeCheckTest, SeesAKubepodsThatAnotherDriverHasLeft) {
  make_kubepods("kubepods.slice", "cgroup.freeze");
  give_controllers("cpu memory");
  EXPECT_EQ(grade("driver"), Grade::kGood);
  EXPECT_EQ(grade("cpuset"), Grade::kWeak);
  make_kubepods("kubepods", "cgroup.freeze");
  EXPECT_EQ(grade("driver"), Grade::kWeak);
}

// Without it there is no journal, and so no freeze.
TEST_F(NodeCheckTest, TheRunDirectoryMustBeThere) {
  make_kubepods("kubepods.slice", "cgroup.freeze");
  inputs_.run_directory = root_.path() + "/none";
  EXPECT_EQ(grade("run directory"), Grade::kMissing);
  EXPECT_FALSE(can_switch(check_node(inputs_)));
}

}  // namespace
}  // namespace agent
