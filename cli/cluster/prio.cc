#include "cli/cluster/prio.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/cluster/standing.h"
#include "cli/table.h"

namespace cli {
namespace {

using Json = nlohmann::ordered_json;
using sched::Tres;

}  // namespace

std::int64_t PrioTerm::points() const {
  constexpr double kBillion = 1e9;
  // Rounded down term by term, to be shown; the scheduler rounds the sum alone, so the columns may
  // add up to a few points less than the priority.
  return static_cast<std::int64_t>(static_cast<double>(weight) * static_cast<double>(factor_ppb) /
                                   kBillion);
}

std::vector<PrioTerm> terms_of(const sched::PriorityParameters& parameters,
                               const sched::PriorityFactors& factors) {
  const auto tres = [&](const char* title, const char* name, Tres kind) {
    return PrioTerm{title, name, parameters.weight_tres[kind], factors.tres[kind]};
  };
  std::vector<PrioTerm> terms = {
      {"AGE", "age", parameters.weight_age, factors.age},
      {"ACCOUNT", "account", parameters.weight_assoc, factors.association},
      {"FAIRSHARE", "fairShare", parameters.weight_fair_share, factors.fair_share},
      {"JOBSIZE", "jobSize", parameters.weight_job_size, factors.job_size},
      {"PARTITION", "partition", parameters.weight_partition, factors.partition},
      {"QOS", "qos", parameters.weight_qos, factors.qos},
      tres("CPUS", "cpus", Tres::kCpu),
      tres("MEMORY", "memory", Tres::kMemory),
      tres("NODES", "nodes", Tres::kNode),
      tres("GPUS", "gpus", Tres::kGpu)};
  for (const auto& [type, weight] : parameters.weight_tres.of_gpu_type) {
    terms.push_back(
        {"GPUS:" + type, "gpus:" + type, weight, factors.tres[sched::TresKind{Tres::kGpu, type}]});
  }
  return terms;
}

// Lets a scheduler compute them: `standing` has one that was made from the same objects as the
// operator's. A job that waits in several partitions has a priority in each (R9.5), hence several
// lines. Jobs of equal priority keep the order of their numbers.
// The scheduler makes no pass for this; it only says what it would sort by.
std::vector<PrioLine> prio_lines(const Standing& standing, base::Instant now) {
  std::vector<PrioLine> lines;
  const sched::PriorityParameters& parameters = standing.configuration.cluster.priority;
  for (const kube::Job& job : standing.waiting) {
    const sched::JobId id{*job.status.job_id};
    for (const sched::PriorityView& view : standing.scheduler.priorities_of(id, now)) {
      lines.push_back({.job = &job,
                       .partition = standing.scheduler.partition_name(view.partition),
                       .priority = view.priority.value(),
                       .terms = terms_of(parameters, view.factors)});
    }
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) { return a.priority > b.priority; });
  return lines;
}

namespace {

// Columns of what has a weight, as sprio. A term without a weight adds nothing to any job, so its
// column would be zeros.
// A job with 10,000 and 250 points and a nice of 100 has the priority 10,150.
void print_table(const std::vector<PrioLine>& lines, const sched::PriorityParameters& parameters,
                 bool only_weights, Output output) {
  std::vector<Column> columns = {{"JOBID", 8}, {"PARTITION", 9}, {"USER", 8}, {"PRIORITY", 10}};
  const std::vector<PrioTerm> all = terms_of(parameters, {});
  for (const PrioTerm& term : all) {
    if (term.weight > 0) columns.push_back({term.title, 10});
  }
  columns.push_back({"NICE", 6});
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](std::vector<std::string> row, const std::vector<PrioTerm>& terms,
                       const std::string& nice) {
    for (const PrioTerm& term : terms) {
      if (term.weight > 0)
        row.push_back(std::to_string(only_weights ? term.weight : term.points()));
    }
    row.push_back(nice);
    rows.push_back(std::move(row));
  };
  // --weights: one row, with the weights where the points would be.
  if (only_weights) add({"Weights", "", "", ""}, all, "");
  for (const PrioLine& line : lines) {
    add({std::to_string(*line.job->status.job_id), line.partition, line.job->metadata.ns,
         std::to_string(line.priority)},
        line.terms, std::to_string(line.job->spec.schedule.nice.value_or(0)));
  }
  output.out << format_table(columns, rows);
}

// The same terms under the names of the API, in points as in the table.
void print_json(const std::vector<PrioLine>& lines, Output output) {
  Json all = Json::array();
  for (const PrioLine& line : lines) {
    Json factors = Json::object();
    for (const PrioTerm& term : line.terms) {
      if (term.weight > 0) factors[term.name] = term.points();
    }
    all.push_back({{"jobID", *line.job->status.job_id},
                   {"namespace", line.job->metadata.ns},
                   {"name", line.job->metadata.name},
                   {"partition", line.partition},
                   {"priority", line.priority},
                   {"factors", factors},
                   {"nice", line.job->spec.schedule.nice.value_or(0)}});
  }
  output.out << all.dump(2) << "\n";
}

void print_weights_json(const sched::PriorityParameters& parameters, Output output) {
  Json weights = Json::object();
  for (const PrioTerm& term : terms_of(parameters, {})) {
    if (term.weight > 0) weights[term.name] = term.weight;
  }
  output.out << Json{{"weights", weights}}.dump(2) << "\n";
}

}  // namespace

// Reads no jobs with --weights, and so no nodes either: any user may ask for weights. With
// priority.type Basic there are no factors: a job gets one less than the last one (R9.2).
int run_prio(const Session& session, const PrioOptions& options, Output output) {
  std::optional<std::string> jobs_of;
  if (!options.weights) jobs_of = options.all_namespaces ? "" : session.ns;
  const base::Result<Standing> standing = read_standing(session, jobs_of, output);
  if (!standing) {
    output.err << "kubectl-gang prio: " << standing.error().message << "\n";
    return kExitFailed;
  }
  const sched::PriorityParameters& parameters = standing->configuration.cluster.priority;
  if (parameters.type != sched::PriorityType::kMultifactor) {
    output.err
        << "kubectl-gang prio: SchedulerConfig has priority.type Basic: jobs go in the order "
           "of submission, and kubectl gang queue shows it\n";
    return kExitFailed;
  }
  const std::vector<PrioLine> lines = prio_lines(*standing, session.clock.wall());
  if (options.json && options.weights) {
    print_weights_json(parameters, output);
  } else if (options.json) {
    print_json(lines, output);
  } else {
    print_table(lines, parameters, options.weights, output);
  }
  return kExitOk;
}

}  // namespace cli
