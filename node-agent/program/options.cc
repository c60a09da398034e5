#include "node-agent/program/options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <sstream>

namespace agent {
namespace {

constexpr int kExitUsage = 2;
constexpr char kAbout[] =
    "kubegang-agent: lets the gangs of this node take turns, as its NodeTimetable says, through "
    "the cgroup freezer.\n\nWithout a subcommand it runs as the first process of its container: a "
    "small supervisor that starts the worker and thaws everything if the worker ends or hangs.\n\n"
    "Exit codes: 0 stopped, everything thawed; 1 failed; 2 wrong usage; 3 another agent uses the "
    "run directory.";

// For the agent and for each of its subcommands: they must look at the same cgroups and the same
// journal as the agent beside them.
// The chart sets the variables, alike for both containers of a pod.
void add_places(CLI::App& app, Options& options) {
  app.add_option(
         "--cgroup-root", options.cgroup_root,
         "directory that holds kubepods or kubepods.slice: one in the cgroup v2 or v1 freezer "
         "hierarchy, or one where the node's kubepods is mounted (environment "
         "KUBEGANG_CGROUP_ROOT; found by itself when absent)")
      ->envname("KUBEGANG_CGROUP_ROOT");
  app.add_option("--kubelet-cgroup-root", options.kubelet_cgroup_root,
                 "kubelet's own --cgroup-root below that directory, if it has one (environment "
                 "KUBEGANG_KUBELET_CGROUP_ROOT)")
      ->envname("KUBEGANG_KUBELET_CGROUP_ROOT");
  app.add_option(
      "--run-dir", options.run_directory,
      "directory for the journal, on tmpfs; one per agent (default " + options.run_directory + ")");
}

// Without any of them it is kRun.
constexpr Command kSubcommands[] = {Command::kGuard, Command::kInspect, Command::kCheck};

// In the order of kSubcommands.
std::vector<CLI::App*> add_subcommands(CLI::App& app, Options& options) {
  CLI::App* guard = app.add_subcommand(
      "guard", "the agent's second container: thaws what the agent froze when the agent is gone");
  add_places(*guard, options);
  CLI::App* inspect = app.add_subcommand(
      "inspect", "print every listed pod with its state, cgroup, slot and last switch");
  add_places(*inspect, options);
  CLI::App* check = app.add_subcommand(
      "check",
      "print what this node grants and what to change; exit code 1 if gangs cannot be switched");
  add_places(*check, options);
  check->add_flag("--whole-cluster", options.whole_cluster,
                  "print what the agents of all nodes in a partition have found, as the API server "
                  "knows it; waits a minute at most until all is well");
  check->add_option("--kubeconfig", options.kubeconfig, "for --whole-cluster, as above");
  return {guard, inspect, check};
}

}  // namespace

// The option's check has seen to the slash; without one, the whole text is the namespace.
kube::ObjectKey Options::lease_key() const {
  const std::size_t slash = lease.find('/');
  return {lease.substr(0, slash), slash == lease.npos ? "" : lease.substr(slash + 1)};
}

// The last colon separates, so that "[::1]:9090" works; an empty host means all addresses.
// The whole rest must be a number: "9090x" is a mistake, and not port 9090.
// nullopt if there is no colon or no port from 0 to 65535 behind it.
std::optional<HostPort> parse_host_port(std::string_view text) {
  constexpr int kPortMax = 65535;
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  HostPort out{.host = std::string{text.substr(0, colon)}};
  const std::string_view digits = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out.port);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  if (out.port < 0 || out.port > kPortMax) return std::nullopt;
  if (out.host.starts_with('[') && out.host.ends_with(']')) {
    out.host = out.host.substr(1, out.host.size() - 2);
  }
  if (out.host.empty()) out.host = "0.0.0.0";
  return out;
}

// CLI11 throws for --help and for mistakes alike; both become an exit code and a text here, so that
// main() only prints and ends.
// Values are checked here as far as their text goes. Whether a directory is there or a name is
// known to the API server shows when they are used.
ParsedOptions parse_options(const std::vector<std::string>& arguments) {
  ParsedOptions parsed;
  Options& options = parsed.options;
  CLI::App app{kAbout, "kubegang-agent"};
  app.set_version_flag("--version", std::string{"kubegang-agent "} + KUBEGANG_VERSION);
  app.add_option("--node-name", options.node_name, "name of this Node (environment NODE_NAME)")
      ->envname("NODE_NAME");
  app.add_option("--kubeconfig", options.kubeconfig,
                 "kubeconfig file (default: the service account of the pod)");
  add_places(app, options);
  app.add_option("--metrics-address", options.metrics_address,
                 "HOST:PORT of /metrics, /healthz and /readyz; port 0 takes a free one, \"\" none "
                 "(default " +
                     options.metrics_address + ")")
      ->check([](const std::string& text) {
        const bool good = text.empty() || parse_host_port(text).has_value();
        return good ? std::string{} : "\"" + text + "\" is not HOST:PORT";
      });
  app.add_option("--lease", options.lease,
                 "NAMESPACE/NAME of the operator's Lease (default " + options.lease + ")")
      ->check([](const std::string& text) {
        const std::size_t slash = text.find('/');
        const bool good = slash != std::string::npos && slash > 0 && slash + 1 < text.size();
        return good ? std::string{} : "\"" + text + "\" is not NAMESPACE/NAME";
      });
  app.add_option("--cpu-dir", options.cpu_directory,
                 "where the kernel lists the CPUs (default " + options.cpu_directory + ")");
  app.add_option("--log-level", options.log_level, "debug, info, warn or error (default info)")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}));
  // As callbacks: the library's negative flags are shown as --no-fifo{false}.
  app.add_flag_callback(
      "--no-fifo", [&] { options.fifo = false; }, "do not ask for SCHED_FIFO");
  app.add_flag_callback(
      "--no-supervisor", [&] { options.supervise = false; },
      "run the worker alone, for a service manager that restarts it: nothing thaws the "
      "pods then if it hangs");
  // Options before a subcommand are the agent's and those behind it the subcommand's; both write
  // into the same fields.
  const std::vector<CLI::App*> subcommands = add_subcommands(app, options);

  std::vector<std::string> reversed{arguments.rbegin(), arguments.rend()};  // as CLI11 wants them
  try {
    app.parse(reversed);
    for (std::size_t i = 0; i < subcommands.size(); ++i) {
      if (subcommands[i]->parsed()) options.command = kSubcommands[i];
    }
    if (options.command == Command::kRun && options.node_name.empty()) {
      // Not ->required(): only the agent itself needs the name, and `inspect` and `check` run
      // without one.
      throw CLI::RequiredError("--node-name (or the environment variable NODE_NAME)");
    }
  } catch (const CLI::Success& success) {  // --help, --version
    std::ostringstream out;
    parsed.exit_code = app.exit(success, out, out);
    parsed.text = out.str();
  } catch (const CLI::ParseError& error) {
    // CLI11's own codes differ by kind of mistake. Here all of them are one code, which the help
    // names.
    parsed.exit_code = kExitUsage;
    parsed.text = std::string{"kubegang-agent: "} + error.what() + "; see kubegang-agent --help\n";
  }
  return parsed;
}

}  // namespace agent
