// One node: its clock, its kernel, and whether it is on. kubelet and agent are beside it.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "simulation/clock.h"
#include "simulation/kernel.h"

namespace simulation {

struct Machine {
  Machine(std::string node, const Time& now, std::function<void(const std::string&)> on_thaw)
      : name{std::move(node)}, clock{now}, kernel{clock, std::move(on_thaw)} {}

  // Excuses the node for as long as an agent may take to notice that a clock was set.
  void excuse_clock(Time now) { clock_wrong_until = now + std::chrono::seconds{3}; }

  const std::string name;
  HostClock clock;
  Kernel kernel;
  bool is_on = true;
  int boots = 1;
  // Faults that explain what a checker would not accept.
  Time clock_wrong_until{0};  // its wall clock is more wrong than is promised
};

}  // namespace simulation
