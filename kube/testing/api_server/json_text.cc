#include "kube/testing/api_server/json_text.h"

#include <set>

#include <nlohmann/json.hpp>

#include "kube/testing/api_server/protobuf_json.h"

namespace devcluster {
namespace {

using nlohmann::json;

// Follows the parser through the text and notes keys that an object has twice, by their paths. It
// keeps one level for each object and list that is open, with the keys that the object has had; the
// parser's own tree cannot tell, since a second value has replaced the first by then.
class DuplicateFinder {
 public:
  explicit DuplicateFinder(std::vector<std::string>& duplicates) : duplicates_{duplicates} {}

  bool on_event(json::parse_event_t event, const json& parsed) {
    switch (event) {
      case json::parse_event_t::object_start:
        levels_.push_back({.is_array = false, .index = 0, .key = "", .keys = {}});
        break;
      case json::parse_event_t::array_start:
        levels_.push_back({.is_array = true, .index = 0, .key = "", .keys = {}});
        break;
      case json::parse_event_t::object_end:
      case json::parse_event_t::array_end:
        // The value that ends is itself an item of the level above.
        levels_.pop_back();
        end_value();
        break;
      case json::parse_event_t::key: {
        Level& level = levels_.back();
        level.key = parsed.get<std::string>();
        if (!level.keys.insert(level.key).second) duplicates_.push_back(path());
        break;
      }
      case json::parse_event_t::value:
        end_value();
        break;
    }
    return true;
  }

 private:
  struct Level {
    bool is_array;
    std::size_t index;
    std::string key;
    std::set<std::string> keys;
  };

  // A list counts its items at their ends, so the index is right for a key within an item.
  void end_value() {
    if (!levels_.empty() && levels_.back().is_array) ++levels_.back().index;
  }
  std::string path() const {
    std::string text;
    for (const Level& level : levels_) {
      if (level.is_array)
        text += "[" + std::to_string(level.index) + "]";
      else
        text += (text.empty() ? "" : ".") + level.key;
    }
    return text;
  }

  std::vector<std::string>& duplicates_;
  std::vector<Level> levels_;
};

// Copying, comparing and writing JSON recurse; a body of brackets alone would use up the stack.
constexpr int kDepthMax = 1000;

// The JSON library keeps the last of two equal keys and says nothing, hence the finder beside it.
// The callback returns false for what is too deep, so that no such tree is built.
Outcome<json> parse_any(std::string_view text, std::vector<std::string>& duplicates) {
  DuplicateFinder finder{duplicates};
  bool too_deep = false;
  try {
    json value = json::parse(text, [&](int depth, json::parse_event_t event, json& parsed) {
      too_deep = too_deep || depth > kDepthMax;
      return !too_deep && finder.on_event(event, parsed);
    });
    if (too_deep) {
      return bad_request("the object provided is unrecognized: it is nested more than " +
                         std::to_string(kDepthMax) + " levels deep");
    }
    return value;
  } catch (const json::exception& error) {
    return bad_request(std::string{"the object provided is unrecognized (must be JSON): "} +
                       error.what());
  }
}

// Returns true if a strategic merge patch means something else than a merge patch: it has a list
// (which may have merge keys) or a directive ($patch, $retainKeys).
bool needs_strategy(const json& patch) {
  if (patch.is_array()) return true;
  if (!patch.is_object()) return false;
  for (const auto& [key, value] : patch.items()) {
    if (key.starts_with('$') || needs_strategy(value)) return true;
  }
  return false;
}

// A JSON patch whose path or test fails: these are the words of a real server, which does not say
// which one.
ApiError cannot_apply() {
  ApiError error;
  error.code = 422;
  error.reason = "Invalid";
  error.message = "the server rejected our request due to an error in our request";
  return error;
}

}  // namespace

// Returns "application/json" of "application/json; charset=utf-8".
std::string media_type(std::string_view content_type) {
  std::string_view type = content_type.substr(0, content_type.find(';'));
  while (!type.empty() && type.back() == ' ') type.remove_suffix(1);
  return std::string{type};
}

// Parses JSON, or the one message of protocol buffers that kubectl always sends; see
// protobuf_json.cc.
Outcome<json> parse_object(std::string_view body, std::string_view content_type,
                           std::vector<std::string>& duplicates) {
  const std::string type = media_type(content_type);
  if (type == kProtobufType) return protobuf_to_json(body);
  if (!type.empty() && type != "application/json") {
    return unsupported_media_type(
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json");
  }
  auto parsed = parse_any(body, duplicates);
  if (parsed.ok() && !parsed->is_object()) {
    return bad_request("the body of the request must be a JSON object");
  }
  return parsed;
}

// 1. refuse the kinds that are not served, each with what to use instead; 2. parse; 3. apply. A
//    strategic merge without lists and directives is the same as a merge patch, so `kubectl patch`
//    of plain fields works.
Outcome<json> apply_patch(const json& object, bool is_custom, std::string_view patch,
                          std::string_view content_type, std::vector<std::string>& duplicates) {
  const std::string type = media_type(content_type);
  if (type == "application/apply-patch+yaml" || type == "application/apply-patch+cbor") {
    return unsupported_media_type(
        "server-side apply is not served by this development API server: use kubectl apply without "
        "--server-side, or a merge patch");
  }
  const bool strategic = !is_custom && type == "application/strategic-merge-patch+json";
  if (!strategic && type != "application/merge-patch+json" &&
      type != "application/json-patch+json") {
    return unsupported_media_type(
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json");
  }
  auto parsed = parse_any(patch, duplicates);
  if (!parsed.ok()) return parsed;
  // A copy: a patch of which one operation fails changes nothing.
  json patched = object;
  try {
    if (type == "application/json-patch+json") return patched.patch(*parsed);
  } catch (const json::exception&) {
    return cannot_apply();
  }
  if (!parsed->is_object()) return bad_request("a merge patch must be a JSON object");
  if (strategic && needs_strategy(*parsed)) {
    return unsupported_media_type(
        "strategic merge patches of lists are not served by this development API server: use a "
        "merge "
        "patch (kubectl patch --type=merge) or kubectl replace");
  }
  patched.merge_patch(*parsed);
  return patched;
}

}  // namespace devcluster
