#include "e2e/contract/contract_server.h"

#include <cstdlib>
#include <utility>

#include "kube/clock.h"
#include "kube/http_transport.h"
#include "kube/testing/api_server/api_server.h"
#include "kube/testing/api_server/https_front_end.h"
#include "kube/testing/api_server/in_process_transport.h"
#include "kube/transport_config.h"

namespace contract {
namespace {

// The tests' API server, called without a wire: answers come as they are built.
class InProcessServer final : public ContractServer {
 public:
  kube::Transport& transport() override { return transport_; }
  // Forgets the history, so that a watch from an old version gets 410 Gone.
  bool compact() override {
    server_.compact();
    return true;
  }

 private:
  kube::SystemClock clock_;
  devcluster::ApiServer server_{clock_};
  devcluster::InProcessTransport transport_{server_, "contract"};
};

// The same server behind TLS and HTTP, read by the client that the programs use: differences to
// InProcess are faults of the front end or of the transport.
class HttpsServer final : public ContractServer {
 public:
  // Any free port: tests run beside each other.
  base::Status start() {
    auto front_end = devcluster::HttpsFrontEnd::start(server_, clock_);
    if (!front_end.ok()) return front_end.error();
    front_end_ = std::move(*front_end);
    // By way of a kubeconfig, as users connect.
    const auto kubeconfig = front_end_->kubeconfig();
    if (!kubeconfig.ok()) return kubeconfig.error();
    const auto config = kube::parse_kubeconfig(*kubeconfig, "contract", ".");
    if (!config.ok()) return config.error();
    auto transport = kube::HttpTransport::create(*config, clock_);
    if (!transport.ok()) return transport.error();
    transport_ = std::move(*transport);
    return {};
  }
  // REQUIRES: start() has succeeded.
  kube::Transport& transport() override { return *transport_; }
  bool compact() override {
    server_.compact();
    return true;
  }

 private:
  kube::SystemClock clock_;
  devcluster::ApiServer server_{clock_};
  std::unique_ptr<devcluster::HttpsFrontEnd> front_end_;
  std::unique_ptr<kube::HttpTransport> transport_;
};

// A kube-apiserver that the person who starts the tests names. It cannot be made to compact its
// history.
class RealServer final : public ContractServer {
 public:
  base::Status connect(const std::string& kubeconfig) {
    const auto config = kube::load_kubeconfig(kubeconfig);
    if (!config.ok()) return config.error();
    auto transport = kube::HttpTransport::create(*config, clock_);
    if (!transport.ok()) return transport.error();
    transport_ = std::move(*transport);
    return {};
  }
  kube::Transport& transport() override { return *transport_; }
  bool compact() override { return false; }

 private:
  kube::SystemClock clock_;
  std::unique_ptr<kube::HttpTransport> transport_;
};

}  // namespace

base::Result<std::unique_ptr<ContractServer>> start_server(ServerKind kind) {
  switch (kind) {
    case ServerKind::kInProcess:
      return std::unique_ptr<ContractServer>{new InProcessServer};
    case ServerKind::kHttps: {
      auto server = std::make_unique<HttpsServer>();
      const base::Status status = server->start();
      if (!status.ok()) return status.error();
      return std::unique_ptr<ContractServer>{std::move(server)};
    }
    case ServerKind::kReal:
      break;
  }
  // kNotFound lets the fixture skip the test.
  const char* kubeconfig = std::getenv(kKubeconfigVariable);
  if (kubeconfig == nullptr || *kubeconfig == '\0') {
    return base::Error{base::Code::kNotFound,
                       std::string{kKubeconfigVariable} +
                           " names no kubeconfig: not compared with a real kube-apiserver"};
  }
  auto server = std::make_unique<RealServer>();
  const base::Status status = server->connect(kubeconfig);
  if (!status.ok()) return status.error();
  return std::unique_ptr<ContractServer>{std::move(server)};
}

}  // namespace contract
