// A scheduler fed with events that are made from bytes: what the fuzzer runs, and a test with g++.
#pragma once

#include <cstdint>
#include <span>

namespace sched {

// The first bytes choose a small legal cluster (at most 5 nodes, 3 partitions), told or own timing;
// each further few bytes are an event. Aborts when something breaks that holds for every sequence:
// a job starts only while it waits, on nodes that are up, within the node's cores and memory; no
// job ends twice; the same events give the same decisions. Cost: bounded (kFuzzEventsMax).
inline constexpr int kFuzzEventsMax = 400;
void fuzz_events(std::span<const std::uint8_t> bytes);

}  // namespace sched
