#include "cli/cluster/page_feed.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "api/annotations.h"
#include "cli/cluster/read.h"

namespace cli {
namespace {

// Bounds on what the page keeps of the past.
constexpr std::size_t kGoneMax = 1000;    // jobs
constexpr std::size_t kPastMax = 10'000;  // timetables, of all nodes together
// Many changes of nodes come together.
constexpr base::Duration kPublishWithin = std::chrono::milliseconds{200};

// Drops the fields that the page does not draw.
void drop_what_is_not_drawn(kube::Job& job) {
  job.spec.pod_template = {};
  job.spec.batch.reset();
  job.spec.adopted.clear();
  std::erase_if(job.metadata.annotations,
                [](const auto& entry) { return entry.first != kube::kAnnotationUser; });
}

void keep_labels(kube::Node& node) {
  node.status = {};
  node.spec = {};
  node.metadata.annotations.clear();
}

}  // namespace

PageFeed::PageFeed(const Session& session, const std::string& ns, dashboard::Board& board)
    : clock_{session.clock},
      ns_{ns},
      home_{session.ns},
      began_{session.clock.wall()},
      board_{board},
      tasks_{board},
      whole_{began_},
      jobs_{session.client,
            session.clock,
            watch_options(ns),
            {.on_add = [this](const auto& job) { on_job(job); },
             .on_update = [this](const auto&, const auto& job) { on_job(job); },
             .on_delete = [this](const auto& job) { on_job_gone(job); },
             .on_error = [this](const base::Error& error) { note("jobs", error); }},
            drop_what_is_not_drawn},
      timetables_{session.client,
                  session.clock,
                  watch_options(""),
                  {.on_add = [this](const auto& now) { on_timetable(*now); },
                   .on_update =
                       [this](const auto& before, const auto& now) {
                         if (before->spec != now->spec) {
                           on_timetable_gone(*before, in_force_[before->metadata.name]);
                         }
                         on_timetable(*now);
                       },
                   .on_delete =
                       [this](const auto& last) {
                         on_timetable_gone(*last, in_force_[last->metadata.name]);
                         board_.remove("nodes", last->metadata.name);
                       },
                   .on_error = [this](const base::Error& error) { note("timetables", error); }}},
      partitions_{session.client,
                  session.clock,
                  watch_options(""),
                  {.on_add = [this](const auto&) { publishes_.wake_within(kPublishWithin); },
                   .on_update = [this](const auto&,
                                       const auto&) { publishes_.wake_within(kPublishWithin); },
                   .on_delete = [this](const auto&) { publishes_.wake_within(kPublishWithin); },
                   .on_error = [this](const base::Error& error) { note("partitions", error); }}},
      nodes_{session.client,
             session.clock,
             watch_options(""),
             {.on_add = [this](const auto&) { publishes_.wake_within(kPublishWithin); },
              .on_update =
                  [this](const auto& before, const auto& now) {
                    if (before->metadata.labels == now->metadata.labels) return;
                    publishes_.wake_within(kPublishWithin);
                  },
              .on_delete = [this](const auto&) { publishes_.wake_within(kPublishWithin); },
              .on_error = [this](const base::Error& error) { note("nodes", error); }},
             keep_labels} {
  (void)publish();
  loops_.start("jobs", [this](std::stop_token stop) { return jobs_.step(std::move(stop)); });
  loops_.start("timetables",
               [this](std::stop_token stop) { return timetables_.step(std::move(stop)); });
  loops_.start("partitions",
               [this](std::stop_token stop) { return partitions_.step(std::move(stop)); });
  loops_.start("nodes", [this](std::stop_token stop) { return nodes_.step(std::move(stop)); });
  loops_.start(
      "publish", [this](std::stop_token) { return publish(); }, &publishes_);
}

PageFeed::~PageFeed() {
  loops_.request_stop();
  loops_.join();
}

bool PageFeed::has_synced() const {
  const std::lock_guard lock{mu_};
  const auto is_there = [&](const char* kind, bool has_synced) {
    return has_synced || refused_.contains(kind);
  };
  return is_there("jobs", jobs_.has_synced()) && is_there("timetables", timetables_.has_synced()) &&
         is_there("partitions", partitions_.has_synced()) && is_there("nodes", nodes_.has_synced());
}

// Until the first lists are there, what is missing is not shown as empty; so this comes last, and
// is looked at again soon.
base::Duration PageFeed::publish() {
  const bool synced = has_synced();
  publish_partitions();
  base::Instant whole;
  {
    const std::lock_guard lock{mu_};
    whole = whole_;
  }
  const nlohmann::ordered_json json = {{"began", base::micros_since_epoch(began_)},
                                       {"whole", base::micros_since_epoch(whole)},
                                       {"ns", ns_},
                                       {"home", home_},
                                       {"synced", synced}};
  board_.set("about", "server", json.dump());
  return synced ? base::Duration{std::chrono::hours{24}} : std::chrono::milliseconds{100};
}

// All of them, since a node's labels may lead it into any. Cost: partitions with selectors × nodes.
void PageFeed::publish_partitions() {
  const auto nodes = nodes_.snapshot();
  std::set<std::string> found;
  for (const auto& partition : partitions_.snapshot()) {
    found.insert(partition->metadata.name);
    board_.set("partitions", partition->metadata.name, page_partition(*partition, nodes),
               page_scope("partitions"));
  }
  for (const std::string& name : shown_) {
    if (!found.contains(name)) board_.remove("partitions", name);
  }
  shown_ = std::move(found);
}

// A Job that only asks is not shown.
void PageFeed::on_job(const JobPointer& job) {
  if (job->spec.test_only.value_or(false)) return;
  std::vector<PageStay>& stays = stays_[job->metadata.uid];
  const base::Instant now = clock_.wall();
  follow_stays(stays, job->status, now, [&] { return stoppers(job->status); });
  board_.set("jobs", job->metadata.uid, page_job(job, stays), page_scope("jobs", job->metadata.ns));
  if (!job->spec.array) return;
  tasks_.on_array(*job, now, [this](const kube::JobStatus& task) { return stoppers(task); });
  forget(tasks_.forgotten());
}

std::vector<std::string> PageFeed::stoppers(const kube::JobStatus& stopped) const {
  std::map<std::string, std::int32_t> tiers;
  for (const auto& each : partitions_.snapshot()) {
    const kube::PartitionSpec& spec = each->status.accepted ? *each->status.accepted : each->spec;
    tiers[each->metadata.name] = spec.priority_tier.value_or(1);
  }
  return page_stoppers(stopped, jobs_.snapshot(), tiers);
}

// Jobs that ended until then may be missing: records may have them.
void PageFeed::forget(base::Instant end) {
  const std::lock_guard lock{mu_};
  if (end <= whole_) return;
  whole_ = end;
  publishes_.wake_within(kPublishWithin);
}

// The page goes on drawing a job that has run and whose object is gone; one that never ran goes
// away.
void PageFeed::on_job_gone(const JobPointer& job) {
  const std::string& uid = job->metadata.uid;
  std::vector<PageStay> stays = std::move(stays_[uid]);
  stays_.erase(uid);
  const bool has_run = tasks_.on_array_gone(*job, clock_.wall()) || !stays.empty();
  forget(tasks_.forgotten());
  if (!has_run) {
    board_.remove("jobs", uid);
    return;
  }
  if (!stays.empty() && !stays.back().to) stays.back().to = clock_.wall();
  nlohmann::ordered_json last = nlohmann::ordered_json::parse(page_job(job, stays));
  last["gone"] = true;
  board_.set("jobs", uid, last.dump(), page_scope("jobs", job->metadata.ns));
  gone_.push_back({.uid = uid, .end = stays.empty() ? clock_.wall() : *stays.back().to});
  if (gone_.size() > kGoneMax) {
    board_.remove("jobs", gone_.front().uid);
    forget(gone_.front().end);
    gone_.pop_front();
  }
}

void PageFeed::on_timetable(const kube::NodeTimetable& timetable) {
  in_force_.try_emplace(timetable.metadata.name, clock_.wall());
  board_.set("nodes", timetable.metadata.name, page_timetable(timetable),
             page_scope("nodetimetables"));
}

void PageFeed::on_timetable_gone(const kube::NodeTimetable& timetable, base::Instant since) {
  in_force_.erase(timetable.metadata.name);
  std::string json = page_past(timetable, since, clock_.wall());
  if (json.empty() || timetable.spec.pods.empty()) return;
  past_.push_back(std::to_string(++past_count_));
  board_.set("past", past_.back(), std::move(json), page_scope("nodetimetables"));
  if (past_.size() > kPastMax) {
    board_.remove("past", past_.front());
    past_.pop_front();
  }
}

// Called on the thread of a watch. A missing right is not an outage: the page shows what it can,
// and the watch goes on asking.
void PageFeed::note(const std::string& kind, const base::Error& error) {
  const bool is_refused = error.code == base::Code::kPermissionDenied;
  if (is_refused) {
    const std::lock_guard lock{mu_};
    refused_[kind] = true;
  }
  // Few users may read nodes; without them, partitions with a selector show no members.
  if (is_refused && kind == "nodes") return;
  const nlohmann::json json = {{"text", error.message},
                               {"at", base::micros_since_epoch(clock_.wall())},
                               {"refused", is_refused}};
  board_.set("notes", kind, json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace cli
