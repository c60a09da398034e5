#include "cli/cluster/user.h"

#include <nlohmann/json.hpp>

#include "api/annotations.h"

namespace cli {

std::optional<std::string> own_user(const Session& session) {
  const nlohmann::json review = {{"apiVersion", "authentication.k8s.io/v1"},
                                 {"kind", "SelfSubjectReview"}};
  const auto answer = session.client.call_json(
      kube::Method::kPost, "/apis/authentication.k8s.io/v1/selfsubjectreviews", &review);
  if (!answer || !answer->is_object()) return std::nullopt;
  const nlohmann::json::json_pointer at{"/status/userInfo/username"};
  if (!answer->contains(at) || !answer->at(at).is_string()) return std::nullopt;
  return answer->at(at).get<std::string>();
}

void set_user(const Session& session, kube::Job& job) {
  if (const auto user = own_user(session)) {
    job.metadata.annotations[std::string{kube::kAnnotationUser}] = *user;
  }
}

}  // namespace cli
