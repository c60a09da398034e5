// The tools of every command that talks to a cluster: a client, the namespace, and the clock.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "kube/client.h"
#include "kube/clock.h"
#include "kube/sleeper.h"
#include "kube/transport_config.h"
#include "kube/upgrade.h"

namespace cli {

// The place of the cluster, as kubectl's options give it.
struct ConnectOptions {
  std::string kubeconfig;           // empty = $KUBECONFIG, in-cluster, ~/.kube/config
  kube::ConfigOverrides overrides;  // context, cluster, user, …
  std::string ns;                   // empty = the context's
  // The limit of one request; nullopt: the default. Zero: none.
  std::optional<base::Duration> request_timeout;
};

struct Session {
  kube::Client client;
  const kube::Clock& clock;
  kube::Sleeper& sleeper;
  std::string ns;
  kube::Upgrader* upgrader = nullptr;  // for programs in pods; tests without HTTPS have none
  // The user's name where the way to log in says it (kube/own_name.h); nullopt: ask the server.
  std::optional<std::string> user{};
};

}  // namespace cli
