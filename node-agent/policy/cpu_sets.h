// Binds pods to the CPUs that they bring along, and keeps them there. A pod that cannot be bound
// runs unbound, and takes its turns; the status names it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "kube/api/pod.h"

namespace agent {

class PodOpener;

// One thread.
class CpuSets {
 public:
  // How often a pod is looked at whose set is applied, or cannot be, and one whose cgroup is not
  // there yet.
  static constexpr base::Duration kLookEvery = std::chrono::seconds{10};
  static constexpr base::Duration kRetryAfter = std::chrono::milliseconds{100};

  explicit CpuSets(PodOpener& opener) : opener_{opener} {}

  struct Wanted {
    std::string name{};  // namespace/name
    std::string uid{};
    kube::QosClass qos = kube::QosClass::kBurstable;
    std::string cpus{};    // "" = none: a set that was applied before is taken back
    std::string online{};  // the node's CPUs; "" = not known: nothing is checked
  };
  struct Outcome {
    std::string note{};  // what is not as wanted; "" = bound, or not there yet
    base::Duration again_at{};
  };
  // Does what is due, at once when another set is wanted than last time.
  Outcome apply(const Wanted& wanted, base::Duration now);

  // Once, before the first apply(): these pods were bound by the process before.
  void inherit(const std::vector<std::string>& uids);
  // Returns the UIDs of all pods that are bound by us, or were and cannot be set free.
  std::vector<std::string> bound() const;

  // Only these pods exist.
  void forget_all_but(const std::set<std::string>& uids);

 private:
  struct Bound {
    std::string cpus;
    Outcome outcome;
  };
  Outcome bind(const Wanted& wanted, base::Duration now);
  Outcome take_back(const Wanted& wanted, base::Duration now);

  PodOpener& opener_;
  std::map<std::string, Bound> bound_;  // by pod UID
};

}  // namespace agent
