// The options of submit and sbatch that say what the job's pods are like: volumes, variables, a
// template. With the image, which is an option of sbatch, they become the Job's pod template.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "slurm/sbatch.h"

namespace cli {

struct PodOptions {
  std::string template_file;           // a pod template, in YAML or JSON
  std::vector<std::string> volumes;    // CLAIM:PATH[:ro] or /FOLDER:PATH[:ro]
  std::vector<std::string> variables;  // NAME=VALUE, of the containers
  std::string service_account;         // whose token the pods get
  friend bool operator==(const PodOptions&, const PodOptions&) = default;
};

// Returns the value of a long option, "--env=X" or "--env X", and moves `i` to the last word
// that it took; nullopt if arguments[i] is another option. kInvalidArgument: the value is missing.
base::Result<std::optional<std::string>> long_value(std::span<const std::string> arguments,
                                                    std::size_t& i, const std::string& name);

// Reads --template, --volume, --env or --service-account at arguments[i]; false if it is
// another option.
base::Result<bool> read_pod_option(std::span<const std::string> arguments, std::size_t& i,
                                   PodOptions& options);

// Returns the pod template, {"spec": {"containers": [{"name": "main", …}]}}:
//
// 1. The file's, else one container without anything; no token of the API server.
// 2. --image or --container-image, else `image_otherwise` where the template has none ("": none).
// 3. --volume and the script's --container-mounts, --env, --service-account.
//
// Reads the file. kInvalidArgument: a sentence that names the option.
base::Result<nlohmann::json> pod_template_of(const PodOptions& options,
                                             const slurm::BatchOptions& batch,
                                             const std::string& image_otherwise);

}  // namespace cli
