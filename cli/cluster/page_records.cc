#include "cli/cluster/page_records.h"

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/cluster/page_objects.h"
#include "cli/kube_name.h"

namespace cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kNumbersMax = 100;  // of jobs, in one question
// 1970 to 2100: other times are refused.
constexpr std::int64_t kLastMicros = 4'102'444'800'000'000;

base::Result<base::Instant> recorded_instant(const Json& json, const char* field) {
  const auto found = json.find(field);
  const bool is_number = found != json.end() && found->is_number_integer();
  const std::int64_t micros = is_number ? found->get<std::int64_t>() : -1;
  if (micros < 0 || micros > kLastMicros) {
    return base::invalid_argument(std::string{field} + " must be microseconds since 1970");
  }
  return base::Instant{base::Duration{micros}};
}

base::Result<std::string> recorded_text(const Json& json, const char* field) {
  const auto found = json.find(field);
  if (found == json.end()) return std::string{};
  if (!found->is_string()) return base::invalid_argument(std::string{field} + " must be a text");
  return found->get<std::string>();
}

base::Status read_recorded_numbers(const Json& json, RecordQuery& query) {
  const auto found = json.find("jobs");
  if (found == json.end()) return {};
  const base::Error wrong =
      base::invalid_argument("jobs must be at most " + std::to_string(kNumbersMax) + " numbers");
  if (!found->is_array() || found->size() > kNumbersMax) return wrong;
  for (const Json& number : *found) {
    if (!number.is_number_integer()) return wrong;
    query.jobs.push_back(number.get<std::int64_t>());
  }
  return {};
}

Json recorded_run(const records::Record& record) {
  const std::vector<PageStay> stays = {
      {.hostlist = record.hostlist, .from = *record.start_time, .to = record.end_time}};
  Json run = {{"uid", record.job_uid}, {"restart", record.restart}};
  if (record.task) run["task"] = *record.task;
  const auto job = std::make_shared<const kube::Job>(records::job_of(record));
  run["job"] = Json::parse(page_job(job, stays));
  return run;
}

}  // namespace

base::Result<PageRecordsQuestion> read_page_records_question(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return base::invalid_argument("the body must be a JSON object");
  const auto from = recorded_instant(json, "from");
  if (!from) return from.error();
  const auto until = recorded_instant(json, "until");
  if (!until) return until.error();
  if (*until <= *from) return base::invalid_argument("until must be after from");
  auto ns = recorded_text(json, "ns");
  if (!ns) return ns.error();
  // It becomes a part of a path.
  if (*ns != kube_namespace(*ns)) return base::invalid_argument("ns must name a namespace");
  auto next = recorded_text(json, "next");
  if (!next) return next.error();
  PageRecordsQuestion question{.query = {.window = {.from = *from, .until = *until}},
                               .ns = std::move(*ns),
                               .next = std::move(*next)};
  if (const base::Status status = read_recorded_numbers(json, question.query); !status) {
    return status.error();
  }
  return question;
}

base::Result<std::string> page_records(const Session& session, std::string_view text) {
  const auto question = read_page_records_question(text);
  if (!question) return question.error();
  const auto page = read_record_page(session, question->ns, question->query, question->next);
  if (!page) return page.error();
  Json runs = Json::array();
  for (const records::Record& record : page->records) {
    if (!record.start_time || !record.end_time || record.hostlist.empty()) continue;
    runs.push_back(recorded_run(record));
  }
  const Json json = {{"since", base::micros_since_epoch(page->since)},
                     {"next", page->next},
                     {"runs", std::move(runs)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace cli
