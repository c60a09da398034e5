// The fixture of the keeper's tests: a node with two gangs, and its journal.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "node-agent/testing/fake_node.h"

namespace agent {

class NodePolicyTest : public ::testing::Test {
 protected:
  // Jobs a and b take turns every second; a runs in even seconds, such as now.
  void two_gangs() {
    node_.add_pod("a", "a");
    node_.add_pod("b", "b");
    node_.publish(node_.timetable({"a", "b"}, {{0}, {1}}));
  }
  std::vector<std::string> journaled() {
    std::vector<std::string> uids;
    for (const PodIdentity& pod : node_.journal().pods) uids.push_back(pod.uid);
    std::sort(uids.begin(), uids.end());
    return uids;
  }
  void damage_journal(const std::string& text) {
    std::ofstream{node_.directory() + "/journal"} << text;
  }
  testing::FakeNode node_;
};

}  // namespace agent
