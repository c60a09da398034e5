// Nodes, agents and processes under timetables that the test writes itself: no operator.
#include <nlohmann/json.hpp>

#include "e2e/scenarios/harness.h"
#include "kube/api/time_format.h"

namespace scenarios {
namespace {

using nlohmann::json;

// Goal: agents alone make gangs take turns. Whatever the operator would have written is written by
// the test, so each timetable is known exactly. Timetables have one cycle and no plan.
class TimetableScenario : public Scenario {
 protected:
  void begin() {
    start({.nodes_count = 2,
           .slice = milliseconds{200},
           .with_operator = false,
           .with_partition = false});
    if (IsSkipped() || HasFatalFailure()) return;
    for (const char* name : {"first", "second"}) {
      apply(
          {{"apiVersion", "kubegang.io/v1alpha1"},
           {"kind", "Job"},
           {"metadata", {{"name", name}, {"namespace", "default"}}},
           {"spec",
            {{"resources", {{"nodes", {{"min", 2}}}}},
             {"template",
              {{"spec",
                {{"containers", {{{"name", "main"}, {"image", "x"}, {"command", kProbe}}}}}}}}}}});
      // One pod on each node.
      for (int i = 0; i < 2; ++i) make_pod(name, i);
    }
    // Without a timetable nothing is frozen, so all four pods run at once.
    wait_until("all pods run", [&] { return runs_now("first") && runs_now("second"); });
  }

  std::string pod_name(const std::string& job_name, int index) const {
    return job_name + "-abcde-" + std::to_string(index);
  }

  // Makes a pod as the operator makes it, as far as the agent looks: its label, its owner, its
  // node.
  void make_pod(const std::string& job_name, int index) {
    apply({{"apiVersion", "v1"},
           {"kind", "Pod"},
           {"metadata",
            {{"name", pod_name(job_name, index)},
             {"namespace", "default"},
             {"labels", {{"kubegang.io/job", job_name}}},
             {"ownerReferences",
              {{{"apiVersion", "kubegang.io/v1alpha1"},
                {"kind", "Job"},
                {"name", job_name},
                {"uid", job(job_name).metadata.uid},
                {"controller", true}}}}}},
           {"spec",
            {{"nodeName", node(index)},
             {"restartPolicy", "Never"},
             {"containers", {{{"name", "main"}, {"image", "x"}, {"command", kProbe}}}}}}});
  }

  // Writes the timetables of both nodes. `cycle` lists, for each slot, the indexes of the jobs that
  // run.
  void write_timetables(int term, int revision, const json& cycle) {
    for (int i = 0; i < 2; ++i) {
      json listed = json::array();
      for (const char* name : {"first", "second"}) {
        listed.push_back({{"namespace", "default"},
                          {"name", pod_name(name, i)},
                          {"jobUID", job(name).metadata.uid},
                          {"row", "Active"},
                          {"ran", "0s"}});
      }
      apply({{"apiVersion", "kubegang.io/v1alpha1"},
             {"kind", "NodeTimetable"},
             {"metadata", {{"name", node(i)}}},
             {"spec",
              {{"term", term},
               {"revision", revision},
               {"slice", "200ms"},
               {"asOf", kube::format_micro_time(now())},
               {"pods", listed},
               {"plan", json::array()},
               {"cycle", cycle}}}});
    }
  }

  // In the last eight slots each slot had one owner, and never the same as the slot before.
  bool both_rotate() {
    const Instant to = now();
    const Instant from = to - milliseconds{1600};
    for (int i = 0; i < 2; ++i) {
      const auto slots = owners_of_slots(node(i), from, to, {"first", "second"});
      for (std::size_t k = 1; k < slots.size(); ++k) {
        if (slots[k].empty() || slots[k] == slots[k - 1] ||
            slots[k].find('+') != std::string::npos) {
          return false;
        }
      }
    }
    return true;
  }
};

// The least that must work: a timetable, two agents, no operator.
TEST_F(TimetableScenario, TwoGangsTakeTurnsWithoutOverlap) {
  ASSERT_NO_FATAL_FAILURE(begin());
  if (IsSkipped()) return;
  write_timetables(1, 1, json::array({{0}, {1}}));
  ASSERT_NO_FATAL_FAILURE(wait_until("both take turns", [&] { return both_rotate(); }));
  const Instant from = now() - milliseconds{500};
  pass(seconds{2});
  expect_strict_turns(from, now(), {"first", "second"});
}

// etcd restored from a snapshot: the API server itself has an older term than the agents obey. They
// ask it once more, by a quorum read, and obey the answer. (A stale cache is not obeyed: the
// agent's own tests. The CRD refuses a lower term from a live operator.)
TEST_F(TimetableScenario, AnOlderTimetableThatTheServerConfirmsIsObeyedAndANewerOneAtOnce) {
  ASSERT_NO_FATAL_FAILURE(begin());
  if (IsSkipped()) return;
  write_timetables(2, 5, json::array({{0}, {1}}));
  ASSERT_NO_FATAL_FAILURE(wait_until("both take turns", [&] { return both_rotate(); }));
  // An older term; revisions count within a term only, so the higher one changes nothing.
  // A cycle of one slot: the first job runs always and the second never.
  write_timetables(1, 9, json::array({{0}}));
  ASSERT_NO_FATAL_FAILURE(wait_until(
      "only first runs", [&] { return runs_now("first") && !runs_now("second"); }, seconds{10}));
  EXPECT_TRUE(is_frozen(pod_cgroup_of("second", node(0))));
  write_timetables(2, 6, json::array({{1}}));
  ASSERT_NO_FATAL_FAILURE(wait_until(
      "only second runs", [&] { return !runs_now("first") && runs_now("second"); }, seconds{2}));
  EXPECT_TRUE(is_frozen(pod_cgroup_of("first", node(0))));
}

// The new agent finds pods frozen by its predecessor and must neither thaw them all nor leave them.
TEST_F(TimetableScenario, AnAgentThatWasKilledGoesOnWithTheRotation) {
  ASSERT_NO_FATAL_FAILURE(begin());
  if (IsSkipped()) return;
  write_timetables(1, 1, json::array({{0}, {1}}));
  ASSERT_NO_FATAL_FAILURE(wait_until("both take turns", [&] { return both_rotate(); }));
  const std::string agent = devcluster::agent_name(node(0));
  cluster_->components().kill(agent);
  const Instant killed = now();
  ASSERT_TRUE(cluster_->components().start_again(agent).ok());
  ASSERT_NO_FATAL_FAILURE(
      wait_until("it goes on", [&] { return now() > killed + seconds{1} && both_rotate(); }));
  // Neither the end of the old agent nor the start of the new one may let both gangs run.
  EXPECT_EQ(overlap_since(killed, {"first", "second"}), Duration{});
}

// Fail open: an agent that goes away leaves nothing frozen.
TEST_F(TimetableScenario, AnAgentThatIsToldToStopThawsEverything) {
  ASSERT_NO_FATAL_FAILURE(begin());
  if (IsSkipped()) return;
  write_timetables(1, 1, json::array({{0}, {1}}));
  ASSERT_NO_FATAL_FAILURE(wait_until("both take turns", [&] { return both_rotate(); }));
  const std::string agent = devcluster::agent_name(node(0));
  ASSERT_TRUE(cluster_->components().signal(agent, SIGTERM).ok());
  ASSERT_TRUE(cluster_->components().wait(agent, seconds{2}).has_value());
  // A pod that were frozen without an agent would stay so.
  EXPECT_FALSE(is_frozen(pod_cgroup_of("first", node(0))));
  EXPECT_FALSE(is_frozen(pod_cgroup_of("second", node(0))));
}

}  // namespace
}  // namespace scenarios
