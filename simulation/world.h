// A round: the whole system in one process and in virtual time, from a plan to a finding or none.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simulation/breaks.h"
#include "simulation/ledger.h"
#include "simulation/operator_host.h"
#include "simulation/plan.h"

namespace simulation {

// How a round ended: its finding, nullopt if there was none, and the true time of its end.
struct Outcome {
  std::optional<Finding> finding;
  Time ended_at{};
};

// One round. Used by one thread; several rounds may run in threads of their own, as they share
// nothing but the loaded CRDs. REQUIRES: run() is called once.
class World {
 public:
  using Trace = std::function<void(const std::string& line)>;

  // `directory`: of the journals; on a file system in memory. `trace` may be absent.
  World(Plan plan, Breaks breaks, Tally& tally, const std::string& directory, Trace trace);
  ~World();

  // To the end of the plan, until everything has ended, and a while of quiet.
  Outcome run();

  // Everything that is stored, for people.
  std::string dump();

 private:
  // Something that is done later, outside the plan: a resume, a machine that comes back.
  struct Later {
    Time at;
    std::function<void()> act;
  };

  using StoredObject = std::shared_ptr<const nlohmann::json>;

  void furnish();
  // Configuration, account and partitions, unless they are there.
  void furnish_policies();
  nlohmann::json partition_spec(bool low) const;
  nlohmann::json config_spec() const;
  void make_node(const std::string& name, std::uint64_t seed);
  void create_node_object(const std::string& name);
  void heal();
  void run_until(const std::function<bool()>& done, Time limit);
  Time next() const;
  void step();
  void step_cluster();
  StoredObject stored_node(const std::string& name) const;
  void check_stored(const control::ControlLoop& loop);
  bool operator_is_well() const;
  void quiet();
  void check_usage();

  void perform(const Event& event);
  void perform_user(const Event& event);
  void perform_administrator(const Event& event);
  void perform_operator(const Event& event);
  void perform_agent(const Event& event);
  void perform_link(const Event& event);
  void perform_machine(const Event& event);
  void perform_kubelet(const Event& event);
  void perform_others(const Event& event);
  void close_node(const std::string& node, bool taint, bool closed);
  void clean_up_pods();
  void bind_pods();
  void change_as_webhook(nlohmann::json& pod);
  void patch_hazard(const Event& event, const std::string& path);
  void add_debug(std::uint64_t which, bool starts);
  void step_clock_far(const Event& event, HostClock& clock, bool is_operators);
  base::Duration peers_worked(const Program& program);
  // `asks`: the job is not to run (spec.testOnly).
  void submit(const JobPlan& job, bool asks = false);
  void submit_batch(const JobPlan& job);
  void edit_tasks(const Event& event, const JobPlan& job);
  void ask_of_tasks(const nlohmann::json& job, nlohmann::json entry);
  // As let_go(), of the tasks of an array.
  void let_tasks_go(const nlohmann::json& job);
  void change_partition(const Event& event);
  void change_scheduler(const Event& event);
  void reinstall(const Event& event);
  void delete_all(const std::string& collection, const std::string& each);
  // The end of a round for its users: they let go what they hold, and give up what was refused.
  void let_go();
  void later(Time after, std::function<void()> act);
  void set_kill_switch(const std::string& node, bool on);
  void restore(Time as_of);
  void stop_server(Time until, bool forgets);
  static bool needs_server(Act act);
  // All that was stored at an instant.
  using Backup = std::pair<Time, std::shared_ptr<const devcluster::ApiServer::Backup>>;
  // Returns the backup as of then; null where nothing is kept. Valid until the next one is taken.
  const Backup* backup_of(Time as_of) const;
  void power_off(Node& node, bool replaced, Time length);
  Link& link_of(std::uint64_t target);
  Node& node_of(const Event& event) { return nodes_[event.target % nodes_.size()]; }
  Node& node_with_turns(const Event& event);
  OperatorHost& operator_of(const Event& event);
  void trace(const std::string& line);
  nlohmann::json call(kube::Method method, const std::string& path, const nlohmann::json& body);

  const Plan plan_;
  const Breaks breaks_;
  Tally& tally_;
  const std::string directory_;
  const Trace trace_;
  Time now_{0};
  HostClock server_clock_;
  devcluster::ApiServer server_;
  Ledger ledger_;
  std::vector<Node> nodes_;
  std::vector<std::unique_ptr<OperatorHost>> operators_;
  std::deque<Later> later_;
  std::size_t event_ = 0;  // the next one
  Time sample_at_{0};
  Time cluster_at_{0};
  Time well_since_{0};
  Time down_until_{0};   // the API server
  Time clean_until_{0};  // pods that have succeeded are deleted
  Time webhook_until_{0};
  std::uint64_t webhook_kind_ = 0;  // what it does to pods
  bool reinstalled_ = false;
  std::int64_t looked_at_ = -1;  // resourceVersion
  std::vector<Backup> backups_;
};

}  // namespace simulation
