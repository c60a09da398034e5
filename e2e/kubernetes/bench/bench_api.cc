#include "e2e/kubernetes/bench/bench_api.h"

#include <atomic>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "e2e/devcluster/apply.h"
#include "e2e/kubernetes/bench/shape.h"
#include "kube/transport_config.h"

namespace kubernetes_bench {
namespace {

using base::Duration;
using base::Status;
using kube::Method;
using nlohmann::json;

// Returns the value of a label in a line of the Prometheus text format; "" if it has none. The
// values that are asked for have no quotes.
std::string label_of(const std::string& line, const std::string& name) {
  const std::size_t at = line.find(name + "=\"");
  if (at == std::string::npos) return "";
  const std::size_t from = at + name.size() + 2;
  return line.substr(from, line.find('"', from) - from);
}

}  // namespace

std::string pods_path(const std::string& ns) {
  return "/api/v1/namespaces/" + ns + "/pods";
}
std::string gang_jobs_path(const std::string& ns) {
  return "/apis/kubegang.io/v1alpha1/namespaces/" + ns + "/jobs";
}
std::string batch_jobs_path(const std::string& ns) {
  return "/apis/batch/v1/namespaces/" + ns + "/jobs";
}

Status BenchApi::connect(const std::string& kubeconfig) {
  const auto config = kube::load_kubeconfig(kubeconfig);
  if (!config.ok()) return config.error();
  auto made = kube::HttpTransport::create(*config, clock_);
  if (!made.ok()) return made.error();
  transport_ = std::move(made).value();
  return {};
}

base::Result<json> BenchApi::call(Method method, const std::string& path) {
  return call(method, path, nullptr);
}

// May be called from several threads.
base::Result<json> BenchApi::call(Method method, const std::string& path, const json& body) {
  return devcluster::call_api(*transport_, method, path, body);
}

// Threads take the next index each; after an error the others stop at their next one.
Status BenchApi::for_each(std::size_t count, const std::function<Status(std::size_t)>& one) {
  std::atomic<std::size_t> next = 0;
  std::mutex mu;
  Status first_error;
  {
    std::vector<std::jthread> threads;
    // The threads end with this block, so `next` and `first_error` outlive them.
    for (int i = 0; i < kConnections; ++i) {
      threads.emplace_back([&] {
        for (std::size_t at = next++; at < count; at = next++) {
          Status done = one(at);
          if (done.ok()) continue;
          const std::lock_guard lock{mu};
          if (first_error.ok()) first_error = std::move(done);
          next = count;
        }
      });
    }
  }
  return first_error;
}

// In no order.
Status BenchApi::create_all(const std::string& path, const std::vector<json>& objects) {
  return for_each(objects.size(),
                  [&](std::size_t i) { return call(Method::kPost, path, objects[i]).status(); });
}

// By looking five times a second: the waits are outside of what is measured, and more looks would
// load the server.
Status BenchApi::wait_until(const std::string& what, const std::function<bool()>& condition) {
  const Duration end = clock_.monotonic() + kPatience;
  while (!condition()) {
    if (clock_.monotonic() > end) return base::Error{base::Code::kTimeout, "still not: " + what};
    std::this_thread::sleep_for(std::chrono::milliseconds{200});
  }
  return {};
}

// Pods are refused until the namespace's service account is there, which its controller makes.
Status BenchApi::make_namespace(const std::string& name) {
  const auto made =
      call(Method::kPost, "/api/v1/namespaces",
           {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name}}}});
  if (!made.ok()) return made.error();
  return wait_until("the service account of " + name, [&] {
    return call(Method::kGet, "/api/v1/namespaces/" + name + "/serviceaccounts/default").ok();
  });
}

// Owners in the background first: deleting pods before would have their controller make new ones.
// The empty list is looked for and not the answers to the deletions: they return before the objects
// go.
Status BenchApi::clean(const std::string& ns, const std::string& owners_path) {
  // Without a grace time, since no process must end.
  const json now{{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"gracePeriodSeconds", 0}};
  const json background{
      {"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"propagationPolicy", "Background"}};
  // One object is enough to know.
  const auto is_empty = [this](const std::string& path) {
    const auto list = call(Method::kGet, path + "?limit=1");
    return list.ok() && (*list)["items"].empty();
  };
  return wait_until("nothing is left in " + ns, [&] {
    if (!owners_path.empty() && !is_empty(owners_path)) {
      (void)call(Method::kDelete, owners_path, background);
      return false;
    }
    if (is_empty(pods_path(ns))) return true;
    (void)call(Method::kDelete, pods_path(ns), now);
    return false;
  });
}

// From the server's own counter, summed over codes, groups, versions and scopes.
base::Result<std::map<std::string, double>> BenchApi::request_counts() {
  const auto answer = transport_->send({.path = "/metrics", .accept = "text/plain"});
  if (!answer.ok()) return answer.error();
  std::map<std::string, double> counts;
  std::istringstream lines{answer->body};
  for (std::string line; std::getline(lines, line);) {
    // The line is "name{labels} value".
    if (!line.starts_with("apiserver_request_total{")) continue;
    const std::string sub = label_of(line, "subresource");
    const std::string dry = label_of(line, "dry_run");
    std::string what = label_of(line, "verb") + " " + label_of(line, "resource");
    if (!sub.empty()) what += "/" + sub;
    if (!dry.empty()) what += " (dry run)";
    counts[what] += std::stod(line.substr(line.rfind(' ') + 1));
  }
  return counts;
}

}  // namespace kubernetes_bench
