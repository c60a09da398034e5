#include "node-agent/testing/fake_node.h"

#include <algorithm>
#include <utility>

#include "kube/api/resource_info.h"

namespace agent::testing {

// A pod's path is its UID here: the layouts of kubelet have tests of their own
// (pod_cgroups_test.cc).
class FakeNode::Opener final : public PodOpener {
 public:
  explicit Opener(FakeKernel& kernel) : kernel_{kernel} {}
  base::Result<Opened> open(const std::string& uid, kube::QosClass) override {
    return open_at(uid, uid);
  }
  base::Result<Opened> open_at(const std::string& path, const std::string&) override {
    if (kernel_.cgroup(path).removed) return base::Error{base::Code::kNotFound, "no cgroup"};
    if (kernel_.cgroup(path).unreadable) {
      return base::Error{base::Code::kPermissionDenied, "open cgroup.freeze: Permission denied"};
    }
    return Opened{.path = path,
                  .freezer = kernel_.open(path),
                  .never_freeze = kernel_.cgroup(path).never_freeze};
  }
  base::Status bind(const std::string& uid, kube::QosClass, const std::string& cpus) override {
    FakeKernel::Cgroup& cgroup = kernel_.cgroup(uid);
    if (cgroup.removed) return base::Error{base::Code::kNotFound, "no cgroup"};
    cgroup.cpus = cpus;
    return {};
  }

 private:
  FakeKernel& kernel_;
};

// In place of the switcher's thread: an assignment is obeyed within submit(), unless the switcher
// is held.
class FakeNode::Sink final : public AssignmentSink {
 public:
  explicit Sink(SwitchCore& core) : core_{core} {}
  void submit(Assignment assignment) override {
    assignment.number = ++number_;
    // None is freed: the core keeps a pointer to the one in force.
    alive_.push_back(std::make_unique<Assignment>(std::move(assignment)));
    newest_ = alive_.back().get();
    if (!held_) obey_newest();
  }
  bool caught_up() const override { return newest_ == nullptr; }
  void hold(bool on) {
    held_ = on;
    if (!on) obey_newest();
  }

 private:
  void obey_newest() {
    if (newest_ != nullptr) core_.obey(*std::exchange(newest_, nullptr));
  }

  SwitchCore& core_;
  bool held_ = false;
  const Assignment* newest_ = nullptr;  // not obeyed yet
  std::uint64_t number_ = 0;
  std::vector<std::unique_ptr<Assignment>> alive_;
};

// As an agent that has heard of everything once: tests of its start take one of the three away.
FakeNode::FakeNode() {
  inputs_.pods_known = true;
  inputs_.timetable_known = true;
  inputs_.rules_known = true;
  restart_agent();
}
FakeNode::~FakeNode() = default;

// Kernel, journal and clock stay, as they do when the process ends; everything else is made again.
void FakeNode::restart_agent(bool pods_known) {
  policy_.reset();
  sink_.reset();
  core_.reset();
  inputs_.pods_known = pods_known;
  inputs_.timetable_known = pods_known;
  reports_ = std::make_unique<ReportRing>();
  counters_ = std::make_unique<SwitchCounters>();
  core_ = std::make_unique<SwitchCore>(clock_, *reports_, *counters_);
  opener_ = std::make_unique<Opener>(kernel_);
  sink_ = std::make_unique<Sink>(*core_);
  policy_ = std::make_unique<NodePolicy>("n1", JournalFile{directory_.path() + "/journal"},
                                         "boot-1", *opener_, *sink_);
  // Cgroups that a crashed agent left frozen are taken over here, before the first step, as the
  // real program does it.
  (void)policy_->inherit();
}

void FakeNode::hold_switcher(bool on) {
  sink_->hold(on);
}

// Adds a pod that is ready to be frozen: it runs, has settled, and has a cgroup. A test changes
// what is to stand in the way.
kube::Pod& FakeNode::add_pod(const std::string& name, const std::string& job) {
  kube::Pod pod;
  pod.metadata.name = name;
  pod.metadata.ns = "default";
  pod.metadata.uid = cgroup_name(name);
  pod.metadata.owner_references = {{.api_version = std::string{kube::kGroup} + "/v1alpha1",
                                    .kind = "Job",
                                    .name = job,
                                    .uid = "job-" + job,
                                    .controller = true}};
  pod.spec.node_name = "n1";
  pod.spec.containers = {{.name = "main"}};
  pod.spec.termination_grace_period_seconds = 30;
  pod.status.phase = kube::PodPhase::kRunning;
  pod.status.qos_class = kube::QosClass::kBurstable;
  kube::ContainerStatus status{.name = "main"};
  // Started an hour ago, so it has settled whatever the settle time is.
  status.state.running =
      kube::ContainerRunning{.started_at = clock_.wall() - std::chrono::hours{1}};
  pod.status.container_statuses = {status};
  kernel_.cgroup(cgroup_name(name));
  return pods_[name] = pod;
}

// Each call is a new revision, as each write of the operator's is. A name without a pod gets a job
// of its own, for timetables that come before their pods.
kube::NodeTimetable FakeNode::timetable(const std::vector<std::string>& pods,
                                        std::vector<timetable::PodSet> cycle) {
  kube::NodeTimetable object;
  object.metadata.name = "n1";
  object.metadata.uid = "timetable-1";
  object.spec.term = 1;
  object.spec.revision = ++revision_;
  for (const std::string& name : pods) {
    const std::string job =
        pods_.contains(name) ? pods_.at(name).metadata.owner_references[0].uid : "job-" + name;
    object.spec.pods.push_back({.ns = "default", .name = name, .job_uid = job});
  }
  object.spec.timetable = {
      .slice = std::chrono::seconds{1}, .pods_count = pods.size(), .cycle = std::move(cycle)};
  return object;
}

void FakeNode::publish(const kube::NodeTimetable& timetable) {
  inputs_.timetable = std::make_shared<const kube::NodeTimetable>(timetable);
}

// The policy's thread and then the switcher's, once each: what the first decides the second does in
// the same step.
void FakeNode::step() {
  inputs_.wall = clock_.wall();
  inputs_.monotonic = clock_.monotonic();
  inputs_.pods.clear();
  for (const auto& [name, pod] : pods_) {
    inputs_.pods[kube::key_of(pod.metadata)] = pod_facts(pod, inputs_.settings.settle);
  }
  (void)policy_->step(inputs_);
  core_->step();
}

// The keeper steps every 10 ms, the switcher when it wants to; the clock jumps from one of these
// instants to the next, so a test of hours takes no time.
void FakeNode::run_for(base::Duration duration) {
  const base::Duration end = clock_.monotonic() + duration;
  base::Duration policy_at = clock_.monotonic();
  while (clock_.monotonic() < end) {
    if (clock_.monotonic() >= policy_at) {
      step();
      policy_at = clock_.monotonic() + std::chrono::milliseconds{10};
    }
    base::Duration next = std::min(end, policy_at);
    const SwitchWake wake = core_->next_wake();
    if (wake.look) next = std::min(next, *wake.look);
    if (wake.boundary) {
      next = std::min(next, clock_.monotonic() + (*wake.boundary - clock_.wall()));
    }
    if (next > clock_.monotonic()) clock_.advance(next - clock_.monotonic());
    core_->step();
  }
}

Journal FakeNode::journal() const {
  const base::Result<Journal> journal = JournalFile{directory_.path() + "/journal"}.read("boot-1");
  return journal ? *journal : Journal{};
}

// Returns an empty view if the policy does not know the pod.
PodView FakeNode::view(const std::string& name) const {
  for (const PodView& view : policy_->pods()) {
    if (view.name == "default/" + name) return view;
  }
  return {};
}

}  // namespace agent::testing
