#include "simulation/kernel.h"

#include <algorithm>
#include <utility>

namespace simulation {

using agent::FreezeRequest;
using agent::IoResult;
using std::chrono::microseconds;

namespace {

// Orders of magnitude of a write and a read in cgroupfs. They are not zero, so that a switch of
// many pods takes time and thaws do not coincide with freezes.
constexpr base::Duration kWriteCost = microseconds{20};
constexpr base::Duration kReadCost = microseconds{1};

}  // namespace

// Looks the cgroup up at each call: it may be gone.
class Kernel::PodFreezer final : public agent::Freezer {
 public:
  PodFreezer(Kernel& kernel, std::string uid) : kernel_{kernel}, uid_{std::move(uid)} {}

  IoResult request(FreezeRequest wanted) override {
    kernel_.clock_.spend(kWriteCost);
    return kernel_.request(uid_, wanted);
  }
  agent::Observation observe() override {
    kernel_.clock_.spend(kReadCost);
    if (kernel_.find(uid_) == nullptr) return {.result = IoResult::kGone, .frozen = false};
    return {.result = IoResult::kOk, .frozen = kernel_.stands(uid_)};
  }
  agent::AskedState asked() override {
    kernel_.clock_.spend(kReadCost);
    const Cgroup* cgroup = kernel_.find(uid_);
    if (cgroup == nullptr) return {.result = IoResult::kGone, .request = FreezeRequest::kThawed};
    return {.result = IoResult::kOk, .request = cgroup->request};
  }
  std::optional<int> changes_fd() const override { return std::nullopt; }
  // SOURCE: cgroup v2.
  bool kill_works_while_frozen() const override { return true; }

 private:
  Kernel& kernel_;
  const std::string uid_;
};

void Kernel::make(const std::string& uid) {
  cgroups_[uid].freeze_takes = freezes_take_;
}

// The program runs from now on, unless its cgroup is frozen.
void Kernel::start(const std::string& uid) {
  Cgroup& cgroup = cgroups_[uid];
  cgroup.has_program = true;
  cgroup.worked_as_of = clock_.monotonic();
}

// The work of the program until now stays on its account: kubelet still asks for it.
void Kernel::stop(const std::string& uid) {
  const auto found = cgroups_.find(uid);
  if (found == cgroups_.end()) return;
  account(found->second);
  found->second.has_program = false;
}

// Says how long the next freezes of the pod take until all tasks have stopped. A freeze under way
// keeps its own time.
void Kernel::set_freeze_takes(const std::string& uid, base::Duration takes) {
  const auto found = cgroups_.find(uid);
  if (found != cgroups_.end()) found->second.freeze_takes = takes;
}

void Kernel::set_freezes_take(base::Duration takes) {
  freezes_take_ = takes;
  for (auto& [uid, cgroup] : cgroups_) cgroup.freeze_takes = takes;
}

const Kernel::Cgroup* Kernel::find(const std::string& uid) const {
  const auto found = cgroups_.find(uid);
  return found == cgroups_.end() ? nullptr : &found->second;
}

// Returns true if the pod's tasks have all stopped: the freeze was asked for, and the time that it
// takes has passed.
bool Kernel::stands(const std::string& uid) const {
  const Cgroup* cgroup = find(uid);
  return cgroup != nullptr && cgroup->request == FreezeRequest::kFrozen &&
         clock_.monotonic() >= cgroup->stands_from;
}

// Returns true if the last request was to freeze, even if some tasks still run.
bool Kernel::is_asked_frozen(const std::string& uid) const {
  const Cgroup* cgroup = find(uid);
  return cgroup != nullptr && cgroup->request == FreezeRequest::kFrozen;
}

// Returns the time for which the program has run, frozen time left out; zero if the pod is unknown.
base::Duration Kernel::worked(const std::string& uid) {
  const auto found = cgroups_.find(uid);
  if (found == cgroups_.end()) return {};
  account(found->second);
  return found->second.worked;
}

// Adds the time since the last call to what the program has worked: it works until its tasks have
// stopped, which is later than the freeze was asked for.
void Kernel::account(Cgroup& cgroup) const {
  const base::Duration now = clock_.monotonic();
  if (cgroup.has_program) {
    const base::Duration until =
        cgroup.request == FreezeRequest::kFrozen ? std::min(now, cgroup.stands_from) : now;
    cgroup.worked += std::max(until - cgroup.worked_as_of, base::Duration{0});
  }
  cgroup.worked_as_of = now;
}

void Kernel::remove(const std::string& uid) {
  const auto found = cgroups_.find(uid);
  if (found == cgroups_.end()) return;
  freezing_time_ += freezing_time(found->second);
  cgroups_.erase(found);
}

void Kernel::power_off() {
  freezing_time_ = freezing_time();
  cgroups_.clear();
}

// Returns for how long tasks of the pod have run since its freeze was asked for; zero if it is not.
base::Duration Kernel::freezing_time(const Cgroup& cgroup) const {
  if (cgroup.request != FreezeRequest::kFrozen) return {};
  return std::min(clock_.monotonic(), cgroup.stands_from) - cgroup.asked_at;
}

base::Duration Kernel::freezing_time() const {
  base::Duration sum = freezing_time_;
  for (const auto& [uid, cgroup] : cgroups_) sum += freezing_time(cgroup);
  return sum;
}

// Makes a write to cgroup.freeze. Asking again for what holds changes nothing, as in the kernel.
IoResult Kernel::request(const std::string& uid, FreezeRequest wanted) {
  const auto found = cgroups_.find(uid);
  if (found == cgroups_.end()) return IoResult::kGone;
  Cgroup& cgroup = found->second;
  if (cgroup.request == wanted) return IoResult::kOk;
  // The time before the request is settled under the old one.
  account(cgroup);
  freezing_time_ += freezing_time(cgroup);
  cgroup.request = wanted;
  cgroup.asked_at = clock_.monotonic();
  if (wanted == FreezeRequest::kFrozen) {
    cgroup.stands_from = cgroup.asked_at + cgroup.freeze_takes;
    ++freezes_;
    if (cgroup.freeze_takes > kFreezeTakes) ++slow_freezes_;
    // Each first freeze of a pod is an occasion for kill_at_first_freeze() (node_agent.h).
    if (!std::exchange(cgroup.was_frozen, true)) ++first_freezes_;
  } else {
    on_thaw_(uid);
  }
  return IoResult::kOk;
}

// A pod's UID is enough to find its cgroup: the path serves the message only. kNotFound is what the
// agent meets when it inherits a journal of pods that have ended meanwhile.
base::Result<agent::PodOpener::Opened> Kernel::open_at(const std::string& path,
                                                       const std::string& uid) {
  if (find(uid) == nullptr) return base::Error{base::Code::kNotFound, "no cgroup " + path};
  return Opened{.path = path, .freezer = std::make_shared<PodFreezer>(*this, uid)};
}

// Bindings to CPUs are accepted and change nothing: a program's speed does not depend on them here.
base::Status Kernel::bind(const std::string& uid, kube::QosClass, const std::string&) {
  if (find(uid) == nullptr) return base::Error{base::Code::kNotFound, "no cgroup"};
  return {};
}

}  // namespace simulation
