// The whole state as text, and back (Scheduler::save and restore).
#include <algorithm>

#include "scheduler/engine/engine.h"
#include "scheduler/gang/components_save.h"
#include "scheduler/save/fields.h"

namespace sched {
namespace {

constexpr std::int64_t kSaveVersion = 4;

}  // namespace

namespace save {

template <typename A>
void visit(A& a, Cluster::Slots& v) {
  all(a, v.nodes, v.vacant, v.partitions);
}

}  // namespace save

template <typename A>
void Engine::archive(A& a) {
  std::int64_t save_version = kSaveVersion;
  visit(a, save_version);
  if (save_version != kSaveVersion) {
    if constexpr (A::kReads) a.fail();
    return;
  }
  visit(a, now_);
  Cluster::Slots slots = cluster_.slots();
  Configuration configuration = cluster_.configuration();
  visit(a, slots);
  visit(a, configuration);
  // Changed nodes take effect with the next event (settle).
  bool unsettled = cluster_version_ != cluster_.version();
  bool new_topology = topology_version_ != cluster_.topology_version();
  visit(a, unsettled);
  visit(a, new_topology);
  if constexpr (A::kReads) {
    if (!a.ok() || !cluster_.restore(slots, configuration)) return a.fail();
    groups_.rebuild(cluster_);
    cluster_version_ = cluster_.version() - (unsettled ? 1 : 0);
    topology_version_ = cluster_.topology_version() - (new_topology ? 1 : 0);
  }
  archive_jobs(a);
  if constexpr (A::kReads) {
    if (!a.ok() || !restore_books()) return a.fail();
  }
  std::vector<std::int64_t> layout = selector_->layout();
  visit(a, layout);
  if constexpr (A::kReads) {
    if (!a.ok() || !selector_->set_layout(layout)) return a.fail();
  }
  save::all(a, lowest_priority_, eligible_timers_, grace_timers_, limit_timers_, claimants_,
            waiting_resumes_, resumes_version_, removed_nodes_, version_, passed_version_,
            passed_until_, event_passed_version_, next_full_pass_);
  std::vector<gang::Place> places;
  bool has_world = world_.has_value();
  if (world_) places = world_->places();
  visit(a, has_world);
  visit(a, places);
  if constexpr (A::kReads) {
    if (has_world) world_.emplace(cluster_, gang::unit_of(cluster_.parameters()));
    for (const gang::Place& place : places) {
      const Job* job = jobs_.find(place.job);
      if (!world_ || job == nullptr || !job->allocated() || world_->contains(place.job)) {
        return a.fail();
      }
      world_->append(newcomer(*job), place);
    }
    if (world_) world_->recount();
  }
  components_.archive(a);
  std::map<NodeIndex, NodePlan> published = plans_.published();
  visit(a, published);
  if constexpr (A::kReads) {
    for (auto& [node, plan] : published) plans_.set_published(std::move(plan));
  }
}

template <typename A>
void Engine::archive_jobs(A& a) {
  std::int64_t next_order = jobs_.next_order();
  std::int64_t count = static_cast<std::int64_t>(jobs_.size());
  visit(a, next_order);
  visit(a, count);
  if constexpr (A::kReads) {
    for (std::int64_t i = 0; i < count && a.ok(); ++i) {
      Job job;
      visit(a, job);
      if (!a.ok() || job.id != job.request.id || jobs_.find(job.id) != nullptr) return a.fail();
      jobs_.set_next_order(job.table_order);
      Job& added = jobs_.add(job.request);
      const SelectJob select = added.select;
      added = std::move(job);
      added.select.id = select.id;
      added.select.table_order = select.table_order;
      added.select.request = &added.request;
    }
    jobs_.set_next_order(next_order);
  } else {
    for (const auto& [order, job] : jobs_.all()) visit(a, *job);
  }
}

// Selector, node usage and queue follow from the jobs. False when the jobs contradict the cluster.
bool Engine::restore_books() {
  usage_.reset();
  selector_ = make_selector();
  queue_.configure(cluster_);
  const auto known = [&](PartitionIndex index) {
    return index.value() >= 0 && index.value() < cluster_.partition_slots();
  };
  for (const auto& [order, each] : jobs_.all()) {
    Job& job = *each;
    job.select.state = job.state;
    for (const PartitionIndex partition : job.queued_in) {
      if (!known(partition)) return false;
      queue_.insert(record_of(job, partition), cluster_);
      note_unexplained(job.id);
    }
    if (!job.partition) continue;
    if (!known(*job.partition)) return false;
    for (const NodeAllocation& use : job.allocation.nodes) {
      if (use.node.value() < 0 || use.node.value() >= cluster_.node_slots()) return false;
    }
    book(job);
  }
  return true;
}

// Puts an allocated job into the books that are not saved.
void Engine::book(Job& job) {
  job.select.partition = *job.partition;
  job.select.allocation = &job.allocation;
  job.select.state = job.state;
  job.select.user_suspended = job.cores_released;
  allocated_.emplace(job.table_order, &job);
  usage_.add(job);
  if (!job.completing()) selector_->add(job.select);
}

std::string Engine::save() {
  components_.project_stale();
  save::Writer writer;
  CHECK(options_.publishes);
  std::int64_t told = options_.told_timing ? 1 : 0;
  visit(writer, told);
  archive(writer);
  return std::move(writer).take();
}

base::Result<std::unique_ptr<Engine>> Engine::restore(const std::string& saved) {
  save::Reader reader{saved};
  std::int64_t told = 0;
  visit(reader, told);
  auto engine = std::make_unique<Engine>(Options{.told_timing = told == 1});
  engine->archive(reader);
  if (!reader.ok() || !reader.at_end()) {
    return base::invalid_argument("saved scheduler state: damaged, or of another version");
  }
  return engine;
}

}  // namespace sched
