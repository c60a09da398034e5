#include "launcher/step_server.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "launcher/net.h"
#include "launcher/pmi.h"

namespace launcher {
namespace {

// Connections of the job's port that have not shown yet that they know the key.
constexpr std::ptrdiff_t kStrangersMax = 256;

// Takes the same time wherever they differ.
bool is_same(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char differs = 0;
  for (std::size_t i = 0; i < a.size(); ++i) differs |= static_cast<unsigned char>(a[i] ^ b[i]);
  return differs == 0;
}

// REQUIRES: the node is one of the step's.
std::uint32_t place_of(const StepLayout& layout, std::uint32_t node) {
  const auto found = std::ranges::find(layout.nodes, node);
  return static_cast<std::uint32_t>(found - layout.nodes.begin());
}

}  // namespace

struct StepServer::Step {
  enum class State { kNew, kWaiting, kRunning, kOver };
  std::unique_ptr<Channel> srun{};
  State state = State::kNew;
  std::uint32_t id = 0;
  StepRequest request{};
  StepPlacement placement{};
  std::unique_ptr<TaskGroup> here{};
  std::optional<PmiServer> pmi{};
  std::optional<PmixExchange> pmix{};
  std::vector<PeerPlace> peers{};  // of its other nodes
  std::vector<bool> has_ended{};   // by rank
  std::uint32_t running = 0;
  bool was_told_busy = false;
  bool holds_input = false;  // srun was asked to wait
};

// A connection of another pod's launcher: unknown, then idle, then of a step; or unknown, then a
// srun's on that node, whose step has the channel.
struct StepServer::Peer {
  std::unique_ptr<Channel> channel{};
  std::optional<std::uint32_t> node{};
  std::optional<StepPlace> step{};
  std::optional<StepPlace> of_srun{};
  std::string launcher{};  // which run of its launcher, and which of its connections
  std::uint32_t line = 0;
  std::optional<RunTime::Duration> cut_since{};
  bool holds_input = false;  // its tasks have enough
  bool is_leaving = false;

  bool is_stranger() const { return !node && !of_srun; }
  Channel& connection() const { return of_srun ? *(*of_srun)->srun : *channel; }
};

StepServer::StepServer(Loop& loop, JobNodes nodes)
    : loop_{loop},
      nodes_{std::move(nodes)},
      idle_(nodes_.names.size()),
      is_lost_(nodes_.names.size()),
      secret_{random_text()} {
  for (const std::uint32_t cpus : nodes_.cpus) rooms_.push_back({.cpus = cpus});
  const std::string name = "kubegang-" + random_text();
  if (secret_.empty()) return;
  listener_ = listen_locally(name);
  if (listener_ < 0) return;
  address_ = name + ":" + secret_;
  loop_.watch(listener_, EPOLLIN, [this](std::uint32_t) { accept_srun(); });
}

StepServer::~StepServer() {
  steps_.clear();
  peers_.clear();
  for (const int fd : {listener_, launcher_listener_}) {
    if (fd < 0) continue;
    loop_.forget(fd);
    ::close(fd);
  }
}

void StepServer::take_launchers(int listener, std::unique_ptr<Tls> tls) {
  tls_ = std::move(tls);
  launcher_listener_ = listener;
  loop_.watch(listener, EPOLLIN, [this](std::uint32_t) { accept_launcher(); });
}

void StepServer::accept_srun() {
  const int fd = accept_own(listener_);
  if (fd < 0) return;
  const StepPlace step = steps_.emplace(steps_.end());
  step->srun = std::make_unique<Channel>(
      loop_, fd, nullptr,
      Channel::Calls{.message = [this, step](const Message& message) { hear_srun(step, message); },
                     .closed = [this, step] { lose_srun(step); },
                     .sent = [this, step] { balance(step); }});
}

void StepServer::accept_launcher() {
  const int fd = ::accept4(launcher_listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  const auto is_stranger = [](const Peer& peer) { return peer.is_stranger() && !peer.is_leaving; };
  if (std::ranges::count_if(peers_, is_stranger) >= kStrangersMax) {
    dismiss(std::ranges::find_if(peers_, is_stranger));
  }
  keep_alive(fd);
  const PeerPlace peer = peers_.emplace(peers_.end());
  peer->channel = std::make_unique<Channel>(
      loop_, fd, tls_->for_server(fd),
      Channel::Calls{
          .message = [this, peer](const Message& message) { hear_launcher(peer, message); },
          .closed = [this, peer] { lose_launcher(peer); },
          .sent =
              [this, peer] {
                if (peer->step) balance(*peer->step);
                if (peer->of_srun) balance(*peer->of_srun);
              },
          .cut = [this] { has_cuts_ = true; }});
}

void StepServer::hear_srun(StepPlace step, const Message& message) {
  if (message.kind == Kind::kCreate && step->state == Step::State::kNew) {
    return create(step, *message.step);
  }
  const bool is_command = message.kind == Kind::kSignalJob || message.kind == Kind::kRelease ||
                          message.kind == Kind::kRequeue;
  if (is_command && step->state == Step::State::kNew) return obey(step, message);
  if (step->state != Step::State::kRunning) return;
  const bool is_for_tasks = message.kind == Kind::kInput || message.kind == Kind::kInputEnd ||
                            message.kind == Kind::kSignal || message.kind == Kind::kResize;
  if (!is_for_tasks) return;
  const bool is_for_all = message.kind == Kind::kSignal || message.rank == kAllTasks;
  if (!is_for_all && message.rank >= step->has_ended.size()) return;
  send_to_tasks(step, message);
  balance(step);
}

// Sends to all nodes of the step, or to that of the one task that is meant.
void StepServer::send_to_tasks(StepPlace step, const Message& message) {
  const bool is_for_all = message.kind == Kind::kSignal || message.rank == kAllTasks;
  const StepLayout& layout = step->placement.layout;
  const auto concerns = [&](std::uint32_t node) {
    return is_for_all || layout.nodes[layout.places[message.rank]] == node;
  };
  if (step->here && concerns(nodes_.own)) step->here->handle(message);
  for (const PeerPlace peer : step->peers) {
    if (concerns(*peer->node)) peer->channel->send(message);
  }
}

// Only what a launcher may say at this point is heard; anything else ends its connection.
void StepServer::hear_launcher(PeerPlace peer, const Message& message) {
  if (peer->is_leaving) return;
  if (peer->of_srun) return hear_srun(*peer->of_srun, message);
  if (message.kind == Kind::kResume && peer->is_stranger()) return resume(peer, message);
  if (message.kind == Kind::kRelay && !peer->node) {
    peer->launcher = message.text;
    peer->line = message.rank;
    peer->of_srun = steps_.emplace(steps_.end());
    (*peer->of_srun)->srun = std::move(peer->channel);
    return;
  }
  if (message.kind == Kind::kHello && !peer->node) return greet(peer, message);
  if (message.kind == Kind::kHold && peer->step) {
    peer->holds_input = message.number != 0;
    return balance(*peer->step);
  }
  if (message.kind == Kind::kPmix && peer->step) {
    return hear_pmix(*peer->step, *peer->node, message);
  }
  const bool is_of_task =
      message.kind == Kind::kOutput || message.kind == Kind::kExited || message.kind == Kind::kPmi;
  if (!peer->step || !is_of_task) return dismiss(peer);
  const StepPlace step = *peer->step;
  const StepLayout& layout = step->placement.layout;
  const auto runs_there = [&](std::uint32_t rank) {
    return rank < layout.places.size() && layout.nodes[layout.places[rank]] == *peer->node &&
           !step->has_ended[rank];
  };
  const bool is_right = message.kind == Kind::kExited
                            ? std::ranges::all_of(message.ends, runs_there, &TaskEnd::rank)
                            : runs_there(message.rank);
  if (!is_right) return dismiss(peer);
  hear_task(step, message);
}

void StepServer::greet(PeerPlace peer, const Message& hello) {
  const std::uint32_t node = hello.number;
  if (node >= nodes_.names.size() || node == nodes_.own) return dismiss(peer);
  // A launcher that runs again does not have the tasks of its earlier run.
  for (PeerPlace other = peers_.begin(); other != peers_.end(); ++other) {
    if (other->node == node && other->launcher != hello.text) lose_launcher(other);
  }
  // A launcher keeps one that is idle, so an earlier one belongs to a connection that was cut.
  if (idle_[node]) dismiss(*idle_[node]);
  peer->node = node;
  peer->launcher = hello.text;
  peer->line = hello.rank;
  idle_[node] = peer;
  is_lost_[node] = false;
  start_waiting();
}

StepServer::PeerPlace StepServer::find(const Message& resume) {
  return std::ranges::find_if(peers_, [&](const Peer& peer) {
    return !peer.is_stranger() && !peer.is_leaving && peer.launcher == resume.text &&
           peer.line == resume.rank;
  });
}

// Replaces the socket of an earlier connection, whose cut may not have been noticed here yet.
void StepServer::resume(PeerPlace fresh, const Message& message) {
  if (find(message) == peers_.end()) {
    fresh->channel->send({.kind = Kind::kRefused});
    return dismiss(fresh);
  }
  fresh->is_leaving = true;
  loop_.later([this, fresh, message] {
    const PeerPlace peer = find(message);
    if (peer != peers_.end()) peer->connection().resume(*fresh->channel, message.number);
    peers_.erase(fresh);
  });
}

int StepServer::look(RunTime::Clock::time_point now) {
  if (!has_cuts_) return -1;
  const RunTime::Duration time = time_.at(now);
  has_cuts_ = false;
  for (PeerPlace peer = peers_.begin(); peer != peers_.end(); ++peer) {
    if (peer->is_leaving) continue;
    if (!peer->connection().is_cut()) {
      peer->cut_since.reset();
      continue;
    }
    if (!peer->cut_since) peer->cut_since = time;
    const bool is_wanted =
        peer->of_srun ? (*peer->of_srun)->state != Step::State::kOver : peer->node.has_value();
    if (!is_wanted || time - *peer->cut_since >= kCutMax) {
      lose_launcher(peer);
    } else {
      has_cuts_ = true;
    }
  }
  return has_cuts_ ? static_cast<int>(RunTime::kStep.count()) : -1;
}

void StepServer::hear_task(StepPlace step, const Message& message) {
  if (step->state != Step::State::kRunning) return;
  if (message.kind == Kind::kPmi) return hear_pmi(step, message);
  step->srun->send(message);
  if (message.kind == Kind::kOutput) return balance(step);
  for (const TaskEnd& end : message.ends) {
    step->has_ended[end.rank] = true;
    usage_.task_ended(step->id, static_cast<int>(end.wait_status), end.used);
    const bool has_aborted = step->pmix && step->pmix->end() && step->pmix->end()->rank == end.rank;
    if (has_aborted) send_to_tasks(step, {.kind = Kind::kSignal, .number = SIGKILL});
  }
  step->running -= static_cast<std::uint32_t>(message.ends.size());
  if (step->running > 0) return balance(step);
  step->srun->send({.kind = Kind::kDone});
  finish(step);
}

void StepServer::hear_pmi(StepPlace step, const Message& message) {
  if (!step->pmi) return;
  std::vector<PmiServer::Reply> replies;
  // A task that does not speak PMI is cut off.
  if (!step->pmi->add(message.rank, message.text, replies)) replies.push_back({message.rank, ""});
  for (PmiServer::Reply& reply : replies) {
    send_to_tasks(step, {.kind = Kind::kPmi, .rank = reply.rank, .text = std::move(reply.bytes)});
  }
  // A task that aborts ends all, as with Slurm.
  if (step->pmi->abort()) send_to_tasks(step, {.kind = Kind::kSignal, .number = SIGKILL});
}

void StepServer::hear_pmix(StepPlace step, std::uint32_t node, const Message& message) {
  if (step->state != Step::State::kRunning || !step->pmix) return;
  const bool was_ending = step->pmix->end().has_value();
  std::vector<PmixExchange::Reply> replies;
  if (!step->pmix->add(place_of(step->placement.layout, node), *message.pmix, replies)) {
    std::fprintf(stderr, "kubegang-launcher: kubegang-pmix of %s sent a bad message\n",
                 nodes_.names[node].c_str());
  }
  answer_pmix(step, std::move(replies));
  const auto& end = step->pmix->end();
  if (!end || was_ending) return;
  Message aborted{.kind = Kind::kAborted, .rank = end->rank};
  if (end->exit_code) {
    aborted.number = static_cast<std::uint32_t>(*end->exit_code);
  } else {
    aborted.text = "task " + std::to_string(end->rank) + " has ended without MPI_Finalize";
  }
  step->srun->send(aborted);
  // One that aborts ends by itself, with its exit code; srun kills it if it does not.
  if (end->exit_code && !step->has_ended[end->rank]) return;
  send_to_tasks(step, {.kind = Kind::kSignal, .number = SIGKILL});
}

void StepServer::answer_pmix(StepPlace step, std::vector<PmixExchange::Reply> replies) {
  for (PmixExchange::Reply& reply : replies) {
    const std::uint32_t node = step->placement.layout.nodes[reply.place];
    const Message message{.kind = Kind::kPmix, .pmix = std::move(reply.message)};
    if (step->here && node == nodes_.own) step->here->handle(message);
    for (const PeerPlace peer : step->peers) {
      if (*peer->node == node) peer->channel->send(message);
    }
  }
}

// The step's srun is gone, and does not wait for these tasks.
void StepServer::lose_srun(StepPlace step) {
  finish(step);
  loop_.later([this, step] { steps_.erase(step); });
}

void StepServer::lose_launcher(PeerPlace peer) {
  if (peer->is_leaving) return;
  if (peer->of_srun) lose_srun(*peer->of_srun);
  if (peer->node) is_lost_[*peer->node] = true;
  dismiss(peer);
}

// Takes it out of what it is in. The tasks that it ran count as killed.
void StepServer::dismiss(PeerPlace peer) {
  if (std::exchange(peer->is_leaving, true)) return;
  loop_.later([this, peer] { peers_.erase(peer); });
  if (peer->node && idle_[*peer->node] == peer) idle_[*peer->node].reset();
  if (!peer->step) return;
  const StepPlace step = *peer->step;
  std::erase(step->peers, peer);
  if (step->state != Step::State::kRunning) return;
  step->srun->send({.kind = Kind::kLost, .number = *peer->node});
  const StepLayout& layout = step->placement.layout;
  if (step->pmix) {
    std::vector<PmixExchange::Reply> replies;
    step->pmix->lose(place_of(layout, *peer->node), replies);
    answer_pmix(step, std::move(replies));
  }
  Message exited{.kind = Kind::kExited};
  for (std::uint32_t rank = 0; rank < layout.places.size(); ++rank) {
    if (layout.nodes[layout.places[rank]] != *peer->node || step->has_ended[rank]) continue;
    exited.ends.push_back({.rank = rank, .wait_status = SIGKILL});
  }
  if (!exited.ends.empty()) hear_task(step, exited);
}

void StepServer::refuse(StepPlace step, const std::string& why) {
  step->srun->send({.kind = Kind::kRefused, .text = why});
  step->state = Step::State::kOver;
}

void StepServer::create(StepPlace step, const StepRequest& request) {
  if (!is_same(request.secret, secret_)) return refuse(step, "Invalid job credential");
  step->request = request;
  step->request.secret.clear();
  step->state = Step::State::kWaiting;
  (void)try_start(step);
}

// Such a connection asks for one thing and gets one answer.
void StepServer::obey(StepPlace step, const Message& message) {
  if (!is_same(message.text, secret_)) return refuse(step, "Invalid job credential");
  if (message.kind == Kind::kRelease && script_.release) {
    script_.release(static_cast<int>(message.number));
  } else if (message.kind == Kind::kRequeue && !(script_.requeue && script_.requeue())) {
    return refuse(step, "Requested operation is presently disabled");
  } else if (message.kind == Kind::kSignalJob &&
             !signal_job(message.rank, static_cast<int>(message.number))) {
    return refuse(step, "Invalid job id specified");
  }
  step->srun->send({.kind = Kind::kDone});
  step->state = Step::State::kOver;
}

// False: there is no such step.
bool StepServer::signal_job(std::uint32_t who, int signal) {
  const bool is_to_script = who == kScriptAlone || who == kWholeJob;
  if (is_to_script && script_.signal) script_.signal(signal, who == kWholeJob);
  if (who == kAllSteps || who == kWholeJob) signal_all(signal);
  if (is_to_script || who == kAllSteps) return true;
  for (StepPlace step = steps_.begin(); step != steps_.end(); ++step) {
    if (step->state != Step::State::kRunning || step->id != who) continue;
    send_to_tasks(step, {.kind = Kind::kSignal, .number = static_cast<std::uint32_t>(signal)});
    return true;
  }
  return false;
}

// Those that came first come first; one that fits does not wait behind one that does not.
void StepServer::start_waiting() {
  for (StepPlace step = steps_.begin(); step != steps_.end(); ++step) {
    if (step->state == Step::State::kWaiting) (void)try_start(step);
  }
}

bool StepServer::try_start(StepPlace step) {
  for (std::uint32_t node = 0; node < rooms_.size(); ++node) {
    rooms_[node].is_here = node == nodes_.own || idle_[node].has_value();
    rooms_[node].is_coming = !rooms_[node].is_here && !is_lost_[node];
  }
  StepDecision decision = place_step(step->request, rooms_);
  if (auto* placement = std::get_if<StepPlacement>(&decision)) {
    start_step(step, std::move(*placement));
    return true;
  }
  if (const auto* never = std::get_if<StepIsImpossible>(&decision)) {
    refuse(step, never->message);
  } else if (!std::get<StepMustWait>(decision).is_for_launchers && !step->was_told_busy) {
    if (step->request.is_immediate) {
      refuse(step, "Requested nodes are busy");
    } else {
      step->was_told_busy = true;
      step->srun->send({.kind = Kind::kBusy});
    }
  }
  return false;
}

void StepServer::start_step(StepPlace step, StepPlacement placement) {
  step->state = Step::State::kRunning;
  step->id = next_step_++;
  step->placement = std::move(placement);
  const StepLayout& layout = step->placement.layout;
  note_begin(*step);
  step->running = static_cast<std::uint32_t>(layout.places.size());
  step->has_ended.resize(layout.places.size());
  if (step->request.mpi == Mpi::kPmi2) {
    step->pmi.emplace(pmi_job(step->request, step->id), layout.places);
  }
  if (step->request.mpi == Mpi::kPmix) step->pmix.emplace(layout.places);
  step->srun->send({.kind = Kind::kCreated, .number = step->id, .layout = layout});
  std::optional<TaskSet> here;
  for (std::size_t place = 0; place < layout.nodes.size(); ++place) {
    const std::uint32_t node = layout.nodes[place];
    rooms_[node].used += step->placement.cpus[place];
    // More nodes than the tasks need, as with --distribution=plane.
    if (step->placement.tasks[place] == 0) continue;
    TaskSet set = task_set(step->request, step->placement, place, step->id, nodes_);
    if (node == nodes_.own) {
      here = std::move(set);
      continue;
    }
    const PeerPlace peer = *std::exchange(idle_[node], std::nullopt);
    peer->step = step;
    step->peers.push_back(peer);
    peer->channel->send({.kind = Kind::kRun, .tasks = std::move(set)});
  }
  if (!here) return;
  set(here->environment, "KUBEGANG_STEPS", address_);
  step->here =
      std::make_unique<TaskGroup>(loop_, nodes_.names[nodes_.own], std::move(*here),
                                  TaskGroup::Calls{.tell =
                                                       [this, step](const Message& message) {
                                                         if (message.kind != Kind::kPmix)
                                                           return hear_task(step, message);
                                                         hear_pmix(step, nodes_.own, message);
                                                       },
                                                   .fed = [this, step] { balance(step); }});
  step->here->start();
}

void StepServer::note_begin(const Step& step) {
  const auto& programs = step.request.programs;
  const bool has_program = !programs.empty() && !programs.front().empty();
  const std::string& program = has_program ? programs.front().front() : "";
  UsageReport::StepSize size{.tasks = step.placement.layout.places.size(),
                             .nodes = step.placement.layout.nodes.size()};
  for (const std::uint32_t cpus : step.placement.cpus) size.cpus += cpus;
  usage_.begin_step(step.id, step.request.name.empty() ? program : step.request.name, size,
                    std::chrono::system_clock::now());
}

bool StepServer::reaped(pid_t pid, int wait_status, const Used& used) {
  for (const Step& step : steps_) {
    if (step.here && step.here->reaped(pid, wait_status, used)) return true;
  }
  return false;
}

void StepServer::signal_all(int signal) {
  for (const Step& step : steps_) {
    if (step.here) step.here->signal(signal);
    for (const PeerPlace peer : step.peers) {
      peer->channel->send({.kind = Kind::kSignal, .number = static_cast<std::uint32_t>(signal)});
    }
  }
}

// Stops the source where more has piled up than may: tasks wait with their output, and srun with
// its input, but never with signals.
void StepServer::balance(StepPlace step) {
  if (step->state != Step::State::kRunning) return;
  const bool reads_outputs = !step->srun->is_piled_up();
  bool holds_input = !reads_outputs || (step->here && step->here->is_piled_up());
  if (step->here) step->here->read_outputs(reads_outputs);
  for (const PeerPlace peer : step->peers) {
    peer->channel->read(reads_outputs);
    holds_input = holds_input || peer->holds_input || peer->channel->is_piled_up();
  }
  if (holds_input == std::exchange(step->holds_input, holds_input)) return;
  step->srun->send({.kind = Kind::kHold, .number = holds_input ? 1U : 0U});
}

// Ends what still runs of it, and gives its room to those that wait.
void StepServer::finish(StepPlace step) {
  if (std::exchange(step->state, Step::State::kOver) != Step::State::kRunning) return;
  usage_.end_step(step->id, step->running > 0, std::chrono::system_clock::now());
  const StepLayout& layout = step->placement.layout;
  for (std::size_t place = 0; place < layout.nodes.size(); ++place) {
    rooms_[layout.nodes[place]].used -= step->placement.cpus[place];
  }
  for (const PeerPlace peer : std::exchange(step->peers, {})) {
    peer->step.reset();
    dismiss(peer);
  }
  const auto here = std::make_shared<std::unique_ptr<TaskGroup>>(std::move(step->here));
  loop_.later([this, here] {
    here->reset();
    start_waiting();
  });
}

}  // namespace launcher
