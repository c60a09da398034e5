#include "node-agent/survival/heartbeat.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "node-agent/testing/temporary_directory.h"

namespace agent {
namespace {

// Supervisor and worker map one file. The supervisor clears it for the next worker.
TEST(Heartbeat, IsSharedByAllThatMapTheFile) {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path() + "/heartbeat";
  base::Result<Heartbeat> supervisor = Heartbeat::create(path);
  ASSERT_TRUE(supervisor.ok());
  EXPECT_EQ(supervisor->main_beat().load(), 0U);
  base::Result<Heartbeat> worker = Heartbeat::create(path);
  ASSERT_TRUE(worker.ok());
  // Two beats, since each of the worker's threads may hang by itself.
  worker->main_beat().fetch_add(3);
  worker->switcher_beat().fetch_add(4);
  EXPECT_EQ(supervisor->main_beat().load(), 3U);
  EXPECT_EQ(supervisor->switcher_beat().load(), 4U);
  supervisor->clear();
  EXPECT_EQ(worker->main_beat().load() + worker->switcher_beat().load(), 0U);
}

// If the file had a hole, the first write would be a SIGBUS on a full file system.
TEST(Heartbeat, AllocatesItsMemoryAtOnceAndTakesWhateverFileIsThere) {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path() + "/heartbeat";
  std::ofstream{path}.flush();
  std::filesystem::resize_file(path, 4096);  // all of it a hole
  ASSERT_TRUE(Heartbeat::create(path).ok());
  struct stat about {};
  ASSERT_EQ(::stat(path.c_str(), &about), 0);
  EXPECT_GT(about.st_blocks, 0);
  std::ofstream{path} << std::string(100, 'x');  // of another version
  base::Result<Heartbeat> heartbeat = Heartbeat::create(path);
  ASSERT_TRUE(heartbeat.ok());
  heartbeat->clear();
  EXPECT_EQ(heartbeat->main_beat().load(), 0U);
}

}  // namespace
}  // namespace agent
