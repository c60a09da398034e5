#include "records/answers.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "kube/api/time_format.h"

namespace records {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLimitMax = 1'000;
constexpr std::size_t kNumbersMax = 1'000;

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string group_version() {
  return std::string{kApiGroup} + "/" + kApiVersion;
}

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (text.empty() || parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
  return number;
}

base::Status read_jobs(std::string_view text, std::vector<std::int64_t>& jobs) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const auto number = number_in(text.substr(0, end));
    if (!number || jobs.size() == kNumbersMax) {
      return base::invalid_argument("jobs: want at most " + std::to_string(kNumbersMax) +
                                    " numbers, separated by commas");
    }
    jobs.push_back(*number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

base::Status read_place(std::string_view text, Query& query) {
  const std::size_t dash = std::min(text.find('-'), text.size());
  const auto end = number_in(text.substr(0, dash));
  const auto id = number_in(text.substr(std::min(dash + 1, text.size())));
  if (!end || !id) return base::invalid_argument("continue: not a value that an answer gave");
  query.after = Place{.end = *end, .id = *id};
  return {};
}

base::Status read_time(const std::string& name, const std::string& text, base::Instant& out) {
  const auto instant = kube::parse_instant(text);
  if (!instant) return instant.error().with_context(name);
  out = *instant;
  return {};
}

base::Status read_limit(std::string_view text, Query& query) {
  const auto number = number_in(text);
  if (!number || *number < 0) return base::invalid_argument("limit: want a number");
  const auto wanted = static_cast<std::size_t>(*number);
  query.limit = wanted == 0 ? kLimitMax : std::min(wanted, kLimitMax);
  return {};
}

base::Status read_parameter(const std::string& name, const std::string& value, Query& query) {
  if (name == "from") return read_time(name, value, query.from);
  if (name == "until") return read_time(name, value, query.until);
  if (name == "user") query.user = value;
  if (name == "jobs") return read_jobs(value, query.jobs);
  if (name == "continue" && !value.empty()) return read_place(value, query);
  if (name == "limit") return read_limit(value, query);
  // The API server has asked whether the user may list; a watch is another right.
  if (name == "watch" && value != "false" && value != "0") {
    return base::invalid_argument("records can be listed, not watched");
  }
  return {};
}

ApiAnswer list_of_groups() {
  const Json version = {{"groupVersion", group_version()}, {"version", kApiVersion}};
  return {.body = text_of(Json{{"kind", "APIGroup"},
                               {"apiVersion", "v1"},
                               {"name", kApiGroup},
                               {"versions", Json::array({version})},
                               {"preferredVersion", version}})};
}

ApiAnswer list_of_resources() {
  const Json resource = {{"name", "records"},
                         {"singularName", "record"},
                         {"namespaced", true},
                         {"kind", "Record"},
                         {"verbs", Json::array({"list"})}};
  return {.body = text_of(Json{{"kind", "APIResourceList"},
                               {"apiVersion", "v1"},
                               {"groupVersion", group_version()},
                               {"resources", Json::array({resource})}})};
}

// The API server asks for it again and again. A record has no fields that kubectl would check.
ApiAnswer empty_schema() {
  return {.body = text_of(Json{{"swagger", "2.0"},
                               {"info", {{"title", "kubegang-records"}, {"version", kApiVersion}}},
                               {"paths", Json::object()}})};
}

// Returns a name that no other record has.
std::string name_of(const Record& record) {
  std::string name = record.job_uid + "-" + std::to_string(record.restart);
  if (record.task) name += "-" + std::to_string(*record.task);
  return name;
}

ApiAnswer list_of_records(const Query& query, const Reader& reader) {
  const auto page = reader.find(query);
  const auto since = reader.since();
  if (!page || !since) {
    return refusal(500, "InternalError", page ? since.error().message : page.error().message);
  }
  Json items = Json::array();
  for (const Record& record : page->records) {
    items.push_back({{"apiVersion", group_version()},
                     {"kind", "Record"},
                     {"metadata", {{"name", name_of(record)}, {"namespace", record.ns}}},
                     {"record", encode(record)}});
  }
  Json metadata = {{"recordedSince", kube::format_micro_time(*since)}};
  if (page->next) {
    metadata["continue"] = std::to_string(page->next->end) + "-" + std::to_string(page->next->id);
  }
  return {.body = text_of(Json{{"apiVersion", group_version()},
                               {"kind", "RecordList"},
                               {"metadata", std::move(metadata)},
                               {"items", std::move(items)}})};
}

// Returns the namespace in ".../namespaces/NAME/records", "" in ".../records". Anything but these
// two, to the letter, is not a list: the API server may have read another path out of it.
std::optional<std::string> namespace_in(std::string_view path) {
  if (path == "/records") return "";
  constexpr std::string_view kBegin = "/namespaces/";
  constexpr std::string_view kEnd = "/records";
  if (!path.starts_with(kBegin) || !path.ends_with(kEnd)) return std::nullopt;
  if (path.size() <= kBegin.size() + kEnd.size()) return std::nullopt;
  path.remove_prefix(kBegin.size());
  path.remove_suffix(kEnd.size());
  if (path.find('/') != std::string_view::npos) return std::nullopt;
  return std::string{path};
}

}  // namespace

ApiAnswer refusal(int status, const std::string& reason, const std::string& message) {
  return {.status = status,
          .body = text_of(Json{{"kind", "Status"},
                               {"apiVersion", "v1"},
                               {"status", "Failure"},
                               {"message", message},
                               {"reason", reason},
                               {"code", status}})};
}

ApiAnswer answer_of(const ApiRequest& request, const Reader& reader, const std::string& cluster) {
  if (request.method != "GET") {
    return refusal(405, "MethodNotAllowed", "records can only be read");
  }
  const std::string group = std::string{"/apis/"} + kApiGroup;
  if (request.path == "/openapi/v2") return empty_schema();
  if (request.path == group) return list_of_groups();
  const std::string version = group + "/" + kApiVersion;
  if (request.path == version) return list_of_resources();
  const auto ns = request.path.starts_with(version)
                      ? namespace_in(std::string_view{request.path}.substr(version.size()))
                      : std::nullopt;
  if (!ns) return refusal(404, "NotFound", "no such path: there are lists of records");
  Query query{.cluster = cluster, .ns = *ns};
  for (const auto& [name, value] : request.query) {
    if (const base::Status status = read_parameter(name, value, query); !status) {
      return refusal(400, "BadRequest", status.error().message);
    }
  }
  return list_of_records(query, reader);
}

}  // namespace records
