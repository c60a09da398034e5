#include "e2e/devcluster/kubelet/pod_feed.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>

namespace devcluster {
namespace {

using base::Code;
using base::Error;
using nlohmann::json;

constexpr std::chrono::milliseconds kWatchRetryPause{50};
constexpr std::chrono::minutes kWatchIdleMax{10};

void wait_or_stop(std::chrono::milliseconds pause, std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any condition;
  std::unique_lock lock{mutex};
  condition.wait_for(lock, stop, pause, [] { return false; });
}

std::string uid_of(const json& object) {
  return object.value(json::json_pointer{"/metadata/uid"}, std::string{});
}

}  // namespace

PodFeed::PodFeed(kube::Transport& transport, Handlers handlers)
    : transport_{transport}, handlers_{std::move(handlers)} {}

void PodFeed::follow(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const base::Result<std::string> version = list();
    if (version.ok()) (void)watch(*version, stop);
    if (!stop.stop_requested()) wait_or_stop(kWatchRetryPause, stop);
  }
}

base::Result<std::string> PodFeed::list() {
  const base::Result<kube::Response> response = transport_.send({.path = "/api/v1/pods"});
  if (!response.ok()) return response.error();
  if (response->status != 200) {
    return Error{Code::kUnavailable, "list pods: HTTP " + std::to_string(response->status)};
  }
  const json list = json::parse(response->body, nullptr, false);
  if (list.is_discarded()) return Error{Code::kInternal, "list pods: not JSON"};
  std::set<std::string> uids;
  for (const json& pod : list.value("items", json::array())) {
    uids.insert(uid_of(pod));
    handlers_.seen(pod);
  }
  handlers_.listed(uids);
  return list.value(json::json_pointer{"/metadata/resourceVersion"}, std::string{"0"});
}

base::Status PodFeed::watch(const std::string& resource_version, std::stop_token stop) {
  return transport_.stream(
      {.path = "/api/v1/pods?watch=true&allowWatchBookmarks=true"
               "&resourceVersion=" +
               resource_version,
       .timeout = kWatchIdleMax},
      [this](std::string_view line) { return handle_line(line); }, stop);
}

// False ends the watch: what follows is a new list.
bool PodFeed::handle_line(std::string_view line) {
  if (line.empty()) return true;
  const json event = json::parse(line, nullptr, false);
  if (event.is_discarded() || !event.contains("object")) return false;
  const std::string type = event.value("type", std::string{});
  if (type == "ADDED" || type == "MODIFIED") {
    handlers_.seen(event["object"]);
  } else if (type == "DELETED") {
    handlers_.gone(uid_of(event["object"]));
  } else if (type != "BOOKMARK") {
    return false;
  }
  return true;
}

}  // namespace devcluster
