// The informers' view of objects that their authors have made as large as the API server takes them
// (faults.md 5). (loop/kept_fields_test.cc shows what is kept of each kind.)
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "api/wellknown.h"
#include "kube/testing/manual_sleeper.h"
#include "operator/loop/inbox.h"
#include "operator/loop/informers.h"
#include "operator/testing/pump_transport.h"
#include "operator/testing/world.h"

namespace control {
namespace {

using nlohmann::json;

// Each object below is above 1.5 MB as it is created. The part that is handed on is measured as
// JSON.
constexpr std::size_t kKeptBytesMax = 4'096;
const std::string kLong(1'500'000, 'x');

// The real informers against the API server, up to the inbox from which the loop takes objects:
// here it shows if a kind was forgotten, or is cut only after it was handed on.
class HostileObjects : public ::testing::Test {
 protected:
  // Expects that little is handed on of an object that was created so. It has no owners: one whose
  // owners do not exist is deleted at once.
  template <typename T>
  void expect_little(json object) {
    json& metadata = object["metadata"];
    metadata["name"] = "huge";
    metadata["annotations"] = {{"example.com/long", kLong.substr(0, 200'000)}};
    for (int i = 0; i < 1'000; ++i) {
      metadata["labels"]["example.com/" + std::to_string(i)] = std::string(63, 'x');
    }
    const auto made =
        world_.client().create_json<T>(T::kResource.namespaced ? "team-a" : "", object);
    ASSERT_TRUE(made.ok()) << made.error().message.substr(0, 300);
    look();
    const Inbox::Batch batch = inbox_.take();
    const auto found = batch.of<T>().find(kube::key_of(made->metadata));
    ASSERT_NE(found, batch.of<T>().end());
    EXPECT_LE(kube::encode(*found->second).dump().size(), kKeptBytesMax);
  }

  // Each informer lists, or reads what its watch has.
  void look() {
    for (auto& [name, step] : informers_.steps()) (void)step({});
  }

  // Returns a pod whose argument and environment are as long as they may be.
  static json pod_spec() {
    return {
        {"containers", json::array({{{"name", "main"},
                                     {"image", "busybox"},
                                     {"args", json::array({kLong.substr(0, 100'000)})},
                                     {"env", json::array({{{"name", "A"}, {"value", kLong}}})}}})}};
  }

  World world_{{}};
  PumpTransport transport_{world_.server(), "informers"};
  kube::ManualSleeper sleeper_{world_.clock()};
  kube::Client client_{transport_, world_.clock(), sleeper_, {}};
  kube::Waker waker_;
  Inbox inbox_{waker_};
  TemplateBook templates_;
  Informers informers_{client_, world_.clock(), inbox_, templates_,
                       [](std::string_view kind, const base::Error& error) {
                         ADD_FAILURE() << kind << ": " << error.message.substr(0, 300);
                       },
                       {.pod_groups = true}};
};

// Each user of the cluster may create such pods, also without any right on kubegang Jobs.
TEST_F(HostileObjects, OfAPodOfOthersLittleIsHandedOn) {
  json spec = pod_spec();
  spec["nodeName"] = "n12";
  expect_little<kube::Pod>({{"apiVersion", "v1"}, {"kind", "Pod"}, {"spec", spec}});
}

TEST_F(HostileObjects, OfAGatedPodLittleIsHandedOn) {
  json spec = pod_spec();
  spec["schedulingGates"] = json::array({{{"name", kube::kGangGate}}});
  expect_little<kube::Pod>({{"apiVersion", "v1"}, {"kind", "Pod"}, {"spec", spec}});
}

// The template is the large part of a Job; it is dropped at once and read again for a start.
TEST_F(HostileObjects, OfAJobLittleIsHandedOn) {
  json job = gang_job("huge", 1, "5s");
  job["metadata"]["namespace"] = "team-a";
  job["spec"]["template"]["spec"].merge_patch(pod_spec());
  expect_little<kube::Job>(job);
}

// The loop looks at none of these jobs: for it one that was made and deleted between two of its
// steps has never been. A user who makes and deletes jobs in a loop, while the operator is busy,
// must not fill its memory with what is kept of their templates.
TEST_F(HostileObjects, OfAJobThatEndsOrGoesNoTemplateIsKept) {
  json job = gang_job("short", 1, "5s");
  job["metadata"]["namespace"] = "team-a";
  const auto make = [&] {
    const auto made = world_.client().create_json<kube::Job>("team-a", job);
    EXPECT_TRUE(made.ok());
    return made->metadata.uid;
  };
  // 1. deleted, as a watch shows it
  look();
  const std::string deleted = make();
  look();
  EXPECT_NE(templates_.find(deleted), nullptr);
  world_.remove_job("short");
  look();
  EXPECT_EQ(templates_.find(deleted), nullptr);
  // 2. replaced under its name, as a list after a gap shows it
  const std::string replaced = make();
  look();
  world_.remove_job("short");
  const std::string ends = make();
  world_.server().compact();
  look();
  look();
  EXPECT_EQ(templates_.find(replaced), nullptr);
  EXPECT_NE(templates_.find(ends), nullptr);
  // 3. it ends
  ASSERT_TRUE(world_.client()
                  .patch_status<kube::Job>({"team-a", "short"}, {{"status", {{"state", "Failed"}}}})
                  .ok());
  look();
  EXPECT_EQ(templates_.find(ends), nullptr);
}

TEST_F(HostileObjects, OfABatchJobLittleIsHandedOn) {
  json spec = pod_spec();
  spec["restartPolicy"] = "Never";
  expect_little<kube::BatchJob>({{"apiVersion", "batch/v1"},
                                 {"kind", "Job"},
                                 {"spec",
                                  {{"managedBy", "kubegang.io/job"},
                                   {"parallelism", 1},
                                   {"completions", 1},
                                   {"template", {{"spec", spec}}}}}});
}

TEST_F(HostileObjects, OfAPodGroupLittleIsHandedOn) {
  ASSERT_TRUE(world_.server().load_crds(KUBEGANG_SOURCE_DIR "/kube/testing/crds").ok());
  expect_little<kube::PodGroup>({{"apiVersion", "scheduling.x-k8s.io/v1alpha1"},
                                 {"kind", "PodGroup"},
                                 {"spec",
                                  {{"minMember", 2},
                                   {"minResources", {{"cpu", kLong.substr(0, 100'000)}}}}},
                                 {"status", {{"occupiedBy", kLong.substr(0, 100'000)}}}});
}

}  // namespace
}  // namespace control
