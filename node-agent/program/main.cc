#include <fcntl.h>
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "linux/open_files.h"
#include "linux/text_file.h"
#include "node-agent/freezer/hierarchy.h"
#include "node-agent/program/cluster_check.h"
#include "node-agent/program/options.h"
#include "node-agent/program/worker.h"
#include "node-agent/reporting/clock_check.h"
#include "node-agent/reporting/inspect.h"
#include "node-agent/reporting/node_check.h"
#include "node-agent/survival/exit_message.h"
#include "node-agent/survival/guard.h"
#include "node-agent/survival/run_lock.h"
#include "node-agent/survival/supervisor.h"
#include "node-agent/switching/switch_clock.h"

// One program, four commands. The agent itself starts twice: first as the supervisor, which holds
// the run directory's lock, then, by the supervisor's exec, as the worker (kWorkerVariable). guard
// uses the run directory as well; inspect and check only read.
namespace agent {
namespace {

// For how long the agent waits for the one before it to be gone, or for the guard to thaw.
constexpr base::Duration kLockWithin = std::chrono::seconds{2};

// Never block on logging: if the log pipe is full, the line is lost. The pipe is opened again so
// that O_NONBLOCK is set for this program only, not for others that write into the same pipe.
void never_wait_for_the_log() {
  ::signal(SIGPIPE, SIG_IGN);
  struct stat about {};
  if (::fstat(STDERR_FILENO, &about) != 0 || !S_ISFIFO(about.st_mode)) return;
  const int file = ::open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return;
  ::dup2(file, STDERR_FILENO);
  ::close(file);
}

// UTC with microseconds: lines of several nodes can be put in order.
void set_up_log(const std::string& level) {
  never_wait_for_the_log();
  auto logger = spdlog::stderr_logger_mt("agent");
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%fZ %l %v", spdlog::pattern_time_type::utc);
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

// Reads what an agent left in its run directory and the kernel's state of those pods. Takes no lock
// and writes nothing, so it is safe beside a running agent.
int run_inspect(const Options& options) {
  const base::Result<PodCgroups> cgroups =
      PodCgroups::open(options.cgroup_root, options.kubelet_cgroup_root);
  if (!cgroups) return fail_with(cgroups.error());
  const JournalFile file{options.run_directory + "/" + kJournalName};
  const base::Result<Journal> journal = file.read(read_boot_id());
  // A damaged journal is shown as such; any other error (the right is missing) is the caller's.
  const bool none = !journal && journal.error().code == base::Code::kNotFound;
  const bool damaged = !journal && journal.error().code == base::Code::kInvalidArgument;
  if (!journal && !none && !damaged) return fail_with(journal.error());
  const base::Result<std::string> shown =
      os::read_text_file(options.run_directory + "/" + kShownPodsName, kShownPodsBytesMax);
  if (none && !shown) {
    return fail_with(
        {base::Code::kNotFound, "run directory " + options.run_directory +
                                    ": no agent has used it: name the agent's with --run-dir"});
  }
  std::string text = agent_runs(options.run_directory)
                         ? "agent        running\n"
                         : "agent        not running: this is what it left\n";
  if (damaged) {
    text += "journal      damaged: " + journal.error().message + "\n";
  } else {
    text += inspect(journal ? *journal : Journal{}, parse_shown_pods(shown ? *shown : ""), *cgroups,
                    RealSwitchClock{}.wall());
  }
  std::fputs(text.c_str(), stdout);
  return 0;
}

// Needs no agent and no journal. Probed rights (SCHED_FIFO, locked memory) are given back at once.
// The exit code is for scripts: 0 if gangs can be switched here, 1 if not.
int run_check(const Options& options) {
  if (options.whole_cluster) return run_cluster_check(options.kubeconfig);
  const std::vector<Grant> grants = check_node({.cgroup_root = options.cgroup_root,
                                                .kubelet_root = options.kubelet_cgroup_root,
                                                .run_directory = options.run_directory,
                                                .fifo = probe_fifo(),
                                                .memory_locked = probe_locked_memory(),
                                                .open_files_max = os::open_files_max(),
                                                .clock = read_clock_state()});
  std::fputs(format_grants(grants).c_str(), stdout);
  return can_switch(grants) ? 0 : kExitFailed;
}

// Before there is any thread, which would otherwise must block them itself, and as early as
// possible: a blocked signal stays pending until we wait for it.
void block_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) ::sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
}

// Fails early, with a sentence about the option to change: later the same mistake would look like a
// pod that has no cgroup.
base::Status make_ready(const Options& options) {
  if (base::Status status = check_cgroup_root(options.cgroup_root, options.kubelet_cgroup_root);
      !status) {
    return status;
  }
  std::error_code error;
  std::filesystem::create_directories(options.run_directory, error);
  if (!error) return {};
  return base::Error{base::Code::kPermissionDenied,
                     "run directory " + options.run_directory + ": " + error.message() +
                         ": name a writable one on tmpfs with --run-dir"};
}

// Runs a command that uses the run directory: guard, or agent, alone or with a supervisor.
// The lock decides who may freeze. The guard opens it and does not take it: it tries to, again and
// again, and thaws when it succeeds, since the agent is gone then.
int run_in_directory(const Options& options, std::vector<std::string> command) {
  if (const base::Status status = make_ready(options); !status) return fail_with(status.error());
  const AgentPlaces places{.run_directory = options.run_directory,
                           .cgroup_root = options.cgroup_root,
                           .kubelet_root = options.kubelet_cgroup_root};
  base::Result<RunLock> lock = RunLock::open(options.run_directory);
  if (!lock) return fail_with(lock.error());
  if (options.command == Command::kGuard) return run_guard(places, *lock);
  // An exit code of its own, because a restart alone does not help: another agent owns the
  // directory.
  if (const base::Status taken = lock->take_within(kLockWithin); !taken) {
    (void)fail_with(taken.error());
    return kExitTaken;
  }
  if (!options.supervise) return run_worker(options);
  return supervise({.places = places, .worker_command = std::move(command)}, *lock);
}

// 1. parse the options, 2. block the signals of a program that stays, 3. find the cgroup root, 4.
//    run the command.
int run(std::vector<std::string> arguments) {
  const std::vector<std::string> flags{arguments.begin() + 1, arguments.end()};
  ParsedOptions parsed = parse_options(flags);
  if (parsed.exit_code) {
    std::fputs(parsed.text.c_str(), *parsed.exit_code == 0 ? stdout : stderr);
    return *parsed.exit_code;
  }
  Options& options = parsed.options;
  const bool stays = options.command == Command::kRun || options.command == Command::kGuard;
  if (stays) block_signals();
  if (options.cgroup_root.empty()) {
    base::Result<std::string> root = detect_cgroup_root();
    // `check` goes on without a hierarchy: that none is mounted is one of the things it reports.
    if (root) {
      options.cgroup_root = *std::move(root);
    } else if (options.command != Command::kCheck) {
      return fail_with(root.error());
    }
  }
  if (options.command == Command::kCheck) return run_check(options);
  if (options.command == Command::kInspect) return run_inspect(options);
  set_up_log(options.log_level);
  // The supervisor starts this program again as its worker. That one needs no lock of its own: it
  // has inherited the supervisor's.
  if (std::getenv(kWorkerVariable) != nullptr) return run_worker(options);
  return run_in_directory(options, std::move(arguments));
}

}  // namespace
}  // namespace agent

int main(int argc, char** argv) {
  return agent::run({argv, argv + argc});
}
