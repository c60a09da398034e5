#include "cli/fuzz/targets.h"

#include <algorithm>

#include "base/check.h"
#include "base/natural_order.h"
#include "cli/cluster/batch_script.h"
#include "cli/scenario.h"
#include "cli/slurm/conf.h"
#include "cli/slurm/hostlist.h"
#include "cli/slurm/quantities.h"
#include "cli/slurm/sbatch.h"
#include "scheduler/model/cluster.h"
#include "scheduler/model/legality.h"

namespace cli {
namespace {

// Every refusal is a sentence on one line.
void check_message(const base::Error& error) {
  CHECK(error.code == base::Code::kInvalidArgument, error.message);
  CHECK(!error.message.empty());
}

void check_request(const sched::JobRequest& request) {
  CHECK(request.min_nodes >= 1);
  CHECK(!request.max_nodes || *request.max_nodes >= request.min_nodes);
  CHECK(!request.tasks || *request.tasks >= 1);
  CHECK(request.cpus_per_task >= 1);
  CHECK(!request.time_limit ||
        (*request.time_limit > base::Duration{0} && *request.time_limit <= kUnlimited));
}

void check_nodes(const std::vector<sched::NodeSpec>& nodes) {
  for (const sched::NodeSpec& node : nodes) {
    CHECK(!node.name.empty());
    CHECK(node.cores() >= 1 && node.cores() <= sched::kCoresPerNodeMax);
    CHECK(node.cpus == node.cores() || node.cpus == node.cores() * node.threads_per_core);
  }
}

}  // namespace

void fuzz_hostlist(std::string_view input) {
  base::Result<std::vector<std::string>> names = expand_hostlist(input);
  if (!names) return check_message(names.error());
  CHECK(names->size() <= kHostlistNamesMax);
  std::sort(names->begin(), names->end(), base::natural_less);
  names->erase(std::unique(names->begin(), names->end()), names->end());
  const std::string text = compress_hostlist(*names);
  const base::Result<std::vector<std::string>> again = expand_hostlist(text);
  CHECK(again.ok() && *again == *names, text);
}

void fuzz_time_string(std::string_view input) {
  const auto time = parse_time("t", input);
  if (time) {
    CHECK(!*time || (**time >= base::Duration{0} && **time <= kUnlimited));
    const auto limit = parse_limit("t", input);
    CHECK(limit.ok() && limit->has_value() == time->has_value());
    CHECK(!*time || **limit >= **time);
  } else {
    check_message(time.error());
  }
  // With hours, what is printed is read back; anything shorter is read as minutes.
  if (time && *time && **time >= std::chrono::hours{1}) {
    const auto whole = std::chrono::floor<std::chrono::seconds>(**time);
    CHECK(parse_time("t", format_run_time(whole)).value() == std::optional<base::Duration>{whole});
  }
  const base::Instant now{std::chrono::hours{500'000}};
  const auto instant = parse_instant("b", input, {.instant = now});
  if (!instant) check_message(instant.error());
  const auto memory = parse_memory("m", input);
  if (memory) CHECK(memory->value() >= 0);
}

void fuzz_slurm_conf(std::string_view input) {
  const base::Result<SlurmConf> conf = read_slurm_conf(input);
  if (!conf) return check_message(conf.error());
  check_nodes(conf->nodes);
  for (const sched::PartitionConfig& partition : conf->configuration.partitions) {
    CHECK(!partition.name.empty());
    CHECK(partition.max_share >= 1);
  }
  (void)sched::check(conf->configuration);  // must stand whatever can be written
}

void fuzz_sbatch(std::string_view input) {
  const Now now{.instant = base::Instant{std::chrono::hours{500'000}}};
  const base::Result<BatchOptions> line = read_sbatch_line(input, now);
  if (line) {
    check_request(line->request);
  } else {
    check_message(line.error());
  }
  SbatchReader reader{now};
  const base::Status script = reader.add_script(input);
  if (script) {
    const base::Result<BatchOptions> options = reader.finish();
    if (options) {
      check_request(options->request);
    } else {
      check_message(options.error());
    }
  } else {
    check_message(script.error());
  }
  const auto command = script_command(input, "s", {});
  if (!command) check_message(command.error());
}

void fuzz_scenario(std::string_view input) {
  const base::Result<simulate::Scenario> scenario = read_scenario(input, "f");
  if (!scenario) return check_message(scenario.error());
  check_nodes(scenario->nodes);
  base::Instant last{};
  for (const simulate::Input& happening : scenario->inputs) {
    CHECK(happening.at >= last);
    last = happening.at;
  }
  for (const simulate::Job& job : scenario->jobs) check_request(job.request);
}

}  // namespace cli
