#include "launcher/step_environment.h"

#include <algorithm>
#include <charconv>

#include "slurm/hostlist.h"
#include "slurm/per_node_list.h"

namespace launcher {

void add_devices(Environment& environment, const Environment& own) {
  for (const char* name : {"SLURM_GPUS_ON_NODE", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"}) {
    const auto value = value_of(own, name);
    if (value && !value_of(environment, name)) set(environment, name, *value);
  }
}

std::vector<std::uint32_t> read_per_node_list(std::string_view text) {
  std::vector<std::uint32_t> values;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view entry = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    std::uint32_t value = 0;
    std::uint32_t count = 1;
    const char* const end = entry.data() + entry.size();
    const auto read = std::from_chars(entry.data(), end, value);
    if (read.ec != std::errc{}) return {};
    if (read.ptr != end) {
      constexpr std::string_view kTimes = "(x";
      const std::string_view rest{read.ptr, static_cast<std::size_t>(end - read.ptr)};
      if (!rest.starts_with(kTimes) || !rest.ends_with(')')) return {};
      const char* const from = rest.data() + kTimes.size();
      const auto times = std::from_chars(from, end - 1, count);
      if (times.ec != std::errc{} || times.ptr != end - 1 || count > kNodesMax) return {};
    }
    values.insert(values.end(), count, value);
    if (values.size() > kNodesMax) return {};
  }
  return values;
}

JobNodes job_nodes(const Environment& environment) {
  JobNodes nodes;
  const auto names = slurm::expand_hostlist(value_or(environment, "SLURM_JOB_NODELIST", ""));
  nodes.cpus = read_per_node_list(value_or(environment, "SLURM_JOB_CPUS_PER_NODE", ""));
  if (names) nodes.names = *names;
  nodes.own = number_or(value_or(environment, "SLURM_NODEID", "0"), 0);
  add_devices(nodes.devices, environment);
  if (!nodes.names.empty() && nodes.names.size() == nodes.cpus.size() &&
      nodes.own < nodes.names.size()) {
    return nodes;
  }
  return {.names = {value_or(environment, "SLURMD_NODENAME", "localhost")},
          .cpus = {number_or(value_or(environment, "SLURM_CPUS_ON_NODE", "1"), 1)}};
}

std::string pmi_job(const StepRequest& request, std::uint32_t step_id) {
  return value_or(request.environment, "SLURM_JOB_ID", "0") + "." + std::to_string(step_id);
}

TaskSet task_set(const StepRequest& request, const StepPlacement& placement, std::size_t place,
                 std::uint32_t step_id, const JobNodes& nodes) {
  const StepLayout& layout = placement.layout;
  TaskSet set{.mpi = request.mpi,
              .is_unbuffered = request.is_unbuffered,
              .window = request.window,
              .directory = request.directory,
              .environment = request.environment};
  std::string ranks;
  for (std::uint32_t rank = 0; rank < layout.places.size(); ++rank) {
    if (layout.places[rank] != place) continue;
    set.ranks.push_back(rank);
    ranks += (ranks.empty() ? "" : ",") + std::to_string(rank);
    if (request.programs.size() > 1) set.programs.push_back(request.programs[rank]);
  }
  if (request.programs.size() == 1) set.programs = request.programs;
  std::vector<std::string> names;
  for (const std::uint32_t node : layout.nodes) names.push_back(nodes.names[node]);
  Environment& environment = set.environment;
  const auto put = [&](const char* name, const std::string& value) {
    launcher::set(environment, name, value);
  };
  // Variables that the script has changed itself stay.
  if (layout.nodes[place] != nodes.own) {
    for (const std::string& entry : nodes.devices) std::erase(environment, entry);
  }
  for (const char* name : {"SLURM_STEP_ID", "SLURM_STEPID"}) put(name, std::to_string(step_id));
  for (const char* name : {"SLURM_NNODES", "SLURM_STEP_NUM_NODES"}) {
    put(name, std::to_string(names.size()));
  }
  for (const char* name : {"SLURM_TASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE"}) {
    put(name, slurm::per_node_list(placement.tasks));
  }
  put("SLURM_STEP_NODELIST", slurm::compress_hostlist(names));
  put("SLURM_NODEID", std::to_string(place));
  for (const char* name : {"SLURMD_NODENAME", "SLURM_TOPOLOGY_ADDR"}) put(name, names[place]);
  const std::uint32_t cpus = nodes.cpus[layout.nodes[place]];
  const std::uint64_t needed = std::uint64_t{placement.tasks[place]} * request.cpus_per_task;
  put("SLURM_CPUS_ON_NODE",
      std::to_string(request.is_exact ? std::min<std::uint64_t>(needed, cpus) : cpus));
  // Linux takes 131,072 bytes for a variable.
  if (ranks.size() <= kChunkBytesMax) put("SLURM_GTIDS", ranks);
  // The distribution over its nodes, which are fewer if its tasks are packed.
  Distribution distribution = request.distribution;
  if (distribution == Distribution::kDefault) {
    const bool is_dealt = request.tasks <= names.size() && !packs(request);
    distribution = is_dealt ? Distribution::kCyclic : Distribution::kBlock;
  }
  const char* const names_of[] = {"block", "block", "cyclic", "plane", "arbitrary"};
  const char* const packings[] = {"", ",pack", ",pack", ",nopack"};
  put("SLURM_DISTRIBUTION", names_of[static_cast<std::size_t>(distribution)] +
                                request.distribution_within +
                                packings[static_cast<std::size_t>(request.packing)]);
  if (request.mpi == Mpi::kPmix) {
    set.pmix = {.name = "slurm.pmix." + pmi_job(request, step_id),
                .nodes = names,
                .places = layout.places,
                .place = static_cast<std::uint32_t>(place)};
  }
  if (request.mpi == Mpi::kPmi2) {
    put("PMI_SIZE", std::to_string(layout.places.size()));
    put("PMI_JOBID", pmi_job(request, step_id));
  }
  // Each launcher puts its own socket in front of the secret.
  const std::string steps = value_or(environment, "KUBEGANG_STEPS", ":");
  put("KUBEGANG_STEPS", steps.substr(std::min(steps.find(':'), steps.size())));
  // Container runtimes set it, so srun would take that of its own pod along.
  if (value_of(environment, "HOSTNAME")) put("HOSTNAME", names[place]);
  return set;
}

}  // namespace launcher
