// kubegang-probe: a job's program that can say afterwards when it really ran (stamp_file.h).
//
// It works 0.2 ms of every millisecond, or as asked. Where KUBEGANG_STAMP_FILE is set (the
// devcluster does that for every container) it stamps that file, elsewhere it only works.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "e2e/probe/stamp_file.h"
#include "e2e/probe/stop_sense.h"
#include "e2e/probe/work_loop.h"

namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

// Returns an environment variable, "" if it is not set.
std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Works a part of every period and stamps a file with the times it ran."};
  std::int64_t seconds = 0;
  std::int64_t work_micros = probe::kWork.count();
  std::int64_t period_millis = 1;
  std::string path;
  app.add_option("--seconds", seconds, "end after that many seconds (default: never)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--work-micros", work_micros, "of every period (default: 200)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{900}));
  // Above half of probe::kRunGapMax a wakeup that comes late would look like the end of a run.
  app.add_option("--period-millis", period_millis, "for guests that are slow to wake (default: 1)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{5}));
  app.add_option("--stamps", path, "the file to stamp (default: $KUBEGANG_STAMP_FILE, or none)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  if (path.empty()) path = variable("KUBEGANG_STAMP_FILE");
  std::optional<probe::StampWriter> stamps;
  if (!path.empty()) {
    // A probe that cannot stamp ends at once: a test would otherwise wait for stamps that never
    // come.
    base::Result<probe::StampWriter> writer = probe::StampWriter::create(path);
    if (!writer.ok()) {
      std::fprintf(stderr, "kubegang-probe: %s\n", writer.error().message.c_str());
      return kExitFailed;
    }
    stamps.emplace(std::move(writer).value());
  }
  // A container's first process is not ended by SIGTERM unless it says so.
  ::signal(SIGTERM, [](int) { ::_exit(128 + SIGTERM); });
  ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);  // wake on time
  // Shows in the pod's log that the job's variables have arrived.
  std::printf("kubegang-probe: job %s, node %s of %s, %s\n", variable("SLURM_JOB_ID").c_str(),
              variable("SLURM_NODEID").c_str(), variable("SLURM_NNODES").c_str(),
              path.empty() ? "no stamps" : ("stamps " + path).c_str());
  std::fflush(stdout);

  probe::StopSense sense;
  // Every look at the clock proves that we run.
  const auto look = [&] {
    const probe::StopSense::Look seen = sense.look();
    if (stamps) stamps->stamp(seen.at, seen.was_stopped);
    return seen.at;
  };
  const base::Instant begin = look();
  // A prime number of microseconds apart for neighbouring process ids.
  const base::Duration period = std::chrono::milliseconds{period_millis};
  const base::Duration phase{std::int64_t{::getpid()} * 191 % period.count()};
  probe::WorkLoop loop{begin, phase, period};
  std::int64_t pieces = 0;
  // 1. sleep until the next piece of work is due
  // 2. look: a freeze during the sleep shows here
  // 3. work for as long as asked, looking all the time
  for (base::Instant t = begin; seconds == 0 || t < begin + std::chrono::seconds{seconds};) {
    sense.sleep_until(loop.due());
    t = look();
    if (!loop.begin(t)) continue;
    while (look() < t + base::Duration{work_micros}) {
    }
    if (stamps) stamps->count_progress();
    ++pieces;
  }
  std::printf("kubegang-probe: %lld pieces of work\n", static_cast<long long>(pieces));
  return 0;
}
