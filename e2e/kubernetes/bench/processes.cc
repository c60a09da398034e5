#include "e2e/kubernetes/bench/processes.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace kubernetes_bench {
namespace {

// A shell's exit code for a program that cannot be run.
constexpr int kCannotRun = 127;

// Returns a file of /proc/<pid>; "" if the process is gone.
std::string text_of(pid_t pid, const char* file) {
  std::ifstream in{"/proc/" + std::to_string(pid) + "/" + file};
  return {std::istreambuf_iterator<char>{in}, {}};
}

// The kernel gives these fields in KiB.
double mebibytes_of(pid_t pid, const std::string& field) {
  std::istringstream lines{text_of(pid, "status")};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(field)) return std::stod(line.substr(field.size())) / 1024.0;
  }
  return 0;
}

}  // namespace

// 0 for a process that is gone. The program's name may contain spaces, so fields are counted from
// behind it.
double cpu_seconds(pid_t pid) {
  const std::string stat = text_of(pid, "stat");
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return 0;
  // After the name: state and ten numbers, then utime and stime in ticks.
  std::istringstream fields{stat.substr(name_end + 1)};
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// Returns nanoseconds by the name of the thread; threads of one name (writers) are summed. A thread
// that has ended is missing, so differences need a process whose threads stay.
ThreadTimes thread_times(pid_t pid) {
  ThreadTimes out;
  std::error_code error;
  const std::filesystem::path tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& task : std::filesystem::directory_iterator{tasks, error}) {
    std::string name;
    std::int64_t nanoseconds = 0;
    std::getline(std::ifstream{task.path() / "comm"}, name);
    // Nanoseconds on a CPU, far finer than the ticks of /proc/<pid>/stat.
    std::ifstream{task.path() / "schedstat"} >> nanoseconds;
    // The main thread has the program's name.
    if (std::to_string(pid) == task.path().filename()) name = "loop";
    out[name] += nanoseconds;
  }
  return out;
}

double rss_mebibytes(pid_t pid) {
  return mebibytes_of(pid, "VmRSS:");
}

double peak_rss_mebibytes(pid_t pid) {
  return mebibytes_of(pid, "VmHWM:");
}

// The child dies with this process. It looks at its parent once more, because that may have died
// between fork() and prctl().
base::Result<ChildProcess> ChildProcess::start(const std::vector<std::string>& command,
                                               const std::string& log_file) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const int log = ::open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) return base::Error{base::Code::kInvalidArgument, "cannot write " + log_file};
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  // Only calls that are safe after a fork in a program with threads.
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(kCannotRun);
    ::dup2(log, STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
    ::execv(arguments[0], arguments.data());
    ::_exit(kCannotRun);
  }
  ::close(log);
  if (pid < 0) return base::Error{base::Code::kUnavailable, "cannot start " + command[0]};
  return ChildProcess{pid};
}

// Waits as long as the program takes.
ChildProcess::~ChildProcess() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGTERM);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace kubernetes_bench
