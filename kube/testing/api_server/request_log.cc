#include "kube/testing/api_server/request_log.h"
#include "kube/api/time_format.h"

#include <nlohmann/json.hpp>

namespace devcluster {
namespace {

// Judges by the verb alone: a write that was refused is one, too, since it has cost the server as
// much.
bool is_write(const std::string& verb) {
  return verb == "create" || verb == "update" || verb == "patch" || verb == "delete" ||
         verb == "deletecollection";
}

}  // namespace

// "kubegang-operator/1.2 (linux)" counts as "kubegang-operator".
void RequestLog::record(WriteRecord record) {
  record.kind.user_agent =
      record.kind.user_agent.substr(0, record.kind.user_agent.find_first_of("/ "));
  ++counts_[record.kind];
  if (!is_write(record.kind.verb)) return;
  writes_.push_back(std::move(record));
  if (writes_.size() > kLoggedWritesMax) writes_.pop_front();
}

// Returns the oldest first. Writes beyond kLoggedWritesMax are forgotten; the counts are not.
std::vector<WriteRecord> RequestLog::writes_since(base::Instant since) const {
  std::vector<WriteRecord> found;
  for (const WriteRecord& write : writes_) {
    if (write.at >= since) found.push_back(write);
  }
  return found;
}

void RequestLog::clear() {
  counts_.clear();
  writes_.clear();
}

nlohmann::json to_json(const std::map<RequestKind, std::int64_t>& counts) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [kind, count] : counts) {
    list.push_back({{"verb", kind.verb},
                    {"group", kind.group},
                    {"resource", kind.resource},
                    {"subresource", kind.subresource},
                    {"userAgent", kind.user_agent},
                    {"count", count}});
  }
  return list;
}

nlohmann::json to_json(const std::vector<WriteRecord>& writes) {
  nlohmann::json list = nlohmann::json::array();
  for (const WriteRecord& write : writes) {
    list.push_back({{"at", kube::format_micro_time(write.at)},
                    {"verb", write.kind.verb},
                    {"group", write.kind.group},
                    {"resource", write.kind.resource},
                    {"subresource", write.kind.subresource},
                    {"userAgent", write.kind.user_agent},
                    {"namespace", write.ns},
                    {"name", write.name},
                    {"code", write.code}});
  }
  return list;
}

}  // namespace devcluster
