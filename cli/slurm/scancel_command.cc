#include "cli/slurm/scancel_command.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/slurm/job_facts.h"
#include "slurm/text.h"

namespace cli {
namespace {

constexpr std::array kOptions = {
    WordOption{'n', "name", WordTakes::kValue},      WordOption{'\0', "jobname", WordTakes::kValue},
    WordOption{'u', "user", WordTakes::kValue},      WordOption{'t', "state", WordTakes::kValue},
    WordOption{'p', "partition", WordTakes::kValue}, WordOption{'f', "full", WordTakes::kNothing},
    WordOption{'\0', "me", WordTakes::kNothing},     WordOption{'Q', "quiet", WordTakes::kNothing},
    WordOption{'s', "signal", WordTakes::kValue},    WordOption{'b', "batch", WordTakes::kNothing}};

struct ScancelOptions {
  std::set<std::string> names, users, states, partitions;
  std::vector<std::string> jobs;
  bool is_own = false;
  bool is_quiet = false;
  bool has_filter() const {
    return is_own || !names.empty() || !users.empty() || !states.empty() || !partitions.empty();
  }
};

int fail(Output output, const std::string& message) {
  output.err << "scancel: error: " << message << "\n";
  return kExitFailed;
}

base::Status apply(const ReadOption& option, ScancelOptions& options) {
  const auto add = [&](std::set<std::string>& to) {
    for (std::string& word : list_of(option.value)) to.insert(std::move(word));
  };
  const std::string& name = option.name;
  if (name == "name" || name == "jobname") add(options.names);
  if (name == "user") add(options.users);
  if (name == "partition") add(options.partitions);
  if (name == "me") options.is_own = true;
  if (name == "quiet") options.is_quiet = true;
  if (name == "state") {
    const std::string code = state_code_of(option.value);
    if (code != "PD" && code != "R" && code != "S") {
      return base::invalid_argument("Invalid job state specified: " + option.value);
    }
    options.states.insert(code);
  }
  // --full asks that the script hears of it too, which it does.
  if (name == "signal" || name == "batch") {
    return base::invalid_argument("--" + name +
                                  ": sending signals is not there yet; without it the job ends");
  }
  return {};
}

bool is_meant(const JobFacts& facts, const ScancelOptions& options, const std::string& own) {
  const auto fits = [](const std::set<std::string>& wanted, const std::string& value) {
    return wanted.empty() || wanted.contains(value);
  };
  const bool is_listed =
      options.jobs.empty() ||
      std::ranges::find(options.jobs, std::to_string(facts.id)) != options.jobs.end();
  return is_listed && fits(options.names, facts.name) && fits(options.users, facts.user) &&
         fits(options.states, facts.state_code) && fits(options.partitions, facts.partition) &&
         (!options.is_own || facts.user == own);
}

// Those of a filter that have ended are passed over; one that is named by its number is an error
// only if it does not exist.
int cancel(const Session& session, const ScancelOptions& options, Output output) {
  const auto jobs = list_jobs(session, output);
  if (!jobs) return fail(output, jobs.error().message);
  const auto partitions = list_partition_defaults(session, output);
  if (!partitions) return fail(output, partitions.error().message);
  int code = kExitOk;
  std::set<std::string> known;
  for (const kube::Job& job : *jobs) {
    const JobFacts facts = facts_of(job, *partitions, session.clock.wall());
    known.insert(std::to_string(facts.id));
    const bool has_ended = job.status.state && kube::is_final(*job.status.state);
    if (has_ended || !is_meant(facts, options, session.ns)) continue;
    const auto changed = session.client.patch<kube::Job>(
        kube::key_of(job.metadata), nlohmann::json{{"spec", {{"control", {{"cancel", true}}}}}},
        {.uid = job.metadata.uid});
    if (changed || changed.error().code == base::Code::kNotFound) continue;
    code = fail(output, "Kill job error on job id " + std::to_string(facts.id) + ": " +
                            changed.error().message);
  }
  for (const std::string& id : options.jobs) {
    if (known.contains(id) || options.is_quiet) continue;
    code = fail(output, "Kill job error on job id " + id + ": Invalid job id specified");
  }
  return code;
}

}  // namespace

int run_scancel(std::span<const std::string> arguments, const WithCluster& with_cluster,
                Output output) {
  const auto words = read_words(kOptions, arguments);
  if (!words) return fail(output, words.error().message);
  ScancelOptions options;
  for (const ReadOption& option : words->options) {
    if (const base::Status status = apply(option, options); !status) {
      return fail(output, status.error().message);
    }
  }
  for (const std::string& word : words->rest) {
    for (const std::string& id : list_of(word)) {
      if (id.find_first_not_of("0123456789") != std::string::npos) {
        return fail(output, "Invalid job id " + id + " (steps and array tasks are not there yet)");
      }
      options.jobs.push_back(id);
    }
  }
  if (options.jobs.empty() && !options.has_filter()) {
    return fail(output, "No job identification provided");
  }
  return with_cluster([&](const Session& session) { return cancel(session, options, output); });
}

}  // namespace cli
