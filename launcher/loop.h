// Waits for file descriptors and calls who watches them. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace launcher {

class Loop {
 public:
  using Ready = std::function<void(std::uint32_t events)>;  // of epoll

  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void watch(int fd, std::uint32_t events, Ready ready);
  // REQUIRES: it is watched. No events: it waits until there are some.
  void change(int fd, std::uint32_t events);
  // Before it is closed; also from within a call.
  void forget(int fd);
  // After the calls of this round, when nothing of what `done` destroys is at work.
  void later(std::function<void()> done) { later_.push_back(std::move(done)); }
  // Calls those that are ready; waits at most `timeout_ms` before, -1 = without limit.
  void wait(int timeout_ms);

 private:
  int epoll_;
  std::map<int, std::shared_ptr<Ready>> watched_;
  std::vector<std::function<void()>> later_;
};

}  // namespace launcher
