#include "node-agent/bench/idle_bench.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/check.h"
#include "node-agent/bench/bench_pods.h"
#include "node-agent/testing/agent_process.h"

namespace agent::bench {
namespace {

namespace fs = std::filesystem;

// Nanoseconds that the process's threads ran. SOURCE: proc(5), schedstat.
std::int64_t cpu_nanos(pid_t process) {
  std::int64_t sum = 0;
  std::error_code ignored;
  const fs::path tasks = "/proc/" + std::to_string(process) + "/task";
  for (const auto& task : fs::directory_iterator{tasks, ignored}) {
    std::int64_t ran = 0;
    if (std::ifstream{task.path() / "schedstat"} >> ran) sum += ran;
  }
  return sum;
}

// Returns the memory that is resident now, as `ps` shows it. The supervisor and the worker share
// the program's text, which the sum counts twice.
std::int64_t rss_kib(pid_t process) {
  std::ifstream status{"/proc/" + std::to_string(process) + "/status"};
  for (std::string word; status >> word;) {
    std::int64_t kib = 0;
    if (word == "VmRSS:" && status >> kib) return kib;
  }
  return 0;
}

}  // namespace

// Runs the whole program against a real cluster's API, since most of what an idle agent does is to
// listen: 1. pods and a timetable, 2. the agent, until it has acted by it and its start is over, 3.
// the CPU time of both of its processes within the span. The pods' own processes sleep nearly all
// the time, so that they do not compete with it.
nlohmann::ordered_json measure_idle(const IdleShape& shape, const std::string& program,
                                    const std::string& crds) {
  testing::AgentProcess node{version_to_measure(), program, crds};
  std::vector<std::string> names;
  std::vector<timetable::PodSet> cycle(2);
  for (int i = 0; i < shape.pods; ++i) {
    names.push_back("p" + std::to_string(i));
    node.add_pod(names.back(), names.back(), /*grace_seconds=*/30,
                 /*pause=*/std::chrono::seconds{1});
    cycle[static_cast<std::size_t>(i) % 2].push_back(static_cast<std::uint16_t>(i));
  }
  node.publish(1, 1, names, cycle, shape.slice);
  node.start();
  CHECK(testing::eventually([&] { return node.timetable().status.observed_revision == 1; },
                            std::chrono::seconds{60}));
  std::this_thread::sleep_for(std::chrono::seconds{5});  // its start is over
  const pid_t worker = node.worker().value();
  const auto used = [&] { return cpu_nanos(node.supervisor()) + cpu_nanos(worker); };
  const std::int64_t from = wall_nanos();
  const std::int64_t before = used();
  std::this_thread::sleep_for(shape.span);
  const double share =
      static_cast<double>(used() - before) / static_cast<double>(wall_nanos() - from);
  return {{"name", shape.name},
          {"cpu_percent", 100 * share},
          {"rss_kib", rss_kib(node.supervisor()) + rss_kib(worker)}};
}

}  // namespace agent::bench
