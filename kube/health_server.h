// /healthz, /readyz and /metrics over plain HTTP, for kubelet's probes and Prometheus. Small on
// purpose: two requests at a time, one per connection.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "base/result.h"

namespace httplib {
class Server;
}
namespace prometheus {
class Collectable;
}

namespace kube {

class HealthServer {
 public:
  struct Options {
    std::string address = "0.0.0.0";
    int port = 0;  // 0 = any free one
  };
  // Called from the server's own threads, several at a time. An error is answered as 503 with its
  // message; an absent one is ok.
  struct Probes {
    std::function<base::Status()> alive{};   // /healthz: kubelet restarts the container if not
    std::function<base::Status()> ready{};   // /readyz
    std::function<std::string()> metrics{};  // /metrics: Prometheus' text format
  };

  // Binds the port. kUnavailable: it is in use, or the address is not ours.
  static base::Result<std::unique_ptr<HealthServer>> create(const Options& options, Probes probes);
  ~HealthServer();

  int port() const { return port_; }

  // Serves on the calling thread until `stop` is requested. At most once; for RunLoop::start.
  void serve(std::stop_token stop);

 private:
  HealthServer(std::unique_ptr<httplib::Server> server, int port);

  std::unique_ptr<httplib::Server> server_;
  int port_;
};

// Everything that a prometheus::Registry has, in Prometheus' text format.
std::string metrics_text(const prometheus::Collectable& registry);

}  // namespace kube
