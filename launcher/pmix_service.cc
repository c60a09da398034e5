#include "launcher/pmix_service.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace launcher {

PmixService::~PmixService() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

bool PmixService::start(const TaskSet& tasks) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return false;
  // It speaks on its standard input; what its library says goes where this program speaks.
  Program program{.argv = {own_directory() + "/kubegang-pmix"},
                  .directory = "/",
                  .input = ends[1],
                  .output = STDERR_FILENO,
                  .error = STDERR_FILENO,
                  .speaker = "kubegang-launcher"};
  pid_ = launcher::start(program);
  const int why = errno;
  ::close(ends[1]);
  if (pid_ < 0) {
    ::close(ends[0]);
    errno = why;
    return false;
  }
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  tasks_ = tasks.ranks.size();
  channel_ = std::make_unique<Channel>(
      loop_, ends[0], nullptr,
      Channel::Calls{.message = [this](const Message& message) { hear(message); },
                     .closed =
                         [this] {
                           if (pid_ > 0) ::kill(pid_, SIGKILL);
                         }});
  channel_->send({.kind = Kind::kRun, .tasks = tasks});
  return true;
}

void PmixService::hear(const Message& message) {
  if (message.kind != Kind::kPmix) return;
  if (message.pmix->kind != PmixKind::kEnvironment) return calls_.tell(message);
  if (environments_.size() == tasks_) return;
  environments_[message.pmix->rank] = message.pmix->words;
  if (environments_.size() == tasks_) calls_.ready();
}

bool PmixService::reaped(pid_t pid, int wait_status) {
  if (pid_ != pid) return false;
  pid_ = -1;
  calls_.ended("kubegang-pmix has ended with " + std::to_string(shell_code(wait_status)));
  return true;
}

}  // namespace launcher
