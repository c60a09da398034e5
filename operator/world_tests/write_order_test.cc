// In which order things are written: writes are values, so a test reads what is to be done next
// before any of it is done.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/testing/world.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::seconds;

// The job or the node that an effect is about; "" for others.
struct SubjectOf {
  template <typename T>
  std::string operator()(const PatchStatus<T>& effect) const {
    return effect.to->metadata.name;
  }
  std::string operator()(const PutTimetable& effect) const { return effect.object->metadata.name; }
  std::string operator()(const CreatePod& effect) const {
    return effect.job->metadata.name + " on " + effect.slot.node;
  }
  std::string operator()(const DeletePod& effect) const {
    return effect.key.name.substr(0, effect.key.name.find('-'));
  }
  template <typename T>
  std::string operator()(const T&) const {
    return "";
  }
};

// Carries out all that is decided, round by round: what stands in one round is asked for before
// anything of it was answered.
class Rounds {
 public:
  explicit Rounds(World& world) : world_{world} {}

  // One line per round, until nothing is left to be done now. Writes that only inform are left out.
  std::vector<std::string> all() {
    std::vector<std::string> rounds;
    // Far more than any of these scenarios needs; a test that never comes to rest shows its lines
    // instead of hanging.
    for (int round = 0; round < 50; ++round) {
      OperatorProcess& process = world_.process();
      process.pump_without_writes();
      if (process.writer().queued_count() == 0) break;
      if (std::string line = text(process.writer().queued()); !line.empty()) {
        rounds.push_back(std::move(line));
      }
      while (process.writer().run_one() == ManualWriter::Turn::kDone) {
      }
    }
    return rounds;
  }

 private:
  static bool only_informs(WritePoint point) {
    return point == WritePoint::kStatus || point == WritePoint::kPartitionStatus ||
           point == WritePoint::kQosStatus || point == WritePoint::kAccountStatus ||
           point == WritePoint::kConfigStatus || point == WritePoint::kPodTry ||
           point == WritePoint::kUsage;
  }
  static std::string text(const std::vector<Effect>& effects) {
    std::string text;
    for (const Effect& effect : effects) {
      const WritePoint point = point_of(effect);
      if (only_informs(point)) continue;
      const std::string subject = std::visit(SubjectOf{}, effect);
      text += (text.empty() ? "" : ", ") + std::string{to_string(point)} +
              (subject.empty() ? "" : " ") + subject;
    }
    return text;
  }

  World& world_;
};

using Lines = std::vector<std::string>;

struct WriteOrder : testing::Test {
  WriteOrder() {
    json config = linear_config("4s");
    config["spec"]["preemptMode"] = "Requeue";
    config["spec"]["killWait"] = "2s";
    world.apply(config);
    world.apply(partition("low", {{"nodes", {{"hostlist", "n[1-2]"}}},
                                  {"default", true},
                                  {"overSubscribe", {{"policy", "Force"}, {"maxShare", 2}}}}));
    world.apply(partition("high", {{"nodes", {{"hostlist", "n[1-2]"}}}, {"priorityTier", 2}}));
    world.run_for(seconds{2});
  }
  World world{{.nodes = {"n1", "n2"}}};
  Rounds rounds{world};
};

// The allocation, then the pods: while it is alone on its nodes, no timetable must list it.
TEST_F(WriteOrder, OfAStart) {
  world.apply(gang_job("one", 2, ""));
  EXPECT_EQ(rounds.all(), (Lines{"job-ids", "start one",
                                 "service-create, pod-create one on n1, pod-create one on n2"}));
  world.run_for(seconds{5});
  EXPECT_EQ(world.state("one"), "Running");
  expect_no_violations(world);
}

// A second gang is listed, and kept off, before its pods are there.
TEST_F(WriteOrder, OfAStartBesideAnother) {
  world.apply(gang_job("one", 2, ""));
  world.run_for(seconds{6});
  world.apply(gang_job("two", 1, ""));
  // n2 has only one gang, so its timetable need not change.
  EXPECT_EQ(rounds.all(), (Lines{"start two", "timetable n1", "pod-create two on n1"}));
}

// The claim, then the ending, then the pods; the preemptor starts when they are gone.
TEST_F(WriteOrder, OfAPreemption) {
  world.apply(gang_job("victim", 2, ""));
  world.run_for(seconds{6});
  world.apply(gang_job("urgent", 2, "", {{"partitions", json::array({"high"})}}));
  // Each line is a round: what stands in the next one waited for the answers of this one.
  EXPECT_EQ(rounds.all(),
            (Lines{"claim urgent", "ending victim", "pod-delete victim, pod-delete victim"}));
  world.run_for(seconds{10});
  EXPECT_EQ(world.state("urgent"), "Running") << world.log_tail();
  EXPECT_EQ(world.job("victim").status.restarts, 1);
  expect_no_violations(world);
}

// The ending before the pods, and the nodes' timetables only after the end is stored.
TEST_F(WriteOrder, OfACancelledJob) {
  world.apply(gang_job("one", 2, ""));
  world.apply(gang_job("two", 2, ""));
  world.run_for(seconds{8});
  world.patch_job("one", {{"control", {{"cancel", true}}}});
  EXPECT_EQ(rounds.all(), (Lines{"ending one", "pod-delete one, pod-delete one"}));
  // killWait is 2 s, after which the nodes' kubelets have ended the pods.
  world.clock().advance(seconds{3});
  for (const char* name : {"n1", "n2"}) world.node(name).step(world.server().resource_version());
  EXPECT_EQ(rounds.all(), (Lines{"final one", "timetable n1, timetable n2"}));
}

}  // namespace
}  // namespace control
