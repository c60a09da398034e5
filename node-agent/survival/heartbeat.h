// How the supervisor sees that the worker lives: two counters in a file of the run directory that
// both processes map. A worker that hangs need do nothing for it. The file holds no more than the
// counters, each of which is compared with its own earlier value only, so it does not matter at
// which instruction a process was killed, or which version wrote the file before.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace agent {

class Heartbeat {
 public:
  // Makes the file, or takes the one that is there. Its memory is allocated here: with a full file
  // system this fails (kUnavailable), and no later access does. kPermissionDenied.
  static base::Result<Heartbeat> create(const std::string& path);

  Heartbeat(Heartbeat&& other) noexcept;
  Heartbeat& operator=(Heartbeat&& other) = delete;
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;
  ~Heartbeat();

  // Counted up by the two loops of the worker while they live.
  std::atomic<std::uint64_t>& main_beat() { return beats_->main; }
  std::atomic<std::uint64_t>& switcher_beat() { return beats_->switcher; }
  // Before a worker is started: main_beat() stays 0 until that worker is at work.
  void clear();

 private:
  struct Beats {
    std::atomic<std::uint64_t> main;
    std::atomic<std::uint64_t> switcher;
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  explicit Heartbeat(Beats* beats) : beats_{beats} {}

  Beats* beats_;  // mapped; null after a move
};

}  // namespace agent
