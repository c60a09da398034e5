#include "operator/process/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "kube/api/time_format.h"

namespace control {
namespace {

// The exit code of a wrong command line, as of most programs of GNU; 1 is for what fails later.
constexpr int kUsage = 2;
// Each is a thread.
constexpr int kWritersMax = 256;
constexpr int kPortMax = 65'535;

// Reads "0.0.0.0:8080", ":0", "[::1]:9000". Returns the sentence of what is wrong; "" if nothing
// is. An empty host leaves the default, which is all addresses.
std::string parse_address(const std::string& text, Options& options) {
  // The last colon, because an IPv6 address has more of them; its brackets are taken off below.
  const std::size_t colon = text.rfind(':');
  int port = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = colon == std::string::npos
                          ? std::from_chars_result{text.data(), std::errc::invalid_argument}
                          : std::from_chars(text.data() + colon + 1, end, port);
  if (parsed.ec != std::errc{} || parsed.ptr != end || port < 0 || port > 65'535) {
    return "--metrics-address: invalid address \"" + text + "\" (example: 0.0.0.0:8080)";
  }
  if (colon > 0) options.metrics_host = text.substr(0, colon);
  std::erase(options.metrics_host, '[');
  std::erase(options.metrics_host, ']');
  options.metrics_port = port;
  return "";
}

// Above 0: a loop without a rest between its tries would only load the API server.
std::string parse_time(const std::string& flag, const std::string& text, base::Duration& out) {
  const auto parsed = kube::parse_duration(text);
  if (!parsed.ok() || parsed->count() <= 0) {
    return flag + ": invalid duration \"" + text + "\"; it must be above 0 (example: 15s)";
  }
  out = *parsed;
  return "";
}

// Returns the sentence of what does not go together; "" if all does.
std::string contradiction_in(const Options& options) {
  if (options.retry_period >= options.renew_deadline ||
      options.renew_deadline >= options.lease_duration) {
    return "--renew-deadline must lie between --retry-period and --lease-duration";
  }
  if (options.adopt_pod_groups && !options.adopt_pods) {
    return "--adopt-pod-groups needs --adopt-pods";
  }
  return "";
}

// Without either, Jobs with spec.batch fail with a sentence that names these.
void add_launcher(CLI::App& app, Options& options) {
  app.add_option("--launcher-image", options.launcher_image,
                 "image that brings the launcher of batch scripts into their pods (default: none, "
                 "Jobs with spec.batch fail)");
  app.add_option("--launcher-image-volume", options.launcher_image_volume,
                 "whether pods mount that image as a volume, instead of an init container that "
                 "copies from it; auto: on nodes with kubelet 1.35 and containerd 2.1, or newer")
      ->check(CLI::IsMember({"auto", "true", "false"}))
      ->capture_default_str();
  app.add_option("--launcher-directory", options.launcher_directory,
                 "folder of the nodes that has the launcher instead");
  app.add_option("--launcher-port", options.launcher_port,
                 "port of the first pod of a batch script on several nodes, for the launchers of "
                 "its other pods")
      ->check(CLI::Range(1, kPortMax))
      ->capture_default_str();
  app.add_option("--name-servers", options.name_servers,
                 "addresses of the cluster's name servers, for the pods of those jobs (default: of "
                 "/etc/resolv.conf)")
      ->delimiter(',');
  app.add_option("--cluster-domain", options.cluster_domain,
                 "domain of the cluster's names, with --name-servers")
      ->capture_default_str();
}

// The programs that it works with.
void add_neighbors(CLI::App& app, Options& options) {
  app.add_option("--agents-namespace", options.agents_namespace,
                 "namespace of the agents' pods: a node without a ready one takes no new jobs "
                 "(default: agents are not pods, only their own word counts)");
  app.add_option("--records-lease", options.records_lease,
                 "name of the Lease of kubegang-records: Jobs that have ended are not deleted "
                 "before it says that they are recorded, for a day at most (default: none)");
}

}  // namespace

// Durations are read after CLI11, so that all flags take Go's notation (15s, 1m30s) as other
// programs of Kubernetes do. The three times of leader election must grow in this order: a
// leader gives up (renew deadline) before others may take the Lease (lease duration), and has
// tried more than once by then (retry period). The texts of those options repeat the defaults
// of Options, because CLI11 shows a default as it stands there. Help and version arrive as
// CLI::Success, which is not an error; their text becomes part of the result instead of being
// printed. Only the first of several mistakes is reported, since the others may follow from
// it.
//
// --no-leader-elect is for tests: without election nothing but the term keeps two operators apart,
// and they undo each other's work.
ParsedOptions parse_options(std::vector<std::string> arguments) {
  ParsedOptions parsed;
  Options& options = parsed.options;
  CLI::App app{"kubegang-operator: brings Slurm's batch scheduling to Kubernetes",
               "kubegang-operator"};
  app.set_version_flag("--version", std::string{"kubegang-operator "} + KUBEGANG_VERSION);
  std::string address = "0.0.0.0:8080";
  std::string lease_duration = "15s";
  std::string renew_deadline = "10s";
  std::string retry_period = "2s";
  app.add_option("--kubeconfig", options.kubeconfig,
                 "kubeconfig file (default: $KUBECONFIG, the pod's service account, "
                 "~/.kube/config)");
  app.add_option("--context", options.context, "context of the kubeconfig (default: its current)");
  app.add_option("--namespace", options.ns, "namespace of the Lease")->capture_default_str();
  app.add_option("--lease-name", options.lease_name, "name of the Lease")->capture_default_str();
  add_neighbors(app, options);
  add_launcher(app, options);
  app.add_option("--identity", options.identity, "name in the Lease (default: unique)");
  app.add_flag("--leader-elect,!--no-leader-elect", options.leader_elect,
               "wait for the Lease before doing anything (default: true)");
  app.add_option("--lease-duration", lease_duration, "others may take the Lease after that long")
      ->capture_default_str();
  app.add_option("--renew-deadline", renew_deadline, "give up when not renewed for that long")
      ->capture_default_str();
  app.add_option("--retry-period", retry_period, "time between renewals")->capture_default_str();
  app.add_option("--metrics-address,--listen", address,
                 "HOST:PORT of /healthz, /readyz and /metrics; port 0 = any free one")
      ->capture_default_str();
  app.add_option("--writers", options.writers, "writes under way at the same time")
      ->check(CLI::Range(1, kWritersMax))
      ->capture_default_str();
  app.add_flag("--adopt-pods", options.adopt_pods, "run pods that have the gate kubegang.io/gang");
  app.add_flag("--adopt-pod-groups", options.adopt_pod_groups,
               "of pods with that gate, run those of a PodGroup (scheduling.x-k8s.io), too");
  app.add_flag("--adopt-batch-jobs,!--no-adopt-batch-jobs", options.adopt_batch_jobs,
               "run Jobs of the batch group that say managedBy: kubegang.io/job (default: true)");
  app.add_option("--log-level", options.log_level, "trace, debug, info, warn or error")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error"}))
      ->capture_default_str();
  try {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    app.parse(arguments);
  } catch (const CLI::Success& success) {
    std::ostringstream out;
    parsed.exit_code = app.exit(success, out, out);
    parsed.text = out.str();
    return parsed;
  } catch (const CLI::ParseError& error) {
    parsed.exit_code = kUsage;
    parsed.text =
        std::string{"kubegang-operator: "} + error.what() + "; see kubegang-operator --help\n";
    return parsed;
  }
  for (const std::string& problem :
       {parse_address(address, options),
        parse_time("--lease-duration", lease_duration, options.lease_duration),
        parse_time("--renew-deadline", renew_deadline, options.renew_deadline),
        parse_time("--retry-period", retry_period, options.retry_period),
        contradiction_in(options)}) {
    if (problem.empty()) continue;
    parsed.exit_code = kUsage;
    parsed.text = "kubegang-operator: " + problem + "\n";
    break;
  }
  return parsed;
}

}  // namespace control
