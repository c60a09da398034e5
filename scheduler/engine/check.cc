// The conditions that must hold after every step: the life cycle's invariants, and the gang's
// (6.13); for tests.
#include <algorithm>
#include <map>

#include "scheduler/engine/engine.h"

namespace sched {
namespace {

std::string job_name(const Job& job) {
  return "job " + to_string(job.id);
}

// Counted, and no more than may be (13.4).
std::string check_tasks(const JobTable& table) {
  std::map<const Job*, int> begun, running;
  for (const auto& [order, job] : table.all()) {
    if (job->whole == nullptr) continue;
    if (job->has_begun) ++begun[job->whole];
    if (job->allocated() && !job->completing()) ++running[job->whole];
  }
  for (const auto& [order, job] : table.all()) {
    if (!job->is_array()) continue;
    if (job->tasks->begun != begun[&*job]) return job_name(*job) + ": begun tasks are miscounted";
    if (job->tasks->running != running[&*job]) {
      return job_name(*job) + ": running tasks are miscounted";
    }
  }
  return {};
}

}  // namespace

// Returns the first contradiction that is found, in words; "" if there is none.
std::string Engine::check_invariants() {
  turns_->project();
  for (const auto& [order, job] : books_.table().all()) {
    if (std::string broken = check_job(*job); !broken.empty()) return broken;
  }
  if (std::string broken = check_tasks(books_.table()); !broken.empty()) return broken;
  for (int rank = 0; rank < cluster_.node_count(); ++rank) {
    if (std::string broken = check_node(cluster_.node_at(rank)); !broken.empty()) return broken;
  }
  if (std::string broken = dependencies_.check_invariants(); !broken.empty()) return broken;
  if (std::string broken = resource_limits_.licenses().check_invariants(); !broken.empty()) {
    return broken;
  }
  return turns_->check_invariants();
}

// 1. An allocation and the states that need one go together, in the job and in the books.
// 2. A job has all nodes that it asked for, or none.
// 3. It takes turns if and only if it is ready and neither its user nor an ending keeps it off.
// 4. A waiting job is in the queue or says why it is not. After a pass to the end of the queue
//    every job has a reason.
std::string Engine::check_job(const Job& job) const {
  const std::string name = job_name(job);
  if (job.allocated() != books_.allocated().contains(job.table_order))
    return name + ": lost allocation";
  if (job.allocated() && (job.pending() || is_terminal(job.state))) {
    return name + ": holds nodes in a state without";
  }
  if (!job.allocated() && (job.running() || job.suspended())) return name + ": runs nowhere";
  if (job.allocated()) {  // all or nothing
    const int count = static_cast<int>(job.allocation.nodes.size());
    if (count < job.request->min_nodes) return name + ": fewer nodes than it asked for";
    if (job.request->nodes_given && job.request->max_nodes && count > *job.request->max_nodes) {
      return name + ": more nodes than it asked for";
    }
    const bool should = gang::takes_turns(cluster_, job) && job.ready && !job.completing() &&
                        !job.cores_released && !job.user_suspended;
    if (should && !job.turn.in_gang) return name + ": ready and not in the gang";
    if (job.turn.in_gang && !job.ready) return name + ": in the gang and not ready";
  }
  if (job.pending() && job.count() > 0) {
    const bool timed = admission_.has_timer(job.id);
    if (job.held && !job.queued.in.empty()) return name + ": held and queued";
    if (!admission_.knows(job)) return name + ": gets no priority";
    // Outside the queue a job is held, waits for a timer, or says why it is not tried.
    if (!job.held && !timed && job.queued.in.empty() && job.reason == Reason::kNone) {
      return name + ": waits without a reason";
    }
    // Nothing has changed since the last pass, so each job has been looked at as things are.
    const bool evaluated = books_.version() == pass_.passed_version();
    if (evaluated && job.reason == Reason::kNone) return name + ": passed over without a reason";
  } else if (!job.queued.in.empty()) {
    return name + ": queued, and does not wait";
  }
  return {};
}

// No memory over the node's, unless suspensions give it back (P5, R5.4), and no device twice
// (R11.2). (That no unit is over its share is a matter of starts: a partition may be given a
// smaller share while its jobs run.)
std::string Engine::check_node(NodeIndex node) const {
  const NodeSpec& spec = cluster_.node(node);
  MemoryMiB memory{0};
  Devices devices;
  for (const Job* job : books_.usage().jobs_on(node)) {
    if (job->completing()) continue;
    for (const NodeAllocation& use : job->allocation.nodes) {
      if (use.node == node) memory += use.memory;
    }
    for (const DevicesOnNode& use : job->allocation.devices) {
      if (use.node == node) add_devices(devices, use.kind, use.count);
    }
  }
  const ClusterParameters& parameters = cluster_.parameters();
  const bool may_exceed =
      parameters.quirks.suspension_frees_memory && parameters.select == SelectType::kLinear;
  if (parameters.memory && !may_exceed && memory > spec.memory) {
    return "node " + spec.name + ": memory";
  }
  if (!have_devices(spec.devices, in_words_of(spec.devices, devices)))
    return "node " + spec.name + ": devices";
  return {};
}

}  // namespace sched
