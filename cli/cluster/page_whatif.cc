#include "cli/cluster/page_whatif.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "cli/cluster/submit.h"
#include "cli/cluster/user.h"
#include "cli/cluster/whatif.h"
#include "slurm/hostlist.h"

namespace cli {
namespace {

using Json = nlohmann::ordered_json;

// Fields of the question, and the option of sbatch that each is. A value stands behind its "=", so
// it is never read as another option.
constexpr std::array kQuestionOptions = {
    std::pair{"nodes", "--nodes="},         std::pair{"time", "--time="},
    std::pair{"partition", "--partition="}, std::pair{"qos", "--qos="},
    std::pair{"cpus", "--cpus-per-task="},  std::pair{"gpus", "--gres=gpu:"}};

std::string question_field(const Json& json, const char* field) {
  const auto found = json.find(field);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

Json question_instant(const std::optional<base::Instant>& at) {
  return at ? Json(base::micros_since_epoch(*at)) : Json(nullptr);
}

std::string question_answer(const kube::Job& job) {
  const kube::JobForecast& forecast = *job.status.forecast;
  const auto limit = job.spec.schedule.time_limit;
  const auto nodes = slurm::expand_hostlist(forecast.hostlist);
  Json json = {{"asOf", question_instant(forecast.as_of)},
               {"start", question_instant(forecast.start_time)},
               {"limit", limit ? Json(limit->count()) : Json(nullptr)},
               {"partition", forecast.partition},
               {"hostlist", forecast.hostlist},
               {"on", nodes ? Json(*nodes) : Json::array()},
               {"nodes", forecast.nodes},
               {"cpus", forecast.cpus},
               {"message", forecast.message},
               {"stops", nullptr}};
  if (const auto& stops = forecast.stops) {
    json["stops"] = {{"suspended", stops->suspended},
                     {"requeued", stops->requeued},
                     {"canceled", stops->cancelled},
                     {"names", preempted_text(*stops)}};
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

base::Result<kube::Job> read_page_question(std::string_view text, slurm::Now now) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return base::invalid_argument("the body must be a JSON object");
  const std::string ns = question_field(json, "ns");
  if (ns.empty()) return base::invalid_argument("ns must name a namespace");
  std::vector<std::string> words;
  for (const auto& [field, option] : kQuestionOptions) {
    if (const std::string value = question_field(json, field); !value.empty()) {
      words.push_back(option + value);
    }
  }
  // One task on each node has that many CPUs.
  if (!question_field(json, "cpus").empty()) words.emplace_back("--ntasks-per-node=1");
  const auto arguments = read_submit_arguments(words, now, true);
  if (!arguments) return arguments.error();
  const auto request = read_submit(*arguments, now);
  if (!request) return request.error();
  return job_object(*request, ns);
}

base::Result<std::string> page_whatif(const Session& session, std::string_view text) {
  base::Result<kube::Job> question = read_page_question(text, {.instant = session.clock.wall()});
  if (!question) return question.error();
  set_user(session, *question);
  const std::string ns = question->metadata.ns;
  const auto answer = ask_operator(session, std::move(*question));
  if (answer) return question_answer(*answer);
  if (answer.error().code != base::Code::kPermissionDenied) return answer.error();
  return answer.error().with_context("to ask takes the right to create jobs in namespace " + ns);
}

}  // namespace cli
