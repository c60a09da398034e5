#include "launcher/task_group.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <set>
#include <utility>

#include "launcher/channel.h"
#include "launcher/gpu_binding.h"
#include "launcher/step_environment.h"
#include "launcher/terminal.h"

namespace launcher {
namespace {

// 64 KiB, or 1 MiB if a program has enlarged it.
constexpr std::size_t kPipeBytesMax = 1U << 20U;
// Messages that wait for the start of the tasks before input is held back.
constexpr std::size_t kEarlyMax = 16;
// The longest that the end of a task which has not failed waits for those of others.
constexpr std::chrono::nanoseconds kEndsPatience = std::chrono::milliseconds{100};

TaskSet with_own_devices(TaskSet set) {
  add_devices(set.environment, own_environment());
  return set;
}

}  // namespace

struct TaskGroup::Task {
  std::uint32_t rank = 0;
  pid_t pid = -1;
  int input = -1;
  std::array<int, 2> outputs{-1, -1};
  int pmi = -1;  // of --mpi=pmi2
  std::string pending_pmi{};
  std::string pending_input{};
  bool input_ends = false;
  bool input_watched = false;
  bool has_ended = false;
};

TaskGroup::TaskGroup(Loop& loop, std::string node, TaskSet set, Calls calls)
    : loop_{loop},
      node_{std::move(node)},
      set_{with_own_devices(std::move(set))},
      calls_{std::move(calls)} {}

TaskGroup::~TaskGroup() {
  signal(SIGKILL);
  if (ends_timer_ >= 0) {
    loop_.forget(ends_timer_);
    ::close(ends_timer_);
  }
  for (Task& task : tasks_) {
    for (const int fd : {task.outputs[0], task.outputs[1], task.input}) {
      if (fd < 0) continue;
      if (fd != task.input || task.input_watched) loop_.forget(fd);
      ::close(fd);
    }
    close_pmi(task);
  }
}

void TaskGroup::start() {
  // Not moved afterwards: what waits for their files refers to them.
  tasks_.resize(set_.ranks.size());
  for (std::size_t place = 0; place < tasks_.size(); ++place) {
    tasks_[place].rank = set_.ranks[place];
  }
  if (set_.mpi == Mpi::kPmix) return start_pmix();
  start_tasks();
}

void TaskGroup::start_tasks() {
  has_started_ = true;
  for (std::size_t place = 0; place < tasks_.size(); ++place) {
    if (start_task(place)) continue;
    const int why = errno;
    tasks_[place].has_ended = true;
    fail(set_.ranks[place], std::strerror(why));
  }
  for (const Message& message : std::exchange(early_, {})) handle(message);
  if (pmix_ && calls_.fed) calls_.fed();
}

void TaskGroup::fail(std::uint32_t rank, const std::string& why) {
  const std::string line = "starting task " + std::to_string(rank) + ": " + why + "\n";
  calls_.tell({.kind = Kind::kOutput, .rank = rank, .number = 2, .text = line});
  add_end({.rank = rank, .wait_status = 1U << 8U});
}

// Tells the ends of many tasks together: at once with the first that has failed, which may end the
// step, and with the last.
void TaskGroup::add_end(TaskEnd end) {
  const bool is_urgent = end.wait_status != 0 || running_.empty();
  ends_.push_back(std::move(end));
  if (is_urgent) return tell_ends();
  if (ends_timer_ >= 0) return;
  ends_timer_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (ends_timer_ < 0) return tell_ends();
  const itimerspec when{.it_interval = {},
                        .it_value = {.tv_sec = 0, .tv_nsec = kEndsPatience.count()}};
  ::timerfd_settime(ends_timer_, 0, &when, nullptr);
  loop_.watch(ends_timer_, EPOLLIN, [this](std::uint32_t) { tell_ends(); });
}

void TaskGroup::tell_ends() {
  if (ends_timer_ >= 0) {
    loop_.forget(ends_timer_);
    ::close(std::exchange(ends_timer_, -1));
  }
  std::ranges::sort(ends_, {}, &TaskEnd::rank);
  calls_.tell({.kind = Kind::kExited, .ends = std::exchange(ends_, {})});
}

// The tasks start when kubegang-pmix waits for them.
void TaskGroup::start_pmix() {
  pmix_ = std::make_unique<PmixService>(
      loop_, PmixService::Calls{.ready = [this] { start_tasks(); },
                                .tell = calls_.tell,
                                .ended = [this](const std::string& why) { lose_pmix(why); }});
  if (!pmix_->start(set_)) lose_pmix("kubegang-pmix: " + std::string{std::strerror(errno)});
}

// Tasks of PMIx cannot go on without it, and their library would wait.
void TaskGroup::lose_pmix(const std::string& why) {
  if (has_started_) {
    std::fprintf(stderr, "kubegang-launcher: %s: its tasks are killed\n", why.c_str());
    return signal(SIGKILL);
  }
  has_started_ = true;
  for (Task& task : tasks_) {
    task.has_ended = true;
    fail(task.rank, why);
  }
}

// SOURCE: srun(1), --pty: task 0 has a terminal.
bool TaskGroup::start_task(std::size_t place) {
  if (set_.window.rows > 0 && set_.ranks[place] == 0) return start_at_terminal(place);
  std::array<std::array<int, 2>, 3> pipes{};
  for (std::size_t i = 0; i < pipes.size(); ++i) {
    if (i == 1 && set_.is_unbuffered) {
      const TerminalEnds ends = open_output_terminal();
      pipes[i] = {ends.ours, ends.program};
      if (ends.ours >= 0) continue;
    }
    if (::pipe2(pipes[i].data(), O_CLOEXEC) == 0) continue;
    const int why = errno;
    while (i-- > 0) {
      for (const int fd : pipes[i]) ::close(fd);
    }
    errno = why;
    return false;
  }
  Task& task = tasks_[place];
  Program program = program_of(place);
  program.input = pipes[0][0];
  program.output = pipes[1][1];
  program.error = pipes[2][1];
  const bool has_pmi = set_.mpi != Mpi::kPmi2 || open_pmi(task, program);
  task.pid = has_pmi ? launcher::start(program) : -1;
  const int why = errno;
  for (const int fd : {pipes[0][0], pipes[1][1], pipes[2][1], program.extra}) {
    if (fd >= 0) ::close(fd);
  }
  task.input = pipes[0][1];
  task.outputs = {pipes[1][0], pipes[2][0]};
  for (const int fd : {task.input, task.outputs[0], task.outputs[1]}) {
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
  }
  if (task.pid < 0) {
    for (const int fd : {task.input, task.outputs[0], task.outputs[1]}) ::close(fd);
    task.input = -1;
    task.outputs = {-1, -1};
    close_pmi(task);
    errno = why;
    return false;
  }
  running_[task.pid] = place;
  for (const int stream : {0, 1}) {
    loop_.watch(task.outputs[static_cast<std::size_t>(stream)], reads_ ? EPOLLIN : 0U,
                [this, &task, stream](std::uint32_t) { output(task, stream); });
  }
  return true;
}

bool TaskGroup::start_at_terminal(std::size_t place) {
  const TerminalEnds ends = open_terminal(set_.window);
  if (ends.ours < 0) return false;
  Task& task = tasks_[place];
  Program program = program_of(place);
  program.input = program.output = program.error = ends.program;
  program.has_terminal = true;
  const bool has_pmi = set_.mpi != Mpi::kPmi2 || open_pmi(task, program);
  task.pid = has_pmi ? launcher::start(program) : -1;
  const int why = errno;
  ::close(ends.program);
  if (program.extra >= 0) ::close(program.extra);
  task.input = ::fcntl(ends.ours, F_DUPFD_CLOEXEC, 0);
  task.outputs = {ends.ours, -1};
  ::fcntl(ends.ours, F_SETFL, O_NONBLOCK);
  if (task.pid >= 0) {
    running_[task.pid] = place;
    loop_.watch(ends.ours, reads_ ? EPOLLIN : 0U,
                [this, &task](std::uint32_t) { output(task, 0); });
    return true;
  }
  for (const int fd : {ends.ours, task.input}) ::close(fd);
  task.input = -1;
  task.outputs = {-1, -1};
  close_pmi(task);
  errno = why;
  return false;
}

// Returns all of the program but its files.
Program TaskGroup::program_of(std::size_t place) const {
  Program program{.argv = set_.programs.size() == 1 ? set_.programs[0] : set_.programs[place],
                  .environment = set_.environment,
                  .directory = set_.directory,
                  .speaker = "slurmstepd-" + node_,
                  .umask = value_of(set_.environment, "SLURM_UMASK")};
  program.environment.push_back("SLURM_PROCID=" + std::to_string(tasks_[place].rank));
  program.environment.push_back("SLURM_LOCALID=" + std::to_string(place));
  if (pmix_) {
    for (const std::string& entry : pmix_->environment(tasks_[place].rank)) {
      program.environment.push_back(entry);
    }
  }
  bind_gpus(program.environment, place, tasks_.size());
  return program;
}

// Reads once; when the task has ended, what is left. One that has left its session may still write,
// so no more is read than a pipe can hold.
void TaskGroup::output(Task& task, int stream) {
  int& fd = task.outputs[static_cast<std::size_t>(stream)];
  std::array<char, kChunkBytesMax> bytes{};
  std::size_t left = task.has_ended ? kPipeBytesMax : 1;
  while (left > 0) {
    const ssize_t count = ::read(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count <= 0) {
      loop_.forget(fd);
      ::close(std::exchange(fd, -1));
      return;
    }
    calls_.tell({.kind = Kind::kOutput,
                 .rank = task.rank,
                 .number = static_cast<std::uint32_t>(stream + 1),
                 .text = std::string{bytes.data(), static_cast<std::size_t>(count)}});
    left -= std::min(left, static_cast<std::size_t>(count));
  }
}

void TaskGroup::handle(const Message& message) {
  if (message.kind == Kind::kPmix) {
    if (pmix_) pmix_->send(message);
    return;
  }
  if (!has_started_) return early_.push_back(message);
  if (message.kind == Kind::kSignal) return signal(static_cast<int>(message.number));
  if (message.kind == Kind::kPmi) {
    for (Task& task : tasks_) {
      if (task.rank == message.rank) answer_pmi(task, message.text);
    }
    return;
  }
  if (message.kind == Kind::kResize) {
    for (const Task& task : tasks_) {
      if (task.rank == message.rank && task.outputs[0] >= 0) {
        set_window(task.outputs[0], unpack_window(message.number));
      }
    }
    return;
  }
  if (message.kind != Kind::kInput && message.kind != Kind::kInputEnd) return;
  for (Task& task : tasks_) {
    if (message.rank != kAllTasks && message.rank != task.rank) continue;
    if (task.input < 0) continue;
    task.pending_input += message.text;
    if (message.kind == Kind::kInputEnd) task.input_ends = true;
    feed(task);
  }
}

void TaskGroup::signal(int number) {
  if (!has_started_) {
    early_.push_back({.kind = Kind::kSignal, .number = static_cast<std::uint32_t>(number)});
    return;
  }
  std::set<pid_t> sessions;
  for (const auto& [pid, place] : running_) {
    sessions.insert(pid);
    // One that has only just been started does not lead a session yet.
    if (::getsid(pid) != pid) ::kill(pid, number);
  }
  signal_sessions(sessions, number);
}

// Writes what the pipe takes. A task that has closed its input loses the rest.
void TaskGroup::feed(Task& task) {
  while (!task.pending_input.empty()) {
    const ssize_t count = ::write(task.input, task.pending_input.data(), task.pending_input.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) {
      task.pending_input.clear();
      task.input_ends = true;
      break;
    }
    task.pending_input.erase(0, static_cast<std::size_t>(count));
  }
  const bool waits = !task.pending_input.empty();
  if (waits && !task.input_watched) {
    task.input_watched = true;
    loop_.watch(task.input, EPOLLOUT, [this, &task](std::uint32_t) {
      feed(task);
      if (calls_.fed) calls_.fed();
    });
  }
  if (!waits && task.input_watched) {
    task.input_watched = false;
    loop_.forget(task.input);
  }
  if (!waits && task.input_ends) ::close(std::exchange(task.input, -1));
}

// A task speaks PMI on its descriptor 3.
bool TaskGroup::open_pmi(Task& task, Program& program) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return false;
  task.pmi = ends[0];
  ::fcntl(task.pmi, F_SETFL, O_NONBLOCK);
  program.extra = ends[1];
  program.environment.push_back("PMI_RANK=" + std::to_string(task.rank));
  program.environment.push_back("PMI_FD=3");
  loop_.watch(task.pmi, EPOLLIN, [this, &task](std::uint32_t events) { hear_pmi(task, events); });
  return true;
}

void TaskGroup::hear_pmi(Task& task, std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) flush_pmi(task);
  if (task.pmi < 0 || (events & ~std::uint32_t{EPOLLOUT}) == 0) return;
  std::array<char, kChunkBytesMax> bytes{};
  const ssize_t count = ::read(task.pmi, bytes.data(), bytes.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (count <= 0) return close_pmi(task);
  calls_.tell({.kind = Kind::kPmi,
               .rank = task.rank,
               .text = std::string{bytes.data(), static_cast<std::size_t>(count)}});
}

void TaskGroup::answer_pmi(Task& task, const std::string& bytes) {
  if (task.pmi < 0) return;
  if (bytes.empty()) return close_pmi(task);
  task.pending_pmi += bytes;
  flush_pmi(task);
}

// A task that does not read has asked for nothing, so what waits here is one answer.
void TaskGroup::flush_pmi(Task& task) {
  while (!task.pending_pmi.empty()) {
    const std::string& text = task.pending_pmi;
    const ssize_t count = ::send(task.pmi, text.data(), text.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) return close_pmi(task);
    task.pending_pmi.erase(0, static_cast<std::size_t>(count));
  }
  loop_.change(task.pmi, EPOLLIN | (task.pending_pmi.empty() ? 0U : EPOLLOUT));
}

void TaskGroup::close_pmi(Task& task) {
  if (task.pmi < 0) return;
  loop_.forget(task.pmi);
  ::close(std::exchange(task.pmi, -1));
  task.pending_pmi.clear();
}

void TaskGroup::read_outputs(bool reads) {
  if (reads == std::exchange(reads_, reads)) return;
  for (const Task& task : tasks_) {
    for (const int fd : task.outputs) {
      if (fd >= 0) loop_.change(fd, reads ? EPOLLIN : 0U);
    }
  }
}

bool TaskGroup::is_piled_up() const {
  if (early_.size() > kEarlyMax) return true;
  return std::ranges::any_of(
      tasks_, [](const Task& task) { return task.pending_input.size() > kPiledUpBytesMax; });
}

bool TaskGroup::reaped(pid_t pid, int wait_status, const Used& used) {
  if (pmix_ && pmix_->reaped(pid, wait_status)) return true;
  const auto found = running_.find(pid);
  if (found == running_.end()) return false;
  Task& task = tasks_[found->second];
  running_.erase(found);
  task.has_ended = true;
  // Processes left behind in its session would run on without a parent that waits for them.
  signal_sessions({pid}, SIGKILL);
  for (const int stream : {0, 1}) {
    if (task.outputs[static_cast<std::size_t>(stream)] >= 0) output(task, stream);
  }
  for (int& fd : task.outputs) {
    if (fd < 0) continue;
    loop_.forget(fd);
    ::close(std::exchange(fd, -1));
  }
  if (task.input >= 0) {
    if (task.input_watched) loop_.forget(task.input);
    ::close(std::exchange(task.input, -1));
    task.pending_input.clear();
  }
  close_pmi(task);
  add_end({.rank = task.rank,
           .wait_status = static_cast<std::uint32_t>(wait_status),
           .used = encode(used)});
  return true;
}

}  // namespace launcher
