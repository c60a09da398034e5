// kubegang-devcluster as a user starts and ends it: whatever happens to it, nothing is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "e2e/devcluster/apply.h"
#include "e2e/devcluster/guardian.h"
#include "e2e/devcluster/kubelet/spawn.h"
#include "e2e/devcluster/testing/eventually.h"
#include "kube/clock.h"
#include "kube/http_transport.h"
#include "kube/transport_config.h"

namespace devcluster {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr const char* kProgram = KUBEGANG_BINARY_DIR "/bin/kubegang-devcluster";

std::string read_file(const std::string& path) {
  std::ifstream in{path};
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

// Goal: a demo or a test that ends in any way leaves neither processes nor frozen cgroups on the
// machine, because nothing else would ever thaw or end them. Method: the built program runs as a
// child in a folder of its own; the test looks into its cgroups from outside. Skipped if no cgroup
// can be written.
class Program : public testing::Test {
 protected:
  void SetUp() override {
    const auto root =
        os::make_cgroup_root(std::nullopt, "kubegang-program-" + std::to_string(getpid()));
    if (!root.ok()) GTEST_SKIP() << root.error().message;
    // Made only to find out whether the machine lets us write any.
    (void)os::destroy_cgroup(root->version, root->path, seconds{1});
    std::string pattern = testing::TempDir() + "program-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override {
    // Killed and not stopped, so each test of this file also is one of the guardian.
    if (child_) {
      ::kill(child_->pid, SIGKILL);
      EXPECT_TRUE(eventually([&] { return cgroups().empty(); }));
    }
    if (!directory_.empty()) fs::remove_all(directory_);
  }

  // With an environment of its own: a variable of the person who runs the tests must not reach the
  // program.
  void start(std::vector<std::string> arguments) {
    std::vector<std::string> argv{kProgram};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    auto child = spawn({.argv = argv,
                        .environment = {"PATH=/usr/bin:/bin"},
                        .output_path = directory_ + "/output"});
    ASSERT_TRUE(child.ok()) << child.error().message;
    child_ = std::move(child).value();
  }
  // Returns when the program has said that it is up, connected as its user's kubectl would be.
  // Without operator and agents, which these tests have no need of.
  void up() {
    start({"up", "--no-operator", "--no-agents", "--nodes", "n[1-2]", "--dir", directory_});
    ASSERT_TRUE(eventually([&] { return output().find("Look inside") != std::string::npos; }))
        << output();
    const auto config = kube::load_kubeconfig(directory_ + "/kubeconfig");
    ASSERT_TRUE(config.ok()) << config.error().message;
    auto transport = kube::HttpTransport::create(*config, clock_);
    ASSERT_TRUE(transport.ok()) << transport.error().message;
    transport_ = std::move(transport).value();
  }
  // The worst case for cleaning up: a pod that ignores SIGTERM, running and frozen.
  void freeze_a_pod() {
    const json pod{{"apiVersion", "v1"},
                   {"kind", "Pod"},
                   {"metadata", {{"name", "a"}, {"namespace", "default"}}},
                   {"spec",
                    {{"nodeName", "n1"},
                     {"restartPolicy", "Never"},
                     {"containers",
                      {{{"name", "main"},
                        {"image", "x"},
                        {"command", {"sh", "-c", "trap '' TERM; while :; do sleep 1; done"}}}}}}}};
    const auto applied = apply_object(*transport_, pod);
    ASSERT_TRUE(applied.ok()) << applied.error().message;
    ASSERT_TRUE(eventually([&] {
      const auto found = get_api(*transport_, "/api/v1/namespaces/default/pods/a");
      return found.ok() && (*found)["status"]["phase"] == "Running";
    }));
    // The whole class of pods is frozen by the test itself, in place of an agent.
    for (const std::string& cgroup : cgroups()) {
      const bool v1 = fs::exists(cgroup + "/freezer.state");
      std::ofstream{cgroup + (v1 ? "/n1/kubepods/besteffort/freezer.state"
                                 : "/n1/kubepods/besteffort/cgroup.freeze")}
          << (v1 ? "FROZEN" : "1");
    }
  }

  // Returns the cgroups of the program's instance, in all hierarchies that are mounted.
  std::vector<std::string> cgroups() const {
    std::vector<std::string> out;
    const std::string prefix = "kubegang-devcluster-" + std::to_string(child_->pid) + "-";
    for (const os::CgroupMount& mount : os::cgroup_mounts()) {
      for (const auto& entry : fs::directory_iterator{mount.path}) {
        if (entry.path().filename().string().starts_with(prefix)) out.push_back(entry.path());
      }
    }
    return out;
  }
  std::string output() const { return read_file(directory_ + "/output"); }
  // Waits for at most 15 s.
  std::optional<ExitStatus> wait() {
    pollfd fd{child_->pidfd.get(), POLLIN, 0};
    ::poll(&fd, 1, 15'000);
    return reap(*child_);
  }

  const kube::SystemClock clock_{};
  std::string directory_;
  std::optional<Child> child_;
  std::unique_ptr<kube::Transport> transport_;
};

// The orderly end, as a user ends a demo.
TEST_F(Program, LeavesNothingBehindAfterCtrlC) {
  ASSERT_NO_FATAL_FAILURE(up());
  ASSERT_NO_FATAL_FAILURE(freeze_a_pod());
  ::kill(child_->pid, SIGINT);
  EXPECT_EQ(wait(), ExitStatus{.exit_code = 0});
  EXPECT_TRUE(cgroups().empty());
}

// As the out-of-memory killer does: nothing of the program itself can clean up.
TEST_F(Program, LeavesNothingBehindWhenItIsKilled) {
  ASSERT_NO_FATAL_FAILURE(up());
  ASSERT_NO_FATAL_FAILURE(freeze_a_pod());
  std::vector<pid_t> pids;
  for (const std::string& cgroup : cgroups()) pids = os::processes_below(cgroup);
  // SIGKILL cannot be handled, so another process must clean up (guardian.h).
  ASSERT_FALSE(pids.empty());
  ::kill(child_->pid, SIGKILL);
  EXPECT_TRUE(eventually([&] { return cgroups().empty(); }));
  // Gone, or a zombie that the machine's init has not looked at yet.
  for (const pid_t pid : pids) {
    const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
    EXPECT_TRUE(stat.empty() || stat.find(") Z") != std::string::npos) << stat;
  }
}

// `kubectl logs` is the first thing that a user tries when a job does not do what it should.
TEST_F(Program, ShowsTheLogOfAPodThatRuns) {
  ASSERT_NO_FATAL_FAILURE(up());
  const json pod{{"apiVersion", "v1"},
                 {"kind", "Pod"},
                 {"metadata", {{"name", "a"}, {"namespace", "default"}}},
                 {"spec",
                  {{"nodeName", "n2"},
                   {"restartPolicy", "Never"},
                   {"containers",
                    {{{"name", "main"},
                      {"image", "x"},
                      {"command", {"sh", "-c", "echo one; echo two; sleep 1000"}}}}}}}};
  ASSERT_TRUE(apply_object(*transport_, pod).ok());
  const auto log = [&](const std::string& query) {
    const auto answer = transport_->send({.path = "/api/v1/namespaces/default/pods/a/log" + query});
    return answer.ok() ? answer->body : answer.error().message;
  };
  EXPECT_TRUE(eventually([&] { return log("") == "one\ntwo\n"; })) << log("");
  // kubelet's parameters of a log, as far as the devcluster has them.
  EXPECT_EQ(log("?tailLines=1"), "two\n");
  EXPECT_EQ(log("?limitBytes=2"), "on");
  EXPECT_THAT(log("?timestamps=true"), testing::MatchesRegex("20[^ ]*Z one\n20[^ ]*Z two\n"));
  EXPECT_THAT(log("?sinceSeconds=1"), HasSubstr("without times"));
}

// Two devclusters with the same --port: the second must say which port, and leave the first alone.
TEST_F(Program, SaysThatAPortIsInUse) {
  ASSERT_NO_FATAL_FAILURE(up());
  // The first has chosen a free port and told it; the second is given that one.
  const std::string text = output();
  const auto colon = text.find("127.0.0.1:") + 10;
  const std::string port = text.substr(colon, text.find(',', colon) - colon);
  const auto second = spawn({.argv = {kProgram, "up", "--no-operator", "--no-agents", "--port",
                                      port, "--dir", directory_ + "/second"},
                             .environment = {"PATH=/usr/bin:/bin"},
                             .output_path = directory_ + "/second-output"});
  ASSERT_TRUE(second.ok());
  pollfd fd{second->pidfd.get(), POLLIN, 0};
  ::poll(&fd, 1, 10'000);
  EXPECT_EQ(reap(*second), ExitStatus{.exit_code = 1});
  EXPECT_THAT(read_file(directory_ + "/second-output"), HasSubstr(port));
}

// A second cluster in one folder would empty the first one's logs and write over its kubeconfig,
// with which the user works.
TEST_F(Program, LeavesADirectoryToTheClusterThatRunsThere) {
  ASSERT_NO_FATAL_FAILURE(up());
  ASSERT_NO_FATAL_FAILURE(freeze_a_pod());
  const std::string kubeconfig = read_file(directory_ + "/kubeconfig");
  const auto second =
      spawn({.argv = {kProgram, "up", "--no-operator", "--no-agents", "--dir", directory_},
             .environment = {"PATH=/usr/bin:/bin"},
             .output_path = directory_ + "/second-output"});
  ASSERT_TRUE(second.ok());
  pollfd fd{second->pidfd.get(), POLLIN, 0};
  ::poll(&fd, 1, 10'000);
  EXPECT_EQ(reap(*second), ExitStatus{.exit_code = 1});
  EXPECT_THAT(read_file(directory_ + "/second-output"),
              HasSubstr(directory_ + " is the directory of a devcluster that runs; end that"));
  // Nothing was touched before the lock was found to be taken.
  EXPECT_EQ(read_file(directory_ + "/kubeconfig"), kubeconfig);
  EXPECT_TRUE(fs::exists(directory_ + "/logs/pods"));
}

// The program is copied to where an ordinary user reaches it, whatever folder this one is in.
TEST_F(Program, SaysWhatIsMissingWhereNoCgroupCanBeWritten) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become an ordinary user";
  const std::string copy = directory_ + "/kubegang-devcluster";
  fs::copy_file(kProgram, copy);
  fs::create_directory(directory_ + "/crds");  // looked for beside the program
  fs::permissions(directory_, fs::perms::all);
  auto child = spawn({.argv = {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", copy,
                               "up", "--no-operator", "--no-agents", "--dir", directory_ + "/own"},
                      .environment = {"PATH=/usr/bin:/bin"},
                      .output_path = directory_ + "/output"});
  ASSERT_TRUE(child.ok()) << child.error().message;
  child_ = std::move(child).value();
  EXPECT_EQ(wait(), ExitStatus{.exit_code = 1}) << output();
  EXPECT_THAT(output(), HasSubstr("the devcluster freezes real processes: no writable cgroup"));
  EXPECT_THAT(output(), HasSubstr("run as root, or where a cgroup is delegated"));
}

// Exit code 2 tells a script that the command line is wrong, before a cluster is started.
TEST_F(Program, ExitsWithTwoOnAWrongCommandLine) {
  start({"demo", "--slice", "5ms"});
  EXPECT_EQ(wait(), ExitStatus{.exit_code = 2});
  EXPECT_THAT(output(), HasSubstr("less than 100ms"));
}

// A command that was mistyped is named, not only the list of those that exist.
TEST_F(Program, NamesAWordThatItDoesNotKnow) {
  start({"frobnicate"});
  EXPECT_EQ(wait(), ExitStatus{.exit_code = 2});
  EXPECT_THAT(output(), HasSubstr("frobnicate"));
}

TEST_F(Program, SaysWhichCommandsThereAre) {
  start({});
  EXPECT_EQ(wait(), ExitStatus{.exit_code = 2});
  EXPECT_THAT(output(), HasSubstr("say what to do: up, demo or bench"));
}

// Goal: one command, and a newcomer sees the turns in a browser. Method: the address that the demo
// prints is asked for the page, as a browser does.
TEST_F(Program, TheDemoPrintsTheAddressOfItsPage) {
  start({"demo", "--slice", "100ms", "--duration", "4s", "--nodes", "n[1-2]", "--dir", directory_});
  const std::string begin = "In a browser: http://127.0.0.1:";
  ASSERT_TRUE(eventually([&] { return output().find(begin) != std::string::npos; })) << output();
  const std::string rest = output().substr(output().find(begin) + begin.size());
  const int port = std::stoi(rest);
  EXPECT_THAT(rest, testing::MatchesRegex("[0-9]+/#[0-9a-f]+\n(.|\n)*"));
  const os::FileDescriptor socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
            0);
  const std::string request =
      "GET / HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) + "\r\n\r\n";
  ASSERT_EQ(::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  std::string answer(16, ' ');
  ASSERT_GT(::recv(socket.get(), answer.data(), answer.size(), MSG_WAITALL), 0);
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 200"));
}

// 5 slices of 30 s and the lead of 3 s are 2m33s, the least that a demo takes.
TEST_F(Program, RefusesADemoThatIsTooShortToSeeAnything) {
  start({"demo", "--slice", "30s", "--duration", "20s"});
  EXPECT_EQ(wait(), ExitStatus{.exit_code = 2});
  EXPECT_THAT(output(), HasSubstr("--duration 20s: too short to see turns of 30s; give 2m33s"));
}

// Cgroups of dead instances are swept at each start. One that is taken for dead by mistake would
// end another user's cluster; one that is not swept keeps frozen processes forever.
TEST(Instances, AreDeadWhenTheirProcessIsGone) {
  EXPECT_FALSE(is_dead_instance(instance_name()));
  // This process lives, but it has not started at 1: its number was another's before.
  EXPECT_TRUE(is_dead_instance("kubegang-devcluster-" + std::to_string(getpid()) + "-1"));
  EXPECT_TRUE(is_dead_instance("kubegang-devcluster-999999999-1"));
  EXPECT_FALSE(is_dead_instance("system.slice"));
}

}  // namespace
}  // namespace devcluster
