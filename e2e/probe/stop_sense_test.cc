#include "e2e/probe/stop_sense.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "e2e/probe/stamp_file.h"

namespace probe {
namespace {

constexpr base::Duration kPause = std::chrono::milliseconds{1};

// A probe sleeps most of the time. If its sleeps counted as stops, each millisecond would be a run
// of its own and no break would mean anything.
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

// Works the first part of every `period` and sleeps the rest.
struct Rhythm {
  const char* name;
  base::Duration period, work;
};

// A process that stamps a file as a probe does, and is stopped at any point of its rhythm for a
// fraction of what its clock could show.
// SIGSTOP stands for the freezer, because it needs no root; both are stops to the probe.
class StoppedProcess : public testing::TestWithParam<Rhythm> {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "stopped-" + std::to_string(::getpid());
    child_ = ::fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) stamp_for_ever(path_, GetParam());
    // The child has begun to stamp.
    ASSERT_TRUE(eventually([&] { return !runs().empty(); }));
  }
  void TearDown() override {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    ::unlink(path_.c_str());
  }
  // In the child: it must not return into the test's own code.
  [[noreturn]] static void stamp_for_ever(const std::string& path, const Rhythm& rhythm) {
    auto writer = StampWriter::create(path);
    if (!writer.ok()) ::_exit(1);
    StopSense sense;
    for (;;) {
      const StopSense::Look begin = sense.look();
      writer->stamp(begin.at, begin.was_stopped);
      for (base::Instant t = begin.at; t < begin.at + rhythm.work;) {
        const StopSense::Look look = sense.look();
        writer->stamp(t = look.at, look.was_stopped);
      }
      sense.sleep_until(begin.at + rhythm.period);
    }
  }
  // The parent hears of a stop a moment before the child sleeps for it; continued in that moment,
  // it would not have stood still at all. The kernel answers this when the child is off its CPU.
  bool stands_still() const {
    std::ifstream file{"/proc/" + std::to_string(child_) + "/syscall"};
    std::string answer;
    return std::getline(file, answer) && answer != "running";
  }
  static base::Instant now() {
    return base::Instant{std::chrono::duration_cast<base::Duration>(
        std::chrono::system_clock::now().time_since_epoch())};
  }
  std::vector<probe::Run> runs() const {
    const auto stamps = read_stamps(path_);
    return stamps.ok() ? stamps->runs : std::vector<probe::Run>{};
  }
  // For conditions that take milliseconds on an idle machine and seconds on a busy one.
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

// Each stop is shorter than any break that a clock could tell from a busy CPU. No run may reach
// from before a stop to behind it.
TEST_P(StoppedProcess, BeginsANewRunAfterEveryStop) {
  for (int stop = 0; stop < 40; ++stop) {
    // Waiting for a later stamp puts the stop at a different point of the rhythm each time.
    const base::Instant before = runs().back().end;
    ASSERT_TRUE(eventually([&] { return runs().back().end > before; }));
    ASSERT_EQ(::kill(child_, SIGSTOP), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child_, &status, WUNTRACED), child_);
    ASSERT_TRUE(WIFSTOPPED(status));
    ASSERT_TRUE(eventually([&] { return stands_still(); }));
    // An instant at which the child certainly stands still.
    const base::Instant stopped = now();
    ASSERT_EQ(::kill(child_, SIGCONT), 0);
    ASSERT_TRUE(eventually([&] { return runs().back().end > stopped; }));
    for (const probe::Run& run : runs()) {
      EXPECT_FALSE(run.begin < stopped && run.end > stopped) << "a run goes on in stop " << stop;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rhythms, StoppedProcess,
                         testing::Values(Rhythm{"HalfWorkHalfSleep", kPause, kPause / 2},
                                         Rhythm{"ShortSleeps", std::chrono::microseconds{60},
                                                base::Duration{}},
                                         Rhythm{"OnlyWork", kPause, kPause}),
                         [](const auto& rhythm) { return std::string{rhythm.param.name}; });

}  // namespace
}  // namespace probe
