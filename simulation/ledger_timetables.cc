// Timetables, the agents that obey them, and the nodes of a gang that agree.
#include "simulation/ledger.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "api/wellknown.h"
#include "simulation/ledger_terms.h"
#include "timetable/timetable.h"
#include "translation/pod_slots.h"

namespace simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A watch may die unnoticed. The agent then asks at least every 6 s, and needs one more request for
// the quorum read that confirms an older timetable.
constexpr Time kObeysWithin = seconds{10};
constexpr Time kGangAgreesWithin = seconds{5};
// Nodes whose clocks differ by more than this may reach a boundary at different true times.
constexpr base::Duration kClockPromised = milliseconds{100};

}  // namespace

// No object may let two gangs run in one slot of one node.
void Ledger::on_table(const std::string& type, kube::NodeTimetable table) {
  const std::string node = table.metadata.name;
  if (type == "DELETED") {
    tables_.erase(node);
    return;
  }
  const kube::NodeTimetableSpec& spec = table.spec;
  if (!timetable::validate(spec.timetable).ok()) {
    find("timetable", "the timetable of " + node + " is invalid");
    return;
  }
  // Checks one set of pods that run together: all of one job, except for jobs without turns.
  ++tally_.looked["timetable"];
  const auto check = [&](const timetable::PodSet& run) {
    std::set<std::string> jobs;
    for (const std::uint16_t index : run) {
      const std::string uid = control::record_key(spec.pods[index].job_uid, spec.pods[index].task);
      const auto job = jobs_.find(uid);
      // A job of a partition that was deleted runs at all times; it is listed for as long as others
      // of its node take turns. One that ends, as stored, runs for its grace time.
      const bool takes_no_turns =
          job != jobs_.end() && (is_unsliced(uid, job->second.job.status.starts.value_or(0)) ||
                                 job->second.job.status.ending.has_value());
      if (!takes_no_turns) jobs.insert(uid);
    }
    if (jobs.size() > 1) find("timetable", "two gangs in one slot of " + node);
  };
  for (const timetable::PlanEntry& entry : spec.timetable.plan) {
    const base::Instant t = kube::ManualClock::kStart + now_;
    // Entries that have passed may name pods that are no longer in force.
    if (entry.until > t) check(entry.run);
  }
  for (const timetable::PodSet& slot : spec.timetable.cycle) check(slot);
  check_starts(table);
  tables_[node] = std::move(table);
}

// Checks that a timetable without a pending write is stored as wanted, but for term and
// revision.
void Ledger::check_stored_table(const std::string& node, const kube::NodeTimetableSpec& wanted) {
  const auto table = tables_.find(node);
  if (table == tables_.end()) return;
  ++tally_.looked["stored timetable"];
  kube::NodeTimetable want, is;
  want.spec = wanted;
  is.spec = table->second.spec;
  want.spec.term = is.spec.term;
  want.spec.revision = is.spec.revision;
  if (want.spec == is.spec) return;
  // Encoding rounds times.
  const nlohmann::json difference =
      nlohmann::json::diff(kube::encode(is)["spec"], kube::encode(want)["spec"]);
  if (difference.empty()) return;
  find("stored timetable", "the timetable of " + node +
                               " is not stored as the operator wants it: " + difference.dump());
}

// A timetable lists pods of stored starts only. A pod's name says to which start it belongs, as a
// function of job and start (architecture.md 3). One that was long on its way may list a start that
// is over. take() has read the jobs stored before this.
void Ledger::check_starts(const kube::NodeTimetable& table) {
  // Each word of the agent is a new version of the object, too. After a restore the old spec may
  // list what the restored status lacks, until the operator writes it again.
  const auto before = tables_.find(table.metadata.name);
  const bool same = before != tables_.end() && before->second.metadata.uid == table.metadata.uid &&
                    before->second.spec.term == table.spec.term &&
                    before->second.spec.revision == table.spec.revision;
  if (same || now_ < restored_at_ + kAfterRestore) return;
  for (const kube::TimetablePod& pod : table.spec.pods) {
    const auto found = jobs_.find(control::record_key(pod.job_uid, pod.task));
    if (found == jobs_.end()) continue;  // it was deleted meanwhile
    ++tally_.looked["table commit"];
    const kube::Job& job = found->second.job;
    const int index = control::index_in_name(pod.name).value_or(-1);
    bool stored = false;
    for (std::int64_t start = job.status.starts.value_or(0); start > 0 && !stored; --start) {
      stored =
          pod.name == control::pod_name({job.metadata.name, pod.job_uid, start, pod.task}, index);
    }
    if (!stored) {
      find("table commit", "the timetable of " + table.metadata.name + " lists " + pod.name +
                               ", stored are " + std::to_string(job.status.starts.value_or(0)) +
                               " starts");
    }
  }
}

// An agent that can hear obeys the timetable that is stored. Its link must have been whole for a
// second only: the bound itself leaves time for the rest.
void Ledger::sample_obedience(Node& node) {
  const bool hears = node.machine->is_on && node.agent->is_working() && !node.given_up &&
                     node.agent->link().was_whole_for(seconds{1}) &&
                     tables_.contains(node.machine->name);
  if (hears) ++tally_.looked["obeys"];
  const Time since = streak("disobeys " + node.machine->name, hears && !obeys(node));
  if (since > kObeysWithin) {
    find("obeys", node.machine->name + " does not obey its timetable for " + text_of(since));
  }
}

// An agent does not return to an older timetable than it has obeyed while the newer one is stored.
// A new worker begins without memory, a reinstalled timetable has another UID, and a store that was
// set back has itself lost the newer one: those are compared with nothing.
void Ledger::sample_going_back(Node& node) {
  const std::string& name = node.machine->name;
  const auto table = node.agent->obeyed();
  if (!table || now_ < restored_at_ + kAfterRestore) {
    obeyed_.erase(name);
    return;
  }
  const Obeyed now{table->metadata.uid, table->spec.term, table->spec.revision,
                   node.agent->worker_since()};
  const auto [entry, fresh] = obeyed_.try_emplace(name, now);
  const Obeyed before = std::exchange(entry->second, now);
  const auto stored = tables_.find(name);
  const bool same = !fresh && before.uid == now.uid && before.worker_since == now.worker_since &&
                    stored != tables_.end() && stored->second.metadata.uid == now.uid;
  if (!same) return;
  ++tally_.looked["goes back"];
  const auto is_older = [](std::int64_t term, std::int64_t revision, const Obeyed& than) {
    return std::pair{term, revision} < std::pair{than.term, than.revision};
  };
  const kube::NodeTimetableSpec& spec = stored->second.spec;
  if (is_older(now.term, now.revision, before) && !is_older(spec.term, spec.revision, before)) {
    find("goes back", name + " obeyed revision " + std::to_string(before.revision) + " and obeys " +
                          std::to_string(now.revision));
  }
}

// All pods of a gang stand or go. While a boundary passes some nodes have switched and others have
// not, and a new revision reaches the nodes one by one: for that the streak may last 5 s. One node
// that is excused excuses the whole job, because nothing says which side of the disagreement is
// right.
void Ledger::sample_gangs(std::vector<Node>& nodes) {
  std::map<std::string, int> state;  // by job: 1 = some go, 2 = some stand
  std::set<std::string> excused;
  for (Node& node : nodes) {
    const bool unclear =
        is_excused(node) || std::chrono::abs(node.machine->clock.offset()) > kClockPromised;
    for (const auto& [uid, program] : node.kubelet->programs()) {
      const bool slow =
          node.machine->kernel.is_asked_frozen(uid) && !node.machine->kernel.stands(uid);
      if (unclear || slow || !is_settled(node, program) || is_ending(program)) {
        excused.insert(program.job_uid);
      }
      state[program.job_uid] |= node.machine->kernel.stands(uid) ? 2 : 1;
    }
  }
  for (const auto& [uid, seen] : state) {
    const auto job = jobs_.find(uid);
    const bool clear = operator_is_well_ && !excused.contains(uid) && job != jobs_.end() &&
                       kube::is_true(job->second.job.status.conditions, kube::kReady);
    if (clear) ++tally_.looked["gang agrees"];
    const Time since = streak("disagrees " + uid, clear && seen == 3);
    if (since > kGangAgreesWithin) {
      find("gang agrees",
           "the nodes of job " + job->second.job.metadata.name + " differ for " + text_of(since));
    }
  }
}

// Returns true if the agent follows the very version of the timetable that is stored. The UID is a
// part of it, because a reinstallation begins again with revision 1.
bool Ledger::obeys(const Node& node) const {
  const auto obeyed = node.agent->obeyed();
  const auto stored = tables_.find(node.machine->name);
  if (stored == tables_.end()) return obeyed == nullptr;
  return obeyed != nullptr && obeyed->metadata.uid == stored->second.metadata.uid &&
         obeyed->spec.term == stored->second.spec.term &&
         obeyed->spec.revision == stored->second.spec.revision;
}

}  // namespace simulation
