#include "scheduler/scheduler.h"

#include "scheduler/engine/engine.h"

namespace sched {

// The engine is behind a pointer of its own, since a restore makes one.
class Scheduler::Impl {
 public:
  explicit Impl(std::unique_ptr<Engine> engine) : engine_{std::move(engine)} {}
  Engine* operator->() const { return engine_.get(); }

 private:
  std::unique_ptr<Engine> engine_;
};

Scheduler::Scheduler(Options options)
    : impl_{std::make_unique<Impl>(std::make_unique<Engine>(options))} {}
Scheduler::~Scheduler() = default;
Scheduler::Scheduler(Scheduler&&) noexcept = default;
Scheduler& Scheduler::operator=(Scheduler&&) noexcept = default;

void Scheduler::step(base::Instant now, const Event& event) {
  (*impl_)->step(now, event);
}
std::vector<Decision> Scheduler::take_decisions() {
  return (*impl_)->take_decisions();
}
std::optional<base::Instant> Scheduler::next_due() const {
  return (*impl_)->next_due();
}
std::vector<NodePlan> Scheduler::take_plans(base::Instant now) {
  return (*impl_)->take_plans(now);
}
std::vector<JobRun> Scheduler::take_runs() {
  return (*impl_)->take_runs();
}
std::vector<JobRun> Scheduler::open_runs() {
  return (*impl_)->open_runs();
}
base::Instant Scheduler::when_has_run(JobId job, base::Duration work, base::Instant until) {
  return (*impl_)->when_has_run(job, work, until);
}
std::optional<JobView> Scheduler::job(JobId id, base::Instant now) const {
  return (*impl_)->view(id, now);
}
std::vector<JobId> Scheduler::jobs() const {
  return (*impl_)->jobs();
}
const std::string& Scheduler::node_name(NodeIndex node) const {
  return (*impl_)->cluster().node(node).name;
}
const std::string& Scheduler::partition_name(PartitionIndex partition) const {
  return (*impl_)->cluster().partition(partition).config.name;
}
std::optional<NodeIndex> Scheduler::find_node(std::string_view name) const {
  return (*impl_)->cluster().find_node(name);
}
PartitionIndex Scheduler::known_partition(const std::string& name) {
  return (*impl_)->known_partition(name);
}

std::optional<PartitionIndex> Scheduler::find_partition(std::string_view name) const {
  return (*impl_)->cluster().find_partition(name);
}

std::string Scheduler::check_invariants() const {
  return (*impl_)->check_invariants();
}
std::string Scheduler::save() const {
  return (*impl_)->save();
}
base::Result<Scheduler> Scheduler::restore(const std::string& saved) {
  auto engine = Engine::restore(saved);
  if (!engine.ok()) return engine.error();
  Scheduler scheduler{Options{}};
  *scheduler.impl_ = Impl{std::move(engine).value()};
  return scheduler;
}
void Scheduler::restore_from_published(base::Instant now, std::vector<RestoredJob> jobs,
                                       std::vector<NodePlan> published) {
  (*impl_)->restore_from_published(now, std::move(jobs), std::move(published));
}

}  // namespace sched
