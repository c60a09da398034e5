// A fixture for tests of a job's parts: Wishes, Decisions, PodWrites and GangRunner around a real
// scheduler, with nodes n1 and n2 of 8 CPUs in the partition batch, and without a control loop:
// a test calls the part that it is about. Effects and events are returned as words.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kube/testing/manual_clock.h"
#include "operator/jobs/decisions.h"
#include "operator/jobs/gang_runner.h"
#include "operator/jobs/job_parts.h"
#include "operator/jobs/pod_writes.h"
#include "operator/jobs/wishes.h"

namespace control {

// Returns a node of 8 CPUs and 16 GiB that is Ready, as a watch shows it.
std::shared_ptr<const kube::Node> ready_node(const std::string& name, kube::Labels labels = {});

// Returns the node's timetable, in which its agent says that it is ready.
std::shared_ptr<const kube::NodeTimetable> ready_agent(const std::string& node);

class JobPartsFixture : public testing::Test {
 protected:
  JobPartsFixture();

  // Job team-a/train with UID "uid-train" on nodes_count nodes, as its user writes it.
  static kube::Job object(const std::string& name = "train", int nodes_count = 1);
  // Shows it as a watch. Its record.
  JobRecord& see(const kube::Job& job);
  // Does the same with another spec.
  JobRecord& see_changed(const JobRecord& job, const std::function<void(kube::JobSpec&)>& change);
  void reserve_numbers();
  // Submitted, and started by a pass; its start is stored.
  JobRecord& started(const kube::Job& job = object("train", 2));

  // A watch shows the pod of this slot; its container has run since then.
  kube::Pod pod_of(const JobRecord& job, int slot, base::Instant since) const;
  void show(JobRecord& job, const kube::Pod& pod);

  // Returns "True Accepted" and the like, of the wanted status; "" if it has no such condition.
  static std::string says(const JobRecord& job, std::string_view type);
  // Returns the names of the writes that were asked for since the last call.
  std::string asked();
  // Returns the reasons of Kubernetes Events since the last call, and of those that are warnings.
  std::string told();
  std::string warned();
  // Returns the number of events that the scheduler got since the last call.
  std::int64_t events();

  base::Instant now = kube::ManualClock::kStart;
  kube::ManualClock clock;
  std::string event_reasons;
  std::string warning_reasons;
  const Report report{{.event = [this](const kube::ObjectReference&, bool warning,
                                       const std::string& reason, const std::string&) {
    event_reasons += (event_reasons.empty() ? "" : " ") + reason;
    if (warning) warning_reasons += (warning_reasons.empty() ? "" : " ") + reason;
  }}};
  LoopCounters counters;
  JobTotals totals;
  TemplateBook templates;
  PodIndex places;
  JobBook jobs{now, templates, places};
  const AgentPods agents;
  NodeBook nodes{agents, report};
  PolicyBook policy;
  const CommitGate gate{{.is_stored = [](const std::string&) { return true; },
                         .is_published = [](const std::string&) { return true; }}};
  struct CollectingWriter final : Writer {
    void submit(Effect effect) override { effects.push_back(std::move(effect)); }
    int at_once() const override { return 16; }
    std::vector<Effect> effects;
  };
  CollectingWriter writer;
  CountedWriter counted{writer, counters};
  TimetablePublisher timetables{nodes, gate, report};
  JobNumbers numbers;
  PodTrials trials;
  SchedulerDriver scheduler{clock, now, counters,
                            [this](const sched::Decision& decision) { decisions.apply(decision); }};
  bool ends_by_time = true;
  const JobParts parts{now, jobs, nodes, policy, report, ends_by_time};
  InformBudget budget;
  Recorded recorded;
  TaskEnds task_ends{recorded};
  StatusPublisher statuses{{jobs, policy, gate, budget, task_ends}};
  Wishes wishes{parts, scheduler, numbers, trials, statuses};
  PodWrites pods{parts, places, gate, counted, counters};
  GangRunner gangs{parts, scheduler, timetables, pods};
  Decisions decisions{parts, scheduler, timetables, statuses, wishes, gangs, counters, totals};

 private:
  std::int64_t events_before_ = 0;
  int versions_ = 0;
};

}  // namespace control
