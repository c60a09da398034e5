// `kubectl gang queue`: jobs as squeue shows them.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/cluster/read.h"
#include "cli/cluster/session.h"
#include "cli/program.h"
#include "view/queue_lines.h"

namespace cli {

struct QueueOptions {
  std::vector<std::string> jobs;  // names or numbers, as find_job takes them; empty = all
  bool all_namespaces = false;
  std::vector<std::string> partitions;  // empty = all
  bool json = false;
  bool wide = false;                  // whole names, whatever the terminal's width, and priorities
  bool start = false;                 // when and where those that wait are expected to start
  bool watch = false;                 // follows changes and turns, until interrupted
  std::int64_t watch_rounds_max = 0;  // 0 = no end
};

// squeue's columns in squeue's widths, but for the number: 8 places instead of 18, which are for
// the parts of arrays. Where a line is longer than `columns_max`, names are cut as squeue cuts them
// (partition 9 characters, name and user 8); nodes and reasons never are.
std::string format_queue(const std::vector<view::QueueLine>& lines,
                         std::optional<std::size_t> columns_max);

// Returns the same, names uncut, with the priorities, which is squeue's %Q, and how many of their
// completions jobs have, if any job has completions.
std::string format_wide_queue(const std::vector<view::QueueLine>& lines);

// squeue --start: the jobs that wait, the one that is expected first on top.
std::string format_starts(std::vector<view::QueueLine> lines,
                          std::optional<std::size_t> columns_max);

int run_queue(const Session& session, const QueueOptions& options, Output output);

}  // namespace cli
