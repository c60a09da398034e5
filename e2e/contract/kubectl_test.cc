// The API server through the eyes of a real kubectl, where one is installed: what the README and
// the demo tell people to type. The server runs in a process of its own.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "linux/testing/shell.h"

extern char** environ;

namespace {

using os::testing::Output;
using os::testing::run_shell;

// A child whose standard output is read line by line, and whose standard input ends with this
// object.
class Child {
 public:
  // False: it could not be started.
  // Both pipes are closed on exec, so only the child's own ends, made by dup2, stay open in it.
  bool start(std::vector<std::string> words) {
    std::array<int, 2> in{}, out{};
    if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0) return false;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int error =
        ::posix_spawnp(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    // Closing this end later tells the server to end: it runs until its input does.
    input_ = in[1];
    output_ = ::fdopen(out[0], "r");
    return error == 0;
  }
  // In this order: the end of its input ends the child, which is then waited for.
  ~Child() {
    if (input_ >= 0) ::close(input_);
    if (output_ != nullptr) ::fclose(output_);
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }
  // Waits for it; "" at the end.
  std::string line() {
    std::array<char, 4096> buffer{};
    return std::fgets(buffer.data(), buffer.size(), output_) == nullptr ? "" : buffer.data();
  }
  void terminate() { ::kill(pid_, SIGTERM); }

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  FILE* output_ = nullptr;
};

// Goal: the kubectl that people have works with our API server and our kinds, because it is their
// first contact with both. Method: real commands, and parts of what they print. Each test has a
// server of its own.
class Kubectl : public testing::Test {
 protected:
  void SetUp() override {
    if (run_shell("kubectl version --client").exit_code != 0) {
      GTEST_SKIP() << "kubectl is not installed: not tried";
    }
    folder_ = std::filesystem::temp_directory_path() /
              ("kubegang-kubectl-test-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    ASSERT_TRUE(server_.start({KUBEGANG_BINARY_DIR "/tests/fake_api_server_program",
                               KUBEGANG_SOURCE_DIR "/crds", kubeconfig()}));
    ASSERT_TRUE(server_.line().starts_with("https://"));
    // One object of each kind that a user of the devcluster meets first.
    std::ofstream{folder_ / "objects.yaml"}
        << "apiVersion: kubegang.io/v1alpha1\n"
           "kind: Partition\n"
           "metadata: {name: batch}\n"
           "spec: {nodes: {hostlist: \"n[12-16]\"}, overSubscribe: {policy: Force, maxShare: 4}}\n"
           "---\n"
           "apiVersion: kubegang.io/v1alpha1\n"
           "kind: Job\n"
           "metadata: {name: myload}\n"
           "spec:\n"
           "  partitions: [batch]\n"
           "  resources: {nodes: {min: 5}}\n"
           "  template: {spec: {containers: [{name: main, image: busybox, command: [sleep, "
           "\"9\"]}]}}\n"
           "---\n"
           "apiVersion: v1\n"
           "kind: Pod\n"
           "metadata: {name: p}\n"
           "spec: {nodeName: n12, containers: [{name: main, image: busybox}]}\n";
  }
  void TearDown() override {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }

  std::string kubeconfig() const { return folder_ / "kubeconfig"; }
  // Names a cache of the test's own: kubectl keeps discovery documents and would show those of
  // another cluster.
  std::string cache() const { return folder_ / "cache"; }
  std::string command(const std::string& arguments) const {
    return "kubectl --kubeconfig=" + kubeconfig() + " --cache-dir=" + cache() + " " + arguments;
  }
  // Runs kubectl, expects success, returns what it printed.
  std::string kubectl(const std::string& arguments) {
    const auto output = run_shell(command(arguments));
    EXPECT_EQ(output.exit_code, 0) << arguments << "\n" << output.text;
    return output.text;
  }
  void expect_text(const std::string& arguments, const std::vector<std::string>& wanted) {
    const std::string text = kubectl(arguments);
    for (const std::string& part : wanted) {
      EXPECT_NE(text.find(part), std::string::npos) << arguments << " lacks " << part << "\n"
                                                    << text;
    }
  }
  std::string apply() { return "apply -f " + (folder_ / "objects.yaml").string(); }

  std::filesystem::path folder_;
  Child server_;
};

// The commands of README.md and of the demo, one after the other, as a user would go on.
TEST_F(Kubectl, AppliesGetsDescribesAndDeletes) {
  expect_text(apply(), {"partition.kubegang.io/batch created", "job.kubegang.io/myload created"});
  // A second apply of the same file must change nothing: otherwise the API server fills in what
  // kubectl would take for a difference.
  expect_text(apply(), {"partition.kubegang.io/batch unchanged", "pod/p unchanged"});
  expect_text("get partitions", {"NAME", "STATE", "TIER", "OVERSUBSCRIBE", "Force", "AGE"});
  expect_text("get gjob -o wide",
              {"PARTITION", "HOSTLIST", "REASON", "CPUS", "PRIORITY", "myload"});
  expect_text("get kubegang -A", {"partition.kubegang.io/batch", "job.kubegang.io/myload"});
  expect_text("get gjob myload -o yaml", {"kind: Job", "podPolicy: PerNode", "generation: 1"});
  expect_text("get pods -o wide", {"READY", "Pending", "n12"});
  expect_text("describe gjob myload", {"Name:         myload", "Partitions:", "Events:"});
  expect_text("describe pod p", {"Node:             n12", "QoS Class:"});
  expect_text("logs p", {"hello from default/p/main"});
  expect_text("patch gjob myload --type=merge -p '{\"spec\":{\"control\":{\"hold\":true}}}'",
              {"patched"});
  expect_text("get gjob myload -o jsonpath='{.spec.control.hold}/{.metadata.generation}'",
              {"true/2"});
  expect_text("label gjob myload team=a", {"labeled"});
  expect_text("get gjob -l team=a -o name", {"job.kubegang.io/myload"});
  expect_text("delete gjob myload", {"deleted"});
  // The pod is on a node without a kubelet, so it goes only by force.
  expect_text("delete pod p --grace-period=0 --force", {"deleted"});
  EXPECT_NE(run_shell(command("get gjob myload")).exit_code, 0);
}

// kubectl sends these as protobuf.
TEST_F(Kubectl, CreatesNamespacesAndSaysWhatComesFromFilesOnly) {
  expect_text("create namespace team-a", {"namespace/team-a created"});
  expect_text("get namespace team-a -o name", {"namespace/team-a"});
  const auto refused = run_shell(command("-n team-a create configmap c --from-literal=a=b"));
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_NE(refused.text.find("kubectl: create -f FILE"), std::string::npos) << refused.text;
  expect_text("auth can-i create jobs.kubegang.io", {"yes"});
  expect_text("delete namespace team-a", {"deleted"});
}

// How a user finds out which fields there are without leaving the terminal.
TEST_F(Kubectl, ExplainsAndListsResources) {
  expect_text("explain gjob.spec.resources.nodes",
              {"KIND:       Job", "min	<integer> -required-", "min is the fewest nodes"});
  expect_text("explain partition", {"A set of nodes with a scheduling policy"});
  expect_text("api-resources --api-group=kubegang.io",
              {"gjob,gjobs", "part", "schedulerconfigs", "nodetimetables", "qos"});
  expect_text("get crd", {"jobs.kubegang.io", "CREATED AT"});
  expect_text("wait --for=condition=established crd/jobs.kubegang.io --timeout=5s",
              {"condition met"});
}

// A misspelled field must be named. Server-side apply is not served by this API server, which it
// must say: an apply that is taken and merged wrongly would be worse.
TEST_F(Kubectl, RefusesWhatIsWrongInASentence) {
  std::ofstream{folder_ / "bad.yaml"}
      << "apiVersion: kubegang.io/v1alpha1\n"
         "kind: Partition\n"
         "metadata: {name: bad}\n"
         "spec: {nodes: {hostlist: n1}, oversubscribe: {policy: Force}}\n";
  const Output unknown = run_shell(command("apply -f " + (folder_ / "bad.yaml").string()));
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(unknown.text.find("unknown field \"spec.oversubscribe\""), std::string::npos)
      << unknown.text;
  const Output server_side =
      run_shell(command("apply --server-side -f " + (folder_ / "objects.yaml").string()));
  EXPECT_EQ(server_side.exit_code, 1);
  EXPECT_NE(server_side.text.find("server-side apply is not served"), std::string::npos)
      << server_side.text;
}

// `kubectl get -w` asks for rows of a table instead of objects.
TEST_F(Kubectl, WatchesWithATable) {
  kubectl(apply());
  Child watcher;
  ASSERT_TRUE(watcher.start(
      {"kubectl", "--kubeconfig=" + kubeconfig(), "--cache-dir=" + cache(), "get", "gjob", "-w"}));
  EXPECT_NE(watcher.line().find("HOSTLIST"), std::string::npos);
  EXPECT_TRUE(watcher.line().starts_with("myload"));
  // Any change of the object brings a line.
  kubectl("annotate gjob myload step=1");
  EXPECT_TRUE(watcher.line().starts_with("myload"));
  watcher.terminate();
}

}  // namespace
