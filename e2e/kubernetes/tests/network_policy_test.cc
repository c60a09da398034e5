// The network policy of docs/network.md in a namespace that denies traffic by default. The tests'
// Kubernetes has no network that enforces policies, so rules of iptables on the nodes do what the
// API server's object says, for the pods of one job.
#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "e2e/kubernetes/tests/batch_scripts.h"

namespace kubernetes {
namespace {

class NetworkPolicies : public BatchScripts {
 protected:
  void TearDown() override {
    for (int place = 1; place <= kNodesCount; ++place) {
      (void)on_node(place,
                    "sh -c 'iptables -D FORWARD -j KG-TEST; iptables -F KG-TEST; "
                    "iptables -X KG-TEST' 2>/dev/null");
    }
    BatchScripts::TearDown();
  }

  // The page's one object, as a reader copies it.
  void apply_policy_of_the_page() {
    const Output applied =
        run_shell("awk '/^```yaml/ {on = 1; next} /^```/ {on = 0} on' " KUBEGANG_SOURCE_DIR
                  "/docs/network.md | " +
                  kubectl("apply -n " + ns_ + " -f -"));
    ASSERT_EQ(applied.text, "networkpolicy.networking.k8s.io/kubegang-steps created\n");
  }

  // Returns the addresses of the namespace's pods that the selector means.
  std::set<std::string> addresses(const json& selector) {
    std::string labels;
    for (const json& each : selector.value("matchExpressions", json::array())) {
      EXPECT_EQ(each["operator"], "Exists");
      labels += (labels.empty() ? "" : ",") + each["key"].get<std::string>();
    }
    std::set<std::string> found;
    for (const json& pod : list("/api/v1/namespaces/" + ns_ + "/pods?labelSelector=" + labels)) {
      found.insert(pod["status"].value("podIP", ""));
    }
    return found;
  }
  // Returns what the rule lets through, as matches of iptables. `side`: "to" or "from". A peer in
  // another namespace is every address: the tests' name server runs beside the pods.
  std::vector<std::string> matches(const json& rule, const std::string& side) {
    std::vector<std::string> peers;
    for (const json& peer : rule[side]) {
      if (peer.contains("namespaceSelector")) peers.emplace_back();
      if (!peer.contains("podSelector")) continue;
      for (const std::string& address : addresses(peer["podSelector"])) {
        peers.push_back((side == "to" ? "-d " : "-s ") + address);
      }
    }
    std::vector<std::string> all;
    for (const json& port : rule["ports"]) {
      std::string protocol = port["protocol"];
      std::ranges::transform(protocol, protocol.begin(), ::tolower);
      for (const std::string& peer : peers) {
        all.push_back(peer + " -p " + protocol + " --dport " +
                      std::to_string(port["port"].get<int>()));
      }
    }
    return all;
  }

  // Everything to and from the pods that the policy selects is dropped, but for what it allows.
  // Between two such pods both have to allow it: on the node of each its own half is looked at.
  void enforce_policy() {
    const json spec = get("/apis/networking.k8s.io/v1/namespaces/" + ns_ +
                          "/networkpolicies/kubegang-steps")["spec"];
    for (const json& pod : pods("train")) {
      const std::string own = pod["status"]["podIP"];
      ASSERT_TRUE(addresses(spec["podSelector"]).contains(own)) << spec["podSelector"].dump();
      std::string rules =
          "iptables -N KG-TEST && iptables -I FORWARD -j KG-TEST && "
          "iptables -A KG-TEST -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT";
      const auto add = [&](const std::string& rule) { rules += " && iptables -A KG-TEST " + rule; };
      for (const json& rule : spec["ingress"]) {
        for (const std::string& match : matches(rule, "from"))
          add("-d " + own + " " + match + " -j ACCEPT");
      }
      for (const json& rule : spec["egress"]) {
        for (const std::string& match : matches(rule, "to"))
          add("-s " + own + " " + match + " -j ACCEPT");
      }
      add("-d " + own + " -j DROP");
      add("-s " + own + " -j DROP");
      int place = 1;
      while (node(place) != pod["spec"]["nodeName"]) ++place;
      const Output made = on_node(place, "sh -c '" + rules + "'");
      ASSERT_EQ(made.exit_code, 0) << made.text;
    }
  }
};

// Each step takes the connection that a launcher has opened ahead, so the second one and those
// behind it have gone over new ones. A port that the policy does not have is closed.
TEST_F(NetworkPolicies, ThatOfThePageLetsStepsThrough) {
  ASSERT_NO_FATAL_FAILURE(make_home());
  enforce("restricted");
  ASSERT_NO_FATAL_FAILURE(apply_policy_of_the_page());
  ASSERT_NO_FATAL_FAILURE(submit_script(
      "train",
      "reach() {\n"
      "  srun sh -c 'if [ $SLURM_PROCID = 0 ]; then\n"
      "    mkfifo '$1'; exec <>'$1'; timeout 8 nc -l -p 29501; exit 0\n"
      "  fi\n"
      "  first=$(scontrol show hostnames | head -n1)\n"
      "  address=$(getent ahostsv4 $first | head -n1 | cut -d\" \" -f1)\n"
      "  for i in 1 2 3; do echo $SLURM_PROCID reached $address; done |\n"
      "    timeout 5 nc $address 29501; exit 0' 2>/dev/null | cut -d' ' -f2 | sort -u\n"
      "}\n"
      "echo open: $(reach before); touch begun; until [ -e go ]; do sleep 0.1; done\n"
      "for i in 1 2 3 4; do srun -l echo step $i | sort; done\n"
      "echo closed: $(reach after)\n",
      with_image(restricted_template(), kGlibcImage),
      {{"spec",
        {{"resources", {{"nodes", {{"min", 3}}}}},
         {"batch", {{"workingDirectory", "/home/ann"}, {"output", "out"}}}}}}));
  ASSERT_NO_FATAL_FAILURE(
      wait_until("its tasks could reach each other", [&] { return file_in_home("out") != ""; }));
  ASSERT_NO_FATAL_FAILURE(enforce_policy());
  std::ofstream{stamps_in_ + "/go"};
  ASSERT_NO_FATAL_FAILURE(wait_state("train", "Completed"));
  std::string wanted = "open: reached\n";
  for (const char* step : {"1", "2", "3", "4"}) {
    for (const char* rank : {"0", "1", "2"}) {
      wanted += std::string{rank} + ": step " + step + "\n";
    }
  }
  EXPECT_EQ(file_in_home("out"), wanted + "closed:\n");
}

}  // namespace
}  // namespace kubernetes
