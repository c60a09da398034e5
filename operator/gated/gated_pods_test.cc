// One gang of gated pods, step by step. (Whole lives: world_tests/gated_pods_test.cc.)
#include "operator/gated/gated_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/wellknown.h"
#include "kube/testing/manual_clock.h"

namespace control {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The book of gated pods by itself: pods and Jobs appear as watches would show them, and what it
// wants is read from its effects. Nothing is written, so a test decides which answers come.
class GatedPodsTest : public testing::Test {
 protected:
  GatedPodsTest() {
    gated_.adopt({.groups = true});
    budget_.restore(now_);
  }
  // A pod of the gang "train", which has two.
  void pod_appears(const std::string& name) {
    kube::Pod pod;
    pod.metadata.name = name;
    pod.metadata.ns = "team-a";
    pod.metadata.uid = "uid-" + name;
    pod.metadata.labels[std::string{kube::kLabelGang}] = "train";
    pod.metadata.annotations[std::string{kube::kAnnotationPods}] = "2";
    pod.spec.restart_policy = "Never";
    pod.spec.scheduling_gates =
        kube::RawJson{nlohmann::json::array({{{"name", std::string{kube::kGangGate}}}})};
    pod.spec.containers = {{.name = "main", .image = "none"}};
    gated_.observe({"team-a", name}, std::make_shared<const kube::Pod>(std::move(pod)));
  }
  // Returns a Job of "train" for these pods, as the operator made it for them.
  static kube::Job job_of(const std::string& name, const std::vector<std::string>& pods) {
    kube::Job job;
    job.metadata.name = name;
    job.metadata.ns = "team-a";
    job.metadata.uid = "uid-" + name;
    job.metadata.labels[std::string{kube::kLabelGang}] = "train";
    for (const std::string& pod : pods) job.spec.adopted.push_back({pod, "uid-" + pod});
    return job;
  }
  // A watch shows the Job, which waits for nodes.
  void watch_shows(const kube::Job& job) {
    JobRecord record;
    record.key = kube::key_of(job.metadata);
    record.uid = job.metadata.uid;
    record.object = std::make_shared<const kube::Job>(job);
    record.status = JobMirror{job};
    gated_.observe_job(record);
  }
  // Notes of pods are left out.
  std::vector<Effect> due() {
    budget_.refill(now_, false);
    std::vector<Effect> effects = gated_.due(budget_, room_, now_);
    std::erase_if(effects,
                  [](const Effect& effect) { return std::holds_alternative<NotePod>(effect); });
    return effects;
  }
  // Returns the Job that was asked for, as the API server answers.
  kube::Job is_made(const std::vector<Effect>& effects) {
    EXPECT_THAT(effects, SizeIs(1));
    const auto* create = effects.empty() ? nullptr : std::get_if<CreateJob>(&effects.front());
    EXPECT_NE(create, nullptr);
    kube::Job job = create == nullptr ? kube::Job{} : *create->job;
    job.metadata.uid = "uid-made-" + std::to_string(++made_count_);
    gated_.answered(JobCreated{.key = kube::key_of(job.metadata), .result = job}, now_);
    return job;
  }

  base::Instant now_ = kube::ManualClock::kStart;
  std::size_t room_ = 64;
  int made_count_ = 0;
  const Report report_{LoopHooks{}};
  InformBudget budget_;
  GatedPods gated_{report_};
};

// The Job is a write like any other. If a pod goes while it waits for room, it is not made.
TEST_F(GatedPodsTest, AJobIsMadeWhenThereIsRoom) {
  room_ = 0;
  pod_appears("a");
  pod_appears("b");
  EXPECT_THAT(due(), IsEmpty());
  room_ = 1;
  (void)is_made(due());
  EXPECT_THAT(due(), IsEmpty()) << "it was made";
  room_ = 0;
  pod_appears("c");
  pod_appears("d");
  EXPECT_THAT(due(), IsEmpty());
  gated_.observe({"team-a", "d"}, nullptr);
  room_ = 1;
  EXPECT_THAT(due(), IsEmpty());
}

// The pods wait until their author makes it smaller, so they say why.
TEST_F(GatedPodsTest, AJobThatIsTooLargeIsARefusal) {
  pod_appears("a");
  pod_appears("b");
  const auto effects = due();
  ASSERT_THAT(effects, SizeIs(1));
  const kube::Job& job = *std::get<CreateJob>(effects.front()).job;
  gated_.answered(
      JobCreated{.key = kube::key_of(job.metadata),
                 .result = base::Error{base::Code::kTooLarge, "Request entity too large"}},
      now_);
  std::vector<std::string> notes;
  for (int i = 0; i < 10; ++i) {
    now_ += seconds{1};
    budget_.refill(now_, false);
    for (const Effect& effect : gated_.due(budget_, 0, now_)) {
      const auto* note = std::get_if<NotePod>(&effect);
      if (note != nullptr && note->note) notes.push_back(note->note->reason);
    }
  }
  EXPECT_THAT(notes, ElementsAre("NotMade", "NotMade"));
}

// It was deleted before a watch showed it: no watch will say that it is gone.
TEST_F(GatedPodsTest, AJobThatIsNeverSeenIsMadeAgain) {
  pod_appears("a");
  pod_appears("b");
  (void)is_made(due());
  EXPECT_THAT(due(), IsEmpty()) << "it was made, though no watch has shown it";
  now_ += seconds{29};
  EXPECT_THAT(due(), IsEmpty());
  now_ += seconds{1};
  EXPECT_LE(gated_.next_due(now_), now_ + InformBudget::kLookAgain);
  const kube::Job again = is_made(due());
  watch_shows(again);
  now_ += seconds{100};
  EXPECT_THAT(due(), IsEmpty()) << "it was seen";
}

// The first Job of the gang is broken and the second stands.
TEST_F(GatedPodsTest, ABrokenJobDoesNotHideOneThatLives) {
  // b is gone, so the first Job lacks a member; c and d are complete; e and f would be enough
  // for another, but the gang has its Job.
  for (const char* name : {"a", "c", "d", "e", "f"}) pod_appears(name);
  watch_shows(job_of("1", {"a", "b"}));
  watch_shows(job_of("2", {"c", "d"}));
  const std::vector<Effect> effects = due();
  ASSERT_THAT(effects, SizeIs(1)) << "e and f get no Job";
  ASSERT_TRUE(std::holds_alternative<DeleteJob>(effects.front()));
  EXPECT_EQ(std::get<DeleteJob>(effects.front()).uid, "uid-1");
}

}  // namespace
}  // namespace control
