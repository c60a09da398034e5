#include "translation/pod_identity.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace control {
namespace {

using Json = nlohmann::json;

constexpr std::array kVariables = {"NAMESPACE", "USER", "UID", "GID", "HOME"};

bool is_variable(const std::string& name) {
  return std::ranges::any_of(kVariables, [&](const char* each) { return name == each; });
}

// Returns "" where there is no value.
std::string value_of(const std::string& name, const DefaultsInForce& in_force,
                     const std::string& ns) {
  if (name == "NAMESPACE") return ns;
  if (!in_force.identity) return "";
  const kube::PodIdentity& identity = *in_force.identity;
  if (name == "USER") return identity.user;
  if (name == "HOME") return identity.home;
  return std::to_string(name == "UID" ? identity.uid : identity.gid);
}

// Says who reads the text after this: the kubelet wants escapes as they are.
enum class Reader { kNobody, kKubelet };

// Calls replace(name) for each $(name) and returns the text with what it says instead; nullopt:
// the variable stays. As Kubernetes reads a container's variables: $$ is an escaped $.
template <typename Replace>
std::string expanded(const std::string& text, Reader reader, const Replace& replace) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string two = text.substr(i, 2);
    const std::size_t end = two == "$(" ? text.find(')', i) : std::string::npos;
    if (two == "$$") {
      result += reader == Reader::kKubelet ? "$$" : "$";
      ++i;
    } else if (end != std::string::npos) {
      const std::optional<std::string> value = replace(text.substr(i + 2, end - i - 2));
      result += value ? *value : text.substr(i, end + 1 - i);
      i = end;
    } else {
      result += text[i];
    }
  }
  return result;
}

// Calls change(text, reader) for each text below `value` that may have variables.
template <typename Change>
void for_each_text(Json& value, Reader reader, const Change& change) {
  if (value.is_string()) {
    change(value.get_ref<std::string&>(), reader);
  } else if (value.is_structured()) {
    for (const auto& [name, inner] : value.items()) {
      for_each_text(inner, name == "subPathExpr" ? Reader::kKubelet : reader, change);
    }
  }
}

template <typename Change>
void for_each_text(kube::PodDefaults& defaults, const Change& change) {
  const auto has_none = [](const kube::RawJson& raw) {
    return raw.text().find('$') == std::string::npos;
  };
  for (kube::RawJson* raw : {&defaults.volumes, &defaults.volume_mounts}) {
    if (has_none(*raw)) continue;
    Json list = raw->json();
    for_each_text(list, Reader::kNobody, change);
    *raw = kube::RawJson{list};
  }
  if (has_none(defaults.env)) return;
  Json env = defaults.env.json();
  for (Json& each : env) {
    if (each.contains("value")) for_each_text(each["value"], Reader::kKubelet, change);
  }
  defaults.env = kube::RawJson{env};
}

}  // namespace

std::optional<kube::PodIdentity> identity_of(const kube::AccountSpec& account,
                                             const std::string& ns) {
  for (const kube::AccountNamespace& each : account.namespaces) {
    if (each.name != ns || !each.identity) continue;
    kube::PodIdentity identity = *each.identity;
    if (identity.user.empty()) identity.user = ns;
    return identity;
  }
  return std::nullopt;
}

base::Status add_pod_defaults(Json& pod_spec, const kube::Job& job, DefaultsInForce in_force) {
  std::string missing;
  if (in_force.defaults && takes_pod_defaults(job.spec)) {
    for_each_text(*in_force.defaults, [&](std::string& text, Reader reader) {
      text = expanded(text, reader, [&](const std::string& name) -> std::optional<std::string> {
        if (!is_variable(name)) return std::nullopt;
        std::string value = value_of(name, in_force, job.metadata.ns);
        if (value.empty()) missing = name;
        return value;
      });
    });
  }
  if (missing.empty()) return apply_pod_defaults(pod_spec, job.spec, in_force);
  return base::invalid_argument("partition " + in_force.partition + " puts $(" + missing +
                                ") into the pods, and no account says " +
                                (missing == "HOME" ? "where the home of the namespace's user is"
                                                   : "under which user the namespace's pods run") +
                                "; ask your administrator for an identity (Account, "
                                "spec.namespaces[].identity)");
}

std::set<std::string> unknown_variables(const kube::RawJson& list) {
  std::set<std::string> unknown;
  Json texts = list.json();
  for_each_text(texts, Reader::kNobody, [&](const std::string& text, Reader reader) {
    (void)expanded(text, reader, [&](const std::string& name) -> std::optional<std::string> {
      if (reader == Reader::kNobody && !is_variable(name)) unknown.insert(name);
      return std::nullopt;
    });
  });
  return unknown;
}

}  // namespace control
