// One node: its clock, its kernel, and whether it is on. kubelet and agent are beside it.
#pragma once

#include <string>
#include <utility>

#include "simulation/clock.h"
#include "simulation/kernel.h"

namespace simulation {

struct Machine {
  Machine(std::string node, const Time& now, std::function<void(const std::string&)> on_thaw)
      : name{std::move(node)}, clock{now}, kernel{clock, std::move(on_thaw)} {}

  const std::string name;
  HostClock clock;
  Kernel kernel;
  bool is_on = true;
  int boots = 1;
  // Faults that explain what a checker would not accept.
  Time clock_wrong_until{0};  // its wall clock is more wrong than is promised
};

}  // namespace simulation
