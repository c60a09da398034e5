// The variables of a step's tasks that depend on where they are. Pure.
// SOURCE: srun(1) of 22.05, "OUTPUT ENVIRONMENT VARIABLES", as recorded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "launcher/message.h"
#include "launcher/process.h"
#include "launcher/step_layout.h"

namespace launcher {

// The nodes of a job, in its order.
struct JobNodes {
  std::vector<std::string> names;
  std::vector<std::uint32_t> cpus;  // of the job on each
  std::uint32_t own = 0;            // index of the one that this is
  Environment devices{};            // variables of the devices of this one's pod
};
// Reads SLURM_JOB_NODELIST, SLURM_JOB_CPUS_PER_NODE and SLURM_NODEID. Without them, or if they do
// not go together, the job has one node.
JobNodes job_nodes(const Environment& environment);

// Reads "4(x2),1" as 4, 4, 1. Empty: it is not such a list.
std::vector<std::uint32_t> read_per_node_list(std::string_view text);

// Returns the name by which PMI gives tasks their step: "1001.0".
std::string pmi_job(const StepRequest& request, std::uint32_t step_id);

// Returns what the launcher of layout.nodes[place] runs of a step.
TaskSet task_set(const StepRequest& request, const StepPlacement& placement, std::size_t place,
                 std::uint32_t step_id, const JobNodes& nodes);

// Adds the variables of devices that the environment lacks. Nodes of a job may have different ones,
// so task_set() leaves out those of the node where srun was called, and each launcher adds its own.
// SLURM_JOB_GPUS goes along as the script has it (recorded).
void add_devices(Environment& environment, const Environment& own);

}  // namespace launcher
