// In place of KWOK, for a server without one: makes each node Ready and each pod Running, with the
// statuses of kwok-stages.yaml.
#pragma once

#include "e2e/kubernetes/bench/work_queue.h"
#include "kube/api/node.h"
#include "kube/api/pod.h"
#include "kube/client.h"
#include "kube/informer.h"
#include "kube/run_loop.h"
#include "kube/sleeper.h"

namespace kubernetes_bench {

class FakeKubelets {
 public:
  FakeKubelets(kube::Transport& transport, const kube::Clock& clock);
  ~FakeKubelets();

  // Returns the pods that run.
  std::size_t running() const;

 private:
  void make_ready(const kube::ObjectKey& node);
  void run_pod(const kube::ObjectKey& key);

  const kube::Clock& clock_;
  kube::ThreadSleeper sleeper_;
  kube::Client client_;
  WorkQueue<kube::ObjectKey> nodes_queue_;
  WorkQueue<kube::ObjectKey> pods_queue_;
  kube::Informer<kube::Node> nodes_;
  kube::Informer<kube::Pod> pods_;
  kube::RunLoop loops_;
};

}  // namespace kubernetes_bench
