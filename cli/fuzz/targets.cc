#include "cli/fuzz/targets.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/natural_order.h"
#include "cli/cluster/batch_script.h"
#include "cli/import/importer.h"
#include "cli/scenario.h"
#include "cli/workload/swf.h"
#include "scheduler/model/cluster.h"
#include "scheduler/model/legality.h"
#include "slurm/conf.h"
#include "slurm/dependency.h"
#include "slurm/exit_code.h"
#include "slurm/hostlist.h"
#include "slurm/quantities.h"
#include "slurm/sbatch.h"

namespace cli {
namespace {

// Every refusal has a sentence and the code of a wrong input. That of a dependency has one of its
// own, since sbatch says it in other words.
void check_message(const base::Error& error) {
  CHECK(error.code == base::Code::kInvalidArgument || error.code == slurm::kEndsWithOne,
        error.message);
  CHECK(!error.message.empty());
}

// The bounds on which the scheduler relies without looking again.
void check_request(const sched::JobRequest& request) {
  CHECK(request.min_nodes >= 1);
  CHECK(!request.max_nodes || *request.max_nodes >= request.min_nodes);
  CHECK(!request.tasks || *request.tasks >= 1);
  CHECK(request.cpus_per_task >= 1);
  CHECK(!request.time_limit ||
        (*request.time_limit > base::Duration{0} && *request.time_limit <= slurm::kUnlimited));
}

// A node without cores, or with a number of CPUs that is neither its cores nor its threads, would
// make the scheduler hand out what is not there.
void check_nodes(const std::vector<sched::NodeSpec>& nodes) {
  for (const sched::NodeSpec& node : nodes) {
    CHECK(!node.name.empty());
    CHECK(node.cores() >= 1 && node.cores() <= sched::kCoresPerNodeMax);
    CHECK(node.cpus == node.cores() || node.cpus == node.cores() * node.threads_per_core);
  }
}

}  // namespace

// Names that were expanded and compressed are the same set when they are expanded again.
void fuzz_hostlist(std::string_view input) {
  base::Result<std::vector<std::string>> names = slurm::expand_hostlist(input);
  if (!names) return check_message(names.error());
  CHECK(names->size() <= slurm::kHostlistNamesMax);
  // compress_hostlist() wants them so, and a hostlist may name a node twice.
  std::sort(names->begin(), names->end(), base::natural_less);
  names->erase(std::unique(names->begin(), names->end()), names->end());
  // "n2,n[1-3]" is n1, n2, n3, and then "n[1-3]": another text and the same set.
  const std::string text = slurm::compress_hostlist(*names);
  // Names that have little in common make a text longer than any that is read.
  if (text.size() > slurm::kHostlistBytesMax) return;
  const base::Result<std::vector<std::string>> again = slurm::expand_hostlist(text);
  CHECK(again.ok() && *again == *names, text);
}

// Times of every form that Slurm has: durations, instants, and, since they share their callers,
// sizes of memory. A limit is rounded up to minutes and so never below its time.
void fuzz_time_string(std::string_view input) {
  const auto time = slurm::parse_time("t", input);
  if (time) {
    CHECK(!*time || (**time >= base::Duration{0} && **time <= slurm::kUnlimited));
    const auto limit = slurm::parse_limit("t", input);
    CHECK(limit.ok() && limit->has_value() == time->has_value());
    CHECK(!*time || **limit >= **time);
  } else {
    check_message(time.error());
  }
  // With hours, what is printed is read back; anything shorter is read as minutes.
  if (time && *time && **time >= std::chrono::hours{1}) {
    const auto whole = std::chrono::floor<std::chrono::seconds>(**time);
    CHECK(slurm::parse_time("t", slurm::format_run_time(whole)).value() ==
          std::optional<base::Duration>{whole});
  }
  // A fixed present, in January 2027, for words like "tomorrow".
  const base::Instant now{std::chrono::hours{500'000}};
  const auto instant = slurm::parse_instant("b", input, {.instant = now});
  if (!instant) check_message(instant.error());
  const auto memory = slurm::parse_memory("m", input);
  // A negative amount would count as room that a node gains.
  if (memory) CHECK(memory->value() >= 0);
}

// Whatever is taken from a slurm.conf must be safe to hand to the scheduler, illegal combinations
// included: sched::check() is what refuses those.
void fuzz_slurm_conf(std::string_view input) {
  const base::Result<slurm::SlurmConf> conf = slurm::read_slurm_conf(input);
  if (!conf) return check_message(conf.error());
  check_nodes(conf->nodes);
  for (const sched::PartitionConfig& partition : conf->configuration.partitions) {
    CHECK(!partition.name.empty());
    CHECK(partition.max_share >= 1);
  }
  (void)sched::check(conf->configuration);  // must stand whatever can be written
}

// The text as a command line, as a script with #SBATCH lines, and as a script to be run. Users of a
// cluster write all three, so none may crash a tool or make a request beyond the bounds.
void fuzz_sbatch(std::string_view input) {
  const slurm::Now now{.instant = base::Instant{std::chrono::hours{500'000}}};
  const base::Result<slurm::BatchOptions> line = slurm::read_sbatch_line(input, now);
  if (line) {
    check_request(line->request);
  } else {
    check_message(line.error());
  }
  slurm::SbatchReader reader{now};
  const base::Status script = reader.add_script(input);
  // The same text as a batch script, whose options are in #SBATCH lines.
  if (script) {
    const base::Result<slurm::BatchOptions> options = reader.finish();
    if (options) {
      check_request(options->request);
    } else {
      check_message(options.error());
    }
  } else {
    check_message(script.error());
  }
  const base::Status status = check_batch_script(input);
  if (!status) check_message(status.error());
}

// A scenario that is read can be played: its nodes and jobs are within the bounds, and its inputs
// go forward in time.
void fuzz_scenario(std::string_view input) {
  const base::Result<simulate::Scenario> scenario = read_scenario(input, "f");
  if (!scenario) return check_message(scenario.error());
  check_nodes(scenario->nodes);
  // A scenario is played in the order of its file.
  base::Instant last{};
  for (const simulate::Input& happening : scenario->inputs) {
    CHECK(happening.at >= last);
    last = happening.at;
  }
  // Not played: the scheduler has a target of its own (scheduler/fuzz), and a scenario may simulate
  // weeks.
  for (const simulate::Job& job : scenario->jobs) check_request(job.request);
}

// Archives have lines of every kind of damage. The result is sorted and has no negative figures.
void fuzz_swf(std::string_view input) {
  const base::Result<SwfTrace> trace = read_swf(input, "f");
  if (!trace) return check_message(trace.error());
  base::Duration last{0};
  for (const SwfJob& job : *trace) {
    CHECK(job.submit >= last);
    last = job.submit;
    CHECK(!job.run || *job.run >= base::Duration{0});
    CHECK(!job.processors() || *job.processors() >= 1);
    CHECK(!job.requested_time || *job.requested_time > base::Duration{0});
  }
  // Times are written in whole seconds, so a trace stays the same from the first writing on.
  const std::string text = write_swf(*trace, "");
  const base::Result<SwfTrace> again = read_swf(text, "f");
  CHECK(again.ok() && again->size() == trace->size(), text);
  CHECK(write_swf(*again, "") == text, text);
}

// Whatever the files say: what comes out is YAML, no two objects of a kind have one name, and each
// remark is a line that names its file.
void fuzz_import(std::string_view input) {
  std::vector<ImportFile> files;
  while (true) {
    // Several files in one input, with form feeds between them.
    const std::size_t end = input.find('\f');
    files.push_back({"f" + std::to_string(files.size()), std::string{input.substr(0, end)}});
    if (end == std::string_view::npos) break;
    input.remove_prefix(end + 1);
  }
  const ReadInclude none = [](const std::string&) -> base::Result<std::string> {
    return base::invalid_argument("is not there");
  };
  const Imported imported = import_slurm(files, none);
  for (const std::string& remark : imported.remarks) {
    CHECK(remark.starts_with("f") && remark.find('\n') == std::string::npos, remark);
  }
  std::set<std::string> names;
  try {
    for (const YAML::Node& document : YAML::LoadAll(imported.yaml)) {
      if (document.IsNull()) continue;  // comments
      const std::string name =
          document["kind"].as<std::string>() + " " + document["metadata"]["name"].as<std::string>();
      CHECK(names.insert(name).second, name);
    }
  } catch (const YAML::Exception& error) {
    CHECK(false, std::string{error.what()} + " in\n" + imported.yaml);
  }
}

}  // namespace cli
