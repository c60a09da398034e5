#include "node-agent/bench/loss_bench.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "node-agent/bench/bench_pods.h"
#include "node-agent/bench/lost_work.h"

namespace agent::bench {
namespace {

constexpr base::Duration kSlurmWait = std::chrono::seconds{2};
// From the order to take turns to the first turn that is measured, at least.
constexpr base::Duration kTurnsSettle = std::chrono::milliseconds{100};

// After a boundary, until its switch is over: the barrier and the looks that follow it at once.
constexpr base::Duration kSwitchTakes = std::chrono::milliseconds{25};

std::int64_t nanos(base::Duration duration) {
  return std::chrono::nanoseconds{duration}.count();
}

// Two gangs, each with one task on every CPU that does nothing but note when it runs. Whatever
// takes the turns, the same tasks tell what came of it: time in which a CPU ran neither gang was
// lost, time in which both gangs ran was an overlap.
class LossBench {
 public:
  LossBench(std::string name, base::Duration slice, base::Duration total, bool ignores_sigtstp)
      : name_{std::move(name)}, slice_{slice}, total_{total} {
    for (std::size_t gang = 0; gang < 2; ++gang) {
      gangs_[gang] = pods_.add_pod();
      for (std::size_t cpu = 0; cpu < cpus_; ++cpu) {
        pods_.spin(gangs_[gang],
                   {.cpu = static_cast<int>(cpu), .ignores_sigtstp = ignores_sigtstp});
      }
    }
  }

  // Returns the first boundary that is measured: one of gang 0's turns.
  std::int64_t first_boundary() const {
    const std::int64_t round = nanos(slice_) * 2;
    return ((wall_nanos() + nanos(kTurnsSettle)) / round + 1) * round;
  }
  int turns_count() const { return static_cast<int>(total_ / slice_); }

  // Returns the result of the turns from `from` on, which are over. `switch_takes` counts half a
  // slice at most, as the other half is the reference (lost_work.h). The CPUs are looked at from
  // one turn earlier, since the part around a boundary begins before it.
  nlohmann::ordered_json result(std::int64_t from, base::Duration switch_takes) {
    const Turns turns{.from = from,
                      .slice = nanos(slice_),
                      .count = turns_count(),
                      .over_after = nanos(std::min(switch_takes, slice_ / 2 - kAwakeBefore))};
    const LostWork lost = lost_work(runs_on_cpus(from - turns.slice), turns);
    const std::int64_t overlap = overlap_nanos(runs_of_gang(0, from), runs_of_gang(1, from), from,
                                               from + turns.slice * turns.count);
    return {{"name", name_},
            {"lost_percent", lost.percent},
            {"noise_percent", lost.noise_percent},
            {"overlap_us_total", overlap / 1000}};
  }

  BenchPods& pods() { return pods_; }
  std::uint16_t pod(std::size_t gang) const { return gangs_[gang]; }

 private:
  // Each gang has one task on each CPU, in their order.
  std::vector<std::vector<Run>> runs_on_cpus(std::int64_t since) {
    std::vector<std::vector<Run>> cpus;
    for (std::size_t cpu = 0; cpu < cpus_; ++cpu) {
      std::vector<Run> runs;
      for (const std::uint16_t gang : gangs_) {
        const std::vector<Run> some = pods_.spinners_of(gang)[cpu].runs_since(since);
        runs.insert(runs.end(), some.begin(), some.end());
      }
      cpus.push_back(merge_runs(std::move(runs)));
    }
    return cpus;
  }
  std::vector<Run> runs_of_gang(std::size_t gang, std::int64_t since) {
    std::vector<Run> runs;
    for (const Spinner& task : pods_.spinners_of(gangs_[gang])) {
      const std::vector<Run> some = task.runs_since(since);
      runs.insert(runs.end(), some.begin(), some.end());
    }
    return merge_runs(std::move(runs));
  }

  const std::string name_;
  const base::Duration slice_;
  const base::Duration total_;
  BenchPods pods_;
  std::array<std::uint16_t, 2> gangs_{};
  const std::size_t cpus_ = std::thread::hardware_concurrency();
};

// Slurm's way, by hand: SIGTSTP to the gang that is to stop, two seconds for it to react, then the
// freezer, and no look at whether it has stopped. The other gang goes on at once, hence the
// overlap.
class SlurmWay {
 public:
  explicit SlurmWay(LossBench& bench) : bench_{bench} {}

  // As in a turn of gang 1.
  void begin() {
    signal(0, SIGTSTP);
    freeze(0);
    resume(1);
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
  // In this order: a signal to a frozen task waits for the thaw anyway.
  void resume(std::size_t gang) {
    freezer(gang).request(FreezeRequest::kThawed);
    signal(gang, SIGCONT);
  }
  void freeze(std::size_t gang) { freezer(gang).request(FreezeRequest::kFrozen); }
  Freezer& freezer(std::size_t gang) { return *bench_.pods().control(bench_.pod(gang)).freezer; }
  void signal(std::size_t gang, int number) {
    for (const Spinner& task : bench_.pods().spinners_of(bench_.pod(gang))) {
      ::kill(task.pid(), number);
    }
  }
  LossBench& bench_;
};

}  // namespace

// Nothing here touches the pods between the first boundary and the last: the switcher's thread
// works alone.
nlohmann::ordered_json measure_loss(const std::string& name, base::Duration slice,
                                    base::Duration total) {
  LossBench bench{name, slice, total, /*ignores_sigtstp=*/false};
  Driver driver;
  driver.submit(bench.pods().assignment({{0}, {1}}, slice));
  const std::int64_t from = bench.first_boundary();
  sleep_until_nanos(from + bench.turns_count() * nanos(slice));
  return bench.result(from, kSwitchTakes);
}

nlohmann::ordered_json measure_slurm_way(const std::string& name, base::Duration slice,
                                         base::Duration total, bool ignores_sigtstp) {
  LossBench bench{name, slice, total, ignores_sigtstp};
  SlurmWay way{bench};
  way.begin();
  const std::int64_t from = bench.first_boundary();
  way.take_turns(from, from + bench.turns_count() * nanos(slice), nanos(slice));
  return bench.result(from, kSlurmWait + kSwitchTakes);
}

}  // namespace agent::bench
