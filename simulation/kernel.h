// The freezers of one node's pods, and the programs in them as far as time goes: a program works
// while its cgroup is not frozen. Implements agent::Freezer for the real agent.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "node-agent/freezer/freezer.h"
#include "node-agent/freezer/pod_opener.h"
#include "simulation/clock.h"

namespace simulation {

// INVARIANT: `worked` of a cgroup grows only while it has a program and is not frozen, so a
// program's end depends on how often its gang had its turn. All calls are of one thread; each is a
// look-up by UID.
class Kernel final : public agent::PodOpener {
 public:
  static constexpr base::Duration kFreezeTakes = std::chrono::microseconds{60};  // a normal one

  struct Cgroup {
    agent::FreezeRequest request = agent::FreezeRequest::kThawed;
    base::Duration asked_at{0};     // monotonic: of the last request that changed it
    base::Duration stands_from{0};  // monotonic: when a freeze has stopped all tasks
    base::Duration freeze_takes = kFreezeTakes;
    bool has_program = false;
    bool was_frozen = false;   // at any time
    base::Duration worked{0};  // time that the program ran
    base::Duration worked_as_of{0};
  };

  // `on_thaw`: a cgroup that was frozen or asked to freeze is thawed by the agent.
  Kernel(HostClock& clock, std::function<void(const std::string& uid)> on_thaw)
      : clock_{clock}, on_thaw_{std::move(on_thaw)} {}

  // kubelet's: the cgroup of a pod, its program, its end.
  void make(const std::string& uid);
  void start(const std::string& uid);
  void stop(const std::string& uid);  // the program ends, the cgroup stays
  void remove(const std::string& uid);
  void power_off();
  void set_freeze_takes(const std::string& uid, base::Duration takes);
  // Sets it for all pods, also those that come.
  void set_freezes_take(base::Duration takes);

  const Cgroup* find(const std::string& uid) const;
  bool stands(const std::string& uid) const;  // frozen, all of it
  bool is_asked_frozen(const std::string& uid) const;
  base::Duration worked(const std::string& uid);
  const std::map<std::string, Cgroup>& all() const { return cgroups_; }
  // Returns how many cgroups were asked to freeze for the first time until now.
  std::int64_t first_freezes() const { return first_freezes_; }
  // Returns all freezes until now, and those that take longer than a normal one.
  std::int64_t freezes() const { return freezes_; }
  std::int64_t slow_freezes() const { return slow_freezes_; }
  // Returns the time between request and standstill of all of them together.
  base::Duration freezing_time() const;
  void thaw(const std::string& uid) { (void)request(uid, agent::FreezeRequest::kThawed); }

  // agent::PodOpener
  base::Result<Opened> open(const std::string& uid, kube::QosClass) override {
    return open_at(uid, uid);
  }
  base::Result<Opened> open_at(const std::string& path, const std::string& uid) override;
  base::Status bind(const std::string& uid, kube::QosClass, const std::string& cpus) override;

 private:
  class PodFreezer;

  agent::IoResult request(const std::string& uid, agent::FreezeRequest wanted);
  void account(Cgroup& cgroup) const;
  base::Duration freezing_time(const Cgroup& cgroup) const;

  HostClock& clock_;
  const std::function<void(const std::string& uid)> on_thaw_;
  std::map<std::string, Cgroup> cgroups_;       // by pod UID
  base::Duration freezes_take_ = kFreezeTakes;  // of new cgroups
  std::int64_t first_freezes_ = 0;
  std::int64_t freezes_ = 0, slow_freezes_ = 0;
  base::Duration freezing_time_{0};  // of those that are over
};

}  // namespace simulation
