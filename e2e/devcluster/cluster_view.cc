#include "e2e/devcluster/cluster_view.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "e2e/devcluster/apply.h"

namespace devcluster {
namespace {

using nlohmann::json;

constexpr const char* kJobsPath = "/apis/kubegang.io/v1alpha1/jobs";
constexpr const char* kTimetablesPath = "/apis/kubegang.io/v1alpha1/nodetimetables";

// Reads all objects of a kind as our types. A demo's cluster is small: one list, without pages.
template <typename T>
base::Status read_all(kube::Transport& transport, const char* path, std::vector<T>& out) {
  const base::Result<json> list = get_api(transport, path);
  if (!list.ok()) return list.error();
  for (const json& item : list->value("items", json::array())) {
    base::Result<T> object = kube::decode<T>(item);
    if (!object.ok()) return object.error();
    out.push_back(std::move(object).value());
  }
  return {};
}

}  // namespace

// Null if there is none of that name; the demo has one namespace.
const kube::Job* ClusterView::job(const std::string& name) const {
  const auto found = std::find_if(jobs.begin(), jobs.end(),
                                  [&](const kube::Job& one) { return one.metadata.name == name; });
  return found == jobs.end() ? nullptr : &*found;
}

// Two reads, one after the other: the jobs may be a moment older than the timetables, which is
// nothing to a picture that is drawn ten times a second.
base::Result<ClusterView> read_cluster(kube::Transport& transport) {
  ClusterView view;
  if (const auto status = read_all(transport, kJobsPath, view.jobs); !status.ok()) {
    return status.error();
  }
  if (const auto status = read_all(transport, kTimetablesPath, view.timetables); !status.ok()) {
    return status.error();
  }
  // In the order of submission, so that rows and colors of the picture stay the same between two
  // reads.
  std::sort(view.jobs.begin(), view.jobs.end(), [](const kube::Job& a, const kube::Job& b) {
    return std::tie(a.metadata.creation_timestamp, a.metadata.name) <
           std::tie(b.metadata.creation_timestamp, b.metadata.name);
  });
  return view;
}

// By the condition in the timetables' statuses, which agents write.
std::size_t agents_ready(const ClusterView& view) {
  return static_cast<std::size_t>(std::count_if(
      view.timetables.begin(), view.timetables.end(), [](const kube::NodeTimetable& timetable) {
        return kube::is_true(timetable.status.conditions, "Ready");
      }));
}

// Reads all namespaces.
base::Result<std::vector<std::string>> pod_names(kube::Transport& transport) {
  const base::Result<json> list = get_api(transport, "/api/v1/pods");
  if (!list.ok()) return list.error();
  std::vector<std::string> names;
  for (const json& item : list->value("items", json::array())) {
    names.push_back(item["metadata"]["name"].get<std::string>());
  }
  return names;
}

}  // namespace devcluster
