#include <utility>

#include <nlohmann/json.hpp>

#include "kube/api/time_format.h"
#include "kube/testing/api_server/json_text.h"
#include "kube/testing/api_server/rest.h"

// How an object goes. A deletion without finalizers and grace erases it at once. Otherwise it only
// writes a deletionTimestamp, and the object goes with a later write: kubelet's deletion with grace
// period 0, or the removal of the last finalizer. A namespace waits for its contents. Each erased
// UID is noted, and when the request is done, the garbage collector deletes (or orphans) the
// objects that named it as their owner, whose UIDs may in turn be noted. On a real server the
// collector is another program and comes later; here it runs before the answer, so that tests need
// not wait.
namespace devcluster {
namespace {

using nlohmann::json;

const GroupResource kNamespaces{"", "namespaces"};

json success(const ResourceType& type, const json& object) {
  json details = {{"name", object["metadata"]["name"]},
                  {"kind", type.plural},
                  {"uid", object["metadata"]["uid"]}};
  if (!type.group.empty()) details["group"] = type.group;
  return {{"kind", "Status"},
          {"apiVersion", "v1"},
          {"metadata", json::object()},
          {"status", "Success"},
          {"details", std::move(details)}};
}

// Kinds whose deletion is answered with the object instead of a Status.
bool returns_object(const ResourceType& type) {
  return type.plural == "pods" || type.plural == "services" || type.plural == "namespaces" ||
         type.plural == "serviceaccounts";
}

bool has_finalizers(const json& object) {
  return !object["metadata"].value("finalizers", json::array()).empty();
}

}  // namespace

// Reads body and query; the query wins, except that it only fills in the propagation. Foreground
// deletion is taken as background: the difference is the order in which owner and dependents go.
Outcome<Rest::DeleteOptions> Rest::delete_options(const RestRequest& request) const {
  DeleteOptions options;
  json body = json::object();
  if (!request.api.http.body.empty()) {
    std::vector<std::string> duplicates;
    auto parsed = parse_object(request.api.http.body, request.api.http.content_type, duplicates);
    if (!parsed.ok()) return parsed.error();
    body = std::move(*parsed);
    if (body.contains("deleteOptions")) body = json(body["deleteOptions"]);  // of an Eviction
  }
  const Query& query = request.info.query;
  try {
    if (body.contains("gracePeriodSeconds") && !body["gracePeriodSeconds"].is_null()) {
      options.grace_seconds = body["gracePeriodSeconds"].get<std::int64_t>();
    }
    const json preconditions = body.value("preconditions", json::object());
    if (preconditions.contains("uid")) options.uid = preconditions["uid"].get<std::string>();
    if (preconditions.contains("resourceVersion")) {
      options.resource_version = preconditions["resourceVersion"].get<std::string>();
    }
    std::string propagation = body.value("propagationPolicy", "");
    if (propagation.empty()) propagation = query.get("propagationPolicy");
    if (propagation == "Orphan" || body.value("orphanDependents", false)) {
      options.propagation = Propagation::kOrphan;
    } else if (!propagation.empty() && propagation != "Background" && propagation != "Foreground") {
      return invalid("meta.k8s.io", "DeleteOptions", "",
                     {{"FieldValueNotSupported", "propagationPolicy",
                       "Unsupported value: \"" + propagation +
                           "\": supported values: \"Foreground\", \"Background\", \"Orphan\""}});
    }
    for (const json& entry : body.value("dryRun", json::array())) {
      if (entry == "All") options.dry_run = true;
    }
  } catch (const json::exception& error) {
    return bad_request(std::string{"DeleteOptions: "} + error.what());
  }
  if (const auto grace = query.number("gracePeriodSeconds")) options.grace_seconds = grace;
  if (query.get("dryRun") == "All") options.dry_run = true;
  return options;
}

// The preconditions come before everything else: a client that deletes what it has seen must not
// hit a new object of the same name. The answer is the object if its kind is answered so, or if it
// stays for its finalizers.
Outcome<RestResult> Rest::remove(const RestRequest& request) {
  const ResourceType& type = *request.type;
  auto options = delete_options(request);
  if (!options.ok()) return options.error();
  const ObjectPtr current = store_.find(type.storage(), key_of(request));
  if (!current) return not_found(type.group_resource(), request.info.name);
  const json& metadata = (*current)["metadata"];
  // These two name the kind instead of the resource, as a real server does.
  const GroupResource kind{type.group, type.kind};
  if (options->uid && *options->uid != metadata["uid"]) {
    return conflict(kind, request.info.name,
                    "the UID in the precondition (" + *options->uid +
                        ") does not match the UID in record (" +
                        metadata["uid"].get<std::string>() +
                        "). The object might have been deleted and then recreated");
  }
  if (options->resource_version && *options->resource_version != metadata["resourceVersion"]) {
    return conflict(kind, request.info.name,
                    "the ResourceVersion in the precondition (" + *options->resource_version +
                        ") does not match the ResourceVersion in record (" +
                        metadata["resourceVersion"].get<std::string>() +
                        "). The object might have been modified");
  }
  RestResult result;
  result.object = options->dry_run ? current : remove_object(type, key_of(request), *options);
  collect_garbage();
  if (!returns_object(type) && !has_finalizers(*current)) {
    result.verbatim = std::make_shared<const json>(success(type, *current));
  }
  return result;
}

// The objects are chosen first; one of them may have gone with another's garbage before its turn
// comes.
Outcome<RestResult> Rest::remove_collection(const RestRequest& request) {
  if (request.type->namespaced && request.info.ns.empty()) return method_not_allowed();
  auto options = delete_options(request);
  if (!options.ok()) return options.error();
  auto selector = selector_of(request);
  if (!selector.ok()) return selector.error();
  RestResult result;
  result.list.emplace();
  for (const ObjectPtr& object : matching(*request.type, *selector)) {
    const json& metadata = (*object)["metadata"];
    const ObjectKey key{metadata.value("namespace", ""), metadata["name"]};
    result.list->items.push_back(object);
    if (!options->dry_run && store_.find(request.type->storage(), key)) {
      remove_object(*request.type, key, *options);
    }
  }
  collect_garbage();
  result.list->resource_version = std::to_string(store_.rv());
  return result;
}

// PodDisruptionBudgets are not served, so an eviction is a deletion.
Outcome<RestResult> Rest::evict(const RestRequest& request) {
  auto removed = remove(request);
  if (!removed.ok()) return removed.error();
  return created_by_subresource();
}

// A pod on a node lives on until its kubelet deletes it with grace period 0. Without a node, or
// when all its containers have ended, nothing is left to end gracefully.
bool Rest::is_graceful(const ResourceType& type, const json& object, const DeleteOptions& options,
                       std::int64_t& grace_seconds) const {
  if (type.plural != "pods" || type.custom) return false;
  const json spec = object.value("spec", json::object());
  const std::string phase = object.value("status", json::object()).value("phase", "");
  grace_seconds =
      options.grace_seconds.value_or(spec.value("terminationGracePeriodSeconds", std::int64_t{30}));
  if (spec.value("nodeName", "").empty() || phase == "Succeeded" || phase == "Failed") {
    grace_seconds = 0;
  }
  return grace_seconds > 0;
}

// Three ways to go: at once; marked with a deletionTimestamp, until kubelet or the last finalizer
// releases it; or, for a namespace, with all that is in it.
ObjectPtr Rest::remove_object(const ResourceType& type, const ObjectKey& key,
                              const DeleteOptions& options) {
  const ObjectAddress address{type.storage(), key};
  const ObjectPtr current = store_.find(address.resource, key);
  if (!current) return nullptr;
  const bool namespace_itself = type.plural == "namespaces" && !type.custom;
  std::int64_t grace = 0;
  const bool graceful = is_graceful(type, *current, options, grace);
  if (!graceful && !has_finalizers(*current) && !namespace_itself) {
    return erase(address, options.propagation);
  }
  json next = *current;
  json& metadata = next["metadata"];
  const bool already = metadata.contains("deletionTimestamp");
  const auto earlier_grace = metadata.value("deletionGracePeriodSeconds", std::int64_t{0});
  // A second deletion may shorten the grace period, never extend it.
  if (!already || grace < earlier_grace) {
    // When the pod is to be gone, not when the deletion was asked for.
    metadata["deletionTimestamp"] = kube::format_time(clock_.wall() + std::chrono::seconds{grace});
    metadata["deletionGracePeriodSeconds"] = grace;
    if (metadata.contains("generation")) {
      metadata["generation"] = metadata["generation"].get<std::int64_t>() + 1;
    }
    if (namespace_itself) next["status"]["phase"] = "Terminating";
    const ObjectPtr marked = commit(address, std::move(next));
    if (namespace_itself) terminate_namespace(key.name);
    return marked;
  }
  return current;
}

// The one place where an object goes, so that each watch, each dependent and each namespace that
// waits to be empty hears of it.
ObjectPtr Rest::erase(const ObjectAddress& address, Propagation propagation) {
  const ChangePtr change = store_.remove(address.resource, address.key);
  watches_.publish(change);
  // Only noted here: the collector runs when the request is done, so no object goes away under the
  // feet of the code that walks over it.
  gone_uids_.emplace_back((*change->object)["metadata"]["uid"], propagation);
  // The objects of a definition go with it, and watches of them end.
  if (address.resource.resource == "customresourcedefinitions") {
    const json& spec = (*change->object)["spec"];
    const GroupResource custom{spec["group"], spec["names"]["plural"]};
    const auto objects = store_.all(custom);  // A copy: erase() changes the original.
    for (const auto& [key, object] : objects) erase({custom, key}, Propagation::kBackground);
    registry_.remove(custom);
    watches_.finish(custom.resource, StreamState::kEnd);
  }
  if (!address.key.ns.empty()) finish_namespace(address.key.ns);
  return change->object;
}

// Any living owner keeps the object.
bool Rest::has_living_owner(const json& object) const {
  const json owners = object["metadata"].value("ownerReferences", json::array());
  if (owners.empty()) return true;  // it has no owner
  const std::string ns = object["metadata"].value("namespace", "");
  for (const json& owner : owners) {
    const auto found = store_.find_uid(owner.value("uid", ""));
    // Owners in another namespace do not count; a cluster-scoped object with a namespaced owner is
    // left alone, as the real collector leaves what it cannot resolve.
    if (found && (found->key.ns.empty() || found->key.ns == ns || ns.empty())) return true;
  }
  return false;
}

// Works off a list instead of calling itself: chains of owners may be long.
void Rest::collect_garbage() {
  if (std::exchange(collecting_, true)) return;
  while (!gone_uids_.empty()) {
    const auto [uid, propagation] = gone_uids_.front();
    gone_uids_.pop_front();
    collect_dependents(uid, propagation);
  }
  collecting_ = false;
}

// The dependents of an owner that is gone, one level down; what is removed here notes its own UID.
void Rest::collect_dependents(const std::string& uid, Propagation propagation) {
  for (const ObjectAddress& address : store_.dependents(uid)) {
    const ObjectPtr object = store_.find(address.resource, address.key);
    const ResourceTypePtr type = registry_.find_storage(address.resource);
    if (!object || !type) continue;
    if (propagation == Propagation::kBackground && !has_living_owner(*object)) {
      remove_object(*type, address.key, {});
      continue;
    }
    json next = *object;
    // It has another living owner, or the deletion orphans it: it stays, without the reference to
    // the owner that is gone.
    json& owners = next["metadata"]["ownerReferences"];
    for (auto owner = owners.begin(); owner != owners.end();) {
      owner = owner->value("uid", "") == uid ? owners.erase(owner) : owner + 1;
    }
    if (owners.empty()) next["metadata"].erase("ownerReferences");
    commit(address, std::move(next));
  }
}

// `in_namespace` is a copy; objects may go meanwhile, hence the look at each.
void Rest::terminate_namespace(const std::string& ns) {
  for (const ObjectAddress& address : store_.in_namespace(ns)) {
    const ResourceTypePtr type = registry_.find_storage(address.resource);
    if (type && store_.find(address.resource, address.key)) remove_object(*type, address.key, {});
  }
  finish_namespace(ns);
}

// The namespace goes when its last object has gone.
void Rest::finish_namespace(const std::string& ns) {
  const ObjectPtr object = store_.find(kNamespaces, {"", ns});
  if (!object || !(*object)["metadata"].contains("deletionTimestamp")) return;
  if (store_.in_namespace(ns).empty()) erase({kNamespaces, {"", ns}}, Propagation::kBackground);
}

}  // namespace devcluster
