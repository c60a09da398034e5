#include "cli/cluster/batch_variables.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "cli/utf8.h"
#include "slurm/text.h"

extern char** environ;

namespace cli {
namespace {

// A Job is read by many, and etcd takes 1.5 MiB.
constexpr std::size_t kVariablesBytesMax = 65'536;
// The CRD's.
constexpr std::size_t kVariablesMax = 512;
constexpr std::size_t kVariableNameBytesMax = 256;
constexpr std::size_t kValueBytesMax = 16'384;

bool looks_secret(const std::string& name) {
  constexpr std::array<std::string_view, 3> kParts = {"token", "secret", "password"};
  const std::string lower = slurm::lower_case(name);
  return std::ranges::any_of(
      kParts, [&](std::string_view part) { return lower.find(part) != std::string::npos; });
}

// Returns true for a variable about the calling job's place, which must not reach the new job.
bool is_of_calling_job(const std::string& name) {
  // SOURCE: srun(1), "INPUT ENVIRONMENT VARIABLES": what users set for all sruns of a script.
  constexpr std::array<std::string_view, 9> kOfUsers = {
      "SLURM_EXACT",   "SLURM_HOSTFILE", "SLURM_KILL_BAD_EXIT", "SLURM_LABELIO", "SLURM_MPI_TYPE",
      "SLURM_NO_KILL", "SLURM_OVERLAP",  "SLURM_UNBUFFEREDIO",  "SLURM_WAIT"};
  if (std::ranges::find(kOfUsers, name) != kOfUsers.end()) return false;
  return name.starts_with("SLURM") || name.starts_with("KUBEGANG_") || name == "ENVIRONMENT";
}

}  // namespace

bool is_in_cluster() {
  // SOURCE: kubelet sets the first one in every container, the launcher the second in scripts.
  constexpr std::array kNames = {"KUBERNETES_SERVICE_HOST", "KUBEGANG_STEPS",
                                 "KUBEGANG_LOGIN_NODE"};
  return std::ranges::any_of(kNames, [](const char* name) { return std::getenv(name) != nullptr; });
}

std::vector<std::string> own_variables() {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) all.emplace_back(*entry);
  return all;
}

base::Result<std::vector<kube::BatchVariable>> exported_variables(
    const std::string& exports, std::span<const std::string> own,
    std::vector<std::string>& left_out) {
  std::map<std::string, std::string> all;
  std::vector<std::string> words = slurm::split(exports, ',');
  std::erase(words, "");
  const auto is_all = [](const std::string& word) { return slurm::same_word(word, "ALL"); };
  const auto is_none = [](const std::string& word) {
    return slurm::same_word(word, "NONE") || slurm::same_word(word, "NIL");
  };
  const bool has_all = words.empty() || std::ranges::any_of(words, is_all);
  std::map<std::string, std::string> known;
  for (const std::string& entry : own) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos || line_that_is_not_utf8(entry)) continue;
    known[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  // In a script BASH_ENV is the launcher's, and that of the user is beside it.
  if (known.contains("KUBEGANG_STEPS")) {
    known.erase("BASH_ENV");
    const auto of_user = known.find("KUBEGANG_BASH_ENV");
    if (of_user != known.end()) known["BASH_ENV"] = of_user->second;
  }
  std::set<std::string> listed;
  for (const std::string& word : words) {
    if (is_all(word) || is_none(word)) continue;
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    listed.insert(name);
    if (equals != std::string::npos) known[name] = word.substr(equals + 1);
  }
  for (const auto& [name, value] : known) {
    const bool is_listed = listed.contains(name);
    if (!is_listed && (!has_all || is_of_calling_job(name))) continue;
    if (!is_listed && looks_secret(name)) {
      left_out.push_back("variable " + name +
                         " is left out, because its name says that it is secret; --export=ALL," +
                         name + " takes it along");
    } else if (name.size() > kVariableNameBytesMax || value.size() > kValueBytesMax) {
      left_out.push_back("variable " + name.substr(0, kVariableNameBytesMax) +
                         " is left out: more than " + std::to_string(kValueBytesMax) + " bytes");
    } else {
      all[name] = value;
    }
  }
  std::vector<kube::BatchVariable> variables;
  std::size_t bytes = 0;
  for (auto& [name, value] : all) {
    bytes += name.size() + value.size();
    variables.push_back({name, value});
  }
  if (variables.size() > kVariablesMax) {
    return base::invalid_argument("--export: " + std::to_string(variables.size()) +
                                  " variables, more than " + std::to_string(kVariablesMax) +
                                  "; list those that the script needs");
  }
  if (bytes > kVariablesBytesMax) {
    return base::invalid_argument("--export: the variables have " + std::to_string(bytes) +
                                  " bytes, more than " + std::to_string(kVariablesBytesMax) +
                                  "; list those that the script needs");
  }
  return variables;
}

}  // namespace cli
