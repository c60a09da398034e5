// A request's address, taken apart: which resource, which object, which parameters.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/transport.h"

namespace devcluster {

// The query string, decoded. If a parameter stands twice, the first one counts.
class Query {
 public:
  static Query parse(std::string_view text);
  std::string get(const std::string& name) const;  // "" where absent
  // Returns all values, in order, of a parameter that stands several times.
  std::vector<std::string> all(const std::string& name) const;
  bool has(const std::string& name) const { return values_.contains(name); }
  bool is_true(const std::string& name) const;  // "true" or "1"
  std::optional<std::int64_t> number(const std::string& name) const;
  void set(const std::string& name, std::string value) { values_[name] = std::move(value); }

 private:
  std::map<std::string, std::string> values_;
  std::vector<std::pair<std::string, std::string>> pairs_;  // as they were read
};

struct RequestInfo {
  std::string path;                   // decoded, without the query
  std::vector<std::string> segments;  // of the path, decoded, without empty ones
  Query query;

  // Filled in for /api/v1/… and /apis/GROUP/VERSION/… with something behind it.
  bool is_resource = false;
  std::string group;
  std::string version;
  std::string ns;
  std::string resource;
  std::string name;
  std::string subresource;
  // get, list, watch, create, update, patch, delete, deletecollection; for other paths the HTTP
  // method in lower case.
  std::string verb;
};

RequestInfo parse_request(const kube::Request& request);

}  // namespace devcluster
