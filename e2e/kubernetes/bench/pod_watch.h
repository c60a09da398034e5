// When the pods of a namespace came to life, as one sees it who watches them: an instant is the
// arrival of the event here.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_set>

#include "kube/clock.h"
#include "kube/transport.h"

namespace kubernetes_bench {

struct PodTimes {
  std::size_t bound = 0;        // pods that have a node
  std::size_t running = 0;      // and of which kubelet (KWOK) said Running
  base::Duration last_bound{};  // monotonic
  base::Duration last_running{};
  int watches_ended = 0;  // by the server, and resumed
};

class PodWatch {
 public:
  // Watches from now on. REQUIRES: the namespace has no pods.
  PodWatch(kube::Transport& transport, const kube::Clock& clock, std::string ns);
  ~PodWatch();  // ends the watch
  PodWatch(const PodWatch&) = delete;
  PodWatch& operator=(const PodWatch&) = delete;

  // Until that many pods are Running. kTimeout: not within `patience`.
  base::Result<PodTimes> wait_for(std::size_t pods_count, base::Duration patience);

 private:
  void watch(kube::Transport& transport, const std::string& ns, std::stop_token stop);
  void see(std::string_view line);

  const kube::Clock& clock_;
  std::mutex mu_;
  std::condition_variable changed_;
  PodTimes times_;                         // guarded by mu_, as what follows
  std::unordered_set<std::string> bound_;  // names
  std::unordered_set<std::string> running_;
  std::string version_;  // of the last event; the thread's own
  std::jthread thread_;
};

}  // namespace kubernetes_bench
