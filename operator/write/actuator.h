// Carries out effects: the only part of the operator that writes to the API server.
#pragma once

#include <stop_token>

#include "kube/client.h"
#include "operator/gang/batch_pod.h"
#include "operator/write/effect.h"

namespace control {

// Thread-safe. The client's transport must live longer than this.
class Actuator {
 public:
  explicit Actuator(kube::Client client, PodLauncher launcher = {})
      : client_{std::move(client)}, launcher_{std::move(launcher)} {}

  // Blocks until the API server has answered. Never fails: what went wrong is in the outcome. A
  // forecast, which asks no server, ends early when `stop` is requested.
  Outcome carry_out(const Effect& effect, const std::stop_token& stop = {}) const;

 private:
  const kube::Client client_;
  const PodLauncher launcher_;
};

}  // namespace control
