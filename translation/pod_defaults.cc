#include "translation/pod_defaults.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "kube/api/json_text.h"
#include "translation/pod_identity.h"

namespace control {
namespace {

using Json = nlohmann::json;
using base::invalid_argument;

// Returns the list under `name`, made if there is none.
Json& list_at(Json& object, const char* name) {
  Json& list = object[name];
  if (!list.is_array()) list = Json::array();
  return list;
}

Json& object_in(Json& object, const char* name) {
  Json& inner = object[name];
  if (!inner.is_object()) inner = Json::object();
  return inner;
}

bool has_entry(const Json& list, const char* key, const std::string& value) {
  return std::ranges::any_of(list,
                             [&](const Json& each) { return kube::text_at(each, key) == value; });
}

bool is_true_at(const Json& object, const char* name) {
  return object.is_object() && object.contains(name) && object[name] == true;
}

std::vector<Json*> containers_of(Json& pod_spec) {
  std::vector<Json*> all;
  for (const char* list : {"initContainers", "containers"}) {
    if (!pod_spec.contains(list)) continue;
    for (Json& container : pod_spec[list]) all.push_back(&container);
  }
  return all;
}

std::set<std::string> names_of_volumes(const Json& volumes) {
  std::set<std::string> names;
  for (const Json& volume : volumes) names.insert(kube::text_at(volume, "name"));
  return names;
}

std::set<std::string> claims_of(const Json& volumes) {
  std::set<std::string> claims;
  for (const Json& volume : volumes) {
    if (!volume.contains("persistentVolumeClaim")) continue;
    claims.insert(kube::text_at(volume["persistentVolumeClaim"], "claimName"));
  }
  return claims;
}

// Checks that the template has no volume of the defaults, by its name or by its claim: kubelet
// waits forever for a pod that has a claim twice.
base::Status check_reach(Json& pod_spec, const Json& defaults, const std::string& partition) {
  const std::set<std::string> volumes = names_of_volumes(defaults);
  const std::set<std::string> claims = claims_of(defaults);
  const auto refuse = [&](const std::string& field, const std::string& name) {
    return invalid_argument("template: " + field + " \"" + name + "\" is a volume of partition " +
                            partition + " (podDefaults); choose another name");
  };
  const Json& own = list_at(pod_spec, "volumes");
  for (const std::string& name : names_of_volumes(own)) {
    if (volumes.contains(name)) return refuse("volume", name);
  }
  for (const std::string& claim : claims_of(own)) {
    if (!claims.contains(claim)) continue;
    return invalid_argument("template: claim \"" + claim + "\" is one of partition " + partition +
                            " (podDefaults), which mounts it; a pod cannot have it twice: leave "
                            "it out");
  }
  for (Json* container : containers_of(pod_spec)) {
    for (const char* list : {"volumeMounts", "volumeDevices"}) {
      if (!container->contains(list)) continue;
      for (const Json& mount : (*container)[list]) {
        const std::string name = kube::text_at(mount, "name");
        if (volumes.contains(name)) return refuse(list, name);
      }
    }
  }
  return {};
}

// Checks for what a security context may not say beside an identity that counts.
base::Status check_user(const Json& context, const kube::PodIdentity& identity,
                        const std::string& where) {
  const auto refuse = [&](const std::string& field, const std::string& advice) {
    return invalid_argument("template: " + where + "securityContext." + field + ": " + advice);
  };
  const std::string who = " is the namespace's identity; leave it out";
  const std::pair<const char*, std::int64_t> numbers[] = {{"runAsUser", identity.uid},
                                                          {"runAsGroup", identity.gid}};
  for (const auto& [field, value] : numbers) {
    if (context.contains(field) && context[field] != value) {
      return refuse(field, std::to_string(value) + who);
    }
  }
  for (const char* field : {"privileged", "allowPrivilegeEscalation"}) {
    if (is_true_at(context, field)) {
      return refuse(field, "must not be true where the partition adds volumes or pull secrets");
    }
  }
  if (!kube::object_at(context, "capabilities").value("add", Json::array()).empty()) {
    return refuse("capabilities.add",
                  "must be empty where the partition adds volumes or pull secrets");
  }
  if (context.contains("fsGroup")) {
    return refuse("fsGroup", "would give the partition's volumes away; leave it out");
  }
  if (!context.contains("supplementalGroups")) return {};
  for (const Json& group : context["supplementalGroups"]) {
    const auto is_group = [&](std::int64_t own) { return group == own; };
    if (std::ranges::none_of(identity.groups, is_group)) {
      return refuse("supplementalGroups",
                    group.dump() + " is not a group of the namespace's identity; leave it out");
    }
  }
  return {};
}

base::Status check_users(Json& pod_spec, const kube::PodIdentity& identity) {
  base::Status status = check_user(object_in(pod_spec, "securityContext"), identity, "");
  for (Json* container : containers_of(pod_spec)) {
    const std::string where = "container " + kube::text_at(*container, "name") + ": ";
    if (status) status = check_user(object_in(*container, "securityContext"), identity, where);
  }
  return status;
}

// Everything in the pod runs under the identity, and nothing in it becomes another user.
void enforce(Json& pod_spec, const kube::PodIdentity& identity) {
  Json& context = object_in(pod_spec, "securityContext");
  context["runAsUser"] = identity.uid;
  context["runAsGroup"] = identity.gid;
  context["runAsNonRoot"] = true;
  context["supplementalGroups"] = identity.groups;
  for (Json* container : containers_of(pod_spec)) {
    Json& own = object_in(*container, "securityContext");
    own["allowPrivilegeEscalation"] = false;
    object_in(own, "capabilities")["drop"] = Json::array({"ALL"});
  }
}

void set_if_absent(Json& object, const char* name, const Json& value) {
  if (!object.contains(name)) object[name] = value;
}

// Sets what the template leaves open.
void suggest(Json& pod_spec, const kube::PodIdentity& identity) {
  Json& context = object_in(pod_spec, "securityContext");
  if (context.contains("runAsUser")) return;
  context["runAsUser"] = identity.uid;
  set_if_absent(context, "runAsGroup", identity.gid);
  if (!identity.groups.empty()) set_if_absent(context, "supplementalGroups", identity.groups);
}

// `wins`: over the template's own.
void set_identity_variables(Json& container, const kube::PodIdentity& identity, bool wins) {
  const std::pair<const char*, std::string> variables[] = {
      {"USER", identity.user},
      {"LOGNAME", identity.user},
      {"SLURM_JOB_USER", identity.user},
      {"SLURM_JOB_UID", std::to_string(identity.uid)},
      {"SLURM_JOB_GID", std::to_string(identity.gid)},
      {"HOME", identity.home}};
  Json& env = list_at(container, "env");
  for (const auto& [name, value] : variables) {
    if (value.empty()) continue;
    if (wins) {
      const std::string taken = name;
      for (std::size_t i = env.size(); i-- > 0;) {
        if (kube::text_at(env[i], "name") == taken) env.erase(i);
      }
    }
    if (!has_entry(env, "name", name)) env.push_back({{"name", name}, {"value", value}});
  }
}

// Entries of `defaults` whose `key` no entry of the list has.
void add_missing(Json& list, const Json& defaults, const char* key) {
  for (const Json& each : defaults) {
    if (!has_entry(list, key, kube::text_at(each, key))) list.push_back(each);
  }
}

void add_lists(Json& pod_spec, const kube::PodDefaults& defaults) {
  const Json mounts = defaults.volume_mounts.json();
  const Json env = defaults.env.json();
  for (Json& container : pod_spec["containers"]) {
    if (!mounts.empty()) add_missing(list_at(container, "volumeMounts"), mounts, "mountPath");
    if (!env.empty()) add_missing(list_at(container, "env"), env, "name");
  }
  for (const auto& [name, list] : {std::pair{"volumes", &defaults.volumes},
                                   {"imagePullSecrets", &defaults.image_pull_secrets}}) {
    if (!list->empty()) add_missing(list_at(pod_spec, name), list->json(), "name");
  }
  if (defaults.image.empty()) return;
  Json& first = pod_spec["containers"][0];
  if (kube::text_at(first, "image").empty()) first["image"] = defaults.image;
}

}  // namespace

// The API server judges the parts when a pod is made of them; here is what it cannot know.
std::vector<std::string> pod_defaults_problems(const kube::PodDefaults& defaults) {
  std::vector<std::string> problems;
  const auto add = [&](const std::string& field, const std::string& sentence) {
    problems.push_back("spec.podDefaults." + field + ": " + sentence);
  };
  const std::array<std::tuple<const char*, const kube::RawJson*, const char*>, 4> lists = {
      {{"imagePullSecrets", &defaults.image_pull_secrets, "name"},
       {"volumes", &defaults.volumes, "name"},
       {"volumeMounts", &defaults.volume_mounts, "mountPath"},
       {"env", &defaults.env, "name"}}};
  for (const auto& [field, raw, key] : lists) {
    if (raw->empty()) continue;
    const Json list = raw->json();
    if (!list.is_array()) {
      add(field, "must be a list");
      continue;
    }
    std::set<std::string> seen;
    for (const Json& each : list) {
      const std::string value = kube::text_at(each, key);
      if (value.empty()) add(field, std::string{"an entry has no "} + key);
      if (!seen.insert(value).second) add(field, "\"" + value + "\" is listed twice");
    }
  }
  for (const auto& [field, raw] :
       {std::pair{"volumes", &defaults.volumes}, {"volumeMounts", &defaults.volume_mounts}}) {
    for (const std::string& name : unknown_variables(*raw)) {
      add(field, "$(" + name + ") is not known; there are NAMESPACE, USER, UID, GID and HOME");
    }
  }
  const std::set<std::string> volumes = names_of_volumes(defaults.volumes.json());
  for (const std::string& name : volumes) {
    if (name.starts_with("kubegang-")) {
      add("volumes", "\"" + name + "\" may not begin with kubegang-; choose another name");
    }
  }
  for (const Json& mount : defaults.volume_mounts.json()) {
    const std::string name = kube::text_at(mount, "name");
    if (!volumes.contains(name)) {
      add("volumeMounts", "\"" + name + "\" is not one of the volumes; add it to them");
    }
  }
  const Json context = defaults.security_context.json();
  for (const char* field : {"runAsUser", "runAsGroup", "supplementalGroups"}) {
    if (context.is_object() && context.contains(field)) {
      add(std::string{"securityContext."} + field,
          "users and groups come from the identities of Accounts; remove it");
    }
  }
  return problems;
}

bool takes_pod_defaults(const kube::JobSpec& spec) {
  const auto otherwise = spec.batch ? kube::PodDefaultsUse::kUse : kube::PodDefaultsUse::kIgnore;
  return spec.pod_defaults.value_or(otherwise) == kube::PodDefaultsUse::kUse;
}

base::Status apply_pod_defaults(Json& pod_spec, const kube::JobSpec& spec,
                                const DefaultsInForce& in_force) {
  if (!takes_pod_defaults(spec)) return {};
  const kube::PodDefaults defaults = in_force.defaults.value_or(kube::PodDefaults{});
  const Json volumes = defaults.volumes.json();
  // 1.
  const std::set<std::string> names = names_of_volumes(volumes);
  if (const base::Status status = check_reach(pod_spec, volumes, in_force.partition); !status) {
    return status;
  }
  const bool is_trusted = !names.empty() || !defaults.image_pull_secrets.json().empty();
  const auto& identity = in_force.identity;
  // 2.
  if (is_trusted && !identity &&
      defaults.identity.value_or(kube::IdentityPolicy::kRequired) ==
          kube::IdentityPolicy::kRequired) {
    return invalid_argument("partition " + in_force.partition +
                            " adds volumes or pull secrets to pods, and no account says under "
                            "which user the namespace's pods run; ask your administrator for an "
                            "identity (Account, spec.namespaces[].identity)");
  }
  if (is_trusted && identity) {
    const base::Status status = check_users(pod_spec, *identity);
    if (!status) return status;
  }
  // 4. before 3.: an identity is an administrator's word, too, and nearer to the job.
  Json& context = object_in(pod_spec, "securityContext");
  const Json wanted = defaults.security_context.json();
  if (wanted.is_object()) {
    for (const auto& [name, value] : wanted.items()) {
      if (is_trusted || !context.contains(name)) context[name] = value;
    }
  }
  if (identity) {
    if (is_trusted) {
      enforce(pod_spec, *identity);
    } else {
      suggest(pod_spec, *identity);
    }
    for (Json* container : containers_of(pod_spec)) {
      set_identity_variables(*container, *identity, is_trusted);
    }
  }
  add_lists(pod_spec, defaults);
  return {};
}

}  // namespace control
