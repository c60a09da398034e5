#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "kube/testing/api_server/rest.h"

namespace devcluster {
namespace {

using nlohmann::json;

// The lists whose rest is not fetched that are kept; the token of an older one gets 410.
constexpr std::size_t kListSnapshotsMax = 32;
constexpr base::Duration kWatchTimeoutMax = std::chrono::hours{1};

ApiError continue_expired() {
  return expired(
      "The provided continue parameter is too old to display a consistent list result. You can "
      "start a new list without the continue parameter.");
}

bool is_number(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

// A namespace in the path of a cluster-scoped kind was refused before; here it would only make a
// key that finds nothing.
ObjectKey key_of(const RestRequest& request) {
  return {request.type->namespaced ? request.info.ns : "", request.info.name};
}

// Reads the selector of lists, watches and deletions of collections: they all select alike.
Outcome<Selector> Rest::selector_of(const RestRequest& request) const {
  Selector selector;
  selector.ns = request.info.ns;
  selector.name = request.info.name;
  auto labels = parse_label_selector(request.info.query.get("labelSelector"));
  if (!labels.ok()) return labels.error();
  selector.labels = std::move(*labels);
  auto fields = parse_field_selector(request.info.query.get("fieldSelector"), *request.type);
  if (!fields.ok()) return fields.error();
  selector.fields = std::move(*fields);
  return selector;
}

Outcome<RestResult> Rest::get(const RestRequest& request) const {
  RestResult result;
  result.object = store_.find(request.type->storage(), key_of(request));
  if (!result.object) return not_found(request.type->group_resource(), request.info.name);
  return result;
}

// Keys are ordered by namespace, so one namespace is a range of the map and not a search of all.
std::vector<ObjectPtr> Rest::matching(const ResourceType& type, const Selector& selector) const {
  std::vector<ObjectPtr> found;
  const auto& objects = store_.all(type.storage());
  auto at = selector.ns.empty() ? objects.begin() : objects.lower_bound({selector.ns, ""});
  for (; at != objects.end() && (selector.ns.empty() || at->first.ns == selector.ns); ++at) {
    if (selector.matches(*at->second)) found.push_back(at->second);
  }
  return found;
}

// A token is "ID:BEGIN": a kept list and the index of its next item. Clients may not look inside.
Outcome<RestResult> Rest::continue_list(const RestRequest& request, const std::string& token) {
  const std::size_t colon = token.find(':');
  const std::string id = token.substr(0, colon);
  const std::string begin_text = colon == std::string::npos ? "" : token.substr(colon + 1);
  if (!is_number(begin_text) || begin_text.size() > 9) {
    return bad_request("continue key is not valid: " + token);
  }
  // Pages of one list are of one version: the rest of a list is kept as it was when its first page
  // was read, and a token whose list has been dropped is too old.
  const auto snapshot = std::find_if(snapshots_.begin(), snapshots_.end(),
                                     [&](const ListSnapshot& other) { return other.id == id; });
  if (snapshot == snapshots_.end()) return continue_expired();
  const auto limit = std::max<std::int64_t>(request.info.query.number("limit").value_or(0), 0);
  return page(*snapshot, std::stoul(begin_text), static_cast<std::size_t>(limit), true);
}

// A real server gives the number of remaining items only for lists without a selector, hence
// `show_remaining`.
RestResult Rest::page(const ListSnapshot& snapshot, std::size_t begin, std::size_t limit,
                      bool show_remaining) const {
  begin = std::min(begin, snapshot.items.size());
  const std::size_t rest = snapshot.items.size() - begin;
  const std::size_t count = limit == 0 ? rest : std::min(limit, rest);
  RestResult result;
  result.list.emplace();
  const auto first = snapshot.items.begin() + static_cast<std::ptrdiff_t>(begin);
  result.list->items.assign(first, first + static_cast<std::ptrdiff_t>(count));
  result.list->resource_version = std::to_string(snapshot.rv);
  if (count == rest) return result;
  result.list->continue_token = snapshot.id + ":" + std::to_string(begin + count);
  if (show_remaining) result.list->remaining_count = static_cast<std::int64_t>(rest - count);
  return result;
}

// 1. check the parameters against each other, 2. a token continues a kept list, 3. check that the
//    version that was asked for can be given, 4. the first page. SOURCE: Kubernetes API concepts,
//    "Resource versions in lists".
Outcome<RestResult> Rest::list(const RestRequest& request) {
  const Query& query = request.info.query;
  const std::string wanted_rv = query.get("resourceVersion");
  const std::string match = query.get("resourceVersionMatch");
  if (!wanted_rv.empty() && !is_number(wanted_rv)) {
    return bad_request("resourceVersion: Invalid value: \"" + wanted_rv + "\"");
  }
  const std::int64_t limit = std::max<std::int64_t>(query.number("limit").value_or(0), 0);
  if (const std::string token = query.get("continue"); !token.empty()) {
    return continue_list(request, token);
  }
  if (!match.empty() && wanted_rv.empty()) {
    return invalid("meta.k8s.io", "ListOptions", "",
                   {{"FieldValueForbidden", "resourceVersionMatch",
                     "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is "
                     "provided"}});
  }
  const std::int64_t asked = query.number("resourceVersion").value_or(0);
  // A version from the future: of another cluster, or from before a restore.
  if (asked > store_.rv()) {
    return too_large_resource_version(wanted_rv, std::to_string(store_.rv()));
  }
  if (match == "Exact" && asked != store_.rv()) {
    // An old state can be given only while nothing of this resource has changed since.
    const auto changes = store_.changes_after(asked);
    const bool same =
        changes && std::none_of(changes->begin(), changes->end(), [&](const ChangePtr& change) {
          return change->resource == request.type->storage();
        });
    if (!same) return expired("The resourceVersion for the provided list is too old.");
  }
  auto selector = selector_of(request);
  if (!selector.ok()) return selector.error();
  // The items are shared pointers to immutable objects, so keeping the rest of a list for its next
  // pages costs little.
  ListSnapshot snapshot{"", match == "Exact" ? asked : store_.rv(),
                        matching(*request.type, *selector)};
  const auto items_max = static_cast<std::size_t>(limit);
  // Only a list that does not fit on one page is kept.
  if (items_max == 0 || snapshot.items.size() <= items_max) {
    return page(snapshot, 0, items_max, selector->is_everything());
  }
  snapshot.id = new_uid();
  snapshots_.push_back(std::move(snapshot));
  if (snapshots_.size() > kListSnapshotsMax) snapshots_.pop_front();
  return page(snapshots_.back(), 0, items_max, selector->is_everything());
}

// 1. Where to begin: existing objects (rv absent or 0, or sendInitialEvents, which ends them with a
// bookmark), or the changes after rv.
// 2. A version that is too old is an ERROR event in the stream, as a real server has it: the answer
// has begun with 200 by then.
Outcome<RestResult> Rest::watch(const RestRequest& request) {
  const Query& query = request.info.query;
  auto selector = selector_of(request);
  if (!selector.ok()) return selector.error();
  const std::string rv_text = query.get("resourceVersion");
  if (!rv_text.empty() && !is_number(rv_text)) {
    return bad_request("resourceVersion: Invalid value: \"" + rv_text + "\"");
  }
  const std::int64_t rv = query.number("resourceVersion").value_or(0);
  const bool send_initial = query.is_true("sendInitialEvents");

  WatchOptions options;
  options.resource = request.type->storage();
  options.selector = *selector;
  options.kind = request.type->kind;
  options.api_version = request.type->api_version();
  options.mark_initial_end = send_initial && query.is_true("allowWatchBookmarks");
  if (query.is_true("allowWatchBookmarks")) options.bookmark_interval = options_.bookmark_interval;
  if (const auto seconds = query.number("timeoutSeconds"); seconds && *seconds > 0) {
    options.timeout = std::min<base::Duration>(std::chrono::seconds{*seconds}, kWatchTimeoutMax);
  }
  options.encode = [type = request.type, representation = request.representation,
                    &clock = clock_](const ObjectPtr& object) {
    return encode_object(*type, representation, *object, clock.wall());
  };

  std::vector<WatchEvent> initial;
  std::vector<ChangePtr> missed;
  bool too_old = false;
  // 1. where to begin
  if (rv == 0 || send_initial) {
    for (const ObjectPtr& object : matching(*request.type, *selector)) {
      initial.push_back({ChangeType::kAdded, object});
    }
  } else {
    auto changes = store_.changes_after(rv);
    too_old = !changes.has_value();
    if (changes) missed = std::move(*changes);
  }
  RestResult result;
  result.watch = std::make_shared<WatchStream>(clock_, std::move(options), std::move(initial),
                                               rv == 0 ? store_.rv() : rv);
  // 2. a version that is too old
  if (too_old) {
    result.watch->fail(to_json(expired("too old resource version: " + rv_text + " (" +
                                       std::to_string(store_.compacted_rv()) + ")"))
                           .dump());
    return result;
  }
  // Under the server's lock, so no change falls between what was missed and what comes.
  for (const ChangePtr& change : missed) result.watch->offer(change);
  watches_.add(result.watch);
  return result;
}

void Rest::compact() {
  store_.compact();
  snapshots_.clear();
}

// Also what is served goes back: a CRD that was made after the backup is gone.
void Rest::restore(const Backup& backup) {
  registry_ = backup.registry;
  store_.restore(backup.contents);
  snapshots_.clear();
  watches_.finish("", StreamState::kReset);
}

}  // namespace devcluster
