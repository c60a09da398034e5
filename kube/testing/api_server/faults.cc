#include "kube/testing/api_server/faults.h"

#include <nlohmann/json.hpp>

namespace devcluster {
namespace {

// "" is a filter that was not given.
bool matches(const std::string& wanted, const std::string& have) {
  return wanted.empty() || wanted == have;
}

base::Result<Fault::Kind> parse_kind(const std::string& text) {
  if (text == "Status") return Fault::Kind::kStatus;
  if (text == "Slow") return Fault::Kind::kSlow;
  if (text == "ResetBefore") return Fault::Kind::kResetBefore;
  if (text == "ResetAfter") return Fault::Kind::kResetAfter;
  return base::invalid_argument("fault kind \"" + text +
                                "\": must be Status, Slow, ResetBefore or ResetAfter");
}

}  // namespace

// An unknown key is an error: a misspelled filter would hit every request. The same for a value of
// the wrong type.
base::Result<Fault> parse_fault(const nlohmann::json& source) {
  Fault fault;
  try {
    for (const auto& [key, value] : source.items()) {
      if (key == "kind") {
        auto kind = parse_kind(value.get<std::string>());
        if (!kind.ok()) return kind.error();
        fault.kind = *kind;
      } else if (key == "verb")
        fault.verb = value.get<std::string>();
      else if (key == "resource")
        fault.resource = value.get<std::string>();
      else if (key == "subresource")
        fault.subresource = value.get<std::string>();
      else if (key == "name")
        fault.name = value.get<std::string>();
      else if (key == "userAgent")
        fault.user_agent = value.get<std::string>();
      else if (key == "code")
        fault.code = value.get<int>();
      else if (key == "text")
        fault.text = value.get<std::string>();
      else if (key == "retryAfterSeconds")
        fault.retry_after_seconds = value.get<int>();
      else if (key == "delayMillis")
        fault.delay = std::chrono::milliseconds{value.get<int>()};
      else if (key == "count")
        fault.count = value.get<int>();
      else
        return base::invalid_argument("fault: unknown key " + key);
    }
  } catch (const nlohmann::json::exception& error) {
    return base::invalid_argument(std::string{"fault: "} + error.what());
  }
  return fault;
}

// Takes the oldest fault that matches, once; so faults that are injected in a row hit requests in a
// row. A part of the user agent is enough, since its version changes with every release.
std::optional<Fault> FaultPlan::take(const Subject& subject) {
  for (auto at = faults_.begin(); at != faults_.end(); ++at) {
    if (!matches(at->verb, subject.verb) || !matches(at->resource, subject.resource) ||
        !matches(at->subresource, subject.subresource) || !matches(at->name, subject.name) ||
        subject.user_agent.find(at->user_agent) == std::string::npos) {
      continue;
    }
    Fault fault = *at;
    if (--at->count <= 0) faults_.erase(at);
    return fault;
  }
  return std::nullopt;
}

}  // namespace devcluster
