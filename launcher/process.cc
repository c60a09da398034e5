#include "launcher/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>

extern char** environ;

namespace launcher {
namespace {

constexpr const char* kDirectoryOtherwise = "/tmp";  // Slurm's, for a folder that is missing
constexpr int kSignalsEnd = 65;
constexpr int kOctal = 8;

bool has_name(const std::string& entry, std::string_view name) {
  return entry.size() > name.size() && entry[name.size()] == '=' &&
         entry.compare(0, name.size(), name) == 0;
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const std::string& text : strings) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

// Looks where srun does: in PATH, for files that may be run, then in the working directory. There
// is no PATH if it is not set, and no shell for a file that does not name one. SOURCE: recorded.
// The program hears where it was found.
void execute(const Program& program, char** argv, char** environment) {
  const std::string& name = program.argv[0];
  const auto run = [&](std::string path) {
    argv[0] = path.data();
    ::execve(argv[0], argv, environment);
  };
  const auto run_here = [&] {
    char* const here = ::getcwd(nullptr, 0);
    run(here == nullptr || name.empty() ? name : std::string{here} + "/" + name);
  };
  if (name.starts_with('/')) return run(name);
  if (name.find('/') != std::string::npos) return run_here();
  std::string left = value_or(program.environment, "PATH", "");
  while (!left.empty() && !name.empty()) {
    const std::size_t end = std::min(left.find(':'), left.size());
    const std::string folder = end == 0 ? "." : left.substr(0, end);
    left.erase(0, end + 1);
    const std::string path = folder + "/" + name;
    struct stat found {};
    if (::access(path.c_str(), X_OK) == 0 && ::stat(path.c_str(), &found) == 0 &&
        S_ISREG(found.st_mode)) {
      return run(path);
    }
  }
  run_here();
}

[[noreturn]] void become(const Program& program, char** argv, char** environment) {
  ::setsid();
  // A pod ends with its first process anyway, unless its containers share their processes.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int number = 1; number < kSignalsEnd; ++number) ::signal(number, SIG_DFL);
  sigset_t none{};
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // Above those that they become, so none overwrites another.
  const int from[] = {program.input, program.output, program.error, program.extra};
  const int count = program.extra < 0 ? 3 : 4;
  int copies[4];
  for (int i = 0; i < count; ++i) copies[i] = ::fcntl(from[i], F_DUPFD, count);
  for (int i = 0; i < count; ++i) ::dup2(copies[i], i);
  ::close_range(static_cast<unsigned>(count), ~0U, 0);
  if (program.has_terminal) ::ioctl(STDIN_FILENO, TIOCSCTTY, 0);
  if (program.umask) {
    ::umask(static_cast<mode_t>(std::strtoul(program.umask->c_str(), nullptr, kOctal)));
  }
  const auto say = [&](const char* what, const std::string& which) {
    ::dprintf(2, "%s: error: %s%s: %s\n", program.speaker.c_str(), what, which.c_str(),
              std::strerror(errno));
  };
  if (!program.directory.empty() && ::chdir(program.directory.c_str()) != 0) {
    const int why = errno;
    ::dprintf(2, "%s: error: couldn't chdir to `%s': %s: going to %s instead\n",
              program.speaker.c_str(), program.directory.c_str(), std::strerror(why),
              kDirectoryOtherwise);
    if (::chdir(kDirectoryOtherwise) != 0) (void)!::chdir("/");
  }
  environ = environment;
  execute(program, argv, environment);
  const int why = errno;
  say("execve(): ", program.argv[0]);
  ::_exit(why);
}

}  // namespace

Environment own_environment() {
  Environment all;
  for (char** entry = environ; *entry != nullptr; ++entry) all.emplace_back(*entry);
  return all;
}

std::optional<std::string> value_of(const Environment& environment, std::string_view name) {
  for (auto entry = environment.rbegin(); entry != environment.rend(); ++entry) {
    if (has_name(*entry, name)) return entry->substr(name.size() + 1);
  }
  return std::nullopt;
}

std::string value_or(const Environment& environment, std::string_view name,
                     std::string_view otherwise) {
  return value_of(environment, name).value_or(std::string{otherwise});
}

std::uint32_t number_or(const std::string& text, std::uint32_t otherwise) {
  std::uint32_t value = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

void set(Environment& environment, std::string_view name, std::string_view value) {
  unset(environment, name);
  environment.push_back(std::string{name} + "=" + std::string{value});
}

void unset(Environment& environment, std::string_view name) {
  std::erase_if(environment, [&](const std::string& entry) { return has_name(entry, name); });
}

std::string own_directory() {
  char path[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  if (size <= 0) return "/";
  const std::string_view whole{path, static_cast<std::size_t>(size)};
  return std::string{whole.substr(0, std::max<std::size_t>(whole.rfind('/'), 1))};
}

pid_t start(const Program& program) {
  // Made before the fork: the child only makes system calls and prints.
  std::vector<char*> argv = pointers(program.argv);
  std::vector<char*> environment = pointers(program.environment);
  std::array<char, 32> number{};  // SLURM_TASK_PID
  environment.back() = number.data();
  environment.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    std::snprintf(number.data(), number.size(), "SLURM_TASK_PID=%d", ::getpid());
    become(program, argv.data(), environment.data());
  }
  return pid;
}

void signal_sessions(const std::set<pid_t>& sessions, int number) {
  // The leaders' groups at once: they may be larger than what one look at /proc finds.
  for (const pid_t session : sessions) ::kill(-session, number);
  std::set<pid_t> known;
  bool has_new = !sessions.empty();
  for (int i = 0; has_new && i < kKillLooksMax; ++i) {
    has_new = false;
    for (const std::string& name : names_in("/proc")) {
      const auto pid = static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10));
      if (pid <= 1) continue;
      const pid_t session = ::getsid(pid);
      if (!sessions.contains(session) || !known.insert(pid).second) continue;
      // Processes in the leader's group have got it.
      if (::getpgid(pid) != session) ::kill(pid, number);
      has_new = number == SIGKILL;
    }
  }
}

int take_signals() {
  sigset_t all{};
  ::sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::sigdelset(&all, fault);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  return ::signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
}

std::optional<int> next_signal(int fd) {
  signalfd_siginfo info{};
  if (::read(fd, &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      pollfd ready{.fd = fd, .events = POLLOUT, .revents = 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory{::opendir(folder.c_str()), ::closedir};
  while (directory != nullptr) {
    const dirent* const entry = ::readdir(directory.get());
    if (entry == nullptr) break;
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  return names;
}

std::string text_of_file(const std::string& path) {
  std::string text;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char bytes[4096];
  ssize_t count = 0;
  while ((count = ::read(fd, bytes, sizeof bytes)) > 0) {
    text.append(bytes, static_cast<std::size_t>(count));
  }
  ::close(fd);
  return text;
}

int shell_code(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace launcher
