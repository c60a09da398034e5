#include "operator/jobs/job_numbers.h"

#include <gtest/gtest.h>

#include "api/wellknown.h"

namespace control {
namespace {

using std::chrono::milliseconds;

constexpr base::Instant kNumbersAt{std::chrono::seconds{1'000}};

// Returns the answer to a write that was done.
IdsReserved stored(const ReserveIds& asked) {
  return {asked.first, asked.end, kube::SchedulerConfig{}, std::nullopt};
}

// Answers a write that another leader was faster with: the next free number is `stored_next`.
IdsReserved refused(const ReserveIds& asked, std::int64_t stored_next) {
  kube::SchedulerConfig fresh;
  fresh.status.next_job_id = stored_next;
  return {asked.first, asked.end, base::Error{base::Code::kConflict, "conflict"}, fresh};
}

// Numbers are given only from a block that is stored: a leader that crashes before that has given
// none. A number that were given twice would mix up the logs and the accounting of two jobs.
TEST(JobNumbers, AJobWaitsUntilABlockIsReserved) {
  JobNumbers numbers;
  numbers.restore(7);
  const std::string version = "41";
  EXPECT_EQ(numbers.due(kNumbersAt, &version), std::nullopt) << "no job waits";
  EXPECT_EQ(numbers.next("a"), std::nullopt);
  EXPECT_EQ(numbers.next("b"), std::nullopt);
  EXPECT_EQ(numbers.next("a"), std::nullopt);
  const auto effect = numbers.due(kNumbersAt, &version);
  ASSERT_TRUE(effect);
  EXPECT_EQ(*effect, (ReserveIds{7, 7 + kube::kJobIdBlock, true, "41"}));
  EXPECT_EQ(numbers.due(kNumbersAt, &version), std::nullopt) << "one write at a time";
  EXPECT_EQ(numbers.answered(stored(*effect), kNumbersAt), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(numbers.next("a"), sched::JobId{7});
  EXPECT_EQ(numbers.next("b"), sched::JobId{8});
  EXPECT_EQ(numbers.next_due(kNumbersAt), base::kNever);
}

// More jobs at once than a block has numbers: the block grows, so that the last of them does not
// wait for several writes, one after the other.
TEST(JobNumbers, ABlockIsEnoughForAllThatWait) {
  JobNumbers numbers;
  numbers.restore(1);
  constexpr int kWaiting = 2'500;
  for (int i = 0; i < kWaiting; ++i) EXPECT_EQ(numbers.next(std::to_string(i)), std::nullopt);
  const auto effect = numbers.due(kNumbersAt, nullptr);
  ASSERT_TRUE(effect);
  EXPECT_EQ(effect->end, 1 + kWaiting);
  const auto jobs = numbers.answered(stored(*effect), kNumbersAt);
  ASSERT_EQ(jobs.size(), static_cast<std::size_t>(kWaiting));
  for (const std::string& job : jobs) EXPECT_TRUE(numbers.next(job)) << job;
  EXPECT_EQ(numbers.next_due(kNumbersAt), base::kNever);
}

// A job that was given one of the first block may ask again, as when its status is lost.
TEST(JobNumbers, AskedAgainAJobWaitsForTheNextBlock) {
  JobNumbers numbers;
  numbers.restore(1);
  EXPECT_EQ(numbers.next("a"), std::nullopt);
  (void)numbers.answered(stored(*numbers.due(kNumbersAt, nullptr)), kNumbersAt);
  for (std::int64_t id = 1; id <= kube::kJobIdBlock; ++id) {
    EXPECT_EQ(numbers.next("a"), sched::JobId{id});
  }
  EXPECT_EQ(numbers.next("a"), std::nullopt);
  EXPECT_EQ(numbers.next_due(kNumbersAt), kNumbersAt);
  const auto second = numbers.due(kNumbersAt, nullptr);
  ASSERT_TRUE(second);
  EXPECT_EQ(numbers.next_due(kNumbersAt), base::kNever) << "its outcome will tell";
  EXPECT_EQ(numbers.answered(stored(*second), kNumbersAt), std::vector<std::string>{"a"});
}

// The conflict shows that numbers up to 5,000 are taken; the next block begins there.
TEST(JobNumbers, GoOnBehindWhatAnotherLeaderReserved) {
  JobNumbers numbers;
  numbers.restore(1);
  EXPECT_EQ(numbers.next("a"), std::nullopt);
  const auto first = numbers.due(kNumbersAt, nullptr);
  ASSERT_TRUE(first);
  EXPECT_FALSE(first->exists);
  EXPECT_TRUE(numbers.answered(refused(*first, 5'000), kNumbersAt).empty());
  EXPECT_EQ(numbers.due(kNumbersAt, nullptr), std::nullopt) << "it backs off";
  EXPECT_EQ(numbers.next_due(kNumbersAt), kNumbersAt + milliseconds{200});
  const auto second = numbers.due(kNumbersAt + milliseconds{200}, nullptr);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->first, 5'000);
  EXPECT_EQ(numbers.answered(stored(*second), kNumbersAt), (std::vector<std::string>{"a"}));
  EXPECT_EQ(numbers.next("a"), sched::JobId{5'000});
}

}  // namespace
}  // namespace control
