// Plugins are shell scripts here: what matters is what goes in and what comes out.
#include "kube/exec_plugin.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "kube/credentials.h"
#include "kube/testing/manual_clock.h"

namespace kube {
namespace {

namespace fs = std::filesystem;

// Each test writes its plugin as a file and runs it as a real process: environment, pipes and exit
// codes are what these tests are about.
class ExecPluginTest : public testing::Test {
 protected:
  ExecPluginTest() {
    fs::create_directories(directory_);
    config_.login = personal_login();
    config_.server = "https://10.0.0.1:6443";
    config_.exec = ExecPlugin{.api_version = "client.authentication.k8s.io/v1",
                              .command = (directory_ / "plugin").string(),
                              .interactive = ExecPlugin::Interactive::kNever};
  }
  ~ExecPluginTest() override { fs::remove_all(directory_); }

  // Makes `script` the plugin; a plugin that was there is replaced.
  void write_plugin(const std::string& script) {
    std::ofstream{config_.exec->command} << "#!/bin/sh\n" << script;
    fs::permissions(config_.exec->command, fs::perms::owner_all);
  }
  // A plugin that prints `status`, and counts its runs.
  void write_answer(const std::string& status) {
    write_plugin("echo run >>" + runs_file() + "\ncat <<'EOF'\n" +
                 R"({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",)" +
                 "\n\"status\": " + status + "}\nEOF\n");
  }
  std::string runs_file() const { return (directory_ / "runs").string(); }
  // How often a plugin of write_answer() has been run.
  std::size_t runs() const {
    std::ifstream file{runs_file()};
    return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>{file}, {}, '\n'));
  }
  std::string failure() { return run_exec_plugin(config_).error().message; }
  static std::string content(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream{path}.rdbuf();
    return text.str();
  }

  fs::path directory_ = fs::temp_directory_path() / ("kube-exec-" + std::to_string(getpid()));
  TransportConfig config_;
  ManualClock clock_;
};

// HOME is set here and in the configuration: the latter wins. "a b" is one argument, since no shell
// is between. KUBERNETES_EXEC_INFO has the cluster only because provideClusterInfo is set; its
// certificate authority is base64 ("Q0E=" is "CA"), as the plugin protocol wants it.
TEST_F(ExecPluginTest, GetsArgumentsEnvironmentAndTheCluster) {
  config_.exec->arguments = {"get-token", "a b"};
  config_.exec->environment = {{"PROFILE", "research"}, {"HOME", "/elsewhere"}};
  config_.exec->provide_cluster_info = true;
  config_.exec->cluster_config_json = R"({"audience":"x"})";
  config_.ca_pem = "CA";
  config_.tls_server_name = "api.internal";
  write_plugin("cd " + directory_.string() +
               "\nprintf '%s|' \"$@\" \"$PROFILE\" \"$HOME\" >seen\n"
               "printf '%s' \"$KUBERNETES_EXEC_INFO\" >info\n");
  EXPECT_FALSE(run_exec_plugin(config_).ok()) << "it prints nothing";
  EXPECT_EQ(content(directory_ / "seen"), "get-token|a b|research|/elsewhere|");
  EXPECT_EQ(nlohmann::json::parse(content(directory_ / "info")), nlohmann::json::parse(R"({
    "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
    "spec": {"interactive": false,
             "cluster": {"server": "https://10.0.0.1:6443", "tls-server-name": "api.internal",
                         "certificate-authority-data": "Q0E=", "config": {"audience": "x"}}}})"));
}

// One failure after the other, in the order in which run_exec_plugin meets them; each sentence
// names the plugin. The last one depends on a terminal, which a test under a terminal has.
TEST_F(ExecPluginTest, SaysWhatWentWrong) {
  config_.exec->install_hint = "Get it from example.com.";
  const std::string name = "exec plugin " + config_.exec->command + ": ";
  EXPECT_EQ(failure(),
            name + "cannot start it: No such file or directory\nGet it from example.com.");
  write_plugin("exit 3\n");
  EXPECT_EQ(failure(), name + "it ended with exit code 3");
  write_plugin("kill -9 $$\n");
  EXPECT_EQ(failure(), name + "it was ended by signal 9");
  write_plugin("echo hello\n");
  EXPECT_EQ(failure(), name + "it did not print an ExecCredential");
  write_plugin("head -c 2000000 /dev/zero\n");
  EXPECT_EQ(failure(), name + "it wrote more than 1 MiB");
  write_answer("{}");
  EXPECT_EQ(failure(), name + "it printed neither a token nor a client certificate");
  write_answer(R"({"clientKeyData": "k"})");
  EXPECT_EQ(failure(), name + "it printed only one of clientCertificateData and clientKeyData");
  write_answer(R"({"token": "t", "expirationTimestamp": "soon"})");
  EXPECT_TRUE(failure().starts_with(name + "expirationTimestamp: "));
  config_.exec->api_version = "client.authentication.k8s.io/v1beta1";
  EXPECT_EQ(failure(), name +
                           "it printed version \"client.authentication.k8s.io/v1\", the "
                           "kubeconfig says client.authentication.k8s.io/v1beta1");
  config_.exec->interactive = ExecPlugin::Interactive::kAlways;
  if (isatty(STDIN_FILENO) == 0) {
    EXPECT_EQ(failure(), name + "it needs a terminal, and standard input is none");
  }
}

// The manual clock begins at 2026-01-01T00:00, ten minutes before the first token expires. A plugin
// often starts a login over the network: run for each request, it would be slower than all requests
// together.
TEST_F(ExecPluginTest, RunsOnceUntilItsAnswerExpires) {
  write_answer(R"({"token": "one", "expirationTimestamp": "2026-01-01T00:10:00Z"})");
  Credentials credentials{config_, clock_};
  EXPECT_EQ(credentials.get()->authorization, "Bearer one");
  EXPECT_EQ(credentials.get()->authorization, "Bearer one");
  EXPECT_EQ(runs(), 1U);
  write_answer(R"({"token": "two"})");
  clock_.advance(std::chrono::minutes{10});
  EXPECT_EQ(credentials.get()->authorization, "Bearer two");
  clock_.advance(std::chrono::hours{100});
  EXPECT_EQ(credentials.get()->authorization, "Bearer two") << "it does not expire";
  EXPECT_EQ(runs(), 2U);
}

// The first refresh runs it in vain. In the last one the credential is newer than the refused one,
// so it is not run a fourth time.
TEST_F(ExecPluginTest, RunsAgainWhenTheServerRefusesItsAnswer) {
  write_answer(R"({"token": "one"})");
  Credentials credentials{config_, clock_};
  const Credential one = *credentials.get();
  EXPECT_FALSE(credentials.refresh(one)) << "it says the same again";
  EXPECT_EQ(runs(), 2U);
  write_answer(R"({"token": "two"})");
  EXPECT_TRUE(credentials.refresh(one));
  EXPECT_TRUE(credentials.refresh(one)) << "another thread was faster";
  EXPECT_EQ(runs(), 3U);
  EXPECT_EQ(credentials.get()->authorization, "Bearer two");
}

}  // namespace
}  // namespace kube
