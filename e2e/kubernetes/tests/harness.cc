#include "e2e/kubernetes/tests/harness.h"

#include <poll.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "e2e/devcluster/apply.h"
#include "e2e/probe/analysis.h"

namespace kubernetes {
namespace {

namespace fs = std::filesystem;

// A label has 63 characters at most; names of pods and Services add to a job's name.
constexpr std::size_t kNameLengthMax = 40;

// Makes a name that Kubernetes takes, short enough for names of pods and Services made from it.
std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return std::isalnum(c) != 0 ? static_cast<char>(std::tolower(c)) : '-';
  });
  return text.substr(0, kNameLengthMax);
}

}  // namespace

// Looks every `every`; once more when the patience is over.
bool eventually(const std::function<bool()>& condition, milliseconds patience, milliseconds every) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    ::poll(nullptr, 0, static_cast<int>(every.count()));
  }
  return true;
}

// Tests that wait for minutes run only if the environment asks for them.
bool takes_its_time() {
  return std::getenv("KUBEGANG_LONG") != nullptr;
}

std::string Cluster::state_directory() {
  const char* directory = std::getenv(kStateVariable);
  return directory == nullptr ? "" : directory;
}

// Each test has a namespace and a partition named after it, so failures can be looked up in the
// cluster.
void Cluster::SetUp() {
  if (state_directory().empty()) {
    GTEST_SKIP() << kStateVariable << " names no cluster: make e2e-kubernetes";
  }
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  begin(name_like(info->name()));
}

// After a failure the nodes are mended first: the next test of the lane needs them.
void Cluster::TearDown() {
  if (ns_.empty()) return;
  if (HasFailure()) {
    show_failure();
    restore_nodes();
  }
  end(ns_);
  for (const std::string& name : partitions_) {
    (void)call(kube::Method::kDelete, "/apis/kubegang.io/v1alpha1/partitions/" + name);
  }
}

std::string Cluster::name_like(const std::string& text) {
  return "t-" + lower(text);
}

// The folder of stamps first: pods mount it, and a folder that does not exist would be made by
// root.
void Cluster::begin(const std::string& name) {
  ns_ = name;
  stamps_in_ = state_directory() + "/stamps/" + ns_;
  ASSERT_TRUE(devcluster::StampStore{stamps_in_}.prepare(all_nodes()).ok());
  ASSERT_NO_FATAL_FAILURE(make_namespace(
      ns_, {{"pod-security.kubernetes.io/enforce", "privileged"}}));  // stamps need a hostPath
  // Over the nodes of the lane alone.
  ASSERT_NO_FATAL_FAILURE(make_lane_partition(ns_));
}

// Jobs first, so that their pods end as pods of jobs do; the namespace only when no pod is left,
// because Kubernetes would delete pods and jobs in any order.
void Cluster::end(const std::string& name) {
  const auto remove = [](const std::string& path) {
    (void)devcluster::call_api(administrator(), kube::Method::kDelete, path, nullptr);
  };
  const std::string pods = "/api/v1/namespaces/" + name + "/pods";
  remove("/apis/kubegang.io/v1alpha1/namespaces/" + name + "/jobs");
  EXPECT_TRUE(eventually(
      [&] {
        const auto left = devcluster::get_api(administrator(), pods);
        return left.ok() && (*left)["items"].empty();
      },
      kPatience))
      << "pods are left in " << name << "\n"
      << run_shell(kubectl("get pods -o wide -n " + name)).text;
  remove("/api/v1/namespaces/" + name);
  remove("/apis/kubegang.io/v1alpha1/partitions/" + name);
}

// Prints what a person would look at first, because the namespace goes with the test.
void Cluster::show_failure() {
  std::printf("--- jobs, pods and timetables of %s\n%s\n", ns_.c_str(),
              run_shell(kubectl("get gjobs,pods -o wide -n " + ns_) + "; " +
                        kubectl("get gjobs -o yaml -n " + ns_) + "; " + kubectl("get ntt -o yaml"))
                  .text.c_str());
}

// Undoes whatever a test may have done to its three nodes.
void Cluster::restore_nodes() {
  for (int place = 1; place <= kNodesCount; ++place) {
    if (!fs::exists(state_directory() + "/pids/" + node(place))) power_on(place);
    // Without effect on a kubelet that was not stopped.
    (void)on_node(place, "sh -c 'kill -CONT $(cat /run/kubelet.pid)'");
    (void)call(kube::Method::kPatch, node_path(place),
               {{"metadata", {{"annotations", {{"kubegang.io/freeze", nullptr}}}}},
                {"spec", {{"taints", nullptr}, {"unschedulable", nullptr}}}});
  }
  wait_nodes_ready();
}

void Cluster::wait_nodes_ready() {
  // The agents' word is in the timetables, so a ready kubelet is not enough.
  ASSERT_NO_FATAL_FAILURE(wait_until("all nodes and agents are ready", [&] {
    const auto all = timetables();
    for (int n = 1; n <= kNodesCount; ++n) {
      if (!node_is_ready(n)) return false;
    }
    // A node on which no jobs take turns has none.
    return std::all_of(all.begin(), all.end(), [](const kube::NodeTimetable& one) {
      return kube::is_true(one.status.conditions, "Ready");
    });
  }));
}

// One run from `from` to `to`, after runs that are less than `pause` apart have been joined.
void Cluster::expect_ran_without_a_break(Instant from, Instant to, const std::string& name,
                                         const std::string& node_name, Duration pause) const {
  if (pause == Duration{}) pause = kSlice / 2;
  const probe::Gang gang = turns().stamps().gang(name);
  const auto found = gang.nodes.find(node_name);
  ASSERT_NE(found, gang.nodes.end()) << name << " never ran on " << node_name;
  const auto whole = probe::merge_runs(found->second, pause);
  // The pause is allowed at the end, too: the last stamp may be that old.
  EXPECT_TRUE(std::any_of(
      whole.begin(), whole.end(),
      [&](const probe::Run& run) { return run.begin <= from && run.end >= to - pause; }))
      << name << " on " << node_name << ": " << whole.size() << " turns";
}

// A suite that kills operators would fail whatever runs beside it, and be blamed on that test.
void SharedParts::require_alone() {
  if (std::getenv(kStateVariable) == nullptr) return;  // the fixture skips
  ASSERT_NE(std::getenv(kAloneVariable), nullptr)
      << "this suite acts on what all tests share: name it in `alone` of "
         "e2e/kubernetes/tests.cmake";
}

Output SharedParts::helm(const std::string& arguments) {
  return run_shell("helm --kubeconfig " + std::string{std::getenv(kStateVariable)} +
                   "/pki/admin.kubeconfig " + arguments);
}

}  // namespace kubernetes
