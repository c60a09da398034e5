#include "scheduler/testing/tracked_gang.h"

#include <map>

#include "base/check.h"
#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {

TrackedGang::TrackedGang(std::string_view partitions, double lead, gang::Unit unit)
    : stage{partitions, unit},
      components{stage.cluster, stage.usage, stage.jobs, /*publishes=*/true} {
  stage.configuration.cluster.timetable_lead = seconds(lead);
  stage.cluster.configure(stage.configuration);
  stage.cluster.settle();
  components.configure(now_);
  // These tests read run(t) alone, so the run times that are settled are not kept.
  components.on_settle([](Job&) {});
}

// As the engine goes on in time: projections first, since what ran until now is read from them.
void TrackedGang::to(double t) {
  CHECK(at(t) >= now_);
  components.project_stale();
  components.advance(at(t));
  now_ = at(t);
}

void TrackedGang::start(double t, std::int64_t id, char partition, std::string_view where) {
  to(t);
  components.start(stage.add(id, partition, where), now_);
}

void TrackedGang::leave(double t, std::int64_t id) {
  to(t);
  components.leave(stage.job(id), now_);
  stage.erase(id);
}

void TrackedGang::advance(double t) {
  to(t);
}

// "1 2 | 4 5": the components, in the order of their first jobs. Jobs without rivals are in none.
// Each call checks the invariants as well.
std::string TrackedGang::groups() {
  components.project_stale();
  CHECK(components.check_invariants(now_).empty(), components.check_invariants(now_));
  std::map<const gang::Component*, std::string> members;  // named by their first job
  std::vector<const gang::Component*> order;
  for (const auto& [table_order, job] : stage.jobs.all()) {
    const gang::Component* const component = components.component(*job);
    if (component == nullptr) continue;
    std::string& text = members[component];
    if (text.empty()) order.push_back(component);
    text += (text.empty() ? "" : " ") + to_string(job->id);
  }
  std::string text;
  for (const gang::Component* component : order) {
    text += (text.empty() ? "" : " | ") + members.at(component);
  }
  return text;
}

// Slots of 30 s, looked at in their middle.
std::string TrackedGang::draw(int first, int slots) {
  components.project_stale();
  std::string text;
  for (const auto& [table_order, job] : stage.jobs.all()) {
    text += to_string(job->id) + " ";
    for (int slot = first; slot < first + slots; ++slot) {
      text += components.runs_at(*job, at(30 * slot + 15)) ? '#' : '.';
    }
    text += '\n';
  }
  return text;
}

// Asks for an instant that may lie beyond what has been projected so far.
bool TrackedGang::runs(std::int64_t id, double t) {
  components.project_stale();
  components.ensure_known_at(stage.job(id), at(t));
  return components.runs_at(stage.job(id), at(t));
}

// Takes the nodes whose timetables would be looked at for a write; asking takes them.
std::string TrackedGang::dirty_nodes() {
  components.project_stale();
  std::string text;
  for (const NodeIndex node : components.dirty_nodes().take_due(base::kNever)) {
    text += stage.cluster.node(node).name;
  }
  return text;
}

}  // namespace sched::testing
