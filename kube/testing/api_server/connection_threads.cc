#include "kube/testing/api_server/connection_threads.h"

#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include <httplib.h>

namespace devcluster {
namespace {

thread_local int connection_socket = -1;  // the duplicate that this thread has registered

// The library calls enqueue() for each connection that it accepts, with a function that serves it
// to its end.
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

}  // namespace

// Called for each request of a connection; only the first does something.
void ConnectionRegistry::register_socket(int socket) {
  if (connection_socket >= 0) return;
  // A duplicate, because the library closes its own descriptor, and the number might belong to
  // another connection when break_all() is called.
  connection_socket = ::dup(socket);
  if (connection_socket < 0) return;
  const std::scoped_lock lock{mu_};
  sockets_.insert(connection_socket);
}

// Called by the thread that served the connection, when it has ended.
void ConnectionRegistry::release() {
  if (connection_socket < 0) return;
  const int socket = std::exchange(connection_socket, -1);
  const std::scoped_lock lock{mu_};
  sockets_.erase(socket);
  ::close(socket);
}

// shutdown(2) and not close(2): threads that read or write return at once with an error, and the
// numbers stay taken.
void ConnectionRegistry::break_all() {
  const std::scoped_lock lock{mu_};
  for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
}

void ConnectionThreads::enqueue(std::function<void()> connection) {
  const std::scoped_lock lock{mu_};
  waiting_.push_back(std::move(connection));
  // A thread for each connection, up to the limit: a watch keeps its thread for minutes, so a fixed
  // pool would be used up by a few watches.
  if (idle_count_ < waiting_.size() && threads_.size() < threads_max_) {
    threads_.emplace_back([this] { run(); });
  }
  changed_.notify_one();
}

// One connection after the other. The lock is not held while a connection is served, which may take
// as long as a watch.
void ConnectionThreads::run() {
  std::unique_lock lock{mu_};
  while (true) {
    ++idle_count_;
    changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    --idle_count_;
    // Stopping: connections that wait already are still served, and find their sockets broken.
    if (waiting_.empty()) return;
    const std::function<void()> connection = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    connection();
    registry_.release();
    lock.lock();
  }
}

// Joined outside of the lock, which the threads need to see the flag. Their connections are broken
// meanwhile (HttpsFrontEnd), or this would wait for the watches.
void ConnectionThreads::shutdown() {
  std::vector<std::thread> threads;
  {
    const std::scoped_lock lock{mu_};
    stopping_ = true;
    threads.swap(threads_);
  }
  changed_.notify_all();
  for (std::thread& thread : threads) thread.join();
}

std::unique_ptr<httplib::TaskQueue> make_connection_threads(ConnectionRegistry& registry,
                                                            std::size_t threads_max) {
  return std::make_unique<ConnectionThreads>(registry, threads_max);
}

}  // namespace devcluster
