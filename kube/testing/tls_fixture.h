// The fixture of the tests of the transport over TLS: an authority, a server with a certificate of
// it, and a configuration that trusts it.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "base/result.h"
#include "kube/testing/test_certificates.h"
#include "kube/testing/test_server.h"
#include "kube/transport.h"

namespace kube {

class TlsFixture : public testing::Test {
 protected:
  // Serves; with `clients`, the server asks for certificates of that authority.
  void serve(const CertificateOptions& options, const TestAuthority* clients = nullptr,
             int port = 0);
  TransportConfig config() const;
  base::Result<Response> get(const TransportConfig& config) const;

  // Adds to what the server answers, before it starts.
  std::function<void(httplib::Server&)> handlers_;
  TestAuthority authority_;
  std::unique_ptr<TestServer> server_;
};

}  // namespace kube
