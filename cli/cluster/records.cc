#include "cli/cluster/records.h"

#include <algorithm>
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

base::Status add_page(const nlohmann::json& page, RecordedJobs& read, std::string& next) {
  const base::Error strange{base::Code::kInternal, "records: no list was answered"};
  if (!page.is_object() || !page.contains("items") || !page["items"].is_array()) return strange;
  for (const nlohmann::json& item : page["items"]) {
    if (!item.is_object() || !item.contains("record")) return strange;
    auto record = records::decode_record(item["record"]);
    if (!record) return record.error();
    read.records.push_back(std::move(*record));
  }
  const nlohmann::json metadata = page.value("metadata", nlohmann::json::object());
  if (!metadata.is_object()) return strange;
  const auto since = kube::parse_instant(metadata.value("recordedSince", ""));
  if (!since) return since.error().with_context("records: metadata.recordedSince");
  read.since = *since;
  next = metadata.value("continue", "");
  return {};
}

base::Result<RecordedJobs> read_in(const Session& session, const std::string& ns,
                                   const RecordQuery& query) {
  const std::string path =
      std::string{kPath} + (ns.empty() ? "" : "/namespaces/" + ns) + "/records";
  const std::string parameters = parameters_of(query);
  RecordedJobs read;
  std::string next;
  for (std::size_t page = 0; page < kPages; ++page) {
    const std::string place = next.empty() ? "" : "&continue=" + next;
    const auto answer = session.client.call_json(kube::Method::kGet, path + parameters + place);
    if (!answer) return answer.error();
    if (const base::Status added = add_page(*answer, read, next); !added) return added.error();
    if (next.empty()) return read;
  }
  return base::invalid_argument("more than " + std::to_string(kPages * kPageMax) +
                                " records: ask for a shorter time");
}

// An API server that does not serve the group answers as any proxy might, or that it is forbidden.
// Its list of groups, which everybody may read, says it.
bool may_have_records(const Session& session) {
  const auto groups = session.client.call_json(kube::Method::kGet, "/apis");
  if (!groups || !groups->is_object() || !groups->contains("groups")) return true;
  return std::ranges::any_of((*groups)["groups"], [](const nlohmann::json& group) {
    return group.is_object() && group.value("name", "") == kGroup;
  });
}

}  // namespace

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
