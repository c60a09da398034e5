#include "operator/jobs/forecasts.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "api/wellknown.h"
#include "operator/jobs/predecessors.h"
#include "slurm/hostlist.h"
#include "translation/job_translation.h"
#include "translation/reason_names.h"
#include "translation/sentences.h"

namespace control {
namespace {

// A copy takes some milliseconds of the loop.
constexpr base::Duration kRest = std::chrono::milliseconds{50};
constexpr std::size_t kNamesMax = 100;  // the CRD's

// Returns "Resources: it waits for 2 nodes", or one of the two.
std::string reason_text(const sched::Forecast& forecast) {
  const std::string name{reason_name(forecast.reason)};
  if (forecast.message.empty()) return name.empty() ? "it waits" : name;
  return name.empty() ? forecast.message : name + ": " + forecast.message;
}

std::string message_of(const sched::Forecast& forecast) {
  switch (forecast.outcome) {
    case sched::Forecast::Outcome::kStarts:
      return {};
    case sched::Forecast::Outcome::kNever:
      return reason_text(forecast);
    case sched::Forecast::Outcome::kNotWithin:
      return "it does not start within 7 days, if nothing else happens: " + reason_text(forecast);
    case sched::Forecast::Outcome::kGaveUp:
      return "it starts so late, or beside so many jobs, that its start was not found within 20 s";
  }
  return {};
}

}  // namespace

// The first question is answered, even if the spec has changed since.
void Forecasts::heed(JobRecord& job) {
  if (!job.object->spec.test_only.value_or(false)) {
    (void)parts_.jobs.set_condition(job, WriteUrgency::kUrgent, kube::kAccepted,
                                    kube::ConditionStatus::kFalse, "ChangeRefused",
                                    "spec.testOnly: cannot change; create another job");
  }
  if (job.wanted().forecast) return time_to_live_.observe(*job.object, job.wanted());
  if (waiting_.insert(job.uid).second) line_.push_back(job.uid);
}

void Forecasts::forget_job(const std::string& uid) {
  waiting_.erase(uid);
}

std::optional<MakeForecast> Forecasts::due() {
  // By a clock that cannot be trusted each instant would be wrong: the question waits.
  if (is_under_way_ || !parts_.ends_by_time || rests_until_ > parts_.now) return std::nullopt;
  while (!line_.empty()) {
    const std::string uid = std::move(line_.front());
    line_.pop_front();
    JobRecord* const job = waiting_.erase(uid) > 0 ? parts_.jobs.peek(uid) : nullptr;
    if (job == nullptr || job->deleted || job->wanted().forecast) continue;
    auto effect = question(*job);
    if (!effect) continue;
    is_under_way_ = true;
    return effect;
  }
  return std::nullopt;
}

// It would get the next number.
std::optional<MakeForecast> Forecasts::question(JobRecord& job) {
  const sched::JobId id{std::max<std::int64_t>(numbers_.first_unused(), 1)};
  JobVerdict verdict = translate_job(*job.object, *job.pod_template, id, parts_.now,
                                     context_of(job, parts_.policy, parts_.nodes));
  Predecessors predecessors;
  if (verdict.request) predecessors = find_predecessors(parts_.jobs, job);
  const auto& problems = verdict.request ? predecessors.problems : verdict.problems;
  if (!problems.empty()) {
    answer(job, {.as_of = parts_.now, .message = joined(problems)});
    return std::nullopt;
  }
  verdict.request->dependency = std::move(predecessors.dependency);
  auto question = std::make_shared<sched::ForecastQuestion>();
  question->state = scheduler_.copy();
  question->request = std::move(*verdict.request);
  question->known = std::move(predecessors.known);
  return MakeForecast{.uid = job.uid, .question = std::move(question)};
}

// Jobs of other namespaces are counted, and not named: not every user may see them.
void Forecasts::answered(ForecastMade&& outcome) {
  is_under_way_ = false;
  rests_until_ = parts_.now + kRest;
  JobRecord* const job = parts_.jobs.peek(outcome.uid);
  if (job == nullptr || job->deleted || job->wanted().forecast) return;
  const sched::Forecast& forecast = outcome.forecast;
  kube::JobForecast said{.as_of = outcome.as_of, .message = message_of(forecast)};
  if (forecast.outcome == sched::Forecast::Outcome::kStarts) {
    said.job_id = outcome.job.number();
    said.start_time = forecast.start;
    said.partition = forecast.partition;
    said.hostlist = slurm::compress_hostlist(forecast.nodes);
    said.nodes = static_cast<std::int32_t>(forecast.nodes.size());
    said.cpus = forecast.cpus;
  }
  for (const sched::Forecast::Stopped& stopped : forecast.stopped) {
    if (!said.stops) said.stops.emplace();
    kube::ForecastStops& stops = *said.stops;
    ++(stopped.how == sched::Forecast::Stop::kSuspended  ? stops.suspended
       : stopped.how == sched::Forecast::Stop::kRequeued ? stops.requeued
                                                         : stops.cancelled);
    const JobRecord* const victim = parts_.jobs.peek(stopped.job);
    if (victim == nullptr || victim->key.ns != job->key.ns) continue;
    std::string name = victim->key.name;
    if (victim->task) name += "_" + std::to_string(*victim->task);
    if (stops.jobs.size() < kNamesMax) stops.jobs.push_back(std::move(name));
  }
  answer(*job, std::move(said));
}

void Forecasts::answer(JobRecord& job, kube::JobForecast forecast) {
  parts_.jobs.change(job, WriteUrgency::kUrgent, [&](kube::JobStatus& wanted) {
    wanted.observed_generation = job.object->metadata.generation;
    wanted.forecast = std::move(forecast);
  });
  parts_.jobs.touch(job.uid);
}

base::Instant Forecasts::next_due() const {
  if (is_under_way_ || waiting_.empty() || !parts_.ends_by_time) return base::kNever;
  return std::max(rests_until_, parts_.now);
}

}  // namespace control
