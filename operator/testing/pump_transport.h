// A transport into the in-memory API server whose watches end as soon as there is nothing to read,
// so that informers can be stepped on one thread in virtual time.
#pragma once

#include <string>

#include "kube/api_error.h"
#include "kube/line_splitter.h"
#include "kube/testing/api_server/api_server.h"
#include "kube/testing/api_server/in_process_transport.h"
#include "kube/transport.h"

namespace control {

class PumpTransport final : public kube::Transport {
 public:
  PumpTransport(devcluster::ApiServer& server, const std::string& user_agent)
      : server_{server}, calls_{server, user_agent}, user_agent_{user_agent} {}

  base::Result<kube::Response> send(const kube::Request& request) override {
    return calls_.send(request);
  }

  base::Status stream(const kube::Request& request,
                      const std::function<bool(std::string_view)>& on_line,
                      std::stop_token) override {
    devcluster::ApiRequest api;
    api.http = request;
    api.user_agent = user_agent_;
    const devcluster::ApiAnswer answer = server_.handle(api);
    if (answer.reset) return base::Error{base::Code::kUnavailable, "reset"};
    if (answer.response.status != 200)
      return kube::error_from_response(answer.response, request.path);
    kube::LineSplitter lines{kube::kWatchLineBytesMax};
    if (!answer.stream) {
      (void)lines.feed(answer.response.body, on_line);
      return {};
    }
    // All that is there now. The end of the answer is not an error: the informer goes on from the
    // version that it has seen.
    for (;;) {
      std::string data;
      const auto state = answer.stream->read(data, base::Duration{0});
      (void)lines.feed(data, on_line);
      if (data.empty() || state != devcluster::StreamState::kOpen) break;
    }
    answer.stream->cancel();
    return {};
  }

 private:
  devcluster::ApiServer& server_;
  devcluster::InProcessTransport calls_;
  const std::string user_agent_;
};

}  // namespace control
