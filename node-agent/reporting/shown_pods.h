// How the listed pods stood when the agent last looked, as a text file beside the journal: what
// `kubegang-agent inspect` shows and cannot see by itself. Nothing is decided by it.
//
// One pod a line, by name:
//   <namespace>/<name> <state> <last switch us since the epoch, or ->
// where <state> is as people read it, for example "controlled/frozen".
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "node-agent/policy/node_policy.h"

namespace agent {

inline constexpr const char* kShownPodsName = "pods";
inline constexpr std::size_t kShownPodsBytesMax = 1U << 20U;

struct ShownPod {
  std::string state{};
  std::optional<base::Instant> last_switch{};
  friend bool operator==(const ShownPod&, const ShownPod&) = default;
};

std::string format_shown_pods(const std::vector<PodView>& pods);
// By namespace/name. Lines of another form are left out.
std::map<std::string, ShownPod> parse_shown_pods(std::string_view text);

}  // namespace agent
