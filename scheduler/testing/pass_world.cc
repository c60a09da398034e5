#include "scheduler/testing/pass_world.h"

#include <utility>

#include "base/check.h"
#include "scheduler/model/reason_names.h"

namespace sched::testing {

// One letter is one node of four CPUs.
std::vector<NodeSpec> PassWorld::nodes_named(const std::string& letters) {
  std::vector<NodeSpec> specs;
  for (const char letter : letters) specs.push_back(node(std::string{letter}));
  return specs;
}

// OverSubscribe=NO under select/linear: one job on each node.
PartitionConfig PassWorld::closed(const std::string& name, const std::string& letters, int tier) {
  return partition(name, nodes_named(letters), OverSubscribe::kNo, 1,
                   static_cast<std::uint16_t>(tier));
}

Configuration PassWorld::one_partition() {
  Configuration configuration = gang_linear({closed("p", "abcd")});
  configuration.cluster.gang = false;
  return configuration;
}

PassWorld::PassWorld(const Configuration& configuration) {
  for (const NodeSpec& spec : nodes_named("abcd")) CHECK(cluster.upsert_node(spec).ok());
  cluster.configure(configuration);
  cluster.settle();
  // The nodes are new to everything that is built next, so their changes are not reported.
  (void)cluster.take_changed_nodes();
  groups.rebuild();
  books.reshape();
  usage.configure();
  limits.recount();
  admission.admit_all(now);
}

Job& PassWorld::submit(const JobRequest& request, base::Instant when) {
  Job& job = books.add(JobFacts::of(request));
  job.submit_time = job.eligible_time = when;
  // Without a priority of its own a job comes before those of higher numbers, as with
  // priority/basic.
  job.priority =
      request.priority.value_or(Priority{static_cast<std::uint32_t>(1000 - request.id.number())});
  limits.submitted(job, 1);
  admission.admit(job, when);
  return job;
}

// Put there without a pass; it refuses to share its nodes.
Job& PassWorld::run(std::int64_t id, const std::string& letters, const std::string& partition,
                    base::Instant since) {
  Job& job = submit(id, static_cast<int>(letters.size()), partition);
  const PartitionIndex where = job.queued.in.front().partition;
  admission.withdraw(job);
  Allocation allocation;
  allocation.whole_nodes = true;
  for (const char letter : letters) {
    allocation.nodes.push_back({.node = cluster.find_node(std::string{letter}).value(),
                                .cores = CoreSet::first(4),
                                .cpus = 4});
  }
  books.begin(job, where, std::move(allocation), {.whole_nodes = true, .shares_nodes = false},
              since);
  books.set_ready(job, since);
  return job;
}

// Passes the node to groups and books as the engine would.
void PassWorld::set_state(const std::string& name, NodeState state) {
  NodeSpec spec = node(name);
  spec.state = state;
  CHECK(cluster.upsert_node(spec).ok());
  cluster.settle();
  for (const NodeIndex changed : cluster.take_changed_nodes()) {
    groups.node_changed(cluster.rank(changed));
    books.node_changed(changed);
  }
}

std::string PassWorld::letters(const Allocation& allocation) const {
  std::string text;
  for (const NodeAllocation& each : allocation.nodes) text += cluster.node(each.node).name;
  return text;
}

// PassActions: the pass decided it, the books carry it out. The job is not ready, as nothing here
// depends on that.
Job& PassWorld::start(Job& job, PartitionIndex partition, Fits fits) {
  did_[job.id] = "runs " + letters(fits.allocation);
  books.begin(job, partition, std::move(fits.allocation), fits.sharing, now);
  return job;
}

// A claim of a minute. Victims do not end by themselves: the test ends them.
void PassWorld::preempt_for(Job& job, NeedsVictims needs) {
  did_[job.id] = "preempts on " + letters(needs.allocation);
  books.set_claim(job, std::move(needs.allocation), now + seconds(60));
}

// Makes one pass; returns what it did or said about each job that waits or has just started, for
// example "1 runs ab, 2 Resources".
std::string PassWorld::after_pass(base::Instant when, std::optional<int> depth) {
  now = when;
  more = pass.run(now, depth);
  return look();
}

std::string PassWorld::look() {
  std::string text;
  for (const auto& [order, job] : books.table().all()) {
    const auto did = did_.find(job->id);
    const bool waits = job->pending() || job->state == JobState::kDeadline;
    // A job that runs, and did before this pass, is not of interest.
    if (did == did_.end() && !waits) continue;
    text += (text.empty() ? "" : ", ") + to_string(job->id) + " ";
    if (did != did_.end()) {
      text += did->second;
    } else {
      text += job->pending() ? std::string{name_of(job->reason)} : "is over";
    }
  }
  did_.clear();
  return text;
}

}  // namespace sched::testing
