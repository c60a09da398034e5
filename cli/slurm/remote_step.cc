#include "cli/slurm/remote_step.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <deque>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "api/wellknown.h"
#include "cli/cluster/after_submit.h"
#include "cli/cluster/user.h"
#include "kube/backoff.h"
#include "kube/pod_exec.h"
#include "slurm/exit_code.h"
#include "slurm/remote_step.h"

namespace cli {
namespace {

constexpr std::array kTaken = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH};
// The first asks what runs, the second passes Ctrl-C on to the tasks, the third kills them.
constexpr int kInterruptsMax = 3;
constexpr int kExitInterrupted = 128 + SIGINT;
constexpr int kPollMs = 200;
constexpr int kEndLooksMax = 50;  // 10 s
constexpr std::size_t kInputBytesMax = 65'536;
// The most output that is not read: above it the pod sends no more.
constexpr std::size_t kOutputBytesMax = 1U << 20U;
// The launcher's own word, found in PATH as the interpreter of a script.
constexpr const char* kHoldScript = "#!kubegang-launcher hold\n";
// srun's own job ends by itself if its srun is killed: after this many seconds without one.
constexpr const char* kSrunScript = "#!kubegang-launcher hold=180\n";
// A job may wait for days.
constexpr kube::BackoffOptions kPodLooks{.first = std::chrono::milliseconds{200},
                                         .max = std::chrono::seconds{2}};

bool has_ended(const kube::Job& job) {
  return job.status.state && kube::is_final(*job.status.state);
}

// Standard output and error, written in order and as they are taken: a terminal that is stopped
// (Ctrl-S), or a reader that rests, must hold nothing else up.
class PatientOutput {
 public:
  PatientOutput() = default;
  ~PatientOutput() {
    for (const int fd : opened_) ::close(fd);
  }
  PatientOutput(const PatientOutput&) = delete;
  PatientOutput& operator=(const PatientOutput&) = delete;

  void add(int stream, std::string_view bytes) {
    bytes_count_ += bytes.size();
    if (waiting_.empty() || waiting_.back().stream != stream ||
        waiting_.back().bytes.size() > kInputBytesMax) {
      waiting_.push_back({stream, ""});
    }
    waiting_.back().bytes += bytes;
  }
  std::size_t bytes_count() const { return bytes_count_; }
  // REQUIRES: bytes_count() > 0.
  pollfd wait() { return {descriptor(), POLLOUT, 0}; }
  // After wait() has come true. A stream without a reader loses its output.
  void write_some() {
    std::string& bytes = waiting_.front().bytes;
    // A pipe takes this much at once.
    const ssize_t count =
        ::write(descriptor(), bytes.data(), std::min<std::size_t>(bytes.size(), PIPE_BUF));
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    const std::size_t done = count < 0 ? bytes.size() : static_cast<std::size_t>(count);
    bytes.erase(0, done);
    bytes_count_ -= done;
    if (bytes.empty()) waiting_.pop_front();
  }

 private:
  struct Piece {
    int stream = STDOUT_FILENO;
    std::string bytes{};
  };

  // For a terminal one of our own, on which writes do not wait: a mode of the one that we were
  // given would be the shell's, too.
  int descriptor() {
    const int stream = waiting_.front().stream;
    const auto known = descriptors_.find(stream);
    if (known != descriptors_.end()) return known->second;
    int own = -1;
    if (::isatty(stream) != 0) {
      const std::string path = "/proc/self/fd/" + std::to_string(stream);
      own = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    }
    if (own >= 0) opened_.push_back(own);
    return descriptors_[stream] = own < 0 ? stream : own;
  }

  std::deque<Piece> waiting_;
  std::size_t bytes_count_ = 0;
  std::map<int, int> descriptors_;  // by stream
  std::vector<int> opened_;
};

// True: a signal has come that is to end this, and not that the window has another size.
bool is_interrupted(const TakenSignals& signals) {
  const int signal = signals.next();
  return signal != 0 && signal != SIGWINCH;
}

// Waits for a signal, or a moment. True: a signal that is to end this.
bool wait_a_moment(const TakenSignals& signals, int moment_ms = kPollMs) {
  pollfd ready{signals.descriptor(), POLLIN, 0};
  ::poll(&ready, 1, moment_ms);
  return ready.revents != 0 && is_interrupted(signals);
}

// Standard input as a terminal that passes on all that is typed, for as long as this lives.
class RawInput {
 public:
  explicit RawInput(bool is_wanted) {
    if (!is_wanted || ::tcgetattr(STDIN_FILENO, &before_) != 0) return;
    termios raw = before_;
    ::cfmakeraw(&raw);
    is_set_ = ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
  }
  ~RawInput() {
    if (is_set_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }
  RawInput(const RawInput&) = delete;
  RawInput& operator=(const RawInput&) = delete;

 private:
  termios before_{};
  bool is_set_ = false;
};

// Returns "24 80", also of a terminal that does not say how large it is.
std::string window_text() {
  winsize size{};
  const bool is_known = ::ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0;
  return is_known ? std::to_string(size.ws_row) + " " + std::to_string(size.ws_col) : "24 80";
}

// srun there, with what this process has.
class StepCaller final : public kube::ExecCaller {
 public:
  StepCaller(const RemoteStep& step, const TakenSignals& signals)
      : signals_{signals}, has_terminal_{step.has_terminal}, has_input_{step.has_input} {
    const auto add = [this](slurm::RemoteKind kind, const std::string& text) {
      first_ += slurm::encode({kind, text});
    };
    add(slurm::RemoteKind::kVersion, std::string{slurm::kRemoteVersion});
    for (const std::string& word : step.arguments) add(slurm::RemoteKind::kArgument, word);
    for (const std::string& entry : step.variables) add(slurm::RemoteKind::kVariable, entry);
    add(slurm::RemoteKind::kDirectory, step.directory);
    if (step.has_terminal) add(slurm::RemoteKind::kTerminal, window_text());
    add(slurm::RemoteKind::kRun, "");
    if (!has_input_) add(slurm::RemoteKind::kInputEnd, "");
  }

  std::string first() override { return std::move(first_); }
  std::vector<pollfd> waits(bool takes_input) override {
    std::vector<pollfd> all{{signals_.descriptor(), POLLIN, 0}};
    if (takes_input && has_input_ && !is_held_ && !is_in_background()) {
      all.push_back({STDIN_FILENO, POLLIN, 0});
    }
    if (output_.bytes_count() > 0) all.push_back(output_.wait());
    return all;
  }
  std::string idle() override { return slurm::encode({slurm::RemoteKind::kNothing, ""}); }
  std::string ready(const pollfd& found) override {
    if (found.fd == STDIN_FILENO && found.events == POLLIN) return input();
    if (found.fd != signals_.descriptor()) {
      output_.write_some();
      return "";
    }
    const int signal = signals_.next();
    if (signal == 0) return "";
    if (signal == SIGWINCH) return slurm::encode({slurm::RemoteKind::kTerminal, window_text()});
    if (signal == SIGINT) ++interrupts_;
    if (signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT) ++ends_;
    return slurm::encode({slurm::RemoteKind::kSignal, std::to_string(signal)});
  }
  // On its own standard error join says why it cannot begin.
  void output(int stream, std::string_view bytes) override {
    if (stream == STDERR_FILENO) return output_.add(STDERR_FILENO, bytes);
    reader_.add(bytes);
    while (const auto message = reader_.next()) {
      has_begun_ = true;
      hear(*message);
    }
    has_begun_ = has_begun_ || reader_.is_broken();
  }
  bool takes_output() const override { return output_.bytes_count() < kOutputBytesMax; }
  bool gives_up() const override {
    // SOURCE: recorded: a step that waits for its beginning, as in a suspended job, ends at once.
    if (!has_begun_) return interrupts_ > 0 || ends_ > 0;
    return interrupts_ > kInterruptsMax || ends_ > 1 || reader_.is_broken();
  }
  // Writes what is left, unless signals end that.
  void finish_output() {
    while (output_.bytes_count() > 0 && !gives_up()) {
      for (pollfd& one : waits(false)) {
        if (::poll(&one, 1, one.fd == signals_.descriptor() ? 0 : kPollMs) > 0) (void)ready(one);
      }
    }
  }
  // True: its exit code has come.
  bool has_ended() const { return has_ended_; }
  bool is_of_another_version() const { return reader_.is_broken(); }
  bool was_interrupted(int code) const { return interrupts_ > 1 && code == kExitInterrupted; }

 private:
  void hear(const slurm::RemoteMessage& message) {
    if (message.kind == slurm::RemoteKind::kEnd) has_ended_ = true;
    if (message.kind == slurm::RemoteKind::kHold) is_held_ = message.text == "1";
    if (message.kind == slurm::RemoteKind::kOutput) output_.add(STDOUT_FILENO, message.text);
    if (message.kind != slurm::RemoteKind::kErrorOutput) return;
    // A terminal that passes all on as it is begins no line by itself.
    std::string text = message.text;
    const bool is_raw = has_terminal_ && ::isatty(STDERR_FILENO) != 0;
    for (std::size_t at = 0; is_raw && (at = text.find('\n', at)) != std::string::npos;) {
      text.insert(at, "\r");
      at += 2;
    }
    output_.add(STDERR_FILENO, text);
  }

  // Reading a terminal in the background of its shell stops the process.
  static bool is_in_background() {
    const pid_t reader = ::tcgetpgrp(STDIN_FILENO);
    return reader >= 0 && reader != ::getpgrp();
  }

  std::string input() {
    std::string bytes(kInputBytesMax, '\0');
    const ssize_t count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return "";
    if (count > 0) {
      bytes.resize(static_cast<std::size_t>(count));
      return slurm::encode({slurm::RemoteKind::kInput, bytes});
    }
    has_input_ = false;
    return slurm::encode({slurm::RemoteKind::kInputEnd});
  }

  const TakenSignals& signals_;
  std::string first_;
  slurm::RemoteReader reader_;
  PatientOutput output_;
  const bool has_terminal_;
  bool has_input_;
  bool is_held_ = false;    // the tasks have enough
  bool has_begun_ = false;  // the other end runs, and has said so
  bool has_ended_ = false;
  int interrupts_ = 0;
  int ends_ = 0;
};

class WordCaller final : public kube::ExecCaller {
 public:
  // `is_over`: the caller waits no longer.
  WordCaller(const TakenSignals& signals, std::function<bool()> is_over, std::ostream& err)
      : signals_{signals}, is_over_{std::move(is_over)}, err_{err} {}
  std::vector<pollfd> waits(bool) override { return {{signals_.descriptor(), POLLIN, 0}}; }
  std::string ready(const pollfd&) override {
    is_interrupted_ = is_interrupted_ || cli::is_interrupted(signals_);
    return "";
  }
  void output(int, std::string_view bytes) override { err_ << bytes; }
  bool gives_up() const override { return is_interrupted_ || is_over_(); }
  bool is_interrupted() const { return is_interrupted_; }

 private:
  const TakenSignals& signals_;
  const std::function<bool()> is_over_;
  std::ostream& err_;
  bool is_interrupted_ = false;
};

base::Result<int> exec(const Session& session, const kube::Pod& pod, std::vector<std::string> words,
                       kube::ExecCaller& caller) {
  if (session.upgrader == nullptr) {
    return base::Error{base::Code::kInternal, "programs in pods need a connection over HTTPS"};
  }
  const kube::Container& container = pod.spec.containers.front();
  words.insert(words.begin(), container.command.front());
  return kube::pod_exec(*session.upgrader,
                        {.ns = pod.metadata.ns,
                         .pod = pod.metadata.name,
                         .container = container.name,
                         .command = std::move(words)},
                        caller);
}

std::string label_of(const kube::Pod& pod, std::string_view label) {
  const auto found = pod.metadata.labels.find(std::string{label});
  return found == pod.metadata.labels.end() ? "" : found->second;
}

// Returns the pod, nullopt while there is none. kCancelled: the job has ended.
base::Result<std::optional<kube::Pod>> look_for_pod(const Session& session,
                                                    const kube::Job& submitted) {
  const auto job = session.client.get<kube::Job>(kube::key_of(submitted.metadata));
  if (!job) return job.error();
  if (has_ended(*job)) {
    return base::Error{base::Code::kCancelled,
                       "it has ended: " + std::string{kube::to_string(*job->status.state)}};
  }
  const bool waits = !job->status.state || *job->status.state == kube::JobState::kPending;
  return waits ? std::optional<kube::Pod>{} : first_pod(session, *job);
}

// Waits for the pod. kCancelled: by a signal, or because the job has ended. An API server that is
// away is reported once and outlived.
base::Result<kube::Pod> wait_for_pod(const Session& session, const kube::Job& submitted,
                                     const std::string& speaker, const TakenSignals& signals,
                                     Output output) {
  kube::Backoff looks{kPodLooks, static_cast<std::uint64_t>(::getpid())};
  bool outage_told = false;
  for (;;) {
    auto pod = look_for_pod(session, submitted);
    if (!pod && !is_outage(pod.error())) return pod.error();
    if (!pod && !std::exchange(outage_told, true)) {
      output.err << speaker << ": " << pod.error().message << "; still waiting\n" << std::flush;
    }
    if (pod && *pod) return std::move(**pod);
    const auto moment = std::chrono::ceil<std::chrono::milliseconds>(looks.next());
    if (wait_a_moment(signals, static_cast<int>(moment.count()))) {
      return base::Error{base::Code::kCancelled, "interrupted"};
    }
  }
}

}  // namespace

TakenSignals::TakenSignals() {
  sigset_t taken{};
  ::sigemptyset(&taken);
  for (const int signal : kTaken) ::sigaddset(&taken, signal);
  ::pthread_sigmask(SIG_BLOCK, &taken, nullptr);
  descriptor_ = ::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
}

TakenSignals::~TakenSignals() {
  ::close(descriptor_);
  sigset_t taken{};
  ::sigemptyset(&taken);
  for (const int signal : kTaken) ::sigaddset(&taken, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &taken, nullptr);
}

int TakenSignals::next() const {
  signalfd_siginfo info{};
  if (::read(descriptor_, &info, sizeof info) != sizeof info) return 0;
  return static_cast<int>(info.ssi_signo);
}

base::Result<std::optional<kube::Pod>> first_pod(const Session& session, const kube::Job& job,
                                                 std::optional<int> task) {
  if (!job.spec.batch) {
    return base::invalid_argument("job " + job.metadata.name +
                                  " has no batch script: its pods run commands and take no steps");
  }
  std::string selector = std::string{kube::kLabelJob} + "=" + job.metadata.name;
  if (task) selector += "," + std::string{kube::kLabelArrayTask} + "=" + std::to_string(*task);
  auto pods = session.client.list<kube::Pod>(
      {.ns = job.metadata.ns, .label_selector = std::move(selector)});
  if (!pods) return pods.error();
  const std::string start = std::to_string(job.status.starts.value_or(0));
  for (kube::Pod& pod : pods->items) {
    const bool is_first =
        label_of(pod, kube::kLabelTask) == "0" && label_of(pod, kube::kLabelStart) == start;
    if (is_first && pod.status.phase == kube::PodPhase::kRunning && !pod.spec.containers.empty() &&
        !pod.spec.containers.front().command.empty()) {
      return std::optional{std::move(pod)};
    }
  }
  return std::optional<kube::Pod>{};
}

base::Result<int> ask_launcher(const Session& session, const kube::Pod& pod,
                               std::vector<std::string> words, const TakenSignals& signals,
                               Output output, std::optional<base::Duration> until) {
  WordCaller caller{signals, [&] { return until && session.clock.monotonic() >= *until; },
                    output.err};
  auto code = exec(session, pod, std::move(words), caller);
  const bool is_late = !code && code.error().code == base::Code::kCancelled;
  if (!is_late || caller.is_interrupted()) return code;
  return base::Error{base::Code::kTimeout, "pod " + pod.metadata.name + " does not answer in time"};
}

base::Result<StepEnd> run_step(const Session& session, const kube::Pod& pod, const RemoteStep& step,
                               const TakenSignals& signals) {
  StepCaller caller{step, signals};
  const RawInput raw{step.has_terminal};
  const auto code = exec(session, pod, {"join"}, caller);
  caller.finish_output();
  if (caller.is_of_another_version()) {
    return base::Error{base::Code::kInvalidArgument,
                       "pod " + pod.metadata.name +
                           ": its kubegang-launcher is of another version than this program"};
  }
  if (!code) return code.error();
  // An API server that has lost the kubelet says Success, as of a program that has ended.
  if (*code == 0 && !caller.has_ended()) {
    return base::Error{base::Code::kUnavailable,
                       "pod " + pod.metadata.name + ": the connection was lost"};
  }
  return StepEnd{.code = *code, .was_interrupted = caller.was_interrupted(*code)};
}

// 1. the job: submit's object, with a script that does nothing and writes no file
// 2. its number
// 3. its first pod
base::Result<HeldJob> hold_job(const Session& session, SubmitRequest request,
                               const std::string& speaker, const TakenSignals& signals,
                               Output output) {
  if (request.options.test_only) {
    return base::Error{slurm::kEndsWithOne, "--test-only: not supported; sbatch --test-only is"};
  }
  request.batch->script = speaker == "srun" ? kSrunScript : kHoldScript;
  request.options.output = "/dev/null";
  auto object = job_object(request, session.ns);
  if (!object) return object.error();
  set_user(session, *object);
  base::Result<kube::Job> job = session.client.create<kube::Job>(*object);
  if (job) job = number_or_take_back(session, *job, output, speaker);
  if (!job) {
    return job.error().with_context(speaker == "srun" ? "Unable to allocate resources"
                                                      : "Job submit/allocate failed");
  }
  const std::string id = std::to_string(*job->status.job_id);
  const bool waits = !job->status.state || *job->status.state == kube::JobState::kPending;
  if (waits) {
    output.err << speaker << ": job " << id << " queued and waiting for resources\n";
  }
  auto pod = wait_for_pod(session, *job, speaker, signals, output);
  if (!pod) {
    if (const base::Status canceled = cancel_job(session, *job); !canceled) {
      output.err << speaker << ": error: job " << id
                 << " could not be canceled: " << canceled.error().message << "\n";
    }
    return pod.error().with_context("job " + id);
  }
  if (waits) output.err << speaker << ": job " << id << " has been allocated resources\n";
  return HeldJob{std::move(*job), std::move(*pod), speaker};
}

bool has_ended(const Session& session, const kube::Job& job) {
  const auto now = session.client.get<kube::Job>(kube::key_of(job.metadata));
  return now ? has_ended(*now) : !is_outage(now.error());
}

bool ends_soon(const Session& session, const kube::Job& job, const TakenSignals& signals) {
  for (int i = 0; i < kEndLooksMax; ++i) {
    if (has_ended(session, job)) return true;
    if (wait_a_moment(signals)) break;
  }
  return false;
}

void release_job(const Session& session, const HeldJob& held, int exit_code,
                 const TakenSignals& signals, Output output) {
  const auto released =
      ask_launcher(session, held.pod, {"release", std::to_string(exit_code)}, signals, output);
  // The connection may end with the container before the answer: what counts is the job.
  const bool is_lost = !released && released.error().code == base::Code::kUnavailable;
  if ((released || is_lost) && ends_soon(session, held.job, signals)) return;
  if (!released && released.error().code == base::Code::kPermissionDenied) {
    output.err << held.speaker << ": error: the job is canceled: " << released.error().message
               << "\n";
  }
  (void)cancel_job(session, held.job);
}

base::Status cancel_job(const Session& session, const kube::Job& job) {
  return session.client
      .patch<kube::Job>(kube::key_of(job.metadata),
                        nlohmann::json{{"spec", {{"control", {{"cancel", true}}}}}},
                        {.uid = job.metadata.uid})
      .status();
}

}  // namespace cli
