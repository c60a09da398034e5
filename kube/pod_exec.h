// A program that is started in a container of a pod (pods/exec), with its input, output and end:
// kubectl's protocol of channels over WebSocket, v5.channel.k8s.io, which API servers have since
// Kubernetes 1.30. Who may do this is a matter of the caller's rights (create pods/exec).
#pragma once

#include <poll.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/upgrade.h"

namespace kube {

struct ExecRequest {
  std::string ns;
  std::string pod;
  std::string container;
  std::vector<std::string> command;
  // Without input for this time: ExecCaller::idle().
  std::chrono::milliseconds idle_after = std::chrono::minutes{10};
  // Proxies cut connections on which nothing goes for a minute. SOURCE: nginx, AWS: 60 s.
  std::chrono::milliseconds ping_every{20'000};
  // Without an answer for this time the connection is lost. SOURCE: client-go: 60 s.
  std::chrono::milliseconds answer_within{60'000};
};

// The caller's side of the conversation.
class ExecCaller {
 public:
  virtual ~ExecCaller() = default;
  // Returns the beginning of the program's standard input; called once.
  virtual std::string first() { return ""; }
  // Returns what to wait for, as for poll(); called before each wait of at most a second. Without
  // `takes_input` enough waits to be sent, and only what must not stand behind it is wanted.
  virtual std::vector<pollfd> waits(bool takes_input) = 0;
  // Called when one of them has come true. Returns bytes for the program's standard input, "" for
  // none.
  virtual std::string ready(const pollfd& found) = 0;
  // Called when nothing was sent for a while. Returns bytes that say nothing to the program, "" for
  // none: servers cut connections that are not used (containerd: after four hours).
  virtual std::string idle() { return ""; }
  // The program has written this: stream 1 or 2.
  virtual void output(int stream, std::string_view bytes) = 0;
  // False: enough of it waits here. Asked before each wait; nothing is read meanwhile.
  virtual bool takes_output() const { return true; }
  // True: give up, without waiting for the program's end. Asked after each wait.
  virtual bool gives_up() const { return false; }
};

// Returns the program's exit code. kCancelled: the caller gave up; kUnavailable: the connection was
// lost, and what became of the program is not known; kPermissionDenied names the right that is
// missing.
base::Result<int> pod_exec(Upgrader& upgrader, const ExecRequest& request, ExecCaller& caller);

}  // namespace kube
