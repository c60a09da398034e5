// NodePlans: the components' projections cut into what each node must publish (architecture.md
// 2), and the memory of what was published, so that only nodes whose list or run(t) changed are
// written.
//
// A node lists all jobs on it if one of them is off at some t; otherwise it lists none. A published
// plan that says the same from now on stays, though it may list jobs that always run by now: they
// alone do not justify a write. But it means the pods of the start that it was made for: once one
// of its jobs has begun again it must be written again, though to the letter it says the same.
// Cost: O(jobs on the node × slots) per node that may have changed.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "scheduler/gang/components.h"
#include "scheduler/jobs/node_usage.h"
#include "scheduler/plan.h"

namespace sched {

class NodePlans {
 public:
  NodePlans(const Cluster& cluster, const NodeUsage& usage, gang::Components& components)
      : cluster_{cluster}, usage_{usage}, components_{components} {}

  // Run time of a job as of t.
  using RunTime = std::function<base::Duration(const Job&, base::Instant)>;

  // Returns the plans that differ from what was published, of the nodes that are due by now; they
  // count as published from here on.
  std::vector<NodePlan> take(base::Instant now, const RunTime& run_time);
  // Returns when the next rewrite that was collected is due.
  std::optional<base::Instant> next_due() const;
  // The job has begun: what was published of an earlier start of it means other pods.
  void begin(const Job& job);
  // Takes over the plan that stands in the API server (restore).
  void set_published(NodePlan plan) { published_[plan.node] = std::move(plan); }
  const std::map<NodeIndex, NodePlan>& published() const { return published_; }

 private:
  // The plan of a node from now on, with all its jobs.
  struct Full {
    NodePlan plan;
    bool needed = false;  // a job is off at some t
  };
  Full plan_of(NodeIndex node, base::Instant now, const RunTime& run_time) const;

  struct Listed {
    const Job* job = nullptr;
    Row row = Row::kFiller;
    const gang::Component* component = nullptr;  // unless it runs always or never
    std::uint32_t pod = 0;                       // in the component
    bool always = false;
    bool never = false;
  };
  std::vector<Listed> list(NodeIndex node, const gang::Component*& component) const;

  const Cluster& cluster_;
  const NodeUsage& usage_;
  gang::Components& components_;
  std::map<NodeIndex, NodePlan> published_;  // nodes with entries only
  std::set<NodeIndex> outdated_;             // of them: a job that is listed has begun again
};

// Returns true if two plans say the same from `from` on: the same jobs, running at the same times.
// Order, rows and run times do not count, they follow from the rotation.
bool same_from(const NodePlan& a, const NodePlan& b, base::Instant from);

}  // namespace sched
