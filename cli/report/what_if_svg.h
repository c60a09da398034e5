// A what-if simulation as a picture: one row per node, time to the right with marks at round times.
// A job's marks have its color and, where there is room, its name; colors come again after 14 jobs.
// A legend below names the first jobs.
#pragma once

#include <string>

#include "scheduler/simulate/what_if.h"

namespace cli {

// Height of a mark: the share of the node's cores that the job's gang has, times the share of the
// time that it runs there; jobs that take turns faster than a picture can show are stacked.
// Time is cut into at most kSvgColumns columns; neighbours with the same jobs are one stretch with
// their mean heights. Size: at most kSvgMarksMax marks (about 1 MB): where more happens than a
// picture can show, marks lower than a pixel are one grey mark, `other jobs`, and columns become
// wider. At most kSvgNodesMax nodes are drawn, and it says so.
inline constexpr std::size_t kSvgColumns = 960;
inline constexpr std::size_t kSvgMarksMax = 10'000;
inline constexpr std::size_t kSvgNodesMax = 512;
std::string what_if_svg(const simulate::Scenario& scenario, const simulate::WhatIf& result);

}  // namespace cli
