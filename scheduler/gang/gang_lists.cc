#include "scheduler/gang/gang_lists.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "base/check.h"

namespace sched::gang {

// 6.2. CR_CPU shares single CPUs. If tasks are bound to CPUs (a task plugin), two jobs must not
// have the same ones, so the bits of the cores count; otherwise the kernel moves tasks about and
// only the number of CPUs counts.
Unit unit_of(const ClusterParameters& parameters) {
  if (parameters.select == SelectType::kLinear) return Unit::kNode;
  switch (parameters.unit) {
    case SelectUnit::kCore:
      return Unit::kCore;
    case SelectUnit::kSocket:
      return Unit::kSocket;
    case SelectUnit::kCpu:
      return parameters.task_affinity ? Unit::kCore : Unit::kCpuCount;
  }
  return Unit::kCore;
}

namespace {

// Finds the place of the key in a vector of pairs that is sorted by key, or where it would be.
template <typename Pairs, typename Key>
auto place_of(Pairs& pairs, Key key) {
  // Jobs mostly come in their order, and then nothing need be searched.
  if (pairs.empty() || pairs.back().first < key) return pairs.end();
  return std::lower_bound(pairs.begin(), pairs.end(), key,
                          [](const auto& pair, Key wanted) { return pair.first < wanted; });
}

}  // namespace

std::int32_t GangLists::index_of(JobId job) const {
  const auto at = place_of(index_of_, job);
  return at != index_of_.end() && at->first == job ? at->second : -1;
}

std::vector<std::int32_t> GangLists::slots_of(const std::vector<JobId>& jobs) const {
  std::vector<std::int32_t> slots;
  slots.reserve(jobs.size());
  auto at = index_of_.begin();
  for (const JobId job : jobs) {
    while (at != index_of_.end() && at->first < job) ++at;
    slots.push_back(at != index_of_.end() && at->first == job ? at->second : -1);
  }
  return slots;
}

// Local numbers keep the active maps as small as the component, however large the cluster is. A
// number is never given back; is_lean() says when that wastes too much.
std::int32_t GangLists::local_node(NodeIndex node) {
  const auto at = place_of(local_of_, node);
  if (at != local_of_.end() && at->first == node) return at->second;
  const auto local = static_cast<std::int32_t>(nodes_.size());
  local_of_.insert(at, {node, local});
  nodes_.push_back(node);
  for (List& list : lists_) size_active(list);
  return local;
}

// Gives the active map a place for each local node. Cores beyond the first 64 are kept only
// where one of the nodes has more.
void GangLists::size_active(List& list) const {
  if (unit_ == Unit::kCpuCount) {
    list.active_cpus.resize(nodes_.size(), kNobody);
  } else {
    list.active_low.resize(nodes_.size());
    // Nodes of up to 64 cores, which are nearly all, are decided by one word for each node. The
    // full core sets are kept only once a wider node has appeared, and then for all nodes.
    if (wide_) list.active_cores.resize(nodes_.size());
  }
}

void GangLists::clear_active(List& list) {
  std::fill(list.active_low.begin(), list.active_low.end(), std::uint64_t{0});
  std::fill(list.active_cores.begin(), list.active_cores.end(), CoreSet{});
  std::fill(list.active_cpus.begin(), list.active_cpus.end(), kNobody);
  list.active_count = 0;
}

// Returns the position of the partition's list in lists_; made if it has none yet.
std::size_t GangLists::list_of(PartitionIndex partition) {
  for (std::size_t i = 0; i < lists_.size(); ++i) {
    if (lists_[i].partition == partition) return i;
  }
  List list;
  list.partition = partition;
  list.tier = cluster_->partition(partition).tier();
  list.order = cluster_->partition(partition).order;
  size_active(list);
  list.may_change = true;  // the shadows over it are not in its map yet
  lists_.push_back(std::move(list));
  sort_lists();
  return list_of(partition);
}

// Puts the lists in the order in which they are looked at: by tier, highest first (6.7). Entries
// know their list by its position.
void GangLists::sort_lists() {
  std::stable_sort(lists_.begin(), lists_.end(), [](const List& a, const List& b) {
    return a.tier != b.tier ? a.tier > b.tier : a.order < b.order;
  });
  for (std::size_t i = 0; i < lists_.size(); ++i) {
    for (const std::int32_t index : lists_[i].entries) {
      entries_[static_cast<std::size_t>(index)].list = static_cast<std::uint16_t>(i);
    }
  }
}

namespace {

// Cores 64 and up are dropped; `wide_` lists compare the whole sets as well.
std::uint64_t low_cores(const CoreSet& cores) {
  std::uint64_t low = 0;
  for (int core = cores.next(0); core >= 0 && core < 64; core = cores.next(core + 1)) {
    low |= std::uint64_t{1} << core;
  }
  return low;
}

}  // namespace

CoreSet whole_sockets(const CoreSet& cores, const NodeSpec& node) {
  CoreSet filled;
  for (int core = cores.next(0); core >= 0; core = cores.next(core + 1)) {
    const int first = core / node.cores_per_socket * node.cores_per_socket;
    for (int other = first; other < first + node.cores_per_socket; ++other) filled.set(other);
    core = first + node.cores_per_socket - 1;
    if (core + 1 >= kCoresPerNodeMax) break;
  }
  return filled;
}

std::span<const GangLists::Use> GangLists::uses_of(const Entry& entry) {
  return entry.uses != nullptr ? std::span{entry.uses->nodes} : std::span{&entry.only, 1};
}

CoreSet GangLists::cores_of(const Entry& entry, std::size_t use) {
  if (entry.uses != nullptr && !entry.uses->cores.empty()) return entry.uses->cores[use];
  CoreSet cores;
  for (std::uint64_t low = uses_of(entry)[use].low; low != 0; low &= low - 1) {
    cores.set(std::countr_zero(low));
  }
  return cores;
}

// Bits are worked out once, here: fits() is asked for every entry of a list at every rebuild.
void GangLists::set_uses(Entry& entry, const Allocation& allocation) {
  Uses uses;
  bool wide = false;
  for (const NodeAllocation& use : allocation.nodes) {
    CoreSet cores = use.cores;
    if (unit_ == Unit::kSocket && cluster_->exists(use.node)) {
      cores = whole_sockets(cores, cluster_->node(use.node));
    }
    if (unit_ == Unit::kNode) cores = CoreSet::first(1);  // core 0 stands for the node
    wide = wide || cores.next(64) >= 0;
    entry.only = {local_node(use.node), use.cpus, low_cores(cores)};
    if (allocation.nodes.size() == 1 && !wide) return;
    uses.nodes.push_back(entry.only);
    uses.cores.push_back(cores);
  }
  if (wide && !std::exchange(wide_, true)) {
    for (List& list : lists_) size_active(list);
  }
  if (!wide) uses.cores = {};
  entry.uses = std::make_shared<const Uses>(std::move(uses));
}

// Puts the job at the end of its partition's list, without a row. Entries of jobs that left are
// used again.
std::int32_t GangLists::make_entry(const Newcomer& newcomer) {
  CHECK(!contains(newcomer.job), to_string(newcomer.job));
  Entry entry;
  entry.job = newcomer.job;
  entry.held = newcomer.held;
  entry.kill_under_shadow = newcomer.kill_under_shadow;
  set_uses(entry, *newcomer.allocation);
  const std::size_t list = list_of(newcomer.partition);
  entry.list = static_cast<std::uint16_t>(list);
  std::int32_t index = static_cast<std::int32_t>(entries_.size());
  if (vacant_.empty()) {
    entries_.push_back(std::move(entry));
  } else {
    index = vacant_.back();
    vacant_.pop_back();
    entries_[static_cast<std::size_t>(index)] = std::move(entry);
  }
  index_of_.insert(place_of(index_of_, newcomer.job), {newcomer.job, index});
  // 6.9 step 2: a newcomer goes to the end of the list. Neither its priority nor its age counts
  // here.
  lists_[list].entries.push_back(index);
  return index;
}

bool GangLists::each_fits(const List& list, const Entry& entry) const {
  const std::span<const Use> uses = uses_of(entry);
  if (unit_ == Unit::kCpuCount) {
    return std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
      const std::int32_t taken = list.active_cpus[static_cast<std::size_t>(use.node)];
      // kNobody and 0 differ: a node on which no job is active is never in the way (6.2, "no
      // conflict if node sets are disjoint"), even for a job that wants more than the node has now.
      return taken == kNobody || taken + use.cpus <= cpus_of(use);
    });
  }
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const auto node = static_cast<std::size_t>(uses[i].node);
    if ((list.active_low[node] & uses[i].low) != 0) return false;
    if (wide_ && list.active_cores[node].intersects(cores_of(entry, i))) return false;
  }
  return true;
}

std::int32_t GangLists::cpus_of(const Use& use) const {
  const NodeIndex node = nodes_[static_cast<std::size_t>(use.node)];
  return cluster_->exists(node) ? cluster_->node(node).cpus : 0;
}

// Counted CPUs of shadows and jobs may exceed the node's: the sum stops there.
void GangLists::occupy_each(List& list, const Entry& entry) const {
  const std::span<const Use> uses = uses_of(entry);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const Use& use = uses[i];
    const auto node = static_cast<std::size_t>(use.node);
    if (unit_ == Unit::kCpuCount) {
      std::int32_t& taken = list.active_cpus[node];
      taken = std::min(cpus_of(use), std::max(0, taken) + use.cpus);
      continue;
    }
    list.active_low[node] |= use.low;
    if (wide_) list.active_cores[node] |= cores_of(entry, i);
  }
}

void GangLists::add(List& list, Entry& entry, EntryRow row) {
  occupy(list, entry);
  ++list.jobs_active;
  entry.row = row;
}

// Returns true if two jobs have a unit in common. Where CPUs are counted, a node is enough.
bool GangLists::overlaps(const Entry& a, const Entry& b) const {
  const std::span<const Use> uses = uses_of(a), others = uses_of(b);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    for (std::size_t j = 0; j < others.size(); ++j) {
      if (uses[i].node != others[j].node) continue;
      if (unit_ == Unit::kNode || unit_ == Unit::kCpuCount) return true;
      // Cores, and sockets too: set_uses() has filled whole sockets, so that two jobs in one
      // socket have cores in common.
      if ((uses[i].low & others[j].low) != 0) return true;
      if (wide_ && cores_of(a, i).intersects(cores_of(b, j))) return true;
    }
  }
  return false;
}

// P17: asks for a shadow over this very job. "Does any shadow lie over the partition?", as Slurm
// asks, would turn an ordinary end of a turn into a kill because of an unrelated job of a higher
// tier.
std::optional<JobId> GangLists::shadow_over(const List& list, const Entry& entry) const {
  if (unit_ == Unit::kCpuCount) return shadow_that_fills(list, entry);
  std::optional<JobId> found;
  for_each_shadow(list, [&](const Entry& shadow) {
    if (!found && overlaps(shadow, entry)) found = shadow.job;
  });
  return found;
}

// This is how Slurm asks.
std::optional<JobId> GangLists::any_shadow(const List& list) const {
  std::optional<JobId> found;
  for_each_shadow(list, [&](const Entry& shadow) {
    if (!found) found = shadow.job;
  });
  return found;
}

// Returns, where CPUs are counted (6.2), the first shadow of a node whose shadows alone leave too
// few for it.
std::optional<JobId> GangLists::shadow_that_fills(const List& list, const Entry& entry) const {
  for (const Use& use : uses_of(entry)) {
    std::optional<JobId> first;
    std::int32_t taken = 0;
    for_each_shadow(list, [&](const Entry& shadow) {
      for (const Use& its : uses_of(shadow)) {
        if (its.node != use.node) continue;
        if (!first) first = shadow.job;
        taken += its.cpus;
      }
    });
    if (first && std::min(taken, cpus_of(use)) + use.cpus > cpus_of(use)) return first;
  }
  return std::nullopt;
}

// Notes that shadows of this tier have changed: the lists below must be looked at.
void GangLists::mark_lower(int tier) {
  for (List& list : lists_) {
    if (list.tier < tier) list.shadows_changed = true;
  }
}

// Only marks lists of lower tiers. They are filled again by the caller's refill_all() or later in
// the same tick, so that several changes above cost one rebuild below.
void GangLists::cast(Entry& entry) {
  if (entry.casts) return;
  entry.casts = true;
  mark_lower(lists_[static_cast<std::size_t>(entry.list)].tier);
}

void GangLists::uncast(Entry& entry) {
  if (!entry.casts) return;
  entry.casts = false;
  mark_lower(lists_[static_cast<std::size_t>(entry.list)].tier);
}

// `action_slots_` runs parallel to `actions_`, so that take_last_actions() needs no search for the
// job's entry.
void GangLists::act(const Entry& entry, ActionKind kind, std::optional<JobId> by) {
  if (kills_only_ && kind != ActionKind::kKill) return;
  if (kind == ActionKind::kKill) has_kills_ = true;
  actions_.push_back({entry.job, kind, by});
  action_slots_.push_back(static_cast<std::int32_t>(&entry - entries_.data()));
}

// 6.4: the job no longer runs. With P17 it is killed only if a shadow is over this very job.
void GangLists::stop(List& list, Entry& entry) {
  entry.resumed = false;
  if (entry.kill_under_shadow) {
    if (const auto shadow = any_shadow_kills_ ? any_shadow(list) : shadow_over(list, entry)) {
      // The caller decides the ending, and that takes its time (grace, pods that stop). Until the
      // job is removed no rebuild may choose it again, for example because the shadow leaves first.
      entry.held = true;  // it never runs again
      act(entry, ActionKind::kKill, shadow);
      return;
    }
  }
  act(entry, ActionKind::kStop);
}

void GangLists::resume(Entry& entry) {
  entry.resumed = true;
  act(entry, ActionKind::kResume);
}

// A job starts (6.9).
//
// 1. The job enters at the end of its list.
// 2. If it fits it runs as FILLER and casts its shadow; lists below may need to give way (step 5).
// 3. Otherwise it stops, and waits for a hole or a rotation.
void GangLists::start(const Newcomer& newcomer, bool refill) {
  const std::int32_t index = make_entry(newcomer);
  Entry& entry = entries_[static_cast<std::size_t>(index)];
  List& list = lists_[static_cast<std::size_t>(entry.list)];
  entry.resumed = !newcomer.suspended;
  if (!newcomer.suspended && !newcomer.held && fits(list, entry)) {  // 2
    add(list, entry, EntryRow::kFiller);
    cast(entry);
    if (refill) refill_all();
    return;
  }
  // Slurm 22.05 stops a job again that was stopped before, which may be its end (P17).
  if (entry.resumed || any_shadow_kills_) stop(list, entry);  // 3
  // A job that was stopped before may fit: that has not been asked yet.
  if (newcomer.suspended && !newcomer.held) list.may_change = true;
}

void GangLists::append(const Newcomer& newcomer, const Place& place) {
  Entry& entry = entries_[static_cast<std::size_t>(make_entry(newcomer))];
  entry.row = place.row;
  entry.resumed = place.resumed;
  entry.held = place.held;
  // Rows are taken as they were, not decided: nothing is tested and no action is recorded. The
  // active maps, and what lists of lower tiers know of shadows, are out of date until recount().
  entry.casts = place.resumed;
  lists_[static_cast<std::size_t>(entry.list)].may_change = true;
}

// Tiers are read again, because a change of the configuration may have moved a partition up or down
// (R6.23); the maps are made from the highest tier down, so that each list sees the shadows over
// it. Whether all of it still fits is for refill_all() to decide.
void GangLists::recount() {
  for (List& list : lists_) {
    list.tier = cluster_->partition(list.partition).tier();
    list.order = cluster_->partition(list.partition).order;
  }
  sort_lists();
  for (List& list : lists_) {
    begin_rebuild(list);
    for (const std::int32_t index : list.entries) {
      Entry& entry = entries_[static_cast<std::size_t>(index)];
      if (entry.row != EntryRow::kNone) add(list, entry, entry.row);
    }
    list.may_change = true;
  }
}

// 6.8: without the job, its row and its shadow; the holes are filled by the caller or here.
void GangLists::remove(JobId job, bool refill) {
  const auto at = place_of(index_of_, job);
  if (at == index_of_.end() || at->first != job) return;
  const std::int32_t index = at->second;
  Entry& entry = entries_[static_cast<std::size_t>(index)];
  // The shadow goes before the entry, which says in which tier it is.
  uncast(entry);
  List& list = lists_[static_cast<std::size_t>(entry.list)];
  std::erase(list.entries, index);
  list.may_change = true;
  // The lists refer to entries by index, so the slot stays and serves a later job.
  entry = Entry{};
  entry.used = false;
  vacant_.push_back(index);
  index_of_.erase(at);
  if (refill) refill_all();
}

void GangLists::set_held(JobId job, bool held) {
  const std::int32_t index = index_of(job);
  if (index < 0) return;
  Entry& entry = entries_[static_cast<std::size_t>(index)];
  entry.held = held;
  // A hold changes nothing now: a turn that the job has goes on to the end of the slice (R6.3a). A
  // release may fill a hole at once.
  if (held) return;
  lists_[static_cast<std::size_t>(entry.list)].may_change = true;
  refill_all();
}

std::vector<Action> GangLists::take_actions() {
  action_slots_.clear();
  has_kills_ = false;
  return std::exchange(actions_, {});
}

// A rebuild may stop a job and a later one resume it within one operation. A caller that writes to
// the nodes wants the result only. Kills stay, since they cannot be taken back. The vector is
// compacted towards its end, going backwards, so that the last action of a job is seen first.
std::vector<Action> GangLists::take_last_actions() {
  std::vector<bool> seen(entries_.size(), false);
  std::size_t kept = actions_.size();
  for (std::size_t i = actions_.size(); i-- > 0;) {
    const auto slot = static_cast<std::size_t>(action_slots_[i]);
    const bool kill = actions_[i].kind == ActionKind::kKill;
    if (!kill && seen[slot]) continue;
    if (!kill) seen[slot] = true;
    actions_[--kept] = actions_[i];
  }
  actions_.erase(actions_.begin(), actions_.begin() + static_cast<std::ptrdiff_t>(kept));
  return take_actions();
}

}  // namespace sched::gang
