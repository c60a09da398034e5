#include "node-agent/survival/adoption.h"

#include <algorithm>

namespace agent {

PodControls Adoption::begin(const std::vector<PodIdentity>& named) {
  waiting_ = named;
  return open_waiting();
}

PodControls Adoption::retry(base::Duration now) {
  if (waiting_.empty() || now < try_at_) return {};
  try_at_ = now + kRetryAfter;
  return open_waiting();
}

PodControls Adoption::open_waiting() {
  PodControls adopted;
  std::erase_if(waiting_, [&](const PodIdentity& pod) {
    const base::Result<PodOpener::Opened> opened = opener_.open_at(pod.path, pod.uid);
    if (!opened) {
      return opened.error().code == base::Code::kNotFound ||
             opened.error().code == base::Code::kInvalidArgument;
    }
    const AskedState requested = opened->freezer->asked();
    if (requested.result != IoResult::kOk) return requested.result == IoResult::kGone;
    const AdoptedAs adopted_as =
        requested.request == FreezeRequest::kFrozen ? AdoptedAs::kFrozenByUs : AdoptedAs::kRunning;
    adopted.push_back(
        std::make_shared<PodControl>(pod, opened->freezer, adopted_as, opened->never_freeze));
    return true;
  });
  return adopted;
}

bool Adoption::waits_for(const std::string& uid) const {
  return std::any_of(waiting_.begin(), waiting_.end(),
                     [&](const PodIdentity& pod) { return pod.uid == uid; });
}

std::optional<base::Duration> Adoption::next_try() const {
  if (waiting_.empty()) return std::nullopt;
  return try_at_;
}

}  // namespace agent
