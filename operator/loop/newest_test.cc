#include "operator/loop/newest.h"

#include <gtest/gtest.h>

#include "api/scheduler_config.h"

namespace control {
namespace {

using Config = kube::SchedulerConfig;

constexpr base::Instant kNewestAt{std::chrono::hours{1}};

Config config(const std::string& uid, const std::string& version) {
  Config object;
  object.metadata.name = "cluster";
  object.metadata.uid = uid;
  object.metadata.resource_version = version;
  return object;
}

TEST(Newest, AnOlderVersionIsNoNews) {
  const Newest<Config> newest;
  const Config known = config("a", "7");
  EXPECT_TRUE(newest.is_news(config("a", "7"), nullptr));
  EXPECT_TRUE(newest.is_news(config("a", "8"), &known));
  EXPECT_FALSE(newest.is_news(config("a", "7"), &known));
  EXPECT_FALSE(newest.is_news(config("a", "6"), &known));
  EXPECT_TRUE(newest.is_news(config("b", "9"), &known)) << "made anew under its name";
  EXPECT_FALSE(newest.is_news(config("z", "5"), &known)) << "the one before it";
}

// Also where nothing is known under its name: the answer is then the only one that speaks of it.
TEST(Newest, ADeletedObjectDoesNotComeBackForAsLongAsAnAnswerMayBeLate) {
  Newest<Config> newest;
  newest.saw_gone("a", kNewestAt);
  EXPECT_FALSE(newest.is_news(config("a", "9"), nullptr));
  EXPECT_TRUE(newest.is_news(config("b", "9"), nullptr));
  newest.saw_gone("b", kNewestAt + Newest<Config>::kRemembered);
  EXPECT_FALSE(newest.is_news(config("a", "9"), nullptr));
  newest.saw_gone("c", kNewestAt + Newest<Config>::kRemembered + base::Duration{1});
  EXPECT_TRUE(newest.is_news(config("a", "9"), nullptr)) << "forgotten";
  EXPECT_FALSE(newest.is_news(config("b", "9"), nullptr));
}

}  // namespace
}  // namespace control
