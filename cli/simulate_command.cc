#include "cli/simulate_command.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "cli/cluster/records.h"
#include "cli/files.h"
#include "cli/local_zone.h"
#include "cli/report/figures.h"
#include "cli/report/told_json.h"
#include "cli/report/told_text.h"
#include "cli/report/what_if_json.h"
#include "cli/report/what_if_svg.h"
#include "cli/report/what_if_text.h"
#include "cli/scenario.h"
#include "cli/workload/jobs_of_records.h"
#include "cli/workload/swf.h"
#include "cli/workload/trace_jobs.h"
#include "kube/clock.h"
#include "records/store.h"
#include "scheduler/simulate/told.h"
#include "scheduler/simulate/totals.h"
#include "scheduler/simulate/what_if.h"
#include "slurm/text.h"

namespace cli {
namespace {

int fail(Output output, const base::Error& error) {
  output.err << "kubectl-gang simulate: " << error.message << "\n";
  return kExitFailed;
}

// The command line asks for something that this scenario cannot give.
int usage(Output output, const std::string& what) {
  output.err << "kubectl-gang simulate: " << what << "\n";
  return kExitUsage;
}

// Reads seconds, "30" or "7.5"; nullopt if the text is anything else. 3e9 s are 95 years, the bound
// for times of a scenario too.
std::optional<base::Instant> instant(const std::string& text) {
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0 || !std::isfinite(seconds) || seconds < 0 || seconds > 3e9) {
    return std::nullopt;
  }
  return base::Instant{base::Duration{std::llround(seconds * 1e6)}};
}

// Records of the time that the command line says.
base::Result<std::vector<records::Record>> read_past(const SimulateOptions& options,
                                                     const Session* session) {
  const slurm::Now now = local_time(kube::SystemClock{}.wall());
  const auto instant_of = [&](const char* option, const std::string& text, const char* otherwise) {
    return slurm::parse_instant(option, text.empty() ? otherwise : text, now);
  };
  const auto since = instant_of("--since", options.since, "now-7days");
  if (!since) return since.error();
  const auto until = instant_of("--until", options.until, "now");
  if (!until) return until.error();
  if (*since >= *until) return base::invalid_argument("--since must be before --until");
  if (options.database.empty()) {
    auto read = read_records(*session, {.window = {.from = *since, .until = *until}});
    if (!read) return read.error();
    if (!read->since) return base::invalid_argument("the cluster keeps no records of jobs");
    return std::move(read->records);
  }
  const auto reader = records::Reader::open(options.database);
  if (!reader) return reader.error();
  std::vector<records::Record> all;
  records::Query query{.from = *since, .until = *until, .limit = 10'000};
  do {
    auto page = reader->find(query);
    if (!page) return page.error().with_context(options.database);
    std::ranges::move(page->records, std::back_inserter(all));
    query.after = page->next;
  } while (query.after);
  return all;
}

std::int64_t cpus_of(const simulate::Scenario& scenario) {
  std::int64_t cpus = 0;
  for (const sched::NodeSpec& node : scenario.nodes) cpus += node.cpus;
  return cpus;
}

// Returns the same jobs, as they were served and as they would be.
std::string comparison(const RecordedPast& past, const simulate::Scenario& scenario,
                       const simulate::WhatIf& result) {
  const std::int64_t cpus = cpus_of(scenario);
  const base::Instant last = scenario.inputs.back().at;
  std::vector<Served> served;
  base::Duration used{};
  for (std::size_t i = 0; i < past.cpus.size(); ++i) {
    const simulate::JobHistory& job = result.jobs[past.first + i];
    for (const simulate::Placement& placement : job.placements) {
      used += past.cpus[i] * simulate::run_time(placement, placement.from, last);
    }
    if (const auto service = simulate::service_of(job)) served.push_back({*service, past.cpus[i]});
  }
  const auto row = [](const char* name, const Figures& figures) {
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(), "%-18s %13s %8.1f %10.1f %% %16s %15s\n", name,
                  time_text(figures.response_mean).c_str(), figures.slowdown_mean,
                  100 * figures.utilization, time_text(figures.wait_p95_short).c_str(),
                  time_text(figures.wait_p95_wide).c_str());
    return std::string{line.data()};
  };
  std::array<char, 160> heading{};
  std::snprintf(heading.data(), heading.size(), "%-18s %13s %8s %12s %16s %15s\n", "",
                "mean response", "slowdown", "utilization", "95 % wait, short", "95 % wait, wide");
  return "\n" + std::string{heading.data()} +
         row("As recorded", figures_of(past.served, past.used, cpus, past.span)) +
         row("As simulated", figures_of(served, used, cpus, last - base::Instant{}));
}

// Plays a scenario by itself: the scheduler makes its own passes and slices, jobs run for as
// long as the file says. The picture first: if it cannot be written, nothing is printed.
int what_if(const SimulateOptions& options, const std::vector<base::Instant>& at,
            const simulate::Scenario& scenario, const std::optional<RecordedPast>& past,
            Output output) {
  const base::Result<simulate::WhatIf> result = simulate::run_what_if(scenario);
  if (!result) return fail(output, result.error().with_context(options.file));
  if (!options.svg.empty()) {
    const base::Status written = write_file(options.svg, what_if_svg(scenario, *result));
    if (!written) return fail(output, written.error());
  }
  if (options.json) {
    output.out << what_if_json(scenario, *result, at);
    return kExitOk;
  }
  for (const base::Instant t : at) output.out << queue_at(scenario, *result, t) << "\n";
  output.out << strips(scenario, *result) << "\n" << totals_text(scenario, *result);
  if (past) output.out << comparison(*past, scenario, *result);
  return kExitOk;
}

// Returns the jobs of the trace beside those of the scenario, which says on which cluster they run.
// Both files name themselves in their errors: the trace's reader with a line, add_trace() without
// one, since it speaks of all jobs.
base::Status add_swf(const SimulateOptions& options, simulate::Scenario& scenario) {
  const base::Result<std::string> text = read_file(options.swf, kSwfBytesMax);
  if (!text) return text.error();
  const base::Result<SwfTrace> trace = read_swf(*text, options.swf);
  if (!trace) return trace.error();
  const base::Status added = add_trace(*trace, options.load, scenario);
  return added ? added : added.error().with_context(options.swf);
}

}  // namespace

// 1. the instants of --at, since a wrong one is a wrong command line
// 2. the scenario, and the jobs of a trace, or those that are recorded
// 3. warnings, on stderr, so that JSON on stdout stays JSON
// 4. a scenario that tells its timing is replayed; any other is a what-if
// A file that is wrong is a failure (exit code 1), and not a wrong command line (2): the command
// could be given again as it is once the file is mended.
int run_simulate(const SimulateOptions& options, const Session* session, Output output) {
  std::vector<base::Instant> at;
  for (const std::string& text : options.at) {
    const std::optional<base::Instant> t = instant(text);
    if (!t) return usage(output, "--at " + slurm::in_quotes(text) + ": must be seconds, 0 or more");
    at.push_back(*t);
  }
  const base::Result<std::string> text = read_file(options.file, kScenarioBytesMax);
  if (!text) return fail(output, text.error());
  base::Result<simulate::Scenario> scenario = read_scenario(*text, options.file);
  if (!scenario) return fail(output, scenario.error());
  const bool is_told = scenario->timing_is_told();
  // Told timing has no clock of its own: between two steps of the file nothing happens, so there is
  // no state at an instant, no run time to draw, and no meaning of a trace.
  if (is_told &&
      (!at.empty() || !options.svg.empty() || !options.swf.empty() || options.from_records)) {
    return usage(output,
                 "--at, --svg, --swf and --from-records are for scenarios without told timing; " +
                     options.file + " tells passes, slices or ends");
  }
  if (!options.swf.empty()) {
    const base::Status added = add_swf(options, *scenario);
    if (!added) return fail(output, added.error());
  }
  std::optional<RecordedPast> past;
  if (options.from_records) {
    const auto records = read_past(options, session);
    if (!records) return fail(output, records.error());
    auto added = add_records(*records, *scenario);
    if (!added) return fail(output, added.error().with_context("--from-records"));
    past = std::move(*added);
  }
  for (const std::string& warning : scenario->warnings) {
    output.err << "kubectl-gang simulate: warning: " << warning << "\n";
  }
  if (!is_told) return what_if(options, at, *scenario, past, output);
  // Cannot fail: all that a step refers to was checked when the file was read.
  const simulate::ToldReport report = simulate::run_told(*scenario);
  output.out << (options.json ? told_json(*scenario, report) : told_text(*scenario, report));
  return kExitOk;
}

}  // namespace cli
