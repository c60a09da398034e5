// What every command that talks to a cluster has: a client, the namespace, and the clock.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "kube/client.h"
#include "kube/clock.h"
#include "kube/sleeper.h"

namespace cli {

// Where the cluster is, as kubectl's options say it.
struct ConnectOptions {
  std::string kubeconfig;  // empty = $KUBECONFIG, in-cluster, ~/.kube/config
  std::string context;     // empty = the current one
  std::string ns;          // empty = the context's
};

struct Session {
  kube::Client client;
  const kube::Clock& clock;
  kube::Sleeper& sleeper;
  std::string ns;
};

}  // namespace cli
