// The API server's objects about this node, kept up to date: its pods, its NodeTimetable, its Node
// (the kill switch), the SchedulerConfig and the operator's Lease. Calls `notify` whenever
// something may have changed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/node_timetable.h"
#include "api/scheduler_config.h"
#include "base/prng.h"
#include "kube/api/lease.h"
#include "kube/api/node.h"
#include "kube/api/pod.h"
#include "kube/client.h"
#include "kube/informer.h"
#include "kube/run_loop.h"
#include "node-agent/policy/inputs.h"

namespace agent {

struct NodeWatchOptions {
  std::string node{};
  kube::ObjectKey lease{};
  std::uint64_t seed = 1;  // of the jitter
};

struct LeaseReading {
  base::Duration at{};  // monotonic, when the answer came
  std::optional<base::Instant> renew_time{};
  friend bool operator==(const LeaseReading&, const LeaseReading&) = default;
};

// `kubegang.io/freeze: disabled` as a label or annotation of the Node.
bool is_kill_switch_on(const kube::Node& node);

// Returns the accepted configuration, absent fields as api.md has them.
TimetableSettings timetable_settings(const kube::SchedulerConfig* config);

class NodeWatch {
 public:
  // `notify` is called from other threads and must only set something in motion.
  NodeWatch(kube::Client client, const kube::Clock& clock, NodeWatchOptions options,
            std::function<void()> notify);

  // The steps to repeat forever, each by a thread of its own: one per kind, one for the
  // Lease, one for quorum reads. A step returns how long to wait, unless its waker ends that. If
  // the API server was away, pods and timetable are asked for within 6 s of its return, the rest
  // within 45 s.
  struct NamedStep {
    std::string name;
    kube::RunLoop::Step step;
    kube::Waker* waker = nullptr;
  };
  std::vector<NamedStep> steps();
  // All of them, on threads of `loops`.
  void start(kube::RunLoop& loops);

  // Fills in the API server's part of the inputs. Where the API server has not answered yet, the
  // rules are those of the process before: a kill switch that is thrown, and a limit that was made
  // longer, hold meanwhile. The main thread only. Cost: a pointer per pod if nothing changed.
  void read(Inputs& inputs, const std::optional<Rules>& before);
  // While `wanted`, gets the NodeTimetable by a quorum read, at once and every 10 s, or 2 s after
  // one that failed, and gives it as Inputs::confirmed. The main thread only.
  void confirm_timetable(bool wanted);
  // Any thread. Null = there is none, or it has not been read yet.
  std::shared_ptr<const kube::NodeTimetable> timetable() const;
  // Returns the last reading that was answered. Any thread.
  std::optional<LeaseReading> lease() const;
  // Returns when the last reading began that has ended, in whatever way. Any thread.
  std::optional<base::Duration> lease_tried() const;
  // The Lease is read now, and not only when its turn comes. Any thread.
  void ask_lease() { lease_waker_.wake(); }

 private:
  void read_pods(Inputs& inputs);
  base::Duration read_lease(std::stop_token stop);
  base::Duration read_timetable();

  template <typename T>
  typename kube::Informer<T>::Handlers handlers(const std::string& what);
  template <typename T>
  NamedStep step_of(const std::string& name, kube::Informer<T>& informer);

  const NodeWatchOptions options_;
  const std::function<void()> notify_;
  kube::Client client_;
  const kube::Clock& clock_;
  kube::Informer<kube::Pod> pods_;
  kube::Informer<kube::NodeTimetable> timetable_;
  kube::Informer<kube::Node> node_;
  kube::Informer<kube::SchedulerConfig> config_;
  base::Prng prng_;                                          // of the Lease's thread
  std::atomic<std::int64_t> fail_open_micros_;               // as of the last read()
  kube::Waker lease_waker_;                                  // when that changes
  std::vector<std::shared_ptr<const kube::Pod>> pods_read_;  // as of the last read()
  base::Duration settle_of_pods_{};                          // likewise

  kube::Waker confirm_waker_;  // when confirm_ becomes true

  mutable std::mutex mu_;
  bool confirm_ = false;                                  // guarded by mu_
  std::uint64_t question_ = 0;                            // changes of confirm_; guarded by mu_
  std::shared_ptr<const kube::NodeTimetable> confirmed_;  // guarded by mu_
  std::string undecodable_;                               // guarded by mu_
  std::optional<LeaseReading> lease_;                     // guarded by mu_
  std::optional<base::Duration> lease_tried_;             // guarded by mu_
};

}  // namespace agent
