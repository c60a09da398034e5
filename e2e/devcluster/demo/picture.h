// The picture of the demo: a table of jobs like squeue's, and a strip per node of which gang ran
// when. Pure: from values to lines of text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"

namespace devcluster {

// For people who do not know squeue's codes. Fits into 80 columns.
inline constexpr const char* kStateLegend =
    "ST: PD waits, CF pods start, R runs, S stands still (frozen), CG pods end";

struct JobRow {
  std::string name;
  std::string partition;
  std::string state;  // squeue's code: PD R S CG CD F CA …
  base::Duration run_time{};
  base::Duration suspended_time{};
  std::int32_t nodes_count = 0;
  std::string nodes_or_reason;  // hostlist, or the reason in brackets
  friend bool operator==(const JobRow&, const JobRow&) = default;
};

// A strip's column is a piece of time: the job (index in the table) that ran in it, if one did, or
// that more than one did.
struct StripCell {
  std::optional<std::size_t> job;
  bool several = false;
  friend bool operator==(const StripCell&, const StripCell&) = default;
};

struct NodeStrip {
  std::string node;
  std::vector<StripCell> cells;  // oldest first
};

struct Picture {
  std::string title;
  std::vector<JobRow> jobs;
  std::vector<NodeStrip> strips;
  base::Duration cell_length{};
  std::vector<std::string> footer;
};

struct Terminal {
  std::size_t columns = 80;
  bool colour = false;
  bool unicode = false;
};

// No line is longer than the terminal is wide (escape sequences not counted).
std::vector<std::string> render(const Picture& picture, const Terminal& terminal);

// Returns how many cells a strip may have in that terminal.
std::size_t strip_columns(const Terminal& terminal, std::size_t node_name_length);

}  // namespace devcluster
