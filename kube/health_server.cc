#include "kube/health_server.h"

#include <httplib.h>
#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>
#include <utility>

namespace kube {
namespace {

// One for kubelet's probes and one for Prometheus; a third request waits.
constexpr std::size_t kThreads = 2;
// All requests are GETs; a body is not needed.
constexpr std::size_t kQueryBytesMax = 4096;
constexpr time_t kClientSeconds = 5;  // for a client to send its request and to read the answer

// kubelet takes any status from 200 to 399 as healthy; the text is for people with curl.
httplib::Server::Handler probe_handler(std::function<base::Status()> probe) {
  return [probe = std::move(probe)](const httplib::Request&, httplib::Response& response) {
    const base::Status status = probe ? probe() : base::Status{};
    if (!status.ok()) response.status = 503;
    response.set_content(status.ok() ? "ok\n" : status.error().message + "\n", "text/plain");
  };
}

}  // namespace

base::Result<std::unique_ptr<HealthServer>> HealthServer::create(const Options& options,
                                                                 Probes probes) {
  auto server = std::make_unique<httplib::Server>();
  server->new_task_queue = [] { return new httplib::ThreadPool{kThreads}; };
  // Few threads, and probes must always find one: no client keeps its connection.
  server->set_keep_alive_max_count(1);
  server->set_read_timeout(kClientSeconds);
  server->set_write_timeout(kClientSeconds);
  // The port is open to the cluster's network; a slow or a large request costs little.
  server->set_payload_max_length(kQueryBytesMax);
  // Not the library's SO_REUSEPORT, with which two servers on one port would go unnoticed.
  server->set_socket_options([](int descriptor) {
    const int on = 1;
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  });
  server->Get("/healthz", probe_handler(std::move(probes.alive)));
  server->Get("/readyz", probe_handler(std::move(probes.ready)));
  server->Get("/metrics", [metrics = std::move(probes.metrics)](const httplib::Request&,
                                                                httplib::Response& response) {
    response.set_content(metrics ? metrics() : std::string{}, "text/plain; version=0.0.4");
  });
  // Bound here and not in serve(), so that a port in use is an error of create().
  int port = options.port;
  if (port == 0) {
    port = server->bind_to_any_port(options.address);
  } else if (!server->bind_to_port(options.address, port)) {
    port = -1;
  }
  if (port < 0) {
    return base::Error{base::Code::kUnavailable,
                       "cannot listen on " + options.address + ":" + std::to_string(options.port) +
                           ": the port is in use or the address is not of this machine"};
  }
  return std::unique_ptr<HealthServer>{new HealthServer{std::move(server), port}};
}

HealthServer::HealthServer(std::unique_ptr<httplib::Server> server, int port)
    : server_{std::move(server)}, port_{port} {}

HealthServer::~HealthServer() = default;

// The library's stop() works only while it listens, so there are three cases: stopped before this
// call, between it and listening, and after. `ended` lets the callback of another thread give up if
// listening fails at once.
void HealthServer::serve(std::stop_token stop) {
  std::atomic<bool> ended{false};
  const auto this_thread = std::this_thread::get_id();
  const std::stop_callback end{std::move(stop), [&] {
                                 // Stopped before this function was called: the callback runs here,
                                 // in its own constructor, and nothing listens yet.
                                 if (std::this_thread::get_id() == this_thread) {
                                   ended = true;
                                   return;
                                 }
                                 // The library ignores a stop before it listens.
                                 while (!server_->is_running() && !ended) {
                                   std::this_thread::yield();
                                 }
                                 server_->stop();
                               }};
  if (ended) return;
  server_->listen_after_bind();
  ended = true;
}

std::string metrics_text(const prometheus::Collectable& registry) {
  return prometheus::TextSerializer{}.Serialize(registry.Collect());
}

}  // namespace kube
