#include "cli/slurm/salloc_command.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <ostream>
#include <utility>

#include "cli/local_zone.h"
#include "cli/slurm/remote_step.h"
#include "kube/clock.h"
#include "slurm/exit_code.h"
#include "slurm/sbatch.h"

namespace cli {
namespace {

// SOURCE: salloc(1), "INPUT ENVIRONMENT VARIABLES". The command line beats them.
constexpr std::array kInputVariables = {
    InputVariable{"SALLOC_ACCOUNT", "--account"},
    InputVariable{"SALLOC_CONSTRAINT", "--constraint"},
    InputVariable{"SALLOC_CPUS_PER_GPU", "--cpus-per-gpu"},
    InputVariable{"SALLOC_GPUS", "--gpus"},
    InputVariable{"SALLOC_GPUS_PER_NODE", "--gpus-per-node"},
    InputVariable{"SALLOC_GPUS_PER_SOCKET", "--gpus-per-socket"},
    InputVariable{"SALLOC_GPUS_PER_TASK", "--gpus-per-task"},
    InputVariable{"SALLOC_GRES", "--gres"},
    InputVariable{"SALLOC_MEM_PER_CPU", "--mem-per-cpu"},
    InputVariable{"SALLOC_MEM_PER_GPU", "--mem-per-gpu"},
    InputVariable{"SALLOC_MEM_PER_NODE", "--mem"},
    InputVariable{"SALLOC_PARTITION", "--partition"},
    InputVariable{"SALLOC_QOS", "--qos"},
    InputVariable{"SALLOC_TIMELIMIT", "--time"},
    InputVariable{"SLURM_JOB_NAME", "--job-name"},
};

int fail(Output output, const std::string& message, int code = kExitFailed) {
  output.err << "salloc: error: " << message << "\n";
  return code;
}

struct Salloc {
  SubmitArguments job;
  std::vector<std::string> command;
  bool is_quiet = false;
  bool keeps_job = false;            // --no-shell
  std::optional<int> kill_signal{};  // -K: to the command when the job has ended
  std::string question;              // --help or such
};

// SOURCE: salloc(1), --kill-command.
std::optional<int> kill_signal_of(const std::string& text) {
  if (!text.empty()) return slurm::signal_number(text);
  return ::isatty(STDIN_FILENO) != 0 ? SIGHUP : SIGTERM;
}

// True: the word is -K or its long form.
base::Result<bool> read_kill_option(const std::string& word, Salloc& read) {
  constexpr std::string_view kLong = "--kill-command";
  const bool is_long =
      word.starts_with(kLong) && (word.size() == kLong.size() || word[kLong.size()] == '=');
  if (!is_long && !word.starts_with("-K")) return false;
  const std::string value = word.substr(std::min(word.size(), is_long ? kLong.size() + 1 : 2));
  read.kill_signal = kill_signal_of(value);
  if (!read.kill_signal) return base::invalid_argument(word + ": not a signal");
  return true;
}

base::Result<Salloc> read_arguments(std::span<const std::string> words, slurm::Now now) {
  Salloc read;
  read.job.variables = words_of_variables(kInputVariables);
  const char* const kill_command = std::getenv("SALLOC_KILL_CMD");
  if (kill_command != nullptr) read.kill_signal = kill_signal_of(kill_command);
  slurm::SbatchReader checked{now};
  std::size_t i = 0;
  for (; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.size() < 2 || word.front() != '-' || word == "--") break;
    if (asks_about_command(word)) {
      read.question = word;
      return read;
    }
    if (word == "-Q" || word == "--quiet") {
      read.is_quiet = true;
      continue;
    }
    if (word == "--no-shell") {
      read.keeps_job = true;
      continue;
    }
    const auto is_kill_option = read_kill_option(word, read);
    if (!is_kill_option) return is_kill_option.error();
    if (*is_kill_option) continue;
    const auto of_pod = read_pod_option(words, i, read.job.pod);
    if (!of_pod) return of_pod.error();
    if (*of_pod) continue;
    const std::size_t first = i;
    if (const base::Status status = checked.add_option(words, i); !status) return status.error();
    for (std::size_t at = first; at <= i; ++at) read.job.sbatch.push_back(words[at]);
  }
  if (i < words.size() && words[i] == "--") ++i;
  read.command.assign(words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
  const char* const shell = std::getenv("SHELL");
  if (read.command.empty()) read.command = {shell == nullptr ? "/bin/sh" : shell};
  read.job.takes_variables = true;
  read.job.is_allocation = true;
  read.job.sbatch.emplace_back("--wrap=true");
  return read;
}

// Sets the variables that the job's script would see, except those of one node.
void set_variables(const HeldJob& held) {
  constexpr std::array<std::string_view, 11> kOfNode = {
      "SLURM_NODEID",       "SLURM_PROCID",       "SLURM_LOCALID",       "SLURM_GTIDS",
      "SLURM_TASK_PID",     "SLURM_CPUS_ON_NODE", "SLURM_TOPOLOGY_ADDR", "SLURM_JOB_GID",
      "SLURM_GET_USER_ENV", "SLURM_JOB_GPUS",     "SLURM_GPUS_ON_NODE"};
  for (const kube::EnvVar& variable : held.pod.spec.containers.front().env) {
    const bool is_of_node =
        std::ranges::find(kOfNode, variable.name) != kOfNode.end() || variable.field_path;
    if (!variable.name.starts_with("SLURM_") || is_of_node) continue;
    ::setenv(variable.name.c_str(), variable.value.c_str(), 1);
  }
  ::setenv("SLURM_SUBMIT_DIR", std::filesystem::current_path().c_str(), 1);
}

[[noreturn]] void become(const HeldJob& held, const std::vector<std::string>& command) {
  sigset_t none{};
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  set_variables(held);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  ::dprintf(STDERR_FILENO, "salloc: error: %s: %s\n", argv[0], std::strerror(errno));
  ::_exit(1);
}

// An allocation while its command runs here.
//
// SOURCE: all of it as recorded. The end of the job is reported, and its command runs on, also a
// shell at a terminal, but for -K. SIGTERM and SIGINT to salloc cancel the job; at a terminal
// Ctrl-C is the command's alone. SIGHUP goes to the command, and salloc ends. The code of a command
// that HUP, INT, QUIT or KILL has ended is 0, of one that another signal has ended 1.
class Allocation {
 public:
  Allocation(const Session& session, const HeldJob& held, const Salloc& read,
             const TakenSignals& signals, Output output)
      : session_{session}, held_{held}, read_{read}, signals_{signals}, output_{output} {}

  // Returns the exit code of salloc.
  int run() {
    inform("Granted job allocation " + id_);
    // SOURCE: recorded (session salloc_kept): a command has no effect.
    if (read_.keeps_job) return kExitOk;
    output_.out.flush();
    pid_ = ::fork();
    if (pid_ == 0) become(held_, read_.command);
    if (pid_ < 0) return fail(output_, std::string{"fork: "} + std::strerror(errno));
    const int code = wait_for_command();
    look();
    if (is_revoked_) return code;
    inform("Relinquishing job allocation " + id_);
    if (!is_canceled_) {
      release_job(session_, held_, was_hung_up_ ? 0 : code, signals_, output_);
    } else if (ends_soon(session_, held_.job, signals_)) {
      look();
    }
    return code;
  }

 private:
  int wait_for_command() {
    const auto process = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
    while (!was_hung_up_) {
      std::array<pollfd, 2> ready{{{process, POLLIN, 0}, {signals_.descriptor(), POLLIN, 0}}};
      const int count = ::poll(ready.data(), ready.size(), is_revoked_ ? -1 : look_ms());
      if (count == 0) look();
      if (ready[1].revents != 0) take_signal(signals_.next());
      if (ready[0].revents != 0) break;
    }
    ::close(process);
    int status = 0;
    if (was_hung_up_) return kExitFailed;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    const std::array ordinary = {SIGHUP, SIGINT, SIGQUIT, SIGKILL};
    return std::ranges::count(ordinary, WTERMSIG(status)) > 0 ? kExitOk : kExitFailed;
  }

  int look_ms() const { return is_canceled_ ? 1'000 : 10'000; }

  void look() {
    if (is_revoked_ || !has_ended(session_, held_.job)) return;
    is_revoked_ = true;
    inform("Job allocation " + id_ + " has been revoked.");
    if (!read_.kill_signal || pid_ < 0) return;
    for (const int signal : {*read_.kill_signal, SIGCONT}) ::kill(pid_, signal);
  }

  void take_signal(int signal) {
    const bool is_for_us = signal == SIGTERM || (signal == SIGINT && ::isatty(STDIN_FILENO) == 0);
    if (is_for_us && !is_revoked_) {
      const base::Status canceled = cancel_job(session_, held_.job);
      is_canceled_ = canceled.ok();
      if (!canceled) (void)fail(output_, "job " + id_ + ": " + canceled.error().message);
    }
    if (signal != SIGHUP) return;
    ::kill(pid_, SIGHUP);
    was_hung_up_ = true;
  }

  void inform(const std::string& message) const {
    if (!read_.is_quiet) output_.err << "salloc: " << message << "\n" << std::flush;
  }

  const Session& session_;
  const HeldJob& held_;
  const Salloc& read_;
  const TakenSignals& signals_;
  const Output output_;
  const std::string id_ = std::to_string(*held_.job.status.job_id);
  pid_t pid_ = -1;
  bool is_canceled_ = false;  // by a signal to salloc
  bool is_revoked_ = false;   // the job has ended, and that was reported
  bool was_hung_up_ = false;
};

int allocate(const Session& session, const SubmitRequest& request, const Salloc& read,
             Output output) {
  const TakenSignals signals;
  const auto held = hold_job(session, request, "salloc", signals, output);
  if (!held) return fail(output, held.error().message);
  // SOURCE: recorded (session gpu_variables_salloc): the options, as a script would see them.
  for (const auto& [name, value] : request.options.variables) {
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  return Allocation{session, *held, read, signals, output}.run();
}

}  // namespace

int run_salloc(std::span<const std::string> arguments, const WithCluster& with_cluster,
               Output output) {
  const slurm::Now now = local_time(kube::SystemClock{}.wall());
  const auto read = read_arguments(arguments, now);
  if (!read) return fail(output, read.error().message, slurm::exit_code_of(read.error()));
  if (!read->question.empty()) {
    output.out << answer_about_command("salloc", "[COMMAND [ARGUMENTS]]", read->question,
                                       slurm::sbatch_help());
    return kExitOk;
  }
  auto request = read_submit(read->job, now);
  if (!request) {
    return fail(output, request.error().message, slurm::exit_code_of(request.error()));
  }
  // SOURCE: recorded, whatever the command is.
  if (request->options.request.name.empty()) request->name = "interactive";
  for (const std::string& warning : request->options.warnings) {
    output.err << "salloc: warning: " << warning << "\n";
  }
  std::error_code error;
  request->options.working_directory = std::filesystem::current_path(error).string();
  return with_cluster.in(request->options.cluster)(
      [&](const Session& session) { return allocate(session, *request, *read, output); });
}

}  // namespace cli
