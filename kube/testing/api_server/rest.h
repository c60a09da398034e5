// The verbs on resources: create, get, list, watch, update, patch, delete. Holds the objects, the
// registry of resources and the watches. Not thread-safe: the API server calls it under its lock.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/prng.h"
#include "kube/clock.h"
#include "kube/testing/api_server/api_error.h"
#include "kube/testing/api_server/api_server.h"
#include "kube/testing/api_server/representation.h"
#include "kube/testing/api_server/request_info.h"
#include "kube/testing/api_server/resource_type.h"
#include "kube/testing/api_server/store.h"
#include "kube/testing/api_server/watch.h"

namespace devcluster {

// One request on a resource, after routing.
struct RestRequest {
  const RequestInfo& info;
  const ApiRequest& api;
  ResourceTypePtr type;
  Representation representation;
};

// The answer; turned into JSON outside the lock.
struct RestResult {
  int code = 200;
  ObjectPtr object;                // one object of the request's type
  std::optional<ObjectList> list;  // or a page of them
  ObjectPtr verbatim;              // or JSON as it is (a Status, a review)
  std::shared_ptr<WatchStream> watch;
  std::vector<std::string> warnings;
};

// Answers a subresource that makes something of its object (a binding, an eviction): 201 and a
// Status.
RestResult created_by_subresource();

class Rest {
 public:
  Rest(const kube::Clock& clock, const ApiServerOptions& options);

  Outcome<RestResult> handle(const RestRequest& request);

  const ResourceRegistry& registry() const { return registry_; }
  const Store& store() const { return store_; }
  WatchHub& watches() { return watches_; }
  void compact();

  struct Backup {
    ResourceRegistry registry;
    Store::Contents contents;
  };
  Backup back_up() const { return {registry_, store_.contents()}; }
  void restore(const Backup& backup);

 private:
  enum class Propagation { kBackground, kOrphan };
  struct DeleteOptions {
    std::optional<std::int64_t> grace_seconds;
    std::optional<std::string> uid;
    std::optional<std::string> resource_version;
    Propagation propagation = Propagation::kBackground;
    bool dry_run = false;
  };
  // A consistent list that is handed out in pages.
  struct ListSnapshot {
    std::string id;
    std::int64_t rv;
    std::vector<ObjectPtr> items;
  };

  // rest_read.cc
  Outcome<Selector> selector_of(const RestRequest& request) const;
  Outcome<RestResult> get(const RestRequest& request) const;
  Outcome<RestResult> list(const RestRequest& request);
  Outcome<RestResult> continue_list(const RestRequest& request, const std::string& token);
  RestResult page(const ListSnapshot& snapshot, std::size_t begin, std::size_t limit,
                  bool show_remaining) const;
  Outcome<RestResult> watch(const RestRequest& request);
  std::vector<ObjectPtr> matching(const ResourceType& type, const Selector& selector) const;

  // rest_write.cc
  Outcome<RestResult> create(const RestRequest& request);
  Outcome<RestResult> replace(const RestRequest& request);
  Outcome<RestResult> patch(const RestRequest& request);
  Outcome<RestResult> write_existing(const RestRequest& request, const ObjectPtr& current,
                                     nlohmann::json wanted, std::vector<std::string> duplicates);
  std::optional<ApiError> check_namespace(const RestRequest& request) const;
  void after_write(const ResourceType& type, const ObjectKey& key);
  std::string new_uid();
  std::string new_name_suffix();

  // rest_delete.cc
  Outcome<RestResult> remove(const RestRequest& request);
  Outcome<RestResult> remove_collection(const RestRequest& request);
  Outcome<RestResult> evict(const RestRequest& request);
  Outcome<RestResult> bind(const RestRequest& request);
  Outcome<DeleteOptions> delete_options(const RestRequest& request) const;
  // Deletes or begins to delete; returns the object's last or present state.
  ObjectPtr remove_object(const ResourceType& type, const ObjectKey& key,
                          const DeleteOptions& options);
  bool is_graceful(const ResourceType& type, const nlohmann::json& object,
                   const DeleteOptions& options, std::int64_t& grace_seconds) const;
  ObjectPtr erase(const ObjectAddress& address, Propagation propagation);
  void collect_garbage();
  void collect_dependents(const std::string& uid, Propagation propagation);
  bool has_living_owner(const nlohmann::json& object) const;
  void finish_namespace(const std::string& ns);
  void terminate_namespace(const std::string& ns);

  // Stores and publishes.
  ObjectPtr commit(const ObjectAddress& address, nlohmann::json object);

  const kube::Clock& clock_;
  const ApiServerOptions options_;
  base::Prng prng_;
  ResourceRegistry registry_;
  Store store_;
  WatchHub watches_;
  std::deque<ListSnapshot> snapshots_;
  std::deque<std::pair<std::string, Propagation>> gone_uids_;  // owners whose dependents are due
  bool collecting_ = false;
};

// Returns the key of the request's object.
ObjectKey key_of(const RestRequest& request);

}  // namespace devcluster
