// The resources that are served: a fixed table of built-in kinds, and what
// CustomResourceDefinitions add at run time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "kube/testing/api_server/api_error.h"
#include "kube/testing/api_server/schema.h"

namespace devcluster {

// A column of kubectl's table.
struct PrinterColumn {
  std::string name;
  std::string type;  // string, integer, number, boolean, date
  std::string format;
  std::string description;
  int priority = 0;       // > 0: only with -o wide
  std::string json_path;  // of custom resources
};

struct ResourceType {
  std::string group;  // "" = core
  std::string version = "v1";
  std::string kind;
  std::string list_kind;
  std::string plural;
  std::string singular;
  std::vector<std::string> short_names;
  std::vector<std::string> categories;
  bool namespaced = true;
  bool has_status = false;                         // a status subresource
  bool create_only = false;                        // reviews: nothing is stored
  bool custom = false;                             // comes from a CustomResourceDefinition
  std::shared_ptr<const Schema> schema;            // custom resources
  std::shared_ptr<const nlohmann::json> open_api;  // custom resources: the schema's source
  std::vector<PrinterColumn> columns;              // custom resources
  std::vector<std::string> selectable_fields;      // custom resources: "spec.x"
  std::string storage_group;  // where its objects are kept: events.k8s.io shares core's events

  GroupResource group_resource() const { return {group, plural}; }
  GroupResource storage() const { return {storage_group, plural}; }
  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
};

using ResourceTypePtr = std::shared_ptr<const ResourceType>;

// Not thread-safe; guarded by the API server's lock. The types themselves are immutable.
class ResourceRegistry {
 public:
  ResourceRegistry();  // the built-in kinds

  ResourceTypePtr find(const std::string& group, const std::string& version,
                       const std::string& plural) const;
  // Returns the type that keeps its objects at `storage`.
  ResourceTypePtr find_storage(const GroupResource& storage) const;
  // Groups with their versions, with all types, in the order of discovery: core first.
  std::vector<ResourceTypePtr> all() const;

  void add(ResourceType type);
  // Removes all versions of it.
  void remove(const GroupResource& resource);

  // Rises with every change; discovery documents are cached by it.
  std::int64_t generation() const { return generation_; }

 private:
  std::vector<ResourceTypePtr> types_;
  std::int64_t generation_ = 0;
};

// Returns the built-in kinds that kubegang uses.
std::vector<ResourceType> builtin_resource_types();

// Returns the types (one per served version) that a CustomResourceDefinition defines.
// kInvalidArgument: its schema is not structural. REQUIRES: it passed validate_crd().
base::Result<std::vector<ResourceType>> types_of_crd(const nlohmann::json& crd);

// Returns the errors of a CustomResourceDefinition, in a real server's words.
std::vector<Cause> validate_crd(const nlohmann::json& crd);

// Fills in defaults (listKind, singular) and the status of a definition that is served at once.
void accept_crd(nlohmann::json& crd, const std::string& now);

}  // namespace devcluster
