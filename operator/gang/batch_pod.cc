#include "operator/gang/batch_pod.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <variant>

#include "api/job_annotations.h"
#include "kube/api/json_text.h"
#include "kube/api/quantity.h"
#include "slurm/hostlist.h"
#include "translation/units.h"

namespace control {
namespace {

using Json = nlohmann::json;

// Linux takes 131,072 bytes for a variable with its name.
constexpr std::size_t kPartBytesMax = 98'304;
// The image of a script whose template and partition name none.
constexpr const char* kImageOtherwise = "debian:stable-slim";
constexpr const char* kVolume = "kubegang-launcher";
constexpr const char* kDirectory = "/kubegang";
constexpr const char* kSharedMemory = "/dev/shm";
constexpr const char* kSharedMemoryVolume = "kubegang-shm";
constexpr const char* kProgram = "/kubegang-launcher";
constexpr const char* kProfileVolume = "kubegang-profile";
constexpr const char* kProfileAnnotation = "kubegang.io/profile";
constexpr const char* kProfileFolder = "/etc/profile.d";
constexpr const char* kProfileFile = "zz-kubegang.sh";  // the last one that a profile reads
// SOURCE: sbatch.1, --signal.
constexpr base::Duration kNoticeDefault = std::chrono::seconds{60};
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

// Writes one NAME=VALUE a line, with \n for a line break and \\ for a backslash.
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

// How long after the begin of the job its launcher sends the signal.
void add_signal(Json& words, const kube::BatchSignal& signal,
                std::optional<base::Duration> time_limit) {
  if (!time_limit) return;  // no end, no notice before it
  const base::Duration after =
      std::max(*time_limit - signal.before.value_or(kNoticeDefault), base::Duration{0});
  words.push_back("--signal=" + signal.name);
  words.push_back(
      "--signal-after-ms=" +
      std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(after).count()));
  if (signal.target == kube::SignalTarget::kScript) words.push_back("--signal-to-script");
}

Json script_arguments(const kube::JobBatch& batch, bool is_again, bool is_installed,
                      const ScriptStart& start, const std::string& termination_log) {
  Json words = Json::array({"batch"});
  const auto add = [&](const std::string& option, const std::string& value) {
    if (!value.empty()) words.push_back(option + "=" + literal(value));
  };
  // SOURCE: sbatch(1), --output: the default of an array.
  add("--output", batch.output.empty() && start.array_task ? "slurm-%A_%a.out" : batch.output);
  add("--error", batch.error);
  add("--input", batch.input);
  add("--chdir", batch.working_directory);
  const auto mode = is_again ? kube::OpenMode::kAppend : kube::OpenMode::kTruncate;
  add("--open-mode",
      batch.open_mode.value_or(mode) == kube::OpenMode::kAppend ? "append" : "truncate");
  if (is_installed) words.push_back("--installed");
  if (start.may_requeue) words.push_back("--may-requeue");
  add("--termination-log", termination_log);
  if (batch.signal) add_signal(words, *batch.signal, start.time_limit);
  words.push_back("--");
  for (const std::string& argument : batch.arguments) words.push_back(literal(argument));
  return words;
}

// Adds the volume of the launcher, with its content.
void add_volume(Json& spec, const char* kind, Json source) {
  Json& volumes = spec["volumes"];
  if (!volumes.is_array()) volumes = Json::array();
  volumes.push_back({{"name", kVolume}, {kind, std::move(source)}});
  Json& mounts = spec["containers"][0]["volumeMounts"];
  if (!mounts.is_array()) mounts = Json::array();
  mounts.push_back({{"name", kVolume}, {"mountPath", kDirectory}, {"readOnly", true}});
}

// Without the field it is the account that says so.
bool may_have_token(const Json& spec) {
  const auto mounts = spec.find("automountServiceAccountToken");
  return mounts == spec.end() || *mounts != false;
}

// Adds the init container that fills the volume, with no more rights than the Pod Security profile
// `restricted` allows, whatever the template's own containers do. Commands like squeue are copied,
// 22 MB, where they can log in.
void add_init_container(Json& spec, const std::string& image, bool has_token) {
  const Json mount{{"name", kVolume}, {"mountPath", kDirectory}};
  Json command{kProgram, "install", kDirectory};
  if (has_token) command.push_back("--commands");
  Json init{{"name", kVolume},
            {"image", image},
            {"command", std::move(command)},
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
}

bool has_mount(const Json& mounts, std::string_view place) {
  return std::ranges::any_of(mounts, [&](const Json& mount) {
    std::string path = kube::text_at(mount, "mountPath");
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    return path == place;
  });
}

// A profile may set PATH again, and BASH_ENV too (Lmod), which is why the launcher's own file is
// not enough. All profiles read a folder at their end. A file there is a volume's, since the root
// may be read-only; an image volume has none but folders.
void find_commands_after_profile(Json& pod) {
  Json& spec = pod["spec"];
  Json& mounts = spec["containers"][0]["volumeMounts"];
  // It may be read-only, and the file's place could not be made.
  if (has_mount(mounts, "/etc") || has_mount(mounts, kProfileFolder)) return;
  const std::string path = std::string{kProfileFolder} + "/" + kProfileFile;
  if (has_mount(mounts, path)) return;
  const std::string directory = kDirectory;
  // A bash that says what it does (-x) says nothing of this.
  pod["metadata"]["annotations"][kProfileAnnotation] = "{ case \":$PATH:\" in *\":" + directory +
                                                       ":\"*) ;; *) PATH=\"" + directory +
                                                       ":$PATH\" ;; esac; } 2>/dev/null\n";
  const std::string field = std::string{"metadata.annotations['"} + kProfileAnnotation + "']";
  const Json item{{"path", kProfileFile}, {"fieldRef", {{"fieldPath", field}}}};
  spec["volumes"].push_back(
      {{"name", kProfileVolume}, {"downwardAPI", {{"items", Json::array({item})}}}});
  mounts.push_back({{"name", kProfileVolume},
                    {"mountPath", path},
                    {"subPath", kProfileFile},
                    {"readOnly", true}});
}

// A container has 64 MiB of /dev/shm, which ends MPI and data loaders. A volume of memory counts as
// the job's memory, so it may be as large as that; without a limit of memory the node decides.
void enlarge_shared_memory(Json& spec, const std::optional<kube::Bytes>& memory) {
  Json& mounts = spec["containers"][0]["volumeMounts"];
  if (has_mount(mounts, kSharedMemory)) return;
  Json volume{{"medium", "Memory"}};
  if (memory) volume["sizeLimit"] = kube::format_bytes(*memory);
  spec["volumes"].push_back({{"name", kSharedMemoryVolume}, {"emptyDir", volume}});
  mounts.push_back({{"name", kSharedMemoryVolume}, {"mountPath", kSharedMemory}});
}

// SOURCE: recorded: there is no variable for all memory of the nodes.
bool is_per_node(const sched::MemoryRequest& memory) {
  const auto* per_node = std::get_if<sched::MemoryPerNode>(&memory);
  return per_node != nullptr && per_node->amount.value() > 0;
}

}  // namespace

base::Result<bool> add_launcher(Json& pod, const kube::Job& job, const PodSlot& slot,
                                const std::vector<std::string>& hosts, const PodLauncher& launcher,
                                const ScriptStart& start) {
  if (launcher.image.empty() && launcher.directory.empty()) {
    return base::invalid_argument(
        "spec.batch: this cluster has no launcher for batch scripts; the operator's option "
        "--launcher-image names the image that brings it");
  }
  const bool has_others = hosts.size() > 1;
  if (has_others && job.spec.network == kube::JobNetwork::kNone) {
    return base::invalid_argument(
        "spec.network: must not be None for a batch script on several nodes: its pods find each "
        "other by name");
  }
  const kube::JobBatch& batch = *job.spec.batch;
  Json& spec = pod["spec"];
  const bool is_of_image = launcher.directory.empty();
  const bool is_mounted = launcher.volume == ImageVolume::kTrue ||
                          (launcher.volume == ImageVolume::kAuto && start.mounts_images);
  const bool is_installed = is_of_image && !is_mounted;
  if (is_installed) {
    add_volume(spec, "emptyDir", Json::object());
    add_init_container(spec, launcher.image, may_have_token(spec));
  } else if (is_of_image) {
    add_volume(spec, "image", {{"reference", launcher.image}});
  }
  if (is_of_image) {
    enlarge_shared_memory(spec, slot.memory);
    find_commands_after_profile(pod);
  }
  spec["hostname"] = hosts[static_cast<std::size_t>(slot.node_index)];
  Json& container = spec["containers"][0];
  if (kube::text_at(container, "image").empty()) container["image"] = kImageOtherwise;
  const std::string directory = launcher.directory.empty() ? kDirectory : launcher.directory;
  container["command"] = Json::array({directory + kProgram});
  Json& env = container["env"];
  if (!env.is_array()) env = Json::array();
  if (slot.pod_index != 0) {
    container["args"] = Json::array({"wait"});
    join_pods(spec, job, slot, {launcher.dns, launcher.port, hosts, start.array_task});
    return is_installed;
  }
  // Where the template says nothing the launcher knows the place.
  container["args"] = script_arguments(batch, job.status.restarts.value_or(0) > 0, is_installed,
                                       start, kube::text_at(container, "terminationMessagePath"));
  add_parts(env, "KUBEGANG_SCRIPT", batch.script);
  add_parts(env, "KUBEGANG_ENVIRONMENT", lines_of(batch.environment));
  if (has_others) {
    join_pods(spec, job, slot, {launcher.dns, launcher.port, hosts, start.array_task});
  }
  return is_installed;
}

void set_batch_variables(Variables& variables, const kube::Job& job, const PodSlot& slot,
                         const std::vector<std::string>& hosts,
                         const sched::MemoryRequest& memory) {
  const kube::JobBatch& batch = *job.spec.batch;
  const kube::JobResources& resources = job.spec.resources;
  const bool has_tasks = resources.tasks || resources.tasks_per_node;
  const bool is_again = job.status.restarts.value_or(0) > 0;
  std::erase_if(variables, [&](const auto& variable) {
    const std::string& name = variable.first;
    if (name == "SLURM_NTASKS" || name == "SLURM_NPROCS") return !has_tasks;
    if (name == "SLURM_RESTART_COUNT") return !is_again;
    return name == "SLURM_MEM_PER_NODE" && !is_per_node(memory);
  });
  for (auto& [name, value] : variables) {
    if (name == "SLURM_JOB_NAME") value = kube::shown_name(job);
    if (name == "SLURM_JOB_NODELIST" || name == "SLURM_NODELIST") {
      value = slurm::compress_hostlist(hosts);
    }
    // The number that was asked for: with --ntasks-per-node there may be more places than tasks.
    const bool is_tasks = name == "SLURM_NTASKS" || name == "SLURM_NPROCS";
    if (is_tasks && resources.tasks) value = std::to_string(*resources.tasks);
    if (name == "SLURMD_NODENAME") value = hosts[static_cast<std::size_t>(slot.node_index)];
  }
  variables.emplace_back("SLURM_GTIDS", std::to_string(slot.first_task));
  // sbatch says where it was called, which --chdir does not change.
  const bool is_told = std::ranges::any_of(batch.environment, [](const kube::BatchVariable& each) {
    return each.name == "SLURM_SUBMIT_DIR";
  });
  if (!batch.working_directory.empty() && !is_told) {
    variables.emplace_back("SLURM_SUBMIT_DIR", batch.working_directory);
  }
  if (const auto* per_cpu = std::get_if<sched::MemoryPerCpu>(&memory)) {
    variables.emplace_back("SLURM_MEM_PER_CPU", std::to_string(per_cpu->amount.value()));
  }
}

}  // namespace control
