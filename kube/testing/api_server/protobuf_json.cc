#include "kube/testing/api_server/protobuf_json.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include "kube/base64.h"

namespace devcluster {
namespace {

using nlohmann::json;

constexpr std::string_view kMagic{"k8s\0", 4};
constexpr int kMessageDepthMax = 8;

struct Message;

// One field that is understood; all others are skipped.
struct MessageField {
  std::uint32_t number;
  const char* name;
  enum class Kind { kText, kBytes, kNumber, kFlag, kMessage, kTextMap, kBytesMap } kind;
  bool repeated = false;
  const Message* message = nullptr;
};

struct Message {
  std::vector<MessageField> fields;
};

using Kind = MessageField::Kind;

const Message& owner_reference() {
  static const Message kMessage{{{1, "kind", Kind::kText},
                                 {3, "name", Kind::kText},
                                 {4, "uid", Kind::kText},
                                 {5, "apiVersion", Kind::kText},
                                 {6, "controller", Kind::kFlag},
                                 {7, "blockOwnerDeletion", Kind::kFlag}}};
  return kMessage;
}

const Message& object_meta() {
  static const Message kMessage{{{1, "name", Kind::kText},
                                 {2, "generateName", Kind::kText},
                                 {3, "namespace", Kind::kText},
                                 {5, "uid", Kind::kText},
                                 {6, "resourceVersion", Kind::kText},
                                 {11, "labels", Kind::kTextMap},
                                 {12, "annotations", Kind::kTextMap},
                                 {13, "ownerReferences", Kind::kMessage, true, &owner_reference()},
                                 {14, "finalizers", Kind::kText, true}}};
  return kMessage;
}

const Message& preconditions() {
  static const Message kMessage{{{1, "uid", Kind::kText}, {2, "resourceVersion", Kind::kText}}};
  return kMessage;
}

const Message& delete_options() {
  static const Message kMessage{{{1, "gracePeriodSeconds", Kind::kNumber},
                                 {2, "preconditions", Kind::kMessage, false, &preconditions()},
                                 {3, "orphanDependents", Kind::kFlag},
                                 {4, "propagationPolicy", Kind::kText},
                                 {5, "dryRun", Kind::kText, true}}};
  return kMessage;
}

// Null: not understood.
const Message* message_of(const std::string& kind) {
  static const Message kMetadataOnly{{{1, "metadata", Kind::kMessage, false, &object_meta()}}};
  static const Message kConfigMap{{{1, "metadata", Kind::kMessage, false, &object_meta()},
                                   {2, "data", Kind::kTextMap},
                                   {3, "binaryData", Kind::kBytesMap},
                                   {4, "immutable", Kind::kFlag}}};
  static const Message kSecret{{{1, "metadata", Kind::kMessage, false, &object_meta()},
                                {2, "data", Kind::kBytesMap},
                                {3, "type", Kind::kText},
                                {4, "stringData", Kind::kTextMap},
                                {5, "immutable", Kind::kFlag}}};
  static const Message kEviction{{{1, "metadata", Kind::kMessage, false, &object_meta()},
                                  {2, "deleteOptions", Kind::kMessage, false, &delete_options()}}};
  if (kind == "Namespace" || kind == "ServiceAccount") return &kMetadataOnly;
  if (kind == "ConfigMap") return &kConfigMap;
  if (kind == "Secret") return &kSecret;
  if (kind == "Eviction") return &kEviction;
  if (kind == "DeleteOptions") return &delete_options();
  return nullptr;
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_{bytes} {}

  bool at_end() const { return bytes_.empty(); }
  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      if ((byte & 0x80U) == 0) return value;
    }
    return std::nullopt;
  }
  std::optional<std::string_view> take(std::uint64_t size) {
    if (size > bytes_.size()) return std::nullopt;
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }

 private:
  std::string_view bytes_;
};

// A field as it stands in the bytes.
struct Item {
  std::uint32_t number = 0;
  std::uint64_t number_value = 0;
  std::string_view bytes;
};

std::optional<Item> next_item(Reader& reader) {
  const auto tag = reader.varint();
  if (!tag) return std::nullopt;
  Item item;
  item.number = static_cast<std::uint32_t>(*tag >> 3U);
  std::optional<std::string_view> bytes = std::string_view{};
  switch (*tag & 7U) {
    case 0: {
      const auto value = reader.varint();
      if (!value) return std::nullopt;
      item.number_value = *value;
      break;
    }
    case 1:
      bytes = reader.take(8);
      break;
    case 2: {
      const auto size = reader.varint();
      bytes = size ? reader.take(*size) : std::nullopt;
      break;
    }
    case 5:
      bytes = reader.take(4);
      break;
    default:
      return std::nullopt;
  }
  if (!bytes) return std::nullopt;
  item.bytes = *bytes;
  return item;
}

// One entry of a map: key 1, value 2.
bool add_entry(std::string_view bytes, bool as_base64, json& map) {
  Reader reader{bytes};
  std::string key, value;
  while (!reader.at_end()) {
    const auto item = next_item(reader);
    if (!item) return false;
    if (item->number == 1) key = item->bytes;
    if (item->number == 2)
      value = as_base64 ? kube::encode_base64(item->bytes) : std::string{item->bytes};
  }
  map[key] = value;
  return true;
}

bool decode(const Message& message, std::string_view bytes, int depth, json& object);

bool add_field(const MessageField& field, const Item& item, int depth, json& object) {
  json value;
  switch (field.kind) {
    case Kind::kText:
      value = std::string{item.bytes};
      break;
    case Kind::kBytes:
      value = kube::encode_base64(item.bytes);
      break;
    case Kind::kNumber:
      value = static_cast<std::int64_t>(item.number_value);
      break;
    case Kind::kFlag:
      value = item.number_value != 0;
      break;
    case Kind::kTextMap:
      return add_entry(item.bytes, false, object[field.name]);
    case Kind::kBytesMap:
      return add_entry(item.bytes, true, object[field.name]);
    case Kind::kMessage:
      value = json::object();
      if (!decode(*field.message, item.bytes, depth + 1, value)) return false;
      break;
  }
  // Go writes absent strings as empty ones.
  if (value.is_string() && value.get_ref<const std::string&>().empty()) return true;
  if (field.repeated)
    object[field.name].push_back(std::move(value));
  else
    object[field.name] = std::move(value);
  return true;
}

bool decode(const Message& message, std::string_view bytes, int depth, json& object) {
  if (depth > kMessageDepthMax) return false;
  Reader reader{bytes};
  while (!reader.at_end()) {
    const auto item = next_item(reader);
    if (!item) return false;
    for (const MessageField& field : message.fields) {
      if (field.number == item->number && !add_field(field, *item, depth, object)) return false;
    }
  }
  return true;
}

}  // namespace

Outcome<json> protobuf_to_json(std::string_view body) {
  static const Message kTypeMeta{{{1, "apiVersion", Kind::kText}, {2, "kind", Kind::kText}}};
  if (!body.starts_with(kMagic))
    return bad_request("the body is not a Kubernetes protobuf message");
  Reader reader{body.substr(kMagic.size())};
  json object = json::object();
  std::string_view raw;
  while (!reader.at_end()) {
    const auto item = next_item(reader);
    if (!item) return bad_request("the body is not a Kubernetes protobuf message");
    if (item->number == 1 && !decode(kTypeMeta, item->bytes, 0, object)) {
      return bad_request("the body is not a Kubernetes protobuf message");
    }
    if (item->number == 2) raw = item->bytes;
  }
  const std::string kind = object.value("kind", "");
  const Message* message = message_of(kind);
  if (message == nullptr) {
    return unsupported_media_type("protobuf bodies of kind " + kind +
                                  " are not served by this development API server: send "
                                  "application/json (kubectl: create -f FILE)");
  }
  if (!decode(*message, raw, 0, object)) {
    return bad_request("the " + kind + " in the body is not a protobuf message");
  }
  return object;
}

}  // namespace devcluster
