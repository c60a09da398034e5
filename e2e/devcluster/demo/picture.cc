#include "e2e/devcluster/demo/picture.h"

#include <algorithm>
#include <array>

#include "slurm/quantities.h"

namespace devcluster {
namespace {

// A strip does not grow with a wide terminal beyond this.
constexpr std::size_t kStripColumnsMax = 120;
constexpr const char* kPlain = "\x1b[0m";
// ANSI sequences that every terminal knows; red is kept for columns with several jobs.
constexpr std::array<const char*, 4> kColours{"\x1b[36m", "\x1b[33m", "\x1b[35m", "\x1b[32m"};
constexpr std::array<const char*, 4> kBlocks{"█", "▒", "▚", "░"};
constexpr std::array<const char*, 4> kLetters{"#", "=", "%", "+"};

// REQUIRES: the text is ASCII, since it is cut by bytes. Only titles, tables and footers are.
std::string cut(std::string text, std::size_t columns) {
  if (text.size() > columns) text.resize(columns);
  return text;
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string right(const std::string& text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

// Jobs are told apart by sign and by color, so that a picture without colors (a log, a terminal
// that has none) can be read too. The fifth job looks like the first.
std::string mark(std::size_t job, const Terminal& terminal) {
  const std::string sign =
      terminal.unicode ? kBlocks[job % kBlocks.size()] : kLetters[job % kLetters.size()];
  return terminal.colour ? kColours[job % kColours.size()] + sign + kPlain : sign;
}

// Writes the columns of squeue, numbers to the right. A field that is too long shifts the rest of
// its line.
std::string job_line(const std::vector<std::string>& fields) {
  return padded(fields[0], 10) + " " + padded(fields[1], 9) + " " + padded(fields[2], 2) + " " +
         right(fields[3], 10) + " " + right(fields[4], 10) + " " + right(fields[5], 5) + " " +
         fields[6];
}

std::string strip_line(const NodeStrip& strip, std::size_t name_width, const Terminal& terminal) {
  std::string line = padded(strip.node, name_width) + " ";
  for (const StripCell& cell : strip.cells) {
    // Two jobs in one column are the exception that the viewer should see, so it has a sign and a
    // color of its own.
    if (cell.several) {
      line += terminal.colour ? std::string{"\x1b[31m!"} + kPlain : "!";
    } else {
      line += cell.job ? mark(*cell.job, terminal) : terminal.unicode ? "·" : ".";
    }
  }
  return line;
}

// Explains the jobs' signs. The rare sign for several jobs only appears if the picture has it.
std::string legend(const Picture& picture, std::size_t name_width, const Terminal& terminal) {
  std::string line = std::string(name_width + 1, ' ');
  for (std::size_t i = 0; i < picture.jobs.size(); ++i) {
    line += mark(i, terminal) + " " + picture.jobs[i].name + "  ";
  }
  const bool several =
      std::any_of(picture.strips.begin(), picture.strips.end(), [](const NodeStrip& strip) {
        return std::any_of(strip.cells.begin(), strip.cells.end(),
                           [](const StripCell& cell) { return cell.several; });
      });
  if (several) line += "! both, while one starts  ";
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(picture.cell_length);
  return line + "column = " + std::to_string(millis.count()) + " ms";
}

}  // namespace

// At least one column, however narrow the terminal is: a picture with an empty strip would be taken
// for a node without jobs.
std::size_t strip_columns(const Terminal& terminal, std::size_t node_name_length) {
  const std::size_t used = node_name_length + 2;
  return std::min(kStripColumnsMax, terminal.columns > used ? terminal.columns - used : 1);
}

// 1. the title
// 2. the table of jobs
// 3. one strip for each node, names padded to the same width
// 4. the legend, if there is anything to explain
// 5. the footer
std::vector<std::string> render(const Picture& picture, const Terminal& terminal) {
  std::vector<std::string> lines;
  lines.push_back(cut(picture.title, terminal.columns));
  lines.emplace_back();
  lines.push_back(
      cut(job_line({"JOB", "PARTITION", "ST", "TIME", "SUSPENDED", "NODES", "NODELIST(REASON)"}),
          terminal.columns));
  for (const JobRow& job : picture.jobs) {
    lines.push_back(
        cut(job_line({job.name, job.partition, job.state, slurm::format_run_time(job.run_time),
                      slurm::format_run_time(job.suspended_time), std::to_string(job.nodes_count),
                      job.nodes_or_reason}),
            terminal.columns));
  }
  lines.emplace_back();
  std::size_t name_width = 0;
  for (const NodeStrip& strip : picture.strips) {
    name_width = std::max(name_width, strip.node.size());
  }
  for (const NodeStrip& strip : picture.strips) {
    lines.push_back(strip_line(strip, name_width, terminal));
  }
  if (!picture.jobs.empty() && !picture.strips.empty()) {
    lines.push_back(legend(picture, name_width, terminal));
  }
  if (!picture.footer.empty()) lines.emplace_back();
  for (const std::string& line : picture.footer) lines.push_back(cut(line, terminal.columns));
  return lines;
}

}  // namespace devcluster
