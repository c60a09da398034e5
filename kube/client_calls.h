// The typed calls of Client. A library that declares kinds instantiates them once, in a .cc file:
//   namespace kube { KUBE_CLIENT_CALLS(Pod); }
// Needs all of nlohmann/json.hpp: for such .cc files only; all others include client.h.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "kube/client.h"
#include "kube/merge_patch.h"

namespace kube {

// Returns "namespace/name" of an object that is to be created, for messages.
std::string created_name(const std::string& ns, const nlohmann::json& object);

// Returns "get Pod default/a": what a call does, for messages. Without a name, "list Pod".
std::string context_of(std::string_view verb, const ResourceInfo& resource,
                       const std::string& name);

// Returns the status of an object, {} if it has none.
nlohmann::json status_of(nlohmann::json object);

// Returns the object that the server sent, of which `fields` are read; null: all that T reads.
// `name()` is asked for a message only.
template <ApiObject T>
base::Result<T> decoded(const base::Result<std::string>& answer, const KnownFields* fields,
                        std::string_view verb, const auto& name) {
  if (!answer.ok()) return answer.error();
  const auto context = [&] { return context_of(verb, T::kResource, name()) + ": the answer"; };
  const auto text = JsonText::read(*answer, fields == nullptr ? known_fields<T>() : *fields);
  // Some successful answers are empty.
  if (!text && !answer->empty()) {
    return base::Error{base::Code::kInternal, context() + " is not JSON"};
  }
  auto object = decode<T>(text ? text->root() : JsonView{});
  if (object.ok()) return object;
  return object.error().with_context(context());
}
template <ApiObject T>
base::Result<T> decoded(const base::Result<std::string>& answer, std::string_view verb,
                        const ObjectKey& key) {
  return decoded<T>(answer, nullptr, verb, [&] { return to_string(key); });
}

template <ApiObject T>
base::Result<T> Client::get(const ObjectKey& key) const {
  return decoded<T>(get_text(T::kResource, key), "get", key);
}

template <ApiObject T>
base::Result<ObjectList<T>> Client::list(const ListOptions& options) const {
  ObjectList<T> out;
  const auto on_item = [&](const JsonView& item) {
    auto object = decode<T>(item);
    if (object.ok()) {
      out.items.push_back(std::move(*object));
      return;
    }
    out.undecodable.push_back(undecodable_of(item, object.error()));
  };
  ListOptions narrow = options;
  if (narrow.fields == nullptr) narrow.fields = &known_fields<T>();
  const auto version = list_json(T::kResource, narrow, on_item, [&] { out = {}; });
  if (!version.ok()) return version.error();
  out.resource_version = *version;
  return out;
}

template <ApiObject T>
base::Result<T> Client::create(const T& object, const WriteOptions& options) const {
  return create_json<T>(object.metadata.ns, encode(object), options);
}

template <ApiObject T>
base::Result<T> Client::create_json(const std::string& ns, const nlohmann::json& object,
                                    const WriteOptions& options) const {
  return decoded<T>(post_json(T::kResource, ns, object, options), options.fields, "create",
                    [&] { return created_name(ns, object); });
}

template <ApiObject T>
base::Result<T> Client::update(const T& object, const WriteOptions& options) const {
  const ObjectKey key = key_of(object.metadata);
  return decoded<T>(put_json(T::kResource, key, Part::kWhole, encode(object), options), "update",
                    key);
}

template <ApiObject T>
base::Result<T> Client::update_status(const T& object, const WriteOptions& options) const {
  const ObjectKey key = key_of(object.metadata);
  return decoded<T>(put_json(T::kResource, key, Part::kStatus, encode(object), options),
                    "update status of", key);
}

template <ApiObject T>
base::Result<T> Client::patch(const ObjectKey& key, const nlohmann::json& merge_patch,
                              const PatchOptions& options) const {
  return decoded<T>(patch_json(T::kResource, key, Part::kWhole, merge_patch, options), "patch",
                    key);
}

template <ApiObject T>
base::Result<T> Client::patch_status(const ObjectKey& key, const nlohmann::json& merge_patch,
                                     const PatchOptions& options) const {
  return decoded<T>(patch_json(T::kResource, key, Part::kStatus, merge_patch, options),
                    "patch status of", key);
}

template <ApiObject T>
base::Result<T> Client::patch_status_from(const T& from, const T& to, bool check_version) const {
  nlohmann::json patch{
      {"status", kube::merge_patch(status_of(encode(from)), status_of(encode(to)))}};
  if (patch["status"].empty()) return from;
  PatchOptions options{.uid = from.metadata.uid};
  if (check_version) options.resource_version = from.metadata.resource_version;
  return patch_status<T>(key_of(from.metadata), patch, options);
}

template <ApiObject T>
base::Status Client::remove(const ObjectKey& key, const DeleteOptions& options) const {
  return delete_json(T::kResource, key, options);
}

#define KUBE_CLIENT_CALLS(T)                                                                 \
  template base::Result<T> Client::get<T>(const ObjectKey&) const;                           \
  template base::Result<ObjectList<T>> Client::list<T>(const ListOptions&) const;            \
  template base::Result<T> Client::create<T>(const T&, const WriteOptions&) const;           \
  template base::Result<T> Client::create_json<T>(const std::string&, const nlohmann::json&, \
                                                  const WriteOptions&) const;                \
  template base::Result<T> Client::update<T>(const T&, const WriteOptions&) const;           \
  template base::Result<T> Client::patch<T>(const ObjectKey&, const nlohmann::json&,         \
                                            const PatchOptions&) const;                      \
  template base::Result<T> Client::patch_status<T>(const ObjectKey&, const nlohmann::json&,  \
                                                   const PatchOptions&) const;               \
  template base::Result<T> Client::update_status<T>(const T&, const WriteOptions&) const;    \
  template base::Result<T> Client::patch_status_from<T>(const T&, const T&, bool) const;     \
  template base::Status Client::remove<T>(const ObjectKey&, const DeleteOptions&) const

}  // namespace kube
