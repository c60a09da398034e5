#include "operator/testing/job_parts_fixture.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "api/wellknown.h"

namespace control {
// Returns a node that takes jobs: 8 CPUs, 16 GiB, room for 110 pods (kubelet's default).
std::shared_ptr<const kube::Node> ready_node(const std::string& name, kube::Labels labels) {
  kube::Node node;
  node.metadata.name = name;
  node.metadata.labels = std::move(labels);
  node.status.allocatable["cpu"] = *kube::parse_quantity("8");
  node.status.allocatable["memory"] = *kube::parse_quantity("16Gi");
  node.status.allocatable["pods"] = *kube::parse_quantity("110");
  node.status.conditions.push_back(
      {.type = std::string{kube::kReady}, .status = kube::ConditionStatus::kTrue});
  return std::make_shared<const kube::Node>(std::move(node));
}

// Returns an agent that obeys, of which nothing else matters here.
std::shared_ptr<const kube::NodeTimetable> ready_agent(const std::string& node) {
  kube::NodeTimetable table;
  table.metadata.name = node;
  table.status.conditions.push_back(
      {.type = std::string{kube::kReady}, .status = kube::ConditionStatus::kTrue});
  return std::make_shared<const kube::NodeTimetable>(std::move(table));
}

// Two nodes with agents in the default partition "batch", no gang scheduling: the parts of the
// operator that deal with jobs, around a real scheduler, without an API server.
JobPartsFixture::JobPartsFixture() {
  kube::Partition batch;
  batch.metadata.name = batch.metadata.uid = "batch";
  batch.spec.nodes.hostlist = "n[1-2]";
  batch.spec.is_default = true;
  Changes<kube::Partition> partitions;
  partitions[{"", "batch"}] = std::make_shared<const kube::Partition>(batch);
  policy.observe(partitions);
  for (const char* name : {"n1", "n2"}) {
    (void)nodes.observe(name, ready_node(name));
    nodes.observe_agent(name, ready_agent(name));
  }
  // The scheduler gets both, without gang scheduling: jobs start as soon as there is room.
  (void)policy.decide(nodes.objects(), now);
  sched::Configuration configuration = policy.configuration();
  configuration.cluster.gang = false;
  scheduler.tell(sched::Configure{std::make_shared<const sched::Configuration>(configuration)});
  for (const sched::Event& event : nodes.take_news(configuration, policy.parameters()).events) {
    scheduler.tell(event);
  }
  (void)nodes.count(configuration);
  // As after a leader has read everything: from here on each look counts as news.
  jobs.restored();
  (void)events();
}

// As a user submits it; without a network no service is made for it.
kube::Job JobPartsFixture::object(const std::string& name, int nodes_count) {
  kube::Job job;
  job.metadata.name = name;
  job.metadata.ns = "team-a";
  job.metadata.uid = "uid-" + name;
  job.metadata.generation = 1;
  job.spec.resources.nodes = kube::JobNodes{.min = nodes_count};
  job.spec.network = kube::JobNetwork::kNone;
  return job;
}

// As the informer of Jobs shows it: a new version each time, and the template by itself, since the
// informer drops it from the object.
JobRecord& JobPartsFixture::see(const kube::Job& job) {
  kube::Job seen = job;
  seen.metadata.resource_version = std::to_string(++versions_);
  const nlohmann::json container{{"name", "main"}, {"image", "none"}};
  templates.learn(seen.metadata.uid,
                  kube::RawJson{nlohmann::json{{"spec", {{"containers", {container}}}}}});
  Changes<kube::Job> changes;
  changes[kube::key_of(seen.metadata)] = std::make_shared<const kube::Job>(seen);
  (void)jobs.observe(changes);
  return *jobs.find(seen.metadata.uid);
}

// Returns an edit of the spec by its user, which raises the generation.
JobRecord& JobPartsFixture::see_changed(const JobRecord& job,
                                        const std::function<void(kube::JobSpec&)>& change) {
  kube::Job changed = *job.object;
  ++changed.metadata.generation;
  change(changed.spec);
  return see(changed);
}

// Job numbers come from a reservation that is stored; without one no job starts.
void JobPartsFixture::reserve_numbers() {
  // Numbers 1 to 99; a second reservation would give them again.
  if (numbers.first_unused() > 0) return;
  (void)numbers.answered({.first = 1, .end = 100, .result = kube::SchedulerConfig{}, .fresh = {}},
                         now);
}

// Seen, judged, started and stored; the events of that way are taken, so that a test sees its own
// only.
JobRecord& JobPartsFixture::started(const kube::Job& seen) {
  reserve_numbers();
  JobRecord& job = see(seen);
  wishes.heed(job);
  scheduler.wake();
  EXPECT_TRUE(job.is_allocated());
  // The tests begin with a start whose commit point is stored and whose events have been read.
  job.status.unmark();  // stored
  (void)told();
  (void)warned();
  (void)events();
  return job;
}

// Makes the pod of a slot of the job's start, as it is when its container has run since then.
kube::Pod JobPartsFixture::pod_of(const JobRecord& job, int slot, base::Instant since) const {
  const PodSlot& of = job.start->slots.at(static_cast<std::size_t>(slot));
  kube::Pod pod;
  pod.metadata.name = of.name;
  pod.metadata.ns = job.key.ns;
  pod.metadata.uid = "uid-" + of.name;
  pod.spec.node_name = of.node;
  pod.spec.containers = {{.name = "main", .image = "none"}};
  pod.status.phase = kube::PodPhase::kRunning;
  kube::ContainerStatus status{.name = "main"};
  status.state.running = kube::ContainerRunning{.started_at = since};
  pod.status.container_statuses = {status};
  return pod;
}

void JobPartsFixture::show(JobRecord& job, const kube::Pod& pod) {
  job.put_pod(pod.metadata.name, std::make_shared<const kube::Pod>(pod));
}

// Returns "True Reason" of a condition as it would be written.
std::string JobPartsFixture::says(const JobRecord& job, std::string_view type) {
  const kube::Condition* found = kube::find_condition(job.wanted().conditions, type);
  return found == nullptr ? "" : std::string{kube::to_string(found->status)} + " " + found->reason;
}

// The kinds of writes that pods need now, as names of crash points: "create-pod create-pod".
std::string JobPartsFixture::asked() {
  constexpr std::size_t kPodsMax = 100;
  counted.submit_all(pods.due(kPodsMax));
  std::string text;
  for (const Effect& effect : std::exchange(writer.effects, {})) {
    text += (text.empty() ? "" : " ") + std::string{to_string(point_of(effect))};
  }
  return text;
}

// Returns the reasons of events since the last call, and below those of the warnings among them.
std::string JobPartsFixture::told() {
  return std::exchange(event_reasons, {});
}

std::string JobPartsFixture::warned() {
  return std::exchange(warning_reasons, {});
}

std::int64_t JobPartsFixture::events() {
  // The events of the scheduler since the last call.
  return counters.events - std::exchange(events_before_, counters.events);
}

}  // namespace control
