// A kernel's freezer in memory: cgroups by name, an ordered log of what was written, and knobs for
// everything that goes wrong on a real one. Time passes on the clock as calls are made, so that
// code that waits for a state in a loop comes to its end.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "node-agent/freezer/freezer.h"
#include "node-agent/switching/switch_clock.h"

namespace agent::testing {

class FakeSwitchClock;

// Not thread-safe.
class FakeKernel {
 public:
  explicit FakeKernel(FakeSwitchClock& clock);
  ~FakeKernel();

  struct Cgroup {
    FreezeRequest request = FreezeRequest::kThawed;
    bool ancestor_frozen = false;
    base::Duration freeze_takes{0};  // knob: how long tasks go on after the write
    base::Duration frozen_from{0};   // monotonic
    bool removed = false;            // knob
    bool unreadable = false;         // knob: it may not be opened
    bool mute = false;               // knob: how it is asked to be cannot be read
    bool kill_works_while_frozen = true;
    std::vector<IoResult> fail_next{};  // knob: results of the next writes, first one first
    std::size_t writes = 0;
    std::string cpus{};          // that it is bound to; "" = all
    std::string never_freeze{};  // knob: why it must not be frozen
  };

  Cgroup& cgroup(const std::string& name) { return cgroups_[name]; }
  bool is_running(const std::string& name);
  // Returns a handle of that cgroup, which is made if it is new. The kernel must outlive it.
  std::shared_ptr<Freezer> open(const std::string& name);

  // Takes "freeze a", "thaw a" in the order of the writes; a failed one has a "!" behind it.
  std::vector<std::string> take_log();

  IoResult write(const std::string& name, FreezeRequest wanted);
  Observation observe(const std::string& name);
  AskedState requested(const std::string& name);

  static constexpr base::Duration kWriteCost{20};
  static constexpr base::Duration kReadCost{1};

 private:
  FakeSwitchClock& clock_;
  std::map<std::string, Cgroup> cgroups_;
  std::vector<std::string> log_;
};

}  // namespace agent::testing
