#include "cli/cluster/page_objects.h"

#include <nlohmann/json.hpp>

#include "api/annotations.h"
#include "api/array_status.h"
#include "api/wellknown.h"
#include "base/cut_text.h"
#include "cli/cluster/queue.h"
#include "cli/cluster/read.h"
#include "slurm/array.h"
#include "slurm/hostlist.h"
#include "timetable/timetable.h"
#include "view/queue_lines.h"

namespace cli {
namespace {

using Json = nlohmann::ordered_json;

// The longest text of tasks' numbers: a set with many holes is cut, the counts are not.
constexpr std::size_t kTasksTextMax = 400;

Json page_instant(const std::optional<base::Instant>& at) {
  return at ? Json(base::micros_since_epoch(*at)) : Json(nullptr);
}

Json page_duration(const std::optional<base::Duration>& time) {
  return time ? Json(time->count()) : Json(nullptr);
}

Json page_elapsed(const std::optional<kube::RunTime>& time) {
  if (!time) return nullptr;
  return {{"elapsed", time->elapsed.count()}, {"asOf", page_instant(time->as_of)}};
}

Json page_names(const std::string& hostlist) {
  const auto expanded = slurm::expand_hostlist(hostlist);
  return expanded ? Json(*expanded) : Json::array();
}

// Objects are written by others: bytes that are not UTF-8 are replaced, as no answer is worse.
std::string page_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const kube::NodeTimetable* page_without_turns(const std::string&) {
  return nullptr;
}

// Returns the line of `queue` for a job without timetables; nullopt if it has ended.
std::optional<view::QueueLine> page_line(const std::shared_ptr<const kube::Job>& job) {
  std::vector<view::QueueLine> lines =
      view::queue_lines({job}, page_without_turns, base::Instant{});
  return lines.empty() ? std::nullopt : std::optional{std::move(lines.front())};
}

Json page_stays(const std::vector<PageStay>& stays) {
  Json all = Json::array();
  for (const PageStay& stay : stays) {
    all.push_back({{"on", page_names(stay.hostlist)},
                   {"from", page_instant(stay.from)},
                   {"to", page_instant(stay.to)}});
    if (!stay.ended_for.empty()) all.back()["endedFor"] = stay.ended_for;
    for (const PagePause& pause : stay.pauses) {
      all.back()["pauses"].push_back({{"byUser", pause.by_user},
                                      {"by", pause.by},
                                      {"from", page_instant(pause.from)},
                                      {"to", page_instant(pause.to)}});
    }
  }
  return all;
}

// Returns tasks that have neither ended nor an entry of their own. Cost: the tasks of the array.
std::string page_waiting_tasks(const kube::Job& job) {
  auto all = slurm::parse_array("spec.array.tasks", job.spec.array->tasks, kube::kArrayTasksMax);
  if (!all) return "";
  if (job.status.array) {
    const kube::TaskOutcomes outcomes{*job.status.array};
    for (const kube::ArrayTask& entry : job.status.array->tasks) all->tasks.erase(entry.task);
    for (const auto outcome : {kube::TaskOutcome::kSucceeded, kube::TaskOutcome::kFailed,
                               kube::TaskOutcome::kCancelled}) {
      for (const int task : outcomes.tasks(outcome)) all->tasks.erase(task);
    }
  }
  return base::shortened(slurm::format_tasks(all->tasks), kTasksTextMax);
}

Json page_array(const kube::Job& job) {
  Json counts = nullptr;
  std::string summary;
  std::string failed;
  if (const auto& array = job.status.array) {
    counts = {{"waiting", array->counts.waiting},
              {"running", array->counts.running},
              {"succeeded", array->counts.succeeded},
              {"failed", array->counts.failed},
              {"canceled", array->counts.cancelled}};
    summary = array->summary;
    failed = base::shortened(array->failed, kTasksTextMax);
  }
  const int throttle = job.spec.array->parallelism.value_or(0);
  return {{"tasks", base::shortened(job.spec.array->tasks, kTasksTextMax)},
          {"throttle", throttle > 0 ? Json(throttle) : Json(nullptr)},
          {"summary", summary},
          {"counts", counts},
          {"waiting", page_waiting_tasks(job)},
          {"failed", failed},
          {"why", job.status.reason}};
}

Json page_run(const kube::NodeTimetable& timetable) {
  const kube::NodeTimetableSpec& spec = timetable.spec;
  Json pods = Json::array();
  for (const kube::TimetablePod& pod : spec.pods) {
    pods.push_back({{"job", pod.job_uid}, {"ns", pod.ns}, {"ran", pod.ran.count()}});
    if (pod.task) pods.back()["task"] = *pod.task;
  }
  Json plan = Json::array();
  for (const timetable::PlanEntry& entry : spec.timetable.plan) {
    plan.push_back({{"until", page_instant(entry.until)}, {"run", entry.run}});
  }
  return {{"asOf", page_instant(spec.as_of)},
          {"slice", spec.timetable.slice.count()},
          {"pods", pods},
          {"plan", plan},
          {"cycle", spec.timetable.cycle}};
}

Json page_members(const kube::PartitionSpec& spec,
                  const std::vector<std::shared_ptr<const kube::Node>>& nodes) {
  if (!spec.nodes.selector) return page_names(spec.nodes.hostlist.value_or(""));
  Json members = Json::array();
  for (const auto& node : nodes) {
    if (kube::matches(*spec.nodes.selector, node->metadata.labels)) {
      members.push_back(node->metadata.name);
    }
  }
  return members;
}

// Returns who may use it: lists of namespaces and QOS, null if it has none.
Json page_access(const std::optional<kube::AccessList>& list) {
  if (!list) return nullptr;
  const auto names = [](const auto& all) { return all ? Json(*all) : Json(nullptr); };
  return {{"namespaces", names(list->namespaces)}, {"qos", names(list->qos)}};
}

// Whether jobs share its cores by taking turns, and how many.
Json page_share(const kube::PartitionSpec& spec) {
  const kube::OverSubscribe share = spec.over_subscribe.value_or(kube::OverSubscribe{});
  return {{"policy", kube::to_string(share.policy.value_or(kube::OverSubscribePolicy::kNever))},
          {"max", share.max_share ? Json(*share.max_share) : Json(nullptr)}};
}

// Returns the user who submitted it; "" if it does not say.
std::string page_user(const kube::Job& job) {
  const auto found = job.metadata.annotations.find(std::string{kube::kAnnotationUser});
  return found == job.metadata.annotations.end() ? "" : found->second;
}

// Returns what jobs and tasks of arrays both have.
Json page_state(const kube::Job& job, const std::optional<view::QueueLine>& line,
                const std::vector<PageStay>& stays) {
  const kube::JobStatus& status = job.status;
  return {{"id", status.job_id ? Json(*status.job_id) : Json(nullptr)},
          {"partition", line ? line->partition : status.partition},
          {"state", line ? line->moment.code
                         : view::state_code(status.state.value_or(kube::JobState::kPending))},
          {"reason", line ? line->reason : status.reason},
          {"message", status.message},
          {"nodes", view::node_count(job)},
          {"hostlist", status.allocation ? status.allocation->hostlist : ""},
          {"held", status.held.has_value() || job.spec.control.hold.value_or(false)},
          {"submit", page_instant(status.submit_time ? *status.submit_time
                                                     : job.metadata.creation_timestamp)},
          {"start", page_instant(status.start_time)},
          {"end", page_instant(status.end_time)},
          {"limit",
           page_duration(status.time_limit ? status.time_limit : job.spec.schedule.time_limit)},
          {"ran", page_elapsed(status.run_time)},
          {"suspended", page_elapsed(status.suspend_time)},
          {"exit", status.exit_code ? Json(*status.exit_code) : Json(nullptr)},
          {"stays", page_stays(stays)}};
}

}  // namespace

std::string page_scope(const std::string& resource, const std::string& ns) {
  return ns.empty() ? resource : resource + "/" + ns;
}

std::string page_job(const std::shared_ptr<const kube::Job>& job,
                     const std::vector<PageStay>& stays) {
  const kube::JobStatus& status = job->status;
  const std::optional<view::QueueLine> line = page_line(job);
  const kube::Condition* const accepted = kube::find_condition(status.conditions, kube::kAccepted);
  Json json = page_state(*job, line, stays);
  json.update(
      {{"ns", job->metadata.ns},
       {"user", page_user(*job)},
       {"name", job->metadata.name},
       {"batchJob", view::batch_job_of(*job)},
       {"priority", status.priority.value_or(0)},
       {"refused", accepted != nullptr && accepted->status == kube::ConditionStatus::kFalse},
       {"expected", line ? page_instant(line->expected_start) : Json(nullptr)},
       {"plannedNodes", line ? line->planned_nodes : ""},
       {"planned", line ? page_names(line->planned_nodes) : Json::array()}});
  if (job->spec.array) json["array"] = page_array(*job);
  return page_text(json);
}

std::string page_task(const std::shared_ptr<const kube::Job>& task, int number,
                      const std::vector<PageStay>& stays) {
  Json json = page_state(*task, page_line(task), stays);
  json["of"] = task->metadata.uid;
  json["task"] = number;
  return page_text(json);
}

std::string page_timetable(const kube::NodeTimetable& timetable) {
  if (!timetable::validate(timetable.spec.timetable)) return "";
  Json json = page_run(timetable);
  const kube::Condition* const ready =
      kube::find_condition(timetable.status.conditions, kube::kReady);
  const bool is_ready = ready != nullptr && ready->status == kube::ConditionStatus::kTrue;
  json["agent"] = is_ready ? "" : ready == nullptr ? "its agent has not reported" : ready->reason;
  json["stuck"] = timetable.status.stuck.size();
  return page_text(json);
}

std::string page_past(const kube::NodeTimetable& timetable, base::Instant from, base::Instant to) {
  if (!timetable::validate(timetable.spec.timetable)) return "";
  Json json = page_run(timetable);
  json["node"] = timetable.metadata.name;
  json["from"] = page_instant(from);
  json["to"] = page_instant(to);
  return page_text(json);
}

std::string page_partition(const kube::Partition& partition,
                           const std::vector<std::shared_ptr<const kube::Node>>& nodes) {
  const kube::PartitionSpec& spec =
      partition.status.accepted ? *partition.status.accepted : partition.spec;
  Json unusable = Json::array();
  for (const kube::UnusableNodes& group : partition.status.unusable) {
    unusable.push_back({{"reason", group.reason},
                        {"message", group.message},
                        {"count", group.nodes},
                        {"on", page_names(group.hostlist)}});
  }
  Json counts = nullptr;
  if (const auto& jobs = partition.status.jobs) {
    counts = {
        {"pending", jobs->pending}, {"running", jobs->running}, {"suspended", jobs->suspended}};
  }
  return page_text({{"on", page_members(spec, nodes)},
                    {"bySelector", spec.nodes.selector.has_value()},
                    {"default", spec.is_default.value_or(false)},
                    {"state", kube::to_string(spec.state.value_or(kube::PartitionState::kUp))},
                    {"tier", spec.priority_tier.value_or(1)},
                    {"maxTime", page_duration(spec.limits ? spec.limits->max_time : std::nullopt)},
                    {"allow", page_access(spec.allow)},
                    {"deny", page_access(spec.deny)},
                    {"share", page_share(spec)},
                    {"nodes", partition.status.nodes.value_or(0)},
                    {"jobs", counts},
                    {"unusable", unusable}});
}

}  // namespace cli
