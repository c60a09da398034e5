#include "cli/cluster/records.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "kube/api/time_format.h"
#include "kube/url.h"

namespace cli {
namespace {

constexpr const char* kGroup = "records.kubegang.io";
constexpr const char* kPath = "/apis/records.kubegang.io/v1alpha1";
constexpr int kPageMax = 1'000;        // records
constexpr std::size_t kPages = 1'000;  // more is nothing that a terminal shows

std::string parameters_of(const RecordQuery& query) {
  std::string text = "?limit=" + std::to_string(kPageMax);
  text += "&from=" + kube::percent_encode(kube::format_micro_time(query.window.from));
  text += "&until=" + kube::percent_encode(kube::format_micro_time(query.window.until));
  if (!query.user.empty()) text += "&user=" + kube::percent_encode(query.user);
  std::string numbers;
  for (const std::int64_t job : query.jobs) {
    numbers += (numbers.empty() ? "" : ",") + std::to_string(job);
  }
  if (!numbers.empty()) text += "&jobs=" + numbers;
  return text;
}

base::Result<RecordPage> read_page(const nlohmann::json& json) {
  const base::Error strange{base::Code::kInternal, "records: no list was answered"};
  if (!json.is_object() || !json.contains("items") || !json["items"].is_array()) return strange;
  RecordPage page;
  for (const nlohmann::json& item : json["items"]) {
    if (!item.is_object() || !item.contains("record")) return strange;
    auto record = records::decode_record(item["record"]);
    if (!record) return record.error();
    page.records.push_back(std::move(*record));
  }
  const nlohmann::json metadata = json.value("metadata", nlohmann::json::object());
  if (!metadata.is_object()) return strange;
  const auto since = kube::parse_instant(metadata.value("recordedSince", ""));
  if (!since) return since.error().with_context("records: metadata.recordedSince");
  page.since = *since;
  page.next = metadata.value("continue", "");
  return page;
}

base::Result<RecordPage> ask_for_page(const Session& session, const std::string& ns,
                                      const RecordQuery& query, const std::string& next) {
  const std::string path =
      std::string{kPath} + (ns.empty() ? "" : "/namespaces/" + ns) + "/records";
  const std::string place = next.empty() ? "" : "&continue=" + kube::percent_encode(next);
  const auto answer =
      session.client.call_json(kube::Method::kGet, path + parameters_of(query) + place);
  if (!answer) return answer.error();
  return read_page(*answer);
}

base::Result<RecordedJobs> read_in(const Session& session, const std::string& ns,
                                   const RecordQuery& query) {
  RecordedJobs read;
  std::string next;
  for (std::size_t count = 0; count < kPages; ++count) {
    auto page = ask_for_page(session, ns, query, next);
    if (!page) return page.error();
    read.records.insert(read.records.end(), std::make_move_iterator(page->records.begin()),
                        std::make_move_iterator(page->records.end()));
    read.since = page->since;
    next = std::move(page->next);
    if (next.empty()) return read;
  }
  return base::invalid_argument("more than " + std::to_string(kPages * kPageMax) +
                                " records: ask for a shorter time");
}

// An API server that does not serve the group answers as any proxy might, or that it is forbidden.
// Its list of groups, which every user may read, says it.
bool may_have_records(const Session& session) {
  const auto groups = session.client.call_json(kube::Method::kGet, "/apis");
  if (!groups || !groups->is_object() || !groups->contains("groups")) return true;
  return std::ranges::any_of((*groups)["groups"], [](const nlohmann::json& group) {
    return group.is_object() && group.value("name", "") == kGroup;
  });
}

}  // namespace

base::Result<RecordPage> read_record_page(const Session& session, const std::string& ns,
                                          const RecordQuery& query, const std::string& next) {
  auto page = ask_for_page(session, ns, query, next);
  if (page || may_have_records(session)) return page;
  return base::Error{base::Code::kNotFound, "this cluster keeps no records"};
}

base::Result<RecordedJobs> read_records(const Session& session, const RecordQuery& query) {
  if (!may_have_records(session)) return RecordedJobs{};
  auto read = read_in(session, "", query);
  if (!read && read.error().code == base::Code::kPermissionDenied) {
    read = read_in(session, session.ns, query);
  }
  // No such API.
  if (!read && read.error().code == base::Code::kNotFound) return RecordedJobs{};
  return read;
}

}  // namespace cli
