// The API server that is measured, as its administrator: many objects at a time, and what it
// counted.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/clock.h"
#include "kube/http_transport.h"

namespace kubernetes_bench {

inline constexpr std::chrono::minutes kPatience{30};

class BenchApi {
 public:
  // REQUIRES: connect() before anything else.
  explicit BenchApi(const kube::Clock& clock) : clock_{clock} {}
  base::Status connect(const std::string& kubeconfig);

  kube::Transport& transport() { return *transport_; }
  base::Result<nlohmann::json> call(kube::Method method, const std::string& path);  // no body
  base::Result<nlohmann::json> call(kube::Method method, const std::string& path,
                                    const nlohmann::json& body);
  // POSTs, as many at a time as there are connections; ends with the first error.
  base::Status create_all(const std::string& path, const std::vector<nlohmann::json>& objects);
  // The same for any calls: `one` gets the index.
  base::Status for_each(std::size_t count, const std::function<base::Status(std::size_t)>& one);
  base::Status wait_until(const std::string& what, const std::function<bool()>& condition);
  base::Status make_namespace(const std::string& name);  // and waits for its service account
  // Deletes everything below the paths of that namespace's objects, and waits until it is gone;
  // first `owners` (may be empty), then pods.
  base::Status clean(const std::string& ns, const std::string& owners_path);
  // Requests that the API server has answered, by "verb resource/subresource"; watches apart.
  base::Result<std::map<std::string, double>> request_counts();

 private:
  const kube::Clock& clock_;
  std::unique_ptr<kube::HttpTransport> transport_;
};

std::string pods_path(const std::string& ns);
std::string gang_jobs_path(const std::string& ns);
std::string batch_jobs_path(const std::string& ns);

}  // namespace kubernetes_bench
