#include "node-agent/survival/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>

#include "linux/clock.h"
#include "node-agent/freezer/pod_cgroups.h"
#include "node-agent/survival/exit_message.h"
#include "node-agent/survival/heartbeat.h"
#include "node-agent/survival/journal.h"
#include "node-agent/survival/thaw_journaled.h"
#include "node-agent/survival/worker_watch.h"
#include "node-agent/switching/switch_clock.h"

namespace agent {
namespace {

constexpr base::Duration kLookEvery = std::chrono::milliseconds{500};
// Told to stop, the program has 2 s: the worker until then, and what is left is thawed from here.
constexpr base::Duration kStopWithin = std::chrono::milliseconds{1850};
constexpr base::Duration kRestartFirst = std::chrono::milliseconds{50};
constexpr base::Duration kRestartMax = std::chrono::seconds{1};
constexpr base::Duration kLivedWell = std::chrono::seconds{10};
constexpr int kThawAttemptsMax = 20;
constexpr base::Duration kThawAgainAfter = std::chrono::milliseconds{50};
// A killed process is gone at once, unless the kernel holds one of its threads.
constexpr base::Duration kDiesWithin = std::chrono::milliseconds{250};
constexpr base::Duration kDiesWithinAtStop = std::chrono::milliseconds{50};
constexpr base::Duration kDeadLookEvery = std::chrono::milliseconds{2};

sigset_t watched_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) ::sigaddset(&set, signal);
  return set;
}

// Waits for one of the watched signals; nothing when the time is over.
std::optional<int> wait_for_signal(base::Duration timeout) {
  const sigset_t set = watched_signals();
  const timespec relative = os::to_timespec(timeout);
  const int signal = ::sigtimedwait(&set, nullptr, &relative);
  if (signal < 0) return std::nullopt;
  return signal;
}

// Gives back the program text that the start has touched (of OpenSSL, of the libraries' own
// starts): a few pages of it come back when they are needed. Only text, which is never changed in
// memory.
void give_back_text() {
  std::ifstream maps{"/proc/self/maps"};
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    char rights[5] = {};
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s", &begin, &end, rights) != 3)
      continue;
    if (std::string_view{rights} != "r-xp" || line.find('/') == std::string::npos) continue;
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
}

class Supervisor {
 public:
  Supervisor(const SupervisorOptions& options, Heartbeat heartbeat)
      : options_{options}, heartbeat_{std::move(heartbeat)} {}

  int run();

 private:
  bool start_worker();
  // The worker's exit status, once it has ended. Takes in every other child of PID 1 too.
  std::optional<int> reap();
  void thaw_everything();
  // Its exit status; nothing when it does not end.
  std::optional<int> kill_worker(base::Duration within);
  bool has_to_end_now() const;
  // An exit code when the program is over.
  std::optional<int> worker_hangs();
  // An exit code when the program is over.
  std::optional<int> worker_ended(int status);
  base::Duration next_look() const;

  const SupervisorOptions& options_;
  Heartbeat heartbeat_;
  RealSwitchClock clock_;
  WorkerWatch watch_;
  pid_t worker_ = 0;
  bool killed_ = false;  // the worker was, for hanging, and has not ended yet
  base::Duration started_at_{};
  base::Duration restart_after_ = kRestartFirst;
  std::optional<base::Duration> stopping_since_;
};

bool Supervisor::start_worker() {
  std::vector<char*> arguments;
  for (const std::string& argument : options_.worker_command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));  // execv's signature
  }
  arguments.push_back(nullptr);
  heartbeat_.clear();
  const pid_t supervisor = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    spdlog::error("cannot start the worker error=\"{}\"", std::strerror(errno));
    return false;
  }
  if (child == 0) {
    // As in a container, where PID 1 takes everybody along: no worker without a supervisor.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != supervisor) ::_exit(kExitFailed);
    // The signals stay blocked: one that comes before the worker looks for it waits until then.
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

// Thaws before it logs, here as everywhere: the log may be what hangs.
std::optional<int> Supervisor::worker_hangs() {
  killed_ = true;
  if (const std::optional<int> status = kill_worker(kDiesWithin)) return worker_ended(*status);
  // The kernel holds it in a call. Once that is over it ends without doing anything more; what that
  // very call may still freeze is thawed then.
  thaw_everything();
  spdlog::error("the worker hangs in the kernel: thawed its pods, waiting for its end");
  return std::nullopt;
}

void Supervisor::thaw_everything() {
  const base::Result<PodCgroups> cgroups =
      PodCgroups::open(options_.cgroup_root, options_.kubelet_root);
  if (!cgroups) {
    spdlog::error("cannot thaw error=\"{}\"", cgroups.error().message);
    return;
  }
  const base::Result<Journal> journal =
      JournalFile{options_.run_directory + "/" + kJournalName}.read(read_boot_id());
  if (!journal) {
    if (journal.error().code == base::Code::kNotFound) return;  // Nothing was ever frozen.
    // The next worker asks the API server which pods are ours.
    spdlog::error("cannot thaw: the journal is damaged error=\"{}\"", journal.error().message);
    return;
  }
  ThawResult result;
  for (int attempt = 0; attempt < kThawAttemptsMax; ++attempt) {
    result = thaw_journaled(*journal, *cgroups);
    if (result.failed.empty() || has_to_end_now()) break;
    clock_.pause(kThawAgainAfter);
  }
  spdlog::warn("thawed what the journal names thawed={} gone={} failed={}", result.thawed_count,
               result.gone_count, result.failed.size());
  for (const std::string& failure : result.failed) spdlog::error("not thawed pod={}", failure);
}

std::optional<int> Supervisor::worker_ended(int status) {
  const bool got_to_work = heartbeat_.main_beat().load() > 0;
  const bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (stopping_since_ && well) return 0;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitTaken) return kExitTaken;
  thaw_everything();
  if (stopping_since_) return kExitFailed;
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

base::Duration Supervisor::next_look() const {
  if (!stopping_since_) return kLookEvery;
  const base::Duration left = *stopping_since_ + kStopWithin - clock_.monotonic();
  return std::clamp(left, base::Duration{0}, kLookEvery);
}

int Supervisor::run() {
  if (!start_worker()) return kExitFailed;
  give_back_text();
  for (;;) {
    const std::optional<int> signal = wait_for_signal(next_look());
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
      thaw_everything();
      spdlog::error("the worker did not stop: thawed its pods");
      return kExitFailed;
    }
    if (killed_) continue;
    if (watch_.hangs(heartbeat_.main_beat().load(), heartbeat_.switcher_beat().load(), now)) {
      if (const std::optional<int> code = worker_hangs()) return *code;
    }
  }
}

}  // namespace

int supervise(const SupervisorOptions& options) {
  base::Result<Heartbeat> heartbeat =
      Heartbeat::create(options.run_directory + "/" + kHeartbeatName);
  if (!heartbeat) return fail_with(heartbeat.error());
  return Supervisor{options, *std::move(heartbeat)}.run();
}

}  // namespace agent
