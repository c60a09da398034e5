// TimetablePublisher: the NodeTimetables, each written when what it should say differs from what is
// stored, as soon as CommitGate lets it. A node has one if its pods take turns, or if it needs one
// anyway (NodeBook::needs_timetable). One that is needed no more is deleted when it lists no pods
// and its agent has said that it obeys that: then nothing is frozen there. An agent
// that reads none lets everything run, so that none and an empty one are the same to a pod.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/node_timetable.h"
#include "base/time.h"
#include "operator/loop/report.h"
#include "operator/nodes/node_book.h"
#include "operator/publish/attempts.h"
#include "operator/publish/commit_gate.h"
#include "operator/publish/mirror.h"
#include "operator/write/effect.h"
#include "translation/timetable_translation.h"

namespace control {

using TimetableMirror = Mirror<kube::NodeTimetable, &kube::NodeTimetable::spec, IfGone::kCreate>;

// Belongs to the loop's thread. Cost: the logarithm of the number of nodes, if nothing else is
// said.
class TimetablePublisher {
 public:
  TimetablePublisher(const NodeBook& nodes, const CommitGate& gate, const Report& report)
      : nodes_{nodes}, gate_{gate}, report_{report} {}

  // --- what is seen ---
  // Null: it is gone.
  void observe(const std::string& node, const kube::NodeTimetable* object);
  // Call when the Node itself came, changed or went.
  void observe_node(const std::string& node);
  // Call when a commit point of a job on it is stored, or a job has left it: it may be written now.
  void look_again(const std::string& node) { to_write_.insert(node); }
  // NodeBook remembers the node no more.
  void forget(const std::string& node);

  // --- what it should say ---
  void want(const sched::NodePlan& plan, const std::string& node, const ListedJobs& jobs);
  // A job that was left out of the last plan may be listed now: that plan is wanted as a whole.
  void list(const std::string& node, const ListedJobs& jobs);
  // Leaves out a job: the plans go on listing the job, but nothing is to touch its pods.
  void leave_out(const std::string& node, const std::string& job_uid);
  // Another pod of the job has taken the place of this one, with the same turns.
  struct Successor {
    std::string job_uid, before, after;
  };
  void replace_pod(const std::string& node, const Successor& successor);
  // Those of nodes of partitions, as counted last, are made where one is needed and there is none;
  // those that are needed no more may go. Cost: all nodes, or these.
  void ensure_all(base::Duration slice, base::Instant now);
  void ensure(const std::set<std::string>& nodes, base::Duration slice, base::Instant now);
  // Those that another client deleted are made again.
  void ensure_deleted(base::Duration slice, base::Instant now);

  // --- the writes ---
  // Those that are due, under this term, no more than there is `room` for. Cost: the nodes that
  // must be written.
  std::vector<PutTimetable> due(base::Instant now, std::int64_t term, std::size_t room);
  WriteEnd answered(TimetablePut&& outcome, base::Instant now);
  // Returns those that may go, no more than there is `room` for. Cost: the nodes that no longer
  // need a timetable, and still have one.
  std::vector<DeleteTimetable> due_deletions(base::Instant now, std::size_t room);
  void answered(const TimetableDeleted& outcome, base::Instant now);
  // Never in the past: what is due now waits for a commit point, or for room.
  base::Instant next_due(base::Instant now) const;

  // --- what is stored ---
  // Returns true if the wanted timetable is the stored one and no write of it is under way.
  bool is_published(const std::string& node) const;
  // Takes the nodes whose timetables have become so since the last call because something else is
  // wanted now: no write reports those. Other nodes may be among them.
  std::set<std::string> take_settled() { return std::exchange(settled_, {}); }
  // Takes the nodes where something else is wanted than what is stored, or is so no more, since the
  // last call.
  std::set<std::string> take_turned() { return std::exchange(turned_, {}); }
  // Null: nothing is.
  std::shared_ptr<const kube::NodeTimetableSpec> stored(const std::string& node) const;
  // Calls action(node, spec) for each that is stored.
  template <typename Action>
  void for_each_stored(Action action) const {
    for (const auto& [node, table] : tables_) {
      if (table.mirror.exists()) action(node, table.mirror.stored());
    }
  }
  // The same for each that exists and is planned, if nothing of it is to be written or under way.
  template <typename Action>
  void for_each_clean(Action action) const {
    for (const auto& [node, table] : tables_) {
      const bool is_clean = table.is_planned && table.mirror.exists() &&
                            !table.mirror.is_in_flight() &&
                            table.mirror.urgency() == WriteUrgency::kClean;
      if (is_clean) action(node, table.mirror.wanted());
    }
  }

 private:
  struct Table {
    bool is_planned = false;  // mirror.wanted() is to be published
    TimetableMirror mirror;   // term and revision of `wanted` are unset
    // The last plan, if a job that it lists was left out.
    std::optional<sched::NodePlan> whole;
    Attempts deletion;

    bool wants_pods() const { return is_planned && !mirror.wanted().pods.empty(); }
  };
  void ensure(const std::string& node, base::Duration slice, base::Instant now);
  bool is_superfluous(const std::string& node, const Table& table) const;
  bool may_go(const std::string& node, const Table& table) const;
  // After a change of what it should be or of what is stored.
  void compare(const std::string& node, Table& table);
  PutTimetable write(const std::string& node, Table& table, base::Instant now, std::int64_t term);

  const NodeBook& nodes_;
  const CommitGate& gate_;
  const Report& report_;
  std::map<std::string, Table> tables_;  // by node
  std::set<std::string> to_write_;       // nodes whose timetable may need to be written
  std::string next_to_write_;            // of them, the one for which there was no room
  std::set<std::string> deleted_;
  std::set<std::string> settled_;
  std::set<std::string> turned_;
  std::set<std::string> superfluous_;  // nodes that may not need one
};

}  // namespace control
