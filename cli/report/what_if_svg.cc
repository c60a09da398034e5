#include "cli/report/what_if_svg.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "cli/slurm/quantities.h"

namespace cli {
namespace {

constexpr double kLabelWidth = 90;
constexpr double kTop = 30;
constexpr double kRowHeight = 18;
constexpr double kRowGap = 4;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

// Neighbouring jobs get colours that are far apart: steps of the golden angle.
std::string colour(std::size_t job) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "hsl(%d,65%%,%d%%)", static_cast<int>(job * 137 % 360),
                45 + static_cast<int>(job % 3) * 10);
  return text.data();
}

// One job's mark in one column of one node; shares are in thousandths of the row.
struct Mark {
  std::size_t job;
  std::int64_t share;
  friend bool operator==(const Mark&, const Mark&) = default;
};
using Cell = std::vector<Mark>;

class Picture {
 public:
  Picture(const simulate::Scenario& scenario, const simulate::WhatIf& result)
      : scenario_{scenario},
        result_{result},
        columns_{static_cast<std::int64_t>(kSvgColumns)},
        rows_{std::min(kSvgNodesMax, scenario.nodes.size())} {
    cells_.resize(rows_, std::vector<Cell>(kSvgColumns));
    for (std::size_t job = 0; job < result.jobs.size(); ++job) {
      for (const simulate::Placement& placement : result.jobs[job].placements) {
        add(job, placement);
      }
    }
  }

  std::string text() const {
    const double height = kTop + static_cast<double>(rows_) * (kRowHeight + kRowGap) + 20;
    const double width = kLabelWidth + static_cast<double>(columns_) + 10;
    std::array<char, 256> line{};
    std::snprintf(line.data(), line.size(),
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
                  "font-family=\"sans-serif\" font-size=\"11\">\n",
                  width, height);
    std::string svg = line.data();
    svg += "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
    svg += axis();
    for (std::size_t row = 0; row < rows_; ++row) svg += row_svg(row);
    if (rows_ < scenario_.nodes.size()) {
      svg += label(kLabelWidth, height - 6, "start",
                   "the first " + std::to_string(rows_) + " of " +
                       std::to_string(scenario_.nodes.size()) + " nodes");
    }
    return svg + "</svg>\n";
  }

 private:
  base::Instant edge(std::int64_t column) const {
    const std::int64_t span = std::max<std::int64_t>(1, result_.end.time_since_epoch().count());
    return base::Instant{
        base::Duration{span / columns_ * column + span % columns_ * column / columns_}};
  }
  std::int64_t column_of(base::Instant t) const {
    const std::int64_t span = std::max<std::int64_t>(1, result_.end.time_since_epoch().count());
    const double place = static_cast<double>(t.time_since_epoch().count()) /
                         static_cast<double>(span) * static_cast<double>(columns_);
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(place), 0, columns_ - 1);
  }

  void add(std::size_t job, const simulate::Placement& placement) {
    const base::Instant to = std::min(placement.to, result_.end);
    const std::int64_t last = column_of(to);
    for (std::int64_t column = column_of(placement.from); column <= last; ++column) {
      const base::Duration width = edge(column + 1) - edge(column);
      if (width <= base::Duration{0}) continue;
      const base::Duration runs =
          simulate::run_time(placement, edge(column), std::min(edge(column + 1), to));
      if (runs == base::Duration{0}) continue;
      for (const simulate::Placement::Part& part : placement.parts) {
        if (part.node >= rows_) continue;
        const std::int64_t cores = std::max(1, scenario_.nodes[part.node].cores());
        const std::int64_t share = runs * 1'000 / width * part.cores.count() / cores;
        cells_[part.node][static_cast<std::size_t>(column)].push_back({job, share});
      }
    }
  }

  std::string row_svg(std::size_t row) const {
    const double y = kTop + static_cast<double>(row) * (kRowHeight + kRowGap);
    std::array<char, 256> line{};
    std::string svg = label(kLabelWidth - 6, y + kRowHeight - 5, "end", scenario_.nodes[row].name);
    std::snprintf(line.data(), line.size(),
                  "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" fill=\"#eee\"/>\n",
                  kLabelWidth, y, static_cast<double>(columns_), kRowHeight);
    svg += line.data();
    const std::vector<Cell>& cells = cells_[row];
    for (std::size_t begin = 0; begin < cells.size();) {
      std::size_t end = begin + 1;
      while (end < cells.size() && cells[end] == cells[begin]) ++end;
      svg += cell_svg(cells[begin], kLabelWidth + static_cast<double>(begin),
                      static_cast<double>(end - begin), y);
      begin = end;
    }
    return svg;
  }

  std::string cell_svg(const Cell& cell, double x, double width, double y) const {
    std::string svg;
    // Where jobs overlap (partitions of one tier, 6.11) the marks are squeezed into the row.
    std::int64_t sum = 0;
    for (const Mark& mark : cell) sum += mark.share;
    const double scale = kRowHeight / static_cast<double>(std::max<std::int64_t>(sum, 1'000));
    double top = y + kRowHeight;
    for (const Mark& mark : cell) {
      const double height = static_cast<double>(mark.share) * scale;
      top -= height;
      std::array<char, 256> line{};
      std::snprintf(line.data(), line.size(),
                    "<rect x=\"%.0f\" y=\"%.2f\" width=\"%.0f\" height=\"%.2f\" fill=\"%s\">", x,
                    top, width, height, colour(mark.job).c_str());
      svg += line.data();
      svg += "<title>" + escaped(scenario_.jobs[mark.job].label) + "</title></rect>\n";
    }
    return svg;
  }

  static std::string label(double x, double y, const char* anchor, const std::string& text) {
    std::array<char, 128> line{};
    std::snprintf(line.data(), line.size(), "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"%s\">", x, y,
                  anchor);
    return line.data() + escaped(text) + "</text>\n";
  }

  std::string axis() const {
    constexpr std::int64_t kTicks = 8;
    std::string svg;
    for (std::int64_t tick = 0; tick <= kTicks; ++tick) {
      const std::int64_t column = columns_ * tick / kTicks;
      svg += label(kLabelWidth + static_cast<double>(column), kTop - 10,
                   tick == 0        ? "start"
                   : tick == kTicks ? "end"
                                    : "middle",
                   format_run_time(edge(column) - base::Instant{}));
    }
    return svg;
  }

  const simulate::Scenario& scenario_;
  const simulate::WhatIf& result_;
  const std::int64_t columns_;
  const std::size_t rows_;
  std::vector<std::vector<Cell>> cells_;  // by node and column
};

}  // namespace

std::string what_if_svg(const simulate::Scenario& scenario, const simulate::WhatIf& result) {
  return Picture{scenario, result}.text();
}

}  // namespace cli
