// Takes over from the process before this one: opens again what the journal names. One thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "node-agent/freezer/pod_opener.h"
#include "node-agent/switching/assignment.h"

namespace agent {

using PodControls = std::vector<std::shared_ptr<PodControl>>;

class Inheritance {
 public:
  static constexpr base::Duration kRetryAfter = std::chrono::milliseconds{100};

  explicit Inheritance(PodOpener& opener) : opener_{opener} {}

  // Once: opens the pods that the journal names, and returns those that could be opened. A pod that
  // is gone is dropped. One that cannot be opened just now (no descriptor left, no right) waits: it
  // may be frozen by us, so it is not forgotten.
  PodControls begin(const std::vector<PodIdentity>& named);
  // Tries again to open the pods that wait, every kRetryAfter. Returns those that could be opened.
  PodControls retry(base::Duration now);

  const std::vector<PodIdentity>& waiting() const { return waiting_; }
  bool waits_for(const std::string& uid) const;
  // Returns when retry() has something to do; nullopt if no pod waits.
  std::optional<base::Duration> next_try() const;

 private:
  PodControls open_waiting();

  PodOpener& opener_;
  std::vector<PodIdentity> waiting_;
  base::Duration try_at_{0};
};

}  // namespace agent
