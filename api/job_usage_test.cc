#include "api/job_usage.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace kube {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

// As a launcher writes it (launcher/usage_test.cc).
std::string message_of_launcher() {
  std::ifstream file{KUBEGANG_SOURCE_DIR "/launcher/testing/usage_message.json"};
  std::string line;
  std::getline(file, line);
  return line;
}
const std::string kMessage = message_of_launcher();

std::string with(const std::string& from, const std::string& to) {
  std::string text = kMessage;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(UsageMessage, IsReadAsALauncherWritesIt) {
  const auto said = read_usage_message(kMessage);
  ASSERT_TRUE(said);
  EXPECT_FALSE(said->wants_requeue);
  const StepUsage script{.id = "batch",
                         .name = "batch",
                         .start_time = base::Instant{seconds{10}},
                         .elapsed = seconds{9},
                         .user_cpu = seconds{2},
                         .max_rss = Bytes{8'192}};
  const StepUsage hostname{.id = "0",
                           .name = "hostname",
                           .tasks = 2,
                           .nodes = 2,
                           .cpus = 4,
                           .exit_code = 3,
                           .start_time = base::Instant{seconds{11}},
                           .elapsed = seconds{2},
                           .user_cpu = seconds{2},
                           .system_cpu = microseconds{1'000},
                           .max_rss = Bytes{4'096}};
  const StepUsage sleep{.id = "1",
                        .name = "sleep",
                        .signal = 9,
                        .start_time = base::Instant{seconds{14}},
                        .elapsed = seconds{6}};
  const JobUsage want{.user_cpu = seconds{4},
                      .system_cpu = microseconds{1'000},
                      .max_rss = Bytes{8'192},
                      .memory_peak = Bytes{1 << 20},
                      .steps = {script, hostname, sleep}};
  EXPECT_EQ(said->usage, want);
}

// Wherever it stands, and as a field alone: the name of a step may be that word.
TEST(UsageMessage, HasTheWishToRunAgain) {
  const auto wants = [](const std::string& message) {
    const auto said = read_usage_message(message);
    return said && said->wants_requeue;
  };
  EXPECT_TRUE(wants(with("\"userCPU\":\"4", "\"requeue\":true,\"userCPU\":\"4")));
  EXPECT_TRUE(wants(with("\"moreSteps\":0", "\"moreSteps\":0,\"requeue\":true")));
  EXPECT_FALSE(wants(with("\"moreSteps\":0", "\"moreSteps\":0,\"requeue\":false")));
  EXPECT_FALSE(wants(with("\"hostname\"", "\"requeue\"")));
}

// The job's own programs can write whatever they like there.
TEST(UsageMessage, TakesNothingThatNoLauncherWrites) {
  const std::string hostile[] = {
      "",
      "{}",
      "Killed by signal 9",
      "{\"kubegangUsage\":1,",
      "{\"kubegangUsage\":2,\"userCPU\":\"1s\"}",
      " " + kMessage,
      kMessage + "{}",
      kMessage + std::string(4'096, ' '),
      "{\"kubegangUsage\":1,\"steps\":" + std::string(4'000, '['),
      "{\"kubegangUsage\":1,\"a\":" + std::string(4'000, '{'),
      with("\"userCPU\":\"4.000000s\"", "\"userCPU\":\"-4s\""),
      with("\"userCPU\":\"4.000000s\"", "\"userCPU\":4"),
      with("\"maxRSS\":\"8192\"", "\"maxRSS\":\"8Ei\""),
      with("\"maxRSS\":\"8192\"", "\"maxRSS\":\"-1\""),
      with("\"memoryPeak\":\"1048576\"", "\"memoryPeak\":\"1e400\""),
      with("\"steps\":[", "\"steps\":[7,"),
      with("\"steps\":[", "\"steps\":{\"a\":["),
      with("\"id\":\"0\"", "\"id\":\"batch\""),
      with("\"id\":\"0\"", "\"id\":\"00\""),
      with("\"id\":\"0\"", "\"id\":\"1.extern\""),
      with("\"id\":\"0\"", "\"id\":\"12345678901\""),
      with("\"id\":\"0\"", "\"id\":\"\""),
      with("\"hostname\"", "\"a|b\""),
      with("\"hostname\"", "\"\\u001b[31m\""),
      with("\"hostname\"", "\"a\\nb\""),
      with("\"hostname\"", "\"\xff\xfe\""),
      with("\"hostname\"", "\"" + std::string(33, 'a') + "\""),
      with("\"tasks\":2", "\"tasks\":0"),
      with("\"tasks\":2", "\"tasks\":99999999999"),
      with("\"nodes\":2", "\"nodes\":-2"),
      with("\"cpus\":4", "\"cpus\":-4"),
      with("\"exitCode\":3", "\"exitCode\":-1"),
      with("\"signal\":9", "\"signal\":1000"),
      with("\"startTime\":\"1970-01-01T00:00:11.000000Z\",", ""),
      with("1970-01-01T00:00:11.000000Z", "0000-01-01T00:00:11.000000Z"),
      with("1970-01-01T00:00:11.000000Z", "yesterday"),
      with("\"moreSteps\":0", "\"moreSteps\":-7"),
      with("\"moreSteps\":0", "\"moreSteps\":0,\"requeue\":1"),
  };
  for (const std::string& message : hostile) {
    EXPECT_FALSE(read_usage_message(message)) << message.substr(0, 600);
  }
}

TEST(UsageMessage, TakesNoMoreStepsThanALauncherLists) {
  std::string steps;
  for (int i = 0; i < 40; ++i) {
    steps += "{\"id\":\"" + std::to_string(i + 1) +
             "\",\"tasks\":1,\"startTime\":\"2026-01-01T00:00:11Z\",\"elapsed\":\"0s\"},";
  }
  const std::string message = "{\"kubegangUsage\":1,\"steps\":[" + steps + "{}]}";
  EXPECT_LE(message.size(), kUsageMessageBytesMax);
  EXPECT_FALSE(read_usage_message(message));
}

TEST(Steps, AreReadAsTheyAreWritten) {
  const auto said = read_usage_message(kMessage);
  ASSERT_TRUE(said);
  JobUsage usage = said->usage;
  usage.more_steps = 7;
  JobUsage read;
  ASSERT_TRUE(read_steps(write_steps(usage), read));
  EXPECT_EQ(read.steps, usage.steps);
  EXPECT_EQ(read.more_steps, 7);
  EXPECT_EQ(write_steps({}), "");
  EXPECT_TRUE(read_steps("", read));
  EXPECT_TRUE(read.steps.empty());
  EXPECT_FALSE(read_steps("[", read));
}

}  // namespace
}  // namespace kube
