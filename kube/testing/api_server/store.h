// The objects and their history: what etcd is to a real API server. One counter gives every change
// its resourceVersion.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "kube/testing/api_server/api_error.h"

namespace devcluster {

using ObjectPtr = std::shared_ptr<const nlohmann::json>;

struct ObjectKey {
  std::string ns;  // "" for cluster-scoped objects
  std::string name;
  friend auto operator<=>(const ObjectKey&, const ObjectKey&) = default;
};

struct ObjectAddress {
  GroupResource resource;
  ObjectKey key;
  friend auto operator<=>(const ObjectAddress&, const ObjectAddress&) = default;
};

enum class ChangeType { kAdded, kModified, kDeleted };

struct Change {
  std::int64_t rv = 0;
  ChangeType type = ChangeType::kAdded;
  GroupResource resource;
  ObjectPtr object;    // of a deletion: the last state, with the deletion's resourceVersion
  ObjectPtr previous;  // null when added
};

using ChangePtr = std::shared_ptr<const Change>;

// Not thread-safe; guarded by the API server's lock. Cost of a write: O(log objects).
class Store {
 public:
  explicit Store(std::size_t history_changes_max) : history_changes_max_{history_changes_max} {}

  std::int64_t rv() const { return rv_; }

  // Null where there is none.
  ObjectPtr find(const GroupResource& resource, const ObjectKey& key) const;
  const std::map<ObjectKey, ObjectPtr>& all(const GroupResource& resource) const;
  // Everything in a namespace.
  std::vector<ObjectAddress> in_namespace(const std::string& ns) const;

  // Adds or replaces; writes the new resourceVersion into it. REQUIRES: metadata is an object.
  ChangePtr put(const GroupResource& resource, const ObjectKey& key, nlohmann::json object);
  // REQUIRES: it exists.
  ChangePtr remove(const GroupResource& resource, const ObjectKey& key);

  // Finds by metadata.uid.
  std::optional<ObjectAddress> find_uid(const std::string& uid) const;
  // Objects with an ownerReference to this UID.
  std::vector<ObjectAddress> dependents(const std::string& uid) const;

  // Returns the changes after `rv`, oldest first; nullopt if some of them are no longer kept.
  std::optional<std::vector<ChangePtr>> changes_after(std::int64_t rv) const;
  // Forgets the history: watches from before now get 410.
  void compact();

  // All objects with what is indexed of them; not the history.
  struct Contents {
    std::int64_t rv = 0;
    std::map<GroupResource, std::map<ObjectKey, ObjectPtr>> collections;
    std::map<std::string, ObjectAddress> by_uid;
    std::map<std::string, std::set<ObjectAddress>> by_owner_uid;
  };
  Contents contents() const { return {rv_, collections_, by_uid_, by_owner_uid_}; }
  // Makes the objects those again, without a history. The resourceVersion goes on from above all
  // that were ever given.
  void restore(const Contents& contents);
  std::int64_t compacted_rv() const { return compacted_rv_; }

 private:
  void index(const ObjectAddress& address, const nlohmann::json& object);
  void unindex(const ObjectAddress& address, const nlohmann::json& object);
  ChangePtr record(Change change);

  const std::size_t history_changes_max_;
  std::int64_t rv_ = 1;
  std::int64_t compacted_rv_ = 0;
  std::map<GroupResource, std::map<ObjectKey, ObjectPtr>> collections_;
  std::map<std::string, ObjectAddress> by_uid_;
  std::map<std::string, std::set<ObjectAddress>> by_owner_uid_;
  std::deque<ChangePtr> history_;
};

}  // namespace devcluster
