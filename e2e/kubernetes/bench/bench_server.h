// The in-memory API server of the tests as a program meets a real one: on the loopback with TLS, an
// operator that has a service account's token, pods with the defaults and managedFields that a real
// server gives them. It answers at once and in this process, so no other load of a control plane is
// in the figures.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "e2e/kubernetes/bench/bench_api.h"
#include "e2e/kubernetes/bench/shape.h"
#include "kube/testing/api_server/api_server.h"
#include "kube/testing/api_server/https_front_end.h"
#include "kube/testing/api_server/in_process_transport.h"

namespace kubernetes_bench {

class BenchServer {
 public:
  // `folder` gets the kubeconfigs.
  BenchServer(const kube::Clock& clock, std::string folder)
      : clock_{clock}, folder_{std::move(folder)}, api_{clock} {}

  // With the CRDs and without an object.
  base::Status start();

  devcluster::ApiServer& server() { return server_; }
  // For this process's own programs, past the network.
  devcluster::InProcessTransport& transport() { return transport_; }
  // As its administrator, through the network. REQUIRES: start().
  BenchApi& api() { return api_; }
  std::string admin_kubeconfig() const { return folder_ + "/admin.kubeconfig"; }
  std::string operator_kubeconfig() const { return folder_ + "/operator.kubeconfig"; }
  // Makes a namespace of that name; there are no service accounts to wait for.
  base::Status make_namespace(const std::string& name);
  // Returns when nothing has been written for a while: everything that follows is done.
  void wait_until_quiet() const;

 private:
  base::Status write_operator_kubeconfig();

  const kube::Clock& clock_;
  const std::string folder_;
  devcluster::ApiServer server_{clock_, {.managed_fields = true}};
  devcluster::InProcessTransport transport_{server_};
  std::unique_ptr<devcluster::HttpsFrontEnd> front_;
  BenchApi api_;
};

// Runs `measure` with a folder of its own, as the whole of a program called `name`: the folder goes
// if it succeeds, and stays for its logs if it fails. Returns the exit code. OPERATOR=PROGRAM in
// the environment measures another operator, for example a script that runs it under callgrind.
int run_measurement(const char* name, const std::function<base::Status(const Options&)>& measure);

}  // namespace kubernetes_bench
