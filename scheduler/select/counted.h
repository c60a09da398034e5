// A counted resource: nodes have a number of units of it, and it does not matter which. Memory is
// one (in MiB). A selector asks three questions of it: what is a job charged on a node, is that
// free there, and what is left when jobs have come or gone. Devices have books of their own
// (device_books.h; README.md says why).
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sched {

enum class CountedPer : std::uint8_t {
  kNothing,    // the resource is not managed: a job is charged nothing and always fits
  kCpu,        // for each CPU that the job gets there
  kNode,       // the same on each node
  kWholeNode,  // all that the node has, so no other job may hold any (R5.3)
};

// The counted resource that a job asks of each of its nodes.
struct CountedDemand {
  CountedPer per = CountedPer::kNothing;
  std::int64_t amount = 0;  // for each CPU or node

  // Returns what it is charged on a node where it gets `cpus` CPUs.
  std::int64_t charge(int cpus, std::int64_t capacity) const {
    switch (per) {
      case CountedPer::kNothing:
        return 0;
      case CountedPer::kCpu:
        return amount * cpus;
      case CountedPer::kNode:
        return amount;
      case CountedPer::kWholeNode:
        return capacity;
    }
    return 0;
  }
  // Returns true if its charge is free on a node of that capacity, where it gets `cpus` CPUs.
  bool fits(int cpus, std::int64_t capacity, std::int64_t free) const {
    return per == CountedPer::kNothing || charge(cpus, capacity) <= free;
  }
  friend auto operator<=>(const CountedDemand&, const CountedDemand&) = default;
};

// How much of one resource each node has, and how much of it is held; by rank.
class CountedBook {
 public:
  explicit CountedBook(std::vector<std::int64_t> capacity)
      : capacity_{std::move(capacity)}, held_(capacity_.size()) {}

  std::int64_t capacity(int rank) const { return capacity_[index(rank)]; }
  void set_capacity(int rank, std::int64_t capacity) { capacity_[index(rank)] = capacity; }
  std::int64_t free(int rank) const { return capacity_[index(rank)] - held_[index(rank)]; }
  // Holds the amount; a negative one gives back.
  void hold(int rank, std::int64_t amount) { held_[index(rank)] += amount; }
  std::int64_t held(int rank) const { return held_[index(rank)]; }
  void set_held(int rank, std::int64_t amount) { held_[index(rank)] = amount; }
  // Returns true if a job that gets `cpus` CPUs there finds what it is charged.
  bool fits(const CountedDemand& demand, int cpus, int rank) const {
    return demand.fits(cpus, capacity(rank), free(rank));
  }

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  std::vector<std::int64_t> capacity_;
  std::vector<std::int64_t> held_;
};

}  // namespace sched
