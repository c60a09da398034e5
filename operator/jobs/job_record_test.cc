// Pods by name and by slot say the same, whatever comes and goes in whatever order.
#include "operator/jobs/job_record.h"

#include <gtest/gtest.h>

#include <random>

#include "operator/testing/edit_owned.h"

namespace control {
namespace {

// Returns the slots of a start: pods 0 and 1 on n0, 2 and 3 on n1, and so on.
std::vector<PodSlot> slots_of_start(int start, int count) {
  std::vector<PodSlot> slots;
  for (int i = 0; i < count; ++i) {
    slots.push_back({.name = pod_name("job", "uid", start, i),
                     .node = "n" + std::to_string(i / 2),
                     .index = i});
  }
  return slots;
}

// The invariant: each pod is known by its name; one that has a slot of the present start is known
// there as well, in the same version, and each other one is stale. A slot keeps a pod that had
// ended when it went. Nodes are listed once each.
void expect_in_step(const JobRecord& job) {
  ASSERT_EQ(job.start->slot_pods.size(), job.start->slots.size());
  std::vector<std::string> nodes;
  for (std::size_t i = 0; i < job.start->slots.size(); i += 2)
    nodes.push_back(job.start->slots[i].node);
  EXPECT_EQ(job.start->nodes, nodes);
  std::size_t in_slots = 0;
  for (const PodSlot& slot : job.start->slots) {
    const auto pod = job.pods->find(slot.name);
    const SlotPod& of_slot = job.start->slot_pods[static_cast<std::size_t>(slot.index)];
    EXPECT_FALSE(job.stale_pods->contains(slot.name));
    if (pod == job.pods->end()) {
      EXPECT_TRUE(of_slot.pod == nullptr || of_slot.is_finished) << slot.name;
      continue;
    }
    EXPECT_EQ(of_slot.pod, pod->second) << slot.name;
    ++in_slots;
    EXPECT_EQ(of_slot.is_finished, is_finished(*of_slot.pod)) << "of an older version";
  }
  EXPECT_EQ(job.stale_pods->size() + in_slots, job.pods->size());
  for (const std::string& name : *job.stale_pods) EXPECT_TRUE(job.pods->contains(name)) << name;
}

// Method: 20,000 random steps of pods that come, change and go, and of starts, in any order.
// Watches bring pods of an old start late and those of a new one early; a pod that were in neither
// list would never be ended.
template <typename T>
concept MayBeWritten = requires(T& owned) {
  owned.edit();
}
|| std::is_assignable_v<T&, T>;

// Some of the fields with an owner: no other part can write them.
static_assert(!MayBeWritten<decltype(JobRecord::wishes)>);
static_assert(!MayBeWritten<decltype(JobRecord::start)>);
static_assert(!MayBeWritten<decltype(JobRecord::commit_after_ends)>);
static_assert(!MayBeWritten<decltype(ArrayRecord::ends_for)>);

TEST(JobRecord, KeepsItsPodsByNameAndBySlotInStep) {
  std::mt19937 random{1};
  const auto below = [&](int bound) {
    return std::uniform_int_distribution<>{0, bound - 1}(random);
  };
  JobRecord job;
  for (int step = 0; step < 20'000 && !testing::Test::HasFailure(); ++step) {
    // One of the starts 1 to 3, whose pods may be of this start or not.
    // Drawn one after the other: the order of a call's arguments is the compiler's.
    const int start = 1 + below(3);
    const int number = below(6);
    const std::string name = pod_name("job", "uid", start, number);
    switch (below(8)) {
      case 0: {
        const int next = 1 + below(3);
        job.take_slots(slots_of_start(next, below(6)));
        break;
      }
      case 1:
      case 2:
        job.erase_pod(name);
        break;
      default: {
        auto pod = std::make_shared<kube::Pod>();
        pod->metadata.name = name;
        pod->status.phase = below(2) == 0 ? kube::PodPhase::kRunning : kube::PodPhase::kFailed;
        job.put_pod(name, std::move(pod));
      }
    }
    expect_in_step(job);
  }
}

// The end and the deletion of a pod count in the order in which they were seen, though the clock
// of its node, which says when it ended, is two minutes off. An update of a pod takes the pod out
// of its place and puts it in again (ControlLoop::index_pod).
TEST(JobRecord, WhatAPodWasSeenAsFirstCounts) {
  const auto deleted_at = base::Instant{std::chrono::hours{1}};
  const auto state = [&](bool is_deleted, std::optional<base::Instant> ended_at) {
    kube::Pod pod;
    pod.metadata = {.name = pod_name("job", "uid", 1, 0), .uid = "u"};
    if (is_deleted) pod.metadata.deletion_timestamp = deleted_at;
    pod.status.phase = ended_at ? kube::PodPhase::kSucceeded : kube::PodPhase::kRunning;
    pod.status.container_statuses = {{.name = "main"}};
    auto& main = pod.status.container_statuses[0].state;
    if (ended_at) main.terminated = kube::ContainerTerminated{.finished_at = ended_at};
    return std::make_shared<const kube::Pod>(pod);
  };
  const auto see = [](JobRecord& job, const std::shared_ptr<const kube::Pod>& pod) {
    job.erase_pod(pod->metadata.name);
    job.put_pod(pod->metadata.name, pod);
  };
  for (const bool deletion_is_first : {true, false}) {
    const auto off = std::chrono::minutes{deletion_is_first ? -2 : 2};
    JobRecord job;
    job.take_slots(slots_of_start(1, 1));
    see(job, state(false, std::nullopt));
    edit(job.start).slot_pods[0].seen = deleted_at;
    see(job, deletion_is_first ? state(true, std::nullopt) : state(false, deleted_at + off));
    see(job, state(true, deleted_at + off));
    EXPECT_EQ(job.start->slot_pods[0].was_told_to_end, deletion_is_first);
    EXPECT_EQ(job.start->slot_pods[0].has_succeeded, !deletion_is_first);
    EXPECT_EQ(job.start->slot_pods[0].seen, deleted_at) << "it is the same pod";
  }
}

}  // namespace
}  // namespace control
