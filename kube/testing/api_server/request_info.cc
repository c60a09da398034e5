#include "kube/testing/api_server/request_info.h"

#include <charconv>

#include "kube/url.h"

namespace devcluster {
namespace {

// The verb before it is known whether the path is one object or a collection.
std::string_view method_name(kube::Method method) {
  switch (method) {
    case kube::Method::kGet:
      return "get";
    case kube::Method::kPost:
      return "create";
    case kube::Method::kPut:
      return "update";
    case kube::Method::kPatch:
      return "patch";
    case kube::Method::kDelete:
      return "delete";
  }
  return "get";
}

// Fills in the fields after group and version from what follows them in the path:
// [namespaces/NS/]RESOURCE[/NAME[/SUBRESOURCE]]. A Namespace itself has the same beginning
// ("namespaces/NS", "namespaces/NS/status"), hence the look at what follows.
void parse_resource(std::vector<std::string> rest, RequestInfo& info) {
  if (rest.size() >= 2 && rest[0] == "namespaces") {
    const bool namespace_itself =
        rest.size() == 2 || (rest.size() == 3 && (rest[2] == "status" || rest[2] == "finalize"));
    info.ns = rest[1];
    if (!namespace_itself) rest.erase(rest.begin(), rest.begin() + 2);
  }
  info.is_resource = true;
  info.resource = rest[0];
  if (rest.size() > 1) info.name = rest[1];
  for (std::size_t i = 2; i < rest.size(); ++i) {
    info.subresource += (info.subresource.empty() ? "" : "/") + rest[i];
  }
  if (info.resource == "namespaces") info.ns.clear();
}

}  // namespace

// "a=1&b=2"; '+' is a blank. If a key comes twice, the first value counts.
Query Query::parse(std::string_view text) {
  Query query;
  while (!text.empty()) {
    const std::size_t end = text.find('&');
    const std::string_view pair = text.substr(0, end);
    const std::size_t equals = pair.find('=');
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view{} : pair.substr(equals + 1);
    query.pairs_.emplace_back(kube::percent_decode(pair.substr(0, equals), true),
                              kube::percent_decode(value, true));
    query.values_.insert(query.pairs_.back());
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return query;
}

std::vector<std::string> Query::all(const std::string& name) const {
  std::vector<std::string> found;
  for (const auto& [key, value] : pairs_) {
    if (key == name) found.push_back(value);
  }
  return found;
}

std::string Query::get(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::string{} : found->second;
}

// Reads the usual spellings as Go's strconv.ParseBool does.
bool Query::is_true(const std::string& name) const {
  const std::string value = get(name);
  return value == "true" || value == "1" || value == "True" || value == "t";
}

// nullopt also for a text that only begins with a number.
std::optional<std::int64_t> Query::number(const std::string& name) const {
  const std::string text = get(name);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// SOURCE: RequestInfoFactory of k8s.io/apiserver. A GET of a collection is a list or a watch, a
// DELETE of one is a deletecollection. Empty segments are skipped, so "//api/v1/" is the same as
// "/api/v1". A GET of one object with watch=true is a watch as well, of that object alone.
RequestInfo parse_request(const kube::Request& request) {
  RequestInfo info;
  std::string_view target = request.path;
  const std::size_t question = target.find('?');
  if (question != std::string_view::npos) {
    info.query = Query::parse(target.substr(question + 1));
    target = target.substr(0, question);
  }
  while (!target.empty()) {
    const std::size_t end = target.find('/');
    if (end != 0) info.segments.push_back(kube::percent_decode(target.substr(0, end)));
    target = end == std::string_view::npos ? std::string_view{} : target.substr(end + 1);
  }
  for (const std::string& segment : info.segments) info.path += "/" + segment;
  if (info.path.empty()) info.path = "/";
  info.verb = method_name(request.method);

  const std::vector<std::string>& path = info.segments;
  if (path.size() >= 3 && path[0] == "api") {
    info.version = path[1];
    parse_resource({path.begin() + 2, path.end()}, info);
  } else if (path.size() >= 4 && path[0] == "apis") {
    info.group = path[1];
    info.version = path[2];
    parse_resource({path.begin() + 3, path.end()}, info);
  }
  if (info.is_resource && info.name.empty()) {
    if (info.verb == "get") info.verb = info.query.is_true("watch") ? "watch" : "list";
    if (info.verb == "delete") info.verb = "deletecollection";
  } else if (info.is_resource && info.verb == "get" && info.subresource.empty() &&
             info.query.is_true("watch")) {
    info.verb = "watch";
  }
  return info;
}

}  // namespace devcluster
