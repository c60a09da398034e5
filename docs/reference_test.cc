// docs/reference/ says what the CRDs, the command line and the metrics of today say. Each document
// is written from its source and compared with the file; with KUBEGANG_WRITE_REFERENCE set the file
// is written instead.
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cli/cluster/connect.h"
#include "cli/cluster/session.h"
#include "cli/program.h"
#include "cli/slurm/reference.h"
#include "node-agent/reporting/metrics.h"
#include "operator/process/metrics.h"

namespace docs {
namespace {

const std::filesystem::path kRoot{KUBEGANG_SOURCE_DIR};

std::string read(const std::filesystem::path& path) {
  std::ifstream file{path};
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Compares the text with docs/reference/NAME, or writes it.
void check(const std::string& name, const std::string& text) {
  const std::filesystem::path path = kRoot / "docs/reference" / name;
  if (std::getenv("KUBEGANG_WRITE_REFERENCE") != nullptr) {
    std::ofstream{path} << text;
    return;
  }
  // Not EXPECT_EQ: it would print two whole documents.
  EXPECT_TRUE(read(path) == text) << path << " is out of date: run `make reference`";
}

// Returns a cell of a table: one line, without characters that end it.
std::string cell(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) {
    text.insert(at, "\\");
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

std::string scalar(const YAML::Node& node, const char* key) {
  return node[key] ? node[key].as<std::string>() : std::string{};
}

// Returns a value as YAML in one line, for defaults.
std::string one_line(const YAML::Node& node) {
  YAML::Emitter out;
  out << YAML::Flow << node;
  return out.c_str();
}

// Returns "string", "list of integer", "one of `A`, `B`"; "integer, 1 to 5; default 1".
std::string type_of(const YAML::Node& schema) {
  std::string type = scalar(schema, "type");
  if (type == "array") type = "list of " + type_of(schema["items"]);
  if (type == "object" && schema["additionalProperties"]) {
    type = "map of " + type_of(schema["additionalProperties"]);
  }
  if (schema["x-kubernetes-int-or-string"]) type = "quantity";
  if (const YAML::Node values = schema["enum"]) {
    type = "one of";
    for (const YAML::Node& value : values) {
      type += (type == "one of" ? " `" : ", `") + value.as<std::string>() + "`";
    }
  }
  if (schema["minimum"]) type += ", at least " + scalar(schema, "minimum");
  if (schema["maximum"]) type += ", at most " + scalar(schema, "maximum");
  if (schema["default"]) type += "; default `" + one_line(schema["default"]) + "`";
  return type;
}

// One row per field, nested ones under their path. Parts that the schema leaves open end there.
void add_fields(std::ostream& out, const std::string& path, const YAML::Node& schema) {
  std::set<std::string> required;
  if (schema["required"]) {
    for (const YAML::Node& name : schema["required"]) required.insert(name.as<std::string>());
  }
  for (const auto& property : schema["properties"]) {
    const std::string name = property.first.as<std::string>();
    const YAML::Node& field = property.second;
    const std::string full = path.empty() ? name : path + "." + name;
    out << "| `" << full << "` | " << cell(type_of(field))
        << (required.contains(name) ? ", required" : "") << " | "
        << cell(scalar(field, "description")) << " |\n";
    if (name == "template") continue;  // a PodTemplateSpec; what is refused of it is said there
    if (field["properties"]) add_fields(out, full, field);
    // Conditions are Kubernetes' own type; their fields would repeat in every kind.
    if (field["items"] && field["items"]["properties"] && name != "conditions") {
      add_fields(out, full + "[]", field["items"]);
    }
  }
}

std::string crd_section(const YAML::Node& crd) {
  const YAML::Node names = crd["spec"]["names"];
  const YAML::Node version = crd["spec"]["versions"][0];
  const YAML::Node schema = version["schema"]["openAPIV3Schema"];
  std::ostringstream out;
  out << "\n## " << scalar(names, "kind") << "\n\n"
      << scalar(schema, "description") << "\n\n"
      << "`" << scalar(names, "plural") << "." << scalar(crd["spec"], "group") << "`, "
      << scalar(version, "name") << ", "
      << (scalar(crd["spec"], "scope") == "Cluster" ? "belongs to no namespace"
                                                    : "belongs to a namespace");
  if (names["shortNames"]) {
    out << "; short:";
    for (const YAML::Node& name : names["shortNames"]) out << " `" << name.as<std::string>() << "`";
  }
  out << ".\n";
  for (const char* part : {"spec", "status"}) {
    if (!schema["properties"][part]) continue;
    out << "\n### " << scalar(names, "kind") << " " << part << "\n\n"
        << "| Field | Type | Meaning |\n|---|---|---|\n";
    add_fields(out, "", schema["properties"][part]);
  }
  return out.str();
}

TEST(Reference, CrdsMdHasEveryFieldOfEveryKind) {
  std::ostringstream out;
  out << "# API reference\n\n"
         "Every field of every kind of `kubegang.io`, written from `crds/` by `make reference`; a "
         "test\n"
         "compares the two. `kubectl explain gjob.spec` shows the same on a cluster. Fields of "
         "Slurm's\n"
         "configuration and options: [from-slurm.md](../from-slurm.md).\n";
  std::set<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator{kRoot / "crds"}) {
    if (entry.path().extension() == ".yaml") paths.insert(entry.path());
  }
  // A folder that was moved would make an empty document, and the test would ask to write it.
  EXPECT_GE(paths.size(), 5U);
  for (const auto& path : paths) out << crd_section(YAML::LoadFile(path.string()));
  check("crds.md", out.str());
}

std::string help(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostringstream err;
  const auto no_cluster = [](const auto&, const auto&) -> base::Result<int> { return 1; };
  EXPECT_EQ(cli::run_program(arguments, no_cluster, {.out = out, .err = err}), cli::kExitOk)
      << err.str();
  std::string text = out.str();
  while (text.ends_with("\n\n")) text.pop_back();
  return text;
}

// The names under "Subcommands:".
std::vector<std::string> commands_in(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream lines{text};
  bool listed = false;
  for (std::string line; std::getline(lines, line);) {
    if (listed && line.starts_with("  ") && line.size() > 2 && line[2] != ' ') {
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
    if (line.starts_with("Subcommands:") || line.starts_with("SUBCOMMANDS:")) listed = true;
  }
  return names;
}

TEST(Reference, CliMdHasTheHelpOfEveryCommand) {
  const std::string overview = help({"--help"});
  const std::vector<std::string> commands = commands_in(overview);
  EXPECT_GE(commands.size(), 8U);
  std::ostringstream out;
  out << "# Command line reference\n\n"
         "What `kubectl gang COMMAND --help` says, written by `make reference`; a test compares "
         "the\n"
         "two. Exit codes: 0; 1, it failed; 2, the command line is wrong.\n\n```\n"
      << overview << "```\n";
  for (const std::string& command : commands) {
    out << "\n## " << command << "\n\n```\n" << help({command, "--help"}) << "```\n";
  }
  check("cli.md", out.str());
}

struct Family {
  std::string help{};
  std::string type{};
  std::set<std::string> labels{};
};

// Returns the metrics of one program, from its page in Prometheus' text format.
std::map<std::string, Family> families(const std::string& page) {
  std::map<std::string, Family> found;
  std::istringstream lines{page};
  std::string name;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# HELP ") || line.starts_with("# TYPE ")) {
      const std::size_t end = line.find(' ', 7);
      name = line.substr(7, end - 7);
      (line[2] == 'H' ? found[name].help : found[name].type) = line.substr(end + 1);
      continue;
    }
    // A sample: its labels are collected, whichever sample shows them.
    const std::size_t open = line.find('{');
    if (open == std::string::npos) continue;
    for (std::size_t at = open; (at = line.find("=\"", at)) != std::string::npos; ++at) {
      const std::size_t begin = line.find_last_of("{,", at) + 1;
      const std::string label = line.substr(begin, at - begin);
      // `le` is the bucket of a histogram, which every histogram has.
      if (label != "le") found[name].labels.insert(label);
    }
  }
  return found;
}

TEST(Reference, SlurmCommandsMdHasWhatTheProgramHas) {
  check("slurm-commands.md", cli::slurm_commands_markdown());
}

// There is no series of jobs before the first job.
control::JobTotals one_of_each() {
  control::JobTotals totals;
  control::JobRecord job;
  job.wanted_unmarked().starts = 1;
  job.wanted_unmarked().submit_time = base::Instant{};
  job.wanted_unmarked().allocation.emplace();
  totals.started(job, base::Instant{});
  totals.suspended(sched::Reason::kPreempted);
  totals.changed(
      job, {.job = job.id, .state = sched::JobState::kFailed, .reason = {}, .restarts = 1}, "");
  return totals;
}

TEST(Reference, MetricsMdHasEveryMetric) {
  std::ostringstream out;
  out << "# Metrics reference\n\n"
         "What both programs serve at `/metrics`, written by `make reference`; a test compares the "
         "two.\n"
         "The chart's alerts and its dashboard use them ([alerts](../alerts.md)). Times "
         "are in\n"
         "seconds, counters never go back while a program runs.\n";
  agent::Metrics of_agent;
  of_agent.count_frozen({{.uid = "uid",
                          .gang = "namespace/name",
                          .frozen = base::Duration{}}});  // it has no gang before
  control::Metrics of_operator;
  control::LoopCounters counters;
  counters.licenses["name"] = {};  // there is no license before
  of_operator.update(counters, one_of_each(), 0, base::Duration{});
  for (const auto& [program, page] : {std::pair{"The operator", of_operator.render()},
                                      std::pair{"The agent", of_agent.render()}}) {
    const std::map<std::string, Family> metrics = families(page);
    EXPECT_GT(metrics.size(), 5U) << program;
    out << "\n## " << program << "\n\n| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n";
    for (const auto& [name, family] : metrics) {
      std::string labels;
      for (const std::string& label : family.labels) {
        labels += (labels.empty() ? "`" : ", `") + label + "`";
      }
      out << "| `" << name << "` | " << family.type << " | " << labels << " | " << cell(family.help)
          << " |\n";
    }
  }
  check("metrics.md", out.str());
}

}  // namespace

}  // namespace docs
