// Waiting for the world in tests with real processes.
#pragma once

#include <poll.h>

#include <chrono>

namespace devcluster {

// Returns true if `condition` became true within `patience`, looked at every few milliseconds.
template <typename Condition>
bool eventually(Condition condition,
                std::chrono::milliseconds patience = std::chrono::seconds{10}) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    ::poll(nullptr, 0, 5);
  }
  return true;
}

// Returns true if `condition` stays true for that long.
template <typename Condition>
bool throughout(Condition condition, std::chrono::milliseconds time) {
  return !eventually([&] { return !condition(); }, time);
}

}  // namespace devcluster
