#include "node-agent/survival/inheritance.h"

#include <algorithm>

// Taking over must neither lose a frozen pod nor take a pod for another. A journal entry has the
// path of a cgroup and the UID of its pod; the opener accepts the path only if its last component
// names that UID, and a UID is never used twice. So a directory that opens is the pod's own,
// whatever happened in between, and one that is gone needs no thaw: the kernel removes a cgroup
// only when no process is left in it.
namespace agent {

PodControls Inheritance::begin(const std::vector<PodIdentity>& named) {
  waiting_ = named;
  return open_waiting();
}

PodControls Inheritance::retry(base::Duration now) {
  if (waiting_.empty() || now < try_at_) return {};
  try_at_ = now + kRetryAfter;
  return open_waiting();
}

// Each pod that the journal names ends in one of three ways: inherited, gone, or waiting. It waits
// if its cgroup exists and cannot be opened or read now, for example for lack of descriptors. Such
// a pod may be frozen, so the journal keeps naming it until it was inherited or is gone.
PodControls Inheritance::open_waiting() {
  PodControls inherited;
  std::erase_if(waiting_, [&](const PodIdentity& pod) {
    const base::Result<PodOpener::Opened> opened = opener_.open_at(pod.path, pod.uid);
    if (!opened) {
      // Gone, or a path that cannot be this pod's (its name lacks the UID): neither gets better by
      // waiting.
      return opened.error().code == base::Code::kNotFound ||
             opened.error().code == base::Code::kInvalidArgument;
    }
    const AskedState requested = opened->freezer->asked();
    if (requested.result != IoResult::kOk) return requested.result == IoResult::kGone;
    // A freeze that the journal covers counts as the agent's, whichever program wrote it: an own
    // one that was taken for foreign would last forever.
    const FoundAs found_as =
        requested.request == FreezeRequest::kFrozen ? FoundAs::kFrozenByUs : FoundAs::kRunning;
    inherited.push_back(
        std::make_shared<PodControl>(pod, opened->freezer, found_as, opened->never_freeze));
    return true;
  });
  return inherited;
}

bool Inheritance::waits_for(const std::string& uid) const {
  return std::any_of(waiting_.begin(), waiting_.end(),
                     [&](const PodIdentity& pod) { return pod.uid == uid; });
}

std::optional<base::Duration> Inheritance::next_try() const {
  if (waiting_.empty()) return std::nullopt;
  return try_at_;
}

}  // namespace agent
