// The transport behind proxies, over TLS as all API servers are reached.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kube/http_transport.h"
#include "kube/testing/test_proxy.h"
#include "kube/testing/tls_fixture.h"

namespace kube {
namespace {

using base::Code;

// A TLS server of the test's own authority; a TestProxy stands between it and the transport and
// notes the targets that it was asked for.
class TlsProxyTest : public TlsFixture {};

// The name api.internal is in no DNS: only the proxy can resolve it, so a request that arrives went
// through it. Two requests, and the proxy is asked once: the tunnel's connection is kept. A wrong
// password is refused in a sentence that does not show it.
TEST_F(TlsProxyTest, ProxiesCarryTls) {
  serve({.host = "DNS:api.internal"});
  TransportConfig behind = config();
  behind.server = "https://api.internal:6443";
  const struct {
    TestProxy::Kind kind;
    const char* scheme;
    const char* user;
  } cases[] = {{TestProxy::Kind::kHttp, "http", ""},
               {TestProxy::Kind::kHttp, "http", "me"},
               {TestProxy::Kind::kSocks, "socks5", ""},
               {TestProxy::Kind::kSocks, "socks5", "me"}};
  for (const auto& one : cases) {
    const TestProxy proxy{one.kind, server_->port(), one.user};
    const std::string address = "127.0.0.1:" + std::to_string(proxy.port());
    const std::string login = *one.user == '\0' ? "" : std::string{one.user} + ":secret@";
    behind.proxy_url = std::string{one.scheme} + "://" + login + address;
    const auto transport = transport_to(behind);
    for (int i = 0; i < 2; ++i) {
      const auto response = transport->send({.path = "/"});
      ASSERT_TRUE(response.ok()) << one.scheme << one.user << ": " << response.error().message;
      EXPECT_EQ(response->status, 200);
    }
    EXPECT_EQ(proxy.asked(), std::vector<std::string>{"api.internal:6443"}) << "one connection";
    if (*one.user == '\0') continue;
    behind.proxy_url = std::string{one.scheme} + "://me:mistaken@" + address;
    const std::string error = transport_to(behind)->send({.path = "/"}).error().message;
    EXPECT_TRUE(
        error.starts_with("the proxy " + std::string{one.scheme} + "://" + address + " refused: "))
        << error;
    EXPECT_EQ(error.find("mistaken"), std::string::npos) << "the password is in the message";
  }
}

// The proxy is asked for the address, TLS for the name. The address leads nowhere from here; the
// proxy of this test connects every target to the test's server.
TEST_F(TlsProxyTest, ProxyAndTlsServerNameTogether) {
  serve({.host = "DNS:api.internal"});
  const TestProxy proxy{TestProxy::Kind::kHttp, server_->port()};
  TransportConfig behind = config();
  behind.server = "https://10.0.0.1:6443";
  behind.tls_server_name = "api.internal";
  behind.proxy_url = "http://127.0.0.1:" + std::to_string(proxy.port());
  const auto response = get(behind);
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(proxy.asked(), std::vector<std::string>{"10.0.0.1:6443"});
}

// On port 1 nothing listens. A sentence that named the API server would send the reader to the
// wrong machine.
TEST_F(TlsProxyTest, ProxyThatIsNotThereIsNamed) {
  serve({});
  TransportConfig behind = config();
  behind.proxy_url = "http://127.0.0.1:1";
  EXPECT_EQ(get(behind).error(),
            (base::Error{Code::kUnavailable,
                         "cannot connect to the proxy http://127.0.0.1:1 (kubeconfig test)"}));
}

}  // namespace
}  // namespace kube
