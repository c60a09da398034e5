#include "translation/usage_translation.h"

#include <gmock/gmock.h>

namespace control {
namespace {

// The runs in seconds that the list names, by the numbers of their jobs.
std::vector<std::pair<std::int64_t, std::int64_t>> runs_of(const std::string& jobs) {
  std::vector<std::pair<std::int64_t, std::int64_t>> runs;
  for (const sched::JobCharged& each : decode_usage({.jobs = jobs}).jobs) {
    runs.emplace_back(each.job.number(),
                      std::chrono::duration_cast<std::chrono::seconds>(each.run).count());
  }
  return runs;
}

TEST(UsageTranslation, AListOfJobsIsReadAsItWasWritten) {
  const std::vector<sched::JobCharged> jobs{{sched::JobId{42}, std::chrono::seconds{300}},
                                            {sched::JobId{43}, std::chrono::milliseconds{1999}}};
  const kube::UsageRecordSpec record =
      encode_usage({.as_of = {}, .users = {}, .qos = {}, .jobs = jobs}, base::Instant{});
  EXPECT_EQ(record.jobs, "42:300,43:1");
  EXPECT_THAT(runs_of(record.jobs),
              testing::ElementsAre(testing::Pair(42, 300), testing::Pair(43, 1)));
}

// 4e18 s are more than an instant can be away, and none is negative.
TEST(UsageTranslation, AListOfJobsEndsWhereItCannotBeRead) {
  for (const std::string wrong :
       {"43:", "43", "43,1", "43:1;", "x:1", "43:-1", "43:4099276460824344799",
        "43:99999999999999999999", "99999999999999999999:1"}) {
    EXPECT_THAT(runs_of("42:300," + wrong + ",44:5"), testing::ElementsAre(testing::Pair(42, 300)))
        << wrong;
  }
}

}  // namespace
}  // namespace control
