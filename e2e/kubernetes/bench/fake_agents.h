// In place of the agents of all nodes: acknowledges each NodeTimetable as a real agent's status
// does, and switches nothing.
#pragma once

#include <atomic>
#include <string>

#include "api/node_timetable.h"
#include "e2e/kubernetes/bench/work_queue.h"
#include "kube/client.h"
#include "kube/informer.h"
#include "kube/run_loop.h"
#include "kube/sleeper.h"

namespace kubernetes_bench {

class FakeAgents {
 public:
  // Every node has one socket of `cores` cores.
  FakeAgents(kube::Transport& transport, const kube::Clock& clock, int cores);
  ~FakeAgents();

  std::int64_t acknowledgements() const { return acknowledgements_; }
  // Returns the nodes whose newest timetable is acknowledged.
  std::size_t ready_nodes() const;

 private:
  // Returns the pause before the next one: after a failure, when the node will be tried again.
  base::Duration acknowledge(const std::string& node);

  const int cores_;
  kube::ThreadSleeper sleeper_;
  kube::Client client_;
  WorkQueue<std::string> queue_;
  kube::Informer<kube::NodeTimetable> informer_;
  std::atomic<std::int64_t> acknowledgements_ = 0;
  kube::RunLoop loops_;
};

}  // namespace kubernetes_bench
