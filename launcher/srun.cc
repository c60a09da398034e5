#include "launcher/srun.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "launcher/message.h"
#include "launcher/net.h"
#include "launcher/process.h"
#include "launcher/run_time.h"
#include "launcher/script_environment.h"
#include "launcher/srun_options.h"
#include "launcher/step_output.h"
#include "launcher/terminal.h"
#include "slurm/distribution.h"
#include "slurm/exit_code.h"
#include "slurm/file_name.h"
#include "slurm/hostlist.h"

namespace launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFailed = 1;
// From SIGTERM to SIGKILL: Slurm's KillWait.
constexpr std::chrono::seconds kKillPatience{30};
constexpr std::uint32_t kExitCodeMax = 0xFF;
// The most input that the launcher has not taken: above it no more is read.
constexpr std::size_t kUnsentBytesMax = 1U << 20U;
// Between two looks whether the terminal may be read.
constexpr int kForegroundLookMs = 1'000;

int say(const std::string& message, int code = kFailed) {
  std::fprintf(stderr, "srun: error: %s\n", message.c_str());
  return code;
}

std::optional<std::string> variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>{value};
}

base::Result<std::string> whole_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return base::invalid_argument(path + ": " + std::strerror(errno));
  std::string text;
  std::array<char, kChunkBytesMax> bytes{};
  ssize_t count = 0;
  while ((count = ::read(fd, bytes.data(), bytes.size())) > 0) {
    text.append(bytes.data(), static_cast<std::size_t>(count));
  }
  ::close(fd);
  if (count < 0) return base::invalid_argument(path + ": " + std::strerror(errno));
  return text;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// Reads --export: ALL, NONE, or names and NAME=VALUE, possibly with ALL among them.
Environment exported(const std::string& exports) {
  const Environment own = own_environment();
  Environment all;
  std::string left = exports;
  bool has_all = false;
  Environment named;
  while (!left.empty()) {
    const std::size_t end = std::min(left.find(','), left.size());
    const std::string word = left.substr(0, end);
    left.erase(0, std::min(end + 1, left.size()));
    const std::size_t equals = word.find('=');
    if (word == "ALL") has_all = true;
    if (equals != std::string::npos) set(named, word.substr(0, equals), word.substr(equals + 1));
    if (const auto value = value_of(own, word)) set(named, word, *value);
  }
  for (const std::string& entry : own) {
    // The variables of where the task and srun are do not depend on the user's choice.
    const bool is_needed = entry.starts_with("SLURM") || entry.starts_with("KUBEGANG_");
    if (has_all || is_needed) all.push_back(entry);
  }
  for (const std::string& entry : named) {
    const std::size_t equals = entry.find('=');
    // SOURCE: recorded: beside ALL a value is for a variable that is not there yet.
    if (has_all && value_of(own, entry.substr(0, equals))) continue;
    set(all, entry.substr(0, equals), entry.substr(equals + 1));
  }
  return all;
}

class Srun {
 public:
  Srun(SrunOptions options, StepRequest request)
      : options_{std::move(options)}, asked_{std::move(request)} {
    const auto names = slurm::expand_hostlist(variable("SLURM_JOB_NODELIST").value_or(""));
    if (names) nodes_ = *names;
  }

  // 1. the step is asked for, and waits for room if it must
  // 2. files
  // 3. input, output, signals, until all tasks have ended
  int run(const std::string& address) {
    auto request = step_request(address.substr(address.find(':') + 1));
    if (!request) return say(request.error().message);
    if (options_.wants_terminal) {
      window_ = window_of(STDIN_FILENO);
      if (!window_) say("Not using a pseudo-terminal, disregarding --pty option");
      request->window = window_.value_or(Window{});
    }
    socket_ = connect_locally(address.substr(0, address.find(':')));
    if (socket_ < 0) {
      return say("the job's launcher does not answer: " + std::string{std::strerror(errno)});
    }
    sigset_t taken{};
    ::sigemptyset(&taken);
    for (const int signal :
         {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH}) {
      ::sigaddset(&taken, signal);
    }
    ::sigprocmask(SIG_BLOCK, &taken, nullptr);
    signals_ = ::signalfd(-1, &taken, SFD_CLOEXEC);
    // SOURCE: recorded (session pipe_ends): without a reader the tasks go on, and their exit code
    // is srun's.
    ::signal(SIGPIPE, SIG_IGN);
    send({.kind = Kind::kCreate, .step = *request});
    while (!is_over_) {
      wait();
      if (failure_) return *failure_;
    }
    terminal_.reset();
    tell_failures();
    return aborted_with_.value_or(exit_code_);
  }

 private:
  base::Result<StepRequest> step_request(const std::string& secret) {
    StepRequest request = asked_;
    request.secret = secret;
    request.name = options_.job_name;
    request.environment = exported(options_.exports);
    Environment& environment = request.environment;
    const std::string tasks = std::to_string(asked_.tasks);
    for (const char* name : {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS"}) {
      set(environment, name, tasks);
    }
    if (asked_.distribution == Distribution::kPlane) {
      set(environment, "SLURM_DIST_PLANESIZE", std::to_string(asked_.plane));
    }
    for (const char* name : {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_TASK_PID"}) {
      unset(environment, name);
    }
    if (!options_.job_name.empty()) set(environment, "SLURM_JOB_NAME", options_.job_name);
    const mode_t mask = ::umask(0);
    ::umask(mask);
    std::array<char, 8> octal{};
    std::snprintf(octal.data(), octal.size(), "%04o", mask);
    set(environment, "SLURM_UMASK", octal.data());
    for (const auto& [name, value] : options_.variables) set(environment, name, value);
    if (options_.overcommits) set(environment, "SLURM_OVERCOMMIT", "1");
    unset(environment, "SLURM_MPI_TYPE");
    if (options_.mpi != Mpi::kNone) set(environment, "SLURM_MPI_TYPE", options_.mpi_name);
    if (options_.cpus_per_task) {
      set(environment, "SLURM_CPUS_PER_TASK", std::to_string(*options_.cpus_per_task));
    }
    char* const own = ::getcwd(nullptr, 0);
    request.directory = own == nullptr ? "/" : own;
    std::free(own);
    if (!value_of(environment, "SLURM_SUBMIT_DIR")) {
      set(environment, "SLURM_SUBMIT_DIR", request.directory);
    }
    const std::string& wanted = options_.directory;
    if (wanted.starts_with('/')) {
      request.directory = wanted;
    } else if (!wanted.empty()) {
      request.directory += "/" + wanted;
    }
    if (!options_.is_multi_prog) {
      request.programs = {options_.command};
      return request;
    }
    const auto text = whole_file(options_.command.front());
    if (!text) return text.error();
    auto programs = read_multi_prog(*text, asked_.tasks, std::span{options_.command}.subspan(1));
    if (!programs) return programs.error().with_context(options_.command.front());
    request.programs = std::move(programs).value();
    return request;
  }

  // Never waits: the launcher reads no input while its output is not taken, so a srun that waited
  // here would wait forever.
  void send(const Message& message) {
    to_send_ += encode(message);
    flush();
  }

  // A launcher that is gone is seen by the end of its stream.
  void flush() {
    while (!to_send_.empty()) {
      const ssize_t count =
          ::send(socket_, to_send_.data(), to_send_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno != EAGAIN) to_send_.clear();
      if (count < 0) return;
      to_send_.erase(0, static_cast<std::size_t>(count));
    }
  }

  void wait() {
    const bool is_behind = is_in_background(input_);
    const bool takes_input = !is_held_ && !is_behind && to_send_.size() < kUnsentBytesMax;
    const auto events = static_cast<short>(to_send_.empty() ? POLLIN : POLLIN | POLLOUT);
    std::array<pollfd, 3> ready{
        {{.fd = socket_, .events = events, .revents = 0},
         {.fd = signals_, .events = POLLIN, .revents = 0},
         {.fd = takes_input ? input_ : -1, .events = POLLIN, .revents = 0}}};
    int timeout_ms = patience_ms();
    if (is_behind && (timeout_ms < 0 || timeout_ms > kForegroundLookMs)) {
      timeout_ms = kForegroundLookMs;
    }
    const int count = ::poll(ready.data(), ready.size(), timeout_ms);
    look_at_clock();
    if (count <= 0) return;
    if (ready[1].revents != 0) take_signal();
    if (ready[2].revents != 0) read_input();
    if ((ready[0].revents & POLLOUT) != 0) flush();
    if ((ready[0].revents & ~POLLOUT) != 0) read_socket();
  }

  // Until look_at_clock() has something to do; -1: never.
  int patience_ms() const {
    int timeout_ms = -1;
    if (deadline_) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - Clock::now());
      timeout_ms = static_cast<int>(std::max<std::int64_t>(left.count(), 0));
    }
    if (!run_time_) return timeout_ms;
    const auto step = static_cast<int>(RunTime::kStep.count());
    return timeout_ms < 0 ? step : std::min(timeout_ms, step);
  }
  void look_at_clock() {
    if (run_time_ && run_time_->at(Clock::now()) >= *options_.time_limit) pass_time_limit();
    if (deadline_ && Clock::now() >= *deadline_) pass_deadline();
  }

  // Writes what tasks have printed. Signals and limits do not wait for who reads it. A pipe takes
  // PIPE_BUF at once when poll() finds it writable.
  void write_output(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
      std::array<pollfd, 2> ready{{{.fd = fd, .events = POLLOUT, .revents = 0},
                                   {.fd = signals_, .events = POLLIN, .revents = 0}}};
      const int count = ::poll(ready.data(), ready.size(), patience_ms());
      look_at_clock();
      if (count <= 0) continue;
      if (ready[1].revents != 0) take_signal();
      if (ready[0].revents == 0) continue;
      const ssize_t written =
          ::write(fd, bytes.data(), std::min<std::size_t>(bytes.size(), PIPE_BUF));
      if (written < 0 && errno != EINTR && errno != EAGAIN) return;
      if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  void read_socket() {
    std::array<char, kChunkBytesMax> bytes{};
    const ssize_t count = ::read(socket_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) return;
    if (count > 0) reader_.add({bytes.data(), static_cast<std::size_t>(count)});
    while (const std::optional<Message> message = reader_.next()) handle(*message);
    if (is_over_ || failure_ || (count > 0 && !reader_.is_broken())) return;
    failure_ = say("the job's launcher has ended");
  }

  void handle(const Message& message) {
    switch (message.kind) {
      case Kind::kBusy:
        was_busy_ = true;
        inform("Job " + job_id() +
               " step creation temporarily disabled, retrying (Requested nodes are busy)");
        return;
      case Kind::kCreated:
        step_id_ = std::to_string(message.number);
        layout_ = *message.layout;
        if (options_.time_limit) run_time_.emplace(Clock::now(), Clock::duration{});
        if (was_busy_) inform("Step created for job " + job_id());
        open_files();
        if (window_) terminal_.emplace(STDIN_FILENO);
        return;
      case Kind::kRefused:
        failure_ = say("Unable to create step for job " + job_id() + ": " + message.text);
        return;
      case Kind::kOutput:
        if (output_) output_->add(message.rank, static_cast<int>(message.number), message.text);
        return;
      case Kind::kHold:
        is_held_ = message.number != 0;
        return;
      case Kind::kExited:
        for (const TaskEnd& end : message.ends) {
          ended(end.rank, static_cast<int>(end.wait_status));
        }
        return;
      case Kind::kLost:
        return lost(message.number);
      case Kind::kAborted:
        return aborted(message);
      case Kind::kDone:
        is_over_ = true;
        return;
      case Kind::kCreate:
      case Kind::kInput:
      case Kind::kInputEnd:
      case Kind::kSignal:
      case Kind::kResize:
      case Kind::kRelay:
        return;  // srun's own
      case Kind::kHello:
      case Kind::kRun:
      case Kind::kPmi:
      case Kind::kPmix:
      case Kind::kAck:
      case Kind::kResume:
        return;  // between launchers
      case Kind::kSignalJob:
      case Kind::kRelease:
      case Kind::kRequeue:
        return;  // scancel's, salloc's and scontrol's
    }
  }

  void inform(const std::string& message) const {
    if (!options_.is_quiet) std::fprintf(stderr, "srun: %s\n", message.c_str());
  }

  static std::string job_id() { return variable("SLURM_JOB_ID").value_or("0"); }

  // Returns "" if the step has no such task, or no place yet.
  std::string node_of(std::uint32_t rank) const {
    if (rank >= layout_.places.size()) return "";
    return node_name(layout_.nodes[layout_.places[rank]]);
  }
  std::string node_name(std::uint32_t node) const {
    return node < nodes_.size() ? nodes_[node] : "";
  }

  // Slurm ends the job as well; here the operator does, if the pod is lost.
  void lost(std::uint32_t node) {
    say("Node failure on " + node_name(node));
    if (!is_ending_ && !options_.survives_nodes) end_step();
  }

  // The launcher kills the tasks; here KillWait later, if the one that aborts does not end.
  // SOURCE: recorded: the exit code is what MPI_Abort says.
  void aborted(const Message& message) {
    if (message.text.empty()) {
      aborted_with_ = static_cast<int>(message.number & kExitCodeMax);
    } else {
      say(message.text);
    }
    const std::string patience = std::to_string(kKillPatience.count());
    inform("Job step aborted: Waiting up to " + patience + " seconds for job step to finish.");
    is_ending_ = true;
    deadline_ = Clock::now() + kKillPatience;
  }

  slurm::NameParts name_parts(std::uint32_t rank) const {
    return {.job_id = job_id(),
            .array_id = variable("SLURM_ARRAY_JOB_ID").value_or(""),
            .array_task = variable("SLURM_ARRAY_TASK_ID").value_or(""),
            .step_id = step_id_,
            .job_name = options_.job_name.empty() ? variable("SLURM_JOB_NAME").value_or("")
                                                  : options_.job_name,
            .user = variable("SLURM_JOB_USER").value_or(""),
            .node = node_of(rank),
            .node_index = rank < layout_.places.size() ? static_cast<int>(layout_.places[rank]) : 0,
            .task = static_cast<int>(rank)};
  }

  // Each name once: tasks whose names are the same share the file.
  int open_output(const std::string& pattern, std::uint32_t rank) {
    const std::string name = pattern == "none" ? "/dev/null" : file_name(pattern, name_parts(rank));
    const auto known = files_.find(name);
    if (known != files_.end()) return known->second;
    const int mode = options_.appends ? O_APPEND : O_TRUNC;
    const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | mode, 0666);
    if (fd < 0) say("Could not open stdout file " + name + ": " + std::strerror(errno));
    return files_[name] = fd;
  }

  // --output without --error is for both. A number is the one task that is heard.
  void open_files() {
    std::vector<std::array<int, 2>> fds;
    const std::array<int, 2> own{without_waiting(STDOUT_FILENO), without_waiting(STDERR_FILENO)};
    for (std::uint32_t rank = 0; rank < asked_.tasks; ++rank) {
      std::array<int, 2> of_task = own;
      // SOURCE: srun(1), --pty: the others are not heard.
      if (window_ && rank > 0) of_task.fill(open_output("none", rank));
      const std::string* const patterns[] = {
          &options_.output, options_.error.empty() ? &options_.output : &options_.error};
      for (std::size_t i = 0; i < 2; ++i) {
        if (window_ || patterns[i]->empty() || *patterns[i] == "all") continue;
        const bool is_task = is_number(*patterns[i]);
        if (is_task && static_cast<std::uint32_t>(std::atoi(patterns[i]->c_str())) == rank)
          continue;
        of_task[i] = open_output(is_task ? "/dev/null" : *patterns[i], rank);
      }
      if (of_task[0] < 0 || of_task[1] < 0) {
        failure_ = kFailed;
        return;
      }
      fds.push_back(of_task);
    }
    output_.emplace(std::move(fds), options_.has_labels, options_.is_unbuffered || window_,
                    [this](int fd, std::string_view bytes) { write_output(fd, bytes); });
    open_input();
  }

  void open_input() {
    const std::string input = window_ ? "0" : options_.input;
    if (input == "none") {
      send({.kind = Kind::kInputEnd, .rank = kAllTasks});
    } else if (is_number(input)) {
      // All other tasks have none.
      input_rank_ = static_cast<std::uint32_t>(std::atoi(input.c_str()));
      for (std::uint32_t rank = 0; rank < asked_.tasks; ++rank) {
        if (rank != input_rank_) send({.kind = Kind::kInputEnd, .rank = rank});
      }
      input_ = STDIN_FILENO;
    } else if (input.empty() || input == "all") {
      input_ = STDIN_FILENO;
      read_waiting_input();
    } else {
      input_ = ::open(file_name(input, name_parts(0)).c_str(), O_RDONLY | O_CLOEXEC);
      if (input_ < 0) failure_ = say("Could not open stdin file " + input + ": " + strerror(errno));
    }
  }

  // SOURCE: recorded: what is there when the step begins is taken from the script, also by tasks
  // that end without a look at it: `while read …; do srun …; done < list`.
  void read_waiting_input() {
    pollfd ready{.fd = input_, .events = POLLIN, .revents = 0};
    if (::isatty(input_) == 0 && ::poll(&ready, 1, 0) == 1) read_input();
  }

  void read_input() {
    std::string bytes(kChunkBytesMax, '\0');
    const ssize_t count = ::read(input_, bytes.data(), bytes.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (count > 0) {
      bytes.resize(static_cast<std::size_t>(count));
      return send({.kind = Kind::kInput, .rank = input_rank_, .text = std::move(bytes)});
    }
    input_ = -1;
    send({.kind = Kind::kInputEnd, .rank = input_rank_});
  }

  void take_signal() {
    const std::optional<int> taken = next_signal(signals_);
    if (!taken) return;
    const int number = *taken;
    if (number == SIGWINCH) return resize();
    if (number == SIGCONT || number == SIGUSR1 || number == SIGUSR2) return send_signal(number);
    // A step that has not begun has nothing to end.
    if (step_id_.empty()) {
      failure_ = 128 + number;
      return;
    }
    if (number == SIGINT) return interrupt();
    inform("forcing job termination");
    end_step();
  }

  // A Ctrl-C by itself asks what runs; a second one within a second is passed on to the tasks, and
  // a third one ends them. SOURCE: srun(1), --quit-on-interrupt, --disable-status.
  void interrupt() {
    constexpr std::chrono::seconds kTogether{1};
    const auto now = Clock::now();
    const bool is_again = interrupted_at_ && now - *interrupted_at_ <= kTogether;
    interrupted_at_ = now;
    if (!is_again && !options_.has_no_status && !options_.quits_on_interrupt) {
      inform("interrupt (one more within 1 sec to abort)");
      inform("StepId=" + job_id() + "." + step_id_ + " tasks running");
      return;
    }
    const bool was_passed_on = passed_on_at_ && now - *passed_on_at_ <= kTogether;
    passed_on_at_ = now;
    if (was_passed_on) {
      send_signal(SIGCONT);
      return send_signal(SIGKILL);
    }
    inform("sending Ctrl-C to StepId=" + job_id() + "." + step_id_);
    send_signal(SIGINT);
  }

  void resize() {
    if (!terminal_) return;
    if (const auto window = window_of(STDIN_FILENO)) window_ = window;
    send({.kind = Kind::kResize, .number = pack_window(*window_)});
  }

  void send_signal(int number) {
    send({.kind = Kind::kSignal, .number = static_cast<std::uint32_t>(number)});
  }

  // SIGTERM, and SIGKILL after KillWait, or when it is asked for once more.
  void end_step() {
    send_signal(SIGCONT);
    send_signal(is_ending_ ? SIGKILL : SIGTERM);
    is_ending_ = true;
    deadline_ = Clock::now() + kKillPatience;
  }

  void pass_time_limit() {
    run_time_.reset();
    inform("Job step aborted: the step's time limit is over");
    if (!is_ending_) end_step();
  }

  // KillWait after SIGTERM, or --wait after the first task's end.
  void pass_deadline() {
    deadline_.reset();
    send_signal(SIGCONT);
    send_signal(SIGKILL);
  }

  void ended(std::uint32_t rank, int status) {
    if (output_) output_->end(rank);
    const int code = shell_code(status);
    exit_code_ = std::max(exit_code_, code);
    if (code != 0) failures_[{node_of(rank), status}].push_back(rank);
    if (code != 0 && options_.kills_on_bad_exit && !is_ending_) {
      inform("launch/slurm: _step_signal: Terminating StepId=" + job_id() + "." + step_id_);
      end_step();
    }
    if (options_.wait_s > 0 && !deadline_) {
      deadline_ = Clock::now() + std::chrono::seconds{options_.wait_s};
    }
  }

  void tell_failures() const {
    for (const auto& [node_and_status, ranks] : failures_) {
      const auto& [node, status] = node_and_status;
      std::string line = node + (ranks.size() == 1 ? ": task " : ": tasks ");
      std::vector<std::uint32_t> sorted = ranks;
      std::ranges::sort(sorted);
      for (std::size_t i = 0; i < sorted.size(); ++i) {
        std::size_t last = i;
        while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1) ++last;
        line += (i == 0 ? "" : ",") + std::to_string(sorted[i]);
        if (last > i) line += "-" + std::to_string(sorted[last]);
        i = last;
      }
      line += WIFSIGNALED(status)
                  ? std::string{": "} + ::strsignal(WTERMSIG(status))
                  : ": Exited with exit code " + std::to_string(WEXITSTATUS(status));
      say(line);
    }
  }

  const SrunOptions options_;
  const StepRequest asked_;
  std::vector<std::string> nodes_;  // of the job
  StepLayout layout_;
  int socket_ = -1;
  std::string to_send_;
  int signals_ = -1;
  int input_ = -1;        // -1: none, or at its end
  bool is_held_ = false;  // tasks have input enough
  std::uint32_t input_rank_ = kAllTasks;
  MessageReader reader_;
  std::string step_id_;
  std::map<std::string, int> files_;
  std::optional<StepOutput> output_;
  // Ranks by node and wait status.
  std::map<std::pair<std::string, int>, std::vector<std::uint32_t>> failures_;
  std::optional<Clock::time_point> deadline_;
  std::optional<RunTime> run_time_;  // with -t; the time in which a turn is off does not count
  std::optional<Clock::time_point> interrupted_at_;
  std::optional<Clock::time_point> passed_on_at_;  // to the tasks
  std::optional<Window> window_;                   // --pty, if srun has a terminal
  std::optional<RawTerminal> terminal_;            // while the step runs
  bool was_busy_ = false;
  bool is_ending_ = false;
  bool is_over_ = false;
  int exit_code_ = 0;
  std::optional<int> aborted_with_;
  std::optional<int> failure_;
};

// A nodelist with a slash names a file. SLURM_HOSTFILE names one for a step without -w, whose tasks
// are then arranged as it says. SOURCE: srun(1), --nodelist, SLURM_HOSTFILE.
base::Status read_nodelist(SrunOptions& options) {
  std::string path = options.nodelist.find('/') != std::string::npos ? options.nodelist : "";
  if (options.nodelist.empty()) {
    path = variable("SLURM_HOSTFILE").value_or("");
    if (!path.empty()) options.distribution = Distribution::kArbitrary;
  }
  if (path.empty()) return {};
  const auto text = whole_file(path);
  if (!text) return text.error().with_context("Failure getting NodeNames from hostfile");
  options.nodelist = slurm::read_hostfile(*text);
  return {};
}

// Sets what is not set of FACTS (script_environment): Snakemake, for one, takes all variables of
// Slurm away but the number of the job.
void restore_facts(std::string facts) {
  while (!facts.empty()) {
    const std::size_t end = std::min(facts.find(' '), facts.size());
    const std::string fact = facts.substr(0, end);
    facts.erase(0, end + 1);
    const std::size_t equals = std::min(fact.find('='), fact.size());
    const std::string name = std::string{kNamesBegin} + fact.substr(0, equals);
    ::setenv(name.c_str(), fact.substr(std::min(equals + 1, fact.size())).c_str(), 0);
  }
}

void show_help() {
  std::puts(
      "Usage: srun [OPTIONS] PROGRAM [ARGUMENTS]\n\n"
      "Starts a step of the job whose script calls it. Options are Slurm's:\n"
      "  -n, -N, -c, --ntasks-per-node, -w, -r, -m, --exact, --exclusive, --overlap, -I, -O\n"
      "  -l, -u, -o, -e, -i, --open-mode, --multi-prog, -K, -W, -D, -J, --export, -Q, --pty\n"
      "  --mpi=none|pmi2|pmix|list");
}

}  // namespace

int run_srun(std::span<const std::string> arguments) {
  const bool knows_nodes = variable("SLURM_NNODES") || variable("SLURM_JOB_NUM_NODES");
  restore_facts(variable("KUBEGANG_JOB").value_or(""));
  auto options = read_srun_options(arguments, variable);
  if (!options) return say(options.error().message, slurm::exit_code_of(options.error()));
  if (options->shows_version) {
    std::puts("slurm 22.05.8 (kubegang)");
    return 0;
  }
  if (options->shows_help) {
    show_help();
    return 0;
  }
  if (options->lists_mpi) {
    std::puts(
        "MPI plugin types are...\n\tpmix\n\tnone\n\tpmi2\n"
        "specific pmix plugin versions available: pmix_v4");
    return 0;
  }
  const auto address = variable("KUBEGANG_STEPS");
  if (!address || address->find(':') == std::string::npos) {
    return say(
        "not called from a batch script's job (KUBEGANG_STEPS is not set): a job of its own "
        "is not there yet; submit a script with sbatch");
  }
  if (!options->job_id.empty() && options->job_id != variable("SLURM_JOB_ID")) {
    return say("--jobid=" + options->job_id + ": only the own job is possible");
  }
  options->counts_named = !knows_nodes;
  if (const base::Status status = read_nodelist(*options); !status) {
    return say(status.error().message);
  }
  auto plan = plan_step(*options, variable);
  if (!plan) return say(plan.error().message);
  for (const std::string& complaint : plan->complaints) say(complaint);
  for (const std::string& warning : plan->warnings) {
    std::fprintf(stderr, "srun: Warning: %s\n", warning.c_str());
  }
  return Srun{*options, plan->request}.run(*address);
}

}  // namespace launcher
