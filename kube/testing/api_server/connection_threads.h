// httplib's way to run connections: one thread for each, reused when a connection ends. A watch
// keeps its connection for minutes, so a fixed pool would run dry. Remembers each thread's socket,
// so that a stop can break the connections that wait.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <set>

namespace httplib {
class TaskQueue;
}

namespace devcluster {

class ConnectionRegistry {
 public:
  // Called by a connection's thread: this is its socket; may be called for each of its requests.
  void register_socket(int socket);
  // Called by a connection's thread: the connection has ended.
  void release();
  // Breaks all; the threads notice at once.
  void break_all();

 private:
  std::mutex mu_;
  std::set<int> sockets_;  // duplicates, so that a closed and reused number cannot be hit
};

// For httplib::Server::new_task_queue. The registry outlives it.
std::unique_ptr<httplib::TaskQueue> make_connection_threads(ConnectionRegistry& registry,
                                                            std::size_t threads_max);

}  // namespace devcluster
