// `kubectl gang queue`: jobs as squeue shows them.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/cluster/job_time.h"
#include "cli/cluster/read.h"
#include "cli/cluster/session.h"
#include "cli/program.h"

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

struct QueueLine {
  std::string job_id;  // empty before an operator has seen it
  std::string partition;
  std::string name;       // of an attempt at a Job of the batch group: that Job's, as job/NAME
  std::string job_name;   // the object's
  std::string batch_job;  // whose attempt it is; empty = none
  std::string user;       // the namespace
  JobMoment moment;
  int nodes = 0;
  std::string hostlist;  // that it has; empty = none
  std::string reason;    // why it waits; empty = it has nodes
  std::int64_t priority = 0;
  std::optional<Progress> progress;             // of a job whose pods follow one another
  std::optional<base::Instant> expected_start;  // of a job that waits, if it is known
  std::string planned_nodes;                    // likewise
};

// Returns the fields of a Job that its line needs; job_moment() and is_called() read no more.
const kube::KnownFields& fields_of_queue();

// Returns the jobs that are not finished, in squeue's order: partition, waiting before running
// before suspended, higher priority first, then by id.
std::vector<QueueLine> queue_lines(const std::vector<std::shared_ptr<const kube::Job>>& jobs,
                                   const TimetableOf& timetable_of, base::Instant now);

// squeue's columns in squeue's widths, but for the number: 8 places instead of 18, which are for
// the parts of arrays. Where a line is longer than `columns_max`, names are cut as squeue cuts them
// (partition 9 characters, name and user 8); nodes and reasons never are.
std::string format_queue(const std::vector<QueueLine>& lines,
                         std::optional<std::size_t> columns_max);

// Returns the same, names uncut, with the priorities, which is squeue's %Q, and how many of their
// completions jobs have, if any job has completions.
std::string format_wide_queue(const std::vector<QueueLine>& lines);

// squeue --start: the jobs that wait, the one that is expected first on top.
std::string format_starts(std::vector<QueueLine> lines, std::optional<std::size_t> columns_max);

int run_queue(const Session& session, const QueueOptions& options, Output output);

}  // namespace cli
