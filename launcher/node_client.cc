#include "launcher/node_client.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "launcher/net.h"
#include "launcher/process.h"

namespace launcher {
namespace {

// Between two tries to find the first pod, which may begin later than this one.
constexpr int kTryAgainMs = 200;
// And the one of how many that asks for its own name.
constexpr int kOwnNameEach = 25;
// A name server may know no such kind of record: then nothing is gained by waiting.
constexpr int kOwnLooksMax = 15;

// The pause between two tries to make a connection again.
constexpr std::chrono::milliseconds kNextTry{200};
// The longest that one try may take.
constexpr std::chrono::seconds kTryMax{5};

}  // namespace

// The identity of a connection, which it keeps when it is cut, and the tries to make it again.
struct NodeClient::Line {
  Message resume{};
  std::string address{};  // of the first pod
  std::optional<RunTime::Duration> cut_since{};
  std::optional<RunTime::Duration> tried{};
  bool is_trying = false;  // a socket is being connected
};

// Idle until `tasks` is there.
struct NodeClient::Link {
  Line line{};
  std::unique_ptr<Channel> channel{};
  std::unique_ptr<TaskGroup> tasks{};
  bool holds_input = false;  // the first pod was asked to wait
  bool is_leaving = false;
};

// A srun of a task here, and its connection to the first pod.
struct NodeClient::Relay {
  Line line{};
  std::unique_ptr<Channel> srun{};
  std::unique_ptr<Channel> first{};
  bool is_leaving = false;
};

NodeClient::NodeClient(Loop& loop, Place place, std::unique_ptr<Tls> tls)
    : loop_{loop}, place_{std::move(place)}, tls_{std::move(tls)} {
  const std::string name = "kubegang-" + random_text();
  listener_ = listen_locally(name);
  if (listener_ < 0) return;
  socket_ = name;
  loop_.watch(listener_, EPOLLIN, [this](std::uint32_t) { accept_srun(); });
}

NodeClient::~NodeClient() {
  if (listener_ < 0) return;
  loop_.forget(listener_);
  ::close(listener_);
}

int NodeClient::look(RunTime::Clock::time_point now) {
  const int most = keep_one_idle();
  if (!has_cuts_) return most;
  const RunTime::Duration time = time_.at(now);
  has_cuts_ = false;
  for (LinkPlace link = links_.begin(); link != links_.end(); ++link) {
    if (!link->is_leaving && !keep_line(link->line, *link->channel, time)) lose(link);
  }
  for (RelayPlace relay = relays_.begin(); relay != relays_.end(); ++relay) {
    if (!relay->is_leaving && !keep_line(relay->line, *relay->first, time)) end(relay);
  }
  return has_cuts_ ? static_cast<int>(RunTime::kStep.count()) : most;
}

// Returns false if the connection has been cut for too long.
bool NodeClient::keep_line(Line& line, Channel& channel, RunTime::Duration time) {
  if (!channel.is_cut()) {
    line.cut_since.reset();
    line.tried.reset();
    return true;
  }
  if (!line.cut_since) line.cut_since = time;
  if (time - *line.cut_since >= kCutMax) return false;
  has_cuts_ = true;
  const RunTime::Duration pause = line.is_trying ? RunTime::Duration{kTryMax} : kNextTry;
  if (line.tried && time - *line.tried < pause) return true;
  line.tried = time;
  const auto fd = connect_to(line.address, place_.port);
  if (!fd) return true;
  keep_alive(*fd);
  line.is_trying = true;
  channel.resume(*fd, tls_->for_client(*fd), line.resume);
  return true;
}

// Returns the first message of a new connection, which names it for a later Resume.
Message NodeClient::first_word(Kind kind) {
  return {.kind = kind, .rank = next_line_++, .number = place_.index, .text = name_};
}

int NodeClient::keep_one_idle() {
  const bool has_idle =
      std::ranges::any_of(links_, [](const Link& link) { return !link.tasks && !link.is_leaving; });
  if (has_idle) return -1;
  if (std::exchange(must_pause_, false)) return kTryAgainMs;
  const base::Status status = open_link();
  const std::string error = status ? "" : status.error().message;
  // Names of pods become known while they start, so this is said once for each reason.
  if (!error.empty() && error != last_error_) {
    std::fprintf(stderr, "kubegang-launcher: waiting for the job's first pod: %s\n", error.c_str());
  }
  if (!error.empty()) last_error_ = error;
  return status ? -1 : kTryAgainMs;
}

// Leaves the pod's own name alone until it must be known: denied once, it would be so for the
// script's programs, too. A Service that an earlier operator made has none of the names to ask for.
base::Result<std::string> NodeClient::find_first() {
  if (place_.asks <= 0) return resolve(place_.first);
  const auto now = std::chrono::system_clock::now();
  if (++tries_ % kOwnNameEach == 0 && is_known(place_.first, now)) return resolve(place_.first);
  auto address = resolve_port(name_in_turn(place_.ask, place_.asks, now));
  if (!address) return base::Error{address.error().code, "no name server knows " + place_.first};
  if (!has_name(now))
    return base::Error{base::Code::kUnavailable, "no name server knows " + place_.own};
  return address->empty() ? resolve(place_.first) : address;
}

// A step may begin once this pod is connected, and its tasks ask for the names of all: a site's
// name server would then know the node by that name, with another address.
bool NodeClient::has_name(std::chrono::system_clock::time_point now) {
  return place_.own.empty() || is_known(place_.own, now) || ++looks_ >= kOwnLooksMax;
}

base::Result<int> NodeClient::connect() {
  if (address_.empty()) {
    auto address = find_first();
    if (!address) return address.error();
    address_ = std::move(*address);
  }
  const auto fd = connect_to(address_, place_.port);
  if (!fd) {
    address_.clear();
    return fd.error();
  }
  keep_alive(*fd);
  return *fd;
}

base::Status NodeClient::open_link() {
  const auto fd = connect();
  if (!fd) return fd.error();
  const LinkPlace link = links_.emplace(links_.end());
  link->channel = std::make_unique<Channel>(
      loop_, *fd, tls_->for_client(*fd),
      Channel::Calls{.message = [this, link](const Message& message) { hear(link, message); },
                     .closed = [this, link] { lose(link); },
                     .sent = [this, link] { balance(link); },
                     .cut = [this, link] { note_cut(link->line); }});
  link->line = {.resume = first_word(Kind::kHello), .address = address_};
  link->channel->send(link->line.resume);
  return {};
}

// srun knows the secret of the first pod, which its messages carry; nothing of them is read here.
void NodeClient::accept_srun() {
  const int local = accept_own(listener_);
  if (local < 0) return;
  const auto remote = connect();
  if (!remote) {
    std::fprintf(stderr, "kubegang-launcher: srun here: %s\n", remote.error().message.c_str());
    ::close(local);
    return;
  }
  const RelayPlace relay = relays_.emplace(relays_.end());
  const auto pass = [this, relay](std::unique_ptr<Channel> Relay::*from,
                                  std::unique_ptr<Channel> Relay::*to) {
    return Channel::Calls{
        .message =
            [relay, from, to](const Message& message) {
              ((*relay).*to)->send(message);
              ((*relay).*from)->read(!((*relay).*to)->is_piled_up());
            },
        .closed = [this, relay] { end(relay); },
        .sent = [relay, from, to] { ((*relay).*to)->read(!((*relay).*from)->is_piled_up()); }};
  };
  relay->srun = std::make_unique<Channel>(loop_, local, nullptr, pass(&Relay::srun, &Relay::first));
  Channel::Calls calls = pass(&Relay::first, &Relay::srun);
  calls.cut = [this, relay] { note_cut(relay->line); };
  relay->first =
      std::make_unique<Channel>(loop_, *remote, tls_->for_client(*remote), std::move(calls));
  relay->line = {.resume = first_word(Kind::kRelay), .address = address_};
  relay->first->send(relay->line.resume);
}

void NodeClient::note_cut(Line& line) {
  line.is_trying = false;
  has_cuts_ = true;
}

void NodeClient::end(RelayPlace relay) {
  if (std::exchange(relay->is_leaving, true)) return;
  loop_.later([this, relay] { relays_.erase(relay); });
}

void NodeClient::hear(LinkPlace link, const Message& message) {
  if (link->is_leaving) return;
  if (link->tasks) {
    link->tasks->handle(message);
    return balance(link);
  }
  if (message.kind != Kind::kRun) return lose(link);
  TaskSet tasks = *message.tasks;
  set(tasks.environment, "KUBEGANG_STEPS",
      socket_ + value_or(tasks.environment, "KUBEGANG_STEPS", ""));
  link->tasks =
      std::make_unique<TaskGroup>(loop_, place_.node, std::move(tasks),
                                  TaskGroup::Calls{.tell =
                                                       [this, link](const Message& said) {
                                                         link->channel->send(said);
                                                         balance(link);
                                                       },
                                                   .fed = [this, link] { balance(link); }});
  link->tasks->start();
}

// The step is over, or the first pod cannot be reached: no srun waits for these tasks.
void NodeClient::lose(LinkPlace link) {
  if (std::exchange(link->is_leaving, true)) return;
  // It may have another address when it is there again.
  if (!link->channel->is_open()) address_.clear();
  must_pause_ = !link->tasks;
  loop_.later([this, link] { links_.erase(link); });
}

void NodeClient::balance(LinkPlace link) {
  if (!link->tasks) return;
  link->tasks->read_outputs(!link->channel->is_piled_up());
  const bool holds_input = link->tasks->is_piled_up();
  if (holds_input == std::exchange(link->holds_input, holds_input)) return;
  link->channel->send({.kind = Kind::kHold, .number = holds_input ? 1U : 0U});
}

bool NodeClient::has_tasks() const {
  return std::ranges::any_of(links_,
                             [](const Link& link) { return link.tasks && !link.tasks->is_over(); });
}

bool NodeClient::reaped(pid_t pid, int wait_status, const Used& used) {
  return std::ranges::any_of(links_, [&](const Link& link) {
    return link.tasks && link.tasks->reaped(pid, wait_status, used);
  });
}

void NodeClient::signal_all(int signal) {
  for (const Link& link : links_) {
    if (link.tasks) link.tasks->signal(signal);
  }
}

}  // namespace launcher
