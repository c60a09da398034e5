#include "api/packed_tasks.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "api/job_codec.h"
#include "kube/base64.h"

namespace kube {
namespace {

constexpr const char* kLists[] = {"tasks", "ended"};
// Shorter lists stay as people read them.
constexpr std::size_t kPlainBytesMax = 1'024;
// More than thousand entries with the longest sentences take.
constexpr std::size_t kUnpackedBytesMax = std::size_t{8} << 20U;

// nullopt: there is no memory for it.
std::optional<std::string> deflated(const std::string& text) {
  uLongf size = compressBound(text.size());
  std::string out(size, '\0');
  // zlib's bytes are not those of C++.
  const auto* from = reinterpret_cast<const Bytef*>(text.data());
  if (compress(reinterpret_cast<Bytef*>(out.data()), &size, from, text.size()) != Z_OK) return {};
  out.resize(size);
  return out;
}

// nullopt: zlib has not made it, or it is longer than it may be.
std::optional<std::string> inflated(std::string bytes) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return {};
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string text;
  int state = Z_OK;
  while (state == Z_OK && text.size() < kUnpackedBytesMax) {
    const std::size_t had = text.size();
    text.resize(std::max<std::size_t>(2 * had, std::size_t{64} << 10U));
    stream.next_out = reinterpret_cast<Bytef*>(text.data() + had);
    stream.avail_out = static_cast<uInt>(text.size() - had);
    state = inflate(&stream, Z_NO_FLUSH);
    text.resize(text.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (state != Z_STREAM_END) return {};
  return text;
}

base::Error not_readable(const std::string& why) {
  return base::invalid_argument("status.array.packed: " + why);
}

}  // namespace

void pack_tasks(nlohmann::json& status) {
  const auto array = status.find("array");
  if (array == status.end()) return;
  nlohmann::json lists = nlohmann::json::object();
  for (const char* name : kLists) {
    if (array->contains(name)) lists[name] = array->at(name);
  }
  if (status.contains("term")) lists["term"] = status["term"];
  const std::string text = lists.dump();
  if (text.size() <= kPlainBytesMax || text.size() > kUnpackedBytesMax) return;
  const auto packed = deflated(text);
  if (!packed) return;
  for (const char* name : kLists) array->erase(name);
  (*array)["packed"] = encode_base64(*packed);
}

base::Status unpack_tasks(JobStatus& status) {
  if (!status.array || status.array->packed.empty()) return {};
  auto bytes = decode_base64(std::exchange(status.array->packed, {}));
  if (!bytes) return not_readable("want base64");
  const auto text = inflated(*std::move(bytes));
  if (!text) return not_readable("want what zlib has packed");
  static const KnownFields kFields = [] {
    KnownFields fields = codec::list_fields<ArrayStatus>();
    (void)fields.at("term");
    return fields;
  }();
  const auto json = JsonText::read(*text, kFields);
  if (!json || !json->root().is_object()) return not_readable("want an object");
  ArrayStatus lists;
  std::optional<std::int64_t> term;
  std::optional<std::string> failure;
  codec::Decoder decoder{json->root(), nullptr, failure};
  visit(decoder, lists);
  decoder.field("term", term);
  if (failure) return not_readable(*failure);
  if (term != status.term) return {};
  status.array->tasks = std::move(lists.tasks);
  status.array->ended = std::move(lists.ended);
  return {};
}

}  // namespace kube
