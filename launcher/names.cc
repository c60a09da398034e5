#include "launcher/names.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "launcher/process.h"
#include "slurm/hostlist.h"

namespace launcher {
namespace {

int refuse(const std::string& message) {
  std::fprintf(stderr, "scontrol: error: %s\n", message.c_str());
  return 1;
}

int show_hostnames(const std::string& list) {
  const auto names = slurm::expand_hostlist(list);
  if (!names) return refuse("Invalid hostlist: " + list);
  for (const std::string& name : *names) std::printf("%s\n", name.c_str());
  return 0;
}

int show_hostlist(const std::string& list) {
  const auto names = slurm::expand_hostlist(list);
  if (!names) return refuse("Invalid hostlist: " + list);
  std::printf("%s\n", slurm::compress_hostlist(*names).c_str());
  return 0;
}

// Returns the folders of PATH behind the one that this program is in.
std::optional<std::string> next_scontrol() {
  const std::string own = own_directory();
  const char* path = std::getenv("PATH");
  std::string left = path == nullptr ? "" : path;
  while (!left.empty()) {
    const std::size_t end = std::min(left.find(':'), left.size());
    const std::string folder = left.substr(0, end);
    left.erase(0, std::min(end + 1, left.size()));
    const std::string candidate = folder + "/scontrol";
    if (folder != own && ::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return std::nullopt;
}

int pass_on(std::span<const std::string> arguments) {
  const std::optional<std::string> other = next_scontrol();
  if (!other) {
    std::string line;
    for (const std::string& word : arguments) line += " " + word;
    return refuse(
        "scontrol" + line +
        ": is not possible inside a pod without kubegang's commands; show hostnames, show "
        "hostlist and show hostlistsorted are");
  }
  std::vector<char*> argv{const_cast<char*>("scontrol")};
  for (const std::string& word : arguments) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execv(other->c_str(), argv.data());
  return refuse(*other + ": " + std::strerror(errno));
}

}  // namespace

int run_scontrol(std::span<const std::string> arguments) {
  const bool shows = arguments.size() >= 2 && arguments[0] == "show";
  const std::string what = shows ? arguments[1] : "";
  if (what == "hostnames" || what == "hostname") {
    const char* own = std::getenv("SLURM_JOB_NODELIST");
    if (arguments.size() > 2) return show_hostnames(arguments[2]);
    return own == nullptr ? refuse("name a hostlist, SLURM_JOB_NODELIST is not set")
                          : show_hostnames(own);
  }
  const bool sorts = what == "hostlistsorted" || what == "hostlist";
  if (sorts && arguments.size() == 3) return show_hostlist(arguments[2]);
  return pass_on(arguments);
}

}  // namespace launcher
