#include "node-agent/survival/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/log_fields.h"
#include "node-agent/survival/exit_message.h"
#include "node-agent/survival/give_back_text.h"
#include "node-agent/survival/heartbeat.h"
#include "node-agent/survival/wait_for_signal.h"
#include "node-agent/survival/worker_watch.h"
#include "node-agent/switching/switch_clock.h"

// The supervisor does almost nothing, so that almost nothing can go wrong with it: it starts the
// worker, waits for signals, looks at two counters every 500 ms, and thaws. A worker's life, as it
// sees it:
//
// * starts: its beats are 0. It may take kStartWithin until both loops beat.
// * works: a beat that stands still for kHangAfter means that a loop hangs. The worker is killed,
//   its pods are thawed, and it is started again.
// * ends by itself: after SIGTERM with code 0 everything is thawed already; otherwise its pods are
//   thawed and it is started again, unless it never got to work.
// * does not die: the kernel holds it in a call. Its pods are thawed now and, when it ends, once
//   more.
// At a stop the worker has 1.85 s to thaw its pods; afterwards the supervisor kills it and thaws
// them.
namespace agent {
namespace {

constexpr base::Duration kLookEvery = std::chrono::milliseconds{500};
// The program must exit within 2 s of SIGTERM. The worker has 1.85 s; afterwards the supervisor
// kills it and thaws the rest.
constexpr base::Duration kStopWithin = std::chrono::milliseconds{1850};
// The pause before a worker is started again doubles with each one that ends soon, so that a worker
// that crashes at its start does not take a CPU.
constexpr base::Duration kRestartFirst = std::chrono::milliseconds{50};
constexpr base::Duration kRestartMax = std::chrono::seconds{1};
// A worker that ran this long before it ended begins with the short pause again.
constexpr base::Duration kLivedWell = std::chrono::seconds{10};
// A killed process is gone at once unless the kernel holds one of its threads.
constexpr base::Duration kDiesWithin = std::chrono::milliseconds{250};
constexpr base::Duration kDiesWithinAtStop = std::chrono::milliseconds{50};
constexpr base::Duration kDeadLookEvery = std::chrono::milliseconds{2};

// Returns one of the signals that matter here; nullopt if none came within the time.
std::optional<int> wait_for_news(base::Duration timeout) {
  return wait_for_signal({SIGTERM, SIGINT, SIGCHLD}, timeout);
}

class Supervisor {
 public:
  Supervisor(const SupervisorOptions& options, RunLock& lock, Heartbeat heartbeat)
      : options_{options}, lock_{lock}, heartbeat_{std::move(heartbeat)} {}

  int run();

 private:
  bool start_worker();
  // Returns the worker's exit status once it has ended. Reaps all other children of PID 1, too.
  std::optional<int> reap();
  void thaw();
  // Returns the worker's exit status; nullopt if it does not end within the time.
  std::optional<int> kill_worker(base::Duration within);
  bool has_to_end_now() const;
  // Both return an exit code if the program is over.
  std::optional<int> worker_hangs();
  std::optional<int> worker_ended(int status);
  base::Duration next_look() const;

  const SupervisorOptions& options_;
  RunLock& lock_;
  Heartbeat heartbeat_;
  RealSwitchClock clock_;
  WorkerWatch watch_;
  pid_t worker_ = 0;
  bool killed_ = false;  // we killed the worker because it hangs, and it has not ended yet
  base::Duration started_at_{};
  base::Duration restart_after_ = kRestartFirst;
  std::optional<base::Duration> stopping_since_;
};

// Starts this same program again (/proc/self/exe) with a variable that makes it the worker. By exec
// and not by fork alone: the worker gets an address space of its own, free of what the supervisor
// has touched.
bool Supervisor::start_worker() {
  std::vector<char*> arguments;
  for (const std::string& argument : options_.worker_command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));  // execv's signature
  }
  arguments.push_back(nullptr);
  // The beats of a worker that died must not pass for the new one's.
  heartbeat_.clear();
  const pid_t supervisor = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    spdlog::error("cannot start the worker error={}", base::log_value(std::strerror(errno)));
    return false;
  }
  if (child == 0) {
    // No worker without a supervisor, as in a container, where all processes end with PID 1.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The supervisor may have died between fork and prctl; then the signal never comes.
    if (::getppid() != supervisor) ::_exit(kExitFailed);
    lock_.keep_in_child();
    // The signals stay blocked: one that comes before the worker can receive it stays pending.
    ::setenv(kWorkerVariable, "1", 1);
    ::execv("/proc/self/exe", arguments.data());
    ::_exit(kExitFailed);
  }
  worker_ = child;
  killed_ = false;
  started_at_ = clock_.monotonic();
  watch_.started(started_at_);
  return true;
}

// PID 1 of a container inherits every orphan in it, so all children are reaped, and only the
// worker's status counts.
std::optional<int> Supervisor::reap() {
  std::optional<int> ended;
  int status = 0;
  for (pid_t child = 0; (child = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    if (child == worker_) ended = status;
  }
  return ended;
}

std::optional<int> Supervisor::kill_worker(base::Duration within) {
  ::kill(worker_, SIGKILL);
  const base::Duration give_up = clock_.monotonic() + within;
  std::optional<int> status;
  while (!(status = reap()) && clock_.monotonic() < give_up) clock_.pause(kDeadLookEvery);
  return status;
}

// Thaws before it logs, here as everywhere: it may be the log that hangs.
std::optional<int> Supervisor::worker_hangs() {
  killed_ = true;
  if (const std::optional<int> status = kill_worker(kDiesWithin)) return worker_ended(*status);
  // The kernel holds it in a call. When that call returns, the worker ends without doing anything
  // more; what the call itself may still freeze is thawed then.
  thaw();
  spdlog::error("the worker hangs in the kernel: thawed its pods, waiting for its end");
  return std::nullopt;
}

void Supervisor::thaw() {
  thaw_everything(options_.places, [this] { return has_to_end_now(); });
}

// 1. At a stop the worker's own thaw is believed if it ended with 0. 2. Otherwise all that its
//    journal names is thawed. 3. A worker that never began to work is not started again: its exit
//    code becomes the supervisor's. 4. Any other is started again after a pause.
std::optional<int> Supervisor::worker_ended(int status) {
  const bool got_to_work = heartbeat_.main_beat().load() > 0;
  const bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  // A worker that ends well has thawed everything itself.
  if (stopping_since_ && well) return 0;
  thaw();
  if (stopping_since_) return kExitFailed;
  // It ended before it began to work: wrong options, or no cgroups. Starting it again would end the
  // same way, and kubelet should see that.
  if (!got_to_work && WIFEXITED(status)) return WEXITSTATUS(status);
  spdlog::error("the worker {} code={} signal={}: starting it again",
                killed_ ? "hung and was killed" : "ended",
                WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  if (clock_.monotonic() - started_at_ > kLivedWell) restart_after_ = kRestartFirst;
  clock_.pause(restart_after_);
  restart_after_ = std::min(restart_after_ * 2, kRestartMax);
  return start_worker() ? std::nullopt : std::optional{kExitFailed};
}

bool Supervisor::has_to_end_now() const {
  return stopping_since_ && clock_.monotonic() - *stopping_since_ >= kStopWithin;
}

// During a stop no later than the end of the worker's time.
base::Duration Supervisor::next_look() const {
  if (!stopping_since_) return kLookEvery;
  const base::Duration left = *stopping_since_ + kStopWithin - clock_.monotonic();
  return std::clamp(left, base::Duration{0}, kLookEvery);
}

// The order within a round matters: a worker that has ended is handled before its beats are judged,
// since a dead worker does not beat; and the end of the grace time goes before patience with a hung
// one.
int Supervisor::run() {
  if (!start_worker()) return kExitFailed;
  give_back_text();
  for (;;) {
    const std::optional<int> signal = wait_for_news(next_look());
    const base::Duration now = clock_.monotonic();
    if ((signal == SIGTERM || signal == SIGINT) && !stopping_since_) {
      stopping_since_ = now;
      ::kill(worker_, SIGTERM);
    }
    if (const std::optional<int> status = reap()) {
      if (const std::optional<int> code = worker_ended(*status)) return *code;
      continue;
    }
    if (has_to_end_now()) {
      (void)kill_worker(kDiesWithinAtStop);
      thaw();
      spdlog::error("the worker did not stop: thawed its pods");
      return kExitFailed;
    }
    // A worker that was killed and does not die is stuck in the kernel. It beats no more, and
    // killing it again changes nothing: only reap() counts now.
    if (killed_) continue;
    if (watch_.hangs(heartbeat_.main_beat().load(), heartbeat_.switcher_beat().load(), now)) {
      if (const std::optional<int> code = worker_hangs()) return *code;
    }
  }
}

}  // namespace

int supervise(const SupervisorOptions& options, RunLock& lock) {
  base::Result<Heartbeat> heartbeat =
      Heartbeat::create(options.places.run_directory + "/" + kHeartbeatName);
  if (!heartbeat) return fail_with(heartbeat.error());
  return Supervisor{options, lock, *std::move(heartbeat)}.run();
}

}  // namespace agent
