// The launcher's part of the pods of a batch script (spec.batch). Pure.
//
// The first container of each pod runs the launcher (launcher/README.md) instead of a command of
// its own: in the first pod it runs the script, in the others it waits for steps. The script and
// its variables are in the environment of the first pod alone, in parts that a program's
// environment can hold.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/job.h"
#include "base/result.h"
#include "base/time.h"
#include "operator/gang/step_secret.h"
#include "scheduler/model/job.h"
#include "translation/pod_slots.h"

namespace control {

// Whether the launcher's image is itself a volume of the pods, or an init container copies the
// launcher from it into one.
enum class ImageVolume { kAuto, kTrue, kFalse };  // kAuto: where the node has them (image_volume.h)

// The source of the launcher for pods. With neither, batch scripts are refused.
struct PodLauncher {
  std::string image{};  // that brings the launcher
  ImageVolume volume = ImageVolume::kFalse;
  std::string directory{};  // a folder of the nodes that has it; wins
  int port = 6818;          // of the first pod's launcher; Slurm's for the daemons of its nodes
  ClusterDns dns{};         // of pods of jobs that have several
  friend bool operator==(const PodLauncher&, const PodLauncher&) = default;
};

struct ScriptStart {
  bool mounts_images = false;                  // the node can
  bool may_requeue = false;                    // the script, its own job
  std::optional<base::Duration> time_limit{};  // when the operator ends the job, for its signal
  std::optional<int> array_task{};
};

// Returns whether an init container brings the launcher. REQUIRES: the job has its batch,
// `pod` has at least one container, `hosts` are host_names of the nodes of the start.
// kInvalidArgument: there is no launcher, or the pods of a job that has several would have no
// names.
base::Result<bool> add_launcher(nlohmann::json& pod, const kube::Job& job, const PodSlot& slot,
                                const std::vector<std::string>& hosts, const PodLauncher& launcher,
                                const ScriptStart& start);

// The variables of a batch script where they differ from those of a pod that is a task.
// `memory` is what the job asks for, with the defaults.
// SOURCE: what sbatch 22.05 gives a script.
using Variables = std::vector<std::pair<std::string, std::string>>;
void set_batch_variables(Variables& variables, const kube::Job& job, const PodSlot& slot,
                         const std::vector<std::string>& hosts, const sched::MemoryRequest& memory);

}  // namespace control
