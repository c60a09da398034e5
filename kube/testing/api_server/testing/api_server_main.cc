// The API server in a process of its own, without nodes, for tests by kubectl: serves until its
// standard input ends. Usage: fake_api_server_program CRDS_FOLDER KUBECONFIG [PORT]
// Logs of every pod are "hello from NAMESPACE/POD/CONTAINER".
#include <cstdio>
#include <cstdlib>
#include <string>

#include "kube/testing/api_server/api_server.h"
#include "kube/testing/api_server/https_front_end.h"

namespace {

// The whole log at the first read, and then the end of the stream.
class Greeting final : public devcluster::BodyStream {
 public:
  explicit Greeting(std::string text) : text_{std::move(text)} {}
  devcluster::StreamState read(std::string& out, base::Duration) override {
    out += std::exchange(text_, {});
    return devcluster::StreamState::kEnd;
  }
  void cancel() override {}

 private:
  std::string text_;
};

int fail(const base::Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::fprintf(stderr, "usage: %s CRDS_FOLDER KUBECONFIG [PORT]\n", argv[0]);
    return 2;
  }
  const kube::SystemClock clock;
  devcluster::ApiServer server{clock};
  if (const base::Status status = server.load_crds(argv[1]); !status.ok()) {
    return fail(status.error());
  }
  server.set_pod_log_hook([](const devcluster::PodLogRequest& wanted)
                              -> base::Result<std::shared_ptr<devcluster::BodyStream>> {
    return std::shared_ptr<devcluster::BodyStream>{std::make_shared<Greeting>(
        "hello from " + wanted.ns + "/" + wanted.pod + "/" + wanted.container + "\n")};
  });
  auto front_end = devcluster::HttpsFrontEnd::start(
      server, clock, {.address = "127.0.0.1", .port = argc == 4 ? std::atoi(argv[3]) : 0});
  if (!front_end.ok()) return fail(front_end.error());
  if (const base::Status status = (*front_end)->write_kubeconfig(argv[2]); !status.ok()) {
    return fail(status.error());
  }
  std::printf("%s\n", (*front_end)->url().c_str());
  std::fflush(stdout);
  // The pipe closes with the test, also when it crashes: no server stays behind.
  while (std::getchar() != EOF) {
  }
  return 0;
}
