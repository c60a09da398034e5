// The steps of a pod: takes the requests of srun on a Unix socket, starts the tasks, and passes
// their input, output and ends on. A step ends with its connection: a killed srun leaves no task.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/loop.h"
#include "launcher/message.h"

namespace launcher {

class StepServer {
 public:
  // `cpus`: of the job on this node, which its steps share.
  StepServer(Loop& loop, std::string node, std::uint32_t cpus);
  // Kills what still runs.
  ~StepServer();
  StepServer(const StepServer&) = delete;
  StepServer& operator=(const StepServer&) = delete;

  // Empty: the socket could not be made. Else SOCKET:SECRET, for srun.
  const std::string& address() const { return address_; }
  // Returns true if it was one of its tasks.
  bool reaped(pid_t pid, int wait_status);
  void signal_all(int signal);

 private:
  struct Task;
  struct Step;
  using StepPlace = std::list<Step>::iterator;

  void accept_one();
  void readable(StepPlace step);
  void writable(StepPlace step);
  void handle(StepPlace step, const Message& message);
  void create(StepPlace step, const StepRequest& request);
  void start_waiting();
  void start_step(StepPlace step);
  bool start_task(StepPlace step, std::uint32_t rank);
  void output(StepPlace step, std::uint32_t rank, int stream);
  void feed(Task& task);
  void end_if_over(StepPlace step);
  void send(StepPlace step, const Message& message);
  void watch_outputs(Step& step, bool reads);
  void drop(StepPlace step);

  Loop& loop_;
  const std::string node_;
  const std::uint32_t cpus_;
  std::uint32_t cpus_used_ = 0;
  std::uint32_t next_step_ = 0;
  int listener_ = -1;
  std::string secret_;
  std::string address_;
  std::list<Step> steps_;  // in the order in which they came
  std::map<pid_t, std::pair<StepPlace, std::uint32_t>> tasks_;
};

}  // namespace launcher
