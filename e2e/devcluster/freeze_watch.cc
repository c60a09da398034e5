#include "e2e/devcluster/freeze_watch.h"

#include <poll.h>

namespace devcluster {
namespace {

constexpr std::chrono::milliseconds kEvery{10};

}  // namespace

// Asks the kernel and not the agents, whose work is what the report judges.
FreezeWatch::FreezeWatch(const kube::Clock& clock, const Kubelet& kubelet)
    : clock_{clock}, kubelet_{kubelet}, thread_{[this](std::stop_token stop) { watch(stop); }} {}

// A pod that was seen frozen is not looked at again: the first freeze is the question.
void FreezeWatch::watch(std::stop_token stop) {
  while (!stop.stop_requested()) {
    for (const PodPlace& pod : kubelet_.places()) {
      // The lock is not held while the kernel is asked.
      {
        const std::lock_guard lock{mutex_};
        if (seen_.contains(pod.name)) continue;
      }
      // Looked at every 10 ms: a first freeze lasts for a slice, so it is not missed.
      if (!os::is_frozen(pod.cgroup)) continue;
      // Up to 10 ms after the freeze.
      const base::Instant now = clock_.wall();
      const std::lock_guard lock{mutex_};
      seen_.emplace(pod.name, now);
    }
    ::poll(nullptr, 0, static_cast<int>(kEvery.count()));
  }
}

std::map<std::string, base::Instant> FreezeWatch::first_freezes() const {
  const std::lock_guard lock{mutex_};
  return seen_;
}

}  // namespace devcluster
