// Checks pods as they are made and ended, and programs as they start and end.
#include "simulation/ledger.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/wellknown.h"
#include "simulation/ledger_terms.h"
#include "simulation/paths.h"

namespace simulation {
namespace {

using nlohmann::json;

// How long a leader goes by the answer to a pod's creation alone before it asks for the pod.
constexpr Time kAskedForWithin = std::chrono::seconds{30};

// Returns the number in a pod's label; 0 for a pod that kubegang did not make.
std::int64_t label_number(const json& pod, std::string_view label) {
  const json& metadata = pod["metadata"];
  const auto labels = metadata.find("labels");
  if (labels == metadata.end()) return 0;
  return std::stoll(labels->value(std::string{label}, "0"));
}

// Returns the key of the pod's job, with its task of an array; "" for a pod without an owner.
std::string job_of(const json& pod) {
  const json& metadata = pod["metadata"];
  if (!metadata.contains("ownerReferences")) return "";
  std::optional<int> task;
  const json labels = metadata.value("labels", json::object());
  const std::string name{kube::kLabelArrayTask};
  if (labels.contains(name)) task = std::stoi(labels.value(name, "0"));
  return control::record_key(metadata["ownerReferences"][0].value("uid", ""), task);
}

// Returns true if a pod that was made so must never be frozen (docs/operations.md). Jobs of these
// rounds ask for none of it: a webhook does.
bool has_hazard(const json& pod) {
  for (const char* list : {"initContainers", "containers"}) {
    for (const json& container : pod["spec"].value(list, json::array())) {
      if (container.contains("livenessProbe")) return true;
      if (container.value("restartPolicy", "") == "Always") return true;
    }
  }
  return false;
}

// Returns true if the job has that many devices on one of its nodes. Those of a whole node are all
// its own, though it wants fewer.
bool has_devices(const kube::Job& job, int count) {
  const auto& allocation = job.status.allocation;
  return allocation && std::ranges::any_of(allocation->shares, [&](const kube::NodeShare& share) {
           return std::ranges::any_of(share.devices,
                                      [&](const auto& device) { return device.count == count; });
         });
}

}  // namespace

// A pod exists only for a start that is stored.
void Ledger::on_pod(const std::string& type, const json& pod) {
  const json& metadata = pod["metadata"];
  const std::string uid = metadata.value("uid", "");
  if (type == "DELETED") {
    const auto gone = pods_.find(uid);
    if (gone == pods_.end()) return;
    // Kubelet may have reported only while the pod was being deleted what its program had done.
    if (gone->second.by_others) {
      const int task = static_cast<int>(label_number(pod, kube::kLabelTask));
      note_cleaned(
          {metadata.value("name", ""), gone->second.job_uid, gone->second.start, task, now_});
    }
    pods_.erase(gone);
    return;
  }
  // Only two instants of a pod are judged: the one at which it appears, and the one at which its
  // deletion begins. Everything between is kubelet's.
  const bool fresh = !pods_.contains(uid);
  PodFacts& facts = pods_[uid];
  facts.version = metadata.value("resourceVersion", "");
  const bool was_deleting = std::exchange(facts.deleting, metadata.contains("deletionTimestamp"));
  if (facts.deleting && !was_deleting) facts.deleted_at = now_;
  if (!fresh && facts.deleting && !was_deleting && !facts.by_others) on_torn_down(pod, facts);
  const std::string phase = pod.value("status", json::object()).value("phase", "");
  if (facts.runs_at == kNoTime && phase != "Pending" && !phase.empty()) facts.runs_at = now_;
  note_success(pod);
  // A new pod. The job may be gone already, which the garbage collector repairs, so there is
  // nothing to compare with then.
  if (!fresh || !metadata.contains("ownerReferences")) return;
  facts.job_uid = job_of(pod);
  facts.start = label_number(pod, kube::kLabelStart);
  facts.made_at = now_;
  if (questions_.contains(facts.job_uid)) {
    find("forecast", "pod " + metadata.value("name", "") + " exists, its job only asks");
  }
  if (has_hazard(pod)) never_frozen_.try_emplace({facts.job_uid, facts.start}, now_);
  const auto job = jobs_.find(facts.job_uid);
  if (job == jobs_.end() || now_ < restored_at_ + kAfterRestore) return;
  ++tally_.looked["commit"];
  const kube::JobStatus& status = job->second.job.status;
  const std::int64_t start = facts.start;
  // A create that was long on its way may come after the end of its start, but not before it.
  if (status.starts.value_or(0) < start) {
    find("commit", "pod " + metadata.value("name", "") + " of start " + std::to_string(start) +
                       " exists, job has " + std::to_string(status.starts.value_or(0)));
  }
  if (status.starts.value_or(0) == start) check_member(job->second.job, pod);
  check_pod_devices(job->second.job, pod);
}

// A pod asks its node for what its job wants, or has.
void Ledger::check_pod_devices(const kube::Job& job, const json& pod) {
  const JobPlan* plan = plan_of_job(job);
  if (plan == nullptr || plan->devices == 0) return;
  ++tally_.looked["devices of a pod"];
  int asked = 0;
  for (const json& container : pod["spec"].value("containers", json::array())) {
    const json limits =
        container.value("resources", json::object()).value("limits", json::object());
    asked += std::stoi(limits.value(paths::kDevice, "0"));
  }
  if (asked == plan->devices || (asked > plan->devices && has_devices(job, asked))) return;
  find("devices", "pod " + pod["metadata"].value("name", "") + " asks for " +
                      std::to_string(asked) + " devices, its job wants " +
                      std::to_string(plan->devices));
}

// A leader that hears decides by pods as they are stored, and by none that is gone: it does not
// know an older version for long. A watch that lists again does not show a pod that was made and
// deleted meanwhile: the leader asks for it (architecture.md 3).
void Ledger::check_known_pod(const kube::Pod& pod, bool is_unseen) {
  ++tally_.looked["known pod"];
  const kube::ObjectMeta& metadata = pod.metadata;
  const auto stored = pods_.find(metadata.uid);
  const std::string version = stored == pods_.end() ? "none" : stored->second.version;
  if (version == metadata.resource_version) return;
  const auto since = outdated_.try_emplace({metadata.uid, metadata.resource_version}, now_).first;
  if (now_ <= since->second + kHearsWithin + (is_unseen ? kAskedForWithin : Time{0})) return;
  find("known pod", "the operator knows pod " + metadata.name + " of version " +
                        metadata.resource_version + ", stored is " + version);
}

// Remembers that a pod of the present start is stored as succeeded. One that was made to end may
// succeed because of that.
void Ledger::note_success(const json& pod) {
  const json& metadata = pod["metadata"];
  if (!metadata.contains("ownerReferences") || metadata.contains("deletionTimestamp")) return;
  const auto job = jobs_.find(job_of(pod));
  const bool succeeded = pod.value("status", json::object()).value("phase", "") == "Succeeded";
  if (job == jobs_.end() || !succeeded) return;
  JobFacts& facts = job->second;
  if (label_number(pod, kube::kLabelStart) != facts.job.status.starts.value_or(0)) return;
  facts.succeeded.insert(static_cast<int>(label_number(pod, kube::kLabelTask)));
}

// The stored status says if it had ended: then nothing is lost if an operator sees that it goes.
void Ledger::pod_deleted(const json& pod) {
  const json& metadata = pod["metadata"];
  pods_[metadata.value("uid", "")].by_others = true;
  if (!metadata.contains("ownerReferences")) return;
  const std::string job_uid = job_of(pod);
  const std::int64_t start = label_number(pod, kube::kLabelStart);
  const std::string phase = pod.value("status", json::object()).value("phase", "");
  if (phase == "Succeeded" || phase == "Failed") {
    const int task = static_cast<int>(label_number(pod, kube::kLabelTask));
    note_cleaned({metadata.value("name", ""), job_uid, start, task, now_});
  } else {
    starts_[job_uid][start].lost = true;
  }
}

// An end that no operator sees before the pod's object is gone is unknown (faults.md, limit 2).
void Ledger::note_cleaned(Cleaned pod) {
  cleaned_.push_back(std::move(pod));
  if (!operator_is_well_ || now_ <= faults_until_) forget_success(cleaned_.back());
}

// No leader may know what the pod had done, so it counts as lost.
void Ledger::forget_success(const Cleaned& pod) {
  lost_pods_.insert(pod.name);
  starts_[pod.job_uid][pod.start].lost = true;
  const auto job = jobs_.find(pod.job_uid);
  if (job == jobs_.end() || job->second.job.status.starts.value_or(0) != pod.start) return;
  job->second.succeeded.erase(pod.task);
  job->second.is_known_done = false;
}

// A fault so soon after a clean-up may keep an operator from seeing it, or from storing what it
// saw.
void Ledger::look_at_cleaned() {
  std::erase_if(cleaned_, [&](const Cleaned& pod) { return now_ > pod.at + kHearsWithin; });
  for (const Cleaned& pod : cleaned_) forget_success(pod);
}

// Checks that a pod that runs is ended only when its job's ending is stored: by the operator, since
// the other events delete pods without a grace time or are noted (pod_deleted()). A job that waits
// and has no nodes says that its start is over: a pod that comes after that was long on its way.
void Ledger::on_torn_down(const json& pod, const PodFacts& facts) {
  const auto found = jobs_.find(facts.job_uid);
  if (found == jobs_.end() || now_ < restored_at_ + kAfterRestore) return;
  ++tally_.looked["teardown"];
  const kube::Job& job = found->second.job;
  const bool current = job.status.starts.value_or(0) == label_number(pod, kube::kLabelStart);
  const bool is_over = job.status.state == kube::JobState::kPending && !job.status.allocation;
  const bool goes_on = current && !is_over && !job.status.ending && !is_final_state(job);
  if (!goes_on || job.metadata.deletion_timestamp) return;
  find("teardown", "pod " + pod["metadata"].value("name", "") + " is deleted, job is " +
                       state_of(job) + " and no ending is stored");
}

void Ledger::program_started(const Program& program) {
  ++tally_.looked["started twice"];
  ran_.insert(program.uid);
  // 1. No program runs beside one of another start of its job, or beside the same task of its
  //    start.
  // 2. A task that has ended well in a start does not run again in it.
  // 3. A job that is final starts nothing, unless its ending is still being carried out.
  // 4. The rule for the attempts of a batch Job, and that for indexes.
  std::vector<Program>& running = running_[program.job_uid];
  const auto job = jobs_.find(program.job_uid);
  // A pod that was deleted by force is made again whatever its program does, and the state
  // of a machine that has failed is unknown: two that run are not a finding then.
  const bool excused = now_ < restored_at_ + kAfterRestore || lost_pods_.contains(program.name) ||
                       suffered_.contains(program.node);
  for (const Program& other : running) {
    if (excused || suffered_.contains(other.node) || lost_pods_.contains(other.name)) continue;
    // Tasks of one start run side by side; anything else is two runs of one job.
    if (other.start != program.start || other.task == program.task) {
      find("started twice", program.name + " starts while " + other.name + " runs");
    }
  }
  if (!excused && job != jobs_.end()) {
    const auto& done = succeeded_[program.job_uid][program.start];
    const auto ended = done.find(program.task);
    // A start that a restore took back is made again under its number. A program of it may end only
    // after the restore.
    const bool counts = ended != done.end() && ended->second.at > restored_at_;
    if (counts && !ended->second.is_taken_back) {
      find("started twice", program.name + " has ended well and starts again");
    }
    if (is_final_state(job->second.job) && !job->second.job.status.ending &&
        program.start >= job->second.job.status.starts.value_or(0)) {
      find("started twice", program.name + " starts, its job is final");
    }
  }
  if (!excused) {
    check_attempts(program);
    check_index(program);
  }
  running.push_back(program);
}

// Checks that only one of the Jobs that run one batch Job has programs, but for those that are
// ending. No index runs beside itself, ending or not. A batch Job that has ended starts none.
void Ledger::check_attempts(const Program& program) {
  const auto owner = owners_.find(program.job_uid);
  if (owner == owners_.end()) return;
  ++tally_.looked["attempts"];
  if (has_ended(owner->second)) {
    find("attempts", program.name + " starts, its batch Job has ended");
  }
  // A reinstalled operator does not know of the Jobs that went with the CRDs.
  const bool is_indexed =
      indexed_.contains(owner->second) && now_ >= reinstalled_at_ + kAfterRestore;
  if (is_indexed) ++tally_.looked["index twice"];
  for (const auto& [uid, running] : running_) {
    const auto other = owners_.find(uid);
    if (uid == program.job_uid || other == owners_.end() || other->second != owner->second) {
      continue;
    }
    for (const Program& one : running) {
      if (suffered_.contains(one.node) || lost_pods_.contains(one.name)) continue;
      // The same index is the same program under the same host name: that one must be gone.
      const bool same_index = is_indexed && one.task == program.task;
      if (is_ending(one) && !same_index) continue;
      find("started twice", program.name + " starts while " + one.name + " runs for it");
    }
  }
}

// Remembers how a task ended. `exit_code` is the planned one, so it counts only for a program that
// ended by itself. A program that handled SIGTERM with another code has not failed.
void Ledger::program_ended(const Program& program, EndedBy by) {
  std::erase_if(running_[program.job_uid],
                [&](const Program& one) { return one.uid == program.uid; });
  const bool by_itself = by == EndedBy::kItself;
  if (by_itself && program.exit_code == 0) {
    succeeded_[program.job_uid][program.start][program.task] = {now_,
                                                                taken_back_.contains(program.uid)};
  }
  StartFacts& happened = facts_of(program);
  if (by == EndedBy::kSignal || (by_itself && program.exit_code != 0)) happened.failed = true;
  if (by_itself) happened.exit_code = std::max(happened.exit_code, program.exit_code);
  if (by == EndedBy::kMachine) happened.lost = true;
}

}  // namespace simulation
