#include "records/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <sstream>

namespace records {
namespace {

constexpr int kUsage = 2;
constexpr int kPortMax = 65'535;

// "0.0.0.0:8080", "[::1]:9000", ":0".
bool read_address(const std::string& text, Options& options) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return false;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + colon + 1, end, options.metrics_port);
  if (colon > 0) options.metrics_host = text.substr(0, colon);
  std::erase(options.metrics_host, '[');
  std::erase(options.metrics_host, ']');
  return parsed.ec == std::errc{} && parsed.ptr == end && options.metrics_port >= 0 &&
         options.metrics_port <= kPortMax;
}

// "kubegang-system/kubegang-records"; "" is none.
bool read_lease(const std::string& text, Options& options) {
  if (text.empty()) return true;
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return false;
  options.lease = kube::ObjectKey{text.substr(0, slash), text.substr(slash + 1)};
  return !options.lease->ns.empty() && !options.lease->name.empty() &&
         options.lease->name.find('/') == std::string::npos;
}

std::string contradiction_in(const Options& options) {
  const bool has_pair = !options.tls_certificate.empty() && !options.tls_key.empty();
  if (options.api_port != 0 && !has_pair) {
    return "--api-port needs --tls-certificate and --tls-key";
  }
  return "";
}

}  // namespace

ParsedOptions parse_options(std::vector<std::string> arguments) {
  ParsedOptions parsed;
  Options& options = parsed.options;
  CLI::App app{"kubegang-records: remembers every job of a cluster after its object is gone",
               "kubegang-records"};
  app.set_version_flag("--version", std::string{"kubegang-records "} + KUBEGANG_VERSION);
  std::string address = "0.0.0.0:8080";
  app.add_option("--kubeconfig", options.kubeconfig,
                 "kubeconfig file (default: $KUBECONFIG, the pod's service account, "
                 "~/.kube/config)");
  app.add_option("--context", options.context, "context of the kubeconfig (default: its current)");
  app.add_option("--database", options.database, "SQLite file; made if there is none")
      ->capture_default_str();
  app.add_option("--cluster", options.cluster, "name of the cluster in the records")
      ->capture_default_str();
  std::string lease;
  app.add_option("--lease", lease,
                 "NAMESPACE/NAME of the Lease that says how far Jobs are stored, for "
                 "kubegang-operator --records-lease (default: none)");
  app.add_option("--postgresql-file", options.postgresql_file,
                 "file with the address of a PostgreSQL that gets a copy of the database: "
                 "postgresql://USER:PASSWORD@HOST/NAME (default: none)");
  app.add_option("--metrics-address", address,
                 "HOST:PORT of /healthz, /readyz and /metrics; port 0 = any free one")
      ->capture_default_str();
  app.add_option("--api-port", options.api_port,
                 "port on which the API server asks for records (default: none)")
      ->check(CLI::Range(1, kPortMax));
  app.add_option("--tls-certificate", options.tls_certificate, "PEM file, with --api-port");
  app.add_option("--tls-key", options.tls_key, "PEM file, with --api-port");
  app.add_option("--log-level", options.log_level, "debug, info, warn or error")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}))
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
        std::string{"kubegang-records: "} + error.what() + "; see kubegang-records --help\n";
    return parsed;
  }
  std::string problem = contradiction_in(options);
  if (!read_address(address, options)) {
    problem = "--metrics-address: invalid address \"" + address + "\" (example: 0.0.0.0:8080)";
  }
  if (!read_lease(lease, options)) {
    problem = "--lease: invalid \"" + lease + "\" (example: kubegang-system/kubegang-records)";
  }
  if (problem.empty()) return parsed;
  parsed.exit_code = kUsage;
  parsed.text = "kubegang-records: " + problem + "\n";
  return parsed;
}

}  // namespace records
