// The API server without a network, for fast tests: kube::Transport straight into ApiServer.
#pragma once

#include <string>

#include "kube/testing/api_server/api_server.h"
#include "kube/transport.h"

namespace devcluster {

// Thread-safe. Injected resets become kUnavailable; an injected delay of at least the request's
// timeout becomes kTimeout at once, a shorter one is ignored, because no network
// is there to be slow.
class InProcessTransport final : public kube::Transport {
 public:
  explicit InProcessTransport(ApiServer& server, std::string user_agent = "in-process")
      : server_{server}, user_agent_{std::move(user_agent)} {}

  base::Result<kube::Response> send(const kube::Request& request) override;
  base::Status stream(const kube::Request& request,
                      const std::function<bool(std::string_view)>& on_line,
                      std::stop_token stop) override;

 private:
  base::Result<ApiAnswer> answer(const kube::Request& request);

  ApiServer& server_;
  const std::string user_agent_;
};

}  // namespace devcluster
