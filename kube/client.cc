#include "kube/client.h"

#include <future>
#include <nlohmann/json.hpp>

#include "kube/api/json_text.h"
#include "kube/api/json_view.h"
#include "kube/api_error.h"
#include "kube/client_calls.h"
#include "kube/client_core.h"
#include "kube/resource_path.h"
#include "kube/run_loop.h"

namespace kube {
namespace {

using nlohmann::json;

// RFC 7386. The other patch types of Kubernetes (JSON patch, strategic merge, apply) are not used:
// a merge patch needs no list of what the object has now, and works for custom resources as well.
constexpr std::string_view kMergePatch = "application/merge-patch+json";
// A server that compacts faster than a list is read would make it begin again forever.
constexpr int kListRestartsMax = 3;

// Not an error of the caller's request.
base::Error not_json() {
  return {base::Code::kInternal, "the answer is not JSON"};
}

const char* propagation_name(Propagation propagation) {
  switch (propagation) {
    case Propagation::kBackground:
      return "Background";
    case Propagation::kForeground:
      return "Foreground";
    case Propagation::kOrphan:
      return "Orphan";
  }
  return "Background";
}

// SOURCE: k8s.io/apimachinery meta/v1, DeleteOptions. In the body and not in the query, where
// preconditions cannot be given.
json delete_body(const DeleteOptions& options) {
  json body{{"apiVersion", "v1"}, {"kind", "DeleteOptions"}};
  // Preconditions: an object of the same name that was made since is left alone.
  if (options.uid) body["preconditions"]["uid"] = *options.uid;
  if (options.resource_version) {
    body["preconditions"]["resourceVersion"] = *options.resource_version;
  }
  if (options.grace_period) body["gracePeriodSeconds"] = options.grace_period->count();
  if (options.propagation) body["propagationPolicy"] = propagation_name(*options.propagation);
  if (options.dry_run) body["dryRun"] = json::array({"All"});
  return body;
}

// The server ignores the status in a write of the whole object and everything but the status in a
// write of /status.
std::string subresource_of(Part part) {
  return part == Part::kStatus ? "/status" : "";
}

}  // namespace

Client::Client(Transport& transport, const Clock& clock, Sleeper& sleeper, ClientOptions options)
    : core_{std::make_shared<Core>(transport, clock, sleeper, options)}, call_{options.call} {}

Client::Client(std::shared_ptr<Core> core, CallOptions call)
    : core_{std::move(core)}, call_{call} {}

Client Client::with(CallOptions call) const {
  return {core_, call};
}

void Client::request_stop() {
  core_->request_stop();
}

std::string context_of(std::string_view verb, const ResourceInfo& resource,
                       const std::string& name) {
  return std::string{verb} + " " + std::string{resource.kind} + (name.empty() ? "" : " " + name);
}

// The name of an object that the server is asked to name is its prefix, for messages.
std::string created_name(const std::string& ns, const json& object) {
  std::string name = ns.empty() ? "" : ns + "/";
  if (const auto meta = object.find("metadata"); meta != object.end() && meta->is_object()) {
    name += meta->value("name", meta->value("generateName", ""));
  }
  return name;
}

json status_of(json object) {
  const auto found = object.find("status");
  return found == object.end() ? json::object() : std::move(*found);
}

// The common end of all typed calls: request, retries, answer, and on an error the words "verb kind
// name".
base::Result<std::string> Client::send(Request request, const std::string& context) const {
  request.timeout = call_.timeout;
  auto response = core_->call(request, call_);
  if (!response.ok()) return response.error().with_context(context);
  return std::move(response->body);
}

base::Result<std::string> Client::get_text(const ResourceInfo& resource,
                                           const ObjectKey& key) const {
  return send({.path = object_path(resource, key)}, context_of("get", resource, to_string(key)));
}

base::Result<std::string> Client::post_json(const ResourceInfo& resource, const std::string& ns,
                                            const json& object, const WriteOptions& options) const {
  return send({.method = Method::kPost,
               .path = collection_path(resource, ns) + write_query(options.dry_run),
               .body = compact_text(object)},
              context_of("create", resource, created_name(ns, object)));
}

// The resourceVersion in `object`, if any, makes the server compare; without it the last writer
// wins.
base::Result<std::string> Client::put_json(const ResourceInfo& resource, const ObjectKey& key,
                                           Part part, const json& object,
                                           const WriteOptions& options) const {
  return send({.method = Method::kPut,
               .path = object_path(resource, key) + subresource_of(part) +
                       write_query(options.dry_run),
               .body = compact_text(object)},
              context_of(part == Part::kStatus ? "update status of" : "update", resource,
                         to_string(key)));
}

base::Result<std::string> Client::patch_json(const ResourceInfo& resource, const ObjectKey& key,
                                             Part part, const json& merge_patch,
                                             const PatchOptions& options) const {
  json body = merge_patch;
  // These two members of a patch are compared, not written: the server answers 409 if they differ.
  if (options.resource_version) body["metadata"]["resourceVersion"] = *options.resource_version;
  if (options.uid) body["metadata"]["uid"] = *options.uid;
  return send({.method = Method::kPatch,
               .path = object_path(resource, key) + subresource_of(part) +
                       write_query(options.dry_run),
               .body = compact_text(body),
               .content_type = std::string{kMergePatch}},
              context_of(part == Part::kStatus ? "patch status of" : "patch", resource,
                         to_string(key)));
}

// The answer is the object or a Status and is not read: callers know what they deleted.
base::Status Client::delete_json(const ResourceInfo& resource, const ObjectKey& key,
                                 const DeleteOptions& options) const {
  const Request request{.method = Method::kDelete,
                        .path = object_path(resource, key),
                        .body = compact_text(delete_body(options)),
                        .timeout = call_.timeout};
  const auto response = core_->call(request, call_);
  if (response.ok()) return {};
  return response.error().with_context(context_of("delete", resource, to_string(key)));
}

// fieldManager names us in managedFields, where users can see which program wrote a field.
std::string Client::write_query(bool dry_run) const {
  return query_text(
      {{"fieldManager", core_->options().field_manager}, {"dryRun", dry_run ? "All" : ""}});
}

// For requests without a typed kind, such as SelfSubjectAccessReview and /version. The answer keeps
// its managedFields.
base::Result<json> Client::call_json(Method method, const std::string& path,
                                     const json* body) const {
  Request request{.method = method, .path = path, .timeout = call_.timeout};
  if (body != nullptr) request.body = compact_text(*body);
  if (method == Method::kPatch) request.content_type = kMergePatch;
  const auto response = core_->call(request, call_);
  if (!response.ok()) return response.error().with_context(path);
  if (response->body.empty()) return json(nullptr);
  json parsed = json::parse(response->body, nullptr, false);
  if (parsed.is_discarded()) return not_json().with_context(path);
  return parsed;
}

namespace {

// Returns true if an element of the list has that text in that field.
bool lists(const json& list, std::string_view field, std::string_view text) {
  return list.is_array() && std::ranges::any_of(list, [&](const json& each) {
           return each.is_object() && text_at(each, field) == text;
         });
}

json list_at(const json& object, const char* name) {
  return object.is_object() ? object.value(name, json::array()) : json::array();
}

}  // namespace

// First the groups, whose list each API server has: the resources of an
// undefined group are a 404 like any other. REQUIRES: the kind is not of the
// core group.
base::Result<bool> Client::serves(const ResourceInfo& resource) const {
  const auto groups = call_json(Method::kGet, "/apis");
  if (!groups.ok()) return groups.error();
  if (list_at(*groups, "groups").empty()) {
    return base::Error{base::Code::kInternal, "/apis: the answer is not a list of groups"};
  }
  bool is_version_served = false;
  for (const json& group : list_at(*groups, "groups")) {
    if (!group.is_object() || text_at(group, "name") != resource.group) continue;
    is_version_served = lists(list_at(group, "versions"), "version", resource.version);
  }
  if (!is_version_served) return false;
  const auto resources = call_json(
      Method::kGet, "/apis/" + std::string{resource.group} + "/" + std::string{resource.version});
  if (!resources.ok()) return resources.error();
  return lists(list_at(*resources, "resources"), "name", resource.plural);
}

namespace {

// The fields of an answer that has objects below one name and what says more of them below another.
KnownFields with_objects(std::string_view name, const KnownFields* of_each,
                         std::string_view other) {
  KnownFields fields;
  fields.at(name) = of_each == nullptr ? KnownFields{} : *of_each;
  (void)fields.at(other);
  return fields;
}

// Returns the token of the next page, "" if there is none. A look at the characters of the answer:
// the objects are passed over.
std::string next_token(const base::Result<Response>& response) {
  static const KnownFields kFields = [] {
    KnownFields fields;
    (void)fields.at("metadata").at("continue");
    return fields;
  }();
  if (!response.ok()) return {};
  const auto body = JsonText::read(response->body, kFields);
  return body ? body->root().find("metadata").find("continue").string() : std::string{};
}

// A page of an answer whose text must live as long.
struct Page {
  JsonText text;
  JsonView items;
  std::string continue_token;
  std::string resource_version;
};

// Returns the list in an answer. kTooLarge: the server or the transport refused its size; kGone:
// the continue token has expired; kInternal: the answer is not a list.
base::Result<Page> read_page(const base::Result<Response>& response, const KnownFields& fields) {
  if (!response.ok()) return response.error();
  auto body = JsonText::read(response->body, fields);
  if (!body) return not_json();
  const JsonView items = body->root().find("items");
  const JsonView meta = body->root().find("metadata");
  // Null is Go's nil slice.
  if (!items.exists() || !(items.is_list() || items.is_null()) || !meta.is_object()) {
    return base::Error{base::Code::kInternal, "the answer is not a list"};
  }
  return Page{std::move(*body), items, meta.find("continue").string(),
              meta.find("resourceVersion").string()};
}

}  // namespace

// Reads page by page; all pages show the state of one version, which the continue token carries.
// 1. A page that is too large for one answer is asked for again in halves.
// 2. If the continue token has expired (410), the list begins again, at most kListRestartsMax
// times,
//    and `restarted` tells the caller to drop the pages so far: they are of an older version.
// 3. The next page is under way while this one is read and its objects are handled, if that is
//    wanted. An answer that is not a page names no next one.
// 4. The version of the last page, which is that of the whole list, is where a watch goes on.
base::Result<std::string> Client::list_json(const ResourceInfo& resource,
                                            const ListOptions& options,
                                            const std::function<void(const JsonView&)>& on_item,
                                            const std::function<void()>& restarted) const {
  const std::string context = context_of("list", resource, options.ns);
  const KnownFields fields = with_objects("items", options.fields, "metadata");
  std::string continue_token;
  std::int32_t page_items_max = options.page_items_max;
  const auto ask = [&] {
    const Request request{
        .path = collection_path(resource, options.ns) +
                query_text(
                    {{"limit", page_items_max == 0 ? "" : std::to_string(page_items_max)},
                     {"continue", continue_token},
                     {"labelSelector", options.label_selector},
                     {"fieldSelector", options.field_selector},
                     // The server refuses a version beside a token, which has its own.
                     {"resourceVersion", continue_token.empty() ? options.resource_version : ""},
                     // Without it a version beside a limit would mean exactly that version.
                     {"resourceVersionMatch",
                      continue_token.empty() && !options.resource_version.empty() ? "NotOlderThan"
                                                                                  : ""}}),
        .timeout = call_.timeout};
    return core_->call(request, call_);
  };
  std::future<base::Result<Response>> ahead;
  for (int restarts = 0;;) {
    const base::Result<Response> answer = ahead.valid() ? ahead.get() : ask();
    if (const std::string next = options.reads_ahead ? next_token(answer) : ""; !next.empty()) {
      continue_token = next;
      ahead = on_other_thread(ask);
    }
    const auto page = read_page(answer, fields);
    // The same page again: the continue token did not move. The halved size stays for the later
    // pages, whose objects are likely to be as large.
    if (!page.ok() && page.error().code == base::Code::kTooLarge && page_items_max != 1) {
      page_items_max = page_items_max == 0 ? ListOptions{}.page_items_max : page_items_max / 2;
      continue;
    }
    if (!page.ok() && page.error().code == base::Code::kGone && !continue_token.empty() &&
        restarts < kListRestartsMax) {
      ++restarts;
      // Without the token the server begins a new list of its newest state. on_item has the old
      // pages already, which is why `restarted` comes before the first new item.
      continue_token.clear();
      restarted();
      continue;
    }
    if (!page.ok()) return page.error().with_context(context);
    // The other thread reads it meanwhile.
    if (!ahead.valid()) continue_token = page->continue_token;
    for (const JsonView item : page->items.elements()) on_item(item);
    if (page->continue_token.empty()) return page->resource_version;
  }
}

namespace {

// Returns nullopt for ERROR, which carries no object, and for types that this client does not know.
std::optional<WatchEventType> event_type(const std::string& name) {
  if (name == "ADDED") return WatchEventType::kAdded;
  if (name == "MODIFIED") return WatchEventType::kModified;
  if (name == "DELETED") return WatchEventType::kDeleted;
  if (name == "BOOKMARK") return WatchEventType::kBookmark;
  return std::nullopt;
}

}  // namespace

// A watch is one answer without an end: one JSON object for each line, {"type": ..., "object":
// ...}. SOURCE: Kubernetes API concepts, "Efficient detection of changes".
// An error that comes as an event (410 Gone, mostly) is returned with its own code, not with that
// of the stream that ended.
base::Status Client::watch_json(
    const ResourceInfo& resource, const WatchOptions& options,
    const std::function<bool(WatchEventType, const JsonView&)>& on_event,
    std::stop_token stop) const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options.server_timeout);
  const Request request{.path = collection_path(resource, options.ns) +
                                query_text({{"watch", "true"},
                                            {"allowWatchBookmarks", "true"},
                                            {"resourceVersion", options.resource_version},
                                            {"labelSelector", options.label_selector},
                                            {"fieldSelector", options.field_selector},
                                            {"timeoutSeconds", std::to_string(seconds.count())}}),
                        .timeout = options.idle_timeout,
                        .gather = options.gather};
  const KnownFields fields = with_objects("object", options.fields, "type");
  std::optional<base::Error> failure;
  const auto on_line = [&](std::string_view line) {
    const auto event = JsonText::read(line, fields);
    const JsonView object = event ? event->root().find("object") : JsonView{};
    if (!object.is_object()) {
      // The watch ends with it: behind a line that cannot be read an event may be lost, and only a
      // list repairs that.
      failure = base::Error{base::Code::kInternal, "a line is not a watch event"};
      return false;
    }
    const std::string type = event->root().find("type").string();
    if (type == "ERROR") {
      // A Status, whose fields are not those of the objects.
      failure = error_from_status(object_at(json::parse(line, nullptr, false), "object"));
      return false;
    }
    // An unknown type, of a newer server, must not end the watch.
    const auto known = event_type(type);
    return !known || on_event(*known, object);
  };
  // Past the rate limit and the retries of Core: a watch is one long request, and its owner
  // (informer_core.h) has a back-off of its own.
  const auto ended = core_->transport().stream(request, on_line, stop);
  const std::string context = context_of("watch", resource, options.ns);
  if (failure) return failure->with_context(context);
  return ended.ok() ? base::Status{} : base::Status{ended.error().with_context(context)};
}

base::Status Client::text_lines(const std::string& path, base::Duration idle_timeout,
                                const std::function<bool(std::string_view)>& on_line,
                                std::stop_token stop) const {
  // Past the rate limit and the retries of Core, as a watch is.
  return core_->transport().stream(
      {.path = path, .accept = "text/plain, application/json", .timeout = idle_timeout}, on_line,
      std::move(stop));
}

// Reads only what is sure to be there: the object is wrong somewhere, and its name may be all that
// is right.
Undecodable undecodable_of(const JsonView& object, base::Error error) {
  const JsonView meta = object.find("metadata");
  return {.key = {meta.find("namespace").string(), meta.find("name").string()},
          .uid = meta.find("uid").string(),
          .resource_version = meta.find("resourceVersion").string(),
          .error = std::move(error)};
}

}  // namespace kube
