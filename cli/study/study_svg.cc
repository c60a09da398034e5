#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "cli/report/palette.h"
#include "cli/study/study.h"

namespace cli {
namespace {

// Pixels.
constexpr double kPanelWidth = 300, kPanelHeight = 180;
constexpr double kMarginLeft = 60, kMarginTop = 40, kGapX = 90, kGapY = 60;

// One of the four figures of a study, drawn over the load.
struct Panel {
  const char* title;
  double Figures::*value;
  bool is_time;  // in hours, else a ratio
};
constexpr std::array<Panel, 4> kPanels = {
    {{"mean response, hours", &Figures::response_mean, true},
     {"mean bounded slowdown", &Figures::slowdown_mean, false},
     {"95 % wait of short jobs, hours", &Figures::wait_p95_short, true},
     {"95 % wait of wide jobs, hours", &Figures::wait_p95_wide, true}}};
// A dash for each policy, so that lines differ by more than their color.
constexpr std::array<const char*, kPolicies.size()> kDashes = {"", "6 3", "2 2", "8 2 2 2"};

// Draws one element of the picture; none is longer than the line, since texts are added outside.
template <typename... Values>
std::string format(const char* pattern, Values... values) {
  std::array<char, 256> line{};
  std::snprintf(line.data(), line.size(), pattern, values...);
  return line.data();
}

// Draws a line of text; `anchor` says which part of it stands at x.
std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return format("<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"%s\">", x, y, anchor) + text +
         "</text>\n";
}

// A panel with a logarithmic axis: whole powers of ten around its values. The axis is logarithmic
// because waits of policies differ by factors of ten and more; a linear one would show the worst
// policy alone.
class PanelPicture {
 public:
  PanelPicture(const Panel& panel, const std::vector<Studied>& all, double left, double top)
      : panel_{panel}, all_{all}, left_{left}, top_{top} {
    // The axis spans whole powers of ten around all policies and loads, and at least one: with all
    // values equal it would have no length.
    double least = 1e9, most = 1e-9;
    for (const Studied& studied : all) {
      least = std::min(least, value_of(studied));
      most = std::max(most, value_of(studied));
    }
    low_ = std::floor(std::log10(least));
    high_ = std::max(low_ + 1, std::ceil(std::log10(most)));
  }

  // Draws the title, a grid line for each power of ten, loads below, and a line for each policy.
  std::string svg() const {
    std::string svg = text_at(left_, top_ - 8, "start", panel_.title);
    for (double power = low_; power <= high_; ++power) {
      const double y = y_of(std::pow(10, power));
      svg += format("<path d=\"M%.0f %.1fh%.0f\" stroke=\"#ddd\"/>\n", left_, y, kPanelWidth);
      svg += text_at(left_ - 6, y + 4, "end", format("%g", std::pow(10, power)));
    }
    for (const double load : kLoads) {
      svg += text_at(x_of(load), top_ + kPanelHeight + 16, "middle", format("%g", load));
    }
    for (std::size_t i = 0; i < kPolicies.size(); ++i) svg += line_of(i);
    return svg;
  }

 private:
  // Values below a hundredth are not shown: an axis has no zero.
  double value_of(const Studied& studied) const {
    const double value = studied.figures.*panel_.value;
    return std::max(0.01, panel_.is_time ? value / 3'600 : value);
  }
  // The load grows linearly from the left edge to the right one, and the value logarithmically from
  // the bottom to the top.
  double x_of(double load) const {
    return left_ + (load - kLoads.front()) / (kLoads.back() - kLoads.front()) * kPanelWidth;
  }
  double y_of(double value) const {
    return top_ + kPanelHeight * (1 - (std::log10(value) - low_) / (high_ - low_));
  }
  // Draws one line through all loads, in the policy's color and dashes.
  std::string line_of(std::size_t policy) const {
    std::string points;
    for (const Studied& studied : all_) {
      if (studied.policy != kPolicies[policy].name) continue;
      points += format("%.1f,%.1f ", x_of(studied.load), y_of(value_of(studied)));
    }
    return "<polyline points=\"" + points + "\" fill=\"none\" stroke-width=\"2\" stroke=\"" +
           std::string{kPalette[policy].fill} + "\" stroke-dasharray=\"" + kDashes[policy] +
           "\"/>\n";
  }

  const Panel& panel_;
  const std::vector<Studied>& all_;
  const double left_, top_;
  double low_ = 0, high_ = 1;  // powers of ten at the ends of the axis
};

}  // namespace

// Two panels beside each other and two below, and the policies at the bottom with the dashes of
// their lines.
// Written without a library of plots, which would be a dependency for two pictures; text and sizes
// are the same on every machine, so a picture changes in the repository only if its figures do.
std::string study_svg(const WorkloadModel& model, const std::vector<Studied>& all) {
  constexpr double kWidth = kMarginLeft + 2 * kPanelWidth + kGapX + 20;
  constexpr double kHeight = kMarginTop + 2 * kPanelHeight + kGapY + 60;
  std::string svg = format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n",
      kWidth, kHeight);
  svg += "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<title>" +
         std::string{model.name} + "</title>\n";
  for (std::size_t i = 0; i < kPanels.size(); ++i) {
    const double left = kMarginLeft + static_cast<double>(i % 2) * (kPanelWidth + kGapX);
    const double top = kMarginTop + static_cast<double>(i / 2) * (kPanelHeight + kGapY);
    svg += PanelPicture{kPanels[i], all, left, top}.svg();
  }
  for (std::size_t i = 0; i < kPolicies.size(); ++i) {
    const double x = kMarginLeft + static_cast<double>(i) * 170;
    const double y = kHeight - 14;
    svg += format(
        "<path d=\"M%.0f %.0fh30\" stroke-width=\"2\" stroke=\"%s\" stroke-dasharray=\"%s\"/>\n", x,
        y - 4, kPalette[i].fill.data(), kDashes[i]);
    svg += text_at(x + 36, y, "start", std::string{kPolicies[i].name});
  }
  return svg + "</svg>\n";
}

}  // namespace cli
