#include "cli/cluster/page_control.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/cluster/task_control.h"

namespace cli {
namespace {

using Json = nlohmann::ordered_json;

struct Verb {
  std::string_view name;
  ControlVerb verb;
};
constexpr std::array kVerbs = {Verb{"hold", ControlVerb::kHold},
                               Verb{"release", ControlVerb::kRelease},
                               Verb{"cancel", ControlVerb::kCancel}};

std::string text_at(const Json& json, const char* field) {
  const auto found = json.find(field);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

// Returns why the user may not change this job; "" if it is allowed. The API server decides again
// when the change is written, so an answer that is missing forbids nothing.
std::string right_refusal(const Session& session, const kube::Job& job) {
  const nlohmann::json review = {{"apiVersion", "authorization.k8s.io/v1"},
                                 {"kind", "SelfSubjectAccessReview"},
                                 {"spec",
                                  {{"resourceAttributes",
                                    {{"namespace", job.metadata.ns},
                                     {"verb", "patch"},
                                     {"group", "kubegang.io"},
                                     {"resource", "jobs"},
                                     {"name", job.metadata.name}}}}}};
  const auto answer = session.client.call_json(
      kube::Method::kPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review);
  if (!answer || !answer->is_object()) return "";
  const auto status = answer->find("status");
  if (status == answer->end() || !status->is_object()) return "";
  const auto allowed = status->find("allowed");
  if (allowed == status->end() || !allowed->is_boolean() || allowed->get<bool>()) return "";
  return "you have no right to change jobs in namespace " + job.metadata.ns;
}

}  // namespace

base::Result<PageWish> read_page_wish(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return base::invalid_argument("the body must be a JSON object");
  PageWish wish{.job = {.ns = text_at(json, "ns"),
                        .name = text_at(json, "name"),
                        .uid = text_at(json, "uid")}};
  const std::string name = text_at(json, "verb");
  const auto verb = std::ranges::find(kVerbs, name, &Verb::name);
  if (verb == kVerbs.end()) return base::invalid_argument("verb must be hold, release or cancel");
  wish.verb = verb->verb;
  if (wish.job.ns.empty() || wish.job.name.empty() || wish.job.uid.empty()) {
    return base::invalid_argument("ns, name and uid must name a job");
  }
  const std::string tasks = text_at(json, "tasks");
  if (tasks.empty()) return wish;
  wish.job.tasks = parse_tasks(tasks);
  if (wish.job.tasks) return wish;
  return base::invalid_argument("tasks must be numbers of tasks such as 3,5-7");
}

base::Result<std::string> page_control(const Session& session, std::string_view text) {
  const base::Result<PageWish> wish = read_page_wish(text);
  if (!wish) return wish.error();
  const base::Result<kube::Job> changed = control_seen_job(session, wish->verb, wish->job);
  if (!changed && changed.error().code == base::Code::kInvalidArgument) {
    return changed.error().with_context("job " + wish->job.name);
  }
  if (!changed) return changed.error();
  return Json{{"version", changed->metadata.resource_version}}.dump();
}

Json page_refusals(const Session& session, const kube::Job& job) {
  const std::string no_right = right_refusal(session, job);
  Json refusals = Json::object();
  for (const Verb& verb : kVerbs) {
    const base::Status status = can_control(job, verb.verb);
    refusals[std::string{verb.name}] = !no_right.empty() ? no_right
                                       : status          ? ""
                                                         : status.error().message;
  }
  return refusals;
}

}  // namespace cli
