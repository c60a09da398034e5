#include "e2e/probe/stop_sense.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "e2e/probe/stamp_file.h"

namespace probe {
namespace {

constexpr base::Duration kPause = std::chrono::milliseconds{1};

TEST(StopSense, ItsOwnSleepIsNoStop) {
  constexpr int kLooks = 300;
  StopSense sense;
  int stops = 0;
  base::Instant before = sense.look().at;
  for (int i = 0; i < kLooks; ++i) {
    sense.sleep_until(before + kPause);
    const StopSense::Look look = sense.look();
    EXPECT_GE(look.at, before + kPause);
    before = look.at;
    stops += look.was_stopped ? 1 : 0;
  }
  // A page that had to be read looks like one.
  EXPECT_LE(stops, kLooks / 20);
}

// A process that stamps a file as a probe does, and is stopped at any point of its rhythm for a
// fraction of what its clock could show.
class StoppedProcess : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "stopped-" + std::to_string(::getpid());
    child_ = ::fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) stamp_for_ever(path_);
    ASSERT_TRUE(eventually([&] { return !runs().empty(); }));
  }
  void TearDown() override {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    ::unlink(path_.c_str());
  }
  [[noreturn]] static void stamp_for_ever(const std::string& path) {
    auto writer = StampWriter::create(path);
    if (!writer.ok()) ::_exit(1);
    StopSense sense;
    for (;;) {
      const StopSense::Look begin = sense.look();
      writer->stamp(begin.at, begin.was_stopped);
      for (base::Instant t = begin.at; t < begin.at + kPause / 2;) {  // half of the time it works
        const StopSense::Look look = sense.look();
        writer->stamp(t = look.at, look.was_stopped);
      }
      sense.sleep_until(begin.at + kPause);
    }
  }
  static base::Instant now() {
    return base::Instant{std::chrono::duration_cast<base::Duration>(
        std::chrono::system_clock::now().time_since_epoch())};
  }
  std::vector<probe::Run> runs() const {
    const auto stamps = read_stamps(path_);
    return stamps.ok() ? stamps->runs : std::vector<probe::Run>{};
  }
  static bool eventually(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    while (!condition()) {
      if (std::chrono::steady_clock::now() >= deadline) return false;
      ::poll(nullptr, 0, 1);
    }
    return true;
  }

  std::string path_;
  pid_t child_ = -1;
};

TEST_F(StoppedProcess, BeginsANewRunAfterEveryStop) {
  int missed = 0;
  for (int stop = 0; stop < 40; ++stop) {
    const base::Instant before = runs().back().end;
    ASSERT_TRUE(eventually([&] { return runs().back().end > before; }));
    ASSERT_EQ(::kill(child_, SIGSTOP), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child_, &status, WUNTRACED), child_);
    ASSERT_TRUE(WIFSTOPPED(status));
    const base::Instant stopped = now();
    ASSERT_EQ(::kill(child_, SIGCONT), 0);
    ASSERT_TRUE(eventually([&] { return runs().back().end > stopped; }));
    for (const probe::Run& run : runs()) {
      missed += run.begin < stopped && run.end > stopped ? 1 : 0;
    }
  }
  // One that comes when the process was kept from its CPU until its own sleep was over before it
  // began: then the stop is the only sleep, and looks like its own.
  EXPECT_LE(missed, 2);
}

}  // namespace
}  // namespace probe
