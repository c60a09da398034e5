#include "dashboard/gatekeeper.h"

#include <gtest/gtest.h>

#include <set>

namespace dashboard {
namespace {

HttpRequest get(std::map<std::string, std::string> headers) {
  return {.method = "GET", .path = "/events", .headers = std::move(headers)};
}

std::optional<Gatekeeper::Refusal> refuses(const HttpRequest& request) {
  return Gatekeeper{8080, random_secret}.refuses(request);
}

// As a browser of this machine asks.
HttpRequest local(const std::string& method, const std::string& cookie, const std::string& body) {
  return {.method = method,
          .path = "/events",
          .headers = {{"host", "127.0.0.1:8080"}, {"cookie", cookie}},
          .body = body};
}

// Secrets "s1", "s2", … in the order in which they are made.
class GatekeeperTest : public testing::Test {
 protected:
  int made_ = 0;
  Gatekeeper gate_{8080, [this] { return "s" + std::to_string(++made_); }};
};

TEST_F(GatekeeperTest, ACodeOpensOneBrowser) {
  EXPECT_FALSE(gate_.is_signed_in(local("GET", "kubegang_8080=s1", "")));
  EXPECT_FALSE(gate_.sign_in(local("POST", "", "s2")));
  EXPECT_FALSE(gate_.sign_in(local("POST", "", "")));
  EXPECT_EQ(gate_.sign_in(local("POST", "", "s1")),
            "kubegang_8080=s3; Path=/; HttpOnly; SameSite=Strict");
  EXPECT_FALSE(gate_.sign_in(local("POST", "", "s1"))) << "a code is used once";
  EXPECT_EQ(gate_.code(), "s2");
  EXPECT_TRUE(gate_.is_signed_in(local("GET", "a=b; kubegang_8080=s3", "")));
  EXPECT_FALSE(gate_.is_signed_in(local("GET", "kubegang_8080=s2", "")));
  EXPECT_FALSE(gate_.is_signed_in(local("GET", "kubegang_8081=s3", "")));
  EXPECT_FALSE(gate_.is_signed_in(local("GET", "kubegang_8080=", "")));
  EXPECT_FALSE(gate_.is_signed_in(local("GET", "kubegang_8080", "")));
  EXPECT_FALSE(gate_.is_signed_in(local("GET", "", "")));
}

TEST_F(GatekeeperTest, ForgetsTheOldestOfManyBrowsers) {
  for (int i = 0; i < 17; ++i) ASSERT_TRUE(gate_.sign_in(local("POST", "", gate_.code())));
  EXPECT_FALSE(gate_.is_signed_in(local("GET", "kubegang_8080=s3", "")));
  EXPECT_TRUE(gate_.is_signed_in(local("GET", "kubegang_8080=s5", "")));
}

// Goal: a name of another site that leads to 127.0.0.1 (DNS rebinding) reads nothing.
TEST(Gatekeeper, ServesThisMachinesNamesAlone) {
  EXPECT_FALSE(refuses(get({{"host", "127.0.0.1:8080"}})));
  EXPECT_FALSE(refuses(get({{"host", "localhost:9000"}})));
  for (const char* host : {"evil.example", "evil.example:8080", "127.0.0.1.evil.example", "",
                           "localhost.evil.example:8080", "[::1]:8080", "127.0.0.2:8080"}) {
    EXPECT_TRUE(refuses(get({{"host", host}}))) << host;
  }
  EXPECT_TRUE(refuses(get({})));
}

TEST(Gatekeeper, RefusesPagesOfOtherOrigins) {
  const std::string host = "127.0.0.1:8080";
  EXPECT_FALSE(refuses(get({{"host", host}, {"origin", "http://127.0.0.1:8080"}})));
  for (const char* origin :
       {"http://127.0.0.1:8081", "http://evil.example", "null", "", "https://127.0.0.1:8080"}) {
    EXPECT_TRUE(refuses(get({{"host", host}, {"origin", origin}}))) << origin;
  }
  EXPECT_TRUE(refuses({.method = "POST", .headers = {{"host", host}}}))
      << "a browser names the origin of what it posts";
  EXPECT_TRUE(refuses(get({{"host", host}, {"sec-fetch-site", "cross-site"}})));
  EXPECT_TRUE(refuses(get({{"host", host}, {"sec-fetch-site", "same-site"}})));
  EXPECT_FALSE(refuses(get({{"host", host}, {"sec-fetch-site", "same-origin"}})));
  // A link on another site may lead here; the cookie does not come along.
  EXPECT_FALSE(refuses(
      get({{"host", host}, {"sec-fetch-site", "cross-site"}, {"sec-fetch-mode", "navigate"}})));
}

TEST(Gatekeeper, ServesNoOtherMethods) {
  for (const char* method : {"PUT", "DELETE", "OPTIONS", "HEAD", "TRACE", "CONNECT"}) {
    const auto refused = refuses({.method = method, .headers = {{"host", "localhost"}}});
    ASSERT_TRUE(refused) << method;
    EXPECT_EQ(refused->status, 405);
  }
}

TEST(RandomSecret, DiffersEachTime) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) seen.insert(random_secret());
  EXPECT_EQ(seen.size(), 100U);
  EXPECT_EQ(seen.begin()->size(), 32U);
}

}  // namespace
}  // namespace dashboard
