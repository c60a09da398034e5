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

}  // namespace

// Idle until `tasks` is there.
struct NodeClient::Link {
  std::unique_ptr<Channel> channel{};
  std::unique_ptr<TaskGroup> tasks{};
  bool holds_input = false;  // the first pod was asked to wait
  bool is_leaving = false;
};

// A srun of a task here, and its connection to the first pod.
struct NodeClient::Relay {
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

base::Result<int> NodeClient::connect() {
  if (address_.empty()) {
    auto address = resolve(place_.first);
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
                     .sent = [this, link] { balance(link); }});
  link->channel->send({.kind = Kind::kHello, .number = place_.index});
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
  relay->first = std::make_unique<Channel>(loop_, *remote, tls_->for_client(*remote),
                                           pass(&Relay::first, &Relay::srun));
  relay->first->send({.kind = Kind::kRelay});
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
