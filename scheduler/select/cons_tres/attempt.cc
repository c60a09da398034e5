#include "scheduler/select/cons_tres/attempt.h"

#include <algorithm>
#include <utility>

#include "scheduler/model/allocation_nodes.h"
#include "scheduler/select/cons_tres/capacity.h"
#include "scheduler/select/cons_tres/layout.h"
#include "scheduler/select/cons_tres/sparing.h"

namespace sched::cons_tres {
namespace {

constexpr CoreSet kNoCores{};

// Exempt times keep single jobs from being stopped. Slurm 22.05 does not spare these (R6.31,
// recorded).
bool spares_exempt_jobs(const Cluster& cluster) {
  if (cluster.parameters().quirks.suspended_jobs_are_not_exempt) return false;
  return cluster.parameters().preempt_exempt_time ||
         std::any_of(cluster.qos().begin(), cluster.qos().end(),
                     [](const QosConfig& qos) { return qos.preempt_exempt_time; });
}

}  // namespace

// Compared in this order: the number of victims, their tiers, their CPUs.
VictimCost victim_cost(const Cluster& cluster, const SelectJob& job) {
  std::int64_t cpus = 0;
  for (const NodeAllocation& use : job.allocation->nodes) cpus += use.cpus;
  return {.count = 1, .tiers = cluster.partition(job.partition).tier(), .cpus = cpus};
}

// --- verification of nodes (4.5.1) ---
// A node that a job may not use at all, whatever its cores.

// A job of another partition in which jobs may be stacked holds cores here.
bool Attempt::others_stack_here(int rank) const {
  return std::any_of(multi_row_.begin(), multi_row_.end(), [&](PartitionIndex partition) {
    return occupancy_.rows(partition)->jobs_on(rank) > 0;
  });
}

// Returns true if the node has the memory and the devices, and the job may be beside those that
// hold cores there (R4.14 to R4.16).
bool Attempt::compatible(int rank) const {
  if (!occupancy_.memory().fits(shape_.memory, shape_.node_cpus, rank)) return false;
  if (!occupancy_.devices().fit(shape_.devices, rank)) return false;
  // A node without jobs, or with user-suspended ones alone, which hold memory and no cores: no
  // class is in the way.
  if (!occupancy_.holds_cores(rank)) return true;
  // R4.15 in counters: a job of an EXCLUSIVE partition lets no other job in, and goes nowhere where
  // a job is.
  if (occupancy_.holds_reserved(rank)) return false;
  switch (shape_.node_class) {
    case NodeClass::kReserved:
      return false;
    case NodeClass::kShared:
      return !occupancy_.holds_one_row(rank);
    case NodeClass::kOneRow:
      return !others_stack_here(rank);
  }
  return false;
}

// --- what nodes offer ---

// Test 1: CPUs on cores that no job holds. The number of idle cores is enough for most shapes.
int Attempt::idle_cpus(int rank) const {
  if (!compatible(rank)) return 0;
  const NodeFacts& facts = occupancy_.facts(rank);
  if (shape_.whole_nodes && occupancy_.idle_cores(rank) != facts.cores_count()) return 0;
  if (shape_.counts_suffice()) {
    const int cores = occupancy_.idle_cores(rank);
    return with_devices(rank, usable_cpus(shape_, facts, cores, occupancy_.memory().free(rank)),
                        cores);
  }
  CoreView view{occupancy_};
  view.subtract_busy();
  return offered_cpus(rank, view);
}

// CPUs on the cores that the view leaves free.
int Attempt::offered_cpus(int rank, const CoreView& view) const {
  const int cpus = free_cpus(rank, view);
  return shape_.kinds.empty() ? cpus : device_limits_on(rank, view).cpus;
}

DeviceLimits Attempt::device_limits_on(int rank, const CoreView& view) const {
  return device_limits_on(rank, free_cpus(rank, view),
                          usable_cores(shape_, occupancy_.facts(rank), view.free(rank)).count());
}

DeviceLimits Attempt::device_limits_on(int rank, int cpus, int cores) const {
  const NodeFacts& facts = occupancy_.facts(rank);
  FreeOnNode free{.cpus = cpus,
                  .cores = cores,
                  .memory = ignores_others_ ? facts.memory_mib : occupancy_.memory().free(rank),
                  .devices = {}};
  for (const KindDemand& each : shape_.kinds) {
    free.devices.push_back(occupancy_.devices().count_free(each.kind, rank, ignores_others_));
  }
  return device_limits(shape_, facts, free);
}

int Attempt::free_cpus(int rank, const CoreView& view) const {
  const NodeFacts& facts = occupancy_.facts(rank);
  const CoreSet free = view.free(rank);
  // A job of whole nodes takes no node of which a core is missing (R4.21).
  if (shape_.whole_nodes && !(free == facts.cores)) return 0;
  // MaxCPUsPerNode counts what this partition's own jobs hold on the node, in any row.
  const PartitionRows* own = ignores_others_ ? nullptr : occupancy_.rows(shape_.partition);
  return usable_cpus(
      shape_,
      NodeView{.facts = facts,
               .free = free,
               .own_used = own != nullptr ? own->used(rank) : kNoCores,
               .free_memory = ignores_others_ ? facts.memory_mib : occupancy_.memory().free(rank)});
}

// Works out what each node offers in a view that the memo does not know: such a view (a tier more
// left alone, rows beyond the count) is asked about once. `usable_` is what test 2 found, so nodes
// that failed the verification are not in it and need no second look.
Offer Attempt::offer_of(const CoreView& view) const {
  Offer offer{occupancy_.node_count()};
  for (int rank = usable_.next(0); rank >= 0; rank = usable_.next(rank + 1)) {
    offer.set(rank, offered_cpus(rank, view));
  }
  return offer;
}

// Test 1 is asked of every job in the queue, so its offer is remembered between attempts and only
// nodes that changed since are looked at again.
const Offer& Attempt::idle_offer() {
  const auto evaluate = [&](int rank) { return idle_cpus(rank); };
  // The extra row decides which other partitions count as stacked, and the memo's key does not have
  // it.
  if (options_.takes_extra_row) return fresh_offer(evaluate);
  return memo_.get(
      {.kind = OfferMemo::Kind::kIdle, .configuration_version = cluster_.configuration_version()},
      shape_, request_.nodes, evaluate);
}

// Remembered, unless cores are left out that are not in the key (exempt jobs, an extra row).
const Offer& Attempt::view_offer(OfferMemo::Key key, const CoreView& view) {
  const auto evaluate = [&](int rank) { return compatible(rank) ? offered_cpus(rank, view) : 0; };
  if (options_.takes_extra_row || !exempt_.empty()) return fresh_offer(evaluate);
  key.configuration_version = cluster_.configuration_version();
  return memo_.get(key, shape_, request_.nodes, evaluate);
}

// Empty if the offer does not hold the job. The view goes along because CR_LLN compares free cores,
// and an offer has CPUs, which limits of the job may have cut.
std::vector<Chosen> Attempt::choose_from(const Offer& offer, const CoreView& view) const {
  DeviceChoice devices;
  if (!shape_.kinds.empty()) {
    devices = [&](int rank) { return device_limits_on(rank, view); };
  }
  return choose(offer, {.shape = shape_,
                        .occupancy = occupancy_,
                        .view = view,
                        .required = request_.required,
                        .any_required = any_required_,
                        .idle_last = request_.idle_last,
                        .devices = devices});
}

// --- the tests (4.5.2) ---

// Without gang nothing would stop the jobs that such a job is stacked on (R4.20).
bool Attempt::only_idle() const {
  return !cluster_.parameters().gang && shape_.node_class != NodeClass::kShared;
}

// Jobs that the gang may not suspend yet, though their tier is lower (7.3), whatever made them
// victims: it asks for tiers alone.
void Attempt::collect_exempt() {
  exempt_.clear();
  // Looks at all jobs, so it is left out where no exempt time is configured.
  if (!spares_exempt_jobs(cluster_)) return;
  for (const auto& [id, held] : occupancy_.jobs()) {
    const SelectJob* const job = held.job;
    if (job->victim_mode != PreemptMode::kSuspend || job->state != JobState::kRunning) continue;
    if (!job->exempt_until || request_.now >= *job->exempt_until) continue;
    if (job->user_suspended || cluster_.partition(job->partition).tier() >= own_tier()) continue;
    exempt_.resize(static_cast<std::size_t>(occupancy_.node_count()));
    for_each_rank(cluster_, *job->allocation, [&](int rank, const NodeAllocation& use) {
      exempt_[static_cast<std::size_t>(rank)] |= use.cores;
    });
  }
}

// Test 2: all cores but those that the job may not take even by stopping their jobs. These are the
// cores of exempt jobs, and under partition_prio those of higher tiers, of partitions whose
// PreemptMode is OFF, and of lower tiers that nothing would stop.
CoreView Attempt::may_take() const {
  CoreView view{occupancy_};
  const ClusterParameters& parameters = cluster_.parameters();
  // The gang stops whatever is under a shadow without asking about exempt times, so the cores of
  // exempt jobs are not offered at all.
  if (!exempt_.empty()) view.subtract(exempt_.data());
  // Only partition_prio keeps cores of other partitions from a job in this test.
  if (parameters.preempt_type != PreemptType::kPartitionPriority) return view;
  for (const PartitionIndex index : partitions_) {
    const Partition& partition = cluster_.partition(index);
    // The job's own partition with several rows is left to test 4. Slurm 22.05 makes no exception
    // of it (recorded).
    if (!parameters.quirks.off_stacks_nothing && index == shape_.partition &&
        occupancy_.rows_count(index) > 1)
      continue;
    const PreemptMode mode = partition.config.preempt_mode.value_or(parameters.preempt_mode);
    // Without gang nothing stops a lower tier's job under this one: its core is not free (P20).
    const bool unmanaged = partition.tier() < own_tier() && !parameters.gang;
    if (partition.tier() > own_tier() || mode == PreemptMode::kOff || unmanaged) {
      view.subtract(*occupancy_.rows(index));
    }
  }
  return view;
}

// Test 3: an equal's core is left alone; a lower tier's only as far as it costs nothing.
std::optional<Attempt::Found> Attempt::test_same_tier(const CoreView& base) {
  CoreView view = base;
  for (const PartitionIndex index : partitions_) {
    if (cluster_.partition(index).tier() == own_tier()) view.subtract(*occupancy_.rows(index));
  }
  // First over any lower tier. Then tier after tier is left alone, from the highest down, for as
  // long as the job still fits: so the victims are of the lowest tiers that suffice.
  Found found{choose_from(view_offer({.kind = OfferMemo::Kind::kNoEqual}, view), view), view};
  if (found.nodes.empty()) return std::nullopt;
  if (cluster_.parameters().placement == PlacementPolicy::kMinimisePreemption) {
    return stack_on_cheapest(view);
  }
  for (const PartitionIndex index : partitions_) {
    if (cluster_.partition(index).tier() >= own_tier()) continue;
    view.subtract(*occupancy_.rows(index));
    std::vector<Chosen> nodes = choose_from(offer_of(view), view);
    if (nodes.empty()) break;
    found = {std::move(nodes), view};
  }
  return found;
}

// Returns jobs that this one could be stacked upon and stop: of lower tiers, on nodes in question.
std::vector<const SelectJob*> Attempt::lower_tier_jobs() const {
  std::vector<const SelectJob*> jobs;
  for (const auto& [id, held] : occupancy_.jobs()) {
    const SelectJob* const job = held.job;
    if (job->user_suspended || cluster_.partition(job->partition).tier() >= own_tier()) continue;
    if (has_node_in(cluster_, *job->allocation, usable_)) jobs.push_back(job);
  }
  return jobs;
}

// Test 3 by its price instead of partition by partition.
// The search asks about sets of jobs to be stopped; `sparing` is the view without the cores of all
// other lower-tier jobs, which are to be left alone.
std::optional<Attempt::Found> Attempt::stack_on_cheapest(const CoreView& view) {
  const std::vector<const SelectJob*> jobs = lower_tier_jobs();
  std::vector<VictimCost> costs;
  for (const SelectJob* job : jobs) costs.push_back(victim_cost(cluster_, *job));
  // The view points to these sets, so they are a member and change as the question takes and spares
  // jobs.
  left_alone_.assign(static_cast<std::size_t>(occupancy_.node_count()), CoreSet{});
  CoreView sparing = view;
  sparing.subtract(left_alone_.data());
  SparingQuestion question{cluster_,
                           jobs,
                           usable_,
                           left_alone_,
                           [&](int rank) { return offered_cpus(rank, sparing); },
                           [&](const Offer& offer) { return choose_from(offer, sparing); }};
  if (!cheapest_victims(costs, question)) return std::nullopt;
  return Found{question.chosen(), sparing};
}

// Test 4: the first row that holds the job, densest first.
//
// 1. With no job in the partition there is one empty row: all that the job may take.
// 2. Pack the rows. The extra row of preempt/qos is the last one, and only for a job that preempts.
// 3. Offer of each row what it leaves free; it is remembered, and packing tells which nodes
// changed.
std::optional<Attempt::Found> Attempt::test_rows(const CoreView& base) {
  PartitionRows* const rows = occupancy_.rows(shape_.partition);
  if (rows == nullptr || rows->empty()) {  // 1
    return Found{choose_from(view_offer({.kind = OfferMemo::Kind::kMayTake}, base), base), base};
  }
  const bool qos = occupancy_.has_extra_row();  // 2
  const int wanted = occupancy_.rows_count(shape_.partition);
  rows->set_count(wanted);
  rows->pack();
  // The fullest row is asked first, so that small jobs fill holes and a row stays free for a large
  // one; preempt/qos keeps the order, in which the extra row is last (R4.12).
  if (wanted > 1 && !qos) rows->sort_densest_first();
  CoreView within = base;  // no job is put on top of those beyond all rows
  for (int i = wanted; i < rows->count(); ++i) within.subtract(rows->row(i));
  // The memo's key names a row, and not the rows beyond the count that were subtracted here.
  const bool remembers = rows->count() == wanted;
  int count = wanted;
  if (qos && !options_.takes_extra_row) --count;
  // A job that shares with none has the first row alone.
  if (qos && shape_.node_class != NodeClass::kShared) count = 1;
  for (int i = 0; i < count; ++i) {  // 3
    CoreView view = within;
    view.subtract(rows->row(i));
    const OfferMemo::Key key{.kind = OfferMemo::Kind::kRow, .row_id = rows->row_id(i)};
    std::vector<Chosen> nodes =
        choose_from(remembers ? view_offer(key, view) : offer_of(view), view);
    if (!nodes.empty()) return Found{std::move(nodes), view};
  }
  return std::nullopt;
}

// Makes the tests in their order; each takes cores away from what the one before it offered, so a
// job that does not fit in test 2 fits in none after it.
std::optional<Attempt::Found> Attempt::find() {
  CoreView idle{occupancy_};
  idle.subtract_busy();
  if (auto nodes = choose_from(idle_offer(), idle); !nodes.empty()) {
    return Found{std::move(nodes), idle};
  }
  if (only_idle()) return std::nullopt;
  const CoreView base = may_take();
  const Offer& offer = view_offer({.kind = OfferMemo::Kind::kMayTake}, base);
  if (choose_from(offer, base).empty()) return std::nullopt;
  usable_ = offer.nodes();  // every later test takes cores away
  if (auto found = test_same_tier(base)) return found;
  return test_rows(base);
}

// Cores and memory on the chosen nodes (4.11). Fails if they cannot be had after all, for example
// because the memory does not suffice for the CPUs that the cores come to: then the whole attempt
// fails (R4.22).
std::optional<Allocation> Attempt::place(const Found& found) const {
  std::vector<DeviceLimits> limits(shape_.kinds.empty() ? 0 : found.nodes.size());
  for (std::size_t i = 0; i < limits.size(); ++i) {
    limits[i] = device_limits_on(found.nodes[i].rank, found.view);
  }
  const std::vector<NodeTasks> tasks = distribute_tasks(shape_, found.nodes, limits, occupancy_);
  Allocation allocation;
  allocation.whole_nodes = shape_.whole_nodes;
  allocation.nodes.reserve(found.nodes.size());
  for (std::size_t i = 0; i < found.nodes.size(); ++i) {
    const int rank = found.nodes[i].rank;
    const NodeFacts& facts = occupancy_.facts(rank);
    const std::int64_t memory = ignores_others_ ? facts.memory_mib : occupancy_.memory().free(rank);
    const int cores_max = limits.empty() ? kAllCores : limits[i].cores;
    const auto use =
        allocate_node(shape_, facts, found.view.free(rank), cores_max, tasks[i], memory);
    if (!use) return std::nullopt;  // the memory is short: the whole attempt fails (R4.22)
    allocation.nodes.push_back(*use);
  }
  if (!give_devices(allocation)) return std::nullopt;
  return allocation;
}

// Sets how many devices of a kind each node gives: what was asked of each node, for its tasks or
// for the sockets on which the job has cores there, at least as many as it asks for (R11.12). For a
// number for the whole job, the first nodes give as many as they have, but for one on each node
// that follows, and then what is still missing.
bool Attempt::give_devices(Allocation& allocation) const {
  if (shape_.kinds.empty() && !shape_.devices.all) return true;
  const DeviceBooks& books = occupancy_.devices();
  std::vector<Devices> given(allocation.nodes.size());
  for (const KindDemand& kind : shape_.kinds) {
    int missing = kind.of_job;
    for (const bool reserves : {true, false}) {
      for (std::size_t i = 0; i < given.size(); ++i) {
        const NodeAllocation& use = allocation.nodes[i];
        const int rank = cluster_.rank(use.node);
        int count = kind.per_node > 0 ? kind.per_node : kind.per_task * use.tasks;
        if (count == 0 && kind.per_socket > 0) {
          const int sockets = sockets_with(occupancy_.facts(rank), use.cores);
          count = asked_product(kind.per_socket, std::max(sockets, shape_.sockets_per_node));
          if (count > books.count_free(kind.kind, rank, ignores_others_)) return false;
        }
        if (count > 0 && !reserves) break;
        if (count == 0) {
          const int held = count_of(given[i], kind.kind);
          const int here = books.count_free(kind.kind, rank, ignores_others_) - held;
          const int others = reserves ? static_cast<int>(given.size() - i) - 1 : 0;
          count = std::max(0, std::min(here, missing - others));
          if (const int cpus = cpus_for_each_gpu(shape_); reserves && kind.is_gpu && cpus > 0) {
            count = std::min(count, use.cpus / cpus);
          }
          missing -= count;
        }
        if (count > 0) add_devices(given[i], kind.kind, count);
      }
    }
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    NodeAllocation& use = allocation.nodes[i];
    const int rank = cluster_.rank(use.node);
    const std::size_t before = allocation.devices.size();
    books.give({.asked = given[i], .all = shape_.devices.all}, rank, ignores_others_, allocation);
    if (shape_.memory_per_gpu == 0) continue;
    int gpus = 0;
    for (std::size_t at = before; at < allocation.devices.size(); ++at) {
      if (allocation.devices[at].kind.name == kGpuName) gpus += allocation.devices[at].count;
    }
    use.memory = MemoryMiB{shape_.memory_per_gpu * gpus};
    const std::int64_t free =
        ignores_others_ ? occupancy_.facts(rank).memory_mib : occupancy_.memory().free(rank);
    if (use.memory.value() > free) return false;
  }
  return true;
}

// Returns the answer for the books as they are at this moment. A search for victims calls it again
// and again while its trial takes jobs out, so nothing is kept here that follows from the jobs; the
// memo learns of them from the occupancy's log.
std::optional<Allocation> Attempt::run(const AttemptOptions& options) {
  // The results of prepare() depend on the extra row; everything else of an attempt stays the same
  // between two runs.
  if (options.takes_extra_row != options_.takes_extra_row) prepared_ = false;
  options_ = options;
  prepare();
  const std::optional<Found> found = find();
  if (!found) return std::nullopt;
  return place(*found);
}

// TEST_ONLY (3.8): all cores, all memory, no other job. A job that fits nowhere here can never run.
std::optional<Allocation> Attempt::test_only() {
  ignores_others_ = true;
  const CoreView all{occupancy_};
  const Offer& offer = memo_.get(
      {.kind = OfferMemo::Kind::kEver, .configuration_version = cluster_.configuration_version()},
      shape_, request_.nodes, [&](int rank) { return offered_cpus(rank, all); });
  Found found{choose_from(offer, all), all};
  if (found.nodes.empty()) return std::nullopt;
  return place(found);
}

// Other partitions in which jobs may be stacked (R4.16); the extra row of preempt/qos counts only
// for a job that may use it. Once per attempt: during a trial partitions can only lose jobs.
void Attempt::prepare() {
  if (std::exchange(prepared_, true)) return;
  collect_exempt();
  partitions_ = occupancy_.partitions_in_use();
  multi_row_.clear();
  const int extra = occupancy_.has_extra_row() && !options_.takes_extra_row ? 1 : 0;
  for (const PartitionIndex index : partitions_) {
    if (index == shape_.partition) continue;
    if (occupancy_.rows_count(index) - extra > 1) multi_row_.push_back(index);
  }
}

bool Attempt::looks_at_jobs(const Cluster& cluster) {
  return spares_exempt_jobs(cluster) ||
         cluster.parameters().placement == PlacementPolicy::kMinimisePreemption;
}

// The sums that test 1 or 2 must reach anyway. The offer comes from the memo, so the question costs
// what has changed since the last one, while a test walks over runs of nodes. It is about a job
// that does not take the extra row: only removal of victims (7.6.2) asks it.
bool Attempt::may_fit() {
  if (std::exchange(options_, AttemptOptions{}).takes_extra_row) prepared_ = false;
  prepare();
  // The widest test that this job may pass: if even that offers too little, no test can succeed.
  const Offer& offer =
      only_idle() ? idle_offer() : view_offer({.kind = OfferMemo::Kind::kMayTake}, may_take());
  return offer.count() >= shape_.min_nodes && offer.total() >= shape_.min_cpus &&
         (!any_required_ || offer.nodes().contains(request_.required));
}

}  // namespace sched::cons_tres
