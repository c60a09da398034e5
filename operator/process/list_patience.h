// How long a process waits until it has listed all kinds.
#pragma once

#include <optional>
#include <string>

#include "base/time.h"
#include "kube/clock.h"

namespace control {

// All kinds are listed within that, or the process ends: as the leader it would keep others from
// leading, and as a stand-by it would be none.
inline constexpr base::Duration kListsWithin = std::chrono::minutes{2};

// Begins to wait when it is made. Threads: none.
class ListPatience {
 public:
  explicit ListPatience(const kube::Clock& clock)
      : clock_{clock}, give_up_{clock.monotonic() + kListsWithin} {}

  // Returns why the process ends, once it has waited long enough. `missing` names the kinds.
  std::optional<std::string> end(const std::string& missing) const {
    if (clock_.monotonic() < give_up_) return std::nullopt;
    return "cannot list " + missing + " within " +
           std::to_string(kListsWithin / std::chrono::seconds{1}) +
           " s (is the CRD there, and may this account list it?); ending";
  }

 private:
  const kube::Clock& clock_;
  base::Duration give_up_;
};

}  // namespace control
