#include "e2e/kubernetes/tests/harness.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "e2e/devcluster/apply.h"
#include "e2e/probe/analysis.h"
#include "kube/api/time_format.h"
#include "kube/http_transport.h"
#include "kube/transport_config.h"

namespace kubernetes {
namespace {

namespace fs = std::filesystem;

constexpr const char* kScripts = KUBEGANG_SOURCE_DIR "/e2e/kubernetes";
constexpr Duration kSlice = milliseconds{500};  // values.yaml
constexpr int kNodesCount = 3;
constexpr std::size_t kNameLengthMax = 40;

int first_node() {
  const char* lane = std::getenv(kLaneVariable);
  int first = 1;
  if (lane != nullptr) (void)std::sscanf(lane, "id:%d", &first);
  return first;
}

int number_of(int place) {
  return first_node() + place - 1;
}

bool has_condition(const json& object, const std::string& type) {
  const json all = object.value(json::json_pointer{"/status/conditions"}, json::array());
  return std::any_of(all.begin(), all.end(), [&](const json& condition) {
    return condition["type"] == type && condition["status"] == "True";
  });
}

// The host's folders that may hold a node's kubepods, as the agents use them (install-chart).
std::string freezer_root() {
  return fs::exists("/sys/fs/cgroup/unified") ? "/sys/fs/cgroup/unified" : "/sys/fs/cgroup";
}

// What cgroup.events says of the cgroup; false also when that is gone.
bool is_now(const std::string& cgroup, const std::string& what) {
  std::ifstream events{cgroup + "/cgroup.events"};
  std::string name;
  for (int value = 0; events >> name >> value;) {
    if (name == what) return value == 1;
  }
  return false;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return std::isalnum(c) != 0 ? static_cast<char>(std::tolower(c)) : '-';
  });
  return text.substr(0, kNameLengthMax);
}

// One connection for all tests of the program.
kube::Transport& administrator() {
  static const kube::SystemClock clock;
  static const std::unique_ptr<kube::HttpTransport> transport = [] {
    const auto config =
        kube::load_kubeconfig(std::string{std::getenv(kStateVariable)} + "/pki/admin.kubeconfig");
    if (!config.ok()) throw std::runtime_error{config.error().message};
    auto made = kube::HttpTransport::create(*config, clock);
    if (!made.ok()) throw std::runtime_error{made.error().message};
    return std::move(made).value();
  }();
  return *transport;
}

// As devcluster::eventually, but rarely enough for the machine's API server.
bool eventually(const std::function<bool()>& condition, milliseconds patience,
                milliseconds every = milliseconds{50}) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    ::poll(nullptr, 0, static_cast<int>(every.count()));
  }
  return true;
}

// Of each overlap of two jobs: the node, and their runs within a slice of it.
std::string overlaps_of(const scenarios::Turns& turns, Instant from,
                        const std::vector<std::string>& job_names) {
  std::string text;
  const auto tell = [&](const std::string& name, const std::vector<probe::Run>& runs,
                        const probe::Interval& piece) {
    text += " " + name;
    for (const probe::Run& run : runs) {
      if (run.begin > piece.to + kSlice || run.end < piece.from - kSlice) continue;
      text += " " + kube::format_micro_time(run.begin) + " to " + kube::format_micro_time(run.end) +
              ";";
    }
  };
  for (std::size_t b = 1; b < job_names.size(); ++b) {
    for (std::size_t a = 0; a < b; ++a) {
      const probe::Gang one = turns.stamps().gang(job_names[a]);
      const probe::Gang other = turns.stamps().gang(job_names[b]);
      for (const auto& [node, runs] : one.nodes) {
        const auto theirs = other.nodes.find(node);
        if (theirs == other.nodes.end()) continue;
        for (const probe::Interval& piece : probe::overlaps(runs, theirs->second)) {
          if (piece.to <= from) continue;
          text += node + ":";
          tell(one.name, runs, piece);
          tell(other.name, theirs->second, piece);
          text += "\n";
        }
      }
    }
  }
  return text;
}

}  // namespace

Output run(const std::string& command) {
  Output output;
  FILE* pipe = ::popen(("{ " + command + "; } 2>&1 </dev/null").c_str(), "r");
  if (pipe == nullptr) return output;
  std::array<char, 4096> buffer{};
  while (const std::size_t size = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.text.append(buffer.data(), size);
  }
  const int status = ::pclose(pipe);
  output.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return output;
}

bool takes_its_time() {
  return std::getenv("KUBEGANG_LONG") != nullptr;
}

std::string Cluster::state_directory() {
  const char* directory = std::getenv(kStateVariable);
  return directory == nullptr ? "" : directory;
}

void Cluster::SetUp() {
  if (state_directory().empty()) {
    GTEST_SKIP() << kStateVariable << " names no cluster: make e2e-kubernetes";
  }
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  begin(name_like(info->name()));
}

void Cluster::TearDown() {
  if (ns_.empty()) return;
  if (HasFailure()) {
    show_failure();
    restore_nodes();
  }
  end(ns_);
}

std::string Cluster::name_like(const std::string& text) {
  return "t-" + lower(text);
}

void Cluster::begin(const std::string& name) {
  ns_ = name;
  stamps_in_ = state_directory() + "/stamps/" + ns_;
  ASSERT_TRUE(devcluster::StampStore{stamps_in_}.prepare(all_nodes()).ok());
  ASSERT_NO_FATAL_FAILURE(make_namespace(
      ns_, {{"pod-security.kubernetes.io/enforce", "privileged"}}));  // stamps need a hostPath
  ASSERT_NO_FATAL_FAILURE(make_partition(ns_));
}

void Cluster::end(const std::string& name) {
  (void)call(kube::Method::kDelete, "/apis/kubegang.io/v1alpha1/namespaces/" + name + "/jobs");
  EXPECT_TRUE(
      eventually([&] { return list("/api/v1/namespaces/" + name + "/pods").empty(); }, kPatience))
      << "pods are left in " << name << "\n"
      << run(kubectl("get pods -o wide -n " + name)).text;
  (void)call(kube::Method::kDelete, "/api/v1/namespaces/" + name);
  (void)call(kube::Method::kDelete, "/apis/kubegang.io/v1alpha1/partitions/" + name);
}

void Cluster::show_failure() {
  std::printf("--- jobs, pods and timetables of %s\n%s\n", ns_.c_str(),
              run(kubectl("get gjobs,pods -o wide -n " + ns_) + "; " +
                  kubectl("get gjobs -o yaml -n " + ns_) + "; " + kubectl("get ntt -o yaml"))
                  .text.c_str());
}

void Cluster::restore_nodes() {
  for (int place = 1; place <= kNodesCount; ++place) {
    if (!fs::exists(state_directory() + "/pids/" + node(place))) power_on(place);
    (void)on_node(place, "sh -c 'kill -CONT $(cat /run/kubelet.pid)'");
    (void)call(kube::Method::kPatch, node_path(place),
               {{"metadata", {{"annotations", {{"kubegang.io/freeze", nullptr}}}}},
                {"spec", {{"taints", nullptr}, {"unschedulable", nullptr}}}});
  }
  wait_nodes_ready();
}

kube::Transport& Cluster::api() {
  return administrator();
}

base::Result<json> Cluster::call(kube::Method method, const std::string& path, const json& body) {
  return devcluster::call_api(api(), method, path, body);
}

json Cluster::get(const std::string& path) {
  json found;
  const auto is_answered = [&] {
    const auto answer = call(kube::Method::kGet, path);
    if (answer.ok()) found = *answer;
    return answer.ok() || answer.error().code == base::Code::kNotFound;
  };
  EXPECT_TRUE(eventually(is_answered, kPatience)) << "the API server says nothing of " << path;
  return found;
}

std::vector<json> Cluster::list(const std::string& path) {
  const json found = get(path);
  if (found.is_null()) return {};
  return {found["items"].begin(), found["items"].end()};
}

void Cluster::apply(const json& object) {
  const auto status = devcluster::apply_object(api(), object);
  ASSERT_TRUE(status.ok()) << status.error().message << "\n" << object.dump(1);
}

void Cluster::patch(const std::string& path, const json& merge_patch) {
  const auto answer = call(kube::Method::kPatch, path, merge_patch);
  ASSERT_TRUE(answer.ok()) << path << ": " << answer.error().message;
}

void Cluster::remove(const std::string& path, const json& options) {
  const auto answer = call(kube::Method::kDelete, path, options);
  ASSERT_TRUE(answer.ok()) << path << ": " << answer.error().message;
}

std::unique_ptr<kube::Transport> Cluster::as(const std::string& token) {
  auto config = kube::load_kubeconfig(state_directory() + "/pki/admin.kubeconfig");
  if (!config.ok()) return nullptr;
  config->client_certificate_pem.clear();
  config->client_key_pem.clear();
  config->bearer_token = token;
  auto made = kube::HttpTransport::create(*config, clock_);
  return made.ok() ? std::move(made).value() : nullptr;
}

std::string Cluster::token_of(const std::string& ns, const std::string& account,
                              const std::string& pod) {
  json request{{"apiVersion", "authentication.k8s.io/v1"},
               {"kind", "TokenRequest"},
               {"spec", {{"expirationSeconds", 3600}}}};
  if (!pod.empty()) {
    request["spec"]["boundObjectRef"] = {{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", pod}};
  }
  const auto answer =
      call(kube::Method::kPost,
           "/api/v1/namespaces/" + ns + "/serviceaccounts/" + account + "/token", request);
  EXPECT_TRUE(answer.ok()) << answer.error().message;
  return answer.ok() ? (*answer)["status"]["token"].get<std::string>() : "";
}

std::string Cluster::kubectl(const std::string& arguments) {
  return "kubectl --kubeconfig " + state_directory() + "/pki/admin.kubeconfig " + arguments;
}

std::string Cluster::kubectl_gang(const std::string& arguments) {
  return "KUBECONFIG=" + state_directory() +
         "/pki/admin.kubeconfig " KUBEGANG_BINARY_DIR "/bin/kubectl-gang " + arguments;
}

void Cluster::make_namespace(const std::string& name, const json& labels) {
  // One of the same name may still be on its way out (a test that is repeated).
  ASSERT_NO_FATAL_FAILURE(wait_until("the namespace " + name + " can be made", [&] {
    return call(kube::Method::kPost, "/api/v1/namespaces",
                {{"apiVersion", "v1"},
                 {"kind", "Namespace"},
                 {"metadata", {{"name", name}, {"labels", labels}}}})
        .ok();
  }));
  ASSERT_NO_FATAL_FAILURE(wait_until("the service account of " + name, [&] {
    return get("/api/v1/namespaces/" + name + "/serviceaccounts/default").is_object();
  }));
}

void Cluster::make_partition(const std::string& name, const json& spec_patch) {
  json spec{{"nodes", {{"hostlist", nodes(1, kNodesCount)}}},
            {"overSubscribe", {{"policy", "Force"}, {"maxShare", 4}}}};
  spec.merge_patch(spec_patch);
  ASSERT_NO_FATAL_FAILURE(apply({{"apiVersion", "kubegang.io/v1alpha1"},
                                 {"kind", "Partition"},
                                 {"metadata", {{"name", name}}},
                                 {"spec", spec}}));
}

json Cluster::job_object(const JobOptions& options) const {
  const bool is_probe = options.command.empty() && options.image.empty();
  json container{
      {"name", "main"},
      {"image", !options.image.empty() ? options.image
                : is_probe             ? std::string{kProbeImage}
                                       : std::string{kBusyboxImage}},
      {"imagePullPolicy", "IfNotPresent"},
      {"env",
       {{{"name", "NODE"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "spec.nodeName"}}}}}},
        {{"name", "POD"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "metadata.name"}}}}}},
        {{"name", "KUBEGANG_STAMP_FILE"}, {"value", "/stamps/$(NODE)/$(POD).stamps"}}}},
      {"volumeMounts", {{{"name", "stamps"}, {"mountPath", "/stamps"}}}}};
  if (!options.command.empty()) container["command"] = options.command;
  // All lanes' probes share this machine's CPUs.
  if (is_probe) container["args"] = json::array({"--work-micros=20"});
  json object{
      {"apiVersion", "kubegang.io/v1alpha1"},
      {"kind", "Job"},
      {"metadata", {{"name", options.name}, {"namespace", ns_}}},
      {"spec",
       {{"partitions", {options.partition.empty() ? ns_ : options.partition}},
        {"resources", {{"nodes", {{"min", options.nodes_count}}}}},
        {"template",
         {{"spec",
           {{"automountServiceAccountToken", false},
            {"containers", json::array({container})},
            {"volumes", {{{"name", "stamps"}, {"hostPath", {{"path", stamps_in_}}}}}}}}}}}}};
  object.merge_patch(options.patch);
  return object;
}

void Cluster::submit(const JobOptions& options) {
  ASSERT_NO_FATAL_FAILURE(apply(job_object(options)));
}

std::string Cluster::job_path(const std::string& name) const {
  return "/apis/kubegang.io/v1alpha1/namespaces/" + ns_ + "/jobs/" + name;
}

kube::Job Cluster::job(const std::string& name) {
  const auto found = kube::decode<kube::Job>(get(job_path(name)));
  return found.ok() ? *found : kube::Job{};
}

std::string Cluster::state(const std::string& name) {
  const kube::Job found = job(name);
  return found.status.state ? std::string{to_string(*found.status.state)} : std::string{};
}

bool Cluster::has_ended(const std::string& name) {
  const kube::Job found = job(name);
  return found.status.state && kube::is_final(*found.status.state);
}

std::string Cluster::status_text(const std::string& name) {
  const json object = get(job_path(name));
  return object.is_object() ? object.value("status", json::object()).dump(1) : "no such job";
}

std::vector<json> Cluster::pods(const std::string& job_name) {
  return list("/api/v1/namespaces/" + ns_ + "/pods?labelSelector=kubegang.io/job=" + job_name);
}

json Cluster::pod_on(const std::string& job_name, const std::string& node_name) {
  for (const json& pod : pods(job_name)) {
    if (pod["spec"]["nodeName"] == node_name) return pod;
  }
  return nullptr;
}

std::vector<kube::NodeTimetable> Cluster::timetables() {
  std::vector<kube::NodeTimetable> found;
  for (int n = 1; n <= kNodesCount; ++n) {
    const auto one = kube::decode<kube::NodeTimetable>(
        get("/apis/kubegang.io/v1alpha1/nodetimetables/" + node(n)));
    if (one.ok()) found.push_back(*one);
  }
  return found;
}

std::vector<json> Cluster::operators() {
  return list(std::string{"/api/v1/namespaces/"} + kSystemNamespace +
              "/pods?labelSelector=app.kubernetes.io/component=operator");
}

json Cluster::agent_on(const std::string& node_name) {
  for (const json& pod : list(std::string{"/api/v1/namespaces/"} + kSystemNamespace +
                              "/pods?labelSelector=app.kubernetes.io/component=agent")) {
    if (pod["spec"].value("nodeName", "") == node_name) return pod;
  }
  return nullptr;
}

void Cluster::wait_until(const std::string& what, const std::function<bool()>& condition,
                         milliseconds patience) {
  ASSERT_TRUE(eventually(condition, patience)) << "still not: " << what;
}

void Cluster::wait_ready(const std::string& name) {
  ASSERT_TRUE(
      // Condition Ready ends with the job.
      eventually([&] { return job(name).status.start_time.has_value(); }, kPatience))
      << "job " << name << " is not ready: " << status_text(name);
}

void Cluster::wait_state(const std::string& name, const std::string& wanted,
                         milliseconds patience) {
  ASSERT_TRUE(eventually([&] { return state(name) == wanted; }, patience))
      << "job " << name << " is not " << wanted << ": " << status_text(name);
}

void Cluster::wait_reason(const std::string& name, const std::string& reason) {
  ASSERT_TRUE(eventually([&] { return job(name).status.reason == reason; }, kPatience))
      << "job " << name << " has not the reason " << reason << ": " << status_text(name);
}

void Cluster::wait_nodes_ready() {
  ASSERT_NO_FATAL_FAILURE(wait_until("all nodes and agents are ready", [&] {
    const auto all = timetables();
    for (int n = 1; n <= kNodesCount; ++n) {
      if (!node_is_ready(n)) return false;
    }
    return std::count_if(all.begin(), all.end(), [](const kube::NodeTimetable& one) {
             return kube::is_true(one.status.conditions, "Ready");
           }) == kNodesCount;
  }));
}

scenarios::Turns Cluster::turns() const {
  return {devcluster::StampStore{stamps_in_}, kSlice};
}

void Cluster::wait_for_turns(const std::vector<std::string>& job_names,
                             const std::vector<std::string>& node_names) {
  const Instant begin = now();
  const auto take_turns = [&] {
    const Instant to = now();
    const Instant from =
        std::max(begin, to - kSlice * static_cast<std::int64_t>(2 * job_names.size() + 2));
    for (const std::string& node_name : node_names) {
      const auto slots = turns().owners_of_slots(node_name, from, to, job_names);
      for (const std::string& name : job_names) {
        if (std::count(slots.begin(), slots.end(), name) < 2) return false;
      }
      if (std::any_of(slots.begin(), slots.end(), [](const std::string& owners) {
            return owners.find('+') != std::string::npos;
          })) {
        return false;
      }
    }
    return true;
  };
  ASSERT_TRUE(eventually(take_turns, kPatience, milliseconds{200}))
      << "they do not take turns on all of these nodes";
}

void Cluster::expect_turns_since(Instant from, const std::vector<std::string>& job_names) {
  ASSERT_NO_FATAL_FAILURE(wait_for_turns(job_names));
  EXPECT_EQ(turns().overlap_since(from, job_names), Duration{})
      << overlaps_of(turns(), from, job_names);
}

void Cluster::expect_turns_between(Instant from, Instant to,
                                   const std::vector<std::string>& job_names,
                                   const std::vector<std::string>& node_names) const {
  for (const std::string& name : node_names) {
    const auto slots = turns().owners_of_slots(name, from, to, job_names);
    const auto wanted = slots.size() / job_names.size() / 2;  // half of its share: others are busy
    ASSERT_GE(wanted, 1U) << "too short a time";
    for (const std::string& job_name : job_names) {
      EXPECT_GE(static_cast<std::size_t>(std::count(slots.begin(), slots.end(), job_name)), wanted)
          << job_name << " on " << name << " in " << slots.size() << " slots";
    }
  }
  // In whole, as far as it is this time's.
  EXPECT_EQ(turns().overlap_between(from, to, job_names, node_names), Duration{})
      << overlaps_of(turns(), from, job_names);
}

void Cluster::expect_ran_without_a_break(Instant from, Instant to, const std::string& name,
                                         const std::string& node_name, Duration pause) const {
  if (pause == Duration{}) pause = kSlice / 2;
  const probe::Gang gang = turns().stamps().gang(name);
  const auto found = gang.nodes.find(node_name);
  ASSERT_NE(found, gang.nodes.end()) << name << " never ran on " << node_name;
  const auto whole = probe::merge_runs(found->second, pause);
  EXPECT_TRUE(std::any_of(
      whole.begin(), whole.end(),
      [&](const probe::Run& run) { return run.begin <= from && run.end >= to - pause; }))
      << name << " on " << node_name << ": " << whole.size() << " turns";
}

void Cluster::expect_undisturbed(const std::string& job_name) {
  const kube::Job found = job(job_name);
  EXPECT_EQ(found.status.starts.value_or(0), 1) << job_name;
  EXPECT_EQ(found.status.restarts.value_or(0), 0) << job_name;
  ASSERT_TRUE(found.status.allocation) << status_text(job_name);
  const std::vector<json> all = pods(job_name);
  EXPECT_EQ(std::ssize(all), found.spec.resources.nodes->min) << job_name;
  for (const json& pod : all) {
    EXPECT_EQ(pod["status"]["phase"], "Running") << pod["metadata"]["name"];
    for (const json& container : pod["status"]["containerStatuses"]) {
      EXPECT_EQ(container["restartCount"], 0) << pod["metadata"]["name"];
    }
  }
}

std::string Cluster::node(int place) {
  return "n" + std::to_string(number_of(place));
}

std::string Cluster::nodes(int from, int to) {
  return "n[" + std::to_string(number_of(from)) + "-" + std::to_string(number_of(to)) + "]";
}

std::vector<std::string> Cluster::all_nodes() {
  std::vector<std::string> names;
  for (int n = 1; n <= kNodesCount; ++n) names.push_back(node(n));
  return names;
}

bool Cluster::node_is_ready(int place) {
  const json found = get(node_path(place));
  return found.is_object() && has_condition(found, "Ready");
}

Output Cluster::on_node(int place, const std::string& command) const {
  return script("node-exec " + std::to_string(number_of(place)) + " " + command);
}

void Cluster::power_off(int place) {
  for (const json& pod : operators()) {
    ASSERT_NE(pod["spec"].value("nodeName", ""), node(place)) << "all tests need the operators";
  }
  const Output down = script("node-down " + std::to_string(number_of(place)));
  ASSERT_EQ(down.exit_code, 0) << down.text;
}

void Cluster::power_on(int place) {
  const Output up = script("node-up " + std::to_string(number_of(place)));
  ASSERT_EQ(up.exit_code, 0) << up.text;
}

Output Cluster::script(const std::string& command) const {
  return run(std::string{kScripts} + "/" + command);
}

std::string Cluster::cgroup_of(const json& pod) const {
  const std::string qos = pod["status"].value("qosClass", "BestEffort");
  const std::string path = freezer_root() + "/kg-" + pod["spec"].value("nodeName", "") +
                           "/kubepods/" +
                           (qos == "Guaranteed"  ? ""
                            : qos == "Burstable" ? "burstable/"
                                                 : "besteffort/") +
                           "pod" + pod["metadata"]["uid"].get<std::string>();
  return fs::exists(path) ? path : "";
}

bool Cluster::is_frozen(const json& pod) const {
  return is_now(cgroup_of(pod), "frozen");
}

bool Cluster::has_processes(const std::string& cgroup) const {
  return is_now(cgroup, "populated");
}

std::vector<int> Cluster::processes_of(const json& pod) const {
  std::vector<int> out;
  const std::string cgroup = cgroup_of(pod);
  if (cgroup.empty()) return out;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator{cgroup, error}) {
    if (entry.path().filename() != "cgroup.procs") continue;
    std::ifstream in{entry.path()};
    for (int pid = 0; in >> pid;) {
      const fs::path program = fs::read_symlink("/proc/" + std::to_string(pid) + "/exe", error);
      if (program.filename() != "pause") out.push_back(pid);
    }
  }
  return out;
}

std::int64_t Cluster::resident_kib(const json& pod) const {
  std::int64_t sum = 0;
  for (const int pid : processes_of(pod)) {
    std::ifstream in{"/proc/" + std::to_string(pid) + "/status"};
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("VmRSS:")) sum += std::stoll(line.substr(6));
    }
  }
  return sum;
}

void SharedParts::require_alone() {
  if (std::getenv(kStateVariable) == nullptr) return;  // the fixture skips
  ASSERT_NE(std::getenv(kAloneVariable), nullptr)
      << "this suite acts on what all tests share: name it in `alone` of "
         "e2e/kubernetes/tests.cmake";
}

Output SharedParts::helm(const std::string& arguments) {
  return run("helm --kubeconfig " + std::string{std::getenv(kStateVariable)} +
             "/pki/admin.kubeconfig " + arguments);
}

}  // namespace kubernetes
