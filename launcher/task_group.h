// The tasks of a step on this node: starts them, passes their input, output and ends on.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "launcher/loop.h"
#include "launcher/message.h"
#include "launcher/pmix_service.h"
#include "launcher/process.h"
#include "launcher/usage.h"

namespace launcher {

class TaskGroup {
 public:
  struct Calls {
    std::function<void(const Message&)> tell;  // Output, Pmi, Pmix, Exited; of each task one end
    std::function<void()> fed{};               // tasks have read input
  };

  // Starts nothing yet. `node` is in the messages of tasks that cannot be started.
  TaskGroup(Loop& loop, std::string node, TaskSet set, Calls calls);
  // Kills what still runs. Not from within one of its calls: use Loop::later.
  ~TaskGroup();
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  void start();
  // Input, InputEnd, Signal, Resize, Pmi, Pmix. Ranks that are not here are not meant.
  void handle(const Message& message);
  void signal(int number);
  // Reads what the tasks write, or lets it wait in their pipes.
  void read_outputs(bool reads);
  // Some task has more input than it should wait for.
  bool is_piled_up() const;
  bool is_over() const { return running_.empty(); }
  // Returns true if it was one of its tasks.
  bool reaped(pid_t pid, int wait_status, const Used& used);

 private:
  struct Task;

  void start_tasks();
  void start_pmix();
  void lose_pmix(const std::string& why);
  void fail(std::uint32_t rank, const std::string& why);
  void add_end(TaskEnd end);
  void tell_ends();
  bool start_task(std::size_t place);
  bool start_at_terminal(std::size_t place);
  Program program_of(std::size_t place) const;
  bool open_pmi(Task& task, Program& program);
  void output(Task& task, int stream);
  void feed(Task& task);
  void hear_pmi(Task& task, std::uint32_t events);
  void answer_pmi(Task& task, const std::string& bytes);
  void flush_pmi(Task& task);
  void close_pmi(Task& task);

  Loop& loop_;
  const std::string node_;
  const TaskSet set_;
  const Calls calls_;
  bool reads_ = true;
  std::vector<Task> tasks_;               // as TaskSet::ranks
  std::map<pid_t, std::size_t> running_;  // places in tasks_
  bool has_started_ = false;
  std::vector<TaskEnd> ends_;   // not said yet
  int ends_timer_ = -1;         // until they are
  std::vector<Message> early_;  // what has come before the tasks have started
  std::unique_ptr<PmixService> pmix_;
};

}  // namespace launcher
