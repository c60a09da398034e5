// Answers to writes that arrive long after a watch has shown what became of the object.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/testing/world.h"

namespace control {
namespace {

using std::chrono::seconds;

int times_in_log(const World& world, const std::string& words) {
  const std::string log = world.log_tail();
  int count = 0;
  for (std::size_t at = log.find(words); at != std::string::npos; at = log.find(words, at + 1)) {
    ++count;
  }
  return count;
}

// The reservation of job numbers writes the SchedulerConfig. It is deleted, or edited, before the
// answer arrives: the answer puts nothing back into force.
TEST(LateAnswers, DoNotBringASchedulerConfigBack) {
  for (const bool is_deleted : {true, false}) {
    World world{{}};
    world.apply(linear_config("7s"));
    world.apply(partition("batch", force()));
    world.run_for(seconds{1});
    world.process().writer().hold_answers_to(WritePoint::kJobIds);
    world.apply(gang_job("one", 1, ""));
    world.run_for(seconds{2});
    if (is_deleted) {
      ASSERT_TRUE(world.client().remove<kube::SchedulerConfig>({"", "default"}).ok());
    } else {
      world.apply(linear_config("9s"));
    }
    world.run_for(seconds{2});
    const int changes_count = times_in_log(world, "configuration in force");
    EXPECT_GE(changes_count, 2);
    world.process().writer().release_answers();
    world.run_for(seconds{2});
    EXPECT_EQ(times_in_log(world, "configuration in force"), changes_count) << world.log_tail();
    EXPECT_EQ(world.state("one"), "Running") << "its number is reserved";
  }
}

}  // namespace
}  // namespace control
