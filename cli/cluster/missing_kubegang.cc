#include "cli/cluster/missing_kubegang.h"

#include <nlohmann/json.hpp>

#include "api/job.h"

namespace cli {

// An object that is missing, or a kind that an older chart did not have, comes as a Status: then
// there is a kubegang, and the answer stays as it is.
base::Result<kube::Response> TellsMissingKubegang::send(const kube::Request& request) {
  base::Result<kube::Response> response = inner_.send(request);
  const std::string of_ours = "/apis/" + std::string{kube::Job::kResource.group} + "/";
  if (!response || response->status != 404 || !request.path.starts_with(of_ours) ||
      nlohmann::json::parse(response->body, nullptr, false).is_object()) {
    return response;
  }
  const std::string where = origin_.empty() ? "" : " (" + origin_ + ")";
  const nlohmann::json status = {
      {"kind", "Status"},
      {"apiVersion", "v1"},
      {"status", "Failure"},
      {"reason", "NotFound"},
      {"code", 404},
      {"message", "this cluster has no kubegang" + where + "; is the chart installed?"}};
  response->body = status.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return response;
}

}  // namespace cli
