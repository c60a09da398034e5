// What the worker shows to its supervisor and to `kubegang-agent inspect` while it runs, and after
// it died: a file in the run directory that all of them map. Plain memory, so a worker that hangs
// needs to do nothing for it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "node-agent/policy/keeper.h"

namespace agent {

inline constexpr std::size_t kSharedPodsMax = timetable::kPodsMax;
inline constexpr std::size_t kSharedUidBytesMax = 64;

class SharedState {
 public:
  // Makes the file, or takes the one that is there. kPermissionDenied, kUnavailable.
  static base::Result<SharedState> create(const std::string& path);
  // For reading only. kNotFound: no agent has run here; kInvalidArgument: not such a file.
  static base::Result<SharedState> open(const std::string& path);

  SharedState(SharedState&& other) noexcept;
  SharedState& operator=(SharedState&& other) = delete;
  SharedState(const SharedState&) = delete;
  SharedState& operator=(const SharedState&) = delete;
  ~SharedState();

  // Counted up by the two loops of the worker while they live. REQUIRES: made by create().
  std::atomic<std::uint64_t>& keeper_beat();
  std::atomic<std::uint64_t>& switcher_beat();

  // The keeper's thread only.
  void show(const std::vector<PodView>& pods);

  struct Shown {
    std::string uid;
    PodStanding standing = PodStanding::kWaitedFor;
    std::optional<FreezeState> state;
    std::optional<base::Instant> last_switch;
    friend bool operator==(const Shown&, const Shown&) = default;
  };
  // By index in the timetable. Nothing when the worker is changing it all the time.
  std::optional<std::vector<Shown>> read() const;

 private:
  struct Layout;
  explicit SharedState(Layout* layout) : layout_{layout} {}

  Layout* layout_;  // mapped; null after a move
};

}  // namespace agent
