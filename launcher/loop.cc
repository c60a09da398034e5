#include "launcher/loop.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace launcher {

Loop::Loop() : epoll_{::epoll_create1(EPOLL_CLOEXEC)} {}

Loop::~Loop() {
  ::close(epoll_);
}

void Loop::watch(int fd, std::uint32_t events, Ready ready) {
  watched_[fd] = std::make_shared<Ready>(std::move(ready));
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
}

void Loop::change(int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
}

void Loop::forget(int fd) {
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
  watched_.erase(fd);
}

void Loop::wait(int timeout_ms) {
  std::array<epoll_event, 64> events{};
  const int count = ::epoll_wait(epoll_, events.data(), events.size(), timeout_ms);
  for (int i = 0; i < count; ++i) {
    // An earlier call of this round may have forgotten it, and this one may forget itself.
    const auto found = watched_.find(events[static_cast<std::size_t>(i)].data.fd);
    if (found == watched_.end()) continue;
    const std::shared_ptr<Ready> ready = found->second;
    (*ready)(events[static_cast<std::size_t>(i)].events);
  }
  while (!later_.empty()) {
    for (const auto& done : std::exchange(later_, {})) done();
  }
}

}  // namespace launcher
