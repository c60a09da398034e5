#include "kube/proxy.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace kube {
namespace {

// The machine's own variables must not take part. They are set in developers' shells and in CI, and
// would change the results there only.
class ProxyEnvironment : public testing::Test {
 protected:
  ProxyEnvironment() { clear(); }
  ~ProxyEnvironment() override { clear(); }
  static void clear() {
    for (const char* name :
         {"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"}) {
      unsetenv(name);
    }
  }
  // Returns the proxy's URL, "" without one.
  static std::string proxy_of(const char* server) {
    return proxy_from_environment(parse_url(server).value());
  }
};

// An http server uses HTTP_PROXY, an https server HTTPS_PROXY; a value without a scheme is an http
// proxy.
TEST_F(ProxyEnvironment, NamesAProxyForEachScheme) {
  EXPECT_EQ(proxy_of("https://10.0.0.1:6443"), "");
  setenv("https_proxy", "proxy:3128", 1);
  setenv("HTTP_PROXY", "http://other:80", 1);
  EXPECT_EQ(proxy_of("https://10.0.0.1:6443"), "http://proxy:3128");
  EXPECT_EQ(proxy_of("http://10.0.0.1"), "http://other:80");
  setenv("HTTPS_PROXY", "socks5://first:1080", 1);
  EXPECT_EQ(proxy_of("https://10.0.0.1:6443"), "socks5://first:1080") << "capitals win";
}

// Without NO_PROXY: Go's programs have it so.
TEST_F(ProxyEnvironment, LocalAddressesUseNone) {
  setenv("HTTPS_PROXY", "http://proxy:3128", 1);
  for (const char* server : {"https://localhost:6443", "https://127.0.0.1", "https://[::1]:6443"}) {
    EXPECT_EQ(proxy_of(server), "") << server;
  }
}

// 10.128.0.1 differs from 10.0.0.0 in the ninth bit. 33 bits are more than an IPv4 address has:
// such an entry covers nothing. A name covers its subdomains, but not names that merely end alike;
// with a leading dot it covers the subdomains only.
TEST_F(ProxyEnvironment, NoProxyCoversHostsAddressesAndNetworks) {
  setenv("HTTPS_PROXY", "http://proxy:3128", 1);
  const struct {
    const char* list;
    const char* server;
    bool covered;
  } cases[] = {
      {"*", "https://api.example.com", true},
      {"example.com", "https://api.example.com", true},
      {"example.com", "https://example.com", true},
      {"example.com", "https://anexample.com", false},
      {".example.com", "https://example.com", false},
      {".example.com", "https://api.example.com", true},
      {"*.example.com", "https://api.example.com", true},
      {"a, api.example.com:6443", "https://api.example.com:6443", true},
      {"api.example.com:443", "https://api.example.com:6443", false},
      {"10.0.0.0/8", "https://10.1.2.3:6443", true},
      {"10.0.0.0/9", "https://10.128.0.1", false},
      {"10.0.0.0/33", "https://10.0.0.1", false},
      {"10.0.0.1", "https://10.0.0.1", true},
      {"fd00::/16", "https://[fd00::1]:6443", true},
      {"[fd00::1]:6443", "https://[fd00::1]:6443", true},
      {"fd00::1", "https://[fd00::1]", true},
      {",", "https://10.0.0.1", false},
  };
  for (const auto& one : cases) {
    setenv("NO_PROXY", one.list, 1);
    EXPECT_EQ(proxy_of(one.server).empty(), one.covered) << one.list << " " << one.server;
  }
}

// Everything at once: a user with an encoded character, an IPv6 host, a port, a path whose last
// slash goes.
TEST(Url, ReadsItsParts) {
  const auto url = parse_url("http://me:p%40ss@[fd00::1]:3128/k8s/a/");
  ASSERT_TRUE(url.ok());
  EXPECT_EQ(url->user, "me");
  EXPECT_EQ(url->password, "p@ss");
  EXPECT_EQ(url->host, "fd00::1");
  EXPECT_EQ(url->path, "/k8s/a");
  EXPECT_EQ(url->text(), "http://[fd00::1]:3128") << "messages show no password";
  EXPECT_EQ(parse_url("https://a")->port, 443);
  for (const char* wrong :
       {"", "a:80", "ftp://a", "https://", "https://:80", "https://a:0", "https://a:65536",
        "https://a:x", "https://[fd00::1", "https://[fd00::1]x"}) {
    EXPECT_FALSE(parse_url(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace kube
