// httplib's way to run connections: one thread for each, reused when a connection ends. A watch
// keeps its connection for minutes, so a fixed pool would run dry. Remembers each thread's socket,
// so that a stop can break the connections that wait.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <httplib.h>

namespace devcluster {

class ConnectionRegistry {
 public:
  // From a connection's thread: this is its socket; may be called for each of its requests.
  void register_socket(int socket);
  // From a connection's thread: the connection has ended.
  void release();
  // Breaks all; the threads notice at once.
  void break_all();

 private:
  std::mutex mu_;
  std::set<int> sockets_;  // duplicates, so that a closed and reused number cannot be hit
};

class ConnectionThreads final : public httplib::TaskQueue {
 public:
  ConnectionThreads(ConnectionRegistry& registry, std::size_t threads_max)
      : registry_{registry}, threads_max_{threads_max} {}

  void enqueue(std::function<void()> connection) override;
  void shutdown() override;

 private:
  void run();

  ConnectionRegistry& registry_;
  const std::size_t threads_max_;

  std::mutex mu_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::thread> threads_;
  std::size_t idle_count_ = 0;
  bool stopping_ = false;
};

}  // namespace devcluster
