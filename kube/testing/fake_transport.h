// A Transport with prepared answers. They come from, in this order: the queue of
// answers, the handler, else kUnavailable. Streams come from the queue of streams, else
// kUnavailable. Keeps all requests. Thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kube/transport.h"

namespace kube {

// One watch session: its lines, then its end.
struct FakeStream {
  std::vector<std::string> lines{};
  base::Status end{};
};

class FakeTransport final : public Transport {
 public:
  using Handler = std::function<base::Result<Response>(const Request&)>;

  void answer(int status, std::string body) { enqueue(Response{status, {}, std::move(body)}); }
  void enqueue(base::Result<Response> result) {
    const std::lock_guard lock{mu_};
    answers_.push_back(std::move(result));
  }
  void enqueue_stream(FakeStream stream) {
    const std::lock_guard lock{mu_};
    streams_.push_back(std::move(stream));
  }
  // For everything that is not queued.
  void set_handler(Handler handler) {
    const std::lock_guard lock{mu_};
    handler_ = std::move(handler);
  }

  // Returns all requests so far, streams included.
  std::vector<Request> requests() const {
    const std::lock_guard lock{mu_};
    return requests_;
  }
  Request last_request() const { return requests().back(); }

  // The handler is called without the lock, so that it may use the fake itself.
  base::Result<Response> send(const Request& request) override {
    Handler handler;
    {
      const std::lock_guard lock{mu_};
      requests_.push_back(request);
      if (!answers_.empty()) {
        base::Result<Response> result = std::move(answers_.front());
        answers_.pop_front();
        return result;
      }
      handler = handler_;
    }
    if (handler) return handler(request);
    return base::Error{base::Code::kUnavailable, "connection refused"};
  }

  base::Status stream(const Request& request, const std::function<bool(std::string_view)>& on_line,
                      std::stop_token stop) override {
    FakeStream stream{{}, base::Error{base::Code::kUnavailable, "connection refused"}};
    {
      const std::lock_guard lock{mu_};
      requests_.push_back(request);
      if (!streams_.empty()) {
        stream = std::move(streams_.front());
        streams_.pop_front();
      }
    }
    for (const std::string& line : stream.lines) {
      if (stop.stop_requested()) return base::Error{base::Code::kCancelled, "stopped"};
      if (!on_line(line)) return {};
    }
    return stream.end;
  }

 private:
  mutable std::mutex mu_;
  std::deque<base::Result<Response>> answers_;
  std::deque<FakeStream> streams_;
  Handler handler_;
  std::vector<Request> requests_;
};

}  // namespace kube
