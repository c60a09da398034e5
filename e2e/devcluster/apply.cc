#include "e2e/devcluster/apply.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "kube/api_error.h"
#include "kube/testing/api_server/yaml_json.h"

namespace devcluster {
namespace {

using nlohmann::json;

// Returns the plural under which the API serves a kind. Enough for the kinds of our examples: QOS
// is its own plural, and every other one takes an s.
std::string plural_of(const std::string& kind) {
  std::string out = kind;
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out == "qos" ? out : out + "s";
}

// Returns the text at a JSON pointer, "" if it is absent.
std::string text_at(const json& object, const char* pointer) {
  return object.value(json::json_pointer{pointer}, std::string{});
}

}  // namespace

// Returns each document of the YAML file, as JSON; the reader has turned YAML into it.
base::Result<std::vector<json>> read_manifests(const std::string& path) {
  const base::Result<std::vector<std::string>> documents = read_yaml_file(path);
  if (!documents.ok()) return documents.error();
  std::vector<json> out;
  for (const std::string& document : *documents) out.push_back(json::parse(document));
  return out;
}

// Returns the path of the kind's objects, "/apis/<group>/<version>[/namespaces/<ns>]/<plural>". The
// core group has no name, only "v1".
std::string collection_path(const json& object) {
  const std::string version = text_at(object, "/apiVersion");
  std::string path = (version == "v1" ? "/api/" : "/apis/") + version;
  if (const std::string ns = text_at(object, "/metadata/namespace"); !ns.empty()) {
    path += "/namespaces/" + ns;
  }
  return path + "/" + plural_of(text_at(object, "/kind"));
}

// Makes one request, once: the API server is in this process, and a failure is the test's or
// demo's. `body` null: none. An answer that is not a 2xx becomes the error that its Status says.
base::Result<json> call_api(kube::Transport& transport, kube::Method method,
                            const std::string& path, const json& body) {
  kube::Request request{.method = method, .path = path};
  if (!body.is_null()) request.body = body.dump();
  if (method == kube::Method::kPatch) request.content_type = "application/merge-patch+json";
  const base::Result<kube::Response> response = transport.send(request);
  if (!response.ok()) return response.error();
  if (response->status < 200 || response->status >= 300) {
    return kube::error_from_response(*response, request.path);
  }
  return json::parse(response->body, nullptr, false);
}

base::Result<json> get_api(kube::Transport& transport, const std::string& path) {
  return call_api(transport, kube::Method::kGet, path, nullptr);
}

// Create first, and merge only if the object exists: an apply by get and create would need the same
// two requests and could lose a race between them.
base::Status apply_object(kube::Transport& transport, const json& object) {
  // Strict: a field that is misspelled in an example must fail here and not be dropped.
  const std::string query = "?fieldValidation=Strict&fieldManager=kubegang-devcluster";
  const std::string collection = collection_path(object);
  const base::Result<json> created =
      call_api(transport, kube::Method::kPost, collection + query, object);
  if (created.ok() || created.error().code != base::Code::kAlreadyExists) return created.status();
  return call_api(transport, kube::Method::kPatch,
                  collection + "/" + text_at(object, "/metadata/name") + query, object)
      .status();
}

}  // namespace devcluster
