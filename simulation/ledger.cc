#include "simulation/ledger.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "simulation/ledger_terms.h"
#include "simulation/paths.h"

namespace simulation {
namespace {

using nlohmann::json;

}  // namespace

// How the ledger judges. It sees three kinds of things, and each has checkers of its own; the
// checkers of one idea stand in one file (ledger_jobs.cc, ledger_arrays.cc, ledger_questions.cc,
// ledger_pods.cc, ledger_indexes.cc, ledger_freezes.cc, ledger_starts.cc, ledger_timetables.cc):
//
// 1. Every version of every object that was stored (`on_job`, `on_pod`, `on_table`,
//    `on_batch_job`). These checkers compare a version with the one before it, and with what else
//    is stored at that instant. They need no tolerance: a wrong version is a finding even if it
//    stands for a microsecond.
// 2. Every start and end of a program, and every thaw (`program_started`, `program_ended`,
//    `thawed`). These come from the models of kubelet and kernel and so are true whatever the API
//    server shows.
// 3. A sample of all machines every 100 ms (`sample`). A state that a promise allows for some time,
//    such as two gangs on one node while pods freeze, is a finding only when it has lasted for
//    longer than its bound: `streak()` measures that, from the first sample that showed the state.
//
// A checker must accept everything that docs/design/faults.md does not promise. Such excuses are
// narrow on purpose: one node, one pod, or one minute after a restore. Most checkers count a look
// in `tally_.looked` only if no excuse held, so a campaign fails if excuses swallow a checker.

Ledger::Ledger(devcluster::ApiServer& server, const Time& now, const Plan& plan, Tally& tally)
    : server_{server}, now_{now}, plan_{plan}, tally_{tally} {
  // Jobs before the batch Jobs that follow from them.
  for (const char* path :
       {paths::kAllJobs, paths::kAllBatchJobs, paths::kTables, paths::kAllPods, paths::kLeases}) {
    streams_.push_back({path, nullptr});
  }
}

void Ledger::find(const std::string& checker, const std::string& text) {
  // The first one: what is wrong after it mostly follows from it.
  if (!finding_) finding_ = {checker, text, now_};
}

// Returns for how long a condition has held without a break, by the looks so far. A bound in
// seconds is a bound on this time, so a state that comes and goes is judged again each time.
Time Ledger::streak(const std::string& name, bool holds) {
  if (!holds) {
    streaks_.erase(name);
    return {};
  }
  seen_streaks_.insert(name);
  return now_ - streaks_.try_emplace(name, now_).first->second;
}

// A start that had lost its partition by then takes no turns still.
void Ledger::restored(Time as_of) {
  restored_at_ = now_;
  std::erase_if(unsliced_, [&](const auto& each) { return each.second > as_of; });
  for (const auto& [uid, facts] : jobs_) {
    if (have_ended_well(facts)) fates_[title_of(facts.job)].insert("AfterOK");
  }
  const std::map<std::string, JobFacts> jobs_before = std::exchange(jobs_, {});
  const std::map<std::string, ArrayFacts> arrays_before = std::exchange(arrays_, {});
  questions_.clear();
  batch_.clear();
  pods_.clear();
  tables_.clear();
  done_.clear();
  closed_.clear();
  // After a restore from a backup nothing that was seen before counts; the watches begin with what
  // is stored now.
  for (Stream& stream : streams_) stream.stream.reset();
  // Programs whose pods are no longer stored are of starts that count no more.
  std::set<std::string> stored;
  for (const auto& pod : server_.objects(kube::Pod::kResource)) {
    stored.insert((*pod)["metadata"].value("uid", ""));
  }
  for (const auto& [uid, programs] : running_) {
    for (const Program& one : programs) {
      if (!stored.contains(one.uid)) taken_back_.insert(one.uid);
    }
  }
  // The leader of before may write from now on: that is not of the backup.
  look();
  // A job that is no longer stored was deleted, to an operator that had known it.
  for (const auto& [uid, facts] : jobs_before) {
    if (!facts.task && !jobs_.contains(uid))
      fates_[facts.job.metadata.name].merge(fate_of_deleted());
  }
  for (const auto& [uid, array] : arrays_before) {
    if (jobs_.contains(uid)) continue;
    const std::string& name = jobs_before.at(uid).job.metadata.name;
    for (const int task : array.tasks) fates_[title_of(name, task)].merge(fate_of_deleted());
  }
}

// A success that only a kubegang Job had is no longer known. A batch Job's status keeps its
// successes, but the ledger sees them only with its next write. What was stored before is heard
// first: a user's change of the same instant, as after an outage, would bring a success back.
void Ledger::reinstalled() {
  look();
  reinstalled_at_ = now_;
  done_.clear();
}

// Jobs that have nodes lose their turns, and run on until they start again (is_unsliced()). So do
// those whose start was decided before the operator heard of it, and is stored later (on_job()).
void Ledger::partition_goes(Time heard_within) {
  starts_are_unsliced_until_ = now_ + heard_within;
  for (auto& [uid, facts] : jobs_) {
    if (facts.job.status.allocation) {
      unsliced_.try_emplace({uid, facts.job.status.starts.value_or(0)}, now_);
    }
  }
}

// A start of which one pod was made with what cannot be frozen takes no turns.
bool Ledger::is_never_frozen(const std::string& job_uid, std::int64_t start) const {
  return never_frozen_.contains({job_uid, start});
}

// A partition that was deleted leaves its running jobs without turns until they start again: their
// overlap is not a finding, and neither is that of jobs that are never frozen.
bool Ledger::is_unsliced(const std::string& job_uid, std::int64_t start) const {
  return unsliced_.contains({job_uid, start}) || is_never_frozen(job_uid, start);
}

// Accounted times are only compared if no fault was felt for some time before the job became ready.
void Ledger::fault(Time lasts) {
  faults_until_ = std::max(faults_until_, now_ + lasts);
  look_at_cleaned();
}

void Ledger::look() {
  for (Stream& stream : streams_) read(stream);
}

// The ledger judges every version that was ever stored, and not what a poll happens to see: a state
// that stands for a moment only is enough for a program to act on it.
void Ledger::read(Stream& stream) {
  for (;;) {
    // A watch that ended is opened again at once: what is written before the next look would not be
    // seen.
    if (!stream.stream) {
      devcluster::ApiRequest request;
      request.http.path = stream.path + "?watch=true";
      stream.stream = server_.handle(request).stream;
    }
    std::string data;
    const auto state = stream.stream->read(data, base::Duration{0});
    for (std::size_t begin = 0; begin < data.size();) {
      const std::size_t end = std::min(data.find('\n', begin), data.size());
      take(stream.path, data.substr(begin, end - begin));
      begin = end + 1;
    }
    if (state != devcluster::StreamState::kOpen) {
      stream.stream.reset();
    } else if (data.empty()) {
      return;
    }
  }
}

void Ledger::take(const std::string& path, const std::string& line) {
  const json event = json::parse(line, nullptr, false);
  const std::string type = event.value("type", "");
  if (type != "ADDED" && type != "MODIFIED" && type != "DELETED") return;
  const json& object = event["object"];
  // Bookmarks and errors (410 after a compaction) carry no object; the watch is opened again by
  // read().
  if (path == paths::kAllJobs) {
    if (auto job = kube::decode<kube::Job>(object); job.ok()) on_job(type, std::move(*job));
  } else if (path == paths::kAllBatchJobs) {
    on_batch_job(type, object);
  } else if (path == paths::kTables) {
    auto table = kube::decode<kube::NodeTimetable>(object);
    if (table.ok()) on_table(type, std::move(*table));
  } else if (path == paths::kAllPods) {
    on_pod(type, object);
  } else if (object["spec"].value("renewTime", "") != lease_renewed_) {
    // The Lease. Its last renewal counts (sample_fail_open()).
    lease_renewed_ = object["spec"].value("renewTime", "");
    lease_seen_at_ = now_;
  }
}

void Ledger::sample(std::vector<Node>& nodes, bool operator_is_well) {
  seen_streaks_.clear();
  operator_is_well_ = operator_is_well;
  for (Node& node : nodes) {
    sample_debugs(node);
    sample_overlaps(node);
    sample_counted_overlaps(node);
    sample_frozen(node);
    sample_never_frozen(node);
    sample_fail_open(node);
    sample_deleted(node);
    sample_obedience(node);
    sample_going_back(node);
  }
  sample_gangs(nodes);
  sample_times(nodes);
  sample_wishes();
  sample_questions();
  sample_starts(nodes);
  sample_idle();
  sample_idle_nodes(nodes);
  started_on_.clear();
  // A condition that was not looked at is over: its pod or its node is gone.
  std::erase_if(streaks_, [&](const auto& one) { return !seen_streaks_.contains(one.first); });
}

}  // namespace simulation
