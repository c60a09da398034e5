// A restart of many agents at once, as the API server's metrics show it: each agent asks for the
// pods of its node, and must not make the server go through those of the cluster. The test runs by
// itself, since the metrics count the requests of all programs.
#include <algorithm>
#include <sstream>

#include "e2e/kubernetes/tests/harness.h"
#include "kube/api/pod.h"
#include "kube/http_transport.h"
#include "kube/informer.h"
#include "kube/run_loop.h"
#include "kube/sleeper.h"
#include "kube/transport_config.h"

namespace kubernetes {
namespace {

constexpr int kAgents = 200;

// The informer with which an agent sees its node's pods (node-agent/program/node_watch.cc).
class PodsOfANode {
 public:
  PodsOfANode(std::unique_ptr<kube::Transport> transport, const kube::Clock& clock, int number)
      : transport_{std::move(transport)},
        pods_{kube::Client{*transport_, clock, sleeper_, {}}, clock, options(number), {}} {}
  static std::string node_of(int number) { return "no-machine-" + std::to_string(number); }
  void open() {
    loops_.start("pods", [this](std::stop_token stop) { return pods_.step(std::move(stop)); });
  }
  void close() { loops_.request_stop(); }
  std::size_t count() const { return pods_.has_synced() ? pods_.snapshot().size() : 0; }

 private:
  static kube::InformerOptions options(int number) {
    return {.field_selector = "spec.nodeName=" + node_of(number),
            .page_items_max = 20,
            .freshness = kube::Freshness::kNotOlderThanSeen,
            .seed = static_cast<std::uint64_t>(number) + 1};
  }

  kube::ThreadSleeper sleeper_;
  std::unique_ptr<kube::Transport> transport_;
  kube::Informer<kube::Pod> pods_;
  kube::RunLoop loops_;  // the last: its threads use the rest
};

class ManyAgents : public Alone<Cluster> {
 protected:
  // The sum of one of the API server's counters over its series that have this text.
  double counter(const std::string& name, const std::string& label) {
    const auto answer = api().send({.path = "/metrics", .accept = "text/plain"});
    if (!answer.ok()) {
      ADD_FAILURE() << answer.error().message;
      return 0;
    }
    double sum = 0;
    bool any = false;
    std::istringstream lines{answer->body};
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with(name + "{")) continue;
      any = true;
      if (line.find(label) != std::string::npos) sum += std::stod(line.substr(line.rfind(' ')));
    }
    EXPECT_TRUE(any) << "the API server has no metric " << name;
    return sum;
  }
  double pods_read_from_etcd() {
    return counter("apiserver_storage_list_fetched_objects_total", "resource=\"pods\"");
  }
  double pods_gone_through_in_the_cache() {
    return counter("apiserver_cache_list_fetched_objects_total", "resource=\"pods\"");
  }
};

// Goal: a restart of all agents costs etcd nothing that grows with agents × pods. Method: pods that
// are bound to nodes that no machine stands behind, an agent's informers for each of them, opened
// together, and the server's own counters: the objects that lists of pods fetched from etcd, and
// those that lists from its cache went through.
TEST_F(ManyAgents, ThatRestartTogetherReadTheirOwnPodsAndNothingFromEtcd) {
  const std::string pods = "/api/v1/namespaces/" + ns_ + "/pods";
  for (int i = 0; i < kAgents; ++i) {
    const json container{{"name", "main"}, {"image", kBusyboxImage}};
    const auto made = call(kube::Method::kPost, pods,
                           {{"metadata", {{"name", "p" + std::to_string(i)}}},
                            {"spec",
                             {{"nodeName", PodsOfANode::node_of(i)},
                              {"containers", json::array({container})}}}});
    ASSERT_TRUE(made.ok()) << made.error().message;
  }
  std::vector<std::unique_ptr<PodsOfANode>> agents;
  const auto config = kube::load_kubeconfig(state_directory() + "/pki/admin.kubeconfig");
  ASSERT_TRUE(config.ok());
  for (int i = 0; i < kAgents; ++i) {
    auto transport = kube::HttpTransport::create(*config, clock_);
    ASSERT_TRUE(transport.ok()) << transport.error().message;
    agents.push_back(std::make_unique<PodsOfANode>(std::move(transport).value(), clock_, i));
  }

  const double from_etcd = pods_read_from_etcd();
  const double in_the_cache = pods_gone_through_in_the_cache();
  for (const auto& one : agents) one->open();
  wait_until("each agent has seen the pods of its node", [&] {
    return std::ranges::all_of(agents, [](const auto& one) { return one->count() == 1; });
  });
  const double etcd_now = pods_read_from_etcd();
  const double cache_now = pods_gone_through_in_the_cache();
  for (const auto& one : agents) one->close();
  // No kubelet confirms their end.
  EXPECT_TRUE(call(kube::Method::kDelete, pods + "?gracePeriodSeconds=0").ok());

  // Others of the cluster list pods meanwhile: all of them a few times at most. Without an index
  // the agents alone would make it two hundred times.
  EXPECT_LT(etcd_now - from_etcd, kAgents * 10);
  EXPECT_LT(cache_now - in_the_cache, kAgents * 10);
  RecordProperty("pods_from_etcd", std::to_string(etcd_now - from_etcd));
  RecordProperty("pods_in_the_cache", std::to_string(cache_now - in_the_cache));
}

}  // namespace
}  // namespace kubernetes
