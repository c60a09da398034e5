#include "cli/slurm/seff_command.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>

#include "cli/slurm/job_facts.h"
#include "cli/slurm/recorded_jobs.h"
#include "kube/clock.h"

namespace cli {
namespace {

// SOURCE: the exit codes of seff.
constexpr int kUsage = 1;
constexpr int kNotFound = 2;

constexpr std::array kOptions = {
    WordOption{'h', "", WordTakes::kNothing, "its options"},
    WordOption{'v', "", WordTakes::kNothing, "", "use -V"},
    WordOption{'d', "", WordTakes::kNothing, "", "there are no raw data of Slurm"}};

constexpr const char* kHelp =
    "Usage: seff [Options] <Jobid>\n"
    "       Options:\n"
    "       -h    Help menu\n"
    "       -V    Version\n";

std::string fixed(double number) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.2f", number);
  return text.data();
}

// Returns "1.50 GB". SOURCE: kbytes2str().
std::string memory_text(double bytes) {
  constexpr std::array kUnits = {"KB", "MB", "GB", "TB", "PB", "EB"};
  double amount = bytes / 1'024;
  if (amount <= 0) return "0.00 MB";
  std::size_t unit = 0;
  while (amount >= 1'024 && unit + 1 < kUnits.size()) {
    amount /= 1'024;
    ++unit;
  }
  return fixed(amount) + " " + kUnits[unit];
}

std::string percent(double part, double whole) {
  return fixed(whole > 0 ? part / whole * 100 : 0) + "%";
}

// SOURCE: the largest process of a step, as often as that step has tasks.
struct Memory {
  double bytes = 0;
  std::int32_t tasks = 1;
};
Memory memory_of(const kube::JobUsage& usage) {
  kube::StepUsage largest{.max_rss = usage.max_rss};
  for (const kube::StepUsage& step : usage.steps) {
    if (step.max_rss >= largest.max_rss) largest = step;
  }
  const double bytes = static_cast<double>(largest.max_rss.value());
  return {.bytes = bytes * largest.tasks, .tasks = largest.tasks};
}

void print_memory(const JobFacts& facts, const kube::JobUsage& usage, Output output) {
  const Memory used = memory_of(usage);
  double asked = 0;
  std::string share;
  if (facts.memory_per_cpu) {
    const double each = static_cast<double>(facts.memory_per_cpu->value());
    asked = each * facts.cpus;
    share = " (" + memory_text(each) + "/core)";
  } else {
    const double each =
        facts.memory_per_node ? static_cast<double>(facts.memory_per_node->value()) : 0;
    asked = each * facts.nodes;
    share = " (" + memory_text(each) + "/node)";
  }
  const bool is_one = used.tasks == 1;
  output.out << "Memory Utilized: " << memory_text(used.bytes)
             << (is_one ? "" : " (estimated maximum)") << "\n"
             << "Memory Efficiency: " << percent(used.bytes, asked) << " of " << memory_text(asked)
             << (is_one ? "" : share) << "\n";
}

void print_efficiency(const JobFacts& facts, Output output) {
  const auto& usage = facts.job->status.usage;
  const std::string wall = "Job Wall-clock time: " + long_time(facts.run_time) + "\n";
  if (!usage) {
    output.out << wall << "Efficiency not available: "
               << (facts.job->status.end_time ? "nothing has said what this job used.\n"
                                              : "what a job used is known when it has ended.\n");
    return;
  }
  const auto cpu = std::chrono::round<std::chrono::seconds>(usage->user_cpu + usage->system_cpu);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(facts.run_time);
  const auto of_cores = seconds * facts.cpus;
  output.out << "CPU Utilized: " << long_time(cpu) << "\n"
             << "CPU Efficiency: "
             << percent(static_cast<double>(cpu.count()), static_cast<double>(of_cores.count()))
             << " of " << long_time(of_cores) << " core-walltime\n"
             << wall;
  print_memory(facts, *usage, output);
}

void print(const JobFacts& facts, Output output) {
  output.out << "Job ID: " << facts.id << "\n";
  if (facts.array) output.out << "Array Job ID: " << job_label(facts.id, facts.array) << "\n";
  output.out << "Cluster: kubegang\n"
             << "User/Group: " << facts.user << "/" << facts.job->metadata.ns << "\n"
             << "State: " << facts.state;
  if (facts.job->status.end_time) output.out << " (exit code " << facts.exit_code << ")";
  output.out << "\n";
  const int nodes = std::max(facts.nodes, 1);
  if (facts.cpus <= 1) {
    output.out << "Cores: 1\n";
  } else {
    output.out << "Nodes: " << nodes << "\nCores per node: " << facts.cpus / nodes << "\n";
  }
  if (facts.state == "PENDING") {
    output.out << "Efficiency not available for jobs in the PENDING state.\n";
  } else {
    print_efficiency(facts, output);
  }
}

int show(const Session& session, const std::string& text, const JobWord& word, Output output) {
  const auto failed = [&](const base::Error& error) {
    output.err << "seff: error: " << error.message << "\n";
    return kExitFailed;
  };
  auto jobs = list_jobs(session, output, std::array{text});
  if (!jobs) return failed(jobs.error());
  const auto partitions = list_partition_defaults(session, output);
  if (!partitions) return failed(partitions.error());
  const base::Instant now = kube::SystemClock{}.wall();
  const auto recorded = read_records(session, {.window = {.until = now}, .jobs = {word.id}});
  if (!recorded) return failed(recorded.error().with_context("records cannot be read"));
  for (const AccountedJob& one : join_records(
           array_parts(std::move(*jobs), ArrayView::kJoined, true), recorded->records, false)) {
    const JobFacts facts = facts_of(one.part, *partitions, now);
    if (!is_named(word, facts.id, facts.array)) continue;
    print(facts, output);
    return kExitOk;
  }
  output.err << "Job not found.\n";
  return kNotFound;
}

}  // namespace

int run_seff(std::span<const std::string> arguments, const WithCluster& with_cluster,
             Output output) {
  if (const auto answer = answer_about_itself("seff", kOptions, arguments)) {
    output.out << *answer;
    return kExitOk;
  }
  const auto words = read_words(kOptions, arguments);
  if (!words) {
    output.err << "seff: error: " << words.error().message << "\n";
    return kUsage;
  }
  if (!words->options.empty() || words->rest.size() != 1) {
    output.out << kHelp;
    return kUsage;
  }
  const std::string& word = words->rest.front();
  const auto job = parse_job_word(word);
  if (!job) {
    output.err << "seff: error: Bad job/step specified: " << word << "\n";
    return kUsage;
  }
  return with_cluster([&](const Session& session) { return show(session, word, *job, output); });
}

SlurmReference seff_reference() {
  return {
      .command = "seff", .options = {kOptions.begin(), kOptions.end()}, .fields = {}, .words = {}};
}

}  // namespace cli
