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

base::Result<TransportConfig> parse(const std::string& text,
                                    const std::optional<std::string>& context = {}) {
  return parse_kubeconfig(text, "/etc/kube/config", "/etc/kube", context);
}

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

TEST(ParseKubeconfig, ReadsANamedContextWithoutUser) {
  const auto config =
      parse(config_with(kServer + ", insecure-skip-tls-verify: true", "token: secret"), "bare");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_TRUE(config->insecure_skip_tls_verify);
  EXPECT_EQ(config->bearer_token, "");
  EXPECT_EQ(config->ns, "default");
}

TEST(ParseKubeconfig, TokenFileIsRelativeToTheKubeconfig) {
  EXPECT_EQ(parse(config_with(kServer, "tokenFile: secrets/token"))->token_file,
            "/etc/kube/secrets/token");
  EXPECT_EQ(parse(config_with(kServer, "tokenFile: /run/token"))->token_file, "/run/token");
}

TEST(ParseKubeconfig, SaysWhatIsWrong) {
  const struct {
    std::string text;
    std::optional<std::string> context;
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
      {config_with(kServer + ", proxy-url: \"http://p\"", ""),
       {},
       "cluster \"c\" has proxy-url, which is not supported"},
      {config_with(kServer, "exec: {command: aws}"),
       {},
       "user \"u\" has exec, which is not supported: use a client certificate or a token"},
      {config_with(kServer, "username: a, password: b"), {}, "user \"u\" has username"},
      {config_with(kServer, "client-key-data: a2V5"),
       {},
       "user \"u\" has only one of client-certificate and client-key"},
  };
  for (const auto& one : cases) {
    const auto config = parse(one.text, one.context);
    ASSERT_FALSE(config.ok()) << one.want;
    EXPECT_EQ(config.error().code, Code::kInvalidArgument);
    EXPECT_TRUE(config.error().message.starts_with("kubeconfig /etc/kube/config: "));
    EXPECT_NE(config.error().message.find(one.want), std::string::npos) << config.error().message;
  }
}

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

TEST_F(ConfigFilesTest, MissingKubeconfigIsNotFound) {
  const auto config = load_kubeconfig((directory_ / "none").string());
  EXPECT_EQ(config.error().code, Code::kNotFound);
}

// What kubectl makes of KUBECONFIG=one/config:none:two/config.
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

TEST_F(KubeconfigListTest, OfEachNameTheFirstFileThatHasItCounts) {
  const auto config = load_kubeconfigs(one_ + "::" + path("none") + ":" + two_);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(*config,
            (TransportConfig{.server = "https://10.0.0.1:6443",
                             .ca_pem = "CA of two",
                             .bearer_token = "first",
                             .ns = "team-a",
                             .origin = "kubeconfig " + one_ + ":" + two_ + ", context dev"}));
  const auto turned = load_kubeconfigs(two_ + ":" + one_);
  ASSERT_TRUE(turned.ok()) << turned.error().message;
  EXPECT_EQ(turned->server, "https://10.0.0.2:6443");
  EXPECT_EQ(turned->ns, "team-b");
  const auto third = load_kubeconfigs(one_ + ":" + two_, "third");
  ASSERT_TRUE(third.ok()) << third.error().message;
  EXPECT_EQ(third->token_file, path("two/secret"));
}

TEST_F(KubeconfigListTest, MistakesNameTheFileThatTheyAreIn) {
  const auto said = [&](const std::string& list, const std::optional<std::string>& context = {}) {
    const auto config = load_kubeconfigs(list, context);
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
