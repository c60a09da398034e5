// kubegang-devcluster: a cluster on this machine, without a cluster.
//
//   up      runs until Ctrl-C
//   demo    plays the first example and reports
//   bench   measures how long things take
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "e2e/devcluster/apply.h"
#include "e2e/devcluster/bench.h"
#include "e2e/devcluster/demo.h"
#include "e2e/devcluster/devcluster.h"
#include "e2e/devcluster/guardian.h"
#include "e2e/devcluster/interrupts.h"
#include "kube/api/quantity.h"
#include "kube/api/time_format.h"
#include "kube/clock.h"
#include "slurm/hostlist.h"

namespace {

namespace fs = std::filesystem;
using base::Result;
using os::CgroupVersion;

// The exit codes of scripts: 1 if the cluster or what it plays failed, 2 if the command line is
// wrong.
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr std::chrono::milliseconds kSliceMin{100};
// The least duration of a demo counts from the moment at which both jobs are ready. The
// newcomer's first turn is three boundaries and the lead of 3 s away at most (rule 6.6: a newcomer
// waits for the second boundary), and a turn of each must follow.
constexpr std::chrono::seconds kLead{3};
constexpr int kSlicesMin = 5;
// How often `up` looks for programs that have ended; a Ctrl-C ends the wait at once.
constexpr std::chrono::seconds kLookEvery{1};

// The command line as it was typed, with the defaults that --help tells. Texts are turned into
// values by config_of() and the commands, after the parser has checked them.
struct Options {
  std::string directory = "build/devcluster";
  std::string nodes = "n[12-16]";
  double cpus = 8;
  int sockets = 1;
  double memory_gib = 16;
  int gpus = 0;
  std::string cgroup = "auto";
  int port = 0;
  std::string slice = "2s";
  std::string duration = "60s";
  std::string out;
  std::string apply;  // of `up`: a file of objects
  std::int64_t first_job = 0;
  bool no_operator = false;
  bool no_agents = false;
  bool verbose = false;
};

int fail(const std::string& message, int exit_code = kExitFailed) {
  std::fprintf(stderr, "kubegang-devcluster: %s\n", message.c_str());
  return exit_code;
}

// Returns what is wrong with a duration, "" if nothing is; the parser adds the option's name. Less
// than 100 ms is refused because SchedulerConfig refuses such a slice, too.
std::string check_duration(const std::string& text) {
  const auto parsed = kube::parse_duration(text);
  if (!parsed.ok()) return parsed.error().message;
  return *parsed < kSliceMin ? "\"" + text + "\" is less than 100ms" : std::string{};
}

// Returns what is wrong with the list; the names are expanded once more by config_of().
std::string check_hostlist(const std::string& text) {
  const auto names = slurm::expand_hostlist(text);
  return names.ok() ? std::string{} : names.error().message;
}

// Returns the configuration that the command line describes. Programs and CRDs are found from the
// place of this program, so that it works in every build directory. It finds faults that the parser
// does not: a folder or CRDs that are missing.
Result<devcluster::DevclusterConfig> config_of(const Options& options) {
  devcluster::DevclusterConfig config;
  std::error_code error;
  config.directory = fs::absolute(options.directory, error).lexically_normal();
  config.program_directory = fs::read_symlink("/proc/self/exe", error).parent_path();
  Result<std::string> crds = devcluster::find_upwards(config.program_directory, "crds");
  if (!crds.ok()) return crds.error();
  config.crds_directory = std::move(crds).value();
  Result<std::vector<std::string>> names = slurm::expand_hostlist(options.nodes);
  if (!names.ok()) return names.error().with_context("--nodes " + options.nodes);
  // All nodes are alike and claim sizes that this machine need not have: only a few probes really
  // run.
  for (const std::string& name : *names) {
    config.nodes.push_back(
        {.name = name,
         .cpu = kube::MilliCpu{static_cast<std::int64_t>(options.cpus * 1000)},
         .sockets = options.sockets,
         .memory = kube::Bytes{static_cast<std::int64_t>(options.memory_gib * 1024 * 1024 * 1024)},
         .gpus = options.gpus});
  }
  if (options.cgroup == "v1") config.cgroup_version = os::CgroupVersion::kV1;
  if (options.cgroup == "v2") config.cgroup_version = os::CgroupVersion::kV2;
  config.port = options.port;
  config.with_operator = !options.no_operator;
  config.with_agents = !options.no_agents;
  if (options.verbose) {
    // The kubelet calls this from its threads; one call of fprintf writes a whole line.
    config.log = [](std::string_view line) {
      std::fprintf(stderr, "kubelet: %.*s\n", static_cast<int>(line.size()), line.data());
    };
  }
  return config;
}

// Prints the commands as they can be typed in the folder in which this program was started, so
// paths are relative to it. The kubeconfig comes first: without it kubectl would talk to whichever
// cluster the user works with. No line is wider than a terminal. `page` is the address of the page,
// if one runs.
void say_how_to_look_inside(const Options& options, const std::string& page = "") {
  std::error_code error;
  const fs::path programs =
      fs::proximate(fs::read_symlink("/proc/self/exe", error).parent_path(), error);
  const std::string gang = (programs / "kubectl-gang").string();
  std::printf("Look inside, in another terminal:\n");
  std::printf("  export KUBECONFIG=%s/kubeconfig\n", options.directory.c_str());
  std::printf("  kubectl get partitions,gjobs,nodetimetables\n");
  std::printf("  %s queue -A --watch     # as squeue\n", gang.c_str());
  if (page.empty()) {
    std::printf("  %s dashboard -A         # in a browser\n", gang.c_str());
  } else {
    std::printf("In a browser: %s\n", page.c_str());
  }
  // Whatever is started next writes to the same terminal.
  std::fflush(stdout);
}

// Does what --apply and --first-job ask for. REQUIRES: no operator runs, which would give numbers.
base::Status prepare(devcluster::Devcluster& cluster, const Options& options) {
  if (!options.apply.empty()) {
    const auto objects = devcluster::read_manifests(options.apply);
    if (!objects.ok()) return objects.error().with_context("--apply");
    for (const nlohmann::json& object : *objects) {
      const base::Status status = devcluster::apply_object(cluster.transport(), object);
      if (!status.ok()) return status.error().with_context("--apply " + options.apply);
    }
  }
  if (options.first_job == 0) return {};
  return devcluster::call_api(cluster.transport(), kube::Method::kPatch,
                              "/apis/kubegang.io/v1alpha1/schedulerconfigs/default/status",
                              {{"status", {{"nextJobID", options.first_job}}}})
      .status();
}

// Starts the operator, unless users start it themselves, and waits until it leads.
base::Status lead(devcluster::Devcluster& cluster, const Options& options) {
  if (options.no_operator) return {};
  const devcluster::OperatorSpec& spec = cluster.config().operator_spec;
  const base::Status started = cluster.start_operator(spec);
  return started.ok() ? cluster.wait_until_led(spec.name) : started;
}

// Until Ctrl-C. Programs that end are started again, as a DaemonSet and a Deployment would.
int up(const Options& options, devcluster::Interrupts& interrupts) {
  // An error is printed as a sentence and not as usage: the words are right, but a folder or a
  // program is missing.
  auto config = config_of(options);
  if (!config.ok()) return fail(config.error().message);
  const kube::SystemClock clock;
  config->with_operator = false;
  auto cluster = devcluster::Devcluster::start(clock, std::move(config).value());
  if (!cluster.ok()) return fail(cluster.error().message);
  if (const base::Status status = prepare(**cluster, options); !status.ok()) {
    return fail(status.error().message);
  }
  if (const base::Status status = lead(**cluster, options); !status.ok()) {
    return fail(status.error().message);
  }
  std::printf("devcluster: %s, nodes %s, logs in %s/logs. Ctrl-C ends it.\n",
              (*cluster)->url().c_str(), options.nodes.c_str(), options.directory.c_str());
  say_how_to_look_inside(options);  // flushes, too
  while (!interrupts.wait(kLookEvery)) {
    for (const std::string& line : (*cluster)->restart_ended()) {
      std::printf("%s\n", line.c_str());
      std::fflush(stdout);
    }
  }
  return 0;
}

// The least duration is checked here, where the slice is known, too.
// With slices of 2 s the least is 13 s: 3 s of lead and five slices.
int demo(const Options& options, devcluster::Interrupts& interrupts) {
  const base::Duration slice = *kube::parse_duration(options.slice);
  const base::Duration duration = *kube::parse_duration(options.duration);
  if (const base::Duration least = kLead + kSlicesMin * slice; duration < least) {
    return fail("--duration " + options.duration + ": too short to see turns of " + options.slice +
                    "; give " + kube::format_duration(least) + " or more",
                kExitUsage);
  }
  auto config = config_of(options);
  if (!config.ok()) return fail(config.error().message);
  const auto examples = devcluster::find_upwards(config->program_directory, "examples/demo");
  if (!examples.ok()) return fail(examples.error().message);
  const kube::SystemClock clock;
  auto cluster = devcluster::Devcluster::start(clock, std::move(config).value());
  if (!cluster.ok()) return fail(cluster.error().message);
  // Without the page the demo is still a demo.
  const base::Result<std::string> started = (*cluster)->start_page();
  const std::string page = started.ok() ? *started : "";
  say_how_to_look_inside(options, page);
  return devcluster::play_demo(clock, **cluster,
                               {.slice = slice,
                                .duration = duration,
                                .shown_directory = options.directory,
                                .page = page,
                                .examples_directory = *examples},
                               interrupts);
}

// The cluster is started within run_bench(), because its start is one of the figures.
int bench(const Options& options, devcluster::Interrupts& interrupts) {
  auto config = config_of(options);
  if (!config.ok()) return fail(config.error().message);
  const auto examples = devcluster::find_upwards(config->program_directory, "examples/demo");
  if (!examples.ok()) return fail(examples.error().message);
  const kube::SystemClock clock;
  const base::Status status = devcluster::run_bench(
      clock, *config, {.examples_directory = *examples, .out = options.out}, interrupts);
  return status.ok() ? 0 : fail(status.error().message);
}

// Each command has these options of its own, so that they may stand behind its name.
void add_cluster_options(CLI::App& app, Options& options) {
  app.add_option("--dir", options.directory,
                 "folder for kubeconfig, logs and reports (default " + options.directory + ")");
  app.add_option("--nodes", options.nodes, "hostlist of its nodes (default n[12-16])")
      ->check(check_hostlist);
  app.add_option("--cpus", options.cpus, "CPUs that each node claims to have (default 8)")
      ->check(CLI::Range(0.1, 4096.0));
  app.add_option("--sockets", options.sockets, "sockets that these are spread over (default 1)")
      ->check(CLI::Range(1, 64));
  app.add_option("--memory", options.memory_gib, "GiB that each node claims to have (default 16)")
      ->check(CLI::Range(0.1, 65536.0));
  app.add_option("--gpus", options.gpus,
                 "GPUs (nvidia.com/gpu) that each node claims to have (default 0)")
      ->check(CLI::Range(0, 1024));
  app.add_option("--cgroup", options.cgroup, "which hierarchy pods are put into (default auto)")
      ->check(CLI::IsMember({"auto", "v1", "v2"}));
  app.add_option("--port", options.port, "of the API server (default 0: any free one)")
      ->check(CLI::Range(0, 65535));
  app.add_flag("--verbose", options.verbose, "say what the process kubelet has trouble with");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "A Kubernetes cluster for kubegang on this machine: an in-memory API server, nodes\n"
      "that run pods as local processes, the operator and the agents."};
  app.require_subcommand(0, 1);  // with at least 1 the library does not name a wrong word
  app.set_version_flag("--version", std::string{"kubegang-devcluster "} + KUBEGANG_VERSION);
  // All commands write into the same options; only the one that was named does.
  Options options;
  CLI::App* up_command = app.add_subcommand("up", "run a cluster until Ctrl-C");
  add_cluster_options(*up_command, options);
  up_command->add_option("--apply", options.apply, "file of objects to create");
  up_command->add_option("--first-job", options.first_job, "number of the first job, if it is new")
      ->check(CLI::Range(1, 1'000'000'000));
  up_command->add_flag("--no-operator", options.no_operator, "you start it yourself");
  up_command->add_flag("--no-agents", options.no_agents, "you start them yourself");
  CLI::App* demo_command = app.add_subcommand("demo", "two gangs take turns on the nodes");
  add_cluster_options(*demo_command, options);
  demo_command->add_option("--slice", options.slice, "length of a turn, from 100ms (default 2s)")
      ->check(check_duration);
  demo_command->add_option("--duration", options.duration, "how long they take turns (default 60s)")
      ->check(check_duration);
  CLI::App* bench_command =
      app.add_subcommand("bench", "measure start times and what idling costs");
  add_cluster_options(*bench_command, options);
  bench_command->add_option("--out", options.out, "JSON file for the figures")->required();
  // Not shown by --help: the empty group hides it.
  CLI::App* guard_command = app.add_subcommand("guard", "");  // internal: guardian.h
  guard_command->group("");
  int lifeline = -1;
  os::CgroupRoot root;
  std::string version;
  guard_command->add_option("--lifeline", lifeline)->required();
  guard_command->add_option("--cgroup", root.path)->required();
  guard_command->add_option("--version", version)->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  // Before anything else is set up: a guardian must not handle signals, listen or print.
  if (guard_command->parsed()) {
    root.version = version == "v1" ? os::CgroupVersion::kV1 : os::CgroupVersion::kV2;
    return devcluster::guard(lifeline, root);
  }
  if (app.get_subcommands().empty()) {
    return fail("say what to do: up, demo or bench; see kubegang-devcluster --help", kExitUsage);
  }
  // From here on Ctrl-C and SIGTERM end waits instead of the process, so the cluster is taken down.
  devcluster::Interrupts interrupts;
  if (up_command->parsed()) return up(options, interrupts);
  if (demo_command->parsed()) return demo(options, interrupts);
  return bench(options, interrupts);
}
