#include "node-agent/survival/guard.h"

#include <signal.h>
#include <spdlog/spdlog.h>

#include <optional>
#include <utility>

#include "base/time.h"
#include "node-agent/survival/exit_message.h"
#include "node-agent/survival/give_back_text.h"
#include "node-agent/survival/heartbeat.h"
#include "node-agent/survival/wait_for_signal.h"
#include "node-agent/survival/worker_watch.h"
#include "node-agent/switching/switch_clock.h"

// The guard has two sources of truth that no death can falsify: the lock on the run directory,
// which the kernel frees when the last process of an agent is gone, and the beats in shared memory,
// which stand still when a loop does. Each look (every 200 ms) asks both, in this order, and does
// one of the three things that the header lists.
namespace agent {
namespace {

constexpr base::Duration kGuardLookEvery = std::chrono::milliseconds{200};
// The chart gives the pod a grace time of 10 s; kubelet sends SIGKILL then.
constexpr base::Duration kGuardStopWithin = std::chrono::seconds{8};

class Guard {
 public:
  Guard(const AgentPlaces& places, RunLock& lock, Heartbeat heartbeat)
      : places_{places}, lock_{lock}, heartbeat_{std::move(heartbeat)} {}

  int run();

 private:
  // The first two cases of the header: the lock is free; an agent holds it, which may stand
  // still.
  void no_agent_is_left(base::Duration now);
  void an_agent_has_the_directory(base::Duration now);
  bool thaw() {
    return thaw_everything(places_, [this] { return has_to_end(clock_.monotonic()); });
  }
  bool has_to_end(base::Duration now) const {
    return stopping_since_ && now - *stopping_since_ >= kGuardStopWithin;
  }

  const AgentPlaces& places_;
  RunLock& lock_;
  Heartbeat heartbeat_;
  RealSwitchClock clock_;
  WorkerWatch watch_{kHangAfter};
  bool thawed_ = false;                      // what the agent that is gone has left
  std::optional<base::Duration> thawed_at_;  // beside an agent that stands still
  std::optional<base::Duration> stopping_since_;
};

void Guard::no_agent_is_left(base::Duration now) {
  // The agent that comes next is watched from its own start: the beats in the file are those of the
  // dead one until the new supervisor clears them.
  watch_.started(now);
  if (thawed_) return;
  // Whatever the agent that is gone has frozen, no other process would thaw. It stays false if
  // something could not be thawed, and then the next look tries again.
  thawed_ = thaw();
  spdlog::info("no agent has the run directory");
}

void Guard::an_agent_has_the_directory(base::Duration now) {
  // The agent may freeze from now on; if it dies, its pods must be thawed again.
  thawed_ = false;
  if (!watch_.hangs(heartbeat_.main_beat().load(), heartbeat_.switcher_beat().load(), now)) {
    thawed_at_.reset();
  } else if (!thawed_at_ || now - *thawed_at_ >= kHangAfter) {
    // Repeated every kHangAfter, because a thread of the agent that was merely slow may have frozen
    // a pod after the thaw.
    thawed_at_ = now;
    (void)thaw();
    spdlog::error("the agent stands still: thawed its pods");
  }
}

// Ends after SIGTERM as soon as no agent is left and everything is thawed, or when its own time is
// up. The signal also ends the pause, so a stop is not late by a look.
int Guard::run() {
  watch_.started(clock_.monotonic());
  for (;;) {
    const std::optional<int> signal = wait_for_signal({SIGTERM, SIGINT}, kGuardLookEvery);
    const base::Duration now = clock_.monotonic();
    if (signal && !stopping_since_) stopping_since_ = now;
    // The lock on the run directory is the kernel's: it is free exactly if no agent lives, however
    // that agent has died.
    if (lock_.try_take()) {
      no_agent_is_left(now);
      lock_.give_back();
      if (stopping_since_ && thawed_) return 0;
    } else {
      an_agent_has_the_directory(now);
    }
    if (has_to_end(now)) return kExitFailed;
  }
}

}  // namespace

int run_guard(const AgentPlaces& places, RunLock& lock) {
  base::Result<Heartbeat> heartbeat =
      Heartbeat::create(places.run_directory + "/" + kHeartbeatName);
  if (!heartbeat) return fail_with(heartbeat.error());
  spdlog::info("guarding run_dir={} cgroup_root={}", places.run_directory, places.cgroup_root);
  give_back_text();
  return Guard{places, lock, *std::move(heartbeat)}.run();
}

}  // namespace agent
