// Pods' cgroups as ordinary files, for tests of what reads and writes them from outside. The files
// are not a kernel: what is asked of one stays without an answer until the test writes it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "node-agent/testing/temporary_directory.h"

namespace agent::testing {

class PodFilesTest : public ::testing::Test {
 protected:
  // `freeze` and `events`: what cgroup.freeze and cgroup.events of the pod's cgroup say.
  void write(const std::string& pod, const std::string& freeze, const std::string& events) {
    const std::filesystem::path path = std::filesystem::path{root_.path()} / "kubepods" / pod;
    std::filesystem::create_directories(path);
    std::ofstream{path / "cgroup.freeze"} << freeze << "\n";
    std::ofstream{path / "cgroup.events"} << events;
  }
  // Returns the last request to the pod's cgroup: "0" or "1".
  std::string freeze_file(const std::string& pod) const {
    std::ifstream file{root_.path() + "/kubepods/" + pod + "/cgroup.freeze"};
    std::string line;
    std::getline(file, line);
    return line;
  }

  const TemporaryDirectory root_;
};

}  // namespace agent::testing
