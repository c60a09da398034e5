#include "records/recorder.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "api/annotations.h"
#include "api/records_lease.h"

namespace records {
namespace {

// A transaction of this size takes some 50 ms; readers see it as a whole.
constexpr std::size_t kBatchMax = 1'000;

// A template, a script and its variables are most of a job's text, and nothing of them is recorded.
const kube::KnownFields& fields_of_jobs() {
  static const kube::KnownFields kFields = [] {
    kube::KnownFields fields = kube::known_fields<kube::Job>();
    fields.remove({"spec", "template"});
    fields.remove({"spec", "batch", "script"});
    fields.remove({"spec", "batch", "environment"});
    fields.remove({"spec", "batch", "arguments"});
    return fields;
  }();
  return kFields;
}

void keep_what_is_recorded(kube::Job& job) {
  std::erase_if(job.metadata.annotations, [](const auto& entry) {
    return entry.first != kube::kAnnotationUser && entry.first != kube::kAnnotationName &&
           entry.first != kube::kAnnotationComment;
  });
  job.metadata.labels.clear();
  job.metadata.owner_references.clear();
  job.spec.adopted.clear();
  job.status.conditions.clear();
  job.status.message.clear();
}

kube::InformerOptions follower_options() {
  kube::InformerOptions options;
  options.fields = &fields_of_jobs();
  options.gather = std::chrono::milliseconds{50};
  return options;
}

std::string uid_of(const Change& change) {
  if (const auto* one = std::get_if<Written>(&change)) return one->record.job_uid;
  if (const auto* one = std::get_if<TaskEnded>(&change)) return one->record.job_uid;
  return std::get<JobGone>(change).job_uid;
}

}  // namespace

void ChangeQueue::add(std::vector<Change> changes) {
  {
    const std::lock_guard lock{mu_};
    std::ranges::move(changes, std::back_inserter(changes_));
    has_added_ = true;
  }
  waker_.wake_within(std::chrono::milliseconds{100});
}

void ChangeQueue::reach(std::int64_t version) {
  const std::lock_guard lock{mu_};
  reached_ = version;
  if (std::exchange(has_added_, false)) is_reached_ = true;
}

void ChangeQueue::list(std::int64_t version) {
  const std::lock_guard lock{mu_};
  listed_ = version;
  has_added_ = true;
}

ChangeQueue::Taken ChangeQueue::take(std::size_t most) {
  const std::lock_guard lock{mu_};
  if (changes_.size() <= most) {
    Taken all{.changes = std::exchange(changes_, {})};
    if (std::exchange(is_reached_, false)) {
      all.version = reached_;
      all.since = listed_;
    }
    return all;
  }
  const auto end = changes_.begin() + static_cast<std::ptrdiff_t>(most);
  Taken taken{.changes = {std::make_move_iterator(changes_.begin()), std::make_move_iterator(end)}};
  changes_.erase(changes_.begin(), end);
  return taken;
}

std::size_t ChangeQueue::size() const {
  const std::lock_guard lock{mu_};
  return changes_.size();
}

JobFollower::JobFollower(kube::Client client, const kube::Clock& clock, std::string cluster,
                         ChangeQueue& queue, std::function<void(const base::Error&)> on_error)
    : jobs_{std::move(client),
            clock,
            follower_options(),
            {.on_add =
                 [=, &clock, &queue](const auto& job) {
                   queue.add(changes_of(nullptr, *job, cluster, clock.wall()));
                 },
             .on_update =
                 [=, &clock, &queue](const auto& before, const auto& job) {
                   queue.add(changes_of(before.get(), *job, cluster, clock.wall()));
                 },
             .on_delete =
                 [=, &clock, &queue](const auto& last) {
                   std::vector<Change> changes = changes_of(nullptr, *last, cluster, clock.wall());
                   changes.emplace_back(JobGone{
                       .cluster = cluster, .job_uid = last->metadata.uid, .at = clock.wall()});
                   queue.add(std::move(changes));
                 },
             .on_undecodable =
                 [on_error](const kube::Undecodable& bad) {
                   on_error(bad.error.with_context(kube::to_string(bad.key)));
                 },
             .on_error = on_error,
             .on_version =
                 [&queue](const std::string& version) {
                   if (const auto number = kube::version_number(version)) queue.reach(*number);
                 },
             .on_list =
                 [&queue](const std::string& version) {
                   if (const auto number = kube::version_number(version)) queue.list(*number);
                 }},
            keep_what_is_recorded} {}

std::set<std::string> JobFollower::uids() const {
  std::set<std::string> uids;
  for (const auto& job : jobs_.snapshot()) uids.insert(job->metadata.uid);
  return uids;
}

base::Result<std::size_t> Recorder::step() {
  if (!is_reconciled_ && follower_.has_synced()) {
    if (const base::Status status = reconcile(); !status) return status.error();
  }
  fill_batch();
  const std::size_t count = batch_.changes.size();
  if (const base::Status status = write_batch(); !status) return status.error();
  if (is_reconciled_) {
    const std::lock_guard lock{mu_};
    stored_ = written_;
  }
  return count;
}

void Recorder::fill_batch() {
  if (batch_.changes.empty() && !batch_.version) batch_ = queue_.take(kBatchMax);
}

base::Status Recorder::write_batch() {
  if (!batch_.changes.empty()) {
    const base::Status status = writer_.write(batch_.changes);
    if (!status) {
      ++counters_.errors;
      return status;
    }
    counters_.bare_ends = writer_.bare_ends();
    counters_.changes += static_cast<std::int64_t>(batch_.changes.size());
    ++counters_.batches;
  }
  if (batch_.version) written_ = {.version = *batch_.version, .since = batch_.since};
  batch_ = {};
  return {};
}

// 1. what exists
// 2. all that the queue has, which may be about newer objects
// 3. a record that has not ended, of an object that neither has, is lost
base::Status Recorder::reconcile() {
  std::set<std::string> known = follower_.uids();
  for (;;) {
    fill_batch();
    if (batch_.changes.empty()) break;
    for (const Change& change : batch_.changes) known.insert(uid_of(change));
    if (const base::Status status = write_batch(); !status) return status;
  }
  const auto open = writer_.open_jobs(cluster_);
  if (!open) return open.error();
  for (const std::string& uid : *open) {
    if (known.contains(uid)) continue;
    batch_.changes.emplace_back(
        JobGone{.cluster = cluster_, .job_uid = uid, .is_seen = false, .at = clock_.wall()});
  }
  const auto lost = static_cast<std::int64_t>(batch_.changes.size());
  if (const base::Status status = write_batch(); !status) {
    batch_.changes.clear();  // found again by the next try
    return status;
  }
  counters_.lost_jobs += lost;
  is_reconciled_ = true;
  return {};
}

}  // namespace records
