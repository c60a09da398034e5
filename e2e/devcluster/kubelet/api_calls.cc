#include "e2e/devcluster/kubelet/api_calls.h"

#include <openssl/evp.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "e2e/devcluster/kubelet/pod_status.h"
#include "kube/api_error.h"

namespace devcluster {
namespace {

using base::Code;
using base::Error;
using nlohmann::json;

constexpr const char* kMergePatch = "application/merge-patch+json";

// The answer's body, or the error that its status is.
base::Result<json> call(kube::Transport& transport, const kube::Request& request) {
  const base::Result<kube::Response> response = transport.send(request);
  if (!response.ok()) return response.error();
  if (response->status < 200 || response->status >= 300) {
    return kube::error_from_response(*response);
  }
  return json::parse(response->body, nullptr, false);
}

std::string pod_path(const PodSpec& pod) {
  return "/api/v1/namespaces/" + pod.namespace_name + "/pods/" + pod.name;
}

std::string decode_base64(const std::string& text) {
  std::string out(text.size(), '\0');
  const int length = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                     reinterpret_cast<const unsigned char*>(text.data()),
                                     static_cast<int>(text.size()));
  if (length < 0) return {};
  const auto padding =
      std::count(text.end() - std::min<std::ptrdiff_t>(2, std::ssize(text)), text.end(), '=');
  out.resize(static_cast<std::size_t>(length - padding));
  return out;
}

}  // namespace

base::Status create_or_adopt_node(kube::Transport& transport, const json& node) {
  const base::Result<json> created = call(
      transport, {.method = kube::Method::kPost, .path = "/api/v1/nodes", .body = node.dump()});
  if (!created.ok() && created.error().code != Code::kAlreadyExists) return created.error();
  // Create does not take the status of a kind with a status subresource.
  return patch_node_status(transport, node["metadata"]["name"].get<std::string>(),
                           {{"status", node["status"]}});
}

base::Status patch_node_status(kube::Transport& transport, const std::string& node,
                               const json& patch) {
  return call(transport, {.method = kube::Method::kPatch,
                          .path = "/api/v1/nodes/" + node + "/status",
                          .body = patch.dump(),
                          .content_type = kMergePatch})
      .status();
}

base::Status patch_pod_status(kube::Transport& transport, const PodSpec& pod, const json& patch) {
  return call(transport, {.method = kube::Method::kPatch,
                          .path = pod_path(pod) + "/status",
                          .body = patch.dump(),
                          .content_type = kMergePatch})
      .status();
}

base::Status delete_pod_now(kube::Transport& transport, const PodSpec& pod) {
  const json options{{"apiVersion", "v1"},
                     {"kind", "DeleteOptions"},
                     {"gracePeriodSeconds", 0},
                     {"preconditions", {{"uid", pod.uid}}}};
  const base::Status status =
      call(transport,
           {.method = kube::Method::kDelete, .path = pod_path(pod), .body = options.dump()})
          .status();
  // A conflict: another pod has the name by now, ours is gone.
  if (!status.ok() && status.error().code == Code::kConflict) {
    return Error{Code::kNotFound, status.error().message};
  }
  return status;
}

base::Status create_pod_event(kube::Transport& transport, const PodSpec& pod,
                              const std::string& reason, const std::string& message,
                              base::Instant now) {
  const std::string time = rfc3339_seconds(now);
  const json event{
      {"apiVersion", "v1"},
      {"kind", "Event"},
      {"metadata", {{"namespace", pod.namespace_name}, {"generateName", pod.name + "."}}},
      {"involvedObject",
       {{"apiVersion", "v1"},
        {"kind", "Pod"},
        {"namespace", pod.namespace_name},
        {"name", pod.name},
        {"uid", pod.uid}}},
      {"reason", reason},
      {"message", message},
      {"type", "Normal"},
      {"count", 1},
      {"firstTimestamp", time},
      {"lastTimestamp", time},
      {"source", {{"component", "kubelet"}, {"host", pod.node}}},
      {"reportingComponent", "kubelet"},
      {"reportingInstance", pod.node}};
  return call(transport, {.method = kube::Method::kPost,
                          .path = "/api/v1/namespaces/" + pod.namespace_name + "/events",
                          .body = event.dump()})
      .status();
}

std::optional<base::Duration> deletion_grace(const json& pod) {
  const auto metadata = pod.find("metadata");
  if (metadata == pod.end() || !metadata->contains("deletionTimestamp")) return std::nullopt;
  return std::chrono::seconds{metadata->value("deletionGracePeriodSeconds", std::int64_t{30})};
}

base::Result<std::string> ApiKeyLookup::find(EnvVar::Source source,
                                             const std::string& namespace_name,
                                             const std::string& object, const std::string& key) {
  const bool secret = source == EnvVar::Source::kSecret;
  const std::string kind = secret ? "secret" : "configmap";
  const base::Result<json> found = call(
      transport_, {.path = "/api/v1/namespaces/" + namespace_name + "/" + kind + "s/" + object});
  if (!found.ok()) {
    if (found.error().code != Code::kNotFound) return found.error();
    return Error{Code::kNotFound, kind + " \"" + object + "\" not found"};
  }
  const auto data = found->find("data");
  if (data == found->end() || !data->contains(key)) {
    return Error{Code::kNotFound,
                 "couldn't find key " + key + " in " + kind + " " + namespace_name + "/" + object};
  }
  const std::string text = (*data)[key].get<std::string>();
  return secret ? decode_base64(text) : text;
}

}  // namespace devcluster
