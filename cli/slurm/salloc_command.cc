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
#include <ostream>

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
    InputVariable{"SALLOC_MEM_PER_CPU", "--mem-per-cpu"},
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
  std::string question;  // --help or such
};

base::Result<Salloc> read_arguments(std::span<const std::string> words, slurm::Now now) {
  Salloc read;
  read.job.sbatch = words_of_variables(kInputVariables);
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
  read.job.sbatch.emplace_back("--wrap=true");
  return read;
}

// Sets the variables that the job's script would see, except those of one node.
void set_variables(const HeldJob& held) {
  constexpr std::array<std::string_view, 9> kOfNode = {
      "SLURM_NODEID",        "SLURM_PROCID",   "SLURM_LOCALID",
      "SLURM_GTIDS",         "SLURM_TASK_PID", "SLURM_CPUS_ON_NODE",
      "SLURM_TOPOLOGY_ADDR", "SLURM_JOB_GID",  "SLURM_GET_USER_ENV"};
  for (const kube::EnvVar& variable : held.pod.spec.containers.front().env) {
    const bool is_of_node =
        std::ranges::find(kOfNode, variable.name) != kOfNode.end() || variable.field_path;
    if (!variable.name.starts_with("SLURM_") || is_of_node) continue;
    ::setenv(variable.name.c_str(), variable.value.c_str(), 1);
  }
  ::setenv("SLURM_SUBMIT_DIR", std::filesystem::current_path().c_str(), 1);
}

struct CommandEnd {
  int code = 0;
  bool was_stopped = false;  // by a signal to salloc
};

// A Ctrl-C at the terminal is the command's, which is in the same group; the others are passed on.
// SOURCE: the code of a command that a signal has ended is 0, as recorded.
CommandEnd run_command(const HeldJob& held, const std::vector<std::string>& command,
                       const TakenSignals& signals, Output output) {
  output.out.flush();
  const pid_t pid = ::fork();
  if (pid == 0) {
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
  if (pid < 0) return {.code = fail(output, std::string{"fork: "} + std::strerror(errno))};
  bool was_stopped = false;
  const auto process = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  for (;;) {
    std::array<pollfd, 2> ready{{{process, POLLIN, 0}, {signals.descriptor(), POLLIN, 0}}};
    ::poll(ready.data(), ready.size(), -1);
    if (ready[1].revents != 0) {
      const int signal = signals.next();
      if (signal == SIGTERM || signal == SIGHUP) {
        ::kill(pid, signal);
        was_stopped = true;
      }
    }
    if (ready[0].revents != 0) break;
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  ::close(process);
  return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0, .was_stopped = was_stopped};
}

int allocate(const Session& session, const SubmitRequest& request, const Salloc& read,
             Output output) {
  const TakenSignals signals;
  const auto inform = [&](const std::string& message) {
    if (!read.is_quiet) output.err << "salloc: " << message << "\n" << std::flush;
  };
  const auto held = hold_job(session, request, "salloc", signals, output);
  if (!held) return fail(output, held.error().message);
  const std::string id = std::to_string(*held->job.status.job_id);
  inform("Granted job allocation " + id);
  const CommandEnd end = run_command(*held, read.command, signals, output);
  inform("Relinquishing job allocation " + id);
  if (end.was_stopped) {
    (void)cancel_job(session, held->job);
  } else {
    release_job(session, *held, end.code, signals, output);
  }
  return end.code;
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
  return with_cluster(
      [&](const Session& session) { return allocate(session, *request, *read, output); });
}

}  // namespace cli
