#include "node-agent/bench/loss_bench.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "node-agent/bench/bench_pods.h"

namespace agent::bench {
namespace {

constexpr base::Duration kSlurmWait = std::chrono::seconds{2};
// From the order to take turns to the first turn that is measured, at least.
constexpr base::Duration kTurnsSettle = std::chrono::milliseconds{100};

std::int64_t nanos(base::Duration duration) {
  return std::chrono::nanoseconds{duration}.count();
}

// Of one gang, over its tasks, what ran between two calls.
class Stopwatch {
 public:
  explicit Stopwatch(std::vector<Spinner*> tasks) : tasks_{std::move(tasks)} {}
  std::int64_t ran() const {
    std::int64_t sum = 0;
    for (const Spinner* task : tasks_) sum += task->ran_nanos();
    return sum;
  }
  // Times in which at least one of them ran, ascending.
  std::vector<Run> runs_since(std::int64_t from) const {
    std::vector<Run> all;
    for (const Spinner* task : tasks_) {
      const std::vector<Run> runs = task->runs_since(from);
      all.insert(all.end(), runs.begin(), runs.end());
    }
    std::sort(all.begin(), all.end(), [](const Run& a, const Run& b) { return a.begin < b.begin; });
    std::vector<Run> merged;
    for (const Run& run : all) {
      if (merged.empty() || run.begin > merged.back().end) {
        merged.push_back(run);
      } else {
        merged.back().end = std::max(merged.back().end, run.end);
      }
    }
    return merged;
  }

 private:
  std::vector<Spinner*> tasks_;
};

// Microseconds in which both ran, in [from, to).
std::int64_t overlap_micros(const std::vector<Run>& a, const std::vector<Run>& b, std::int64_t from,
                            std::int64_t to) {
  std::int64_t total = 0;
  for (std::size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    const std::int64_t begin = std::max({a[i].begin, b[k].begin, from});
    const std::int64_t end = std::min({a[i].end, b[k].end, to});
    if (begin < end) total += end - begin;
    (a[i].end < b[k].end ? i : k) += 1;
  }
  return total / 1000;
}

class LossBench {
 public:
  LossBench(std::string name, base::Duration slice, base::Duration total, bool ignores_sigtstp)
      : name_{std::move(name)}, slice_{slice}, total_{total} {
    const int cpus = static_cast<int>(std::thread::hardware_concurrency());
    for (std::size_t gang = 0; gang < 2; ++gang) {
      gangs_[gang] = pods_.add_pod();
      for (int cpu = 0; cpu < cpus; ++cpu) {
        pods_.spin(gangs_[gang], {.cpu = cpu, .ignores_sigtstp = ignores_sigtstp});
      }
    }
    cpus_ = cpus;
  }

  // `alone` and `turns` begin their way of running; what follows is measured in whole rounds.
  template <typename Alone, typename Turns>
  nlohmann::ordered_json measure(Alone alone, Turns turns) {
    // At least one round of turns per block, about two seconds long.
    const std::int64_t round = nanos(slice_) * 2;
    const std::int64_t block =
        std::max<std::int64_t>(1, nanos(std::chrono::seconds{2}) / round) * round;
    const std::int64_t blocks = std::max<std::int64_t>(1, nanos(total_) / block);
    double ran_alone = 0;
    double ran_in_turns = 0;
    std::int64_t overlap = 0;
    const Stopwatch first = stopwatch(0);
    const Stopwatch second = stopwatch(1);
    for (std::int64_t i = 0; i < blocks; ++i) {
      alone();
      ran_alone += part_that_ran(block, [](std::int64_t end) { sleep_until_nanos(end); });
      const std::int64_t from = ((wall_nanos() + nanos(kTurnsSettle)) / round + 1) * round;
      ran_in_turns += turns(from, from + block);
      overlap +=
          overlap_micros(first.runs_since(from), second.runs_since(from), from, from + block);
    }
    const double lost = 100 * (ran_alone - ran_in_turns) / ran_alone;
    return {{"name", name_}, {"lost_percent", lost}, {"overlap_us_total", overlap}};
  }

  // Share of the CPUs' time in which tasks ran, in the time to come.
  template <typename Wait>
  double part_that_ran(std::int64_t span, Wait wait) {
    const std::int64_t from = wall_nanos();
    const std::int64_t before = stopwatch(0).ran() + stopwatch(1).ran();
    wait(from + span);
    const auto took = static_cast<double>(wall_nanos() - from);
    return static_cast<double>(stopwatch(0).ran() + stopwatch(1).ran() - before) / took / cpus_;
  }

  Stopwatch stopwatch(std::size_t gang) {
    std::vector<Spinner*> tasks;
    for (Spinner& task : pods_.spinners_of(gangs_[gang])) tasks.push_back(&task);
    return Stopwatch{std::move(tasks)};
  }
  BenchPods& pods() { return pods_; }
  std::uint16_t pod(std::size_t gang) const { return gangs_[gang]; }

 private:
  const std::string name_;
  const base::Duration slice_;
  const base::Duration total_;
  BenchPods pods_;
  std::array<std::uint16_t, 2> gangs_{};
  int cpus_ = 1;
};

// Slurm's way, by hand.
class SlurmWay {
 public:
  explicit SlurmWay(LossBench& bench) : bench_{bench} {}

  void alone() {
    resume(0);
    freeze(1);
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
  }
  // Turns that begin at `from` with gang 0, until `end`.
  void take_turns(std::int64_t from, std::int64_t end, std::int64_t slice) {
    std::size_t on = 0;
    for (std::int64_t boundary = from; boundary < end; boundary += slice, on = 1 - on) {
      sleep_until_nanos(boundary);
      const std::size_t off = 1 - on;
      signal(off, SIGTSTP);
      resume(on);
      sleep_until_nanos(std::min(boundary + nanos(kSlurmWait), boundary + slice));
      freeze(off);
    }
    sleep_until_nanos(end);
  }

 private:
  void resume(std::size_t gang) {
    freezer(gang).request(Wish::kThawed);
    signal(gang, SIGCONT);
  }
  void freeze(std::size_t gang) { freezer(gang).request(Wish::kFrozen); }
  Freezer& freezer(std::size_t gang) { return *bench_.pods().control(bench_.pod(gang)).freezer; }
  void signal(std::size_t gang, int number) {
    for (const Spinner& task : bench_.pods().spinners_of(bench_.pod(gang))) {
      ::kill(task.pid(), number);
    }
  }
  LossBench& bench_;
};

}  // namespace

nlohmann::ordered_json measure_loss(const std::string& name, base::Duration slice,
                                    base::Duration total) {
  LossBench bench{name, slice, total, /*ignores_sigtstp=*/false};
  Driver driver;
  return bench.measure(
      [&] {
        driver.submit(bench.pods().assignment({{0}}, slice));
        std::this_thread::sleep_for(std::chrono::milliseconds{50});
      },
      [&](std::int64_t from, std::int64_t end) {
        driver.submit(bench.pods().assignment({{0}, {1}}, slice));
        sleep_until_nanos(from);
        return bench.part_that_ran(end - from, [&](std::int64_t) { sleep_until_nanos(end); });
      });
}

nlohmann::ordered_json measure_slurm_way(const std::string& name, base::Duration slice,
                                         base::Duration total, bool ignores_sigtstp) {
  LossBench bench{name, slice, total, ignores_sigtstp};
  SlurmWay way{bench};
  return bench.measure([&] { way.alone(); },
                       [&](std::int64_t from, std::int64_t end) {
                         sleep_until_nanos(from);
                         return bench.part_that_ran(end - from, [&](std::int64_t) {
                           way.take_turns(from, end, nanos(slice));
                         });
                       });
}

}  // namespace agent::bench
