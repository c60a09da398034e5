#include "operator/gang/batch_pod.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "operator/translate/units.h"

namespace control {
namespace {

using Json = nlohmann::json;

// Linux takes 131,072 bytes for a variable with its name.
constexpr std::size_t kPartBytesMax = 98'304;
constexpr const char* kVolume = "kubegang-launcher";
constexpr const char* kDirectory = "/kubegang";
constexpr const char* kProgram = "/kubegang-launcher";
// The user of our images (Dockerfile). The profile `restricted` asks for one that is not root.
constexpr int kImageUser = 65'532;

// kubelet takes $(NAME) in commands and values for a reference; "$$" is a dollar sign.
std::string literal(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) out.append(c == '$' ? 2 : 1, c);
  return out;
}

// Returns the length of the longest beginning of at most `max` bytes that ends with a character.
std::size_t whole_characters(std::string_view text, std::size_t max) {
  if (text.size() <= max) return text.size();
  while (max > 0 && (static_cast<unsigned char>(text[max]) & 0xC0U) == 0x80U) --max;
  return max;
}

// Adds PREFIX_0, PREFIX_1, …, which together are the text.
void add_parts(Json& env, const std::string& prefix, std::string_view text) {
  for (int part = 0; !text.empty(); ++part) {
    const std::size_t size = whole_characters(text, kPartBytesMax);
    env.push_back(
        {{"name", prefix + "_" + std::to_string(part)}, {"value", literal(text.substr(0, size))}});
    text.remove_prefix(size);
  }
}

// One NAME=VALUE a line, with \n for a line break and \\ for a backslash.
std::string lines_of(const std::vector<kube::BatchVariable>& variables) {
  std::string lines;
  for (const kube::BatchVariable& variable : variables) {
    for (const char c : variable.name + "=" + variable.value) {
      if (c == '\n') {
        lines += "\\n";
      } else if (c == '\\') {
        lines += "\\\\";
      } else {
        lines += c;
      }
    }
    lines += '\n';
  }
  return lines;
}

Json script_arguments(const kube::JobBatch& batch, bool is_again) {
  Json words = Json::array({"batch"});
  const auto add = [&](const std::string& option, const std::string& value) {
    if (!value.empty()) words.push_back(option + "=" + literal(value));
  };
  add("--output", batch.output);
  add("--error", batch.error);
  add("--input", batch.input);
  add("--chdir", batch.working_directory);
  const auto mode = is_again ? kube::OpenMode::kAppend : kube::OpenMode::kTruncate;
  add("--open-mode",
      batch.open_mode.value_or(mode) == kube::OpenMode::kAppend ? "append" : "truncate");
  words.push_back("--");
  for (const std::string& argument : batch.arguments) words.push_back(literal(argument));
  return words;
}

// The volume, and the init container that fills it. What it may do is what the Pod Security profile
// `restricted` allows, whatever the template's own containers do.
void bring_launcher(Json& spec, const std::string& image) {
  const Json mount{{"name", kVolume}, {"mountPath", kDirectory}};
  Json& volumes = spec["volumes"];
  if (!volumes.is_array()) volumes = Json::array();
  volumes.push_back({{"name", kVolume}, {"emptyDir", Json::object()}});
  Json init{{"name", kVolume},
            {"image", image},
            {"command", {kProgram, "install", kDirectory}},
            {"volumeMounts", Json::array({mount})},
            {"securityContext",
             {{"allowPrivilegeEscalation", false},
              {"capabilities", {{"drop", {"ALL"}}}},
              {"readOnlyRootFilesystem", true},
              {"runAsNonRoot", true},
              {"runAsUser", kImageUser},
              {"runAsGroup", kImageUser},
              {"seccompProfile", {{"type", "RuntimeDefault"}}}}}};
  Json& inits = spec["initContainers"];
  if (!inits.is_array()) inits = Json::array();
  inits.insert(inits.begin(), std::move(init));
  Json& mounts = spec["containers"][0]["volumeMounts"];
  if (!mounts.is_array()) mounts = Json::array();
  mounts.push_back(mount);
  mounts.back()["readOnly"] = true;
}

}  // namespace

base::Status add_launcher(Json& pod, const kube::Job& job, const PodSlot& slot,
                          const PodLauncher& launcher) {
  if (launcher.image.empty() && launcher.directory.empty()) {
    return base::invalid_argument(
        "spec.batch: this cluster has no launcher for batch scripts; the operator's option "
        "--launcher-image names the image that brings it");
  }
  const kube::JobBatch& batch = *job.spec.batch;
  Json& spec = pod["spec"];
  if (launcher.directory.empty()) bring_launcher(spec, launcher.image);
  Json& container = spec["containers"][0];
  const std::string directory = launcher.directory.empty() ? kDirectory : launcher.directory;
  container["command"] = Json::array({directory + kProgram});
  Json& env = container["env"];
  if (!env.is_array()) env = Json::array();
  if (slot.pod_index != 0) {
    container["args"] = Json::array({"wait"});
    return {};
  }
  container["args"] = script_arguments(batch, job.status.restarts.value_or(0) > 0);
  add_parts(env, "KUBEGANG_SCRIPT", batch.script);
  add_parts(env, "KUBEGANG_ENVIRONMENT", lines_of(batch.environment));
  return {};
}

void set_batch_variables(Variables& variables, const kube::Job& job, const PodSlot& slot) {
  const kube::JobBatch& batch = *job.spec.batch;
  const kube::JobResources& resources = job.spec.resources;
  const bool has_tasks = resources.tasks || resources.tasks_per_node;
  const bool is_again = job.status.restarts.value_or(0) > 0;
  std::erase_if(variables, [&](const auto& variable) {
    const std::string& name = variable.first;
    if (name == "SLURM_NTASKS" || name == "SLURM_NPROCS") return !has_tasks;
    if (name == "SLURM_RESTART_COUNT") return !is_again;
    return name == "SLURM_MEM_PER_NODE" && resources.memory_per_cpu.has_value();
  });
  for (auto& [name, value] : variables) {
    if (name == "SLURM_JOB_NAME" && !batch.name.empty()) value = batch.name;
  }
  variables.emplace_back("SLURM_GTIDS", std::to_string(slot.first_task));
  if (!batch.working_directory.empty()) {
    variables.emplace_back("SLURM_SUBMIT_DIR", batch.working_directory);
  }
  if (resources.memory_per_cpu) {
    variables.emplace_back("SLURM_MEM_PER_CPU",
                           std::to_string(mib_of(*resources.memory_per_cpu).value()));
  }
}

}  // namespace control
