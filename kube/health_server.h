// /healthz, /readyz and /metrics over plain HTTP, for kubelet's probes and Prometheus. The port is
// open to the cluster's network and identifies no client, so all that clients can take is bounded:
// the size of a request, the time for request and answer together, and the number of connections,
// of which the oldest is given up for a new one.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "linux/file_descriptor.h"

namespace prometheus {
class Collectable;
}

namespace kube {

class HealthServer {
 public:
  struct Options {
    std::string address = "0.0.0.0";
    int port = 0;  // 0 = any free one
    // For a client to send its request and to read the answer.
    base::Duration patience = std::chrono::seconds{5};
  };
  // Called by the thread that serves. An error is answered as 503 with its message; an absent one
  // is ok.
  struct Probes {
    std::function<base::Status()> alive{};   // /healthz: kubelet restarts the container if not
    std::function<base::Status()> ready{};   // /readyz
    std::function<std::string()> metrics{};  // /metrics: Prometheus' text format
  };

  // Listens. kUnavailable: the port is in use, or the machine does not have the address.
  static base::Result<std::unique_ptr<HealthServer>> create(const Options& options, Probes probes);

  int port() const { return port_; }

  // Serves on the calling thread until `stop` is requested; for RunLoop::start.
  void serve(std::stop_token stop);

 private:
  HealthServer(os::FileDescriptor listener, os::FileDescriptor wake, int port,
               base::Duration patience, Probes probes);

  const os::FileDescriptor listener_;
  const os::FileDescriptor wake_;  // readable once a stop was requested
  const int port_;
  const base::Duration patience_;
  const Probes probes_;
};

// Everything that a prometheus::Registry has, in Prometheus' text format.
std::string metrics_text(const prometheus::Collectable& registry);

}  // namespace kube
