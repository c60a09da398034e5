#include "node-agent/testing/fake_freezer.h"

#include <utility>

#include "node-agent/testing/fake_switch_clock.h"

namespace agent::testing {
namespace {

// A pod's handle, as the agent gets it; the state is the FakeKernel's.
class FakeFreezer final : public Freezer {
 public:
  FakeFreezer(FakeKernel& kernel, std::string name) : kernel_{kernel}, name_{std::move(name)} {}

  IoResult request(FreezeRequest wanted) override { return kernel_.write(name_, wanted); }
  Observation observe() override { return kernel_.observe(name_); }
  AskedState asked() override { return kernel_.requested(name_); }
  std::optional<int> changes_fd() const override { return std::nullopt; }
  bool kill_works_while_frozen() const override {
    return kernel_.cgroup(name_).kill_works_while_frozen;
  }

 private:
  FakeKernel& kernel_;
  const std::string name_;
};

}  // namespace

FakeKernel::FakeKernel(FakeSwitchClock& clock) : clock_{clock} {}
FakeKernel::~FakeKernel() = default;

// Opening makes the cgroup; handles of one name share it, as those of an agent and its successor
// do.
std::shared_ptr<Freezer> FakeKernel::open(const std::string& name) {
  cgroups_.try_emplace(name);
  return std::make_shared<FakeFreezer>(*this, name);
}

// The pod's own request counts only from frozen_from on; an ancestor's freeze counts at once.
bool FakeKernel::is_running(const std::string& name) {
  const Cgroup& group = cgroups_[name];
  if (group.removed) return false;
  if (group.ancestor_frozen) return false;
  return group.request == FreezeRequest::kThawed || clock_.monotonic() < group.frozen_from;
}

// The writes since the last call.
std::vector<std::string> FakeKernel::take_log() {
  return std::exchange(log_, {});
}

// Logged in order ("!" marks a failure), so that tests can compare sequences.
IoResult FakeKernel::write(const std::string& name, FreezeRequest wanted) {
  // Time passes with each call, so that orders and measured durations are like those of a kernel.
  clock_.advance(kWriteCost);
  Cgroup& group = cgroups_[name];
  ++group.writes;
  IoResult result = group.removed ? IoResult::kGone : IoResult::kOk;
  // One failure for each write, in the order that the test has given.
  if (!group.fail_next.empty()) {
    result = group.fail_next.front();
    group.fail_next.erase(group.fail_next.begin());
  }
  log_.push_back((wanted == FreezeRequest::kFrozen ? "freeze " : "thaw ") + name +
                 (result == IoResult::kOk ? "" : "!"));
  if (result != IoResult::kOk) return result;
  // A freeze that is written again does not begin again, as in the kernel.
  if (wanted == FreezeRequest::kFrozen && group.request == FreezeRequest::kThawed) {
    group.frozen_from = clock_.monotonic() + group.freeze_takes;
  }
  group.request = wanted;
  return IoResult::kOk;
}

// Looks cost time as well, though less than writes: a switch of many pods takes as long as it
// would.
Observation FakeKernel::observe(const std::string& name) {
  clock_.advance(kReadCost);
  const Cgroup& group = cgroups_[name];
  if (group.removed) return {.result = IoResult::kGone, .frozen = false};
  return {.result = IoResult::kOk, .frozen = !is_running(name)};
}

AskedState FakeKernel::requested(const std::string& name) {
  clock_.advance(kReadCost);
  const Cgroup& group = cgroups_[name];
  if (group.removed) return {.result = IoResult::kGone, .request = FreezeRequest::kThawed};
  if (group.mute) return {.result = IoResult::kFailed, .request = FreezeRequest::kThawed};
  return {.result = IoResult::kOk, .request = group.request};
}

}  // namespace agent::testing
