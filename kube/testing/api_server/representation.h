// How an answer is written: the objects themselves, kubectl's table, or the metadata alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/time.h"
#include "kube/testing/api_server/resource_type.h"
#include "kube/testing/api_server/store.h"

namespace devcluster {

struct Representation {
  enum class Form { kPlain, kTable, kMetadata };
  Form form = Form::kPlain;
  enum class Include { kNone, kMetadata, kObject };  // what a table's row carries
  Include include = Include::kMetadata;
  bool managed_fields = false;  // plain objects have them (managed_fields.h)
};

// Returns the first alternative of an Accept header that is served. nullopt: none is (406).
std::optional<Representation> choose_representation(std::string_view accept,
                                                    const std::string& include_object);

// Objects of one page of a list.
struct ObjectList {
  std::vector<ObjectPtr> items;
  std::string resource_version;
  std::string continue_token;
  std::optional<std::int64_t> remaining_count;
};

// Returns the object as this type's API version has it.
nlohmann::json encode_plain(const ResourceType& type, const nlohmann::json& object);

// Writes text. Plain objects are written from what is stored, without a copy: the answer to a list
// of thousands takes about as long as a real server takes.
std::string encode_object(const ResourceType& type, const Representation& representation,
                          const nlohmann::json& object, base::Instant now);
std::string encode_list(const ResourceType& type, const Representation& representation,
                        const ObjectList& list, base::Instant now);

// Returns a meta.k8s.io/v1 Table of these objects.
nlohmann::json encode_table(const ResourceType& type, Representation::Include include,
                            const std::vector<ObjectPtr>& objects, base::Instant now);

}  // namespace devcluster
