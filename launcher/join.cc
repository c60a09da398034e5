#include "launcher/join.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/batch.h"
#include "launcher/message.h"
#include "launcher/net.h"
#include "launcher/process.h"
#include "launcher/script_environment.h"
#include "launcher/srun.h"
#include "launcher/terminal.h"
#include "slurm/remote_step.h"

extern char** environ;

namespace launcher {
namespace {

// The most input that srun has not read: above it the caller sends no more.
constexpr std::size_t kInputBytesMax = 1U << 20U;
// The most output that the caller has not taken: above it srun is not read.
constexpr std::size_t kOutputBytesMax = 1U << 20U;
constexpr std::size_t kPieceBytes = 65'536;

int complain(const std::string& message) {
  std::fprintf(stderr, "srun: error: %s\n", message.c_str());
  return 1;
}

std::string link_text(const std::string& path) {
  char text[PATH_MAX];
  const ssize_t size = ::readlink(path.c_str(), text, sizeof text);
  return size <= 0 ? "" : std::string{text, static_cast<std::size_t>(size)};
}

// Returns the folders of the processes of this program and user in our own cgroup.
std::vector<std::string> own_processes() {
  std::vector<std::string> folders;
  const std::string cgroup = text_of_file("/proc/self/cgroup");
  struct stat own {};
  if (::stat("/proc/self/exe", &own) != 0) return folders;
  for (const std::string& process : names_in("/proc")) {
    const std::string folder = "/proc/" + process;
    struct stat program {};
    if (::stat((folder + "/exe").c_str(), &program) == 0 && program.st_ino == own.st_ino &&
        program.st_dev == own.st_dev && text_of_file(folder + "/cgroup") == cgroup) {
      folders.push_back(folder);
    }
  }
  return folders;
}

bool has_join() {
  const std::string word{"\0join\0", 6};
  return std::ranges::any_of(own_processes(), [&](const std::string& folder) {
    return text_of_file(folder + "/cmdline").ends_with(word);
  });
}

// The launcher of this container has the address of the steps in a file without a name.
std::string steps_address() {
  const std::string wanted = std::string{"/memfd:"} + kStepsFile + " (deleted)";
  for (const std::string& folder : own_processes()) {
    for (const std::string& fd : names_in(folder + "/fd")) {
      const std::string path = folder + "/fd/" + fd;
      if (link_text(path) == wanted) return text_of_file(path);
    }
  }
  return "";
}

// The container may be entered before its launcher has begun. The time in which a turn is off does
// not count.
std::string steps_address_soon() {
  constexpr int kLookMs = 50;
  constexpr int kLooksMax = 200;
  std::string address = steps_address();
  for (int i = 0; address.empty() && i < kLooksMax; ++i) {
    ::poll(nullptr, 0, kLookMs);
    address = steps_address();
  }
  return address;
}

constexpr const char* kNoLauncher =
    "the job's launcher is not found in this container: has the job ended?";

// Sends one command to the launcher. Returns why it was not obeyed; "": it was. A launcher that
// ends meanwhile has obeyed.
std::string ask_launcher(const std::string& address, Message message) {
  const std::size_t colon = address.find(':');
  if (colon == std::string::npos) return kNoLauncher;
  const int fd = connect_locally(address.substr(0, colon));
  if (fd < 0) return std::string{"the job's launcher: "} + std::strerror(errno);
  message.text = address.substr(colon + 1);
  if (!write_all(fd, encode(message))) return "the job's launcher has ended";
  MessageReader reader;
  std::array<char, 4096> bytes{};
  for (;;) {
    const ssize_t count = ::read(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return "";
    reader.add({bytes.data(), static_cast<std::size_t>(count)});
    const auto answer = reader.next();
    if (!answer) continue;
    return answer->kind == Kind::kRefused ? answer->text : "";
  }
}

int ask_from_outside(const Message& message) {
  const std::string refusal = ask_launcher(steps_address_soon(), message);
  return refusal.empty() ? 0 : complain(refusal);
}

std::optional<std::uint32_t> number_of(const std::string& text) {
  std::uint32_t value = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc{} && read.ptr == end ? std::optional{value} : std::nullopt;
}

// srun in a child, and this process between it and who has called.
class Join {
 public:
  int run() {
    while (!has_begun_) {
      if (!read_more()) return 1;  // the caller does not wait for an answer
      while (!has_begun_) {
        const auto message = reader_.next();
        if (!message) break;
        prepare(*message);
      }
      if (reader_.is_broken()) return complain("not called by kubectl-gang");
    }
    if (version_ != slurm::kRemoteVersion) {
      return complain(
          "kubectl-gang and the launcher of this job are of versions that do not fit: "
          "update the older one");
    }
    const std::string address = steps_address_soon();
    if (address.empty()) return complain(kNoLauncher);
    // Asks for nothing: for as long as it is open the launcher, when it is to end, waits for what
    // srun says last.
    (void)connect_locally(address.substr(0, address.find(':')));
    if (!start(address)) return complain(std::string{"srun: "} + std::strerror(errno));
    // Says that srun runs: before that a caller's signal is lost.
    say(slurm::RemoteKind::kHold, "0");
    const auto process = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
    for (bool has_ended = false; !has_ended;) {
      while (const auto message = reader_.next()) pass_on(*message);
      balance();
      has_ended = wait(process);
    }
    while (read_output(kOutput) || read_output(kErrorOutput)) {
    }
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    say(slurm::RemoteKind::kEnd, std::to_string(shell_code(status)));
    (void)write_all(STDOUT_FILENO, to_say_);
    return shell_code(status);
  }

 private:
  static constexpr std::size_t kOutput = 0;  // in outputs_
  static constexpr std::size_t kErrorOutput = 1;

  void prepare(const slurm::RemoteMessage& message) {
    switch (message.kind) {
      case slurm::RemoteKind::kVersion:
        version_ = message.text;
        return;
      case slurm::RemoteKind::kArgument:
        arguments_.push_back(message.text);
        return;
      case slurm::RemoteKind::kVariable:
        variables_.push_back(message.text);
        return;
      case slurm::RemoteKind::kDirectory:
        directory_ = message.text;
        return;
      case slurm::RemoteKind::kTerminal:
        window_ = window_in(message.text);
        return;
      case slurm::RemoteKind::kRun:
        has_begun_ = true;
        return;
      case slurm::RemoteKind::kInput:
      case slurm::RemoteKind::kInputEnd:
      case slurm::RemoteKind::kSignal:
      case slurm::RemoteKind::kNothing:
        return;  // the caller is gone
      case slurm::RemoteKind::kOutput:
      case slurm::RemoteKind::kErrorOutput:
      case slurm::RemoteKind::kHold:
      case slurm::RemoteKind::kEnd:
        return;  // this program's own
    }
  }

  // Rows and columns. srun's own terminal is here: it reads what is typed at the one of who has
  // called, which passes all on as it is.
  static std::optional<Window> window_in(const std::string& text) {
    const std::size_t blank = std::min(text.find(' '), text.size());
    const auto rows = number_of(text.substr(0, blank));
    const auto columns = number_of(text.substr(std::min(blank + 1, text.size())));
    if (!rows || !columns || *rows == 0) return std::nullopt;
    return Window{.rows = *rows, .columns = *columns};
  }

  // Makes what srun reads from: a pipe, or a terminal. ends[0] is srun's.
  bool open_input(int (&ends)[2]) const {
    if (!window_) return ::pipe2(ends, O_CLOEXEC) == 0;
    const TerminalEnds terminal = open_terminal(*window_);
    ends[0] = terminal.program;
    ends[1] = terminal.ours;
    termios mode{};
    // Nothing that is typed is printed at it, where it would not be read.
    if (terminal.ours >= 0 && ::tcgetattr(terminal.program, &mode) == 0) {
      mode.c_lflag &= ~static_cast<tcflag_t>(ECHO);
      ::tcsetattr(terminal.program, TCSANOW, &mode);
    }
    return terminal.ours >= 0;
  }

  bool start(const std::string& address) {
    int ends[2];
    int output[2];
    int error[2];
    if (!open_input(ends) || ::pipe2(output, O_CLOEXEC) != 0 || ::pipe2(error, O_CLOEXEC) != 0) {
      return false;
    }
    // As slurmstepd: a folder that is missing here is a message, and /tmp.
    if (!directory_.empty() && ::chdir(directory_.c_str()) != 0) {
      std::fprintf(stderr, "srun: error: couldn't chdir to `%s': %s: going to /tmp instead\n",
                   directory_.c_str(), std::strerror(errno));
      directory_ = "/tmp";
      (void)!::chdir(directory_.c_str());
    }
    Environment environment =
        script_environment(own_environment(), variables_, directory_, address);
    unset(environment, "SLURM_JOB_GPUS");  // SOURCE: recorded: a batch script alone has it
    pid_ = ::fork();
    if (pid_ < 0) return false;
    if (pid_ > 0) {
      for (const int fd : {ends[0], output[1], error[1]}) ::close(fd);
      input_ = ends[1];
      outputs_ = {output[0], error[0]};
      for (const int fd : {input_, output[0], error[0], STDOUT_FILENO}) {
        ::fcntl(fd, F_SETFL, O_NONBLOCK);
      }
      return true;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(ends[0], STDIN_FILENO);
    if (window_) {
      ::setsid();
      ::ioctl(STDIN_FILENO, TIOCSCTTY, 0);
    }
    ::dup2(output[1], STDOUT_FILENO);
    ::dup2(error[1], STDERR_FILENO);
    for (const int fd : {ends[1], output[0], error[0]}) ::close(fd);
    std::vector<char*> entries;
    for (std::string& entry : environment) entries.push_back(entry.data());
    entries.push_back(nullptr);
    environ = entries.data();
    const int code = run_srun(arguments_);
    std::fflush(nullptr);
    ::_exit(code);
  }

  void pass_on(const slurm::RemoteMessage& message) {
    // After its end, or when srun has closed it, nothing takes it.
    if (message.kind == slurm::RemoteKind::kInput && input_ >= 0) pending_ += message.text;
    if (message.kind == slurm::RemoteKind::kInputEnd) input_ends_ = true;
    if (message.kind == slurm::RemoteKind::kTerminal && window_) {
      window_ = window_in(message.text).value_or(*window_);
      set_window(input_, *window_);
    }
    if (message.kind != slurm::RemoteKind::kSignal) return;
    if (const auto signal = number_of(message.text)) ::kill(pid_, static_cast<int>(*signal));
  }

  void say(slurm::RemoteKind kind, std::string text) {
    to_say_ += slurm::encode({kind, std::move(text)});
  }

  void balance() {
    const bool holds = pending_.size() > kInputBytesMax;
    if (holds == std::exchange(holds_, holds)) return;
    say(slurm::RemoteKind::kHold, holds ? "1" : "0");
  }

  // True: srun has ended.
  bool wait(int process) {
    // The end of a terminal is not its caller's to say.
    if (pending_.empty() && input_ends_ && input_ >= 0 && !window_) {
      ::close(std::exchange(input_, -1));
    }
    const bool reads_outputs = to_say_.size() < kOutputBytesMax;
    std::array<pollfd, 6> ready{
        {{.fd = process, .events = POLLIN, .revents = 0},
         {.fd = is_open_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0},
         {.fd = pending_.empty() ? -1 : input_, .events = POLLOUT, .revents = 0},
         {.fd = reads_outputs ? outputs_[kOutput] : -1, .events = POLLIN, .revents = 0},
         {.fd = reads_outputs ? outputs_[kErrorOutput] : -1, .events = POLLIN, .revents = 0},
         {.fd = to_say_.empty() ? -1 : STDOUT_FILENO, .events = POLLOUT, .revents = 0}}};
    if (::poll(ready.data(), ready.size(), -1) < 0) return errno != EINTR;
    if (ready[1].revents != 0 && (!read_more() || reader_.is_broken())) lose();
    if (ready[2].revents != 0) feed();
    // Output of tasks stands before srun's lines about their ends.
    const bool has_more = ready[3].revents != 0 && read_output(kOutput);
    if (ready[4].revents != 0 && !has_more) (void)read_output(kErrorOutput);
    if (ready[5].revents != 0) speak();
    return ready[0].revents != 0;
  }

  // srun's end ends the step.
  void lose() {
    is_open_ = false;
    ::kill(pid_, SIGKILL);
  }

  bool read_more() {
    std::array<char, 65'536> bytes{};
    ssize_t count = 0;
    do {
      count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    } while (count < 0 && errno == EINTR);
    if (count <= 0) return false;
    reader_.add({bytes.data(), static_cast<std::size_t>(count)});
    return true;
  }

  // False: all that there is has been read.
  bool read_output(std::size_t stream) {
    int& fd = outputs_[stream];
    if (fd < 0) return false;
    std::string bytes(kPieceBytes, '\0');
    const ssize_t count = ::read(fd, bytes.data(), bytes.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return errno == EINTR;
    if (count <= 0) {
      ::close(std::exchange(fd, -1));
      return false;
    }
    bytes.resize(static_cast<std::size_t>(count));
    say(stream == kOutput ? slurm::RemoteKind::kOutput : slurm::RemoteKind::kErrorOutput,
        std::move(bytes));
    return static_cast<std::size_t>(count) == kPieceBytes;
  }

  void speak() {
    const ssize_t count = ::write(STDOUT_FILENO, to_say_.data(), to_say_.size());
    if (count > 0) to_say_.erase(0, static_cast<std::size_t>(count));
    if (count >= 0 || errno == EAGAIN || errno == EINTR) return;
    to_say_.clear();
    lose();
  }

  void feed() {
    const ssize_t count = ::write(input_, pending_.data(), pending_.size());
    if (count > 0) pending_.erase(0, static_cast<std::size_t>(count));
    if (count >= 0 || errno == EAGAIN || errno == EINTR) return;
    pending_.clear();  // srun reads no more
    input_ends_ = true;
  }

  slurm::RemoteReader reader_;
  bool has_begun_ = false;
  std::string version_;
  std::vector<std::string> arguments_;
  std::vector<std::string> variables_;
  std::string directory_;
  std::optional<Window> window_;  // --pty of a caller who has a terminal
  pid_t pid_ = -1;
  int input_ = -1;
  std::array<int, 2> outputs_{-1, -1};  // srun's
  std::string pending_;                 // input that srun has not read
  std::string to_say_;
  bool holds_ = false;  // the caller was asked to wait
  bool input_ends_ = false;
  bool is_open_ = true;
};

}  // namespace

int run_join() {
  ::signal(SIGPIPE, SIG_IGN);
  return Join{}.run();
}

int run_signal(const std::string& signal, const std::string& who) {
  const auto number = number_of(signal);
  std::optional<std::uint32_t> target = number_of(who);
  if (who == "steps") target = kAllSteps;
  if (who == "script") target = kScriptAlone;
  if (who == "all") target = kWholeJob;
  if (!number || !target)
    return complain("signal " + signal + " " + who + ": not a signal and a target");
  return ask_from_outside({.kind = Kind::kSignalJob, .rank = *target, .number = *number});
}

int run_release(const std::string& code) {
  const auto number = number_of(code);
  if (!number) return complain("release " + code + ": not an exit code");
  return ask_from_outside({.kind = Kind::kRelease, .number = *number});
}

std::string request_requeue() {
  const auto of_script = value_of(own_environment(), "KUBEGANG_STEPS");
  return ask_launcher(of_script.value_or(""), {.kind = Kind::kRequeue});
}

int run_hold(const std::string& seconds) {
  constexpr int kLookMs = 1'000;
  if (seconds.empty()) {
    for (;;) ::pause();
  }
  const std::uint32_t patience = number_of(seconds).value_or(0);
  for (std::uint32_t alone = 0; alone < patience;) {
    ::poll(nullptr, 0, kLookMs);
    alone = has_join() ? 0 : alone + 1;
  }
  return complain("this job was not used for " + seconds + " s: it ends");
}

}  // namespace launcher
