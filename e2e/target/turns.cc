// kubegang-turns: who ran when, from the stamp files of probes that were fetched from the guests.
//
//   kubegang-turns --slice-ms=2000 --from=MICROS --to=MICROS one@n1.stamps one@n2.stamps …
//
// Files are named JOB@NODE.stamps; instants are microseconds since the epoch. One line on stdout:
//   switches=18 overlap_ms=0.0 skew_p99_ms=3.1 one=0.50 two=0.50
// switches, overlap and skew as in e2e/probe/analysis.h; then each job's share of the time.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/time.h"
#include "e2e/probe/analysis.h"
#include "e2e/probe/stamp_file.h"

namespace {

using base::Duration;
using base::Instant;

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

double millis(Duration duration) {
  return static_cast<double>(duration.count()) / 1e3;
}

// Cuts the runs to the window, in which the caller knows that the gangs take turns. Progress stays
// whole, since this program says nothing of work.
// The parts of the runs that lie in the window.
std::vector<probe::Run> within(const std::vector<probe::Run>& runs, Instant from, Instant to) {
  std::vector<probe::Run> out;
  for (probe::Run run : runs) {
    run.begin = std::max(run.begin, from);
    run.end = std::min(run.end, to);
    if (run.begin < run.end) out.push_back(run);
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Who ran when, from the stamp files of probes."};
  std::int64_t slice_ms = 0, from = 0, to = 0;
  std::vector<std::string> files;
  app.add_option("--slice-ms", slice_ms)->required()->check(CLI::PositiveNumber);
  app.add_option("--from", from, "microseconds since the epoch")->required();
  app.add_option("--to", to, "microseconds since the epoch")->required();
  app.add_option("files", files, "JOB@NODE.stamps")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  // The clocks of the guests are synchronized, so stamps of different nodes can be compared.
  const Instant begin{Duration{from}}, end{Duration{to}};
  std::map<std::string, probe::Gang> gangs;
  for (const std::string& file : files) {
    const std::string stem = std::filesystem::path{file}.stem();
    const auto at = stem.find('@');
    const base::Result<probe::Stamps> stamps = probe::read_stamps(file);
    if (at == std::string::npos || !stamps.ok()) {
      std::fprintf(stderr, "kubegang-turns: %s is not a stamp file JOB@NODE.stamps\n",
                   file.c_str());
      return kExitFailed;
    }
    probe::Gang& gang = gangs[stem.substr(0, at)];
    gang.name = stem.substr(0, at);
    const std::string node = stem.substr(at + 1);
    gang.nodes[node] = within(stamps->runs, begin, end);
    gang.touched[node] = begin;  // they have taken turns before the window
  }
  probe::Measurement measurement{.slice = std::chrono::milliseconds{slice_ms}, .until = end};
  for (const auto& [name, gang] : gangs) measurement.gangs.push_back(gang);
  const probe::Findings findings = probe::analyse(measurement);
  std::printf("switches=%lld overlap_ms=%.1f skew_p99_ms=%.1f",
              static_cast<long long>(findings.switches), millis(findings.overlap_total),
              millis(Duration{findings.skew_micros.p99}));
  for (const probe::JobShare& job : findings.jobs) {
    const double all = job.run_seconds + job.suspended_seconds;
    std::printf(" %s=%.2f", job.name.c_str(), all > 0 ? job.run_seconds / all : 0.0);
  }
  std::printf("\n");
  return 0;
}
