// The switcher's reports on its work: plain records in a ring that never blocks, and counters.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/time.h"

namespace agent {

enum class SwitchCause : std::uint8_t { kBoundary, kAssignment, kRepair };

struct SwitchReport {
  SwitchCause cause = SwitchCause::kBoundary;
  base::Instant due{};          // the boundary, or when the assignment was seen
  std::int64_t slot = 0;        // number of the slot that `due` is in, since the epoch
  base::Instant woke{};         // ready to write; before `due` when the wait ended in time
  base::Instant first_write{};  // begin of the first write
  base::Instant confirmed{};    // all freezes seen, or the barrier passed
  base::Instant last_write{};   // return of the last write
  std::uint32_t froze_count = 0;
  std::uint32_t thawed_count = 0;
  std::uint32_t late_count = 0;  // not frozen when the barrier passed
};

// One writer, one reader, no lock. A full ring drops the newest: metrics lose a sample, no more.
class ReportRing {
 public:
  static constexpr std::size_t kReportsMax = 256;

  // The switcher only.
  bool push(const SwitchReport& report) {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_acquire) >= kReportsMax) return false;
    reports_[tail % kReportsMax] = report;
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }
  // For the main thread only.
  std::optional<SwitchReport> pop() {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) return std::nullopt;
    const SwitchReport report = reports_[head % kReportsMax];
    head_.store(head + 1, std::memory_order_release);
    return report;
  }

 private:
  // head_ and tail_ only grow; a report's place is its number modulo the size. The writer publishes
  // a report by storing tail_ (release), the reader frees its place by storing head_ (release).
  std::array<SwitchReport, kReportsMax> reports_{};
  std::atomic<std::size_t> head_{0};
  std::atomic<std::size_t> tail_{0};
};

// Written by the switcher, read by any thread. Never go down.
struct SwitchCounters {
  std::atomic<std::uint64_t> switches{0};
  std::atomic<std::uint64_t> boundaries_missed{0};
  std::atomic<std::uint64_t> stuck{0};
  std::atomic<std::uint64_t> overlap_micros{0};
  std::atomic<std::uint64_t> clock_steps{0};
  std::atomic<std::uint64_t> write_errors{0};
  std::atomic<std::uint64_t> repairs{0};  // another program had thawed what we froze
  std::atomic<std::uint64_t> reports_dropped{0};
  std::atomic<std::uint64_t> obeyed_assignment{0};  // number of the newest one in force
};

}  // namespace agent
