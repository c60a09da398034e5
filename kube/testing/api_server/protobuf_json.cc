#include "kube/testing/api_server/protobuf_json.h"

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

// The wire format of protocol buffers, read without a library. A message is a sequence of fields,
// each a tag (number << 3 | wire type) and its contents. Numbers are varints: seven bits a byte,
// the lowest first, the top bit says that more follow. Wire types: 0 varint, 1 eight bytes, 2
// length and bytes (texts, messages), 5 four bytes. Kubernetes puts four bytes of magic in front,
// then an Unknown message that holds the kind and the object's bytes. SOURCE: protobuf.dev,
// "Encoding"; Kubernetes API concepts, "Protobuf encoding".
namespace devcluster {
namespace {

using nlohmann::json;

constexpr std::string_view kMagic{"k8s\0", 4};

// A message's bytes, taken from the front. nullopt: they end too early.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_{bytes} {}

  bool at_end() const { return bytes_.empty(); }
  // More than ten bytes are a mistake: 64 bits end there.
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
  std::optional<std::string_view> take(std::optional<std::uint64_t> size) {
    if (!size || *size > bytes_.size()) return std::nullopt;
    const std::string_view taken = bytes_.substr(0, *size);
    bytes_.remove_prefix(*size);
    return taken;
  }
  // Returns the contents of a field; those of a number are empty.
  std::optional<std::string_view> contents(std::uint64_t wire_type) {
    switch (wire_type) {
      case 0:
        return varint() ? std::optional{std::string_view{}} : std::nullopt;
      case 1:
        return take(8);
      case 2:
        return take(varint());
      case 5:
        return take(4);
      default:
        return std::nullopt;
    }
  }

 private:
  std::string_view bytes_;
};

// Reads the text or message in a field; empty if the message lacks it, nullopt if it is none.
std::optional<std::string_view> field(std::string_view message, std::uint64_t number) {
  Reader reader{message};
  std::string_view found;
  while (!reader.at_end()) {
    const auto tag = reader.varint();
    const auto contents = tag ? reader.contents(*tag & 7U) : std::nullopt;
    if (!contents) return std::nullopt;
    // The last one counts, as the format demands of readers.
    if (*tag >> 3U == number) found = *contents;
  }
  return found;
}

}  // namespace

Outcome<json> protobuf_to_json(std::string_view body) {
  const auto malformed = [] {
    return bad_request("the body is not a Kubernetes protobuf message");
  };
  if (!body.starts_with(kMagic)) return malformed();
  body.remove_prefix(kMagic.size());
  const auto type = field(body, 1);    // Unknown.typeMeta
  const auto object = field(body, 2);  // Unknown.raw
  if (!type || !object) return malformed();
  const auto kind = field(*type, 2);  // TypeMeta.kind
  if (!kind) return malformed();
  // `kubectl create namespace` sends this form without being asked for it; other commands send
  // JSON.
  if (*kind != "Namespace") {
    return unsupported_media_type("protobuf bodies of kind " + std::string{*kind} +
                                  " are not served by this development API server: send "
                                  "application/json (kubectl: create -f FILE)");
  }
  const auto metadata = field(*object, 1);                          // Namespace.metadata
  const auto name = metadata ? field(*metadata, 1) : std::nullopt;  // ObjectMeta.name
  if (!name) return malformed();
  return json{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", *name}}}};
}

}  // namespace devcluster
