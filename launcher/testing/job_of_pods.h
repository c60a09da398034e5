// A job of several pods in one process: the launcher of the first and those of the others, in one
// loop, on loopback, with real connections and real tasks.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "launcher/net.h"
#include "launcher/node_client.h"
#include "launcher/run_time.h"
#include "launcher/step_server.h"
#include "launcher/testing/proxy.h"

namespace launcher {

inline constexpr std::chrono::seconds kPatience{60};
inline constexpr int kLookMs = 5;

inline std::string key_of(char c) {
  return std::string(32, c);
}

inline std::uint16_t port_of(int listener) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

// A job of three nodes with two CPUs each, unless another one is given.
class JobOfPods : public testing::Test {
 protected:
  JobOfPods() : JobOfPods{nodes_like(3, 2)} {}
  explicit JobOfPods(JobNodes all) : all_{std::move(all)} {
    ::signal(SIGPIPE, SIG_IGN);
    begin_first('k');
  }

  // Returns n1, n2, …; the first is the own one.
  static JobNodes nodes_like(std::uint32_t count, std::uint32_t cpus) {
    JobNodes all{.names = {}, .cpus = std::vector(count, cpus), .own = 0};
    for (std::uint32_t node = 1; node <= count; ++node) {
      all.names.push_back("n" + std::to_string(node));
    }
    return all;
  }

  // On the same port each time, as in the next start of the job.
  void begin_first(char key) {
    hub_.reset();
    const auto listener = listen_on("127.0.0.1", port_);
    ASSERT_TRUE(listener.ok()) << listener.error().message;
    port_ = port_of(*listener);
    hub_ = std::make_unique<StepServer>(loop_, all_);
    hub_->take_launchers(*listener, std::make_unique<Tls>(key_of(key)));
  }

  // A caller that knows all but the key: a launcher's first word, and a step with its secret.
  void expect_turned_away(char key) {
    const Tls tls{key_of(key)};
    StepRequest step = shell("echo never", 1, 1);
    step.secret = hub_->address().substr(hub_->address().find(':') + 1);
    const std::vector<std::vector<Message>> callers = {
        {{.kind = Kind::kHello, .number = 1}},
        {{.kind = Kind::kRelay}, {.kind = Kind::kCreate, .step = step}}};
    for (const std::vector<Message>& messages : callers) {
      const auto fd = connect_to("127.0.0.1", port_);
      ASSERT_TRUE(fd.ok());
      int heard = 0;
      bool is_closed = false;
      Channel channel{loop_, *fd, tls.for_client(*fd),
                      Channel::Calls{.message = [&](const Message&) { ++heard; },
                                     .closed = [&] { is_closed = true; }}};
      for (const Message& message : messages) channel.send(message);
      EXPECT_TRUE(wait_for([&] { return is_closed; })) << key;
      EXPECT_EQ(heard, 0) << key;
    }
  }

  void begin_node(std::uint32_t index, char key = 'k') {
    nodes_[index] =
        std::make_unique<NodeClient>(loop_,
                                     NodeClient::Place{.first = "127.0.0.1",
                                                       .port = way_ ? way_->port() : port_,
                                                       .node = "n" + std::to_string(index + 1),
                                                       .index = index},
                                     std::make_unique<Tls>(key_of(key)));
  }

  // As the end of its launcher. A connection that ends with bytes unread counts as cut, so what is
  // on the way comes first; a connection is made for each one that a step takes.
  void lose_node(std::uint32_t index) {
    (void)wait_for([looks = 0]() mutable { return ++looks > 50; });
    nodes_.erase(index);
  }

  // Returns false if it did not come true.
  bool wait_for(const std::function<bool()>& come_true) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!come_true()) {
      if (std::chrono::steady_clock::now() > end) return false;
      for (const auto& [index, node] : nodes_) (void)node->look(now());
      (void)hub_->look(now());
      loop_.wait(kLookMs);
      int status = 0;
      pid_t pid = 0;
      rusage usage{};
      while ((pid = ::wait4(-1, &status, WNOHANG, &usage)) > 0) {
        const Used used = used_of(usage);
        bool is_known = hub_->reaped(pid, status, used);
        for (const auto& [index, node] : nodes_) {
          is_known = is_known || node->reaped(pid, status, used);
        }
        if (!is_known) others_[pid] = status;
      }
    }
    return true;
  }

  // srun's end of a step.
  struct Srun {
    std::unique_ptr<Channel> channel;
    std::vector<Message> heard;
    bool is_closed = false;

    bool has(Kind kind) const {
      return std::ranges::any_of(heard, [&](const Message& m) { return m.kind == kind; });
    }
    std::string output() const {
      std::map<std::uint32_t, std::string> by_rank;
      for (const Message& message : heard) {
        if (message.kind == Kind::kOutput) by_rank[message.rank] += message.text;
      }
      std::string all;
      for (const auto& [rank, text] : by_rank) all += std::to_string(rank) + ":" + text;
      return all;
    }
    std::map<std::uint32_t, std::uint32_t> ends() const {
      std::map<std::uint32_t, std::uint32_t> statuses;
      for (const Message& message : heard) {
        for (const TaskEnd& end : message.ends) statuses[end.rank] = end.wait_status;
      }
      return statuses;
    }
  };

  std::unique_ptr<Srun> ask(const StepRequest& request) { return ask(request, hub_->address()); }
  std::unique_ptr<Srun> ask(const StepRequest& request, const std::string& address) {
    const std::string name = address.substr(0, address.find(':'));
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::memcpy(at.sun_path + 1, name.data(), name.size());
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&at), size), 0);
    auto srun = std::make_unique<Srun>();
    Srun* const it = srun.get();
    srun->channel = std::make_unique<Channel>(
        loop_, fd, nullptr,
        Channel::Calls{.message = [it](const Message& message) { it->heard.push_back(message); },
                       .closed = [it] { it->is_closed = true; }});
    StepRequest whole = request;
    whole.secret = address.substr(address.find(':') + 1);
    whole.directory = "/";
    whole.environment.push_back("PATH=/usr/bin:/bin");
    whole.environment.push_back("KUBEGANG_STEPS=" + address);
    srun->channel->send({.kind = Kind::kCreate, .step = whole});
    return srun;
  }

  static StepRequest shell(const std::string& text, std::uint32_t tasks, std::uint32_t nodes) {
    return {.tasks = tasks, .nodes = nodes, .programs = {{"sh", "-c", text}}};
  }

  // The launchers' clock may be ahead.
  RunTime::Clock::time_point now() const { return RunTime::Clock::now() + ahead_; }

  const JobNodes all_;
  Loop loop_;
  RunTime::Duration ahead_{};
  std::uint16_t port_ = 0;
  std::unique_ptr<StepServer> hub_;
  std::unique_ptr<Proxy> way_;  // which the nodes that begin from now on take; none: a direct one
  std::map<std::uint32_t, std::unique_ptr<NodeClient>> nodes_;
  std::map<pid_t, int> others_;  // wait statuses of processes that no launcher has started
};

}  // namespace launcher
