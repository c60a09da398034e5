// pods/exec over a connection of the front end: v5.channel.k8s.io over WebSocket.
#pragma once

#include <atomic>
#include <functional>

#include "kube/testing/api_server/api_server.h"

namespace httplib {
struct Request;
}

namespace devcluster {

// Returns true if the request asks for a WebSocket with that protocol.
bool is_exec_upgrade(const httplib::Request& request);

// Switches the connection to WebSocket, begins the program and serves it until it has ended, the
// client has gone or `stop` is true. Nothing may be written to the connection afterwards.
void serve_exec(const httplib::Request& request,
                const std::function<base::Result<PodExecProcess>()>& begin,
                const std::atomic<bool>& stop);

}  // namespace devcluster
