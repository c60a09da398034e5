#include "kube/transport_config.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "kube/base64.h"

namespace kube {
namespace {

using base::Code;

// Reads `text` as if it stood in /etc/kube/config: relative paths in it begin at /etc/kube.
base::Result<TransportConfig> parse(const std::string& text,
                                    const ConfigOverrides& overrides = {}) {
  return parse_kubeconfig(text, "/etc/kube/config", "/etc/kube", overrides);
}

// Returns a kubeconfig with one cluster and one user, whose fields are given as YAML. Context dev
// has both, context bare has no user, context lost names a cluster that does not exist.
std::string config_with(const std::string& cluster, const std::string& user) {
  return R"(
apiVersion: v1
kind: Config
current-context: dev
contexts:
- {name: dev, context: {cluster: c, user: u, namespace: team-a}}
- {name: bare, context: {cluster: c}}
- {name: lost, context: {cluster: nowhere}}
clusters:
- {name: c, cluster: {)" +
         cluster + R"(}}
users:
- {name: u, user: {)" +
         user + "}}\n";
}

const std::string kServer = "server: \"https://10.0.0.1:6443\"";

// All data inside the file, as kubeadm writes it.
TEST(ParseKubeconfig, ReadsTheCurrentContext) {
  const auto config =
      parse(config_with(kServer + ", certificate-authority-data: " + encode_base64("CA"),
                        "token: secret, client-certificate-data: " + encode_base64("CERT") +
                            ", client-key-data: " + encode_base64("KEY")));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(*config, (TransportConfig{.server = "https://10.0.0.1:6443",
                                      .ca_pem = "CA",
                                      .client_certificate_pem = "CERT",
                                      .client_key_pem = "KEY",
                                      .bearer_token = "secret",
                                      .ns = "team-a",
                                      .origin = "kubeconfig /etc/kube/config, context dev"}));
}

// The named context wins over current-context, and the user of dev does not leak into it. A token
// that went along to another cluster would be given away.
TEST(ParseKubeconfig, ReadsANamedContextWithoutUser) {
  const auto config =
      parse(config_with(kServer + ", insecure-skip-tls-verify: true", "token: secret"),
            {.context = "bare"});
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_TRUE(config->insecure_skip_tls_verify);
  EXPECT_EQ(config->bearer_token, "");
  EXPECT_EQ(config->ns, "default");
}

// As kubectl has it. The file's content is not read here: a token that is rotated must be read
// again while the program runs.
TEST(ParseKubeconfig, TokenFileIsRelativeToTheKubeconfig) {
  EXPECT_EQ(parse(config_with(kServer, "tokenFile: secrets/token"))->token_file,
            "/etc/kube/secrets/token");
  EXPECT_EQ(parse(config_with(kServer, "tokenFile: /run/token"))->token_file, "/run/token");
}

// Fields that are not supported are refused rather than ignored: without them the user or the
// connection would be another than the file says. Each sentence names the file, and the cluster or
// user within it, because kubeconfigs are long and merged by tools. An empty `context` stands for
// current-context.
TEST(ParseKubeconfig, SaysWhatIsWrong) {
  const struct {
    std::string text;
    std::string context;
    const char* want;
  } cases[] = {
      {"a: [1", {}, "not valid YAML: line 1, column "},
      {"just words", {}, "it is not a map"},
      {"apiVersion: v1", {}, "it has no current-context: set one, or name a context"},
      {"", {}, "it has no current-context: set one, or name a context"},
      {"{current-context: dev, contexts: [{name: dev}]}", {}, "context \"dev\" is not in contexts"},
      {config_with(kServer, ""), "prod", "context \"prod\" is not in contexts"},
      {config_with(kServer, ""), "lost", "cluster \"nowhere\" is not in clusters"},
      {config_with("a: b", ""), {}, "cluster \"c\" has no server"},
      {config_with(kServer + ", certificate-authority-data: \"!\"", ""),
       {},
       "cluster \"c\": certificate-authority-data is not base64"},
      {config_with(kServer + ", certificate-authority: no-such-ca.crt", ""),
       {},
       "cluster \"c\": certificate-authority: cannot read /etc/kube/no-such-ca.crt"},
      {config_with(kServer + ", proxy-url: \"https://p\"", ""),
       {},
       "cluster \"c\": proxy-url is an https proxy, which is not supported"},
      {config_with(kServer + ", proxy-url: nonsense", ""),
       {},
       "cluster \"c\": proxy-url: it is not a URL"},
      {config_with(kServer, "exec: {command: aws}"), {}, "user \"u\": exec.apiVersion \"\" is not"},
      {config_with(kServer, "exec: {apiVersion: client.authentication.k8s.io/v1}"),
       {},
       "user \"u\": exec has no command"},
      {config_with(kServer, "auth-provider: {name: gcp}"),
       {},
       "user \"u\" has auth-provider, which is not supported"},
      {config_with(kServer, "client-key-data: a2V5"),
       {},
       "user \"u\" has only one of client-certificate and client-key"},
  };
  for (const auto& one : cases) {
    const auto config = parse(one.text, {.context = one.context});
    ASSERT_FALSE(config.ok()) << one.want;
    EXPECT_EQ(config.error().code, Code::kInvalidArgument);
    EXPECT_TRUE(config.error().message.starts_with("kubeconfig /etc/kube/config: "));
    EXPECT_NE(config.error().message.find(one.want), std::string::npos) << config.error().message;
  }
}

// As `aws eks update-kubeconfig` writes it. The names are ARNs, with colons and slashes; the plugin
// has no interactiveMode, since v1beta1 does not demand one.
TEST(ParseKubeconfig, ReadsWhatEksWrites) {
  const auto config = parse(R"(
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: Q0E=
    server: https://0A1B.gr7.eu-central-1.eks.amazonaws.com
  name: arn:aws:eks:eu-central-1:111122223333:cluster/batch
contexts:
- context:
    cluster: arn:aws:eks:eu-central-1:111122223333:cluster/batch
    user: arn:aws:eks:eu-central-1:111122223333:cluster/batch
  name: arn:aws:eks:eu-central-1:111122223333:cluster/batch
current-context: arn:aws:eks:eu-central-1:111122223333:cluster/batch
kind: Config
preferences: {}
users:
- name: arn:aws:eks:eu-central-1:111122223333:cluster/batch
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1beta1
      args:
      - --region
      - eu-central-1
      - eks
      - get-token
      - --cluster-name
      - batch
      - --output
      - json
      command: aws
      env:
      - name: AWS_PROFILE
        value: research
)");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->exec, (ExecPlugin{.api_version = "client.authentication.k8s.io/v1beta1",
                                      .command = "aws",
                                      .arguments = {"--region", "eu-central-1", "eks", "get-token",
                                                    "--cluster-name", "batch", "--output", "json"},
                                      .environment = {{"AWS_PROFILE", "research"}}}));
}

// As `gcloud container clusters get-credentials` writes it. Lists that are null are empty ones.
TEST(ParseKubeconfig, ReadsWhatGkeWrites) {
  const auto config = parse(config_with(kServer, R"(exec: {
    apiVersion: client.authentication.k8s.io/v1beta1, command: gke-gcloud-auth-plugin,
    args: null, env: null, installHint: "Install gke-gcloud-auth-plugin",
    provideClusterInfo: true, interactiveMode: IfAvailable})"));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->exec, (ExecPlugin{.api_version = "client.authentication.k8s.io/v1beta1",
                                      .command = "gke-gcloud-auth-plugin",
                                      .install_hint = "Install gke-gcloud-auth-plugin",
                                      .provide_cluster_info = true}));
}

// As `kubelogin convert-kubeconfig` writes it for AKS, with an extension of the cluster.
TEST(ParseKubeconfig, ReadsWhatKubeloginWrites) {
  const auto config = parse(
      config_with(kServer + R"(, extensions: [{name: client.authentication.k8s.io/exec,
                                   extension: {audience: "6dae42f8", retries: 3, id: "007"}}])",
                  R"(exec: {apiVersion: client.authentication.k8s.io/v1, command: ./bin/kubelogin,
        args: [get-token, --login, devicecode], interactiveMode: Always})"));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->exec->command, "/etc/kube/bin/kubelogin") << "relative to the kubeconfig";
  EXPECT_EQ(config->exec->interactive, ExecPlugin::Interactive::kAlways);
  EXPECT_EQ(config->exec->cluster_config_json, R"({"audience":"6dae42f8","id":"007","retries":3})");
}

// Returns the text of a configuration whose plugin is given that value of an extension.
std::string with_extension(const std::string& value) {
  return config_with(
      kServer + ", extensions: [{name: client.authentication.k8s.io/exec, extension: " + value +
          "}]",
      "exec: {apiVersion: client.authentication.k8s.io/v1, command: p}");
}

// The byte becomes U+FFFD, whose UTF-8 form is EF BF BD. The extension is handed to the plugin as
// JSON, which has no other bytes.
TEST(ParseKubeconfig, AnExtensionNeedNotBeUtf8) {
  const auto config = parse(with_extension("{a: \xff}"));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->exec->cluster_config_json, "{\"a\":\"\xef\xbf\xbd\"}");
}

// Goal: neither an alias to itself nor "a billion laughs" uses up memory or time. 39 lists, each
// twice the one before, would be 2^39 values.
TEST(ParseKubeconfig, RefusesAnExtensionThatHoldsItselfOrTooMuch) {
  std::string laughs = "[&l0 [x]";
  for (int i = 1; i < 40; ++i) {
    const std::string before = "*l" + std::to_string(i - 1);
    laughs += ", &l" + std::to_string(i) + " [" + before + ", " + before + "]";
  }
  for (const std::string& value : {std::string{"&a [*a]"}, laughs + "]"}) {
    const auto config = parse(with_extension(value));
    ASSERT_FALSE(config.ok());
    EXPECT_NE(config.error().message.find("too large or deep"), std::string::npos)
        << config.error().message;
  }
}

// A key of as-user-extra with two values becomes two entries.
TEST(ParseKubeconfig, ReadsImpersonationProxyAndTheCertificatesName) {
  const auto config = parse(config_with(
      kServer + ", proxy-url: \"socks5://127.0.0.1:1080\", tls-server-name: api.internal",
      "username: a, password: b, as: anna, as-uid: \"7\", as-groups: [dev, ops], "
      "as-user-extra: {scopes: [view, edit]}"));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->proxy_url, "socks5://127.0.0.1:1080");
  EXPECT_EQ(config->tls_server_name, "api.internal");
  EXPECT_EQ(config->username, "a");
  EXPECT_EQ(config->password, "b");
  EXPECT_EQ(config->impersonate,
            (Impersonation{.user = "anna",
                           .uid = "7",
                           .groups = {"dev", "ops"},
                           .extra = {{"scopes", "view"}, {"scopes", "edit"}}}));
}

// In turn: server, token and impersonation; a cluster that mends context lost; a user that does not
// exist. If the file's plugin still ran, the request could be sent as another user than the one
// that was asked for.
TEST(ParseKubeconfig, WhatTheCommandLineSaysWins) {
  const std::string text = config_with(kServer,
                                       "exec: {apiVersion: "
                                       "client.authentication.k8s.io/v1, command: p}");
  const auto config = parse(text, {.server = "https://10.0.0.9",
                                   .token = "given",
                                   .impersonate = {.user = "anna", .groups = {"dev"}}});
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->server, "https://10.0.0.9");
  EXPECT_EQ(config->bearer_token, "given");
  EXPECT_FALSE(config->exec) << "a token is used instead of a program";
  EXPECT_EQ(config->impersonate, (Impersonation{.user = "anna", .groups = {"dev"}}));
  EXPECT_TRUE(parse(text, {.context = "lost", .cluster = "c"}).ok());
  EXPECT_EQ(parse(text, {.context = "bare", .user = "nobody"}).error().message,
            "kubeconfig /etc/kube/config: user \"nobody\" is not in users");
}

// A folder of its own for each process, with files that a test writes; the variables of a pod are
// unset again at the end, since other tests share the process.
class ConfigFilesTest : public testing::Test {
 protected:
  ConfigFilesTest() { std::filesystem::create_directories(directory_); }
  ~ConfigFilesTest() override {
    std::filesystem::remove_all(directory_);
    unsetenv("KUBERNETES_SERVICE_HOST");
    unsetenv("KUBERNETES_SERVICE_PORT");
  }
  void write(const char* name, const std::string& text) {
    std::ofstream{directory_ / name} << text;
  }

  std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() / ("kube-config-" + std::to_string(getpid()));
};

// Relative paths are relative to the kubeconfig and not to the working directory, as in kubectl.
TEST_F(ConfigFilesTest, KubeconfigReadsFilesBesideIt) {
  write("config", config_with(kServer + ", certificate-authority: ca.crt",
                              "client-certificate: a.crt, client-key: a.key"));
  write("ca.crt", "CA");
  write("a.crt", "CERT");
  write("a.key", "KEY");
  const auto config = load_kubeconfig((directory_ / "config").string());
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->ca_pem, "CA");
  EXPECT_EQ(config->client_certificate_pem, "CERT");
  EXPECT_EQ(config->client_key_pem, "KEY");
}

// Not kInvalidArgument: a caller may go on and look for another configuration.
TEST_F(ConfigFilesTest, MissingKubeconfigIsNotFound) {
  const auto config = load_kubeconfig((directory_ / "none").string());
  EXPECT_EQ(config.error().code, Code::kNotFound);
}

// As kubectl reads KUBECONFIG=one/config:none:two/config. Both files have a context dev and a user
// u, and they differ; clusters are in the second file only.
class KubeconfigListTest : public ConfigFilesTest {
 protected:
  KubeconfigListTest() {
    std::filesystem::create_directories(directory_ / "one");
    std::filesystem::create_directories(directory_ / "two");
    write("one/config", R"(
contexts:
- {name: dev, context: {cluster: c, user: u, namespace: team-a}}
- {name: prod, context: {cluster: p, user: u}}
users:
- {name: u, user: {token: first}}
)");
    write("two/config", R"(
current-context: dev
contexts:
- {name: dev, context: {cluster: p, namespace: team-b}}
- {name: third, context: {cluster: p, user: v}}
clusters:
- {name: c, cluster: {server: "https://10.0.0.1:6443", certificate-authority: ca.crt}}
- {name: p, cluster: {server: "https://10.0.0.2:6443"}}
users:
- {name: u, user: {token: second, tokenFile: secret}}
- {name: v, user: {tokenFile: secret}}
)");
    write("two/ca.crt", "CA of two");
  }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  const std::string one_ = path("one/config");
  const std::string two_ = path("two/config");
};

// Whole entries count, they are not merged: user u is the first file's, without the tokenFile of
// the second. Relative paths are relative to the file that they stand in. Empty entries and files
// that do not exist are passed over, and are not in the origin. In the other order, context dev is
// the second file's.
TEST_F(KubeconfigListTest, OfEachNameTheFirstFileThatHasItCounts) {
  const auto config = load_kubeconfigs(one_ + "::" + path("none") + ":" + two_);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(*config,
            (TransportConfig{.server = "https://10.0.0.1:6443",
                             .ca_pem = "CA of two",
                             .ca_file = path("two/ca.crt"),
                             .bearer_token = "first",
                             .ns = "team-a",
                             .origin = "kubeconfig " + one_ + ":" + two_ + ", context dev"}));
  const auto turned = load_kubeconfigs(two_ + ":" + one_);
  ASSERT_TRUE(turned.ok()) << turned.error().message;
  EXPECT_EQ(turned->server, "https://10.0.0.2:6443");
  EXPECT_EQ(turned->ns, "team-b");
  const auto third = load_kubeconfigs(one_ + ":" + two_, {.context = "third"});
  ASSERT_TRUE(third.ok()) << third.error().message;
  EXPECT_EQ(third->token_file, path("two/secret"));
}

// A context that no file has is a mistake of all of them; a path or a syntax error is that of one
// file.
TEST_F(KubeconfigListTest, MistakesNameTheFileThatTheyAreIn) {
  const auto said = [&](const std::string& list, const std::string& context = {}) {
    const auto config = load_kubeconfigs(list, {.context = context});
    return config.ok() ? "" : config.error().message;
  };
  EXPECT_EQ(said(one_ + ":" + two_, "nowhere"),
            "kubeconfig " + one_ + ":" + two_ + ": context \"nowhere\" is not in contexts");
  std::filesystem::remove(directory_ / "two/ca.crt");
  EXPECT_EQ(said(one_ + ":" + two_), "kubeconfig " + two_ +
                                         ": cluster \"c\": certificate-authority: cannot read " +
                                         path("two/ca.crt") + ": No such file or directory");
  write("one/config", "a: [1");
  EXPECT_TRUE(said(two_ + ":" + one_).starts_with("kubeconfig " + one_ + ": not valid YAML"));
  EXPECT_EQ(load_kubeconfigs(path("none") + ":" + path("neither")).error().code, Code::kNotFound);
  EXPECT_EQ(load_kubeconfigs(":").error().code, Code::kNotFound);
}

// Neither the variables nor the files alone make a cluster. An IPv6 address needs brackets in a
// URL. The token is kept as the name of its file: kubelet rotates it.
TEST_F(ConfigFilesTest, InClusterReadsTheServiceAccount) {
  EXPECT_EQ(in_cluster_config(directory_.string()).error().code, Code::kNotFound);
  setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
  setenv("KUBERNETES_SERVICE_PORT", "443", 1);
  EXPECT_EQ(in_cluster_config(directory_.string()).error().code, Code::kNotFound);
  write("token", "t\n");
  write("ca.crt", "CA");
  write("namespace", "kubegang-system\n");
  const auto config = in_cluster_config(directory_.string());
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->server, "https://[fd00::1]:443");
  EXPECT_EQ(config->token_file, (directory_ / "token").string());
  EXPECT_EQ(config->ca_pem, "CA");
  EXPECT_EQ(config->ns, "kubegang-system");
}

}  // namespace
}  // namespace kube
