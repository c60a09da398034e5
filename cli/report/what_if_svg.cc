#include "cli/report/what_if_svg.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <utility>

#include "cli/report/palette.h"
#include "slurm/quantities.h"

namespace cli {
namespace {

// The picture's measures, in pixels: names of nodes on the left, a line of times at the top, one
// row for each node below it.
constexpr double kLabelWidth = 90;
constexpr double kTop = 30;
constexpr double kRowHeight = 18;
constexpr double kRowGap = 4;
// A name is written into a mark that has room for it, in this size.
constexpr double kNameSize = 9;
constexpr double kNameCharWidth = 0.62 * kNameSize;  // of a wide sans-serif letter
constexpr std::int64_t kTimeMarksMax = 10;
constexpr std::size_t kLegendJobsMax = 28;
constexpr double kLegendWidth = 150;  // of an entry
constexpr double kLegendHeight = 16;

// Escapes the four characters that XML gives a meaning in text or attributes. Labels of jobs come
// from a file and may have any of them.
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

// Stands for all jobs that are too small to be seen.
constexpr std::size_t kOthers = std::numeric_limits<std::size_t>::max();

// Chooses colors: jobs take the palette's in turn; those of every other round are striped besides.
const PaletteColor& color_of(std::size_t job) {
  static constexpr PaletteColor kOthersColor{"#999999", "black"};
  return job == kOthers ? kOthersColor : kPalette[job % kPalette.size()];
}
bool is_striped(std::size_t job) {
  return job != kOthers && job / kPalette.size() % 2 == 1;
}
// Returns the value of `fill`. A plain color, or the pattern that stripes() defines under this id.
std::string paint(std::size_t job) {
  if (!is_striped(job)) return std::string{color_of(job).fill};
  return "url(#s" + std::to_string(job % kPalette.size()) + ")";
}
// Returns the stripes of each color, for paint(). They are only written if a job needs them.
std::string stripes() {
  std::string svg = "<defs>\n";
  for (std::size_t i = 0; i < kPalette.size(); ++i) {
    svg += "<pattern id=\"s" + std::to_string(i) +
           "\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
           "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"" +
           std::string{kPalette[i].fill} +
           "\"/><rect width=\"2\" height=\"6\" fill=\"white\" opacity=\"0.6\"/></pattern>\n";
  }
  return svg + "</defs>\n";
}

// Returns the smallest round time that fits at most `count_max` times into `span`. Beyond the
// table, that is after about 13 years, the marks are no longer at round times.
// An axis of an hour and at most ten marks has one each 10 minutes: 5 minutes would be twelve.
base::Duration round_step(base::Duration span, std::int64_t count_max) {
  using std::chrono::hours, std::chrono::minutes, std::chrono::seconds;
  constexpr std::array<base::Duration, 26> kRound = {
      seconds{1},     seconds{2},     seconds{5},     seconds{10},     seconds{15},
      seconds{30},    minutes{1},     minutes{2},     minutes{5},      minutes{10},
      minutes{15},    minutes{30},    hours{1},       hours{2},        hours{3},
      hours{6},       hours{12},      hours{24},      hours{2 * 24},   hours{5 * 24},
      hours{10 * 24}, hours{20 * 24}, hours{50 * 24}, hours{100 * 24}, hours{200 * 24},
      hours{500 * 24}};
  for (const base::Duration step : kRound) {
    if (span / step <= count_max) return step;
  }
  return span / count_max;
}
// A mark of this share, in thousandths of a row, is one pixel high.
constexpr std::int64_t kPixelShare = 1'000 / static_cast<std::int64_t>(kRowHeight);

// One job's mark in one column of one node; shares are in thousandths of the row. Integers, so that
// sums do not depend on the order in which they are made.
struct Mark {
  std::size_t job;
  std::int64_t share;
};
using Cell = std::vector<Mark>;  // ascending jobs

// Columns [begin, end) of a node with the same jobs, and their mean.
struct Stretch {
  std::size_t begin = 0;
  std::size_t end = 0;
  Cell mean;
};

// The shares may differ: a stretch shows their mean.
bool same_jobs(const Cell& a, const Cell& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Mark& x, const Mark& y) { return x.job == y.job; });
}

// Returns the cell as the picture shows it: jobs with less than `share_min` become one "others".
// Their shares add up, so the row keeps its height. With a share_min of 0 the cell is returned as
// it is.
Cell seen(const Cell& cell, std::int64_t share_min) {
  Cell seen;
  std::int64_t others = 0;
  for (const Mark& mark : cell) {
    if (mark.share >= share_min) {
      seen.push_back(mark);
    } else {
      others += mark.share;
    }
  }
  if (others > 0) seen.push_back({kOthers, others});
  return seen;
}

// Joins neighboring columns that show the same jobs. Shares are summed while a stretch grows and
// divided by its length at the end. The jobs are compared after seen(), because two columns that
// differ only in jobs too small to show look the same.
std::vector<Stretch> stretches_of(const std::vector<Cell>& cells, std::int64_t share_min) {
  std::vector<Stretch> stretches;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    Cell cell = seen(cells[i], share_min);
    if (stretches.empty() || !same_jobs(stretches.back().mean, cell)) {
      stretches.push_back({i, i + 1, std::move(cell)});
      continue;
    }
    stretches.back().end = i + 1;
    for (std::size_t k = 0; k < cell.size(); ++k) {
      stretches.back().mean[k].share += cell[k].share;  // the sum for now
    }
  }
  for (Stretch& stretch : stretches) {
    for (Mark& mark : stretch.mean) {
      mark.share /= static_cast<std::int64_t>(stretch.end - stretch.begin);
    }
  }
  return stretches;
}

// Returns two neighboring columns as one: a merge of two ascending lists. A job keeps at least one
// thousandth, so that halving again and again does not lose it; seen() decides what is too small.
Cell mean_of(const Cell& a, const Cell& b) {
  Cell mean;
  for (std::size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    const bool from_a = j == b.size() || (i < a.size() && a[i].job <= b[j].job);
    const bool from_b = i == a.size() || (j < b.size() && b[j].job <= a[i].job);
    Mark mark{from_a ? a[i].job : b[j].job, 0};
    if (from_a) mark.share += a[i++].share;
    if (from_b) mark.share += b[j++].share;
    mark.share = std::max<std::int64_t>(1, mark.share / 2);
    mean.push_back(mark);
  }
  return mean;
}

// The picture of nodes and time. Its size depends on what can be seen, not on the number of jobs: a
// week of turns of 30 s, or a million jobs of a trace, must not become a file of gigabytes.
//
// 1. add(): each placement becomes shares of the columns (a thousandth of the width of time each)
//    of its nodes.
// 2. join(): neighboring columns with the same jobs become one stretch with the mean of their
//    shares, so gangs that take turns are two half-height bars and not thousands of slivers.
// 3. As long as there are more marks than a file may have, small jobs become "other jobs" and
//    columns are paired, in turn.
// 4. text() writes the rest, a legend of the jobs that have a mark, and a line for each round time.
// An example of 2: two gangs that have all cores of a node in turns of 30 s, in a picture in which
// a column is 10 minutes. Each column holds both with about 500 thousandths, so all of them show
// the same jobs, and the hours of turns are one stretch of two marks.
//
// Step 3 in numbers: first jobs below one pixel of a row are merged. Then columns are paired as
// long as their number is even: 960, 480, …, 15. At last the least share that is still shown
// doubles, until all marks are merged ones. So time gets coarser before a job that could be seen is
// dropped.
class Picture {
 public:
  Picture(const simulate::Scenario& scenario, const simulate::WhatIf& result)
      : scenario_{scenario},
        result_{result},
        columns_{static_cast<std::int64_t>(kSvgColumns)},
        rows_{std::min(kSvgNodesMax, scenario.nodes.size())} {
    // Only while the picture is made: text() needs nothing but the stretches.
    std::vector<std::vector<Cell>> cells(rows_, std::vector<Cell>(kSvgColumns));
    for (std::size_t job = 0; job < result.jobs.size(); ++job) {
      for (const simulate::Placement& placement : result.jobs[job].placements) {
        add(job, placement, cells);
      }
    }
    // This ends: 15 columns of kSvgNodesMax nodes in which all are others have 7,680 marks.
    for (std::int64_t share_min = 0; !join(cells, share_min);) {
      if (share_min == 0) {
        share_min = kPixelShare;
      } else if (cells.front().size() % 2 == 0) {
        coarsen(cells);
      } else {
        share_min *= 2;
      }
    }
  }

  // Draws from back to front: the ground, the rows, the times, the legend.
  std::string text() const {
    const double bottom = kTop + static_cast<double>(rows_) * (kRowHeight + kRowGap);
    const std::vector<std::size_t> shown = jobs_shown();
    const double height = bottom + 20 + legend_height(shown.size());
    const double width = kLabelWidth + static_cast<double>(columns_) + 30;
    std::array<char, 256> line{};
    std::snprintf(line.data(), line.size(),
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
                  "font-family=\"sans-serif\" font-size=\"11\">\n",
                  width, height);
    std::string svg = line.data();
    svg += "<style>.b,.w{font-size:9px;text-anchor:middle;fill:black}.w{fill:white}</style>\n";
    if (std::any_of(shown.begin(), shown.end(), is_striped)) svg += stripes();
    svg += "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
    for (std::size_t row = 0; row < rows_; ++row) svg += row_svg(row);
    svg += axis(bottom);
    if (rows_ < scenario_.nodes.size()) {
      svg += label(kLabelWidth, bottom + 12, "start",
                   "the first " + std::to_string(rows_) + " of " +
                       std::to_string(scenario_.nodes.size()) + " nodes");
    }
    return svg + legend(shown, bottom + 20) + "</svg>\n";
  }

 private:
  // Returns the instant at which a column begins, and the column in which an instant lies. Rounding
  // may put an instant on the edge of two columns into either; the shares of both are computed from
  // the edges. The span is divided before it is multiplied, and the remainder apart, so that no
  // span overflows and the last edge is the end exactly.
  base::Instant edge(std::int64_t column) const {
    const std::int64_t span = std::max<std::int64_t>(1, result_.end.time_since_epoch().count());
    return base::Instant{
        base::Duration{span / columns_ * column + span % columns_ * column / columns_}};
  }
  // The end of the simulation lies behind the last column and counts as in it.
  std::int64_t column_of(base::Instant t) const {
    const std::int64_t span = std::max<std::int64_t>(1, result_.end.time_since_epoch().count());
    const double place = static_cast<double>(t.time_since_epoch().count()) /
                         static_cast<double>(span) * static_cast<double>(columns_);
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(place), 0, columns_ - 1);
  }

  // Adds the part that a placement has of each column: the time that the job runs in it, divided by
  // the column's width, times its part of the node's cores. The time is worked out once for all
  // nodes, since all pods of a gang run at the same time.
  void add(std::size_t job, const simulate::Placement& placement,
           std::vector<std::vector<Cell>>& cells) const {
    const base::Instant to = std::min(placement.to, result_.end);
    // Only the columns that the placement touches: a job of a minute in a week costs one.
    const std::int64_t first = column_of(placement.from);
    std::vector<base::Duration> runs(static_cast<std::size_t>(column_of(to) - first + 1));
    for (const simulate::RunSpan& span : placement.spans) {
      if (span.from >= to) break;
      const std::int64_t last = column_of(std::min(span.to, to));
      for (std::int64_t column = column_of(span.from); column <= last; ++column) {
        runs[static_cast<std::size_t>(column - first)] +=
            simulate::run_time(span, edge(column), std::min(edge(column + 1), to));
      }
    }
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const std::int64_t column = first + static_cast<std::int64_t>(i);
      const base::Duration width = edge(column + 1) - edge(column);
      if (width <= base::Duration{0} || runs[i] <= base::Duration{0}) continue;
      for (const simulate::Placement::Part& part : placement.parts) {
        if (part.node >= rows_) continue;
        const std::int64_t cores = std::max(1, scenario_.nodes[part.node].cores());
        const std::int64_t share = runs[i] * 1'000 / width * part.cores.count() / cores;
        Cell& cell = cells[part.node][static_cast<std::size_t>(column)];
        if (!cell.empty() && cell.back().job == job) {  // requeued and started again
          cell.back().share += share;
        } else {
          cell.push_back({job, share});
        }
      }
    }
  }

  // Halves the number of columns. REQUIRES: an even number of columns.
  static void coarsen(std::vector<std::vector<Cell>>& cells) {
    for (std::vector<Cell>& row : cells) {
      std::vector<Cell> coarser;
      for (std::size_t i = 0; i < row.size(); i += 2) {
        coarser.push_back(mean_of(row[i], row[i + 1]));
      }
      row = std::move(coarser);
    }
  }

  // Makes the stretches of all rows, with jobs below share_min as others. Returns false if that
  // that gives too many marks. Each call begins with the cells, since a stretch cannot be taken
  // apart again.
  bool join(const std::vector<std::vector<Cell>>& cells, std::int64_t share_min) {
    joined_.clear();
    column_width_ = static_cast<double>(columns_) /
                    static_cast<double>(cells.empty() ? kSvgColumns : cells.front().size());
    std::size_t marks = 0;
    for (const std::vector<Cell>& row : cells) {
      joined_.push_back(stretches_of(row, share_min));
      for (const Stretch& stretch : joined_.back()) marks += stretch.mean.size();
    }
    return marks <= kSvgMarksMax;
  }

  // Draws a node: its name, a grey ground for time in which it is idle, and its marks.
  // The ground is one rectangle below all marks, so idle time needs no marks of its own.
  std::string row_svg(std::size_t row) const {
    const double y = kTop + static_cast<double>(row) * (kRowHeight + kRowGap);
    std::array<char, 256> line{};
    std::string svg = label(kLabelWidth - 6, y + kRowHeight - 5, "end", scenario_.nodes[row].name);
    std::snprintf(line.data(), line.size(),
                  "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" fill=\"#eee\"/>\n",
                  kLabelWidth, y, static_cast<double>(columns_), kRowHeight);
    svg += line.data();
    for (const Stretch& stretch : joined_[row]) {
      svg +=
          cell_svg(stretch.mean, kLabelWidth + static_cast<double>(stretch.begin) * column_width_,
                   static_cast<double>(stretch.end - stretch.begin) * column_width_, y);
    }
    return svg;
  }

  std::string name_of(std::size_t job) const {
    return job == kOthers ? "other jobs" : scenario_.jobs[job].label;
  }

  // Draws the marks of a stretch, stacked from the bottom. A title is what a browser shows under
  // the mouse. Marks of one row never leave it: the sum of their shares is scaled to the row's
  // height if it is above 1,000.
  std::string cell_svg(const Cell& cell, double x, double width, double y) const {
    std::string svg;
    // Marks of jobs that overlap (partitions of one tier, 6.11) are squeezed into the row.
    std::int64_t sum = 0;
    for (const Mark& mark : cell) sum += mark.share;
    const double scale = kRowHeight / static_cast<double>(std::max<std::int64_t>(sum, 1'000));
    double top = y + kRowHeight;
    for (const Mark& mark : cell) {
      const double height = static_cast<double>(mark.share) * scale;
      top -= height;
      std::array<char, 256> line{};
      std::snprintf(line.data(), line.size(),
                    "<rect x=\"%.0f\" y=\"%.1f\" width=\"%.0f\" height=\"%.1f\" fill=\"%s\">", x,
                    top, width, height, paint(mark.job).c_str());
      svg += line.data();
      svg += "<title>" + escaped(name_of(mark.job)) + "</title></rect>\n";
      svg += name_svg(mark.job, x + width / 2, top + height / 2, width, height);
    }
    return svg;
  }

  // Returns the job's name in the middle of its mark; empty if there is no room. The width of the
  // letters is a guess from the font's size, because a program without a font cannot measure them.
  std::string name_svg(std::size_t job, double x, double y, double width, double height) const {
    if (job == kOthers || height < kNameSize) return "";
    const std::string& name = scenario_.jobs[job].label;
    if (static_cast<double>(name.size()) * kNameCharWidth + 2 > width) return "";
    std::array<char, 128> line{};
    std::snprintf(line.data(), line.size(), "<text x=\"%.0f\" y=\"%.1f\" class=\"%s\">", x,
                  y + kNameSize * 0.36, color_of(job).text == "white" ? "w" : "b");
    return line.data() + escaped(name) + "</text>\n";
  }

  // Returns the jobs that have a mark, ascending; the others, if any, are last.
  std::vector<std::size_t> jobs_shown() const {
    std::vector<bool> is_shown(scenario_.jobs.size());
    bool others = false;
    for (const std::vector<Stretch>& row : joined_) {
      for (const Stretch& stretch : row) {
        for (const Mark& mark : stretch.mean) {
          if (mark.job == kOthers) {
            others = true;
          } else {
            is_shown[mark.job] = true;
          }
        }
      }
    }
    std::vector<std::size_t> shown;
    for (std::size_t job = 0; job < is_shown.size(); ++job) {
      if (is_shown[job]) shown.push_back(job);
    }
    if (others) shown.push_back(kOthers);
    return shown;
  }

  // The legend has as many columns as the width of time allows.
  std::size_t legend_columns() const {
    return static_cast<std::size_t>(static_cast<double>(columns_) / kLegendWidth);
  }
  double legend_height(std::size_t jobs_count) const {
    const std::size_t entries = std::min(jobs_count, kLegendJobsMax) + 1;  // one for the rest
    const std::size_t lines = (entries + legend_columns() - 1) / legend_columns();
    return static_cast<double>(lines + 1) * kLegendHeight + 4;
  }

  // Draws a square and a name for each of the first jobs, and what a mark's height says.
  // At most kLegendJobsMax entries: the mouse shows the other names (cell_svg).
  std::string legend(const std::vector<std::size_t>& shown, double top) const {
    std::string svg = label(kLabelWidth, top + 11, "start",
                            "Height: part of the node's cores × part of the time");
    for (std::size_t i = 0; i < shown.size() && i <= kLegendJobsMax; ++i) {
      const double x = kLabelWidth + static_cast<double>(i % legend_columns()) * kLegendWidth;
      const double y = top + static_cast<double>(i / legend_columns() + 1) * kLegendHeight;
      if (i == kLegendJobsMax) {
        svg += label(x, y + 11, "start",
                     "and " + std::to_string(shown.size() - kLegendJobsMax) + " more");
        break;
      }
      std::array<char, 160> line{};
      std::snprintf(line.data(), line.size(),
                    "<rect x=\"%.0f\" y=\"%.0f\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", x,
                    y + 1, paint(shown[i]).c_str());
      svg += line.data() + label(x + 16, y + 11, "start", short_name(name_of(shown[i])));
    }
    return svg;
  }
  // Cuts a name for the legend to 20 bytes, between two characters of UTF-8.
  static std::string short_name(const std::string& name) {
    std::size_t end = 20;
    if (name.size() <= end) return name;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0U) == 0x80U) --end;  // UTF-8
    return name.substr(0, end) + "…";
  }

  // Draws a line of text; `anchor` says which part of it stands at x: start, middle or end.
  static std::string label(double x, double y, const char* anchor, const std::string& text) {
    std::array<char, 128> line{};
    std::snprintf(line.data(), line.size(), "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"%s\">", x, y,
                  anchor);
    return line.data() + escaped(text) + "</text>\n";
  }

  // Round times, with a line through all rows for each. The first is 0; the last is the greatest
  // multiple of the step that fits.
  std::string axis(double bottom) const {
    const base::Duration span = std::max(base::Duration{1}, result_.end - base::Instant{});
    const base::Duration step = round_step(span, kTimeMarksMax);
    std::string svg;
    for (base::Duration at{0}; at <= span; at += step) {
      const double x = kLabelWidth + static_cast<double>(at.count()) /
                                         static_cast<double>(span.count()) *
                                         static_cast<double>(columns_);
      std::array<char, 128> line{};
      std::snprintf(line.data(), line.size(),
                    "<path d=\"M%.1f %.0fV%.0f\" stroke=\"black\" opacity=\"0.2\"/>\n", x, kTop - 6,
                    bottom);
      svg += line.data() + label(x, kTop - 10, "middle", slurm::format_run_time(at));
    }
    return svg;
  }

  const simulate::Scenario& scenario_;
  const simulate::WhatIf& result_;
  const std::int64_t columns_;
  const std::size_t rows_;
  std::vector<std::vector<Stretch>> joined_;  // by node
  double column_width_ = 1;
};

}  // namespace

std::string what_if_svg(const simulate::Scenario& scenario, const simulate::WhatIf& result) {
  return Picture{scenario, result}.text();
}

}  // namespace cli
