#include "scheduler/scheduler.h"

#include "scheduler/engine/engine.h"

// Everything is forwarded: the engine's parts stay out of the public header, so that a change of
// one of them compiles none of the scheduler's users again.
namespace sched {

Scheduler::Scheduler(Options options) : engine_{std::make_unique<Engine>(options)} {}
Scheduler::Scheduler(std::unique_ptr<Engine> engine) : engine_{std::move(engine)} {}
Scheduler::~Scheduler() = default;
Scheduler::Scheduler(Scheduler&&) noexcept = default;
Scheduler& Scheduler::operator=(Scheduler&&) noexcept = default;

void Scheduler::step(base::Instant now, const Event& event) {
  engine_->step(now, event);
}
std::vector<Decision> Scheduler::take_decisions() {
  return engine_->take_decisions();
}
std::optional<base::Instant> Scheduler::next_due() const {
  return engine_->next_due();
}
void Scheduler::rest_at_least(base::Duration rest) {
  engine_->rest_at_least(rest);
}
std::vector<NodePlan> Scheduler::take_plans(base::Instant now) {
  return engine_->take_plans(now);
}
std::vector<JobRun> Scheduler::take_runs() {
  return engine_->take_runs();
}
std::vector<JobRun> Scheduler::open_runs() {
  return engine_->open_runs();
}
base::Instant Scheduler::when_has_run(JobId job, base::Duration work, base::Instant until) {
  return engine_->when_has_run(job, work, until);
}
std::optional<std::string> Scheduler::refused_dependency(const JobRequest& request) const {
  return engine_->refused_dependency(request);
}

std::optional<JobView> Scheduler::job(JobId id, base::Instant now) const {
  return engine_->view(id, now);
}
std::vector<JobId> Scheduler::jobs() const {
  return engine_->jobs();
}
const std::string& Scheduler::node_name(NodeIndex node) const {
  return engine_->cluster().node(node).name;
}
const std::string& Scheduler::partition_name(PartitionIndex partition) const {
  return engine_->cluster().partition(partition).config.name;
}
std::optional<NodeIndex> Scheduler::find_node(std::string_view name) const {
  return engine_->cluster().find_node(name);
}
PartitionIndex Scheduler::known_partition(const std::string& name) {
  return engine_->known_partition(name);
}

std::optional<PartitionIndex> Scheduler::find_partition(std::string_view name) const {
  return engine_->cluster().find_partition(name);
}

std::string Scheduler::check_invariants() const {
  return engine_->check_invariants();
}
void Scheduler::restore_from_published(base::Instant now, std::vector<JobFacts> jobs,
                                       std::vector<NodePlan> published,
                                       const std::vector<KnownJob>& known) {
  engine_->restore_from_published(now, std::move(jobs), std::move(published), known);
}

bool Scheduler::works_priorities_out() const {
  return engine_->works_priorities_out();
}
std::vector<JobId> Scheduler::head_of_queue(std::size_t jobs_max) const {
  return engine_->head_of_queue(jobs_max);
}

StateCopy Scheduler::copy(base::Instant now) const {
  return engine_->copy(now);
}

UsageState Scheduler::usage() const {
  return engine_->usage();
}

std::vector<JobCharged> Scheduler::take_charged_ends() {
  return engine_->take_charged_ends();
}

base::Instant Scheduler::usage_as_of() const {
  return engine_->usage_as_of();
}

void Scheduler::restore_usage(const UsageState& state, const std::vector<EndedJob>& ended) {
  engine_->restore_usage(state, ended);
}
std::vector<ShareView> Scheduler::shares() const {
  return engine_->shares();
}
std::int64_t Scheduler::backfilled_starts() const {
  return engine_->backfilled_starts();
}

const Licenses& Scheduler::licenses_in_use() const {
  return engine_->licenses_in_use();
}
std::vector<PriorityView> Scheduler::priorities_of(JobId job, base::Instant now) const {
  return engine_->priorities_of(job, now);
}

}  // namespace sched
