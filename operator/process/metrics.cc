#include "operator/process/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <vector>

#include "kube/health_server.h"

namespace control {
namespace {

// A counter of the loop, and its name in Prometheus; the table below is all that a new one needs.
struct CounterField {
  const char* name;
  const char* help;
  std::int64_t LoopCounters::*field;
};
constexpr CounterField kCounters[] = {
    {"kubegang_operator_events_total", "Events sent to the scheduler.", &LoopCounters::events},
    {"kubegang_operator_decisions_total", "Decisions of the scheduler.", &LoopCounters::decisions},
    {"kubegang_operator_starts_total", "Allocations given to jobs.", &LoopCounters::starts},
    {"kubegang_operator_backfilled_starts_total",
     "Allocations that the backfill gave to jobs, ahead of others.",
     &LoopCounters::backfilled_starts},
    {"kubegang_operator_status_writes_total", "Writes of statuses.", &LoopCounters::status_writes},
    {"kubegang_operator_timetable_writes_total", "Writes of NodeTimetable specs.",
     &LoopCounters::timetable_writes},
    {"kubegang_operator_pod_creates_total", "Pods asked for.", &LoopCounters::pod_creates},
    {"kubegang_operator_pod_deletes_total", "Pods asked to end.", &LoopCounters::pod_deletes},
    {"kubegang_operator_conflicts_total", "Writes that met a newer version.",
     &LoopCounters::conflicts},
    {"kubegang_operator_write_failures_total", "Writes that failed otherwise.",
     &LoopCounters::write_failures},
    {"kubegang_operator_unrecorded_deletes_total",
     "Jobs deleted for their age that were not recorded within a day.",
     &LoopCounters::unrecorded_deletes},
    {"kubegang_operator_unseen_jobs_total",
     "Jobs that were made and deleted while kubegang-records did not watch.",
     &LoopCounters::unseen_jobs},
};

// The jobs by state are one metric with a label, as Prometheus recommends for parts of a sum.
struct GaugeField {
  const char* state;
  std::int64_t LoopCounters::*field;
};
constexpr GaugeField kJobGauges[] = {{"pending", &LoopCounters::jobs_pending},
                                     {"running", &LoopCounters::jobs_running},
                                     {"suspended", &LoopCounters::jobs_suspended}};

template <const auto& kBoundaries>
prometheus::Histogram::BucketBoundaries boundaries_of() {
  return {kBoundaries.begin(), kBoundaries.end()};
}

// The loop counts by bucket, because it has no metrics library; the histogram takes one number for
// each bucket and the sum.
template <const auto& kBoundaries>
void raise(prometheus::Histogram& histogram, const Observed<kBoundaries>& before,
           const Observed<kBoundaries>& now) {
  std::vector<double> more;
  for (std::size_t i = 0; i < now.counts.size(); ++i) {
    more.push_back(static_cast<double>(now.counts[i] - before.counts[i]));
  }
  histogram.ObserveMultiple(more, now.sum - before.sum);
}

using Histograms = prometheus::Family<prometheus::Histogram>;
using Counters = prometheus::Family<prometheus::Counter>;

void raise_series(Histograms& family, const std::map<JobTotals::Series, WaitTimes>& before,
                  const std::map<JobTotals::Series, WaitTimes>& now) {
  for (const auto& [series, times] : now) {
    auto& histogram = family.Add({{"partition", series.partition}, {"qos", series.qos}},
                                 boundaries_of<kWaitBounds>());
    const auto last = before.find(series);
    raise(histogram, last == before.end() ? WaitTimes{} : last->second, times);
  }
}

template <typename Number>
void raise_each(Counters& family, const std::string& label,
                const std::map<std::string, Number>& before,
                const std::map<std::string, Number>& now) {
  for (const auto& [value, count] : now) {
    const auto last = before.find(value);
    family.Add({{label, value}})
        .Increment(static_cast<double>(count - (last == before.end() ? Number{} : last->second)));
  }
}

}  // namespace

// The registry owns the metrics; the pointers are for the updates. `last` are the counters of the
// update before.
struct Metrics::Families {
  prometheus::Registry registry;
  std::vector<prometheus::Counter*> counters;
  prometheus::Counter* deciding = nullptr;
  std::vector<prometheus::Gauge*> jobs;
  // Not a state of the gauge above: objects of ended jobs wait for their time to live and would
  // drown the sum of the others.
  prometheus::Gauge* finished = nullptr;
  prometheus::Gauge* unrecorded = nullptr;
  prometheus::Family<prometheus::Gauge>* licenses = nullptr;         // a gauge for each name
  prometheus::Family<prometheus::Gauge>* licenses_in_use = nullptr;  // likewise
  prometheus::Gauge* term = nullptr;
  prometheus::Gauge* timetable_lag = nullptr;
  std::vector<prometheus::Gauge*> oldest_status;  // in the order of WriteWaitsFor
  prometheus::Gauge* clock_trusted = nullptr;
  prometheus::Histogram* step_seconds = nullptr;
  prometheus::Histogram* start_errors = nullptr;
  Histograms* waits = nullptr;
  Histograms* runs = nullptr;
  Counters* ends = nullptr;
  Counters* preemptions = nullptr;
  Counters* requeues = nullptr;
  Counters* account_cpu = nullptr;
  prometheus::Counter* preempted_cpu = nullptr;
  LoopCounters last;
  JobTotals last_totals;

  void add_ended();
  void add_oldest_status();
  void add_totals();
};

// Everything is registered at the beginning, so a metric is there with 0 before anything has
// happened.
Metrics::Metrics() : families_{std::make_unique<Families>()} {
  prometheus::Registry& registry = families_->registry;
  for (const CounterField& field : kCounters) {
    families_->counters.push_back(
        &prometheus::BuildCounter().Name(field.name).Help(field.help).Register(registry).Add({}));
  }
  families_->deciding = &prometheus::BuildCounter()
                             .Name("kubegang_operator_deciding_seconds_total")
                             .Help("Time that the scheduler took for its decisions.")
                             .Register(registry)
                             .Add({});
  auto& jobs = prometheus::BuildGauge()
                   .Name("kubegang_operator_jobs")
                   .Help("Jobs by state, as last counted.")
                   .Register(registry);
  for (const GaugeField& field : kJobGauges) {
    families_->jobs.push_back(&jobs.Add({{"state", field.state}}));
  }
  families_->add_ended();
  families_->licenses = &prometheus::BuildGauge()
                             .Name("kubegang_operator_licenses")
                             .Help("Licenses that there are, by name.")
                             .Register(registry);
  families_->licenses_in_use = &prometheus::BuildGauge()
                                    .Name("kubegang_operator_licenses_in_use")
                                    .Help("Licenses that jobs hold, by name.")
                                    .Register(registry);
  families_->term = &prometheus::BuildGauge()
                         .Name("kubegang_operator_term")
                         .Help("Term of this leader; 0 while it does not lead.")
                         .Register(registry)
                         .Add({});
  families_->timetable_lag =
      &prometheus::BuildGauge()
           .Name("kubegang_operator_timetable_lag_seconds")
           .Help(
               "For how long the slowest node that is up has not obeyed what was published for it.")
           .Register(registry)
           .Add({});
  families_->add_oldest_status();
  families_->clock_trusted =
      &prometheus::BuildGauge()
           .Name("kubegang_operator_clock_trusted")
           .Help("0: the clock of this machine is off, and no job ends because its time is over.")
           .Register(registry)
           .Add({});
  families_->clock_trusted->Set(1);
  families_->step_seconds =
      &prometheus::BuildHistogram()
           .Name("kubegang_operator_step_seconds")
           .Help("Time that one round of the loop took.")
           .Register(registry)
           // From 0.1 ms to 1 s: a step of a second delays a start by as much as its user can
           // notice.
           .Add({}, prometheus::Histogram::BucketBoundaries{1e-4, 1e-3, 1e-2, 1e-1, 1});
  families_->start_errors =
      &prometheus::BuildHistogram()
           .Name("kubegang_operator_start_error_seconds")
           .Help("How much later than last expected jobs were started; negative: sooner.")
           .Register(registry)
           .Add({}, boundaries_of<kStartErrorBounds>());
  families_->add_totals();
}

void Metrics::Families::add_oldest_status() {
  auto& oldest = prometheus::BuildGauge()
                     .Name("kubegang_operator_oldest_status_seconds")
                     .Help(
                         "For how long the status of a job that has to be written at once has "
                         "waited, the oldest, by what it waits for.")
                     .Register(registry);
  for (const char* name : kWriteWaitsForNames) {
    oldest_status.push_back(&oldest.Add({{"waits_for", name}}));
  }
}

void Metrics::Families::add_ended() {
  finished = &prometheus::BuildGauge()
                  .Name("kubegang_operator_finished_jobs")
                  .Help("Jobs that have ended and whose objects are still there.")
                  .Register(registry)
                  .Add({});
  unrecorded = &prometheus::BuildGauge()
                    .Name("kubegang_operator_unrecorded_jobs")
                    .Help("Jobs whose deletion waits until they are recorded.")
                    .Register(registry)
                    .Add({});
}

// Metrics with labels that come with jobs have no series before the first job.
void Metrics::Families::add_totals() {
  const auto histograms = [this](const char* name, const char* help) {
    return &prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
  };
  const auto counts = [this](const char* name, const char* help) {
    return &prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  };
  waits = histograms("kubegang_operator_job_wait_seconds",
                     "How long jobs waited, from when they might start, for their first start.");
  runs = histograms("kubegang_operator_job_run_seconds",
                    "How long each run of a job took that has ended, without suspensions.");
  ends = counts("kubegang_operator_job_ends_total", "Jobs and tasks that have ended, by state.");
  preemptions = counts("kubegang_operator_preemptions_total",
                       "Jobs that were preempted, by what became of them.");
  requeues = counts("kubegang_operator_requeues_total", "Jobs that began to wait again, by cause.");
  account_cpu = counts("kubegang_operator_account_cpu_seconds_total",
                       "CPU time of the runs that have ended, by the account that was asked for.");
  preempted_cpu = &counts("kubegang_operator_preempted_cpu_seconds_total",
                          "CPU time of the runs that preemption has ended, which is lost.")
                       ->Add({});
}

Metrics::~Metrics() = default;

// Counters of the loop are totals; those of Prometheus can only be raised, hence the differences to
// the last update.
// Called on the thread of the loop, which owns the counters, so no lock is needed.
void Metrics::update(const LoopCounters& counters, const JobTotals& totals, std::int64_t term,
                     base::Duration took) {
  for (std::size_t i = 0; i < families_->counters.size(); ++i) {
    const auto field = kCounters[i].field;
    families_->counters[i]->Increment(
        static_cast<double>(counters.*field - families_->last.*field));
  }
  families_->deciding->Increment(
      std::chrono::duration<double>(counters.deciding - families_->last.deciding).count());
  for (std::size_t i = 0; i < families_->jobs.size(); ++i) {
    families_->jobs[i]->Set(static_cast<double>(counters.*kJobGauges[i].field));
  }
  families_->finished->Set(static_cast<double>(counters.jobs_finished));
  families_->unrecorded->Set(static_cast<double>(counters.jobs_unrecorded));
  show_licenses(counters.licenses);
  families_->term->Set(static_cast<double>(term));
  families_->timetable_lag->Set(std::chrono::duration<double>(counters.timetable_lag).count());
  for (std::size_t i = 0; i < families_->oldest_status.size(); ++i) {
    const bool is_this = i == static_cast<std::size_t>(counters.oldest_status.waits_for);
    families_->oldest_status[i]->Set(
        is_this ? std::chrono::duration<double>(counters.oldest_status.time).count() : 0);
  }
  families_->clock_trusted->Set(counters.clock_trusted ? 1 : 0);
  families_->step_seconds->Observe(std::chrono::duration<double>(took).count());
  raise(*families_->start_errors, families_->last.start_errors, counters.start_errors);
  show_totals(totals);
  families_->last = counters;
}

void Metrics::show_totals(const JobTotals& totals) {
  JobTotals& last = families_->last_totals;
  if (totals.version() == last.version()) return;
  raise_series(*families_->waits, last.waits(), totals.waits());
  raise_series(*families_->runs, last.runs(), totals.runs());
  raise_each(*families_->ends, "state", last.ends(), totals.ends());
  raise_each(*families_->preemptions, "mode", last.preemptions(), totals.preemptions());
  raise_each(*families_->requeues, "cause", last.requeues(), totals.requeues());
  raise_each(*families_->account_cpu, "account", last.account_cpu_seconds(),
             totals.account_cpu_seconds());
  families_->preempted_cpu->Increment(totals.preempted_cpu_seconds() -
                                      last.preempted_cpu_seconds());
  last = totals;
}

// A license that is configured no more has no metric any longer.
void Metrics::show_licenses(const std::map<std::string, LicenseUse>& licenses) {
  for (const auto& [name, use] : families_->last.licenses) {
    if (licenses.contains(name)) continue;
    families_->licenses->Remove(&families_->licenses->Add({{"license", name}}));
    families_->licenses_in_use->Remove(&families_->licenses_in_use->Add({{"license", name}}));
  }
  for (const auto& [name, use] : licenses) {
    families_->licenses->Add({{"license", name}}).Set(static_cast<double>(use.total));
    families_->licenses_in_use->Add({{"license", name}}).Set(static_cast<double>(use.in_use));
  }
}

// Returns Prometheus' text format, for a scrape. The registry has its own lock, so this may be
// called from the server's thread.
std::string Metrics::render() const {
  return kube::metrics_text(families_->registry);
}

}  // namespace control
