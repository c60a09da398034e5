#include "kube/testing/api_server/rest.h"

#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

namespace devcluster {

// A binding and an eviction are answered by a Status with code 201, and not by the pod that they
// change.
RestResult created_by_subresource() {
  RestResult result;
  result.code = 201;
  result.verbatim =
      std::make_shared<const nlohmann::json>(nlohmann::json{{"kind", "Status"},
                                                            {"apiVersion", "v1"},
                                                            {"metadata", nlohmann::json::object()},
                                                            {"status", "Success"},
                                                            {"code", 201}});
  return result;
}

Rest::Rest(const kube::Clock& clock, const ApiServerOptions& options)
    : clock_{clock}, options_{options}, prng_{options.seed}, store_{options.history_changes_max} {}

// 1. refuse paths that do not fit the scope of the type, 2. pods' own subresources, 3. other
//    subresources: only the status, 4. the verb.
Outcome<RestResult> Rest::handle(const RestRequest& request) {
  const RequestInfo& info = request.info;
  const ResourceType& type = *request.type;
  if (!type.namespaced && !info.ns.empty()) return no_such_path();
  if (type.namespaced && !info.name.empty() && info.ns.empty()) return no_such_path();
  if (info.subresource == "eviction" && type.plural == "pods" && !type.custom) {
    return info.verb == "create" ? evict(request) : Outcome<RestResult>{method_not_allowed()};
  }
  if (info.subresource == "binding" && type.plural == "pods" && !type.custom) {
    return info.verb == "create" ? bind(request) : Outcome<RestResult>{method_not_allowed()};
  }
  const bool status = info.subresource == "status" && type.has_status;
  if (!info.subresource.empty() && !status) {
    if (type.custom || type.plural != "pods") return no_such_path();
    return bad_request("pods/" + info.subresource +
                       " is not served by this development API server");
  }
  if (info.verb == "get") return get(request);
  if (info.verb == "update") return replace(request);
  if (info.verb == "patch" && !info.name.empty()) return patch(request);
  if (status) return method_not_allowed();
  if (info.verb == "list") return list(request);
  if (info.verb == "watch") return watch(request);
  if (info.verb == "create" && info.name.empty()) return create(request);
  if (info.verb == "delete") return remove(request);
  if (info.verb == "deletecollection") return remove_collection(request);
  return method_not_allowed();
}

}  // namespace devcluster
