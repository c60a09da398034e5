#include "node-agent/reporting/shown_pods.h"

#include <charconv>

namespace agent {

// In the form of the header. No part of a line has a blank in it, so the reader needs no quoting.
// For example "team-a/train-0 controlled/frozen 1795000000000000".
std::string format_shown_pods(const std::vector<PodView>& pods) {
  std::string text;
  for (const PodView& pod : pods) {
    text += pod.name + " " + std::string{to_string(pod.standing)};
    if (pod.state) text += "/" + std::string{to_string(*pod.state)};
    if (pod.no_cgroup) text += "/no-cgroup";
    text += " " +
            (pod.last_switch ? std::to_string(base::micros_since_epoch(*pod.last_switch)) : "-") +
            "\n";
  }
  return text;
}

// Lenient, unlike the journal: the file is for people, and nothing is frozen or thawed by it.
std::map<std::string, ShownPod> parse_shown_pods(std::string_view text) {
  // A line that does not fit, of another version of the agent perhaps, is left out.
  std::map<std::string, ShownPod> pods;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    const std::size_t first = line.find(' ');
    const std::size_t last = line.rfind(' ');
    if (first == std::string_view::npos || first == last) continue;
    ShownPod& pod = pods[std::string{line.substr(0, first)}];
    pod.state = line.substr(first + 1, last - first - 1);
    std::int64_t micros = 0;
    const std::string_view number = line.substr(last + 1);
    const auto [ptr, error] = std::from_chars(number.begin(), number.end(), micros);
    if (error == std::errc{} && ptr == number.end()) {
      pod.last_switch = base::instant_from_micros(micros);
    }
  }
  return pods;
}

}  // namespace agent
