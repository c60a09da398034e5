#include "cli/cluster/page_readers.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace cli {
namespace {

using ReviewJson = nlohmann::json;

constexpr const char* kTokenReviews = "/apis/authentication.k8s.io/v1/tokenreviews";
constexpr const char* kAccessReviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

ReviewJson review_field(const ReviewJson& json, const char* field) {
  return json.is_object() && json.contains(field) ? json[field] : ReviewJson{};
}

// Returns the user of the token as the API server describes it, for the reviews of its rights.
base::Result<ReviewJson> reviewed_user(const Session& own, const std::string& token) {
  const ReviewJson body = {{"apiVersion", "authentication.k8s.io/v1"},
                           {"kind", "TokenReview"},
                           {"spec", {{"token", token}}}};
  const auto answer = own.client.call_json(kube::Method::kPost, kTokenReviews, &body);
  if (!answer) return answer.error();
  const ReviewJson status = review_field(*answer, "status");
  const ReviewJson user = review_field(status, "user");
  if (review_field(status, "authenticated") != ReviewJson(true) ||
      !review_field(user, "username").is_string()) {
    return base::Error{base::Code::kUnauthenticated,
                       "the API server does not take this token, or no longer"};
  }
  ReviewJson subject = {{"user", user["username"]}};
  for (const char* field : {"uid", "groups", "extra"}) {
    if (user.contains(field)) subject[field] = user[field];
  }
  return subject;
}

base::Result<bool> reviewed_right(const Session& own, ReviewJson subject,
                                  const std::string& resource, const std::string& ns) {
  subject["resourceAttributes"] = {
      {"group", "kubegang.io"}, {"resource", resource}, {"verb", "list"}, {"namespace", ns}};
  const ReviewJson body = {{"apiVersion", "authorization.k8s.io/v1"},
                           {"kind", "SubjectAccessReview"},
                           {"spec", std::move(subject)}};
  const auto answer = own.client.call_json(kube::Method::kPost, kAccessReviews, &body);
  if (!answer) return answer.error();
  return review_field(review_field(*answer, "status"), "allowed") == ReviewJson(true);
}

}  // namespace

// The right to list the jobs of all namespaces is asked about first: most administrators have it.
base::Result<PageReaders::Known> PageReaders::review(const std::string& token) const {
  const auto user = reviewed_user(own_, token);
  if (!user) return user.error();
  const dashboard::Sight scopes = board_.scopes();
  dashboard::Sight sight;
  std::map<std::string, bool> whole;  // of a resource in all namespaces
  for (const std::string& scope : scopes) {
    const std::string resource = scope.substr(0, scope.find('/'));
    const std::string ns = resource.size() < scope.size() ? scope.substr(resource.size() + 1) : "";
    if (!whole.contains(resource)) {
      const auto all = reviewed_right(own_, *user, resource, "");
      if (!all) return all.error();
      whole[resource] = *all;
    }
    bool allowed = whole[resource];
    if (!allowed && !ns.empty()) {
      const auto one = reviewed_right(own_, *user, resource, ns);
      if (!one) return one.error();
      allowed = *one;
    }
    if (allowed) sight.insert(scope);
  }
  const base::Duration now = own_.clock.monotonic();
  return Known{.reader = {.name = (*user)["user"],
                          .sight = std::make_shared<const dashboard::Sight>(std::move(sight))},
               .asked = scopes,
               .reviewed = now,
               .tried = now,
               .read = now};
}

base::Result<dashboard::Reader> PageReaders::admit(const std::string& token) {
  {
    const std::lock_guard lock{mu_};
    const auto known = known_.find(token);
    if (known != known_.end() && own_.clock.monotonic() - known->second.reviewed < kAskEvery) {
      return known->second.reader;
    }
  }
  auto reviewed = review(token);
  const std::lock_guard lock{mu_};
  if (!reviewed) {
    if (reviewed.error().code == base::Code::kUnauthenticated) known_.erase(token);
    return reviewed.error();
  }
  Known& known = known_[token];
  known = std::move(*reviewed);
  return known.reader;
}

std::shared_ptr<const dashboard::Sight> PageReaders::sight(const std::string& token) {
  const base::Duration now = own_.clock.monotonic();
  const std::lock_guard lock{mu_};
  const auto known = known_.find(token);
  if (known == known_.end() || now - known->second.reviewed >= kTrustMax) return nullptr;
  known->second.read = now;
  return known->second.reader.sight;
}

// While it asks, others read by what was known.
void PageReaders::review_again(const std::string& token) {
  auto reviewed = review(token);
  const std::lock_guard lock{mu_};
  const auto known = known_.find(token);
  if (known == known_.end()) return;
  if (!reviewed) {
    if (reviewed.error().code == base::Code::kUnauthenticated) known_.erase(known);
    return;
  }
  reviewed->read = known->second.read;
  if (*reviewed->reader.sight == *known->second.reader.sight) {
    reviewed->reader.sight = known->second.reader.sight;
  }
  known->second = std::move(*reviewed);
}

base::Duration PageReaders::step() {
  const base::Duration now = own_.clock.monotonic();
  const dashboard::Sight scopes = board_.scopes();
  std::vector<std::string> due;
  {
    const std::lock_guard lock{mu_};
    std::erase_if(known_, [&](const auto& each) { return now - each.second.read >= kReadsWithin; });
    for (auto& [token, known] : known_) {
      const bool is_old = now - known.reviewed >= kAskEvery;
      const bool has_news = !std::ranges::includes(known.asked, scopes);
      if ((!is_old && !has_news) || now - known.tried < kTryEvery) continue;
      known.tried = now;
      due.push_back(token);
    }
  }
  for (const std::string& token : due) review_again(token);
  return kLookEvery;
}

}  // namespace cli
