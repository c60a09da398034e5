// A node for tests of the real program: an in-memory API server over HTTPS, a tree of real cgroups
// with counting processes in it, and kubegang-agent as a process of its own.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/node_timetable.h"
#include "kube/api/lease.h"
#include "kube/client.h"
#include "kube/sleeper.h"
#include "kube/testing/api_server/api_server.h"
#include "kube/testing/api_server/https_front_end.h"
#include "kube/testing/api_server/in_process_transport.h"
#include "linux/file_descriptor.h"
#include "node-agent/switching/switch_clock.h"
#include "node-agent/testing/real_cgroups.h"
#include "node-agent/testing/temporary_directory.h"

namespace agent::testing {

class AgentProcess {
 public:
  // `program`: path of kubegang-agent; `crds`: folder of the CustomResourceDefinitions.
  AgentProcess(CgroupVersion version, std::string program, const std::string& crds);
  ~AgentProcess();
  AgentProcess(const AgentProcess&) = delete;
  AgentProcess& operator=(const AgentProcess&) = delete;

  // Starts the program (with its supervisor) or one more after the first ended.
  void start(const std::vector<std::string>& more_flags = {});
  // Starts the guard, the agent's second container, or one more after the first ended.
  void start_guard();
  pid_t guard() const { return guard_; }
  // Sends the signal to the guard and returns its exit code once it ended; nullopt if it does not
  // within the limit.
  std::optional<int> end_guard(int signal_number, base::Duration limit = std::chrono::seconds{5});
  // Programs that are started from now on are of uid 0, but without any capability.
  void drop_capabilities() { without_capabilities_ = true; }
  // Programs that are started from now on log into a pipe that is full and is not read.
  void log_to_a_full_pipe();
  pid_t supervisor() const { return supervisor_; }
  // Returns the supervisor's child; nothing while there is none.
  std::optional<pid_t> worker() const;
  // There is one, and it is not this one. Looked up once: between two looks the old one may end.
  bool has_other_worker(std::optional<pid_t> than) const {
    const std::optional<pid_t> now = worker();
    return now && now != than;
  }
  // Tells it to stop, and kills it if it does not.
  void end();
  const std::string& log_path() const { return log_path_; }
  // Exit code of the program once it ended; waits at most `limit`.
  std::optional<int> wait_for_end(base::Duration limit);
  void signal(int signal_number) const;

  // Adds a pod that has been running for an hour, controlled by Job `job`, with a process that
  // counts and sleeps `pause` in between.
  void add_pod(const std::string& name, const std::string& job, int grace_seconds = 30,
               base::Duration pause = std::chrono::milliseconds{1});
  void delete_pod(const std::string& name);
  Progress& progress(const std::string& pod) { return *pods_.at(pod).progress; }
  const std::string& path(const std::string& pod) const { return pods_.at(pod).path; }
  bool is_asked_frozen(const std::string& pod) const;

  // Replaces the timetable's spec; term and revision as given, the pods by name.
  void publish(std::int64_t term, std::int64_t revision, const std::vector<std::string>& pods,
               std::vector<timetable::PodSet> cycle, base::Duration slice,
               std::vector<timetable::PlanEntry> plan = {});
  kube::NodeTimetable timetable() const;
  void renew_lease();
  void set_kill_switch(bool on);
  void set_fail_open_after(base::Duration after);
  // The API server goes away, and comes back at the same port.
  void stop_server();
  void start_server();
  // In its place comes one that takes connections and answers nothing, as behind a network that has
  // begun to drop packets.
  void silence_server();
  // Returns how many connections that one has taken so far.
  std::size_t silent_connections();

  RealCgroups& cgroups() { return cgroups_; }
  devcluster::ApiServer& server() { return server_; }
  kube::Client& client() { return client_; }
  const std::string& directory() const { return directory_.path(); }
  std::string run_directory() const { return directory_.path() + "/run"; }

 private:
  pid_t spawn(const std::vector<std::string>& arguments) const;

  struct Pod {
    std::string uid;
    std::string path;
    std::string job;
    Progress* progress = nullptr;
  };

  TemporaryDirectory directory_;
  const std::string log_path_ = directory_.path() + "/agent.log";
  const std::string program_;
  RealCgroups cgroups_;
  RealSwitchClock clock_;
  kube::ThreadSleeper sleeper_;
  devcluster::ApiServer server_;
  devcluster::InProcessTransport transport_{server_, "test"};
  kube::Client client_;
  std::unique_ptr<devcluster::HttpsFrontEnd> front_end_;
  int port_ = 0;
  os::FileDescriptor silent_server_;
  std::vector<os::FileDescriptor> silent_connections_;
  std::map<std::string, Pod> pods_;
  pid_t supervisor_ = 0;
  pid_t guard_ = 0;
  bool without_capabilities_ = false;
  os::FileDescriptor log_reader_;
  os::FileDescriptor log_pipe_;
};

}  // namespace agent::testing
