// The real agent of one node without its threads and its process: NodeWatch, NodePolicy,
// SwitchCore, journal on a real (memory) file system, StatusWriter. Its supervisor is a model: it
// thaws what the journal names when the worker ends or hangs, as survival/supervisor.h says.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kube/client.h"
#include "node-agent/policy/node_policy.h"
#include "node-agent/program/node_watch.h"
#include "node-agent/program/status_writer.h"
#include "node-agent/switching/switch_core.h"
#include "simulation/link.h"
#include "simulation/machine.h"

namespace simulation {

class NodeAgent {
 public:
  NodeAgent(Machine& machine, devcluster::ApiServer& server, const Time& now, const Breaks& breaks,
            Tally& tally, std::string journal, std::uint64_t seed);
  ~NodeAgent();

  // Returns the true time at which step() has something to do; never before now, kNoTime if nothing
  // is due.
  Time next() const;
  void step();

  // --- faults ---
  void kill_worker();           // the supervisor thaws and starts it again
  void hang_worker();           // it stands still until the supervisor notices
  void kill_all(Time back_at);  // supervisor too: nothing thaws until it is back
  // Does as kill_all or kill_worker, just after the next freeze of a pod that was never frozen
  // before.
  void kill_at_first_freeze(bool supervisor_too, Time back_after);
  void disarm() { armed_.reset(); }
  // Returns once for how long it is away if it has died so since the last call.
  std::optional<Time> take_died_at_freeze() { return std::exchange(died_at_freeze_, std::nullopt); }
  void stop(Time back_at);  // SIGTERM: thaws, and ends; a new one comes
  void power_off();         // with the machine; the journal is on a tmpfs
  void power_on(Time at) { starts_at_ = at; }
  void tear_journal();
  void lose_journal();
  void lose_cpu(Time until);
  // Lets that pod take no turns: the breaks' means.
  void exempt(const std::string& uid) { exempt_.insert(uid); }

  // --- what checkers look at ---
  bool is_alive() const { return worker_ != nullptr || supervisor_; }
  // Since when supervisor or worker has been there without a gap.
  Time alive_since() const { return alive_since_; }
  Time worker_since() const { return worker_since_; }
  // The worker is there and is stepped.
  bool is_working() const;
  bool failed_open() const;
  bool everything_runs() const;
  // False without a journal, or with a damaged one, until the API server has named the node's pods.
  bool knows_its_pods() const;
  std::shared_ptr<const kube::NodeTimetable> obeyed() const;
  // Returns the overlap that this worker has counted; zero without one.
  base::Duration overlap() const;
  const std::string& journal_path() const { return journal_path_; }
  Link& link() { return link_; }
  std::optional<kube::NodeTopology> topology() const;

 private:
  class Sink;
  struct Worker;

  struct Armed {
    bool supervisor_too = false;
    Time back_after{};
    std::int64_t freezes = 0;  // Kernel::first_freezes() until it was armed
  };

  void start_worker();
  void end_worker();
  void thaw_journaled();
  void step_policy();
  void step_switch();
  bool dies_at_freeze();
  void offer_report();
  void break_inputs(agent::Inputs& inputs);
  void run_timers();
  std::string boot_id() const { return machine_.name + "-" + std::to_string(machine_.boots); }

  Machine& machine_;
  const Time& now_;
  const Breaks& breaks_;
  Tally& tally_;
  const std::string journal_path_;
  base::Prng prng_;
  Link link_;
  NoSleep sleeper_;
  kube::Client client_;
  bool supervisor_ = true;
  Time starts_at_{0};        // of the worker, while there is none
  Time thaws_at_ = kNoTime;  // the supervisor, after the worker has ended
  Time hung_since_ = kNoTime;
  Time no_cpu_since_{0}, no_cpu_until_{0};
  Time alive_since_{0};
  Time worker_since_{0};
  bool has_journal_ = false;  // this worker has found one of this boot, and undamaged
  std::optional<Time> stopping_back_at_;
  std::optional<Armed> armed_;
  std::optional<Time> died_at_freeze_;
  // Break::kJournalAfterFreeze: what the disk gets later.
  std::optional<std::string> journal_late_;
  Time journal_late_at_ = kNoTime;
  std::set<std::string> exempt_;  // Break::k…Exempts: pods, by UID
  std::unique_ptr<Worker> worker_;
};

}  // namespace simulation
