// The steps of a job, in the launcher of its first pod: takes the requests of srun on a Unix
// socket, gives each step its nodes, starts the tasks here or asks the launchers of the other pods,
// and passes input, output and ends on.
//
// A step lives on connections: that of its srun, and one to each other pod. If srun's ends, so do
// all tasks; if one of the others ends, the tasks of that node count as killed, and srun hears that
// the node is lost. One that was cut on the way has not ended: the other pod makes it again, and
// for kCutMax of the time in which the job runs all of it waits for that.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/channel.h"
#include "launcher/loop.h"
#include "launcher/message.h"
#include "launcher/pmix_exchange.h"
#include "launcher/run_time.h"
#include "launcher/step_environment.h"
#include "launcher/step_layout.h"
#include "launcher/task_group.h"
#include "launcher/tls.h"
#include "launcher/usage.h"

namespace launcher {

class StepServer {
 public:
  StepServer(Loop& loop, JobNodes nodes);
  // Kills what still runs.
  ~StepServer();
  StepServer(const StepServer&) = delete;
  StepServer& operator=(const StepServer&) = delete;

  // Takes over a socket that listens for the launchers of the other pods, which know the key.
  void take_launchers(int listener, std::unique_ptr<Tls> tls);

  // Calls about the script, from outside of the job (scancel, salloc) or by itself (scontrol).
  struct ScriptCalls {
    std::function<void(int signal, bool with_children)> signal;
    std::function<void(int exit_code)> release;  // the job ends, with this exit code
    std::function<bool()> requeue;               // it ends, and waits again; false: it may not
  };
  void take_script_calls(ScriptCalls calls) { script_ = std::move(calls); }

  // Empty: the socket could not be made. Else SOCKET:SECRET, for srun.
  const std::string& address() const { return address_; }
  // Returns true if it was one of its tasks.
  bool reaped(pid_t pid, int wait_status, const Used& used);
  // Some srun, or join that has one, is still connected.
  bool has_sruns() const { return !steps_.empty(); }
  // Signals the tasks of all steps, on all nodes.
  void signal_all(int signal);
  UsageReport& usage() { return usage_; }
  // To be called after each wait of the loop. Gives up connections that have been cut for long.
  // Returns how many milliseconds the next wait may take, -1: any number.
  int look(RunTime::Clock::time_point now);

 private:
  struct Step;
  struct Peer;
  using StepPlace = std::list<Step>::iterator;
  using PeerPlace = std::list<Peer>::iterator;

  void accept_srun();
  void accept_launcher();
  void hear_srun(StepPlace step, const Message& message);
  void hear_launcher(PeerPlace peer, const Message& message);
  void lose_srun(StepPlace step);
  void greet(PeerPlace peer, const Message& hello);
  PeerPlace find(const Message& resume);
  void resume(PeerPlace fresh, const Message& message);
  void lose_launcher(PeerPlace peer);
  void dismiss(PeerPlace peer);
  void create(StepPlace step, const StepRequest& request);
  void obey(StepPlace step, const Message& message);
  bool signal_job(std::uint32_t who, int signal);
  void refuse(StepPlace step, const std::string& why);
  void start_waiting();
  void note_begin(const Step& step);
  void start_step(StepPlace step, StepPlacement placement);
  bool try_start(StepPlace step);
  void hear_task(StepPlace step, const Message& message);
  void hear_pmi(StepPlace step, const Message& message);
  void hear_pmix(StepPlace step, std::uint32_t node, const Message& message);
  void answer_pmix(StepPlace step, std::vector<PmixExchange::Reply> replies);
  void send_to_tasks(StepPlace step, const Message& message);
  void balance(StepPlace step);
  void finish(StepPlace step);

  Loop& loop_;
  const JobNodes nodes_;
  ScriptCalls script_{};
  UsageReport usage_;
  std::vector<NodeRoom> rooms_;                 // as nodes_
  std::vector<std::optional<PeerPlace>> idle_;  // as nodes_: launchers that can be asked
  std::vector<bool> is_lost_;                   // as nodes_: those whose connections were cut
  std::uint32_t next_step_ = 0;
  int listener_ = -1;
  int launcher_listener_ = -1;
  std::unique_ptr<Tls> tls_;
  std::string secret_;
  std::string address_;
  RunTime time_{RunTime::Clock::now(), {}};
  bool has_cuts_ = false;  // some of peers_ may be cut
  std::list<Peer> peers_;  // in the order in which they came
  std::list<Step> steps_;  // the same; also of connections that have asked for none yet
};

}  // namespace launcher
