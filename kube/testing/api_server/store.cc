#include "kube/testing/api_server/store.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/check.h"

namespace devcluster {
namespace {

using nlohmann::json;

// Above what any server can have given out between a backup and its restore. An arbitrary large
// number, as the argument of --bump-revision is.
constexpr std::int64_t kRestoredRevisionBump = 1'000'000;

std::string uid_of(const json& object) {
  return object["metadata"].value("uid", "");
}

std::vector<std::string> owner_uids(const json& object) {
  std::vector<std::string> uids;
  const json& metadata = object["metadata"];
  if (!metadata.contains("ownerReferences")) return uids;
  for (const json& owner : metadata["ownerReferences"]) uids.push_back(owner.value("uid", ""));
  return uids;
}

}  // namespace

ObjectPtr Store::find(const GroupResource& resource, const ObjectKey& key) const {
  const auto& objects = all(resource);
  const auto found = objects.find(key);
  return found == objects.end() ? nullptr : found->second;
}

const std::map<ObjectKey, ObjectPtr>& Store::all(const GroupResource& resource) const {
  static const std::map<ObjectKey, ObjectPtr> kNone;
  const auto found = collections_.find(resource);
  return found == collections_.end() ? kNone : found->second;
}

// Keys are ordered by namespace: a range of each collection.
std::vector<ObjectAddress> Store::in_namespace(const std::string& ns) const {
  std::vector<ObjectAddress> found;
  for (const auto& [resource, objects] : collections_) {
    for (auto at = objects.lower_bound({ns, ""}); at != objects.end() && at->first.ns == ns; ++at) {
      found.push_back({resource, at->first});
    }
  }
  return found;
}

// Every change takes the next version, of whatever resource it is: versions of one server are in
// one order, as etcd's revisions are, which watches and bookmarks rely on.
ChangePtr Store::put(const GroupResource& resource, const ObjectKey& key, json object) {
  CHECK(object["metadata"].is_object());
  const ObjectPtr previous = find(resource, key);
  if (previous) unindex({resource, key}, *previous);
  object["metadata"]["resourceVersion"] = std::to_string(++rv_);
  const auto stored = std::make_shared<const json>(std::move(object));
  collections_[resource][key] = stored;
  index({resource, key}, *stored);
  return record({.rv = rv_,
                 .type = previous ? ChangeType::kModified : ChangeType::kAdded,
                 .resource = resource,
                 .object = stored,
                 .previous = previous});
}

ChangePtr Store::remove(const GroupResource& resource, const ObjectKey& key) {
  const ObjectPtr previous = find(resource, key);
  CHECK(previous != nullptr, key.ns + "/" + key.name);
  unindex({resource, key}, *previous);
  collections_[resource].erase(key);
  // A deletion has a version of its own, above that of the last update: a watch that resumes behind
  // the update must still see it.
  json last = *previous;
  last["metadata"]["resourceVersion"] = std::to_string(++rv_);
  return record({.rv = rv_,
                 .type = ChangeType::kDeleted,
                 .resource = resource,
                 .object = std::make_shared<const json>(std::move(last)),
                 .previous = previous});
}

// The two indexes serve the garbage collector: an object by its UID, and the dependents of a UID.
void Store::index(const ObjectAddress& address, const json& object) {
  by_uid_[uid_of(object)] = address;
  for (const std::string& owner : owner_uids(object)) by_owner_uid_[owner].insert(address);
}

void Store::unindex(const ObjectAddress& address, const json& object) {
  by_uid_.erase(uid_of(object));
  for (const std::string& owner : owner_uids(object)) {
    const auto found = by_owner_uid_.find(owner);
    if (found == by_owner_uid_.end()) continue;
    found->second.erase(address);
    if (found->second.empty()) by_owner_uid_.erase(found);
  }
}

ChangePtr Store::record(Change change) {
  history_.push_back(std::make_shared<const Change>(std::move(change)));
  // Compaction as etcd's: a watch from before the oldest change that is kept gets 410 Gone.
  while (history_.size() > history_changes_max_) {
    compacted_rv_ = history_.front()->rv;
    history_.pop_front();
  }
  return history_.empty() ? nullptr : history_.back();
}

// A dependent names its owner by UID, and not by name: a new object of the same name is another
// one.
std::optional<ObjectAddress> Store::find_uid(const std::string& uid) const {
  const auto found = by_uid_.find(uid);
  if (found == by_uid_.end()) return std::nullopt;
  return found->second;
}

std::vector<ObjectAddress> Store::dependents(const std::string& uid) const {
  const auto found = by_owner_uid_.find(uid);
  if (found == by_owner_uid_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

std::optional<std::vector<ChangePtr>> Store::changes_after(std::int64_t rv) const {
  // A watch from the compacted version itself misses nothing, hence below and not "at or below".
  if (rv < compacted_rv_) return std::nullopt;
  const auto first = std::upper_bound(
      history_.begin(), history_.end(), rv,
      [](std::int64_t wanted, const ChangePtr& change) { return wanted < change->rv; });
  return std::vector<ChangePtr>{first, history_.end()};
}

void Store::compact() {
  compacted_rv_ = rv_;
  history_.clear();
}

// etcd from a backup, with revisions moved ahead as `etcdutl snapshot restore --bump-revision`
// does: without that, clients would take old versions for new ones.
void Store::restore(const Contents& contents) {
  rv_ = std::max(rv_, contents.rv) + kRestoredRevisionBump;
  collections_ = contents.collections;
  by_uid_ = contents.by_uid;
  by_owner_uid_ = contents.by_owner_uid;
  compact();
}

}  // namespace devcluster
