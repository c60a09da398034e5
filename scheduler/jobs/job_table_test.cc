// JobTable: look-ups by number over pages of 1,024, and the order of the table (0.3).
#include "scheduler/jobs/job_table.h"

#include <gtest/gtest.h>

namespace sched {
namespace {

JobRequest request(std::int64_t id) {
  JobRequest made;
  made.id = JobId{id};
  return made;
}

// Numbers at both ends of a page, and so far apart that a table by position could not hold them.
TEST(JobTable, FindsByIdHoweverFarApartTheIdsAre) {
  JobTable jobs;
  const std::vector<std::int64_t> ids = {
      0, 1, 1023, 1024, 1025, std::int64_t{1} << 30, JobId::kNumberMax};
  for (const std::int64_t id : ids) jobs.add(JobFacts::of(request(id)));
  EXPECT_EQ(jobs.size(), ids.size());
  for (const std::int64_t id : ids) {
    ASSERT_NE(jobs.find(JobId{id}), nullptr) << id;
    EXPECT_EQ(jobs.find(JobId{id})->id, JobId{id});
  }
  EXPECT_EQ(jobs.find(JobId{2}), nullptr);
  EXPECT_EQ(jobs.find(JobId{4096}), nullptr);
}

// Jobs 1 and 2 share a page, 5000 has one of its own. The page that was found last is remembered
// for the next look-up: when it goes with its last job, a look-up must not read what is freed. A
// number that is used again gets a new place in the order of the table, behind all others.
TEST(JobTable, ForgetsWhatIsErasedAndNothingElse) {
  JobTable jobs;
  for (const std::int64_t id : {1, 2, 5000}) jobs.add(JobFacts::of(request(id)));
  jobs.erase(JobId{2});
  EXPECT_NE(jobs.find(JobId{5000}), nullptr);
  jobs.erase(JobId{5000});  // and with it the page that was looked at last
  jobs.erase(JobId{7});
  EXPECT_EQ(jobs.size(), 1U);
  EXPECT_NE(jobs.find(JobId{1}), nullptr);
  EXPECT_EQ(jobs.find(JobId{2}), nullptr);
  EXPECT_EQ(jobs.find(JobId{5000}), nullptr);
  const std::int64_t last = jobs.all().rbegin()->first;
  EXPECT_GT(jobs.add(JobFacts::of(request(2))).table_order, last);
}

}  // namespace
}  // namespace sched
