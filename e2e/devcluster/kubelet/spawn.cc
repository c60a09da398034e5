#include "e2e/devcluster/kubelet/spawn.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <string_view>
#include <system_error>

#include "linux/system_error.h"

// Starting a process takes care for three reasons. The devcluster has many threads, so between
// clone and exec the child may not take a lock, allocate, or run the code of a sanitizer. The
// process must be in its cgroup from its first instruction on, or a freeze would miss it. And a
// failure in the child must become an error here, with its reason, since users see it as the status
// of a container.
namespace devcluster {
namespace {

using base::Code;
using base::Error;

// The data that the child needs, made ready by the parent: after clone3 in a program with threads
// the child may only make system calls.
struct ChildPlan {
  const char* program = nullptr;
  char* const* argv = nullptr;
  char* const* environment = nullptr;
  const char* working_dir = nullptr;
  int input_fd = -1;
  int output_fd = -1;
  int error_output_fd = -1;
  int error_fd = -1;  // the step that failed and its errno go there
  int procs_fd = -1;  // v1: cgroup.procs
  const Mount* mounts = nullptr;
  std::size_t mounts_count = 0;
  const char* hostname = nullptr;  // nullptr: the machine's
  std::size_t hostname_size = 0;
  const int* kept_fds = nullptr;  // ascending
  std::size_t kept_fds_count = 0;
};

// The steps of the child that may fail, for the message. Both structs go through a pipe within one
// program, so their layout does not matter beyond it.
enum class Step : std::int32_t { kCgroup, kView, kWorkingDir, kOutput, kExec };

struct Failure {
  Step step = Step::kExec;
  std::int32_t error_number = 0;
};

// The kernel's own struct for rt_sigaction on x86-64 and arm64; glibc's has another layout.
struct KernelSigaction {
  void (*handler)(int) = nullptr;
  unsigned long flags = 0;
  void (*restorer)() = nullptr;
  std::uint64_t mask = 0;
};

// The kernel's number of signals, real-time ones included.
constexpr int kSignalsMax = 64;

// The sanitizers' own code must not run in the child, whose other threads, and the locks that they
// hold, do not exist. g++ and clang have this one spelling in common.
#define UNSANITIZED __attribute__((no_sanitize("address", "thread", "undefined")))

// Makes a system call and nothing else. Arguments are longs, the type of the kernel's interface;
// unused ones are 0.
UNSANITIZED long raw(long number, long a = 0, long b = 0, long c = 0, long d = 0) {
  return ::syscall(number, a, b, c, d, 0);
}

template <typename T>
UNSANITIZED long address(const T* pointer) {
  return static_cast<long>(reinterpret_cast<std::uintptr_t>(pointer));
}

// Tells the parent which step failed and why, and ends the child without running exit handlers,
// which belong to the parent's copy of the program.
[[noreturn]] UNSANITIZED void child_fail(const ChildPlan& plan, Step step) {
  const Failure failure{step, errno};
  raw(SYS_write, plan.error_fd, address(&failure), sizeof failure);
  // 127 is a shell's code for a command that was not found; nothing reads it.
  raw(SYS_exit_group, 127);
  __builtin_unreachable();
}

// Closes everything from 3 up but the kept ones and the error pipe (which exec closes).
UNSANITIZED void mark_close_on_exec(const ChildPlan& plan) {
  raw(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC);
  for (std::size_t i = 0; i < plan.kept_fds_count; ++i) {
    raw(SYS_fcntl, plan.kept_fds[i], F_SETFD, 0);
  }
}

// The child is in name spaces of its own for mounts and for the host's name.
UNSANITIZED void enter_view(const ChildPlan& plan) {
  if (plan.hostname == nullptr) return;
  // Else what is mounted here would be seen by the whole machine.
  if (raw(SYS_mount, 0, address("/"), 0, MS_REC | MS_PRIVATE) != 0) child_fail(plan, Step::kView);
  for (std::size_t i = 0; i < plan.mounts_count; ++i) {
    const Mount& mount = plan.mounts[i];
    if (raw(SYS_mount, address(mount.from.c_str()), address(mount.to.c_str()), 0, MS_BIND) != 0) {
      child_fail(plan, Step::kView);
    }
  }
  if (plan.hostname_size > 0 &&
      raw(SYS_sethostname, address(plan.hostname), static_cast<long>(plan.hostname_size)) != 0) {
    child_fail(plan, Step::kView);
  }
}

// Everything between clone3 and exec, in this order: the cgroup first, because no instruction of
// the program may run outside it; signals before the file descriptors, since a handler of this
// program could touch those; exec last.
[[noreturn]] UNSANITIZED void run_child(const ChildPlan& plan) {
  // "0" is the writer itself. In a frozen cgroup the write returns after the thaw only (freezer.md
  // 2.5).
  if (plan.procs_fd >= 0 && raw(SYS_write, plan.procs_fd, address("0"), 1) != 1) {
    child_fail(plan, Step::kCgroup);
  }
  enter_view(plan);
  // A session of its own: a Ctrl-C at the terminal goes to the devcluster alone.
  raw(SYS_setsid);
  const KernelSigaction by_default;
  // Ignored signals survive exec; the program gets the default for each.
  for (int number = 1; number <= kSignalsMax; ++number) {
    if (number == SIGKILL || number == SIGSTOP) continue;
    raw(SYS_rt_sigaction, number, address(&by_default), 0, sizeof by_default.mask);
  }
  const std::uint64_t nothing_blocked = 0;
  raw(SYS_rt_sigprocmask, SIG_SETMASK, address(&nothing_blocked), 0, sizeof nothing_blocked);
  if (raw(SYS_chdir, address(plan.working_dir)) != 0) child_fail(plan, Step::kWorkingDir);
  if (raw(SYS_dup3, plan.input_fd, 0, 0) < 0 || raw(SYS_dup3, plan.output_fd, 1, 0) < 0 ||
      raw(SYS_dup3, plan.error_output_fd, 2, 0) < 0) {
    child_fail(plan, Step::kOutput);
  }
  // Descriptors that other threads of this process open at the same time must not reach the
  // program.
  mark_close_on_exec(plan);
  raw(SYS_execve, address(plan.program), address(plan.argv), address(plan.environment));
  child_fail(plan, Step::kExec);
}

// Returns the child's report as an error, in the words of a container runtime.
Error failure_error(const SpawnSpec& spec, const Failure& failure) {
  const int number = failure.error_number;
  switch (failure.step) {
    case Step::kCgroup:
      return os::error_from_errno("enter cgroup " + spec.cgroup->path, number);
    case Step::kView:
      return os::error_from_errno("mounts and host name of the container", number);
    case Step::kWorkingDir:
      return os::error_from_errno("chdir to \"" + spec.working_dir + "\"", number);
    case Step::kOutput:
      return os::error_from_errno("redirect output to " + spec.output_path, number);
    case Step::kExec:
      return os::error_from_errno("exec: \"" + spec.argv[0] + "\"", number);
  }
  return {Code::kInternal, os::errno_text(number)};
}

// The search path is the container's own, not that of this program.
std::string path_of(const std::vector<std::string>& environment) {
  constexpr std::string_view kName = "PATH=";
  for (const std::string& entry : environment) {
    if (entry.starts_with(kName)) return entry.substr(kName.size());
  }
  return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
}

// REQUIRES: the strings outlive the result and are not changed.
// argv and envp as exec takes them: pointers into the strings, and a null pointer at the end.
std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  out.reserve(strings.size() + 1);
  for (const std::string& text : strings) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

// Calls clone3 as fork does. On v2 the kernel puts the child into the cgroup at its birth; on v1
// the child moves itself before exec. Either way no instruction of the program runs outside, where
// a freeze would miss it.
base::Result<Child> clone_child(const SpawnSpec& spec, ChildPlan plan) {
  os::FileDescriptor cgroup;
  int pidfd = -1;
  clone_args arguments{};
  arguments.flags = CLONE_PIDFD;
  arguments.pidfd = static_cast<__u64>(address(&pidfd));
  arguments.exit_signal = SIGCHLD;
  if (plan.hostname != nullptr) arguments.flags |= CLONE_NEWNS | CLONE_NEWUTS;
  if (spec.cgroup && spec.cgroup->version == os::CgroupVersion::kV2) {
    cgroup =
        os::FileDescriptor{::open(spec.cgroup->path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
    if (!cgroup.is_open()) return failure_error(spec, {Step::kCgroup, errno});
    arguments.flags |= CLONE_INTO_CGROUP;
    arguments.cgroup = static_cast<__u64>(cgroup.get());
  } else if (spec.cgroup) {
    cgroup = os::FileDescriptor{
        ::open((spec.cgroup->path + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC)};
    if (!cgroup.is_open()) return failure_error(spec, {Step::kCgroup, errno});
    plan.procs_fd = cgroup.get();
  }
  // The child must not run a handler of this program before it has reset them.
  sigset_t all{};
  sigset_t before{};
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const long pid = ::syscall(SYS_clone3, &arguments, sizeof arguments);
  if (pid == 0) run_child(plan);
  // errno would be overwritten by the next call.
  const int clone_errno = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return os::error_from_errno("start process", clone_errno);
  return Child{static_cast<pid_t>(pid), os::FileDescriptor{pidfd}};
}

}  // namespace

// As execvp() searches, but in the parent: the child could not search, since it may only make
// system calls.
base::Result<std::string> find_executable(const std::string& name,
                                          const std::string& path_variable) {
  if (name.find('/') != std::string::npos) return name;
  const Error missing{Code::kNotFound,
                      "exec: \"" + name + "\": executable file not found in $PATH"};
  if (name.empty()) return missing;
  for (std::size_t begin = 0; begin <= path_variable.size();) {
    const std::size_t end = std::min(path_variable.find(':', begin), path_variable.size());
    const std::string candidate = path_variable.substr(begin, end - begin) + "/" + name;
    struct stat info {};
    if (end > begin && ::stat(candidate.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        ::access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
    begin = end + 1;
  }
  return missing;
}

// The pipe tells whether exec succeeded: exec closes its end, and a child that fails before writes
// the step and errno into it. So an error is known here, with its reason, and not by an exit code
// of 127.
base::Result<Child> spawn(const SpawnSpec& spec) {
  if (spec.argv.empty()) return base::invalid_argument("no command given");
  const base::Result<std::string> program =
      find_executable(spec.argv[0], path_of(spec.environment));
  if (!program.ok()) return program.error();

  const os::FileDescriptor input{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  const char* const output_path = spec.streams ? "/dev/null" : spec.output_path.c_str();
  const os::FileDescriptor output{
      ::open(output_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)};
  if (!output.is_open()) return failure_error(spec, {Step::kOutput, errno});
  const std::array<int, 3> streams =
      spec.streams.value_or(std::array{input.get(), output.get(), output.get()});
  std::array<int, 2> pipe_fds{};
  if (::pipe2(pipe_fds.data(), O_CLOEXEC) != 0) {
    return os::error_from_errno("pipe", errno);
  }
  const os::FileDescriptor error_reader{pipe_fds[0]};
  os::FileDescriptor error_writer{pipe_fds[1]};
  const std::vector<char*> argv = pointers(spec.argv);
  const std::vector<char*> environment = pointers(spec.environment);

  const bool has_view = !spec.mounts.empty() || !spec.hostname.empty();
  base::Result<Child> child =
      clone_child(spec, {.program = program->c_str(),
                         .argv = argv.data(),
                         .environment = environment.data(),
                         .working_dir = spec.working_dir.c_str(),
                         .input_fd = streams[0],
                         .output_fd = streams[1],
                         .error_output_fd = streams[2],
                         .error_fd = error_writer.get(),
                         .mounts = spec.mounts.data(),
                         .mounts_count = spec.mounts.size(),
                         .hostname = has_view ? spec.hostname.c_str() : nullptr,
                         .hostname_size = spec.hostname.size(),
                         .kept_fds = spec.inherited_fds.data(),
                         .kept_fds_count = spec.inherited_fds.size()});
  error_writer.reset();
  if (!child.ok()) return child;
  Failure failure;
  ssize_t count = 0;
  do {  // Ends when exec has closed the child's end of the pipe.
    count = ::read(error_reader.get(), &failure, sizeof failure);
  } while (count < 0 && errno == EINTR);
  // Nothing was written: exec has succeeded.
  if (count != sizeof failure) return child;
  ::waitpid(child->pid, nullptr, 0);
  return failure_error(spec, failure);
}

// Returns how the child ended; nullopt if it runs. waitid() on the pidfd cannot hit another process
// that got the same PID.
std::optional<ExitStatus> reap(const Child& child) {
  siginfo_t info{};
  if (::waitid(P_PIDFD, static_cast<id_t>(child.pidfd.get()), &info, WEXITED | WNOHANG) != 0) {
    return ExitStatus{.exit_code = 255};  // reaped elsewhere: the status is lost
  }
  if (info.si_pid == 0) return std::nullopt;
  if (info.si_code == CLD_EXITED) return ExitStatus{.exit_code = info.si_status};
  return ExitStatus{.exit_code = 128 + info.si_status, .signal = info.si_status};
}

}  // namespace devcluster
