#include "kube/own_name.h"

#include <gtest/gtest.h>

#include "kube/base64.h"
#include "kube/testing/test_certificates.h"

namespace kube {
namespace {

TransportConfig secure() {
  TransportConfig config;
  config.server = "https://127.0.0.1:6443";
  return config;
}

// A token as the API server signs them, with these claims.
std::string token_of(const std::string& claims) {
  std::string text = encode_base64(claims);
  while (text.ends_with('=')) text.pop_back();
  for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
  return "e30." + text + ".c2ln";
}

TEST(OwnName, IsTheSubjectOfACertificate) {
  TransportConfig config = secure();
  config.client_certificate_pem =
      TestAuthority{}.issue({.common_name = "ann,b", .organization = "team"}).certificate;
  EXPECT_EQ(own_name(config), "ann,b");
  config.bearer_token = "secret";
  EXPECT_EQ(own_name(config), std::nullopt) << "the server says which of them counts";
  config.bearer_token = "";
  config.server = "http://127.0.0.1:8080";
  EXPECT_EQ(own_name(config), std::nullopt) << "it never sees the certificate";
  config.impersonate.user = "bob";
  EXPECT_EQ(own_name(config), "bob");
  config = secure();
  config.client_certificate_pem = "nonsense";
  EXPECT_EQ(own_name(config), std::nullopt);
}

TEST(OwnName, IsTheServiceAccountOfAToken) {
  TransportConfig config = secure();
  config.bearer_token = token_of(R"({"sub":"system:serviceaccount:team-a:runner","x":"???>>>"})");
  EXPECT_EQ(own_name(config), "system:serviceaccount:team-a:runner");
  for (const std::string& other :
       {token_of(R"({"sub":"ann@example.com"})"), token_of("[1]"), token_of("{}"), token_of("x"),
        std::string{"secret"}, std::string{"a.b"}, std::string{"a.%.c"}, std::string{".."}}) {
    config.bearer_token = other;
    EXPECT_EQ(own_name(config), std::nullopt) << other;
  }
}

TEST(OwnName, IsNotKnownOfAProgramOrAPassword) {
  TransportConfig config = secure();
  EXPECT_EQ(own_name(config), std::nullopt);
  config.username = "ann";
  EXPECT_EQ(own_name(config), std::nullopt);
  config = secure();
  config.exec = ExecPlugin{};
  EXPECT_EQ(own_name(config), std::nullopt);
}

}  // namespace
}  // namespace kube
