#include "launcher/script_environment.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "launcher/user.h"

namespace launcher {
namespace {

constexpr std::string_view kOurPrefix = "KUBEGANG_";
constexpr const char* kClusterName = "kubegang";  // as scontrol and sacct show it

// Writes one NAME=VALUE a line, \n for a line break.
Environment variables_of(const std::string& lines) {
  Environment all;
  std::string entry;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i] == '\n') {
      all.push_back(std::exchange(entry, {}));
    } else if (lines[i] == '\\' && i + 1 < lines.size()) {
      entry += lines[++i] == 'n' ? '\n' : lines[i];
    } else {
      entry += lines[i];
    }
  }
  return all;
}

// Returns what Slurm's srun asks slurmctld: NAME=VALUE, separated by spaces. "SLURM", with which
// the names begin, is left out, since scripts print what `env | grep SLURM` finds.
std::string facts_of(const Environment& environment, const std::string& address) {
  std::string facts;
  for (const char* name :
       {"SLURM_JOBID", "SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_JOB_NUM_NODES",
        "SLURM_NNODES", "SLURM_JOB_CPUS_PER_NODE", "SLURM_JOB_PARTITION", "SLURM_JOB_USER",
        "SLURM_JOB_UID", "SLURM_JOB_GID", "SLURM_NODEID", "SLURM_CPUS_ON_NODE", "SLURMD_NODENAME",
        "SLURM_CLUSTER_NAME"}) {
    const auto value = launcher::value_of(environment, name);
    const std::string rest = std::string{name}.substr(kNamesBegin.size());
    if (value) facts += (facts.empty() ? "" : " ") + rest + "=" + *value;
  }
  // The address of srun's node; scripts do not see it.
  facts += " _LAUNCH_NODE_IPADDR=" + address;
  return facts;
}

void set_if_absent(Environment& environment, const char* name, const std::string& value) {
  if (!value_of(environment, name)) set(environment, name, value);
}

}  // namespace

std::string joined(const Environment& environment, const std::string& prefix) {
  std::string text;
  for (int part = 0;; ++part) {
    const auto more = value_of(environment, prefix + "_" + std::to_string(part));
    if (!more) return text;
    text += *more;
  }
}

Environment script_environment(const Environment& given, std::span<const std::string> more,
                               const std::string& directory, const std::string& steps) {
  Environment all;
  for (const std::string& entry : given) {
    if (!entry.starts_with(kOurPrefix)) all.push_back(entry);
  }
  const std::string own = own_directory();
  Environment of_user = variables_of(joined(given, "KUBEGANG_ENVIRONMENT"));
  of_user.insert(of_user.end(), more.begin(), more.end());
  for (const std::string& entry : of_user) {
    const std::string name = entry.substr(0, entry.find('='));
    const bool is_ours = name.starts_with("SLURM") && value_of(given, name).has_value();
    if (!is_ours && !name.starts_with(kOurPrefix)) {
      set(all, name, entry.substr(std::min(name.size() + 1, entry.size())));
    }
  }
  set(all, "ENVIRONMENT", "BATCH");
  set_if_absent(all, "SLURM_SUBMIT_DIR", directory);
  set_if_absent(all, "SLURM_JOB_UID", std::to_string(::getuid()));
  set_if_absent(all, "SLURM_JOB_GID", std::to_string(::getgid()));
  set_if_absent(all, "SLURM_CLUSTER_NAME", kClusterName);
  if (const auto node = value_of(all, "SLURMD_NODENAME")) {
    set(all, "SLURM_TOPOLOGY_ADDR", *node);
    set(all, "SLURM_TOPOLOGY_ADDR_PATTERN", "node");
  }
  set_user(all, entry_of(text_of_file("/etc/passwd"), ::getuid()), temporary_folder());
  set(all, "PATH", own + ":" + value_or(all, "PATH", "/usr/local/bin:/usr/bin:/bin"));
  // Login shells read /etc/profile, which may set PATH; bash reads this file after it.
  const std::string profile = own + "/env.sh";
  // A script that has submitted this one may have sent its own along: it would read itself.
  const auto before = value_of(all, "BASH_ENV");
  if (before && *before != profile) set(all, "KUBEGANG_BASH_ENV", *before);
  set(all, "BASH_ENV", profile);
  set(all, "KUBEGANG_STEPS", steps);
  set(all, "KUBEGANG_JOB", facts_of(all, value_or(given, "KUBEGANG_POD_IP", "127.0.0.1")));
  return all;
}

}  // namespace launcher
