#include "node-agent/bench/switch_bench.h"

#include <fcntl.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <semaphore>
#include <thread>

#include "base/check.h"
#include "linux/file_descriptor.h"
#include "node-agent/bench/bench_pods.h"

namespace agent::bench {
namespace {

constexpr base::Duration kSlice = std::chrono::milliseconds{100};
constexpr int kBlock = 5;  // switches before the other's turn
constexpr std::int64_t kWakeAheadNanos = 200'000;
// A task on another CPU stops while the loop spins; one that the loop keeps off its CPU must get
// it, or it would never be seen frozen.
constexpr std::int64_t kSpinNanos = 20'000;
constexpr timespec kPauseMax{.tv_sec = 0, .tv_nsec = 50'000};

// The machine's own limit: descriptors and system calls, nothing else. A thread of the switcher's
// priority that waits as the switcher does, so that what the machine does to one it does to the
// other.
class BareLoop {
 public:
  BareLoop(const BenchPods& pods, std::size_t gang_size) : gang_size_{gang_size} {
    const bool v2 = version_to_measure() == testing::CgroupVersion::kV2;
    frozen_word_ = v2 ? "frozen 1" : "FROZEN";
    freeze_word_ = v2 ? "1\n" : "FROZEN\n";
    thaw_word_ = v2 ? "0\n" : "THAWED\n";
    for (std::uint16_t i = 0; i < pods.size(); ++i) {
      const std::string directory = pods.cgroups().root() + "/" + pods.path(i) + "/";
      const auto open = [&](const char* name, int flags) {
        os::FileDescriptor file{::open((directory + name).c_str(), flags | O_CLOEXEC)};
        CHECK(file.is_open(), directory + name);
        return file;
      };
      wish_.push_back(open(v2 ? "cgroup.freeze" : "freezer.state", O_WRONLY));
      state_.push_back(open(v2 ? "cgroup.events" : "freezer.state", O_RDONLY));
    }
    thread_ = std::thread{[this] {
      take_fifo();
      for (start_.acquire(); !ended_; start_.acquire()) {
        take_turns();
        done_.release();
      }
    }};
  }
  ~BareLoop() {
    ended_ = true;
    start_.release();
    thread_.join();
  }
  BareLoop(const BareLoop&) = delete;
  BareLoop& operator=(const BareLoop&) = delete;

  // Microseconds from each instant to the last thaw. Gang 0 runs before and after, gang 1 too.
  std::vector<double> run(int switches) {
    switches_ = switches;
    start_.release();
    done_.acquire();
    return took_;
  }

 private:
  // Begins with gang 1 frozen and ends with all thawed, so that a block of the agent's and a block
  // of this one find the pods in the same state.
  void take_turns() {
    took_.clear();
    freeze(1);
    wait(1);
    for (int i = 0; i < switches_; ++i) took_.push_back(switch_once(i % 2, 1 - i % 2));
    for (std::size_t i = 0; i < wish_.size(); ++i) write(i, thaw_word_);
  }
  // 1. asleep until shortly before the boundary, 2. the rest of the way spinning, since no sleep
  // ends on time, 3. freeze, wait until all stand still, thaw. The switcher takes the same steps;
  // what it does beyond them is the difference between the two figures.
  double switch_once(int off, int on) {
    const std::int64_t slice = std::chrono::nanoseconds{kSlice}.count();
    const std::int64_t due = (wall_nanos() / slice + 1) * slice;
    sleep_until_nanos(due - kWakeAheadNanos);
    while (wall_nanos() < due) {
    }
    freeze(off);
    wait(off);
    for (std::size_t i = 0; i < gang_size_; ++i) write(place(on, i), thaw_word_);
    return static_cast<double>(wall_nanos() - due) / 1000;
  }
  std::size_t place(int gang, std::size_t i) const {
    return static_cast<std::size_t>(gang) * gang_size_ + i;
  }
  void freeze(int gang) {
    for (std::size_t i = 0; i < gang_size_; ++i) write(place(gang, i), freeze_word_);
  }
  void wait(int gang) {
    const std::int64_t since = wall_nanos();
    for (std::size_t i = 0; i < gang_size_; ++i) {
      while (!is_frozen(place(gang, i))) {
        if (wall_nanos() - since < kSpinNanos) continue;
        // On v1 nothing is ever told: it ends with the time.
        pollfd news{.fd = state_[place(gang, i)].get(), .events = POLLPRI, .revents = 0};
        ::ppoll(&news, 1, &kPauseMax, nullptr);
      }
    }
  }
  void write(std::size_t pod, const char* word) {
    [[maybe_unused]] const ssize_t written = ::pwrite(wish_[pod].get(), word, std::strlen(word), 0);
  }
  bool is_frozen(std::size_t pod) {
    char text[256];
    const ssize_t length = ::pread(state_[pod].get(), text, sizeof text - 1, 0);
    if (length < 0) return true;
    text[length] = '\0';
    // The word is in cgroup.events on v2 and in freezer.state on v1.
    return std::strstr(text, frozen_word_) != nullptr;
  }

  std::size_t gang_size_;
  const char* frozen_word_;
  const char* freeze_word_;
  const char* thaw_word_;
  std::vector<os::FileDescriptor> wish_;
  std::vector<os::FileDescriptor> state_;

  std::binary_semaphore start_{0};
  std::binary_semaphore done_{0};
  int switches_ = 0;
  bool ended_ = false;
  std::vector<double> took_;
  std::thread thread_;
};

// Returns the reports of that many switches at boundaries.
std::vector<double> take_reports(Switcher& switcher, int switches) {
  std::vector<double> took;
  while (static_cast<int>(took.size()) < switches) {
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    while (const std::optional<SwitchReport> report = switcher.take_report()) {
      const bool counts =
          report->cause == SwitchCause::kBoundary && static_cast<int>(took.size()) < switches;
      if (counts) took.push_back(static_cast<double>((report->last_write - report->due).count()));
    }
  }
  return took;
}

// Until one of the two gangs stands still: where all tasks ran before, each of those that stop has
// to get a CPU once, beside those that go on. The bare loop's measurement begins there too.
void wait_for_turns(BenchPods& pods, std::size_t gang_size) {
  CHECK(testing::eventually(
      [&] {
        std::size_t frozen = 0;
        for (std::uint16_t i = 0; i < pods.size(); ++i) {
          frozen += pods.control(i).state.load() == FreezeState::kFrozen ? 1U : 0U;
        }
        return frozen == gang_size;
      },
      std::chrono::seconds{60}));
}

}  // namespace

// Agent and bare loop take turns in blocks of kBlock switches, so that a machine that becomes
// slow meanwhile is slow for both. Reports from before both gangs are in step are thrown away.
nlohmann::ordered_json measure_switch(const SwitchShape& shape, int rounds) {
  BenchPods pods;
  timetable::PodSet first;
  timetable::PodSet second;
  for (int i = 0; i < 2 * shape.pods; ++i) {
    const std::uint16_t pod = pods.add_pod();
    (i < shape.pods ? first : second).push_back(pod);
  }
  for (std::uint16_t pod = 0; pod < pods.size(); ++pod) {
    for (int task = 0; task < shape.tasks; ++task) pods.spin(pod);
  }
  BareLoop bare{pods, first.size()};
  Driver driver;
  std::vector<double> ours;
  std::vector<double> limit;
  while (static_cast<int>(ours.size()) < rounds) {
    driver.submit(pods.assignment({first, second}, kSlice));
    wait_for_turns(pods, first.size());
    while (driver.switcher().take_report()) {
    }
    for (const double took : take_reports(driver.switcher(), kBlock)) ours.push_back(took);
    driver.let_go(pods);
    for (const double took : bare.run(kBlock)) limit.push_back(took);
  }
  return {{"name", shape.name},
          {"p50_us", percentile(ours, 50)},
          {"p99_us", percentile(ours, 99)},
          {"bare_p50_us", percentile(limit, 50)},
          {"bare_p99_us", percentile(limit, 99)},
          {"policy", to_string(driver.switcher().policy())}};
}

}  // namespace agent::bench
