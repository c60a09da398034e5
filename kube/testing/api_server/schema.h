// A structural OpenAPI v3 schema, as in a CustomResourceDefinition: says which objects are legal in
// the sentences of a real API server, drops unknown fields, and fills in defaults. CEL rules
// (x-kubernetes-validations) are read past: they are the operator's to check here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "kube/testing/api_server/api_error.h"

namespace devcluster {

struct SchemaNode;

// Immutable after parse(); safe to use from any thread.
class Schema {
 public:
  // kInvalidArgument names the path of what is not structural or not understood: a field without a
  // type, an unknown keyword, a pattern that does not compile.
  static base::Result<std::shared_ptr<const Schema>> parse(const nlohmann::json& open_api);

  ~Schema();
  Schema(const Schema&) = delete;
  Schema& operator=(const Schema&) = delete;

  // Returns all that is wrong with `object`, in field order; empty = valid. The top-level fields
  // apiVersion, kind and metadata are not looked at.
  std::vector<Cause> validate(const nlohmann::json& object) const;

  // The same of one top-level field alone; sentences name fields from there on ("count in body"),
  // as a real server has it for the status. Empty when the schema or the object has no such field.
  std::vector<Cause> validate_field(const std::string& name, const nlohmann::json& object) const;

  // Removes the fields that the schema does not know; returns their paths ("spec.nodes.foo").
  std::vector<std::string> prune(nlohmann::json& object) const;

  // Sets absent fields that have a default; an explicit null of a field that is not nullable counts
  // as absent.
  void apply_defaults(nlohmann::json& object) const;

 private:
  explicit Schema(std::unique_ptr<SchemaNode> root);
  std::unique_ptr<SchemaNode> root_;
};

}  // namespace devcluster
