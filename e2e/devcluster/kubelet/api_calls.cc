#include "e2e/devcluster/kubelet/api_calls.h"

#include <nlohmann/json.hpp>

#include "kube/api/event.h"
#include "kube/api/node.h"
#include "kube/base64.h"

namespace devcluster {

using base::Code;
using base::Error;
using nlohmann::json;

// Two writes, and the second may be lost in a crash: the next start makes it again.
base::Status create_or_adopt_node(const kube::Client& client, const json& node) {
  const auto created = client.create_json<kube::Node>("", node);
  // A Node of that name is there already, from an earlier start: its status is written over.
  if (!created.ok() && created.error().code != Code::kAlreadyExists) return created.error();
  // Create does not take the status of a kind with a status subresource.
  return client
      .patch_status<kube::Node>({.name = node["metadata"]["name"].get<std::string>()},
                                {{"status", node["status"]}})
      .status();
}

// The UID makes it conditional: kConflict if another pod has the name by now.
base::Status patch_pod_status(const kube::Client& client, const kube::Pod& pod, const json& patch) {
  return client
      .patch_status<kube::Pod>(kube::key_of(pod.metadata), patch, {.uid = pod.metadata.uid})
      .status();
}

// Makes the second deletion of a pod's life. The first, with a grace period, only asks for its end;
// kubelet removes the object when its processes are gone.
base::Status delete_pod_now(const kube::Client& client, const kube::Pod& pod) {
  const base::Status status =
      client.remove<kube::Pod>(kube::key_of(pod.metadata),
                               {.uid = pod.metadata.uid, .grace_period = std::chrono::seconds{0}});
  // A conflict: another pod has the name by now, this one is gone.
  if (!status.ok() && status.error().code == Code::kConflict) {
    return Error{Code::kNotFound, status.error().message};
  }
  return status;
}

// The name is made by the API server, so the same event may be written again.
base::Status create_pod_event(const kube::Client& client, const kube::Pod& pod,
                              const std::string& reason, const std::string& message,
                              base::Instant now) {
  return client
      .create(
          kube::Event{.metadata = {.generate_name = pod.metadata.name + ".", .ns = pod.metadata.ns},
                      .involved_object = {.api_version = "v1",
                                          .kind = "Pod",
                                          .ns = pod.metadata.ns,
                                          .name = pod.metadata.name,
                                          .uid = pod.metadata.uid},
                      .type = "Normal",
                      .reason = reason,
                      .message = message,
                      .source = {.component = "kubelet", .host = node_of(pod)},
                      .first_timestamp = now,
                      .last_timestamp = now})
      .status();
}

// The messages are kubelet's, which users see in the status of a container that waits.
// kNotFound: there is no such object, or it lacks the key.
base::Result<std::string> ApiKeyLookup::find(Kind kind, const std::string& ns,
                                             const kube::KeySelector& key) {
  const bool secret = kind == Kind::kSecret;
  const std::string name = secret ? "secret" : "configmap";
  // Kinds are named as in paths: "secrets" and "configmaps".
  const base::Result<json> found = client_.call_json(
      kube::Method::kGet, "/api/v1/namespaces/" + ns + "/" + name + "s/" + key.name);
  if (!found.ok()) {
    if (found.error().code != Code::kNotFound) return found.error();
    return Error{Code::kNotFound, name + " \"" + key.name + "\" not found"};
  }
  const auto data = found->find("data");
  if (data == found->end() || !data->contains(key.key)) {
    return Error{Code::kNotFound,
                 "couldn't find key " + key.key + " in " + name + " " + ns + "/" + key.name};
  }
  const std::string text = (*data)[key.key].get<std::string>();
  // Secrets are stored encoded, ConfigMaps are plain.
  return secret ? kube::decode_base64(text).value_or("") : text;
}

}  // namespace devcluster
