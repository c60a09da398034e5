#include "scheduler/simulate/totals.h"

#include <algorithm>

namespace simulate {
namespace {

// Percentiles are values of the list, by the nearest rank: the least value that this many percent
// do not exceed. With ten values the 95th is the tenth.
template <typename Spread, typename Value>
Spread spread(std::vector<Value> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  Value sum{0};
  for (const Value value : values) sum += value;
  const auto at_percent = [&](std::size_t percent) {
    return values[(values.size() * percent + 99) / 100 - 1];
  };
  return {.mean = sum / static_cast<std::int64_t>(values.size()),
          .median = at_percent(50),
          .p95 = at_percent(95),
          .max = values.back()};
}

// Run time × CPUs held. In milliseconds in between, so that a year of a large cluster stays within
// 64 bits.
std::int64_t cpu_seconds_used(const JobHistory& job, base::Instant end) {
  std::int64_t millis = 0;
  for (const Placement& placement : job.placements) {
    std::int64_t cpus = 0;
    for (const Placement::Part& part : placement.parts) cpus += part.cpus;
    millis += cpus * (run_time(placement, placement.from, end).count() / 1'000);
  }
  return millis / 1'000;
}

}  // namespace

// Response time ÷ run time, in thousandths, at least 1. Run times below 10 s count as 10 s, or
// short jobs that waited a minute would decide every mean ("bounded slowdown"). For example, a job
// that ran for 60 s of the 90 s from its submission to its end has 1,500.
std::int64_t Service::slowdown_milli() const {
  constexpr base::Duration kShortest = std::chrono::seconds{10};
  return std::max<std::int64_t>(1'000,
                                response.count() / (std::max(run, kShortest).count() / 1'000));
}

// Counts the last run alone: work before a requeue was lost.
std::optional<Service> service_of(const JobHistory& job) {
  if (!job.submitted || !job.ended || job.placements.empty()) return std::nullopt;
  const Placement& last = job.placements.back();
  return Service{.response = *job.ended - *job.submitted,
                 .run = run_time(last, last.from, *job.ended)};
}

// The wait is all the time in which a job did not run, in the queue or suspended, up to its end or
// that of the simulation. Time before a requeue was lost and counts as waiting.
Totals count_totals(const Scenario& scenario, const std::vector<JobHistory>& jobs,
                    base::Instant end) {
  Totals totals;
  totals.span = end - base::Instant{};
  std::int64_t cpus = 0;
  for (const sched::NodeSpec& node : scenario.nodes) cpus += node.cpus;
  totals.cpu_seconds = cpus * std::chrono::floor<std::chrono::seconds>(totals.span).count();
  std::vector<base::Duration> waits;
  std::vector<base::Duration> responses;
  std::vector<std::int64_t> slowdowns;
  // Jobs that have not ended count with what they used and with their wait, those that never
  // started too.
  for (const JobHistory& job : jobs) {
    totals.used_cpu_seconds += cpu_seconds_used(job, end);
    totals.requeues += job.restarts;
    if (job.was_preempted) ++totals.preempted_jobs;
    if (job.submitted) {
      const base::Instant until = job.ended.value_or(end);
      const base::Duration run = job.placements.empty()
                                     ? base::Duration{0}
                                     : run_time(job.placements.back(), *job.submitted, until);
      waits.push_back(until - *job.submitted - run);
    }
    if (job.submitted && job.ended) {
      ++totals.finished;
      responses.push_back(*job.ended - *job.submitted);
    }
    if (const std::optional<Service> service = service_of(job)) {
      slowdowns.push_back(service->slowdown_milli());
    }
  }
  totals.wait = spread<Totals::Spread>(std::move(waits));
  totals.response = spread<Totals::Spread>(std::move(responses));
  totals.slowdown_milli = spread<Totals::Slowdown>(std::move(slowdowns));
  return totals;
}

}  // namespace simulate
