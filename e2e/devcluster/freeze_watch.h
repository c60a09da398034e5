// When each pod of the process kubelet was frozen for the first time, as the kernel says. Before
// that a pod settles (a pod cannot be frozen while it starts); the demo's figures count from then
// on. The stamps alone cannot tell a freeze from a machine that stood still.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "e2e/devcluster/kubelet/kubelet.h"
#include "kube/clock.h"

namespace devcluster {

// Has a thread that looks every 10 ms at the pods that have not been frozen yet.
class FreezeWatch {
 public:
  // Both must outlive it.
  FreezeWatch(const kube::Clock& clock, const Kubelet& kubelet);

  // By pod name; those that were never seen frozen are left out.
  std::map<std::string, base::Instant> first_freezes() const;

 private:
  void watch(std::stop_token stop);

  const kube::Clock& clock_;
  const Kubelet& kubelet_;
  mutable std::mutex mutex_;
  std::map<std::string, base::Instant> seen_;  // GUARDED_BY(mutex_)
  std::jthread thread_;
};

}  // namespace devcluster
