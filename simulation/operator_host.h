// One replica of the operator without its threads: the real informers, control loop, actuator and
// leader election, as operator/process/process.cc puts them together. Its process can be killed at
// any instant and before or after any write, and can be paused with writes on their way.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kube/client.h"
#include "kube/leader_elector.h"
#include "operator/loop/control_loop.h"
#include "operator/loop/informers.h"
#include "operator/write/actuator.h"
#include "simulation/link.h"

namespace simulation {

// The faults below act on the present process; a call for a replica that is down does nothing,
// except that kill_at_write() and slow_writes() stay in force for the next one. Used by one thread.
class OperatorHost {
 public:
  // `log` gets a line per decision, for people; may be absent.
  using Log = std::function<void(const std::string& line)>;

  OperatorHost(std::string name, devcluster::ApiServer& server, const Time& now,
               const Breaks& breaks, Tally& tally, std::uint64_t seed, Log log);
  ~OperatorHost();

  // Returns the true time at which step() has something to do; never before now. step() does all
  // that is due.
  Time next() const;
  void step();

  // --- faults ---
  void kill(Time back_at);
  // Kills it at its write number `count` from now, before it is sent or after it was done.
  void kill_at_write(int count, bool after, Time down_for);
  // Likewise, SIGSTOP until then: the write waits with its thread, which has looked whether the
  // process leads and does not look again; or its answer does. A write that comes later finds no
  // pause.
  void pause_at_write(int count, bool after, Time until);
  // Such a write has not come, and the count ends.
  void disarm() {
    kill_in_.reset();
    pause_in_.reset();
  }
  // Returns once for how long it is down if it has died at such a write since the last call.
  std::optional<Time> take_died_at_write() { return std::exchange(died_at_write_, std::nullopt); }
  // SIGSTOP until then: nothing of the process moves, except the writes that are on the network
  // already. Its Lease runs out meanwhile, and it does not know that when it goes on.
  void pause(Time until);
  // Makes its writes take up to delay_max on the network.
  void slow_writes(Time until, Time delay_max);

  // The leader's loop stands still until then; its process, and with it the Lease, goes on.
  void hang_loop(Time until);

  bool leads() const { return leading_ != nullptr; }
  bool is_running() const {
    return process_ != nullptr && now_ >= std::max(paused_until_, loop_hangs_until_);
  }
  bool has_writes_under_way() const;
  // The loop asks for a step at once again and again, and does nothing in it.
  bool never_rests() const;
  // It knows that its clock is wrong, and ends nothing by time.
  bool distrusts_clock() const;
  // Returns true while the leader's clock shows an instant that it has had before.
  bool stands_still() const;
  // Within so long it has heard of what is written now, and what it decided before is stored; as
  // far as the present faults go.
  Time hears_and_stores_within() const;
  Link& link() { return link_; }
  HostClock& clock() { return clock_; }
  // Null: it does not lead. To compare what the leader knows and wants with what is stored.
  const control::ControlLoop* loop() const;

 private:
  class SlowWriter;
  struct Process;
  struct Leading;
  // Break::k…NotStored: an effect whose success was reported to the loop, and that is carried out
  // only at `at`. It is lost with the process, as a commit that never reached etcd's disk would be.
  struct Postponed {
    Time at;
    control::Effect effect;
  };

  void start();
  void end(Time back_at);
  void begin_to_lead(std::int32_t transitions);
  bool is_fit(base::Duration free_for);
  bool clock_is_wrong();
  void step_writes();
  bool carry_out(control::Effect effect, bool has_looked);
  bool pauses_now();
  control::Outcome answer_to(const control::Effect& effect);
  bool is_answered_early(const control::Effect& effect) const;
  // Those that are due, and those of the object, if one is named.
  void carry_out_postponed(const std::string& uid = {});

  const std::string name_;
  const Time& now_;
  const Breaks& breaks_;
  Tally& tally_;
  const Log log_;
  base::Prng prng_;
  HostClock clock_;
  devcluster::ApiServer& server_;
  Link link_;
  NoSleep sleeper_;
  int incarnation_ = 0;
  Time starts_at_{0};
  Time paused_until_{0};
  Time loop_hangs_until_{0};
  Time slow_until_{0};
  Time write_delay_max_{0};
  std::optional<int> kill_in_;
  bool kill_after_ = false;
  std::optional<Time> died_at_write_;
  Time kill_down_for_{0};
  std::optional<int> pause_in_;
  bool pause_after_ = false;
  Time pause_at_write_until_{0};
  Time ends_at_ = kNoTime;            // it has lost the Lease, or was fenced
  std::vector<Postponed> postponed_;  // lost with the process
  std::unique_ptr<Process> process_;
  std::unique_ptr<Leading> leading_;
};

}  // namespace simulation
