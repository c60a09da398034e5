// Writer with threads of its own: bounded parallelism, results to the Inbox.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>

#include "operator/crash_points.h"
#include "operator/inbox.h"
#include "operator/writer.h"

namespace control {

class ThreadWriter final : public Writer {
 public:
  // may_write: whether this process still leads; a write that finds that it does not is dropped
  // together with its result, since the process is about to end. All must live longer than this.
  ThreadWriter(Inbox& inbox, CrashPoints& crash_points, std::function<bool()> may_write)
      : inbox_{inbox}, crash_points_{crash_points}, may_write_{std::move(may_write)} {}

  void submit(Write write) override;

  // Carries out writes until `stop` is requested and none is queued; for as many threads as writes
  // may be under way.
  void work(std::stop_token stop);

 private:
  Inbox& inbox_;
  CrashPoints& crash_points_;
  const std::function<bool()> may_write_;

  std::mutex mu_;
  std::condition_variable_any changed_;
  std::deque<Write> queue_;  // guarded by mu_
};

}  // namespace control
