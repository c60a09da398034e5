// The first example of Slurm's gang scheduling guide, played (slurm-semantics.md 14.1): a partition
// of all nodes, two jobs of as many each, from the files in examples/demo/, and a report of
// what the processes themselves measured.
#pragma once

#include <optional>
#include <string>

#include "base/time.h"
#include "e2e/devcluster/devcluster.h"
#include "e2e/devcluster/interrupts.h"

namespace devcluster {

struct DemoOptions {
  base::Duration slice = std::chrono::seconds{2};
  base::Duration duration = std::chrono::seconds{60};  // from the moment both jobs are ready
  std::string shown_directory;                         // as the user wrote it
  std::string page{};                                  // its address; "": there is none
  std::string examples_directory;
};

// Plays it on a terminal as a picture, elsewhere as a line per change; writes report.json into the
// cluster's directory. The exit code: 0; 1 when something failed or a figure is not as it must
// be; 130 after Ctrl-C. Ends within a bounded time.
int play_demo(const kube::Clock& clock, Devcluster& cluster, const DemoOptions& options,
              Interrupts& interrupts);

}  // namespace devcluster
