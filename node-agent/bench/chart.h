// The benchmark's result as a drawing: slice length against lost work and overlap, kubegang's way
// and Slurm's.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace agent::bench {

// `result`: {"cases": […]}; draws the cases loss/<n>ms and slurm_way/<n>ms that are in it.
std::string draw_chart(const nlohmann::ordered_json& result);

}  // namespace agent::bench
