// Checks which pods stand and which go on a node: overlaps, the barrier, and pods that stay frozen.
#include "simulation/ledger.h"

#include <algorithm>

#include "simulation/ledger_terms.h"
#include "timetable/timetable.h"

namespace simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The supervisor acts 5 s after its worker hangs; the rest is the time between two of its looks.
constexpr Time kFrozenMax = seconds{6};
constexpr Time kThawedWithin = seconds{1};
// The leader hears of what keeps a gang from being frozen, and the agent of its timetable.
constexpr Time kSparedWithin = 2 * kHearsWithin;
// Three samples: a switch itself lasts some milliseconds.
constexpr Time kOverlapMax = milliseconds{300};
// `barrier`, the settle time and kKubeletLag of the agent, stated again here and not included from
// there: a wrong constant in the agent is a finding, too.
constexpr base::Duration kBarrier = milliseconds{20};
constexpr base::Duration kSettle = seconds{2};
constexpr Time kKubeletLag = seconds{5};
// How long an agent lets a pod run for all of its debug containers together.
constexpr Time kDebugMax = std::chrono::minutes{2};
// For an overlap that is counted, see sample_counted_overlaps().
constexpr base::Duration kSlowSeenWithin = milliseconds{150};
constexpr base::Duration kSeenWithin = milliseconds{2};
constexpr Time kCountedWithin = milliseconds{300};

// Returns true if the agent may know that the program runs: its kubelet has said so, and the agent
// has heard all that is stored.
bool is_known(const Node& node, const Program& program) {
  return program.report.empty() && !program.reported.empty() &&
         node.agent->link().was_whole_for(kHearsWithin) && node.agent->link().is_up_to_date();
}

}  // namespace

// Returns the pods that are asked to freeze, do not stand, and run beside a pod of another gang
// that the worker lets run: it came on meanwhile, or was never frozen and is in its first turn. A
// pod that ends, or whose gang takes no turns or may have an init container to finish, may run
// beside others, and is not counted beyond the switch that thaws it.
std::set<std::string> Ledger::overlapping(const Node& node, base::Duration worker_began) const {
  const Kernel& kernel = node.machine->kernel;
  const auto& programs = node.kubelet->programs();
  std::set<std::string> found;
  for (const auto& [uid, program] : programs) {
    const Kernel::Cgroup* late = kernel.find(uid);
    if (!program.running || !kernel.is_asked_frozen(uid) || kernel.stands(uid)) continue;
    for (const auto& [other, on] : programs) {
      const Kernel::Cgroup* cgroup = kernel.find(other);
      if (!on.running || on.job_uid == program.job_uid || cgroup == nullptr) continue;
      if (cgroup->request != agent::FreezeRequest::kThawed || is_ending(on)) continue;
      const bool came_on = cgroup->was_frozen
                               ? cgroup->asked_at >= std::max(worker_began, late->asked_at)
                               : is_known(node, on) && !may_await_init(node, on) &&
                                     !is_unsliced(on.job_uid, on.start);
      if (!is_settled(node, on)) continue;
      if (came_on) found.insert(uid);
    }
  }
  return found;
}

// Two gangs on one core: only while one of them starts or ends, while the kernel cannot stop a
// task, or where the agent cannot do its work.
void Ledger::sample_overlaps(Node& node) {
  if (is_excused(node)) return;
  Kernel& kernel = node.machine->kernel;
  std::vector<const Program*> running;
  for (const auto& [uid, program] : node.kubelet->programs()) {
    if (!is_settled(node, program) || is_ending(program) || kernel.stands(uid)) continue;
    if (is_unsliced(program.job_uid, program.start) || may_await_init(node, program)) continue;
    // The agent has done its part. The kernel cannot stop the task, and no scheduler could.
    if (kernel.is_asked_frozen(uid)) {
      ++tally_.looked["overlap of a task that does not freeze"];
      continue;
    }
    running.push_back(&program);
  }
  // Pairs of pods of different jobs that both run. Each pair has its own streak: one long overlap
  // is a finding, several short ones between different pairs at the boundaries of slots are not.
  for (std::size_t i = 0; i < running.size(); ++i) {
    ++tally_.looked["overlap"];
    for (std::size_t k = 0; k < i; ++k) {
      if (running[i]->job_uid == running[k]->job_uid) continue;
      const Time since = streak("overlap " + running[i]->uid + running[k]->uid, true);
      if (since > kOverlapMax) {
        find("overlap", running[i]->name + " and " + running[k]->name + " run together on " +
                            node.machine->name + " for " + text_of(since));
      }
    }
  }
}

// Checks an agent's count of overlap of tasks that do not freeze against what happened. A worker
// counts a spell when it is over, at the look that sees it; so the sum is compared when nothing has
// been freezing for a while. A worker's counts end with it.
//
// * Not less than was sampled: each spell was sampled for up to one step too long, and counts from
//   the look that finds the barrier passed.
// * Not more than the kernel took to freeze, in all: the worker learns of a slow freeze at a look
//   each 100 ms, and of any other 1 ms after it asked; while it is not stepped it does not look.
void Ledger::sample_counted_overlaps(Node& node) {
  Overlaps& facts = overlaps_[node.machine->name];
  const Kernel& kernel = node.machine->kernel;
  const NodeAgent& agent = *node.agent;
  if (facts.worker_since != agent.worker_since()) {
    // Counts of the last look: the worker began after it.
    facts = {.worker_since = agent.worker_since(),
             .began = node.machine->clock.monotonic(),
             .clear_since = now_,
             .before = facts.last};
  }
  facts.last = {kernel.freezes(), kernel.slow_freezes(), kernel.freezing_time()};
  if (!agent.is_working()) {
    facts.away += kSample;
    facts.clear_since = now_;
    return;
  }
  const std::set<std::string> now = overlapping(node, facts.began);
  for (const std::string& uid : now) {
    facts.sampled += kSample;
    if (!facts.now.contains(uid)) ++facts.spells;
  }
  facts.now = now;
  const auto& programs = node.kubelet->programs();
  const bool is_freezing = std::any_of(programs.begin(), programs.end(), [&](const auto& one) {
    return kernel.is_asked_frozen(one.first) && !kernel.stands(one.first);
  });
  if (is_freezing) facts.clear_since = now_;
  const base::Duration counted = agent.overlap();
  const auto told = [&] {
    return node.machine->name + " has counted " + text_of(counted) + " of overlap, ";
  };
  if (counted > base::Duration{0}) ++tally_.looked["overlap counted"];
  const base::Duration most = facts.last.freezing - facts.before.freezing + facts.away +
                              kSlowSeenWithin * (facts.last.slow - facts.before.slow) +
                              kSeenWithin * (facts.last.freezes - facts.before.freezes);
  if (counted > most) find("overlap counted", told() + "possible are " + text_of(most));
  if (now_ < facts.clear_since + kCountedWithin) return;
  if (facts.sampled > counted + facts.spells * (kSample + kBarrier + kSeenWithin)) {
    find("overlap counted", told() + "there were " + text_of(facts.sampled));
  }
}

// Returns true if the pod must not be frozen now, by what its own agent knows:
//
// 1. The agent does not work: its supervisor thaws everything, if there is one.
// 2. It lets everything run, or has no timetable. But without a journal, or with a damaged one,
//    it does not know what was frozen, and touches nothing before it has heard from the API server.
// 3. The pod has heard SIGTERM and is within its grace time. The agent learns of that by its watch.
// 4. The timetable that it obeys does not list the pod, or says that the pod runs at this instant
//    by the node's own clock. That clock may be wrong; how far nodes may disagree is a matter of
//    `gang agrees`.
bool Ledger::should_run(const Node& node, const Program& program) const {
  const NodeAgent& agent = *node.agent;
  if (!agent.is_working()) return agent.is_alive();  // its supervisor is there
  if (!agent.knows_its_pods()) return false;
  if (agent.everything_runs()) return true;
  if (program.terminated_at && now_ < *program.terminated_at + program.grace &&
      node.agent->link().was_whole_for(kHearsWithin)) {
    return true;
  }
  const auto table = agent.obeyed();
  if (!table) return true;
  const auto& pods = table->spec.pods;
  const auto listed = std::find_if(pods.begin(), pods.end(), [&](const kube::TimetablePod& pod) {
    return pod.name == program.name &&
           control::record_key(pod.job_uid, pod.task) == program.job_uid;
  });
  if (listed == pods.end()) return true;
  return timetable::runs_at(table->spec.timetable,
                            static_cast<std::uint16_t>(listed - pods.begin()),
                            node.machine->clock.wall());
}

// No pod stays frozen beyond its turn. A pod that is frozen before its program was started is a
// finding at once: a container cannot be started in a frozen cgroup, and the start would never end.
void Ledger::sample_frozen(Node& node) {
  if (!node.machine->is_on || !node.agent->is_alive()) return;
  for (const auto& [uid, program] : node.kubelet->programs()) {
    if (!node.machine->kernel.is_asked_frozen(uid) || program.over) continue;
    ++tally_.looked["frozen"];
    if (!program.running) {
      find("frozen", program.name + " is frozen before it was started");
      continue;
    }
    const Time since = streak("frozen " + uid, should_run(node, program));
    if (since > kFrozenMax) {
      find("frozen", program.name + " is frozen for " + text_of(since) + " beyond its turn");
    }
  }
}

// No pod stays frozen if a pod of its gang has a probe or a sidecar: kubelet would restart what
// does not answer.
void Ledger::sample_never_frozen(const Node& node) {
  if (!operator_is_well_ || is_excused(node)) return;
  for (const auto& [uid, program] : node.kubelet->programs()) {
    const auto spared = never_frozen_.find({program.job_uid, program.start});
    if (program.over || spared == never_frozen_.end()) continue;
    if (now_ <= spared->second + kSparedWithin) continue;
    ++tally_.looked["never frozen"];
    const Time since = streak("spared " + uid, node.machine->kernel.is_asked_frozen(uid));
    if (since > kOverlapMax) {
      find("never frozen", program.name + " is frozen, and its gang has a pod that must not be");
    }
  }
}

// If no operator leads, or the leader cannot reach the API server, the node fails open.
void Ledger::sample_fail_open(Node& node) {
  // The agent counts from the last renewal that it has seen. It reads the Lease at intervals that
  // grow with failOpenAfter, hence the half on top. 15 s are for a read that fails and is repeated;
  // an agent that is new begins to count when it starts.
  const Time after = plan_.fail_open_after * 3 / 2 + seconds{15};
  // An agent that was cut off sees a renewal of before that only then, and takes it for a new one.
  const Time cut_until = node.agent->link().weather.partitioned_until;
  const Time renewal_seen_at = std::max(lease_seen_at_, cut_until <= now_ ? cut_until : Time{0});
  const bool nobody_leads = now_ > renewal_seen_at + after &&
                            now_ > node.agent->alive_since() + after &&
                            now_ > node.agent->worker_since() + seconds{5};
  if (!nobody_leads || !node.machine->is_on || !node.agent->is_working()) return;
  ++tally_.looked["fail open"];
  for (const auto& [uid, program] : node.kubelet->programs()) {
    if (program.running && node.machine->kernel.is_asked_frozen(uid)) {
      find("fail open", program.name + " is frozen, no operator leads");
    }
  }
}

// A pod that is being deleted goes on at once, so that its program hears SIGTERM. The agent lets it
// go on for its grace time and kKubeletLag: a kubelet that hears of the deletion later than that,
// after a fault, may find it frozen (docs/design/faults.md, section 4).
void Ledger::sample_deleted(Node& node) {
  const bool excused = is_excused(node);
  for (const auto& [uid, program] : node.kubelet->programs()) {
    if (!program.running || !program.terminated_at || excused) continue;
    const auto pod = pods_.find(uid);
    const bool heard_late =
        pod != pods_.end() && *program.terminated_at > pod->second.deleted_at + kKubeletLag;
    if (heard_late) continue;
    ++tally_.looked["deleted"];
    const Time since = streak("deleted " + uid, node.machine->kernel.is_asked_frozen(uid));
    if (since > kThawedWithin) {
      find("deleted", program.name + " is being deleted and frozen for " + text_of(since));
    }
  }
}

// A pod that comes on waits until those that go off stand still, or for the barrier.
void Ledger::thawed(Node& node, const std::string& uid) {
  const auto& programs = node.kubelet->programs();
  const auto on = programs.find(uid);
  if (on == programs.end() || !on->second.running || node.agent->everything_runs()) return;
  // The supervisor thaws all that the journal names, and waits for nothing.
  if (!node.agent->is_working()) return;
  const base::Duration now = node.machine->clock.monotonic();
  for (const auto& [other, program] : programs) {
    const Kernel::Cgroup* cgroup = node.machine->kernel.find(other);
    if (program.job_uid == on->second.job_uid || !program.running || cgroup == nullptr) continue;
    // Only pods that are on their way off are waited for. One that was never asked to freeze may
    // run beside it or is a matter of `overlap`.
    if (cgroup->request != agent::FreezeRequest::kFrozen) continue;
    ++tally_.looked["barrier"];
    if (now < cgroup->stands_from && now < cgroup->asked_at + kBarrier && !is_ending(on->second)) {
      find("barrier", on->second.name + " comes on " + text_of(cgroup->stands_from - now) +
                          " before " + program.name + " stands still");
    }
  }
}

// Returns true if the agent may freeze the pod: its container has been running for the settle time,
// and the agent has had the time to see that. `startedAt` has whole seconds, so the true start may
// be up to 1 s later than the stored one; 500 ms are left for the watch to bring it. A clock that
// is set back does not keep the pod out of its turns: the agent waits no longer by its monotonic
// clock.
bool Ledger::is_settled(const Node& node, const Program& program) const {
  if (!program.running || !program.started_wall) return false;
  const auto debugged = debugged_.find(program.uid);
  if (debugged != debugged_.end() && debugged->second.may_run) return false;
  const Time takes = seconds{1} + kSettle + milliseconds{500};
  const base::Instant began{std::chrono::floor<seconds>(*program.started_wall)};
  return node.machine->clock.wall() > began + takes ||
         (program.report.empty() && now_ > program.started_at + takes + kHearsWithin);
}

// Keeps for each pod with debug containers whether the agent may let it run for them: until each
// has started and settled, for kDebugMax in its life, as far as the agent knows of them.
void Ledger::sample_debugs(const Node& node) {
  for (const auto& [uid, program] : node.kubelet->programs()) {
    if (program.debugs.empty()) continue;
    Debugged& facts = debugged_[uid];
    if (facts.worker_since != node.agent->worker_since()) {
      facts = {.worker_since = node.agent->worker_since()};
    }
    const auto is_settled_one = [&](const Debug& one) {
      return one.started_wall &&
             node.machine->clock.wall() > std::chrono::floor<seconds>(*one.started_wall) +
                                              seconds{1} + kSettle + milliseconds{500};
    };
    const bool is_known = program.report.empty() && !is_excused(node);
    const bool waits =
        !is_known || !std::all_of(program.debugs.begin(), program.debugs.end(), is_settled_one);
    facts.may_run = waits && facts.unsettled <= kDebugMax + kHearsWithin;
    if (facts.may_run) ++tally_.looked["pod that runs for a debug container"];
    if (waits && is_known) facts.unsettled += kSample;
  }
}

// Returns true if the gang of the program may have an init container to finish: no pod of such a
// gang is frozen, since its init containers may wait for each other. When the gang is ready, its
// turns begin with the timetable that lists it, which a leader has yet to write.
bool Ledger::may_await_init(const Node& node, const Program& program) const {
  const auto job = jobs_.find(program.job_uid);
  if (program.init == base::Duration{0} || job == jobs_.end()) return false;
  if (job->second.ready_at == kNoTime) return true;
  const auto table = tables_.find(node.machine->name);
  const bool is_listed =
      table != tables_.end() &&
      std::any_of(table->second.spec.pods.begin(), table->second.spec.pods.end(),
                  [&](const kube::TimetablePod& pod) { return pod.name == program.name; });
  return !is_listed && !operator_is_well_;
}

// Returns true if the pod is about to go for any reason that is stored. Such a pod is thawed
// whatever the timetable says, so that its program hears SIGTERM, and may run beside another gang
// for its grace time.
bool Ledger::is_ending(const Program& program) const {
  const auto pod = pods_.find(program.uid);
  if (program.terminated_at || pod == pods_.end() || pod->second.deleting) return true;
  const auto job = jobs_.find(program.job_uid);
  return job == jobs_.end() || job->second.job.status.ending.has_value() ||
         is_final_state(job->second.job) ||
         job->second.job.status.starts.value_or(0) != program.start;
}

// Returns true if nothing can be asked of this node now, as docs/concepts.md says:
//
// * it is off, or given up with its Node object
// * its agent is not there, hangs, or was started a moment ago
// * its agent lets everything run: the kill switch, or failed open
// * agent or kubelet cannot hear, or have not heard all that was written
// * the agent does not obey the stored timetable yet, for which there is a checker of its own
//   (`obeys`)
// * it has no timetable, which went with its Node, and no leader is there to write it again
// * etcd was restored, or the clock was set, a moment ago
bool Ledger::is_excused(const Node& node) const {
  NodeAgent& agent = *node.agent;
  return !node.machine->is_on || node.given_up || !agent.is_working() ||
         now_ < agent.worker_since() + kHearsWithin || agent.everything_runs() ||
         !agent.link().was_whole_for(kHearsWithin) || !agent.link().is_up_to_date() ||
         !node.kubelet->link().was_whole_for(kHearsWithin) || !obeys(node) ||
         (!operator_is_well_ && !tables_.contains(node.machine->name)) ||
         now_ < restored_at_ + kAfterRestore || now_ < node.machine->clock_wrong_until;
}

}  // namespace simulation
