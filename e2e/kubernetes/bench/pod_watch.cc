#include "e2e/kubernetes/bench/pod_watch.h"

namespace kubernetes_bench {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

// Returns the text between `key` and the next quotation mark, or "".
std::string_view after(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = line.substr(at + key.size());
  return rest.substr(0, rest.find('"'));
}

}  // namespace

PodWatch::PodWatch(kube::Transport& transport, const kube::Clock& clock, std::string ns)
    : clock_{clock}, thread_{[this, &transport, ns = std::move(ns)](std::stop_token stop) {
        while (!stop.stop_requested()) watch(transport, ns, stop);
      }} {}

// One session. A server that is short of CPU time ends those that do not take its events at once.
// After a session that ended in order the next one goes on at the last version: a pod that came to
// life between the two is seen later, by 20 ms and the time of a request.
void PodWatch::watch(kube::Transport& transport, const std::string& ns, std::stop_token stop) {
  std::string path = "/api/v1/namespaces/" + ns + "/pods?watch=true&timeoutSeconds=14400";
  if (!version_.empty()) path += "&resourceVersion=" + version_;
  const base::Status ended = transport.stream(
      {.path = path, .timeout = hours{4}},
      [this](std::string_view line) {
        if (line.starts_with(R"({"type":"ERROR")")) {
          version_.clear();  // too old: all pods once more
          return false;
        }
        see(line);
        return true;
      },
      stop);
  if (stop.stop_requested()) return;
  // After an error it is unknown which events were lost: the next session begins with all pods, and
  // sets keep each of them from being counted twice.
  if (!ended.ok()) version_.clear();
  {
    const std::lock_guard lock{mu_};
    ++times_.watches_ended;
  }
  std::this_thread::sleep_for(milliseconds{20});
}

PodWatch::~PodWatch() = default;

// The server's JSON is searched as text: to parse tens of thousands of pods would take the very CPU
// time that is measured. Names stand first in metadata, and no other field of a pod has these keys.
// A pod may be seen many times; only the first time that it has a node, and the first time that it
// is Running, count.
void PodWatch::see(std::string_view line) {
  const base::Duration now = clock_.monotonic();
  const std::string name{after(line, R"("metadata":{"name":")")};
  version_ = after(line, R"(,"resourceVersion":")");
  if (name.empty() || after(line, R"(,"nodeName":")").empty()) return;
  const std::lock_guard lock{mu_};
  if (bound_.insert(name).second) {
    times_.bound = bound_.size();
    times_.last_bound = now;
  }
  if (after(line, R"("phase":")") == "Running" && running_.insert(name).second) {
    times_.running = running_.size();
    times_.last_running = now;
    changed_.notify_all();
  }
}

// By the times at which events came here, and not by those in the objects, which are whole seconds.
base::Result<PodTimes> PodWatch::wait_for(std::size_t pods_count, base::Duration patience) {
  std::unique_lock lock{mu_};
  const bool done = changed_.wait_for(lock, patience, [&] { return times_.running >= pods_count; });
  if (!done) {
    return base::Error{base::Code::kTimeout, "of " + std::to_string(pods_count) + " pods " +
                                                 std::to_string(times_.bound) + " are bound and " +
                                                 std::to_string(times_.running) + " Running"};
  }
  return times_;
}

}  // namespace kubernetes_bench
