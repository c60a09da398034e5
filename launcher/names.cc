#include "launcher/names.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <vector>

#include "launcher/join.h"
#include "launcher/own_job.h"
#include "launcher/process.h"
#include "slurm/hostlist.h"

namespace launcher {
namespace {

// SOURCE: Kubernetes mounts it there.
constexpr const char* kToken = "/var/run/secrets/kubernetes.io/serviceaccount/token";

int refuse(const std::string& name, const std::string& message) {
  std::fprintf(stderr, "%s: error: %s\n", name.c_str(), message.c_str());
  return 1;
}

int show_hostnames(const std::string& list) {
  const auto names = slurm::expand_hostlist(list);
  if (!names) return refuse("scontrol", "Invalid hostlist: " + list);
  for (const std::string& name : *names) std::printf("%s\n", name.c_str());
  return 0;
}

int show_hostlist(const std::string& list) {
  const auto names = slurm::expand_hostlist(list);
  if (!names) return refuse("scontrol", "Invalid hostlist: " + list);
  std::printf("%s\n", slurm::compress_hostlist(*names).c_str());
  return 0;
}

bool is_file(const std::string& path, int mode) {
  return ::access(path.c_str(), mode) == 0;
}

// Without /proc nothing says so.
bool is_another(const std::string& path) {
  struct stat its {};
  struct stat own {};
  return ::stat(path.c_str(), &its) == 0 && ::stat("/proc/self/exe", &own) == 0 &&
         (its.st_dev != own.st_dev || its.st_ino != own.st_ino);
}

// Returns the first program of this name in PATH that is not this one.
std::optional<std::string> next_in_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string left = path == nullptr ? "" : path;
  while (!left.empty()) {
    const std::size_t end = std::min(left.find(':'), left.size());
    const std::string folder = left.substr(0, end);
    left.erase(0, std::min(end + 1, left.size()));
    const std::string candidate = folder + "/" + name;
    if (is_file(candidate, X_OK) && is_another(candidate)) return candidate;
  }
  return std::nullopt;
}

// Returns true if there is something that kubectl-gang would log in with.
bool has_login() {
  const char* file = std::getenv("KUBECONFIG");
  if (file != nullptr && *file != '\0') return true;
  const char* home = std::getenv("HOME");
  return is_file(kToken, R_OK) ||
         (home != nullptr && is_file(std::string{home} + "/.kube/config", R_OK));
}

int execute(const std::string& program, const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  return refuse(words.front(), program + ": " + std::strerror(errno));
}

// Answers what is about the job of this pod; nullopt: it is about something else.
std::optional<int> answer_about_own_job(std::span<const std::string> arguments) {
  const Environment environment = own_environment();
  if (const auto record = show_own_job(environment, arguments)) {
    std::fputs(record->c_str(), stdout);
    return 0;
  }
  const bool is_requeue =
      arguments.size() == 2 && arguments[0] == "requeue" && is_own_job(environment, arguments[1]);
  if (!is_requeue) return std::nullopt;
  const std::string refusal = request_requeue();
  return refusal.empty() ? 0 : refuse("scontrol", refusal + " for job " + arguments[1]);
}

// The program is started by the loader that is beside it: the image of the job may have another C
// library, or none.
int run_in_cluster(const std::string& name, std::span<const std::string> arguments) {
  const std::string folder = own_directory() + "/commands";
  std::vector<std::string> words{name};
  if (has_login() && is_file(folder + "/loader", X_OK)) {
    words = {folder + "/loader", "--library-path", folder, folder + "/kubectl-gang", name};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return execute(words.front(), words);
  }
  if (name == "scontrol" && !has_login()) {
    if (const auto code = answer_about_own_job(arguments)) return *code;
  }
  if (const auto other = next_in_path(name)) {
    words.insert(words.end(), arguments.begin(), arguments.end());
    return execute(*other, words);
  }
  return refuse(name,
                "this pod has no token of the API server: submit the job with --service-account "
                "NAME, of an account that may do this");
}

}  // namespace

bool is_command(std::string_view name) {
  return std::ranges::find(kCommandNames, name) != std::end(kCommandNames);
}

int run_command(const std::string& name, std::span<const std::string> arguments) {
  const bool shows = name == "scontrol" && arguments.size() >= 2 && arguments[0] == "show";
  const std::string what = shows ? arguments[1] : "";
  if (what.starts_with("host") && arguments.size() > 3) {
    return refuse(name, "too many arguments for keyword:show");
  }
  if (what == "hostnames" || what == "hostname") {
    const char* own = std::getenv("SLURM_JOB_NODELIST");
    if (arguments.size() > 2) return show_hostnames(arguments[2]);
    return own == nullptr ? refuse(name, "name a hostlist, SLURM_JOB_NODELIST is not set")
                          : show_hostnames(own);
  }
  const bool sorts = what == "hostlistsorted" || what == "hostlist";
  if (sorts && arguments.size() == 3) return show_hostlist(arguments[2]);
  return run_in_cluster(name, arguments);
}

}  // namespace launcher
