// Writer with threads of its own: bounded parallelism, results to the Inbox.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>

#include "operator/loop/inbox.h"
#include "operator/write/actuator.h"
#include "operator/write/crash_points.h"
#include "operator/write/writer.h"

namespace control {

class ThreadWriter final : public Writer {
 public:
  // at_once: how many threads will work(). may_write: whether this process still leads; an effect
  // that finds that it does not is dropped, since the process is about to
  // end. All must live longer than this.
  ThreadWriter(Actuator actuator, Inbox& inbox, CrashPoints& crash_points, int at_once,
               std::function<bool()> may_write)
      : actuator_{std::move(actuator)},
        inbox_{inbox},
        crash_points_{crash_points},
        at_once_{at_once},
        may_write_{std::move(may_write)} {}

  void submit(Effect effect) override;
  int at_once() const override { return at_once_; }

  // Carries out effects until `stop` is requested and none is queued.
  void work(std::stop_token stop);

 private:
  const Actuator actuator_;
  Inbox& inbox_;
  CrashPoints& crash_points_;
  const int at_once_;
  const std::function<bool()> may_write_;

  std::mutex mu_;
  std::condition_variable_any changed_;
  std::deque<Effect> queue_;  // guarded by mu_
};

}  // namespace control
