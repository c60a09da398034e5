// OpenAPI v3 of what is served: kubectl validates manifests, decides about server-side field
// validation and explains fields by it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "kube/testing/api_server/resource_type.h"

namespace devcluster {

// Documents are made when first asked for, and again when the registry has changed. Not
// thread-safe; guarded by the API server's lock.
class OpenApi {
 public:
  // Returns "api/v1" or "apis/GROUP/VERSION"; for "" the index at /openapi/v3. nullopt: not served.
  std::optional<std::string> document(const ResourceRegistry& registry, const std::string& path);

 private:
  void refresh(const ResourceRegistry& registry);

  std::int64_t generation_ = -1;
  std::string index_;
  std::map<std::string, std::string> documents_;
};

}  // namespace devcluster
