// A model of kubelet: starts the programs of the pods that name its node, reports what becomes of
// them, ends them when they are deleted. As the real one it retries what the API server does not
// take, and goes on with what it knows when it cannot reach it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kube/api/pod.h"
#include "kube/client.h"
#include "kube/informer.h"
#include "simulation/link.h"
#include "simulation/machine.h"

namespace simulation {

// A container of `kubectl debug`.
struct Debug {
  Time starts_at{};                           // kNoTime: never, there is no such image
  std::optional<base::Instant> started_wall;  // as reported
};

// One incarnation of one pod's program, as the node knows it.
struct Program {
  std::string node, uid, ns, name;
  std::string job_uid;     // of a task of an array with its number (control::record_key)
  std::int64_t start = 0;  // which start of the job
  int task = 0;
  base::Duration work{0};
  int exit_code = 0;
  base::Duration grace{0};
  base::Duration init{0};        // work of its init container; 0 = it has none
  base::Duration init_waits{0};  // which ends only when a peer has worked this long
  bool init_ends = true;
  Time starts_at{0};
  bool in_init = false;  // its init container runs
  Time looks_at{0};      // for its peer, when the work of that one is done
  bool init_is_done = false;
  bool running = false;                       // its main one does
  bool over = false;                          // ended, or never to be started
  std::optional<base::Instant> started_wall;  // as reported
  Time started_at{0};
  std::vector<Debug> debugs{};        // each takes no time of a processor, and never ends
  std::optional<Time> terminated_at;  // SIGTERM was sent
  std::optional<Time> lasts_at_most;  // activeDeadlineSeconds
  std::string report;                 // JSON, not yet taken by the API server; "" = none
  std::string reported;               // what it took last
  bool remove_object = false;         // the pod object is to be deleted for good
  Time report_at{0};
};

// Why a program has ended: its work was done, and `exit_code` is its own; a signal killed it; its
// pod was to end or no longer has an object; its machine went off.
enum class EndedBy { kItself, kSignal, kRequest, kMachine };

// Learns what really happened to the programs, whatever the API server shows.
class ProgramObserver {
 public:
  virtual ~ProgramObserver() = default;
  virtual void program_started(const Program& program) = 0;
  virtual void program_ended(const Program& program, EndedBy by) = 0;
  // kubelet does not take the pod.
  virtual void program_refused(const Program& program) = 0;
  // It had ended, and its machine went off before kubelet could report that.
  virtual void end_untold(const Program& program) = 0;
};

// A kubelet with its cache of pods and the programs of its node. Used by one thread. A step costs a
// pass over the node's programs, and over its pods if one has changed.
class Kubelet {
 public:
  Kubelet(Machine& machine, devcluster::ApiServer& server, const Time& now, const Breaks& breaks,
          Tally& tally, ProgramObserver& observer, std::uint64_t seed);

  // Returns the true time at which step() has something to do; never before now, kNoTime if the
  // machine is off.
  Time next();
  void step();

  // Restarts kubelet's process; programs go on.
  void restart();
  void power_off();
  void power_on();
  // Makes kubelet refuse the next `count` pods: they do not fit.
  void refuse_next(int count) { refuse_ += count; }
  void be_slow(Time until) { slow_until_ = until; }
  // Volumes of new pods come only then; those of a job with a start timeout, never.
  void lack_volumes(Time until) { volumes_come_at_ = until; }
  // `worked`: of the programs of another pod's job and start, how long the one that has worked most
  // has.
  void know_peers(std::function<base::Duration(const Program&)> worked) {
    peers_worked_ = std::move(worked);
  }
  // Adds a container of `kubectl debug` to that pod. REQUIRES: its program runs.
  void add_debug(const std::string& uid, bool starts);
  // Kills one of the running programs. Returns whether there was one.
  bool kill_one(std::uint64_t which);

  const std::map<std::string, Program>& programs() const { return programs_; }
  Link& link() { return link_; }
  bool is_restarting() const { return !informer_; }

 private:
  void watch();
  void sync();
  void take(const kube::Pod& pod);
  void accept(const kube::Pod& pod, Program& program);
  void advance(Program& program);
  void start(Program& program);
  void start_init(Program& program);
  void end_init(Program& program);
  bool init_is_over(Program& program);
  void finish(Program& program, int exit_code, const std::string& reason, EndedBy by);
  Time deadline_of(const Program& program) const;
  void end_at_deadline(Program& program);
  void start_debugs(Program& program);
  void tell_of_debugs(Program& program);
  void report(Program& program);
  bool may_act(const Program& program) const;

  Machine& machine_;
  const Time& now_;
  Tally& tally_;
  ProgramObserver& observer_;
  base::Prng prng_;
  Link link_;
  NoSleep sleeper_;
  kube::Client client_;
  std::unique_ptr<kube::Informer<kube::Pod>> informer_;
  bool changed_ = false;
  Time compares_at_{0};
  Time restarts_at_{0};
  std::map<std::string, Program> programs_;  // by pod UID
  std::set<std::string> had_started_;        // survives the machine's reboot, on its disk
  int refuse_ = 0;
  Time slow_until_{0};
  Time volumes_come_at_{0};
  std::function<base::Duration(const Program&)> peers_worked_;
};

}  // namespace simulation
