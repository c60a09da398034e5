#include "cli/report/what_if_text.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "cli/table.h"
#include "slurm/hostlist.h"
#include "slurm/quantities.h"

namespace cli {
namespace {

using simulate::JobHistory;
using simulate::Placement;
using simulate::Scenario;
using simulate::WhatIf;

// Returns the partition that squeue shows of a job that waits: those that it asked for, or the
// default one.
std::string partition_asked(const Scenario& scenario, const simulate::Job& job) {
  if (!job.request.partitions.empty()) {
    std::string names;
    for (const std::string& name : job.request.partitions) {
      names += (names.empty() ? "" : ",") + name;
    }
    return names;
  }
  for (const sched::PartitionConfig& partition : scenario.configuration.partitions) {
    if (partition.is_default) return partition.name;
  }
  return "(default)";
}

// Returns a row for squeue_columns(). Jobs are numbered in the order of the file, as Slurm numbers
// them. A job that waits has no nodes, so the last column has its reason, in parentheses as squeue
// shows it, and the number of nodes is the least that it asks for.
std::vector<std::string> queue_line(const Scenario& scenario, std::size_t index,
                                    const simulate::QueueRow& row) {
  const simulate::Job& job = scenario.jobs[index];
  const std::string partition =
      row.placement != nullptr ? row.placement->partition : partition_asked(scenario, job);
  const std::size_t nodes = row.placement != nullptr
                                ? row.placement->parts.size()
                                : static_cast<std::size_t>(job.request.min_nodes);
  const std::string where = row.placement != nullptr
                                ? node_list(scenario, *row.placement)
                                : "(" + std::string{simulate::reason_name(row.reason)} + ")";
  return {std::to_string(index + 1),
          partition,
          job.label,
          job.request.user,
          std::string{simulate::state_code(row.state)},
          slurm::format_run_time(row.run_time),
          std::to_string(nodes),
          where};
}

// Returns what a job does in [from, to), as one character: a blank before it is submitted and after
// it has ended, "." while it waits, "-" if it has nodes and does not run, and a shade for the part
// of the time in which it runs. `to` must be after `from`. A job that was requeued has several
// placements, and the cell may touch more than one.
// A gang that waits, takes turns with another one, and then has the nodes alone is the strip
// "....▓▓▓▓████".
std::string strip_cell(const JobHistory& job, base::Instant from, base::Instant to) {
  if (!job.submitted || *job.submitted >= to || (job.ended && *job.ended <= from)) return " ";
  base::Duration runs{0};
  bool placed = false;
  for (const Placement& placement : job.placements) {
    if (placement.from >= to || placement.to <= from) continue;
    placed = true;
    runs += simulate::run_time(placement, from, to);
  }
  if (!placed) return ".";
  if (runs == base::Duration{0}) return "-";
  // Whole quarters of the cell: none is the lightest shade, three or four are the darkest.
  const std::int64_t quarters = runs * 4 / (to - from);
  constexpr std::array<const char*, 5> kShades = {"░", "▒", "▓", "█", "█"};
  return kShades[static_cast<std::size_t>(std::min<std::int64_t>(quarters, 4))];
}

// Returns the line above the strips: 0 at the left end, the end of the simulation at the right one.
std::string axis(base::Instant end, std::size_t label_width, std::size_t columns) {
  const std::string last = slurm::format_run_time(end - base::Instant{});
  std::string line(label_width + 1, ' ');
  line += "0";
  const std::size_t blanks = columns > last.size() + 1 ? columns - last.size() - 1 : 1;
  return line + std::string(blanks, ' ') + last + "\n";
}

// Mean, median, the value that 95 % do not exceed, and the largest: a mean alone would hide the few
// jobs that wait very long.
std::string spread_line(const char* what, const simulate::Totals::Spread& spread) {
  std::array<char, 160> line{};
  std::snprintf(
      line.data(), line.size(), "%-18s mean %s, median %s, 95 %% %s, most %s\n", what,
      slurm::format_run_time(spread.mean).c_str(), slurm::format_run_time(spread.median).c_str(),
      slurm::format_run_time(spread.p95).c_str(), slurm::format_run_time(spread.max).c_str());
  return line.data();
}

}  // namespace

// Returns the nodes in their order, as Slurm prints an allocation.
std::string node_list(const Scenario& scenario, const Placement& placement) {
  std::vector<std::string> names;
  for (const Placement::Part& part : placement.parts) {
    names.push_back(scenario.nodes[part.node].name);
  }
  return slurm::compress_hostlist(names);
}

// Only jobs that were submitted and have not ended at t have a row.
std::string queue_at(const Scenario& scenario, const WhatIf& result, base::Instant t) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < result.jobs.size(); ++i) {
    const std::optional<simulate::QueueRow> row = simulate::queue_row(result.jobs[i], t);
    if (row) rows.push_back(queue_line(scenario, i, *row));
  }
  return "At " + slurm::format_run_time(t - base::Instant{}) + ":\n" +
         format_table(squeue_columns(), rows);
}

// Prints one line of 80 columns for each job: its name, then one character for each part of
// the time (strip_cell()). The number of cells is fixed, so that all strips stand below each
// other and below the axis; labels that are longer than 16 columns are cut for the same
// reason.
std::string strips(const Scenario& scenario, const WhatIf& result) {
  constexpr std::size_t kColumns = 80;
  constexpr std::size_t kLabelMax = 16;
  if (result.end <= base::Instant{}) return "";
  const std::size_t count = std::min(kStripsMax, result.jobs.size());
  std::size_t label_width = 3;
  for (std::size_t i = 0; i < count; ++i) {
    label_width = std::max(label_width, std::min(kLabelMax, width_of(scenario.jobs[i].label)));
  }
  const std::size_t cells = kColumns - label_width - 1;
  const std::int64_t span = result.end.time_since_epoch().count();
  // The instant at which a cell begins. The span is divided before it is multiplied, and the
  // remainder apart, so that no span overflows and the last edge is the end exactly.
  const auto edge = [&](std::size_t cell) {
    return base::Instant{
        base::Duration{span / static_cast<std::int64_t>(cells) * static_cast<std::int64_t>(cell) +
                       span % static_cast<std::int64_t>(cells) * static_cast<std::int64_t>(cell) /
                           static_cast<std::int64_t>(cells)}};
  };
  std::string text = axis(result.end, label_width, cells);
  for (std::size_t i = 0; i < count; ++i) {
    if (scenario.jobs[i].request.array) continue;  // its tasks follow
    const std::string label = cut_to_width(scenario.jobs[i].label, kLabelMax);
    text += label + std::string(label_width - width_of(label) + 1, ' ');
    for (std::size_t cell = 0; cell < cells; ++cell) {
      // A simulation of less than 80 microseconds has fewer cells.
      if (edge(cell + 1) > edge(cell)) {
        text += strip_cell(result.jobs[i], edge(cell), edge(cell + 1));
      }
    }
    text += "\n";
  }
  // A picture of thousands of lines is none; the totals below count all jobs.
  if (result.jobs.size() > count) {
    text += "… and " + std::to_string(result.jobs.size() - count) + " more jobs\n";
  }
  return text + "█ runs  ▓▒░ takes turns  - suspended  . waits\n";
}

// Prints one line for each of the first jobs that never ran, with the reason: in the strips they
// are dots or nothing.
std::string never_started(const Scenario& scenario, const WhatIf& result) {
  constexpr std::size_t kToldMax = 10;
  std::string text;
  std::size_t count = 0;
  for (std::size_t i = 0; i < result.jobs.size(); ++i) {
    const JobHistory& job = result.jobs[i];
    const bool never_ran = job.submitted && job.placements.empty() && !job.ended;
    if ((!job.refusal && !never_ran) || ++count > kToldMax) continue;
    text += "  " + scenario.jobs[i].label + ": ";
    if (job.refusal) {
      text += "refused: " + *job.refusal;
    } else if (const auto* const note = simulate::wait_note(job, result.end)) {
      text += simulate::reason_name(note->reason);
      if (!note->message.empty()) text += ": " + note->message;
    } else {
      text += "waits";
    }
    text += "\n";
  }
  if (count == 0) return "";
  if (count > kToldMax) text += "  … and " + std::to_string(count - kToldMax) + " more jobs\n";
  return "Never started      " + std::to_string(count) + (count == 1 ? " job\n" : " jobs\n") + text;
}

// Utilization is the part of all CPU seconds, from 0 to the end, that jobs used. Wait is all the
// time in which a job did not run, response the time until it ends, and slowdown the response
// divided by the run time, of at least 10 s.
// Without the bound of 10 s a job of one second that waits for a minute would have a slowdown of 61
// and decide the mean; the bound is the usual one in the literature on such traces.
std::string totals_text(const Scenario& scenario, const WhatIf& result) {
  const simulate::Totals& totals = result.totals;
  std::array<char, 160> line{};
  const double utilization = totals.cpu_seconds == 0
                                 ? 0
                                 : 100.0 * static_cast<double>(totals.used_cpu_seconds) /
                                       static_cast<double>(totals.cpu_seconds);
  std::string text = "Simulated          " + slurm::format_run_time(totals.span) + ", " +
                     std::to_string(scenario.jobs.size()) + " jobs on " +
                     std::to_string(scenario.nodes.size()) + " nodes\n";
  std::snprintf(line.data(), line.size(), "Utilization        %.1f %%\n", utilization);
  text += line.data();
  text += "Ended              " + std::to_string(totals.finished) + " jobs\n";
  text += spread_line("Wait", totals.wait);
  text += spread_line("Response", totals.response);
  const auto thousandths = [](std::int64_t milli) { return static_cast<double>(milli) / 1'000; };
  std::snprintf(line.data(), line.size(), "%-18s mean %.1f, median %.1f, 95 %% %.1f, most %.1f\n",
                "Slowdown", thousandths(totals.slowdown_milli.mean),
                thousandths(totals.slowdown_milli.median), thousandths(totals.slowdown_milli.p95),
                thousandths(totals.slowdown_milli.max));
  text += line.data();
  text += "Preempted          " + std::to_string(totals.preempted_jobs) + " jobs, " +
          std::to_string(totals.requeues) + " requeues\n";
  return text + never_started(scenario, result);
}

}  // namespace cli
