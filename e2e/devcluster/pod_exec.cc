#include "e2e/devcluster/pod_exec.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <utility>

#include "linux/file_descriptor.h"
#include "linux/system_error.h"

namespace devcluster {
namespace {

struct Pipe {
  os::FileDescriptor read;
  os::FileDescriptor write;
};

base::Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return os::error_from_errno("pipe", errno);
  return Pipe{os::FileDescriptor{ends[0]}, os::FileDescriptor{ends[1]}};
}

}  // namespace

PodExecHook pod_exec_hook(const Kubelet& kubelet) {
  return [&kubelet](const PodExecRequest& request) -> base::Result<PodExecProcess> {
    std::array<Pipe, 3> pipes;
    for (Pipe& pipe : pipes) {
      auto made = make_pipe();
      if (!made.ok()) return made.error();
      pipe = std::move(*made);
    }
    auto child = kubelet.exec(request.ns, request.pod, request.container, request.command,
                              {pipes[0].read.get(), pipes[1].write.get(), pipes[2].write.get()});
    if (!child.ok()) return child.error();
    const auto process = std::make_shared<Child>(std::move(*child));
    return PodExecProcess{.input = pipes[0].write.release(),
                          .output = pipes[1].read.release(),
                          .error = pipes[2].read.release(),
                          .pidfd = ::fcntl(process->pidfd.get(), F_DUPFD_CLOEXEC, 0),
                          .exit_code = [process] {
                            const auto status = reap(*process);
                            return status ? status->exit_code : 255;
                          }};
  };
}

}  // namespace devcluster
