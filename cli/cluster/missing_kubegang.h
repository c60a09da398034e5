// A cluster without kubegang: its API server knows no path of our group, and its answer, a page for
// web browsers, does not say what is wrong.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "kube/transport.h"

namespace cli {

// Passes everything on, and puts a Status that names the cluster in the place of that answer. So
// each command says the same, whatever it asked for first. `inner` must live longer. Thread-safe.
class TellsMissingKubegang final : public kube::Transport {
 public:
  // `origin` says which cluster it is: "kubeconfig FILE, context NAME".
  TellsMissingKubegang(kube::Transport& inner, std::string origin)
      : inner_{inner}, origin_{std::move(origin)} {}

  base::Result<kube::Response> send(const kube::Request& request) override;

  // Streams follow lists, which have reported it already.
  base::Status stream(const kube::Request& request,
                      const std::function<bool(std::string_view)>& on_line,
                      std::stop_token stop) override {
    return inner_.stream(request, on_line, std::move(stop));
  }

 private:
  kube::Transport& inner_;
  const std::string origin_;
};

}  // namespace cli
