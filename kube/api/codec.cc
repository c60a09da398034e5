#include "kube/api/codec.h"

// The decoder's rules if the server and this type do not agree:
//
// * a member that the type does not list is never seen: known_fields() leaves it out of the table
// * a member that is absent or null leaves the default of the field
// * a value of another type, or out of range, makes the whole object undecodable; the message names
//   the path and the value
//
// The decoder goes on after a failure instead of returning through every level, which keeps the
// visits of all kinds free of error handling. Only the first failure is kept; decode_object()
// returns it instead of the object, so a half that was read is never used.
namespace kube::codec {

// Returns "spec.containers[0].name". Made into text for a failure only: while all goes well a path
// is a chain on the stack.
std::string Path::text() const {
  std::string out = parent == nullptr ? "" : parent->text();
  if (index) return out + "[" + std::to_string(*index) + "]";
  if (!out.empty()) out += ".";
  return out + std::string{name};
}

// Quotes a value in a message, cut: it may be a whole object.
std::string quoted(const JsonView& value) {
  constexpr std::size_t kCharactersMax = 80;
  std::string text = value.tree().dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kCharactersMax) text = text.substr(0, kCharactersMax) + "…";
  return text;
}

void Decoder::fail(const Path& path, std::string what) {
  // The first one only: what is wrong behind it may follow from it.
  if (!failure_) failure_ = path.text() + ": " + std::move(what);
}

// A time that is absent or null leaves `out` as it is.
void Decoder::time(std::string_view name, std::optional<base::Instant>& out) {
  const JsonView value = object_.find(name);
  if (value.is_null()) return;
  std::string text;
  const Path path{path_, name, {}};
  read(value, path, text);
  // read() has noted that failure.
  if (!value.is_string()) return;
  const auto t = parse_instant(text);
  if (!t.ok()) return fail(path, t.error().message);
  out = *t;
}

// For instants that must be there: an absent one leaves what `out` was.
void Decoder::micro_time(std::string_view name, base::Instant& out) {
  std::optional<base::Instant> value;
  time(name, value);
  if (value) out = *value;
}

void Decoder::read(const JsonView& value, const Path& path, bool& out) {
  if (!value.is_boolean()) return fail(path, "want true or false, got " + quoted(value));
  out = value.boolean();
}

void Decoder::read(const JsonView& value, const Path& path, std::string& out) {
  if (!value.is_string()) return fail(path, "want a string, got " + quoted(value));
  out = value.string();
}

// Numbers above 2^63 are unsigned to the JSON library; read as signed they would come out negative,
// and pass for small ones.
void Decoder::read_integer(const JsonView& value, const Path& path, std::int64_t min,
                           std::int64_t max, std::int64_t& out) {
  // 1.0 is a number with a fraction to the library, and refused like 1.5; Go does the same.
  const Json number = value.is_number() ? value.tree() : Json{};
  if (!number.is_number_integer()) return fail(path, "want an integer, got " + quoted(value));
  const bool above =
      number.is_number_unsigned() && number.get<std::uint64_t>() > static_cast<std::uint64_t>(max);
  if (above || number.get<std::int64_t>() > max || number.get<std::int64_t>() < min) {
    return fail(path, "want an integer from " + std::to_string(min) + " to " + std::to_string(max) +
                          ", got " + quoted(value));
  }
  out = number.get<std::int64_t>();
}

void Decoder::read(const JsonView& value, const Path& path, base::Duration& out) {
  if (!value.is_string()) return fail(path, "want a duration like \"30s\", got " + quoted(value));
  const auto d = parse_duration(value.string());
  if (!d.ok()) return fail(path, d.error().message);
  out = *d;
}

void Decoder::read(const JsonView& value, const Path& path, Quantity& out) {
  const bool number = value.is_number();
  if (!number && !value.is_string()) {
    return fail(path, "want a quantity like \"512Mi\", got " + quoted(value));
  }
  // A bare number is what YAML makes of `memory: 0`.
  const auto q = parse_quantity(number ? value.tree().dump() : value.string());
  if (!q.ok()) return fail(path, q.error().message);
  out = *q;
}

void Decoder::read(const JsonView& value, const Path& path, Bytes& out) {
  Quantity quantity;
  read(value, path, quantity);
  out = quantity.bytes();
}

// The text was not looked at until now.
void Decoder::read(const JsonView& value, const Path& path, RawJson& out) {
  const Json tree = value.tree();
  if (tree.is_discarded()) return fail(path, "not valid JSON");
  out = RawJson{tree};
}

std::string api_version(const ResourceInfo& resource) {
  if (resource.group.empty()) return std::string{resource.version};
  return std::string{resource.group} + "/" + std::string{resource.version};
}

// Names kind and object, because objects come in lists of thousands.
base::Error decode_error(const ResourceInfo& resource, const ObjectMeta& meta,
                         const std::string& failure) {
  const std::string name = meta.name.empty() ? "without a name" : to_string(key_of(meta));
  return base::invalid_argument(std::string{resource.kind} + " " + name + ": " + failure);
}

}  // namespace kube::codec
