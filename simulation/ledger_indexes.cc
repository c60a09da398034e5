// Jobs whose pods follow one another (spec.completions), and the counters of batch Jobs.
#include "simulation/ledger.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "api/wellknown.h"
#include "simulation/ledger_terms.h"

namespace simulation {
namespace {

using nlohmann::json;

// Returns an index that was in the list and has left it; nullopt if there is none.
std::optional<int> lost_from(const std::set<int>& before, const std::set<int>& now) {
  const auto lost =
      std::find_if(before.begin(), before.end(), [&](int index) { return !now.contains(index); });
  return lost == before.end() ? std::nullopt : std::optional{*lost};
}

}  // namespace

// Returns the UID under which successes are remembered. An index is the same pod in all Jobs that
// run an Indexed batch Job. The pods of other batch Jobs do not differ, so their numbers begin
// again with each Job.
std::string Ledger::run_of(const std::string& job_uid) const {
  const auto owner = owners_.find(job_uid);
  return owner != owners_.end() && indexed_.contains(owner->second) ? owner->second : job_uid;
}

// Remembers which indexes are stored as succeeded. None is taken back, not even by a requeue.
void Ledger::on_successes(const kube::Job& before, const kube::Job& job) {
  if (!job.spec.completions) return;
  ++tally_.looked["successes"];
  const std::set<int> now = indexes_in(job.status.succeeded_indexes);
  const std::string run = run_of(job.metadata.uid);
  std::set<int>& done = done_[run];
  std::set<int>& alone = counted_alone_[run];
  const std::set<int> had = indexes_in(before.status.succeeded_indexes);
  if (const auto lost = lost_from(had, now)) {
    if (now_ >= restored_at_ + kTwoLeadersWithin) {
      find("successes", "index " + std::to_string(*lost) + " of job " + job.metadata.name +
                            " had succeeded and no longer has");
    }
    // One of two leaders writes over what the other stored: it is gone from the store, but for what
    // the batch Job's status counts.
    for (const int index : had) {
      if (now.contains(index)) continue;
      done.erase(index);
      alone.insert(index);
    }
  }
  for (const std::set<int>& stored : {now, indexes_in(job.spec.completed_indexes)}) {
    for (const int index : stored) {
      done.insert(index);
      alone.erase(index);
    }
  }
}

// A batch Job's counter of successes never goes back, nor does an index of its list, and one that
// is Complete has as many successes as it needs.
void Ledger::on_counters(const std::string& uid, const BatchFacts& before,
                         const BatchFacts& facts) {
  ++tally_.looked["successes"];
  const auto told = [](const BatchFacts& one) { return std::to_string(one.succeeded); };
  if (facts.succeeded < before.succeeded) {
    find("successes",
         "batch Job " + facts.name + " had " + told(before) + " successes and has " + told(facts));
  }
  if (const auto lost = lost_from(before.completed, facts.completed)) {
    find("successes", "index " + std::to_string(*lost) + " of batch Job " + facts.name +
                          " had succeeded and no longer has");
  }
  const bool is_listed = !indexed_.contains(uid) ||
                         facts.completed.size() == static_cast<std::size_t>(facts.succeeded);
  if (facts.complete && (facts.succeeded != facts.needed || !is_listed)) {
    find("successes", "batch Job " + facts.name + " is Complete with " + told(facts) + " of " +
                          std::to_string(facts.needed) + " successes");
  }
  if (!indexed_.contains(uid)) return;
  // After a restore of etcd the leader of before counts what it knows, although the Job that had it
  // stored went back (faults.md, section 4, 1). The first version is the backup's.
  const bool two_leaders = now_ < restored_at_ + kTwoLeadersWithin && before.needed > 0;
  std::set<int>& done = done_[uid];
  std::set<int>& alone = counted_alone_[uid];
  for (const int index : facts.completed) {
    const bool is_new = !before.completed.contains(index) && !done.contains(index);
    if (is_new && two_leaders) alone.insert(index);
    if (!alone.contains(index)) done.insert(index);
  }
}

// A pod exists only if it is stored that its index has a place. REQUIRES: `pod` is new, and of the
// present start as stored. One whose creation was long on its way may come when its index has
// succeeded, or its start is over: it has had its place.
void Ledger::check_member(const kube::Job& job, const json& pod) {
  const kube::JobStatus& status = job.status;
  if (!job.spec.completions || !status.allocation || is_final_state(job)) return;
  ++tally_.looked["members"];
  const json& metadata = pod["metadata"];
  const int index = std::stoi(metadata["labels"].value(std::string{kube::kLabelTask}, "0"));
  if (indexes_in(status.member_indexes).contains(index)) return;
  if (indexes_in(status.succeeded_indexes).contains(index)) return;
  find("members",
       "pod " + metadata.value("name", "") + " exists, places have " + status.member_indexes);
}

// An index that is stored as succeeded does not run again, in whatever start or attempt.
void Ledger::check_index(const Program& program) {
  const auto done = done_.find(run_of(program.job_uid));
  if (done == done_.end()) return;
  ++tally_.looked["index again"];
  if (done->second.contains(program.task)) {
    find("index again", program.name + " starts, its index has succeeded");
  }
}

// Returns how many indexes have succeeded: by what programs did, in all starts of this Job, and
// those that it need not run.
std::size_t Ledger::pods_that_ended_well(const kube::Job& job) {
  std::set<int> indexes = indexes_in(job.spec.completed_indexes);
  for (const auto& [start, tasks] : succeeded_[job.metadata.uid]) {
    for (const auto& [task, at] : tasks) indexes.insert(task);
  }
  return indexes.size();
}

}  // namespace simulation
