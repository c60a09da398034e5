// How long the whole path takes, and what it costs to stand still: `make bench` writes
// build/bench/path.json. Figures, no verdicts: the expected ones are in README's table.
#pragma once

#include <string>

#include "base/result.h"
#include "e2e/devcluster/devcluster.h"
#include "e2e/devcluster/interrupts.h"

namespace devcluster {

struct BenchOptions {
  std::string examples_directory;
  std::string out;  // the JSON file
};

// About a minute. kCancelled after Ctrl-C.
base::Status run_bench(const kube::Clock& clock, const DevclusterConfig& config,
                       const BenchOptions& options, Interrupts& interrupts);

// The CPU time that a set of processes has used, and the memory that it holds.
struct ProcessUsage {
  base::Duration cpu_time{};
  std::int64_t resident_bytes = 0;
};
ProcessUsage usage_of(const std::vector<pid_t>& pids);

}  // namespace devcluster
