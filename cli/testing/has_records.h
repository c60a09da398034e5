// An API server that also has records.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <sstream>
#include <stop_token>
#include <string>
#include <string_view>

#include "kube/transport.h"
#include "kube/url.h"
#include "records/answers.h"
#include "records/store.h"

namespace cli {

// Answers for the records of a database, as the API server does that passes such requests on.
class HasRecords final : public kube::Transport {
 public:
  explicit HasRecords(kube::Transport& inner) : inner_{inner} {}

  base::Result<kube::Response> send(const kube::Request& request) override {
    if (reader && request.path == "/apis") {
      return kube::Response{
          .status = 200,
          .body = R"({"kind": "APIGroupList", "groups": [{"name": "records.kubegang.io"}]})"};
    }
    if (!request.path.starts_with("/apis/records.kubegang.io/")) return inner_.send(request);
    // As a real API server answers for a group that it does not serve.
    if (!reader) return kube::Response{.status = 404, .body = "404 page not found\n"};
    const std::size_t end = std::min(request.path.find('?'), request.path.size());
    if (only && !request.path.substr(0, end).ends_with("/namespaces/" + *only + "/records")) {
      const records::ApiAnswer refused = records::refusal(403, "Forbidden", "may not list records");
      return kube::Response{.status = refused.status, .body = refused.body};
    }
    records::ApiRequest asked{.method = "GET", .path = request.path.substr(0, end)};
    std::istringstream parameters{request.path.substr(std::min(end + 1, request.path.size()))};
    for (std::string one; std::getline(parameters, one, '&');) {
      const std::size_t equals = one.find('=');
      asked.query[one.substr(0, equals)] = kube::percent_decode(one.substr(equals + 1));
    }
    const records::ApiAnswer answer = records::answer_of(asked, *reader, "kubegang");
    return kube::Response{.status = answer.status, .body = answer.body};
  }
  base::Status stream(const kube::Request& request,
                      const std::function<bool(std::string_view)>& on_line,
                      std::stop_token stop) override {
    return inner_.stream(request, on_line, std::move(stop));
  }

  std::optional<records::Reader> reader{};
  std::optional<std::string> only{};  // the namespace whose records may be read, if not all may

 private:
  kube::Transport& inner_;
};

}  // namespace cli
