#include "cli/cluster/pod_options.h"

#include <yaml-cpp/yaml.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "cli/files.h"
#include "kube/api/json_text.h"
#include "slurm/text.h"

namespace cli {
namespace {

using base::invalid_argument;

constexpr std::size_t kTemplateBytesMax = 1U << 20U;
constexpr int kDepthMax = 64;

// Returns a plain word as YAML's core schema reads it: null, a boolean, a number, else text.
nlohmann::json plain(const std::string& text) {
  if (text.empty() || text == "~" || text == "null") return nullptr;
  if (text == "true" || text == "false") return text == "true";
  const char* const end = text.data() + text.size();
  std::int64_t whole = 0;
  if (const auto read = std::from_chars(text.data(), end, whole);
      read.ec == std::errc{} && read.ptr == end) {
    return whole;
  }
  double number = 0;
  const bool is_number = text.find_first_not_of("0123456789.+-eE") == std::string::npos;
  if (const auto read = std::from_chars(text.data(), end, number);
      is_number && read.ec == std::errc{} && read.ptr == end) {
    return number;
  }
  return text;
}

base::Result<nlohmann::json> json_of(const YAML::Node& node, int depth) {
  if (depth > kDepthMax) return invalid_argument("nested too deeply");
  nlohmann::json out = nullptr;
  if (node.IsScalar())
    return node.Tag() == "!" ? nlohmann::json(node.Scalar()) : plain(node.Scalar());
  if (node.IsSequence()) out = nlohmann::json::array();
  if (node.IsMap()) out = nlohmann::json::object();
  for (const auto& each : node) {
    base::Result<nlohmann::json> value = json_of(node.IsMap() ? each.second : each, depth + 1);
    if (!value) return value;
    if (node.IsMap()) {
      out[each.first.as<std::string>()] = std::move(value).value();
    } else {
      out.push_back(std::move(value).value());
    }
  }
  return out;
}

// Returns a PodTemplateSpec, or an object that has one: a PodTemplate, or a Job with spec.template.
base::Result<nlohmann::json> read_template(const std::string& path) {
  const base::Result<std::string> text = read_file(path, kTemplateBytesMax);
  if (!text) return text.error();
  base::Result<nlohmann::json> read = nlohmann::json{};
  try {
    read = json_of(YAML::Load(*text), 0);
  } catch (const YAML::Exception& problem) {
    return invalid_argument(path + ": " + problem.what());
  }
  if (!read) return read.error().with_context(path);
  nlohmann::json object = std::move(read).value();
  if (object.is_object() && object.contains("spec") && object["spec"].contains("template")) {
    object = nlohmann::json(object["spec"]["template"]);
  }
  if (object.is_object() && object.contains("template"))
    object = nlohmann::json(object["template"]);
  const bool has_containers =
      object.is_object() && object.contains("spec") && object["spec"].is_object() &&
      object["spec"].contains("containers") && object["spec"]["containers"].is_array() &&
      !object["spec"]["containers"].empty() && object["spec"]["containers"][0].is_object();
  if (!has_containers) {
    return invalid_argument(path + ": must be a pod template with spec.containers");
  }
  nlohmann::json pod_template{{"spec", object["spec"]}};
  if (object.contains("metadata")) pod_template["metadata"] = object["metadata"];
  return pod_template;
}

// SOURCE: pyxis: [docker://][REGISTRY#]IMAGE[:TAG]; a path is a file of enroot.
base::Result<std::string> image_of_pyxis(std::string image) {
  constexpr std::string_view kScheme = "docker://";
  if (image.starts_with(kScheme)) image.erase(0, kScheme.size());
  if (image.starts_with('/') || image.starts_with('.') || image.ends_with(".sqsh")) {
    return invalid_argument("image " + slurm::in_quotes(image) +
                            ": is a file of enroot; push the image to a registry and name it");
  }
  if (const std::size_t hash = image.find('#'); hash != std::string::npos) image[hash] = '/';
  return image;
}

// Returns the name of the pod's volume with this source, and adds it if there is none: a pod cannot
// have a claim twice.
std::string volume_of(nlohmann::json& spec, nlohmann::json volume) {
  nlohmann::json& volumes = spec["volumes"];
  if (!volumes.is_array()) volumes = nlohmann::json::array();
  for (const nlohmann::json& other : volumes) {
    volume["name"] = kube::text_at(other, "name");
    if (volume == other) return volume["name"];
  }
  volume["name"] = "submit-" + std::to_string(volumes.size());
  volumes.push_back(volume);
  return volume["name"];
}

// SOURCE[:PATH[:ro|rw]] of a volume or, with pyxis' flags, of a container's mount. A source that
// begins with / is a folder of the node, any other the name of a claim.
base::Status add_volume(nlohmann::json& spec, const std::string& option, const std::string& text) {
  const std::vector<std::string> parts = slurm::split(text, ':');
  const auto wrong = [&](const std::string& advice) {
    return invalid_argument(option + " " + slurm::in_quotes(text) + ": " + advice);
  };
  const std::string& source = parts[0];
  const std::string path = parts.size() > 1 ? parts[1] : source;
  const std::string flags = parts.size() > 2 ? parts[2] : "";
  if (source.empty() || !path.starts_with('/') || parts.size() > 3) {
    return wrong("must be CLAIM:PATH or /FOLDER:PATH, with :ro behind it for reading only");
  }
  bool reads_only = false;
  for (const std::string& flag : slurm::split(flags, '+')) {
    if (flag == "ro") {
      reads_only = true;
    } else if (!flag.empty() && flag != "rw" && flag != "bind" && flag != "rbind") {
      return wrong("unknown flag " + flag + "; ro and rw are possible");
    }
  }
  const std::string name =
      volume_of(spec, source.starts_with('/')
                          ? nlohmann::json{{"hostPath", {{"path", source}}}}
                          : nlohmann::json{{"persistentVolumeClaim", {{"claimName", source}}}});
  nlohmann::json mount{{"name", name}, {"mountPath", path}};
  if (reads_only) mount["readOnly"] = true;
  nlohmann::json& mounts = spec["containers"][0]["volumeMounts"];
  if (!mounts.is_array()) mounts = nlohmann::json::array();
  mounts.push_back(std::move(mount));
  return {};
}

base::Status add_variable(nlohmann::json& container, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos) {
    return invalid_argument("--env " + slurm::in_quotes(text) + ": must be NAME=VALUE");
  }
  // kubelet would take $(B) for a reference.
  std::string value;
  for (const char c : text.substr(equals + 1)) value.append(c == '$' ? 2 : 1, c);
  nlohmann::json& env = container["env"];
  if (!env.is_array()) env = nlohmann::json::array();
  env.push_back({{"name", text.substr(0, equals)}, {"value", value}});
  return {};
}

}  // namespace

base::Result<std::optional<std::string>> long_value(std::span<const std::string> arguments,
                                                    std::size_t& i, const std::string& name) {
  const std::string& word = arguments[i];
  const bool joined = word.substr(0, name.size() + 1) == name + "=";
  if (!joined && word != name) return std::optional<std::string>{};
  std::string value;
  if (joined) value = word.substr(name.size() + 1);
  if (!joined && i + 1 < arguments.size()) value = arguments[++i];
  if (value.empty()) return invalid_argument(name + ": a value is missing");
  return std::optional<std::string>{value};
}

base::Result<bool> read_pod_option(std::span<const std::string> arguments, std::size_t& i,
                                   PodOptions& options) {
  const std::pair<const char*, std::string*> texts[] = {
      {"--template", &options.template_file}, {"--service-account", &options.service_account}};
  const std::pair<const char*, std::vector<std::string>*> lists[] = {{"--volume", &options.volumes},
                                                                     {"--env", &options.variables}};
  for (const auto& [name, text] : texts) {
    const auto value = long_value(arguments, i, name);
    if (!value) return value.error();
    if (!*value) continue;
    *text = **value;
    return true;
  }
  for (const auto& [name, list] : lists) {
    const auto value = long_value(arguments, i, name);
    if (!value) return value.error();
    if (!*value) continue;
    list->push_back(**value);
    return true;
  }
  return false;
}

base::Result<nlohmann::json> pod_template_of(const PodOptions& options,
                                             const slurm::BatchOptions& batch,
                                             const std::string& image_otherwise) {
  base::Result<nlohmann::json> made =
      options.template_file.empty()
          ? nlohmann::json{{"spec", {{"containers", nlohmann::json::array({{{"name", "main"}}})}}}}
          : read_template(options.template_file);
  if (!made) return made.error().with_context("--template");
  nlohmann::json& spec = (*made)["spec"];
  nlohmann::json& container = spec["containers"][0];
  std::string image;
  if (batch.container_image) {
    const auto named = image_of_pyxis(*batch.container_image);
    if (!named) return named.error();
    image = *named;
  }
  if (image.empty() && !container.contains("image")) image = image_otherwise;
  if (!image.empty()) container["image"] = image;
  for (const std::string& volume : options.volumes) {
    const base::Status status = add_volume(spec, "--volume", volume);
    if (!status) return status.error();
  }
  for (const std::string& mount : slurm::split(batch.container_mounts.value_or(""), ',')) {
    if (mount.empty()) continue;
    const base::Status status = add_volume(spec, "--container-mounts", mount);
    if (!status) return status.error();
  }
  for (const std::string& variable : options.variables) {
    const base::Status status = add_variable(container, variable);
    if (!status) return status.error();
  }
  // A batch program has no business with the API server: its pods get no token unless the user asks
  // for one. So users who may not create pods may submit it (the chart's admission policies).
  if (!options.service_account.empty()) {
    spec["serviceAccountName"] = options.service_account;
    spec["automountServiceAccountToken"] = true;
  } else if (!spec.contains("automountServiceAccountToken")) {
    spec["automountServiceAccountToken"] = false;
  }
  return made;
}

}  // namespace cli
