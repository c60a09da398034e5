#include "launcher/wait.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "launcher/loop.h"
#include "launcher/node_client.h"
#include "launcher/process.h"
#include "launcher/step_environment.h"
#include "launcher/tls.h"
#include "launcher/usage.h"

namespace launcher {
namespace {

// After SIGTERM: 60 s.
constexpr int kTaskLookMs = 20;
constexpr int kTaskLooksMax = 3'000;

class Wait {
 public:
  Wait(NodeClient::Place place, std::unique_ptr<Tls> tls)
      : client_{loop_, std::move(place), std::move(tls)}, signals_{take_signals()} {
    loop_.watch(signals_, EPOLLIN, [this](std::uint32_t) { hear_signals(); });
  }

  int run() {
    while (!is_ending_) loop_.wait(client_.look(RunTime::Clock::now()));
    // Tasks may say something at their end, which the first pod hears if it still is there.
    for (int i = 0; i < kTaskLooksMax && client_.has_tasks(); ++i) {
      loop_.wait(kTaskLookMs);
      (void)client_.look(RunTime::Clock::now());
    }
    return 0;
  }

 private:
  void hear_signals() {
    while (const std::optional<int> number = next_signal(signals_)) {
      if (number == SIGCHLD) {
        reap();
      } else if (number == SIGTERM || number == SIGINT || number == SIGHUP) {
        is_ending_ = true;
        client_.signal_all(SIGCONT);
        client_.signal_all(SIGTERM);
      } else if (number == SIGUSR1 || number == SIGUSR2) {
        client_.signal_all(*number);
      }
    }
  }

  void reap() {
    int status = 0;
    pid_t pid = 0;
    rusage usage{};
    while ((pid = ::wait4(-1, &status, WNOHANG, &usage)) > 0) {
      Used used = used_of(usage);
      used.memory_peak = memory_peak();
      (void)client_.reaped(pid, status, used);
    }
  }

  Loop loop_;
  NodeClient client_;
  const int signals_;
  bool is_ending_ = false;
};

}  // namespace

int run_wait(std::span<const std::string> arguments) {
  NodeClient::Place place;
  std::string port;
  std::string key;
  std::string asks;
  const std::pair<std::string_view, std::string*> texts[] = {{"--first=", &place.first},
                                                             {"--ask=", &place.ask},
                                                             {"--asks=", &asks},
                                                             {"--port=", &port},
                                                             {"--key=", &key}};
  for (const std::string& word : arguments) {
    for (const auto& [name, text] : texts) {
      if (word.starts_with(name)) *text = word.substr(name.size());
    }
  }
  const JobNodes nodes = job_nodes(own_environment());
  place.port = static_cast<std::uint16_t>(std::strtoul(port.c_str(), nullptr, 10));
  place.asks = static_cast<int>(std::strtol(asks.c_str(), nullptr, 10));
  place.node = nodes.names[nodes.own];
  place.index = nodes.own;
  // All pods of the job are hosts of the same domain.
  if (const std::size_t dot = place.first.find('.'); dot != std::string::npos && place.asks > 0) {
    place.own = place.node + place.first.substr(dot);
  }
  auto tls = Tls::from_file(key);
  if (!tls) {
    std::fprintf(stderr, "kubegang-launcher: %s\n", tls.error().message.c_str());
    return 1;
  }
  return Wait{std::move(place), std::move(*tls)}.run();
}

}  // namespace launcher
