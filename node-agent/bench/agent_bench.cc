// agent_bench: what a switch costs, the agent's beside the machine's own limit. Real cgroups and
// real processes; needs root. Writes {"cases": […]} and, if asked, a drawing of it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "node-agent/bench/bench_pods.h"
#include "node-agent/bench/chart.h"
#include "node-agent/bench/idle_bench.h"
#include "node-agent/bench/loss_bench.h"
#include "node-agent/bench/skew_bench.h"
#include "node-agent/bench/switch_bench.h"

namespace agent::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Settings {
  std::string out = "build/bench/agent.json";
  std::string svg{};
  std::string only{};
  bool quick = false;
  std::string agent = KUBEGANG_BINARY_DIR "/bin/kubegang-agent";
  std::string crds = KUBEGANG_SOURCE_DIR "/crds";
};

// Measured only when its turn comes, as the cases need the machine for themselves.
struct Case {
  std::string name;
  std::function<nlohmann::ordered_json(const std::string& name)> measure;
};

// The name says what is measured: pods and tasks of a switch, nodes of a skew, the length of the
// slice for lost work.
std::vector<Case> all_cases(const Settings& settings) {
  // Enough for a p99 where the goal is one; fewer where only the p50 has one.
  const int many = settings.quick ? 20 : 200;
  const int few = settings.quick ? 10 : 50;
  const base::Duration span = settings.quick ? seconds{4} : seconds{24};
  const auto switch_case = [=](int pods, int tasks, int rounds) {
    return [=](const std::string& name) {
      return measure_switch({.name = name, .pods = pods, .tasks = tasks}, rounds);
    };
  };
  const auto skew = [=](bool fifo) {
    return [=](const std::string& name) { return measure_skew(name, fifo, many); };
  };
  const auto loss = [=](base::Duration slice) {
    return [=](const std::string& name) { return measure_loss(name, slice, span); };
  };
  const auto slurm = [=](bool ignores) {
    return [=](const std::string& name) {
      return measure_slurm_way(name, seconds{5}, seconds{20}, ignores);
    };
  };
  const auto idle = [=](int pods, base::Duration slice, base::Duration measured) {
    return [=](const std::string& name) {
      return measure_idle({.name = name, .pods = pods, .slice = slice, .span = measured},
                          settings.agent, settings.crds);
    };
  };
  return {{"idle/100", idle(100, seconds{30}, seconds{30})},
          {"turns/100ms", idle(4, milliseconds{100}, seconds{15})},
          {"switch/1", switch_case(1, 1, many)},
          {"switch/10x10", switch_case(10, 10, few)},
          {"switch/100", switch_case(100, 1, few)},
          {"skew/2", skew(true)},
          {"skew/2/cfs", skew(false)},
          {"loss/1000ms", loss(seconds{1})},
          {"loss/100ms", loss(milliseconds{100})},
          {"loss/20ms", loss(milliseconds{20})},
          {"slurm_way/5000ms", slurm(false)},
          {"slurm_way/5000ms/ignored", slurm(true)}};
}

// Checked, since a disk that is full would otherwise cost the whole run without a word.
bool write_file(const std::string& path, const std::string& text) {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path{path}.parent_path(), ignored);
  std::ofstream file{path};
  file << text;
  file.flush();
  if (!file.good()) std::fprintf(stderr, "agent_bench: cannot write %s\n", path.c_str());
  return file.good();
}

// Each case is printed as it ends: a run takes minutes.
int run(const Settings& settings) {
  if (const auto missing = testing::RealCgroups::missing(version_to_measure())) {
    std::fprintf(stderr, "agent_bench: SKIPPED: %s\n", missing->c_str());
    return 0;
  }
  nlohmann::ordered_json result{{"cases", nlohmann::ordered_json::array()}};
  for (const Case& one : all_cases(settings)) {
    const bool wanted = settings.only.empty() || one.name == settings.only ||
                        one.name.starts_with(settings.only + "/");
    if (!wanted) continue;
    result["cases"].push_back(one.measure(one.name));
    std::printf("%s\n", result["cases"].back().dump().c_str());
    std::fflush(stdout);
  }
  bool good = write_file(settings.out, result.dump(2) + "\n");
  if (!settings.svg.empty()) good &= write_file(settings.svg, draw_chart(result));
  return good ? 0 : 1;
}

}  // namespace
}  // namespace agent::bench

int main(int argc, char** argv) {
  agent::bench::Settings settings;
  CLI::App app{"Measures the node agent: switches, skew, lost work, its own cost. Needs root."};
  app.add_option("--out", settings.out, "the JSON file to write");
  app.add_option("--svg", settings.svg, "a drawing of lost work and overlap (default: none)");
  app.add_option("--only", settings.only, "measure this case alone, or those below it (loss)");
  app.add_flag("--quick", settings.quick, "a tenth of the rounds: figures of little worth");
  app.add_option("--agent", settings.agent, "the program kubegang-agent");
  app.add_option("--crds", settings.crds, "folder of the CustomResourceDefinitions");
  CLI11_PARSE(app, argc, argv);
  return agent::bench::run(settings);
}
