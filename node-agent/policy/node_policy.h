// The agent's policy: from the API server's words about this node, and from the journal, to the
// switcher's assignment. Level-based: each step is given the whole world as it is known now, and
// whatever changed since the last step, and however often it did, the result is the same.
//
// CPU sets do not depend on turns: each pod that a Job controls brings its own along, whether or
// not a timetable lists it, or there is one.
//
// A pod comes under control when the timetable lists it, it is on this node, a Job with the listed
// UID controls it, it is settled, it is not being deleted, its cgroup is found, and the journal
// names it: then, and never before, may it be frozen. Every pod that was under control and no
// longer belongs there is thawed. (architecture.md 2, 4, 5; freezer.md 4, 5)
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "node-agent/freezer/pod_opener.h"
#include "node-agent/policy/cpu_sets.h"
#include "node-agent/policy/inputs.h"
#include "node-agent/policy/timetable_gate.h"
#include "node-agent/survival/inheritance.h"
#include "node-agent/survival/journal.h"
#include "node-agent/switching/assignment.h"

namespace agent {

// Where a listed pod stands (freezer.md 5.2); of a controlled one the FreezeState says more.
enum class PodStanding : std::uint8_t {
  kWaitedFor,   // not seen yet, or gone
  kSettling,    // its containers start
  kControlled,  // by the timetable
  kExempt,      // thawed: being deleted or evicted
  kRefused,     // another controller, another node, another UID
};
std::string_view to_string(PodStanding standing);

struct PodView {
  std::string name{};  // namespace/name
  std::string uid{};
  std::uint16_t index = 0;
  PodStanding standing = PodStanding::kWaitedFor;
  std::optional<FreezeState> state{};
  std::string path{};
  std::string note{};         // why it is refused or what its cgroup lacks; "" = nothing to say
  bool denied = false;        // the agent lacks the right to its freezer, see `note`
  bool never_frozen = false;  // what runs in its cgroup must not be frozen, see `note`
  bool no_cgroup = false;     // it has settled, and no cgroup of it is found for 10 s, see `note`
  std::optional<base::Instant> last_switch{};
  std::uint64_t slow_freezes = 0;  // that took 100 ms and longer
  base::Duration slow_freeze{0};   // the last of them
};

class NodePolicy {
 public:
  NodePolicy(std::string node, JournalFile journal, std::string boot_id, PodOpener& opener,
             AssignmentSink& sink);

  // Once, before the first step: takes over from the process before this one. The pods that the
  // journal names are under control from the first step on. Everything that we froze is in it, so
  // what is frozen beside it is foreign, and left alone.
  //
  // With a damaged journal it is not known what we froze. Then nothing is touched until the API
  // server has named this node's pods; from then on every pod that a kubegang Job controls and that
  // is asked frozen at pod level counts as inherited: if the timetable lists it, it takes its
  // turns, otherwise it is thawed. Other frozen pods are left alone. A pod that cannot be looked at
  // just then is looked at until it can, also by the next process: the journal names it as unread.
  struct Inherited {
    bool found = false;  // there was a journal of this boot
    Journal journal{};
    std::string damage{};  // why it is damaged; "" = it is whole
  };
  Inherited inherit();

  // Returns when to step again if nothing happens before (monotonic).
  std::optional<base::Duration> step(const Inputs& inputs);

  // As of the last step.
  std::vector<PodView> pods() const;
  // Why pods are not bound to their CPUs, by "namespace/name"; only those that are not.
  const std::map<std::string, std::string>& cpu_notes() const { return cpu_notes_; }
  std::shared_ptr<const kube::NodeTimetable> timetable() const { return gate_.in_force(); }
  const std::string& timetable_complaint() const { return gate_.complaint(); }
  // Returns the verdict on the timetable that was offered last.
  GateVerdict last_verdict() const { return last_verdict_; }
  // The newest timetable is older than the one in force: the caller must get the object by a quorum
  // read and give it as Inputs::confirmed.
  bool needs_confirmation() const { return is_stale(last_verdict_); }
  // Returns how many timetables were not obeyed, by reason.
  const std::map<GateVerdict, std::uint64_t>& offers_ignored() const { return ignored_; }
  bool everything_runs() const { return submitted_ && submitted_->everything_runs; }
  // Why the journal cannot be written; while it cannot, no further pod comes under control.
  const std::string& journal_error() const { return journal_error_; }
  // The newest assignment is in force, and nothing that was under control is frozen or being frozen
  // by us: a switch that is under way may be writing what no state tells yet.
  bool all_thawed() const;

 private:
  struct Ending {
    base::Duration since{};  // seen by this process
    bool by_deletion = false;
  };
  struct Debugged {
    base::Duration unsettled{};             // how long it has run for ephemeral containers so far
    std::optional<base::Duration> since{};  // while it does: as of the last step
  };
  struct Running {
    std::optional<base::Instant> settled_at{};  // as PodFacts says
    base::Duration since{};                     // this process has seen that
  };
  struct Retry {
    base::Duration at{};
    std::string why{};
    bool denied = false;
    bool never_frozen = false;
  };
  struct Placed {
    PodView view;
    std::optional<ControlledPod> controlled{};
  };

  void take_over(const PodControls& inherited);
  void inherit_waiting(const Inputs& inputs);
  void inherit_unknown(const Inputs& inputs);
  bool inherit_if_frozen(const PodFacts& facts);
  void take_timetable(const Inputs& inputs);
  std::vector<Placed> place_pods(const Inputs& inputs);
  Placed place(const Inputs& inputs, std::uint16_t index, const kube::TimetablePod& listed);
  Placed place_from_journal(PodView view, const kube::TimetablePod& listed);
  std::string refusal(const PodFacts& facts, const kube::TimetablePod& listed) const;
  std::optional<ControlRule> rule_of(const Inputs& inputs, const PodFacts& facts);
  base::Duration end_of_grace(const Inputs& inputs, const PodFacts& facts);
  ControlRule rule_of_ending(const Inputs& inputs, const PodFacts& facts,
                             const PodControl& control);
  void note_running(const Inputs& inputs);
  bool waits_for_debug(const Inputs& inputs, const PodFacts& facts);
  bool is_settled(const Inputs& inputs, const PodFacts& facts);
  static std::vector<CpuSets::Wanted> wanted_cpu_sets(const Inputs& inputs,
                                                      const std::string& node);
  void bind_to_cpus(const Inputs& inputs, const std::vector<CpuSets::Wanted>& wanted);
  std::vector<std::string> bound_or_wanted(const std::vector<CpuSets::Wanted>& wanted) const;
  std::shared_ptr<PodControl> known_or_open(const Inputs& inputs, const PodFacts& facts,
                                            PodView& view);
  std::shared_ptr<PodControl> reopened(const Inputs& inputs,
                                       const std::shared_ptr<PodControl>& gone);
  bool lacks_its_cgroup(const Inputs& inputs, const PodFacts& facts);
  bool inherit_foreign_once(const PodFacts& facts);
  void add_the_unlisted(std::vector<ControlledPod>& pods) const;
  std::vector<PodIdentity> pods_to_name(const Inputs& inputs, const Assignment& assignment);
  void write_journal(const Inputs& inputs, const std::vector<CpuSets::Wanted>& cpu_sets,
                     Assignment& assignment);
  void forget_the_thawed(const Inputs& inputs);
  void wake_at(base::Duration at);

  const std::string node_;
  const JournalFile journal_file_;
  const std::string boot_id_;
  PodOpener& opener_;
  AssignmentSink& sink_;

  CpuSets cpu_sets_;
  std::map<std::string, std::string> cpu_notes_;
  TimetableGate gate_;
  GateVerdict last_verdict_ = GateVerdict::kUnchanged;
  std::map<GateVerdict, std::uint64_t> ignored_;
  std::shared_ptr<const kube::NodeTimetable> offered_;
  Inheritance inheritance_;
  bool unknown_ = false;          // no journal names the agent's pods, and they are not known yet
  std::set<std::string> unread_;  // UIDs of those that then could not be looked at
  base::Duration read_again_at_{0};
  std::map<std::string, std::shared_ptr<PodControl>> known_;  // by pod UID, as all below
  std::set<std::string> settled_;                             // until a container is added to it
  std::map<std::string, Running> running_;
  std::map<std::string, Debugged> debugged_;  // which have, or had, ephemeral containers that wait
  std::map<std::string, base::Duration> without_cgroup_since_;
  std::map<std::string, Ending> endings_;
  std::map<std::string, Retry> retries_;
  std::set<std::string> looked_at_ending_;  // see inherit_foreign_once()
  std::vector<Placed> placed_;
  std::optional<Assignment> submitted_;
  Journal journal_;  // as last written
  std::string timetable_json_;
  std::shared_ptr<const kube::NodeTimetable> json_of_;
  std::string journal_error_;
  std::optional<base::Duration> next_step_;
};

}  // namespace agent
