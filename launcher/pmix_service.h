// kubegang-pmix of a step's tasks on this node: starts it, speaks with it, ends it with the tasks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "launcher/channel.h"
#include "launcher/loop.h"
#include "launcher/message.h"
#include "launcher/process.h"

namespace launcher {

class PmixService {
 public:
  // All are called from Loop::wait().
  struct Calls {
    std::function<void()> ready;                    // all tasks have their variables
    std::function<void(const Message&)> tell;       // Pmix, for the first launcher
    std::function<void(const std::string&)> ended;  // without having been asked to; and why
  };

  // Starts nothing yet.
  PmixService(Loop& loop, Calls calls) : loop_{loop}, calls_{std::move(calls)} {}
  // Kills it.
  ~PmixService();
  PmixService(const PmixService&) = delete;
  PmixService& operator=(const PmixService&) = delete;

  // False: it cannot be started, see errno.
  bool start(const TaskSet& tasks);
  void send(const Message& message) {
    if (channel_) channel_->send(message);
  }
  // Returns the variables of the task; none before ready().
  const Environment& environment(std::uint32_t rank) { return environments_[rank]; }
  // Returns true if it was this program.
  bool reaped(pid_t pid, int wait_status);

 private:
  void hear(const Message& message);

  Loop& loop_;
  const Calls calls_;
  pid_t pid_ = -1;
  std::size_t tasks_ = 0;
  std::map<std::uint32_t, Environment> environments_;  // by rank
  std::unique_ptr<Channel> channel_;
};

}  // namespace launcher
