// The launcher of a pod that is not the first of its job: keeps one idle connection to the first
// pod's launcher, runs the tasks that it is asked for on it, and opens the next one. Requests of
// srun in a task here go to the first pod, too, each on a connection of its own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "launcher/channel.h"
#include "launcher/loop.h"
#include "launcher/message.h"
#include "launcher/net.h"
#include "launcher/run_time.h"
#include "launcher/task_group.h"
#include "launcher/tls.h"

namespace launcher {

class NodeClient {
 public:
  struct Place {
    std::string first;       // name or address of the first pod
    std::string own{};       // name of this one
    std::string ask{};       // pattern of the names to ask for instead (name_in_turn); "": none
    int asks = 0;            // how many there are
    std::uint16_t port = 0;  // of its launcher
    std::string node;        // name of the own node
    std::uint32_t index = 0;
  };
  NodeClient(Loop& loop, Place place, std::unique_ptr<Tls> tls);
  // Kills what still runs.
  ~NodeClient();
  NodeClient(const NodeClient&) = delete;
  NodeClient& operator=(const NodeClient&) = delete;

  // Opens a connection if none is idle, and makes those again that were cut; to be called after
  // each wait of the loop. Returns how many milliseconds the next one may take, -1: any number.
  int look(RunTime::Clock::time_point now);
  bool has_tasks() const;
  // Returns true if it was one of its tasks.
  bool reaped(pid_t pid, int wait_status, const Used& used);
  void signal_all(int signal);

 private:
  struct Line;
  struct Link;
  struct Relay;
  using LinkPlace = std::list<Link>::iterator;
  using RelayPlace = std::list<Relay>::iterator;

  int keep_one_idle();
  bool keep_line(Line& line, Channel& channel, RunTime::Duration time);
  void note_cut(Line& line);
  Message first_word(Kind kind);
  void hear(LinkPlace link, const Message& message);
  void lose(LinkPlace link);
  void balance(LinkPlace link);
  base::Status open_link();
  base::Result<std::string> find_first();
  bool has_name(std::chrono::system_clock::time_point now);
  base::Result<int> connect();
  void accept_srun();
  void end(RelayPlace relay);

  Loop& loop_;
  const Place place_;
  const std::unique_ptr<Tls> tls_;
  std::string address_;     // of the first pod; "" = not known
  int tries_ = 0;           // to find it
  int looks_ = 0;           // for the own name
  std::string last_error_;  // said once
  bool must_pause_ = false;
  std::string socket_;  // of srun in tasks here; "" = there is none
  int listener_ = -1;
  const std::string name_ = random_text();  // of this run of the launcher
  std::uint32_t next_line_ = 0;
  RunTime time_{RunTime::Clock::now(), {}};
  bool has_cuts_ = false;  // something of the following may be cut
  std::list<Link> links_;
  std::list<Relay> relays_;
};

}  // namespace launcher
