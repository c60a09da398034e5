#include "node-agent/bench/chart.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

namespace agent::bench {
namespace {

// A case of the result, as far as the drawing shows it.
struct Point {
  double slice_ms = 0;
  double lost_percent = 0;
  double overlap_seconds = 0;
  bool slurm = false;
};

// Pixels; two panels beside each other.
constexpr double kPanelWidth = 380;
constexpr double kPanelHeight = 220;
constexpr double kLeft = 60;
constexpr double kTop = 60;
constexpr double kSliceMinMs = 10;
constexpr double kSliceMaxMs = 10'000;

// Places in the picture need four digits.
std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

// A figure for readers has two: more than the measurement is good for.
std::string figure(double value, const std::string& unit) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", value);
  return text + unit;
}

// Draws a square for Slurm's way and a circle for kubegang's, so that the two differ without
// colors. The labels of squares stand beside them, because Slurm's way has two marks for one slice.
std::string shape_of(const Point& point, double x, double y, const std::string& label) {
  const std::string colour = point.slurm ? "#b5482a" : "#1f6f8b";
  const std::string mark = point.slurm ? "<rect x='" + number(x - 5) + "' y='" + number(y - 5) +
                                             "' width='10' height='10' fill='" + colour + "'/>"
                                       : "<circle cx='" + number(x) + "' cy='" + number(y) +
                                             "' r='5' fill='" + colour + "'/>";
  const std::string place =
      point.slurm
          ? "<text x='" + number(x + 9) + "' y='" + number(y - 3) + "' text-anchor='start' fill='"
          : "<text x='" + number(x) + "' y='" + number(y - 10) + "' text-anchor='middle' fill='";
  return mark + place + colour + "'>" + label + "</text>\n";
}

std::string text_at(double x, double y, const std::string& text, const std::string& anchor) {
  return "<text x='" + number(x) + "' y='" + number(y) + "' text-anchor='" + anchor + "'>" + text +
         "</text>\n";
}

// Draws one panel with its left upper corner at x0; slice lengths grow to the right, by factors.
std::string panel(const std::vector<Point>& points, double x0, const std::string& title,
                  double Point::*value, const std::string& unit) {
  double most = 0;
  for (const Point& point : points) most = std::max(most, point.*value);
  if (most <= 0) most = 1;
  const auto x_of = [&](double ms) {
    return x0 + kPanelWidth * std::log(ms / kSliceMinMs) / std::log(kSliceMaxMs / kSliceMinMs);
  };
  const double bottom = kTop + kPanelHeight;
  std::string svg = text_at(x0, kTop - 16, title, "start");
  svg += "<path d='M" + number(x0) + " " + number(kTop) + "V" + number(bottom) + "H" +
         number(x0 + kPanelWidth) + "' fill='none' stroke='#888'/>\n";
  // The axis is logarithmic: slices of 20 ms and of 5 s are in one panel.
  for (const double ms : {10.0, 100.0, 1000.0, 10'000.0}) {
    svg += text_at(x_of(ms), bottom + 18, ms < 1000 ? number(ms) + " ms" : number(ms / 1000) + " s",
                   "middle");
  }
  for (const Point& point : points) {
    // A little less than nothing is noise: it is drawn at zero, the label says it.
    const double height = kPanelHeight * 0.85 * std::max(0.0, point.*value) / most;
    svg += shape_of(point, x_of(point.slice_ms), bottom - height, figure(point.*value, unit));
  }
  return svg +
         text_at(x0 + kPanelWidth / 2, bottom + 38, "length of the slice, logarithmic", "middle");
}

// False for a case that is about something else, or that was skipped.
bool read_point(const nlohmann::ordered_json& one, Point& point) {
  const std::string name = one.value("name", "");
  point.slurm = name.starts_with("slurm_way/");
  if (!point.slurm && !name.starts_with("loss/")) return false;
  if (!one.contains("lost_percent")) return false;
  const std::size_t slash = name.find('/');
  const auto parsed =
      std::from_chars(name.data() + slash + 1, name.data() + name.size(), point.slice_ms);
  point.lost_percent = one.value("lost_percent", 0.0);
  point.overlap_seconds = one.value("overlap_us_total", 0.0) / 1e6;
  return parsed.ec == std::errc{} && point.slice_ms > 0;
}

}  // namespace

std::string draw_chart(const nlohmann::ordered_json& result) {
  std::vector<Point> points;
  for (const auto& one : result.at("cases")) {
    Point point;
    if (read_point(one, point)) points.push_back(point);
  }
  const double second = kLeft + kPanelWidth + 90;
  const double width = second + kPanelWidth + 40;
  std::string svg = "<svg xmlns='http://www.w3.org/2000/svg' width='" + number(width) +
                    "' height='400' font-family='sans-serif' font-size='13'>\n"
                    "<rect width='100%' height='100%' fill='white'/>\n";
  svg += panel(points, kLeft, "work lost by taking turns", &Point::lost_percent, " %");
  svg += panel(points, second, "time in which both gangs ran, in the whole measurement",
               &Point::overlap_seconds, " s");
  svg += "<circle cx='66' cy='352' r='5' fill='#1f6f8b'/>" +
         text_at(78, 356, "kubegang: freeze, read back, thaw", "start");
  svg += "<rect x='61' y='371' width='10' height='10' fill='#b5482a'/>" +
         text_at(78, 380,
                 "Slurm's way: SIGTSTP, 2 s, freeze, nothing read back (upper mark: programs that "
                 "ignore SIGTSTP)",
                 "start");
  return svg + "</svg>\n";
}

}  // namespace agent::bench
