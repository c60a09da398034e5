#include "cli/slurm/sprio_command.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <string>
#include <utility>

#include "api/annotations.h"
#include "cli/cluster/prio.h"
#include "cli/slurm/format.h"
#include "cli/slurm/job_facts.h"

namespace cli {
namespace {

struct SprioRow {
  const PrioLine* line = nullptr;  // null: the weights
  const std::vector<PrioTerm>* terms = nullptr;
};
using Field = SlurmField<SprioRow>;
using Cell = FormatCell<SprioRow>;

const PrioTerm& term_of(const SprioRow& row, std::string_view name) {
  static const PrioTerm kNone{"", ""};
  const auto term =
      std::ranges::find_if(*row.terms, [&](const PrioTerm& t) { return t.name == name; });
  return term == row.terms->end() ? kNone : *term;
}

std::string points(const SprioRow& row, std::string_view name) {
  const PrioTerm& term = term_of(row, name);
  return std::to_string(row.line == nullptr ? term.weight : term.points());
}

std::string fraction(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string normalized(const SprioRow& row, std::string_view name) {
  return fraction(static_cast<double>(term_of(row, name).factor_ppb) / 1e9, 7);
}

// Returns "cpu=3,mem=12", of terms that have a weight.
std::string tres(const SprioRow& row) {
  std::string text;
  const auto add = [&](const std::string& name, const std::string& word) {
    if (term_of(row, name).weight == 0) return;
    text += (text.empty() ? "" : ",") + word + "=" + points(row, name);
  };
  for (const auto& [name, word] : {std::pair{"cpus", "cpu"}, std::pair{"memory", "mem"},
                                   std::pair{"nodes", "node"}, std::pair{"gpus", "gres/gpu"}}) {
    add(name, word);
  }
  // "gpus:a100", of GPUs of one type.
  for (const PrioTerm& term : *row.terms) {
    if (term.name.starts_with("gpus:")) add(term.name, "gres/gpu" + term.name.substr(4));
  }
  return text;
}

std::string user_of(const SprioRow& row) {
  if (row.line == nullptr) return "";
  const auto& annotations = row.line->job->metadata.annotations;
  const auto user = annotations.find(std::string{kube::kAnnotationUser});
  return user == annotations.end() ? row.line->job->metadata.ns : user->second;
}

// SOURCE: sprio(1), --format.
constexpr std::array kFields = {
    Field{'i', "", "JOBID",
          [](const SprioRow& r) {
            return r.line == nullptr ? "Weights" : std::to_string(*r.line->job->status.job_id);
          }},
    Field{'r', "", "PARTITION",
          [](const SprioRow& r) { return r.line == nullptr ? "" : r.line->partition; }},
    Field{'u', "", "USER", user_of},
    Field{'Y', "", "PRIORITY",
          [](const SprioRow& r) {
            return r.line == nullptr ? "" : std::to_string(r.line->priority);
          }},
    Field{'y', "", "PRIORITY",
          [](const SprioRow& r) {
            constexpr double kMax = 4294967295.0;
            return r.line == nullptr ? ""
                                     : fraction(static_cast<double>(r.line->priority) / kMax, 8);
          }},
    Field{'A', "", "AGE", [](const SprioRow& r) { return points(r, "age"); }},
    Field{'a', "", "AGE", [](const SprioRow& r) { return normalized(r, "age"); }},
    Field{'B', "", "ASSOC", [](const SprioRow& r) { return points(r, "account"); }},
    Field{'b', "", "ASSOC", [](const SprioRow& r) { return normalized(r, "account"); }},
    Field{'F', "", "FAIRSHARE", [](const SprioRow& r) { return points(r, "fairShare"); }},
    Field{'f', "", "FAIRSHARE", [](const SprioRow& r) { return normalized(r, "fairShare"); }},
    Field{'J', "", "JOBSIZE", [](const SprioRow& r) { return points(r, "jobSize"); }},
    Field{'j', "", "JOBSIZE", [](const SprioRow& r) { return normalized(r, "jobSize"); }},
    Field{'P', "", "PARTITION", [](const SprioRow& r) { return points(r, "partition"); }},
    Field{'p', "", "PARTITION", [](const SprioRow& r) { return normalized(r, "partition"); }},
    Field{'Q', "", "QOS", [](const SprioRow& r) { return points(r, "qos"); }},
    Field{'q', "", "QOS", [](const SprioRow& r) { return normalized(r, "qos"); }},
    Field{'N', "", "NICE",
          [](const SprioRow& r) {
            return r.line == nullptr ? ""
                                     : std::to_string(r.line->job->spec.schedule.nice.value_or(0));
          }},
    Field{'T', "", "TRES", tres},
    Field{'t', "", "TRES", tres},
    Field{'S', "", "SITE",
          [](const SprioRow& r) { return std::string{r.line == nullptr ? "1" : "0"}; }},
    Field{'c', "", "CLUSTER", nullptr, "kubegang"},
};

constexpr WordTakes kNothing = WordTakes::kNothing;
constexpr WordTakes kValue = WordTakes::kValue;
constexpr std::array kOptions = {
    WordOption{'o', "format", kValue, "letters of fields, with widths"},
    WordOption{'h', "noheader", kNothing, "no heading"},
    WordOption{'l', "long", kNothing, "all factors"},
    WordOption{'n', "norm", kNothing, "factors between 0 and 1 instead of points"},
    WordOption{'w', "weights", kNothing, "the weights too"},
    WordOption{'j', "jobs", kValue, "only these numbers"},
    WordOption{'p', "partition", kValue, "only these partitions"},
    WordOption{'u', "user", kValue, "only jobs of these users"},
    WordOption{'M', "clusters", kValue, "a context of the kubeconfig"},
    WordOption{'v', "verbose", kNothing, "accepted; it is so anyway"},
    WordOption{'S', "sort", kValue, "", "is not there yet; the highest priority comes first"},
    WordOption{'\0', "federation", kNothing, "", "kubegang has no federations"},
    WordOption{'\0', "local", kNothing, "accepted; it is so anyway"}};

struct SprioOptions {
  std::string format;
  bool has_heading = true;
  bool is_long = false;
  bool is_normalized = false;
  bool has_weights = false;
  std::set<std::string> jobs, partitions, users;
  std::string context;
};

int fail(Output output, const std::string& message) {
  output.err << "sprio: error: " << message << "\n";
  return kExitFailed;
}

void apply(const ReadOption& option, SprioOptions& options) {
  const auto add = [&](std::set<std::string>& to) {
    for (std::string& word : list_of(option.value)) to.insert(std::move(word));
  };
  const std::string& name = option.name;
  if (name == "format") options.format = option.value;
  if (name == "noheader") options.has_heading = false;
  if (name == "long") options.is_long = true;
  if (name == "norm") options.is_normalized = true;
  if (name == "weights") options.has_weights = true;
  if (name == "clusters") options.context = option.value;
  if (name == "jobs") add(options.jobs);
  if (name == "partition") add(options.partitions);
  if (name == "user") add(options.users);
}

// SOURCE: without --format, a column for each factor that has a weight.
std::string format_of(const SprioOptions& options, const std::vector<PrioTerm>& weights) {
  if (!options.format.empty()) return options.format;
  if (options.is_long) {
    return "%.15i %9r %.8u %.10Y %.10S %.10A %.10B %.10F %.10J %.10P %.10Q %.11N %.20T";
  }
  const std::string user = options.users.empty() ? "" : " %.8u";
  const bool norm = options.is_normalized;
  std::string format = "%.15i %9r" + user + (norm ? " %10y" : " %.10Y %.10S");
  struct Column {
    std::string_view name;
    const char* points;
    const char* normal;
  };
  for (const Column& column :
       {Column{"age", " %.10A", " %10a"}, Column{"account", " %.10B", " %10b"},
        Column{"fairShare", " %.10F", " %10f"}, Column{"jobSize", " %.10J", " %10j"},
        Column{"partition", " %.10P", " %10p"}, Column{"qos", " %.10Q", " %10q"}}) {
    const SprioRow row{.terms = &weights};
    if (term_of(row, column.name).weight > 0) format += norm ? column.normal : column.points;
  }
  const SprioRow row{.terms = &weights};
  return format + (tres(row).empty() ? "" : " %20T");
}

bool is_shown(const PrioLine& line, const SprioOptions& options) {
  const auto fits = [](const std::set<std::string>& wanted, const std::string& value) {
    return wanted.empty() || wanted.contains(value);
  };
  return fits(options.jobs, std::to_string(*line.job->status.job_id)) &&
         fits(options.partitions, line.partition) &&
         fits(options.users, user_of({.line = &line, .terms = &line.terms}));
}

int show(const Session& session, const SprioOptions& options, Output output) {
  auto standing = read_standing(session, "", output);
  if (!standing && standing.error().code == base::Code::kPermissionDenied) {
    standing = read_standing(session, session.ns, output);
  }
  if (!standing) return fail(output, standing.error().message);
  const sched::PriorityParameters& parameters = standing->configuration.cluster.priority;
  if (parameters.type != sched::PriorityType::kMultifactor) {
    output.err << "You are not running a supported priority plugin\n(priority/basic).\nOnly "
                  "'priority/multifactor' is supported.\n";
    return kExitFailed;
  }
  const std::vector<PrioTerm> weights = terms_of(parameters, {});
  std::vector<std::string> unknown;
  const std::vector<Cell> cells =
      read_letters(std::span<const Field>{kFields}, format_of(options, weights), unknown);
  for (const std::string& name : unknown) {
    output.err << "sprio: error: Invalid job format specification: " << name << "\n";
  }
  std::vector<PrioLine> lines = prio_lines(*standing, session.clock.wall());
  std::erase_if(lines, [&](const PrioLine& line) { return !is_shown(line, options); });
  if (lines.empty() && !options.jobs.empty()) {
    output.out << "Unable to find jobs matching user/id(s) specified\n";
    return kExitOk;
  }
  const std::span<const Cell> columns{cells};
  if (options.has_heading) output.out << format_heading(columns) << "\n";
  if (options.has_weights) output.out << format_line(columns, SprioRow{.terms = &weights}) << "\n";
  for (const PrioLine& line : lines) {
    output.out << format_line(columns, SprioRow{.line = &line, .terms = &line.terms}) << "\n";
  }
  return kExitOk;
}

}  // namespace

int run_sprio(std::span<const std::string> arguments, const WithCluster& with_cluster,
              Output output) {
  if (const auto answer = answer_about_itself("sprio", kOptions, arguments)) {
    output.out << *answer;
    return kExitOk;
  }
  const auto words = read_options(kOptions, arguments);
  if (!words) return fail(output, words.error().message);
  SprioOptions options;
  for (const ReadOption& option : words->options) apply(option, options);
  return with_cluster.in(options.context)(
      [&](const Session& session) { return show(session, options, output); });
}

SlurmReference sprio_reference() {
  return reference_of<SprioRow>("sprio", kOptions, kFields);
}

}  // namespace cli
