#include "operator/testing/stored.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/job.h"
#include "api/node_timetable.h"
#include "base/check.h"
#include "kube/api/meta.h"
#include "kube/api/pod.h"

namespace control {
namespace {

// Objects are decoded without a request: what the API server stores is legal, so a failure is a
// defect.
template <typename T>
std::shared_ptr<const T> decoded(const nlohmann::json& stored) {
  auto object = kube::decode<T>(stored);
  CHECK(object.ok(), object.ok() ? "" : object.error().message);
  return std::make_shared<const T>(std::move(*object));
}

}  // namespace

template <typename T>
std::vector<std::shared_ptr<const T>> Stored<T>::all() const {
  look();
  return objects_;
}

template <typename T>
std::shared_ptr<const T> Stored<T>::find(const std::string& ns, const std::string& name) const {
  look();
  const auto found = std::find_if(objects_.begin(), objects_.end(), [&](const Ptr& one) {
    return one->metadata.name == name && one->metadata.ns == ns;
  });
  return found == objects_.end() ? nullptr : *found;
}

// Decodes what has changed since the last look. An object that did not change is the same pointer
// in the server, by which it is found again; a World looks after every write, and most objects
// stay.
template <typename T>
void Stored<T>::look() const {
  const std::int64_t version = server_.resource_version();
  if (version == seen_) return;
  seen_ = version;
  std::map<Json, Ptr> known;
  objects_.clear();
  for (const Json& one : server_.objects(T::kResource)) {
    const auto before = decoded_.find(one);
    objects_.push_back(before != decoded_.end() ? before->second : decoded<T>(*one));
    known.emplace(one, objects_.back());
  }
  decoded_ = std::move(known);
}

// The kinds that Worlds look at.
template class Stored<kube::Job>;
template class Stored<kube::NodeTimetable>;
template class Stored<kube::Pod>;

}  // namespace control
