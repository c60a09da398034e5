#include "launcher/batch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "launcher/loop.h"
#include "launcher/message.h"
#include "launcher/net.h"
#include "launcher/notice.h"
#include "launcher/process.h"
#include "launcher/run_time.h"
#include "launcher/script_environment.h"
#include "launcher/step_environment.h"
#include "launcher/step_server.h"
#include "launcher/tls.h"
#include "launcher/usage.h"
#include "slurm/file_name.h"

namespace launcher {
namespace {

// A batch script in its pod:
//
// 1. The script and the variables of who submitted it are taken out of the environment, in which
//    the operator has put them.
// 2. The working directory, then the files that the script reads and writes.
// 3. The script begins. From here on this is a loop: output goes to the file and to the pod's log,
//    srun may ask for steps, signals are passed on.
// 4. The script ends, and with it what it started: in a pod the kernel does that when this process
//    ends.

// As a signal number 53 is what Slurm shows as ExitCode 0:53 of a job whose files cannot be opened.
constexpr int kLaunchFailed = 128 + 53;
// A pipe holds 64 KiB, or 1 MiB if a program has enlarged it.
constexpr int kLastChunksMax = 17;
// After SIGTERM, of the time in which the job is not frozen.
constexpr std::chrono::seconds kEndMax{60};
constexpr int kEndLookMs = 20;
// A requeue, in time in which the job is not frozen: scontrol ends before it is signaled, as
// Slurm's does; what is left after KillWait is killed.
constexpr std::chrono::milliseconds kRequeueBegin{200};
constexpr std::chrono::seconds kRequeueKill{30};

struct BatchOptions {
  std::string output;
  std::string error;
  std::string input;
  std::string directory;
  bool appends = false;
  bool is_installed = false;  // by an init container of this pod
  bool may_requeue = false;
  std::optional<Notice> notice;
  std::string key;   // file of the key of the job's pods; "": there is one pod
  std::string port;  // of the launcher, for those of the other pods
  std::string termination_log = "/dev/termination-log";  // of the container
  std::vector<std::string> arguments;                    // of the script
};

int fail(const std::string& message) {
  std::fprintf(stderr, "kubegang-launcher: %s\n", message.c_str());
  return kLaunchFailed;
}

// The operator alone writes these options (operator/gang/batch_pod.cc).
BatchOptions read_options(std::span<const std::string> words) {
  BatchOptions options;
  const std::pair<std::string_view, std::string*> texts[] = {
      {"--output=", &options.output},
      {"--error=", &options.error},
      {"--input=", &options.input},
      {"--chdir=", &options.directory},
      {"--key=", &options.key},
      {"--port=", &options.port},
      {"--termination-log=", &options.termination_log}};
  std::size_t i = 0;
  for (; i < words.size() && words[i] != "--"; ++i) {
    for (const auto& [name, text] : texts) {
      if (words[i].starts_with(name)) *text = words[i].substr(name.size());
    }
    if (words[i] == "--open-mode=append") options.appends = true;
    if (words[i] == "--installed") options.is_installed = true;
    if (words[i] == "--may-requeue") options.may_requeue = true;
    read_notice_option(words[i], options.notice);
  }
  if (i < words.size()) ++i;
  const auto rest = words.subspan(i);
  options.arguments.assign(rest.begin(), rest.end());
  return options;
}

// Returns the words of the first line as the kernel takes them, then the file of the script.
std::vector<std::string> command_of(const std::string& script, const std::string& path,
                                    const std::vector<std::string>& arguments) {
  std::string line = script.substr(2, script.find('\n') - 2);
  const auto trim = [](std::string& text) {
    text.erase(0, std::min(text.find_first_not_of(" \t"), text.size()));
    text.erase(text.find_last_not_of(" \t") + 1);
  };
  trim(line);
  const std::size_t blank = std::min(line.find_first_of(" \t"), line.size());
  std::string argument = line.substr(blank);
  trim(argument);
  std::vector<std::string> command{line.substr(0, blank)};
  if (!argument.empty()) command.push_back(argument);
  command.push_back(path);
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

// Stores it in a file, as in Slurm, where a folder can be written; else in one without a name.
std::string store_script(const std::string& script) {
  for (const std::string folder : {"/tmp", "/dev/shm"}) {
    std::string directory = folder + "/kubegang-job-XXXXXX";
    if (::mkdtemp(directory.data()) == nullptr) continue;
    const std::string path = directory + "/slurm_script";
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    if (fd < 0) continue;
    const bool is_written = write_all(fd, script);
    if (::close(fd) == 0 && is_written) return path;
  }
  const int fd = ::memfd_create("slurm_script", 0);
  if (fd < 0 || !write_all(fd, script)) return {};
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd);
}

void remove_script(const std::string& path) {
  if (path.starts_with("/proc/")) return;
  ::unlink(path.c_str());
  ::rmdir(path.substr(0, path.rfind('/')).c_str());
}

// One stream of the script: a pipe, whose other end is copied to the file and to the pod's log.
struct Stream {
  int pipe = -1;  // read from
  int end = -1;   // the script's
  int file = -1;  // -1: there is only the log
  int log = 1;

  // Returns false at its end.
  bool copy() {
    std::array<char, kChunkBytesMax> bytes{};
    const ssize_t count = ::read(pipe, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) return true;
    if (count <= 0) return false;
    const std::string_view text{bytes.data(), static_cast<std::size_t>(count)};
    // A file system that is full loses the rest, as it would for the script itself.
    if (file >= 0) (void)write_all(file, text);
    (void)write_all(log, text);
    return true;
  }
};

// Devices, /dev/null for one, have no offset.
bool are_same_file(int left, int right) {
  struct stat a {};
  struct stat b {};
  return ::fstat(left, &a) == 0 && ::fstat(right, &b) == 0 && S_ISREG(a.st_mode) &&
         a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

class Batch {
 public:
  Batch(BatchOptions options, Environment given)
      : options_{std::move(options)}, given_{std::move(given)}, server_{loop_, job_nodes(given_)} {}

  int run() {
    const std::string script = joined(given_, "KUBEGANG_SCRIPT");
    if (!script.starts_with("#!")) return fail("there is no script in KUBEGANG_SCRIPT_0");
    if (const base::Status status = take_launchers(); !status) return fail(status.error().message);
    enter_directory();
    take_mask();
    const std::string path = store_script(script);
    if (path.empty()) return fail("the script cannot be stored: " + std::string{strerror(errno)});
    if (const int code = open_files(); code != 0) {
      remove_script(path);
      return code;
    }
    watch_signals();
    show_steps();
    Environment environment = script_environment(given_, {}, directory_, server_.address());
    unset(environment, "SLURM_UMASK");
    pid_ = start({.argv = command_of(script, path, options_.arguments),
                  .environment = std::move(environment),
                  .directory = directory_,
                  .input = input_,
                  .output = output_.end,
                  .error = error_.end >= 0 ? error_.end : output_.end,
                  .speaker = "slurmstepd"});
    if (pid_ < 0) return fail("the script cannot be started: " + std::string{strerror(errno)});
    for (const int fd : {input_, output_.end, error_.end}) {
      if (fd >= 0) ::close(fd);
    }
    server_.usage().begin_script(std::chrono::system_clock::now());
    RunTime time{RunTime::Clock::now(), time_before()};
    while (!status_) {
      const int most = server_.look(RunTime::Clock::now());
      loop_.wait(options_.notice || requeue_ ? static_cast<int>(RunTime::kStep.count()) : most);
      if (requeue_) go_on_with_requeue();
      if (options_.notice && time.at(RunTime::Clock::now()) >= options_.notice->after) notify();
    }
    if (is_ending_) wait_for_steps();
    // Processes that the script has left behind in its session end with it. One that has left the
    // session may still write, so no more than a pipe can hold is read.
    ::kill(-pid_, SIGKILL);
    for (Stream* stream : {&output_, &error_}) {
      for (int i = 0; i < kLastChunksMax && stream->pipe >= 0 && stream->copy(); ++i) {
      }
    }
    remove_script(path);
    leave_message(options_.termination_log,
                  server_.usage().message(std::chrono::system_clock::now(), requeue_.has_value()));
    // Not 0, with which the job would be complete.
    if (requeue_) return 128 + SIGTERM;
    return released_.value_or(shell_code(*status_));
  }

 private:
  // The operator counts the time from the first container, which is the one that has installed this
  // program. No job is frozen between the two.
  RunTime::Duration time_before() const {
    struct stat installed {};
    const std::string file = own_directory() + "/env.sh";
    if (!options_.is_installed || ::stat(file.c_str(), &installed) != 0) return {};
    const auto age = std::chrono::system_clock::now().time_since_epoch() -
                     std::chrono::seconds{installed.st_mtim.tv_sec};
    return std::max<RunTime::Duration>(age, {});
  }

  // The script's shell alone, whose children Slurm leaves alone, or the tasks of all steps. Once.
  void notify() {
    const Notice notice = *std::exchange(options_.notice, std::nullopt);
    if (notice.to_script) {
      ::kill(pid_, notice.signal);
    } else {
      server_.signal_all(notice.signal);
    }
  }

  // Programs that are started in this container from outside of the job find the address of the
  // steps in a file without a name, which only this user can open (join.cc).
  void show_steps() {
    const int fd = ::memfd_create(kStepsFile, MFD_CLOEXEC);
    if (fd >= 0) (void)write_all(fd, server_.address());
    server_.take_script_calls(
        {.signal = [this](int signal,
                          bool with_children) { ::kill(with_children ? -pid_ : pid_, signal); },
         .release =
             [this](int exit_code) {
               released_ = exit_code;
               ::kill(-pid_, SIGKILL);
             },
         .requeue =
             [this] {
               if (options_.may_requeue && !requeue_) {
                 requeue_.emplace(RunTime::Clock::now(), RunTime::Duration{});
               }
               return options_.may_requeue;
             }});
  }

  void go_on_with_requeue() {
    const auto age = requeue_->at(RunTime::Clock::now());
    if (age >= kRequeueBegin && !is_ending_) end_job();
    if (age >= kRequeueBegin + kRequeueKill) pass_on(SIGKILL);
  }

  // That of who submitted the script, for its files and for itself.
  void take_mask() const {
    constexpr int kOctal = 8;
    const auto mask = value_of(script_environment(given_, {}, directory_, ""), "SLURM_UMASK");
    if (mask) ::umask(static_cast<mode_t>(std::strtoul(mask->c_str(), nullptr, kOctal)));
  }

  // Returns those of the other pods.
  base::Status take_launchers() {
    if (options_.key.empty()) return {};
    auto tls = Tls::from_file(options_.key);
    if (!tls) return tls.error();
    const auto port = static_cast<std::uint16_t>(std::strtoul(options_.port.c_str(), nullptr, 10));
    const auto listener = listen_on(value_or(given_, "KUBEGANG_POD_IP", ""), port);
    if (!listener) return listener.error();
    server_.take_launchers(*listener, std::move(*tls));
    return {};
  }

  // A shell ends by SIGTERM at once; srun, which the signal reaches too, waits for its tasks and
  // shows what they say, also from outside of the job. The pod's grace period bounds that, if
  // nothing else does.
  void wait_for_steps() {
    const auto is_in_use = [&] { return ::kill(-pid_, 0) == 0 || server_.has_sruns(); };
    RunTime time{RunTime::Clock::now(), {}};
    while (is_in_use() && time.at(RunTime::Clock::now()) < kEndMax) {
      loop_.wait(kEndLookMs);
      (void)server_.look(RunTime::Clock::now());
    }
  }

  // SOURCE: slurmstepd: a folder that is missing is a message and /tmp, not a failure; files
  // without a folder of their own are looked for in the missing one, so the job fails. The folder
  // where sbatch was called may be on a laptop: then they are in /tmp.
  void enter_directory() {
    if (!options_.directory.empty() && ::chdir(options_.directory.c_str()) != 0) {
      complaint_ = "slurmstepd: error: couldn't chdir to `" + options_.directory +
                   "': " + strerror(errno) + ": going to /tmp instead\n";
      const Environment all = script_environment(given_, {}, options_.directory, "");
      if (value_of(all, "SLURM_SUBMIT_DIR") != options_.directory) missing_ = options_.directory;
      (void)!::chdir("/tmp");
    }
    char* const name = ::getcwd(nullptr, 0);
    if (name != nullptr) directory_ = name;
    std::free(name);
  }

  slurm::NameParts name_parts() const {
    return {.job_id = value_or(given_, "SLURM_JOB_ID", "0"),
            .array_id = value_or(given_, "SLURM_ARRAY_JOB_ID", ""),
            .array_task = value_or(given_, "SLURM_ARRAY_TASK_ID", ""),
            .step_id = "batch",
            .job_name = value_or(given_, "SLURM_JOB_NAME", ""),
            .user = value_or(given_, "SLURM_JOB_USER", ""),
            .node = value_or(given_, "SLURMD_NODENAME", "")};
  }

  std::string path_of(const std::string& pattern) const {
    const std::string name = file_name(pattern, name_parts());
    return missing_.empty() || name.starts_with('/') ? name : missing_ + "/" + name;
  }

  int open_output(const std::string& pattern) const {
    const std::string name = path_of(pattern);
    const int mode = options_.appends ? O_APPEND : O_TRUNC;
    return ::open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | mode, 0666);
  }

  // A file that the user has named, or whose folder, must be there; without the default one there
  // is the log.
  int open_files() {
    const std::string input = options_.input.empty() ? "/dev/null" : options_.input;
    input_ = ::open(path_of(input).c_str(), O_RDONLY | O_CLOEXEC);
    if (input_ < 0) return fail("input file " + input + ": " + strerror(errno));
    const std::string output = options_.output.empty() ? slurm::kScriptOutput : options_.output;
    output_.file = open_output(output);
    if (output_.file < 0 && !(options_.output.empty() && missing_.empty())) {
      return fail("output file " + output + ": " + strerror(errno));
    }
    if (!make_pipe(output_)) return fail(std::string{"pipe: "} + strerror(errno));
    if (!complaint_.empty()) (void)write_all(output_.end, complaint_);
    if (options_.error.empty()) return 0;
    error_.log = 2;
    error_.file = open_output(options_.error);
    if (error_.file < 0) return fail("error file " + options_.error + ": " + strerror(errno));
    if (are_same_file(error_.file, output_.file)) {
      // One pipe for both: with two offsets one would write over the other.
      ::close(std::exchange(error_.file, -1));
      return 0;
    }
    return make_pipe(error_) ? 0 : fail(std::string{"pipe: "} + strerror(errno));
  }

  bool make_pipe(Stream& stream) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    stream.pipe = ends[0];
    stream.end = ends[1];
    ::fcntl(stream.pipe, F_SETFL, O_NONBLOCK);
    loop_.watch(stream.pipe, EPOLLIN, [this, &stream](std::uint32_t) {
      if (!stream.copy()) loop_.forget(stream.pipe);
    });
    return true;
  }

  void watch_signals() {
    signals_ = launcher::take_signals();
    loop_.watch(signals_, EPOLLIN, [this](std::uint32_t) { take_signals(); });
  }

  void take_signals() {
    while (const std::optional<int> number = next_signal(signals_)) {
      if (number == SIGCHLD) {
        reap();
      } else if (number == SIGTERM || number == SIGINT || number == SIGHUP) {
        end_job();
      } else if (number == SIGUSR1 || number == SIGUSR2) {
        pass_on(*number);
      }
    }
  }

  // For the script, its children and its tasks. Stopped ones must hear of it.
  void end_job() {
    is_ending_ = true;
    pass_on(SIGCONT);
    pass_on(SIGTERM);
  }

  void pass_on(int signal) {
    ::kill(-pid_, signal);
    server_.signal_all(signal);
  }

  void reap() {
    int status = 0;
    pid_t pid = 0;
    rusage usage{};
    while ((pid = ::wait4(-1, &status, WNOHANG, &usage)) > 0) {
      const Used used = used_of(usage);
      if (pid == pid_) {
        status_ = status;
        server_.usage().script_ended(used, status, std::chrono::system_clock::now());
      } else if (!server_.reaped(pid, status, used)) {
        server_.usage().add_rest(used);
      }
    }
  }

  BatchOptions options_;
  const Environment given_;
  Loop loop_;
  StepServer server_;
  std::string directory_ = "/";
  std::string complaint_;
  std::string missing_;  // the folder that --chdir names
  int input_ = -1;
  Stream output_;
  Stream error_;
  int signals_ = -1;
  pid_t pid_ = -1;
  std::optional<int> status_;
  bool is_ending_ = false;
  std::optional<RunTime> requeue_;  // since it was asked for
  std::optional<int> released_;     // the exit code of who held the job from outside
};

}  // namespace

int run_batch(std::span<const std::string> arguments) {
  return Batch{read_options(arguments), own_environment()}.run();
}

}  // namespace launcher
