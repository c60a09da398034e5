#include "launcher/step_server.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "launcher/process.h"

namespace launcher {
namespace {

constexpr int kBacklog = 128;
constexpr std::size_t kSecretBytes = 16;
// A task that does not read its input, and an srun that does not read its output, are waited for
// when so much has piled up.
constexpr std::size_t kPiledUpBytesMax = 1U << 20U;

std::string random_text(std::size_t bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  std::array<unsigned char, kSecretBytes> random{};
  if (::getrandom(random.data(), bytes, 0) != static_cast<ssize_t>(bytes)) return text;
  for (std::size_t i = 0; i < bytes; ++i) {
    text += kDigits[random[i] >> 4U];
    text += kDigits[random[i] & 15U];
  }
  return text;
}

// Takes the same time wherever they differ.
bool is_same(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char differs = 0;
  for (std::size_t i = 0; i < a.size(); ++i) differs |= static_cast<unsigned char>(a[i] ^ b[i]);
  return differs == 0;
}

// In the abstract name space, so no folder must be writable.
int listen_at(const std::string& name) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (fd < 0 || ::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(fd, kBacklog) != 0) {
    if (fd >= 0) ::close(fd);
    return -1;
  }
  return fd;
}

}  // namespace

struct StepServer::Task {
  pid_t pid = -1;
  int input = -1;
  std::array<int, 2> outputs{-1, -1};
  std::string pending_input;
  bool input_ends = false;
  bool input_watched = false;
  bool has_ended = false;
};

struct StepServer::Step {
  enum class State { kNew, kWaiting, kRunning, kOver };
  int fd = -1;
  State state = State::kNew;
  std::uint32_t id = 0;
  StepRequest request;
  std::vector<Task> tasks;
  std::uint32_t running = 0;
  MessageReader reader;
  std::string to_send;
  bool is_connected = true;
  bool outputs_watched = true;
};

StepServer::StepServer(Loop& loop, std::string node, std::uint32_t cpus)
    : loop_{loop}, node_{std::move(node)}, cpus_{cpus}, secret_{random_text(kSecretBytes)} {
  const std::string name = "kubegang-" + random_text(kSecretBytes);
  if (secret_.empty()) return;
  listener_ = listen_at(name);
  if (listener_ < 0) return;
  address_ = name + ":" + secret_;
  loop_.watch(listener_, EPOLLIN, [this](std::uint32_t) { accept_one(); });
}

StepServer::~StepServer() {
  for (const auto& [pid, task] : tasks_) ::kill(-pid, SIGKILL);
}

void StepServer::accept_one() {
  const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  // A pod may share the network, and so these names, with its node: other users are turned away
  // before they say anything.
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != ::getuid()) {
    ::close(fd);
    return;
  }
  const StepPlace step = steps_.emplace(steps_.end());
  step->fd = fd;
  loop_.watch(fd, EPOLLIN, [this, step](std::uint32_t events) {
    if ((events & EPOLLOUT) != 0) writable(step);
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && step->is_connected) readable(step);
    if (!step->is_connected && step->running == 0) drop(step);
  });
}

void StepServer::readable(StepPlace step) {
  std::array<char, kChunkBytesMax> bytes{};
  const ssize_t count = ::read(step->fd, bytes.data(), bytes.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count > 0) step->reader.add({bytes.data(), static_cast<std::size_t>(count)});
  while (const std::optional<Message> message = step->reader.next()) handle(step, *message);
  if (count > 0 && !step->reader.is_broken()) return;
  // Its srun is gone, so nobody waits for these tasks.
  step->is_connected = false;
  loop_.forget(step->fd);
  for (const Task& task : step->tasks) {
    if (!task.has_ended) ::kill(-task.pid, SIGKILL);
  }
  if (step->state == Step::State::kWaiting) step->state = Step::State::kOver;
}

void StepServer::handle(StepPlace step, const Message& message) {
  if (message.kind == Kind::kCreate && step->state == Step::State::kNew) {
    return create(step, *message.step);
  }
  if (step->state != Step::State::kRunning) return;
  if (message.kind == Kind::kSignal) {
    for (const Task& task : step->tasks) {
      if (!task.has_ended) ::kill(-task.pid, static_cast<int>(message.number));
    }
  }
  const bool is_input = message.kind == Kind::kInput || message.kind == Kind::kInputEnd;
  for (std::uint32_t rank = 0; is_input && rank < step->tasks.size(); ++rank) {
    if (message.rank != kAllTasks && message.rank != rank) continue;
    Task& task = step->tasks[rank];
    if (task.input < 0) continue;
    task.pending_input += message.text;
    if (message.kind == Kind::kInputEnd) task.input_ends = true;
    feed(task);
    if (task.pending_input.size() > kPiledUpBytesMax) loop_.change(step->fd, 0);
  }
}

void StepServer::create(StepPlace step, const StepRequest& request) {
  if (!is_same(request.secret, secret_)) {
    send(step, {.kind = Kind::kRefused, .text = "Invalid job credential"});
    step->state = Step::State::kOver;
    return;
  }
  step->request = request;
  step->request.secret.clear();
  if (request.cpus > cpus_) {
    send(step, {.kind = Kind::kRefused, .text = "More processors requested than permitted"});
    step->state = Step::State::kOver;
    return;
  }
  step->state = Step::State::kWaiting;
  start_waiting();
  if (step->state != Step::State::kWaiting) return;
  if (request.is_immediate) {
    send(step, {.kind = Kind::kRefused, .text = "Requested nodes are busy"});
    step->state = Step::State::kOver;
    return;
  }
  send(step, {.kind = Kind::kBusy});
}

// Those that came first come first; one that fits does not wait behind one that does not.
void StepServer::start_waiting() {
  for (StepPlace step = steps_.begin(); step != steps_.end(); ++step) {
    if (step->state != Step::State::kWaiting) continue;
    if (cpus_used_ + step->request.cpus <= cpus_) start_step(step);
  }
}

void StepServer::start_step(StepPlace step) {
  step->state = Step::State::kRunning;
  step->id = next_step_++;
  cpus_used_ += step->request.cpus;
  send(step, {.kind = Kind::kCreated, .number = step->id});
  const std::string id = std::to_string(step->id);
  Environment& environment = step->request.environment;
  set(environment, "SLURM_STEP_ID", id);
  set(environment, "SLURM_STEPID", id);
  std::string ranks;
  for (std::uint32_t rank = 0; rank < step->request.tasks; ++rank) {
    ranks += (rank == 0 ? "" : ",") + std::to_string(rank);
  }
  // Linux takes 131,072 bytes for a variable.
  if (ranks.size() <= kChunkBytesMax) set(environment, "SLURM_GTIDS", ranks);
  step->tasks.resize(step->request.tasks);
  for (std::uint32_t rank = 0; rank < step->request.tasks; ++rank) {
    if (start_task(step, rank)) continue;
    const std::string why =
        std::string{"starting task "} + std::to_string(rank) + ": " + std::strerror(errno);
    step->tasks[rank].has_ended = true;
    send(step, {.kind = Kind::kOutput, .rank = rank, .number = 2, .text = why + "\n"});
    send(step, {.kind = Kind::kExited, .rank = rank, .number = 1U << 8U});
  }
  end_if_over(step);
}

bool StepServer::start_task(StepPlace step, std::uint32_t rank) {
  std::array<std::array<int, 2>, 3> pipes{};
  for (std::size_t i = 0; i < pipes.size(); ++i) {
    if (::pipe2(pipes[i].data(), O_CLOEXEC) == 0) continue;
    const int why = errno;
    while (i-- > 0) {
      for (const int fd : pipes[i]) ::close(fd);
    }
    errno = why;
    return false;
  }
  const StepRequest& request = step->request;
  Program program{
      .argv = request.programs.size() == 1 ? request.programs[0] : request.programs[rank],
      .environment = request.environment,
      .directory = request.directory,
      .input = pipes[0][0],
      .output = pipes[1][1],
      .error = pipes[2][1],
      .speaker = "slurmstepd-" + node_};
  program.environment.push_back("SLURM_PROCID=" + std::to_string(rank));
  program.environment.push_back("SLURM_LOCALID=" + std::to_string(rank));
  Task& task = step->tasks[rank];
  task.pid = start(program);
  const int why = errno;
  for (const int fd : {pipes[0][0], pipes[1][1], pipes[2][1]}) ::close(fd);
  task.input = pipes[0][1];
  task.outputs = {pipes[1][0], pipes[2][0]};
  for (const int fd : {task.input, task.outputs[0], task.outputs[1]}) {
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
  }
  if (task.pid < 0) {
    for (const int fd : {task.input, task.outputs[0], task.outputs[1]}) ::close(fd);
    task.input = -1;
    task.outputs = {-1, -1};
    errno = why;
    return false;
  }
  ++step->running;
  tasks_[task.pid] = {step, rank};
  for (const int stream : {0, 1}) {
    loop_.watch(task.outputs[static_cast<std::size_t>(stream)], EPOLLIN,
                [this, step, rank, stream](std::uint32_t) { output(step, rank, stream); });
  }
  return true;
}

// Reads once; when the task has ended, all that is left.
void StepServer::output(StepPlace step, std::uint32_t rank, int stream) {
  Task& task = step->tasks[rank];
  int& fd = task.outputs[static_cast<std::size_t>(stream)];
  std::array<char, kChunkBytesMax> bytes{};
  do {
    const ssize_t count = ::read(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count <= 0) {
      loop_.forget(fd);
      ::close(std::exchange(fd, -1));
      return;
    }
    send(step, {.kind = Kind::kOutput,
                .rank = rank,
                .number = static_cast<std::uint32_t>(stream + 1),
                .text = std::string{bytes.data(), static_cast<std::size_t>(count)}});
  } while (task.has_ended);
}

// Writes what the pipe takes. A task that has closed its input loses the rest.
void StepServer::feed(Task& task) {
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
    const StepPlace step = tasks_.at(task.pid).first;
    loop_.watch(task.input, EPOLLOUT, [this, &task, step](std::uint32_t) {
      feed(task);
      if (!step->is_connected || task.pending_input.size() > kPiledUpBytesMax) return;
      loop_.change(step->fd, EPOLLIN | (step->to_send.empty() ? 0U : EPOLLOUT));
    });
  }
  if (!waits && task.input_watched) {
    task.input_watched = false;
    loop_.forget(task.input);
  }
  if (!waits && task.input_ends) ::close(std::exchange(task.input, -1));
}

bool StepServer::reaped(pid_t pid, int wait_status) {
  const auto found = tasks_.find(pid);
  if (found == tasks_.end()) return false;
  const auto [step, rank] = found->second;
  Task& task = step->tasks[rank];
  task.has_ended = true;
  // What it left behind in its session would run on without anybody who waits for it.
  ::kill(-pid, SIGKILL);
  for (const int stream : {0, 1}) {
    if (task.outputs[static_cast<std::size_t>(stream)] >= 0) output(step, rank, stream);
  }
  for (int& fd : task.outputs) {
    if (fd < 0) continue;
    loop_.forget(fd);
    ::close(std::exchange(fd, -1));
  }
  if (task.input >= 0) {
    if (task.input_watched) loop_.forget(task.input);
    ::close(std::exchange(task.input, -1));
  }
  tasks_.erase(found);
  send(step,
       {.kind = Kind::kExited, .rank = rank, .number = static_cast<std::uint32_t>(wait_status)});
  --step->running;
  end_if_over(step);
  if (!step->is_connected && step->running == 0) drop(step);
  return true;
}

void StepServer::end_if_over(StepPlace step) {
  if (step->state != Step::State::kRunning || step->running > 0) return;
  send(step, {.kind = Kind::kDone});
  step->state = Step::State::kOver;
  cpus_used_ -= step->request.cpus;
  start_waiting();
}

void StepServer::signal_all(int signal) {
  for (const auto& [pid, task] : tasks_) ::kill(-pid, signal);
}

void StepServer::send(StepPlace step, const Message& message) {
  if (!step->is_connected) return;
  step->to_send += encode(message);
  writable(step);
}

void StepServer::writable(StepPlace step) {
  while (!step->to_send.empty()) {
    const ssize_t count =
        ::send(step->fd, step->to_send.data(), step->to_send.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;  // full, or gone: then the end of its stream says so
    step->to_send.erase(0, static_cast<std::size_t>(count));
  }
  if (!step->is_connected) return;
  const bool waits = !step->to_send.empty();
  loop_.change(step->fd, EPOLLIN | (waits ? EPOLLOUT : 0U));
  const bool reads = step->to_send.size() < kPiledUpBytesMax;
  if (reads != step->outputs_watched) watch_outputs(*step, reads);
}

void StepServer::watch_outputs(Step& step, bool reads) {
  step.outputs_watched = reads;
  for (const Task& task : step.tasks) {
    for (const int fd : task.outputs) {
      if (fd >= 0) loop_.change(fd, reads ? EPOLLIN : 0U);
    }
  }
}

void StepServer::drop(StepPlace step) {
  loop_.forget(step->fd);
  ::close(step->fd);
  steps_.erase(step);
}

}  // namespace launcher
