// The objects that an API server keeps, each decoded once for each of its versions. The parts of a
// test's cluster look at them after every change; as requests, with JSON to be written and read
// again, these looks took four fifths of the time of the operator's tests.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "kube/testing/api_server/api_server.h"

namespace control {

// For Job, Pod and NodeTimetable.
template <typename T>
class Stored {
 public:
  using Ptr = std::shared_ptr<const T>;

  explicit Stored(const devcluster::ApiServer& server) : server_{server} {}

  // By namespace and name. As of this call: a write that follows leaves it as it is.
  std::vector<Ptr> all() const;
  // Null where there is none.
  Ptr find(const std::string& ns, const std::string& name) const;

 private:
  using Json = std::shared_ptr<const nlohmann::json>;

  void look() const;

  const devcluster::ApiServer& server_;
  mutable std::int64_t seen_ = -1;
  mutable std::map<Json, Ptr> decoded_;  // keeps the JSON, so that no other one gets its address
  mutable std::vector<Ptr> objects_;
};

}  // namespace control
