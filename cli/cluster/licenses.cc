#include "cli/cluster/licenses.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "api/wellknown.h"
#include "cli/cluster/read.h"
#include "cli/table.h"

namespace cli {
namespace {

using Json = nlohmann::ordered_json;

// Returns how often the job holds its licenses: from its start until its last pod is gone; each
// task of an array by itself.
std::int64_t times_held(const kube::Job& job) {
  if (job.status.array) {
    return std::ranges::count_if(job.status.array->tasks, [](const kube::ArrayTask& task) {
      return task.allocation.has_value();
    });
  }
  const bool holds = job.status.state == kube::JobState::kRunning ||
                     job.status.state == kube::JobState::kSuspended ||
                     kube::is_true(job.status.conditions, kube::kCompleting);
  return holds ? 1 : 0;
}

bool waits_for_licenses(const kube::Job& job) {
  const bool waits = job.status.array ? job.status.array->counts.waiting > 0
                                      : job.status.state == kube::JobState::kPending;
  return waits && job.status.reason == "Licenses";
}

std::string id_of(const kube::Job& job) {
  return std::to_string(job.status.job_id.value_or(0));
}

// Returns "12,15,18 and 3 more".
std::string ids_of(const std::vector<const kube::Job*>& jobs) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(jobs.size(), kShown); ++i) {
    text += (i == 0 ? "" : ",") + id_of(*jobs[i]);
  }
  if (jobs.size() > kShown) text += " and " + std::to_string(jobs.size() - kShown) + " more";
  return text;
}

const kube::SchedulerConfigSpec& spec_in_force(const kube::SchedulerConfig& config) {
  return config.status.accepted ? *config.status.accepted : config.spec;
}

void print_json(const std::vector<LicenseLine>& lines, Output output) {
  Json all = Json::array();
  for (const LicenseLine& line : lines) {
    Json waiting = Json::array();
    for (const kube::Job* job : line.waiting) {
      waiting.push_back({{"jobID", job->status.job_id.value_or(0)},
                         {"namespace", job->metadata.ns},
                         {"name", job->metadata.name},
                         {"count", job->spec.resources.licenses.at(line.name)}});
    }
    all.push_back({{"name", line.name},
                   {"total", line.total},
                   {"used", line.used},
                   {"free", line.free()},
                   {"waiting", waiting}});
  }
  output.out << all.dump(2) << "\n";
}

}  // namespace

std::vector<LicenseLine> license_lines(const kube::SchedulerConfig& config,
                                       const std::vector<kube::Job>& jobs) {
  std::vector<LicenseLine> lines;
  for (const auto& [name, total] : spec_in_force(config).licenses) {
    LicenseLine line{.name = name, .total = total};
    for (const kube::Job& job : jobs) {
      const auto asked = job.spec.resources.licenses.find(name);
      if (asked == job.spec.resources.licenses.end()) continue;
      line.used += times_held(job) * asked->second;
      if (waits_for_licenses(job)) line.waiting.push_back(&job);
    }
    std::ranges::sort(line.waiting, {}, [](const kube::Job* job) { return job->status.job_id; });
    lines.push_back(std::move(line));
  }
  return lines;
}

base::Status check_licenses(const Session& session, const kube::JobResources& asked) {
  const auto config = session.client.get<kube::SchedulerConfig>(
      {.ns = "", .name = std::string{kube::kSchedulerConfigName}});
  if (!config && config.error().code != base::Code::kNotFound) return {};  // the operator judges
  const auto there = config ? spec_in_force(*config).licenses : decltype(config->spec.licenses){};
  for (const auto& [name, count] : asked.licenses) {
    const auto found = there.find(name);
    if (found == there.end() || found->second < count) {
      return base::invalid_argument("Invalid license specification");
    }
  }
  return {};
}

base::Result<LicenseObjects> read_licenses(const Session& session, Output output) {
  LicenseObjects read;
  auto config = session.client.get<kube::SchedulerConfig>(
      {.ns = "", .name = std::string{kube::kSchedulerConfigName}});
  if (!config && config.error().code != base::Code::kNotFound) return config.error();
  if (config) read.config = std::move(*config);
  auto jobs = list_all<kube::Job>(session, "", output);
  if (!jobs && jobs.error().code == base::Code::kPermissionDenied) {
    output.err << "kubectl-gang: jobs of other namespaces than " << session.ns
               << " are not counted: you may not read them\n";
    jobs = list_all<kube::Job>(session, session.ns, output);
  }
  if (!jobs) return jobs.error();
  read.jobs = std::move(*jobs);
  return read;
}

int run_licenses(const Session& session, const LicensesOptions& options, Output output) {
  const base::Result<LicenseObjects> read = read_licenses(session, output);
  if (!read) {
    output.err << "kubectl-gang licenses: " << read.error().message << "\n";
    return kExitFailed;
  }
  const std::vector<LicenseLine> lines = license_lines(read->config, read->jobs);
  if (options.json) {
    print_json(lines, output);
    return kExitOk;
  }
  const std::array<Column, 5> columns = {
      Column{"LICENSE", 16, true}, {"TOTAL", 6}, {"USED", 6}, {"FREE", 6}, {"WAITING", 7, true}};
  std::vector<std::vector<std::string>> rows;
  for (const LicenseLine& line : lines) {
    rows.push_back({line.name, std::to_string(line.total), std::to_string(line.used),
                    std::to_string(line.free()), ids_of(line.waiting)});
  }
  output.out << format_table(columns, rows);
  return kExitOk;
}

}  // namespace cli
