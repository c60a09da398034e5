// JSON <-> structs from one list of fields per struct. Internal to kube/api: its templates take
// JSON values apart, so it needs all of nlohmann/json.hpp, and only .cc files (and meta_codec.h)
// may include it.
//
// Read from text (json_view.h), written as a tree. A struct is described once, for both directions:
//   template <typename Io> void visit(Io& io, Like<JobNodes> auto& s) {
//     io.field("min", s.min);
//   }
// Decoding: absent or null leaves the default; a wrong type or value is the failure, of which the
// first one is kept with its path. Encoding: empty strings, lists, maps, absent optionals and empty
// structs are left out; numbers and booleans are written. `always` writes empty ones too;
// `nonzero` leaves out 0 and false.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/rare.h"
#include "base/result.h"
#include "kube/api/enum_names.h"
#include "kube/api/json_view.h"
#include "kube/api/known_fields.h"
#include "kube/api/meta.h"
#include "kube/api/quantity.h"
#include "kube/api/raw_json.h"
#include "kube/api/time_format.h"

namespace kube::codec {

using Json = nlohmann::json;

// `Like<T> auto&` binds T& and const T&.
template <typename T, typename U>
concept Like = std::same_as<std::remove_const_t<T>, U>;

template <typename T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;

// The place in the object; a chain on the stack, made into text only for an error.
struct Path {
  const Path* parent = nullptr;
  std::string_view name;
  std::optional<std::size_t> index;

  std::string text() const;
};

// For messages: the value as compact JSON, at most 80 characters of it.
std::string quoted(const JsonView& value);

class Decoder {
 public:
  static constexpr bool kDecoding = true;

  // REQUIRES: object is an object.
  Decoder(const JsonView& object, const Path* path, std::optional<std::string>& failure)
      : object_{object}, path_{path}, failure_{failure} {}

  template <typename T>
  void field(std::string_view name, T& out) {
    const JsonView value = object_.find(name);
    if (!value.is_null()) read(value, {path_, name, {}}, out);
  }
  template <typename T>
  void always(std::string_view name, T& out) {
    field(name, out);
  }
  template <typename T>
  void nonzero(std::string_view name, T& out) {
    field(name, out);
  }

  // metav1.Time and MicroTime are read alike.
  void time(std::string_view name, std::optional<base::Instant>& out);
  void micro_time(std::string_view name, std::optional<base::Instant>& out) { time(name, out); }
  void micro_time(std::string_view name, base::Instant& out);

  void fail(const Path& path, std::string what);

 private:
  void read(const JsonView& value, const Path& path, bool& out);
  void read(const JsonView& value, const Path& path, std::string& out);
  void read(const JsonView& value, const Path& path, base::Duration& out);
  void read(const JsonView& value, const Path& path, Quantity& out);
  void read(const JsonView& value, const Path& path, Bytes& out);
  void read(const JsonView& value, const Path& path, RawJson& out);
  void read_integer(const JsonView& value, const Path& path, std::int64_t min, std::int64_t max,
                    std::int64_t& out);

  template <Integer T>
  void read(const JsonView& value, const Path& path, T& out) {
    std::int64_t wide = out;
    read_integer(value, path, std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), wide);
    out = static_cast<T>(wide);
  }

  template <NamedEnum E>
  void read(const JsonView& value, const Path& path, E& out) {
    std::string text;
    read(value, path, text);
    if (const auto parsed = parse_enum<E>(text)) {
      out = *parsed;
      return;
    }
    std::string names;
    for (const auto& [unused, name] : names_of(std::type_identity<E>{})) {
      names += (names.empty() ? "" : ", ") + std::string{name};
    }
    fail(path, "want one of " + names + ", got " + quoted(value));
  }

  template <typename T>
  void read(const JsonView& value, const Path& path, std::optional<T>& out) {
    if constexpr (std::same_as<T, std::string> || NamedEnum<T>) {
      if (value.is_empty_string()) return;
    }
    read(value, path, out.emplace());
  }
  template <typename T>
  void read(const JsonView& value, const Path& path, base::Rare<T>& out) {
    read(value, path, out.emplace());
  }

  template <typename T>
  void read(const JsonView& value, const Path& path, std::vector<T>& out) {
    if (!value.is_list()) return fail(path, "want a list, got " + quoted(value));
    out.clear();
    out.reserve(value.elements().count());
    for (const JsonView element : value.elements()) {
      const std::size_t index = out.size();
      read(element, Path{&path, {}, index}, out.emplace_back());
    }
  }

  template <typename T>
  void read(const JsonView& value, const Path& path, std::map<std::string, T>& out) {
    if (!value.is_object()) return fail(path, "want a map, got " + quoted(value));
    out.clear();
    for (const auto& [name, element] : value.members()) {
      read(element, Path{&path, name, {}}, out[name]);
    }
  }

  template <typename T>
  requires std::is_class_v<T>
  void read(const JsonView& value, const Path& path, T& out) {
    if (!value.is_object()) return fail(path, "want an object, got " + quoted(value));
    Decoder inner{value, &path, failure_};
    visit(inner, out);
  }

  const JsonView object_;
  const Path* path_;
  std::optional<std::string>& failure_;
};

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <typename T>
inline constexpr bool kIsOptional<base::Rare<T>> = true;

class Encoder {
 public:
  static constexpr bool kDecoding = false;

  explicit Encoder(Json& out) : out_{out} {}

  // A part without any fields is left out. A part that is kept as it came is written as it came:
  // an empty probe or affinity is not the same as none.
  template <typename T>
  void field(std::string_view name, const T& value) {
    if (is_left_out(value)) return;
    Json written = write(value);
    constexpr bool kIsPart = std::is_class_v<T> && !kIsOptional<T> && !std::same_as<T, RawJson>;
    if (kIsPart && written.is_object() && written.empty()) return;
    put(name, std::move(written));
  }
  template <typename T>
  void always(std::string_view name, const T& value) {
    put(name, write(value));
  }
  template <typename T>
  void nonzero(std::string_view name, const T& value) {
    if (value != T{}) field(name, value);
  }

  void time(std::string_view name, const std::optional<base::Instant>& value) {
    if (value) put(name, format_time(*value));
  }
  void micro_time(std::string_view name, const std::optional<base::Instant>& value) {
    if (value) put(name, format_micro_time(*value));
  }
  void micro_time(std::string_view name, base::Instant value) {
    put(name, format_micro_time(value));
  }

 private:
  void put(std::string_view name, Json value) { out_[std::string{name}] = std::move(value); }

  static bool is_left_out(const std::string& value) { return value.empty(); }
  static bool is_left_out(const RawJson& value) { return value.empty(); }
  template <typename T>
  static bool is_left_out(const std::vector<T>& value) {
    return value.empty();
  }
  template <typename T>
  static bool is_left_out(const std::map<std::string, T>& value) {
    return value.empty();
  }
  template <typename T>
  requires kIsOptional<T>
  static bool is_left_out(const T& value) {
    return !value.has_value();
  }
  template <typename T>
  requires(!kIsOptional<T>)
  static bool is_left_out(const T&) {
    return false;
  }

  static Json write(bool value) { return value; }
  static Json write(const std::string& value) { return value; }
  static Json write(base::Duration value) { return format_duration(value); }
  static Json write(Bytes value) { return format_bytes(value); }
  static Json write(const RawJson& value) { return value.json(); }
  static Json write(const ResourceList& value) {
    Json out = Json::object();
    for (const auto& [name, quantity] : value) out[name] = format_quantity(name, quantity);
    return out;
  }
  template <Integer T>
  static Json write(T value) {
    return value;
  }
  template <NamedEnum E>
  static Json write(E value) {
    return std::string{to_string(value)};
  }
  template <typename T>
  requires kIsOptional<T>
  static Json write(const T& value) {
    return value ? write(*value) : Json(nullptr);
  }
  template <typename T>
  static Json write(const std::vector<T>& value) {
    Json out = Json::array();
    for (const T& element : value) out.push_back(write(element));
    return out;
  }
  template <typename T>
  static Json write(const std::map<std::string, T>& value) {
    Json out = Json::object();
    for (const auto& [name, element] : value) out[name] = write(element);
    return out;
  }
  template <typename T>
  requires(std::is_class_v<T> && !kIsOptional<T>)
  static Json write(const T& value) {
    Json out = Json::object();
    Encoder inner{out};
    visit(inner, value);
    return out;
  }

  Json& out_;
};

template <typename T>
inline constexpr bool kIsVector = false;
template <typename T>
inline constexpr bool kIsVector<std::vector<T>> = true;

// Notes the names of the fields that a visit reads.
class FieldLister {
 public:
  static constexpr bool kDecoding = true;

  explicit FieldLister(KnownFields& out) : out_{out} {}

  template <typename T>
  void field(std::string_view name, T&) {
    list<T>(out_.at(name));
  }
  template <typename T>
  void always(std::string_view name, T&) {
    list<T>(out_.at(name));
  }
  template <typename T>
  void nonzero(std::string_view name, T&) {
    list<T>(out_.at(name));
  }
  template <typename T>
  void time(std::string_view name, T&) {
    (void)out_.at(name);
  }
  template <typename T>
  void micro_time(std::string_view name, T&) {
    (void)out_.at(name);
  }

 private:
  // Reads a value without fields of its own, such as a text or a map, as a whole.
  template <typename T>
  static void list(KnownFields& out) {
    if constexpr (kIsOptional<T> || kIsVector<T>) {
      list<typename T::value_type>(out);
    } else if constexpr (requires(FieldLister& io, T& value) { visit(io, value); }) {
      T value{};
      FieldLister inner{out};
      visit(inner, value);
    } else if constexpr (std::same_as<T, RawJson>) {
      out.read_raw();
    }
  }

  KnownFields& out_;
};

template <typename T>
KnownFields list_fields() {
  KnownFields fields;
  T object{};
  FieldLister lister{fields};
  visit(lister, object);
  return fields;
}

template <ApiObject T>
const KnownFields& fields_of() {
  static const KnownFields kFields = [] {
    KnownFields fields = list_fields<T>();
    (void)fields.at("apiVersion");
    (void)fields.at("kind");
    return fields;
  }();
  return kFields;
}

// Returns, for example, "v1" or "kubegang.io/v1alpha1".
std::string api_version(const ResourceInfo& resource);

// Returns the Error of a decode<T> that found `failure`.
base::Error decode_error(const ResourceInfo& resource, const ObjectMeta& meta,
                         const std::string& failure);

// Does the parts of each decode<T>.
template <ApiObject T>
base::Result<T> decode_object(const JsonView& object) {
  T out;
  if (!object.is_object()) {
    return decode_error(T::kResource, out.metadata, "want an object, got " + quoted(object));
  }
  const JsonView kind = object.find("kind");
  if (kind.exists() && kind.string() != T::kResource.kind) {
    return decode_error(T::kResource, out.metadata, "kind is " + quoted(kind));
  }
  std::optional<std::string> failure;
  Decoder decoder{object, nullptr, failure};
  visit(decoder, out);
  if (failure) return decode_error(T::kResource, out.metadata, *failure);
  return out;
}

// Encodes the object with apiVersion and kind in front.
template <ApiObject T>
Json encode_object(const T& object) {
  Json out = Json::object();
  Encoder encoder{out};
  visit(encoder, object);
  out["apiVersion"] = api_version(T::kResource);
  out["kind"] = T::kResource.kind;
  return out;
}

}  // namespace kube::codec
