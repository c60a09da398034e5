#include "cli/cluster/page_sooner.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/cluster/user.h"
#include "cli/cluster/whatif.h"
#include "slurm/quantities.h"

namespace cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kOtherPartitionsMax = 3;
constexpr base::Duration kShortest = std::chrono::minutes{1};
// The time for all questions together: the answers by then are shown.
constexpr base::Duration kPatience = std::chrono::seconds{30};

std::string sooner_field(const Json& json, const char* field) {
  const auto found = json.find(field);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

// Why the answers would not be about this job; "" if they would.
std::string why_not_sooner(const kube::Job& job) {
  if (job.status.state != kube::JobState::kPending) return "the job does not wait";
  if (job.spec.array) return "an array's tasks start one by one: ask what if for one of them";
  if (!job.spec.adopted.empty()) return "its pods are made by others";
  if (job.spec.control.hold.value_or(false) || job.status.held) return "it is held: release it";
  return "";
}

base::Result<Json> sooner_answer(const Session& session, const kube::Job& like,
                                 kube::JobSpec spec) {
  kube::Job question;
  question.metadata.ns = like.metadata.ns;
  question.metadata.generate_name = "whatif-";
  question.spec = std::move(spec);
  set_user(session, question);
  const auto answer = ask_operator(session, std::move(question));
  if (!answer) {
    if (answer.error().code != base::Code::kPermissionDenied) return answer.error();
    return answer.error().with_context("to ask takes the right to create jobs in namespace " +
                                       like.metadata.ns);
  }
  const kube::JobForecast& forecast = *answer->status.forecast;
  const auto micros = [](const std::optional<base::Instant>& at) {
    return at ? Json(base::micros_since_epoch(*at)) : Json(nullptr);
  };
  return Json{{"asOf", micros(forecast.as_of)},
              {"start", micros(forecast.start_time)},
              {"partition", forecast.partition},
              {"stops", forecast.stops.has_value()}};
}

}  // namespace

std::vector<SoonerVariant> sooner_variants(const kube::Job& job,
                                           const std::vector<kube::Partition>& partitions) {
  std::vector<SoonerVariant> all;
  const auto add = [&](const std::string& change, const auto& edit) {
    kube::JobSpec spec = job.spec;
    spec.control = {};
    edit(spec);
    all.push_back({.change = change, .spec = std::move(spec)});
  };
  const auto limit =
      job.spec.schedule.time_limit ? job.spec.schedule.time_limit : job.status.time_limit;
  for (const int part : {2, 4}) {
    if (!limit || *limit / part < kShortest) continue;
    const base::Duration shorter = std::chrono::floor<std::chrono::minutes>(*limit / part);
    add("with a time limit of " + slurm::format_run_time(shorter), [&](kube::JobSpec& spec) {
      spec.schedule.time_limit = shorter;
      spec.schedule.time_min.reset();
    });
  }
  // Tasks would have to be spread in another way.
  const auto& resources = job.spec.resources;
  const int nodes = resources.nodes ? resources.nodes->min : 1;
  if (nodes > 1 && !resources.tasks) {
    const int fewer = nodes / 2;
    add("on " + std::to_string(fewer) + (fewer == 1 ? " node" : " nodes"),
        [&](kube::JobSpec& spec) { spec.resources.nodes = kube::JobNodes{.min = fewer}; });
  }
  std::size_t others = 0;
  for (const kube::Partition& partition : partitions) {
    const std::string& name = partition.metadata.name;
    const bool is_asked_for =
        std::ranges::find(job.spec.partitions, name) != job.spec.partitions.end() ||
        (job.spec.partitions.empty() && name == job.status.partition);
    if (is_asked_for || others == kOtherPartitionsMax) continue;
    ++others;
    add("in partition " + name, [&](kube::JobSpec& spec) { spec.partitions = {name}; });
  }
  return all;
}

base::Result<std::string> page_sooner(const Session& session, std::string_view text) {
  const Json wish = Json::parse(text, nullptr, false);
  if (!wish.is_object()) return base::invalid_argument("the body must be a JSON object");
  const kube::ObjectKey key{.ns = sooner_field(wish, "ns"), .name = sooner_field(wish, "name")};
  if (key.ns.empty() || key.name.empty()) {
    return base::invalid_argument("ns and name must name a job");
  }
  const auto job = session.client.get<kube::Job>(key);
  if (!job) return job.error();
  if (const std::string why = why_not_sooner(*job); !why.empty()) {
    return base::invalid_argument(why);
  }
  const base::Duration begin = session.clock.monotonic();
  // Without the right to look at partitions the others are not asked about.
  const auto partitions = session.client.list<kube::Partition>();
  kube::JobSpec as_it_is = job->spec;
  as_it_is.control = {};
  const auto same = sooner_answer(session, *job, std::move(as_it_is));
  if (!same) return same.error();
  Json variants = Json::array();
  for (SoonerVariant& variant :
       sooner_variants(*job, partitions ? partitions->items : std::vector<kube::Partition>{})) {
    if (session.clock.monotonic() - begin > kPatience) break;
    const auto answer = sooner_answer(session, *job, std::move(variant.spec));
    // Such as a partition that refuses jobs of this namespace.
    if (!answer) continue;
    variants.push_back(*answer);
    variants.back()["change"] = variant.change;
  }
  const Json json = {{"asOf", (*same)["asOf"]}, {"same", *same}, {"variants", std::move(variants)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace cli
