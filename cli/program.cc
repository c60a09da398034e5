#include "cli/program.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "cli/cluster/check_crds.h"
#include "cli/cluster/connect.h"
#include "cli/cluster/control.h"
#include "cli/cluster/dashboard.h"
#include "cli/cluster/explain.h"
#include "cli/cluster/info.h"
#include "cli/cluster/licenses.h"
#include "cli/cluster/logs.h"
#include "cli/cluster/prio.h"
#include "cli/cluster/queue.h"
#include "cli/cluster/share.h"
#include "cli/cluster/submit.h"
#include "cli/cluster/whatif.h"
#include "cli/completion.h"
#include "cli/import/import_command.h"
#include "cli/local_zone.h"
#include "cli/man_page.h"
#include "cli/simulate_command.h"
#include "cli/yaml_text.h"
#include "kube/clock.h"

namespace cli {
namespace {

// Everything that a command line can say, and what it chose.
// All of it is declared before the line is parsed: CLI11 writes into these fields through
// references, so they must not move.
struct Commands {
  ConnectOptions connect;
  QueueOptions queue;
  InfoOptions info;
  LicensesOptions licenses;
  PrioOptions prio;
  ShareOptions share;
  LogsOptions logs;
  DashboardOptions dashboard;
  SimulateOptions simulate;
  std::vector<std::string> jobs;
  ImportOptions import;
  CheckCrdsOptions check_crds;
  bool explain_json = false;
  bool as_yaml = false;  // the JSON that the command writes
  // Uses the session; empty if no cluster is needed.
  std::function<int(const Session&, Output)> on_cluster;
};

// kubectl's own options, under kubectl's names: a plugin gets them as arguments, because kubectl
// passes on everything after the plugin's name and reads none of it itself. Each command has them,
// so that they may stand anywhere behind it.
void add_connection(CLI::App& command, ConnectOptions& connect) {
  command.add_option("-n,--namespace", connect.ns, "namespace (default: the context's)");
  // A group keeps them together at the end of --help, behind the command's own.
  const auto add = [&command](const char* name, std::string& value, const char* help) {
    command.add_option(name, value, help)->group("Connection");
  };
  kube::ConfigOverrides& overrides = connect.overrides;
  add("--kubeconfig", connect.kubeconfig, "kubeconfig file");
  add("--context", overrides.context, "context in the kubeconfig");
  add("--cluster", overrides.cluster, "cluster in the kubeconfig");
  add("--user", overrides.user, "user in the kubeconfig");
  add("-s,--server", overrides.server, "URL of the API server");
  add("--token", overrides.token, "bearer token");
  add("--as", overrides.impersonate.user, "user to act as");
  command.add_option("--as-group", overrides.impersonate.groups, "group to act as, repeatable")
      ->allow_extra_args(false)
      ->group("Connection");
  add("--as-uid", overrides.impersonate.uid, "UID to act as");
  // The duration is parsed here rather than in Connection::open(), so that a wrong one is a wrong
  // command line (exit code 2) and no request is sent.
  const auto read_timeout = [&connect](const std::string& text) {
    const auto timeout = parse_request_timeout(text);
    if (!timeout) throw CLI::ValidationError{"--request-timeout", timeout.error().message};
    connect.request_timeout = *timeout;
  };
  command
      .add_option_function<std::string>("--request-timeout", read_timeout,
                                        "limit of one request: 30s, 2m; 0: none (default: 15s)")
      ->group("Connection");
}

// -A of a command that shows the whole cluster anyway, as people type it for `queue`.
void add_all_namespaces(CLI::App& command) {
  command.add_flag_callback(
      "-A,--all-namespaces", [] {}, "accepted, without effect: it shows the whole cluster");
}

// -o json, -o yaml. Only formats that the command has are accepted: an unknown one must not fall
// back to the table, which a program would try to parse. In the style of kubectl, with -o, and not
// as --json: users know the option already. A command makes JSON; run_program() makes YAML of it.
void add_json(CLI::App& command, bool& wanted, bool& as_yaml) {
  command
      .add_option_function<std::string>(
          "-o,--output",
          [&](const std::string& format) {
            wanted = true;
            as_yaml = format == "yaml";
          },
          "json, yaml: for programs")
      ->check(CLI::IsMember({"json", "yaml"}));
}

// Each add_… declares one command and notes what it does once the command line is known to be
// right: the callback runs within CLI11's parse(), so it only stores a function that run_program()
// calls with a session. The options are in `commands`, which outlives both. `queue` has an -o of
// its own, because it has a second format.
void add_queue(CLI::App& app, Commands& commands) {
  CLI::App& command = *app.add_subcommand("queue", "Show jobs, as squeue does.");
  add_connection(command, commands.connect);
  command.add_option("JOB", commands.queue.jobs,
                     "names or job IDs; job/NAME: a Job of the batch group");
  command.add_flag("-A,--all-namespaces", commands.queue.all_namespaces, "jobs of all namespaces");
  command
      // "-p a,b" and "-p a -p b" mean the same. Without allow_extra_args(false), "-p a b" would
      // take b for a second partition; here b is a job.
      .add_option("-p,--partition", commands.queue.partitions, "only jobs of these partitions: a,b")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_flag("--start", commands.queue.start,
                   "when and where waiting jobs are expected to start");
  command.add_flag("-w,--watch", commands.queue.watch,
                   "follow changes and turns until it is interrupted");
  command
      .add_option_function<std::string>(
          "-o,--output",
          [&commands](const std::string& format) {
            (format == "wide" ? commands.queue.wide : commands.queue.json) = true;
            commands.as_yaml = format == "yaml";
          },
          "json, yaml: for programs; wide: nothing is cut")
      ->check(CLI::IsMember({"json", "wide", "yaml"}));
  command.callback([&commands] {
    commands.on_cluster = [&commands](const Session& session, Output output) {
      return run_queue(session, commands.queue, output);
    };
  });
}

// --namespace has no effect here: partitions and nodes have none, and jobs of all namespaces hold
// their CPUs.
void add_info(CLI::App& app, Commands& commands) {
  CLI::App& command = *app.add_subcommand("info", "Show partitions and nodes, as sinfo does.");
  add_connection(command, commands.connect);
  add_all_namespaces(command);
  add_json(command, commands.info.json, commands.as_yaml);
  command.add_flag("-R,--list-reasons", commands.info.reasons,
                   "which nodes take no new jobs, and why");
  command.callback([&commands] {
    commands.on_cluster = [&commands](const Session& session, Output output) {
      return run_info(session, commands.info, output);
    };
  });
}

// One job only: the text is long, and two of them would be hard to tell apart.
void add_explain(CLI::App& app, Commands& commands) {
  CLI::App& command = *app.add_subcommand("explain", "Show why a job waits, or where it runs.");
  add_connection(command, commands.connect);
  command.add_option("JOB", commands.jobs, "name, job ID, or 8_3; job/NAME: of the batch group")
      ->required()
      ->expected(1);
  add_json(command, commands.explain_json, commands.as_yaml);
  command.callback([&commands] {
    commands.on_cluster = [&commands](const Session& session, Output output) {
      return run_explain(session, commands.jobs.front(), commands.explain_json, output);
    };
  });
}

void add_logs(CLI::App& app, Commands& commands) {
  CLI::App& command = *app.add_subcommand("logs", "Show what the pods of a job have said.");
  add_connection(command, commands.connect);
  command.add_option("JOB", commands.jobs, "name or job ID; job/NAME: a Job of the batch group")
      ->required()
      ->expected(1);
  command.add_flag("-f,--follow", commands.logs.follow, "go on until the pods end");
  command.add_flag("--previous", commands.logs.previous, "the start before this one");
  command.callback([&commands] {
    commands.on_cluster = [&commands](const Session& session, Output output) {
      return run_logs(session, commands.jobs.front(), commands.logs, output);
    };
  });
}

void add_dashboard(CLI::App& app, Commands& commands) {
  CLI::App& command =
      *app.add_subcommand("dashboard", "Serve a page of nodes, jobs and turns to this user.");
  add_connection(command, commands.connect);
  command.add_flag("-A,--all-namespaces", commands.dashboard.all_namespaces,
                   "jobs of all namespaces");
  command.add_option("--port", commands.dashboard.port, "of 127.0.0.1 (default 0: any free one)")
      ->check(CLI::Range(0, 65535));
  CLI::Option* const shared = command.add_flag(
      "--shared", commands.dashboard.shared, "for all users, each with a token, on all addresses");
  command
      .add_option("--host", commands.dashboard.hosts, "with --shared: a name of the page, by https")
      ->needs(shared);
  command.callback([&commands] {
    commands.on_cluster = [&commands](const Session& session, Output output) {
      return run_dashboard(session, commands.connect, commands.dashboard, output);
    };
  });
}

// -w is --weights as in sprio; in `queue` it is --watch as in kubectl.
void add_prio(CLI::App& app, Commands& commands) {
  CLI::App& command =
      *app.add_subcommand("prio", "Show what makes up waiting jobs' priorities (sprio).");
  add_connection(command, commands.connect);
  command.add_flag("-A,--all-namespaces", commands.prio.all_namespaces, "jobs of all namespaces");
  command.add_flag("-w,--weights", commands.prio.weights, "show the weights instead of the jobs");
  add_json(command, commands.prio.json, commands.as_yaml);
  command.callback([&commands] {
    commands.on_cluster = [&commands](const Session& session, Output output) {
      return run_prio(session, commands.prio, output);
    };
  });
}

void add_share(CLI::App& app, Commands& commands) {
  CLI::App& command =
      *app.add_subcommand("share", "Show shares and usage of accounts, as sshare does.");
  add_connection(command, commands.connect);
  add_all_namespaces(command);
  add_json(command, commands.share.json, commands.as_yaml);
  command.callback([&commands] {
    commands.on_cluster = [&commands](const Session& session, Output output) {
      return run_share(session, commands.share, output);
    };
  });
}

void add_licenses(CLI::App& app, Commands& commands) {
  CLI::App& command =
      *app.add_subcommand("licenses", "Show licenses in use and who waits for them.");
  add_connection(command, commands.connect);
  add_all_namespaces(command);
  add_json(command, commands.licenses.json, commands.as_yaml);
  command.callback([&commands] {
    commands.on_cluster = [&commands](const Session& session, Output output) {
      return run_licenses(session, commands.licenses, output);
    };
  });
}

// Six commands that differ in one word: all take jobs and change one field of each.
void add_control(CLI::App& app, Commands& commands) {
  struct Verb {
    const char* name;
    const char* help;
    ControlVerb verb;
  };
  for (const Verb& verb :
       {Verb{"suspend", "Suspend jobs; they keep their nodes.", ControlVerb::kSuspend},
        Verb{"resume", "Let suspended jobs run again.", ControlVerb::kResume},
        Verb{"cancel", "End jobs, as scancel does.", ControlVerb::kCancel},
        Verb{"requeue", "End running jobs and queue them again.", ControlVerb::kRequeue},
        Verb{"hold", "Keep waiting jobs from starting.", ControlVerb::kHold},
        Verb{"release", "Let held jobs start again.", ControlVerb::kRelease}}) {
    CLI::App& command = *app.add_subcommand(verb.name, verb.help);
    add_connection(command, commands.connect);
    command
        .add_option("JOB", commands.jobs, "names or job IDs; job/NAME: a Job of the batch group")
        ->required();
    command.callback([&commands, what = verb.verb] {
      commands.on_cluster = [&commands, what](const Session& session, Output output) {
        return run_control(session, what, commands.jobs, output);
      };
    });
  }
}

// Needs no cluster but for what it remembers of jobs; without that it sets no on_cluster, and
// run_program() knows it by that.
void add_simulate(CLI::App& app, Commands& commands) {
  SimulateOptions& options = commands.simulate;
  CLI::App& command =
      *app.add_subcommand("simulate", "Show what the scheduler would do, without a cluster.");
  command.add_option("FILE", options.file, "scenario file; - reads standard input")->required();
  command.add_option("--at", options.at, "show the queue at these instants (seconds): 30,60")
      ->delimiter(',');
  command.add_option("--svg", options.svg, "write a picture of nodes and time (SVG file)");
  CLI::Option* swf =
      command.add_option("--swf", options.swf, "also submit the jobs of a trace (SWF file)");
  command.add_option("--load", options.load, "stretch the trace to this load: 0.8")
      ->check(CLI::Range(0.01, 10.0))
      ->needs(swf);
  CLI::Option* records = command
                             .add_flag("--from-records", options.from_records,
                                       "also submit the jobs that are recorded, and compare")
                             ->excludes(swf);
  command.add_option("--database", options.database, "read them from its file, without a cluster")
      ->needs(records);
  command
      .add_option("--since", options.since, "those from then on, as in sacct -S (default: 7 days)")
      ->needs(records);
  command.add_option("--until", options.until, "those until then (default: now)")->needs(records);
  add_connection(command, commands.connect);
  add_json(command, options.json, commands.as_yaml);
  command.callback([&commands, &options] {
    if (!options.from_records || !options.database.empty()) return;
    commands.on_cluster = [&options](const Session& session, Output output) {
      return run_simulate(options, &session, output);
    };
  });
}

// Needs no cluster either; run_program() knows it by its files.
void add_import(CLI::App& app, Commands& commands) {
  CLI::App& command =
      *app.add_subcommand("import", "Translate slurm.conf and sacctmgr's files to YAML.");
  command
      .add_option("FILE", commands.import.files,
                  "slurm.conf, gres.conf, or output of sacctmgr (dump, show qos -P)")
      ->required();
  command.add_flag("--strict", commands.import.strict,
                   "exit with 2 for parameters without effect, too");
}

void add_check_crds(CLI::App& app, Commands& commands) {
  CLI::App& command =
      *app.add_subcommand("check-crds", "Name objects that CRDs of another version do not fit.");
  add_connection(command, commands.connect);
  command
      .add_option("FILE", commands.check_crds.paths,
                  "file with CRDs, or a folder of files; -: standard input")
      ->required();
  command.callback([&commands] {
    commands.on_cluster = [&commands](const Session& session, Output output) {
      return run_check_crds(session, commands.check_crds, output);
    };
  });
}

// Reports a wrong command line: the sentence, the way to help, exit code 2. The second line can be
// copied into the shell as it is.
int usage(Output output, const char* command, const base::Error& error) {
  output.err << "kubectl-gang " << command << ": " << error.message << "\n"
             << "Run kubectl gang " << command << " --help.\n";
  return kExitUsage;
}

// Runs a command on the cluster. An error of the connection is reported here, once for all
// commands; errors of the command itself are reported by the command, with its name.
// `use` is called at most once. It is not called if there is no kubeconfig, or a wrong one.
int on_session(const WithSession& with_session, const ConnectOptions& connect,
               const std::function<int(const Session&)>& use, Output output) {
  const base::Result<int> code = with_session(connect, use);
  if (code) return *code;
  output.err << "kubectl-gang: " << code.error().message << "\n";
  return kExitFailed;
}

// submit's options, and whatif's, are sbatch's, which follow other rules than kubectl's (-n is
// --ntasks).
// The exit codes differ on purpose: 2 if the command line is wrong, 1 if the script or the cluster
// is.
// With --dry-run=client no kubeconfig is needed: the object is made and printed, and its namespace
// is the one of the command line or none.
int submit(std::span<const std::string> words, bool only_asks, const WithSession& with_session,
           Output output) {
  const char* const command = only_asks ? "whatif" : "submit";
  // One reading of the clock for both passes over the options: "--begin=now+1hour" must mean the
  // same instant in both.
  const slurm::Now now = local_time(kube::SystemClock{}.wall());
  const base::Result<SubmitArguments> arguments = read_submit_arguments(words, now, only_asks);
  if (!arguments) return usage(output, command, arguments.error());
  if (arguments->help) {
    output.out << (only_asks ? whatif_help() : submit_help());
    return kExitOk;
  }
  const base::Result<SubmitRequest> request = read_submit(*arguments, now);
  if (!request) {
    output.err << "kubectl-gang " << command << ": " << request.error().message << "\n";
    return kExitFailed;
  }
  only_asks = only_asks || request->options.test_only;
  if (only_asks && (arguments->wait || arguments->dry_run != DryRun::kNone)) {
    return usage(output, command,
                 base::invalid_argument("--wait and --dry-run do not go with a question: no job is "
                                        "run"));
  }
  if (arguments->dry_run == DryRun::kClient) {
    return run_submit(nullptr, arguments->connect.ns, *arguments, *request, output);
  }
  ConnectOptions connect = arguments->connect;
  if (connect.overrides.context.empty()) connect.overrides.context = request->options.cluster;
  return on_session(
      with_session, connect,
      [&](const Session& session) {
        if (only_asks) return run_whatif(session, *arguments, *request, output);
        return run_submit(&session, session.ns, *arguments, *request, output);
      },
      output);
}

// Returns how many characters must be inserted, deleted or replaced to make one word of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row[b.size()];
}

// Returns "; did you mean X?" for a word that is nearly one of the others, else "".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& others) {
  constexpr std::size_t kTypoMax = 2;
  const std::string* nearest = nullptr;
  for (const std::string& other : others) {
    const std::size_t far = distance(word, other);
    if (far > kTypoMax || far >= other.size()) continue;
    if (nearest == nullptr || far < distance(word, *nearest)) nearest = &other;
  }
  return nearest == nullptr ? "" : "; did you mean " + *nearest + "?";
}

std::vector<std::string> names_of(const std::vector<CLI::App*>& commands) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands) names.push_back(command->get_name());
  return names;
}

// Reports a wrong command line in the style of all other errors. CLI11 names words that it did not
// expect from the back, so the last one is the first mistake.
int parse_error(const CLI::App& app, const std::string& command, const CLI::ParseError& error,
                Output output) {
  std::string message = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::string word = message.substr(message.find_last_of(' ') + 1);
    const CLI::App& named = command.empty() ? app : *app.get_subcommand(command);
    std::vector<std::string> options;
    for (const CLI::Option* option : named.get_options()) {
      for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
    }
    message = word + (word.starts_with('-') ? ": unknown option" : ": unexpected argument") +
              did_you_mean(word.substr(0, word.find('=')), options);
  }
  const std::string words = command.empty() ? "" : " " + command;
  output.err << "kubectl-gang" << words << ": " << message << "\nRun kubectl gang" << words
             << " --help.\n";
  return kExitUsage;
}

// Runs a command that writes JSON, and writes the same as YAML.
int as_yaml(const std::function<int(Output)>& run, Output output) {
  std::ostringstream json;
  const int code = run({.out = json, .err = output.err});
  // Nothing, or no JSON: the command failed and has said why.
  const auto value = nlohmann::json::parse(json.str(), nullptr, false);
  if (!value.is_discarded()) output.out << yaml_text(value);
  return code;
}

// The table of commands. --help, completion and the manual pages are all made from it, in this
// order. A command line without a command is not an error of CLI11; run_program() says what to do.
void add_commands(CLI::App& app, Commands& commands) {
  app.require_subcommand(0, 1);  // with at least 1 the library does not name a wrong option
  app.set_version_flag("--version", std::string{"kubectl-gang "} + KUBEGANG_VERSION);
  app.get_formatter()->column_width(26);
  add_queue(app, commands);
  app.add_subcommand("submit", "Submit a batch script or a command, as sbatch does.");
  app.add_subcommand("whatif", "Say when and where a job would start.");
  add_info(app, commands);
  add_explain(app, commands);
  add_logs(app, commands);
  add_dashboard(app, commands);
  add_prio(app, commands);
  add_share(app, commands);
  add_licenses(app, commands);
  add_control(app, commands);
  add_simulate(app, commands);
  add_import(app, commands);
  add_check_crds(app, commands);
}

}  // namespace

// 1. submit, which reads its own options
// 2. what only scripts call: completion and manual pages
// 3. the command line, by CLI11; its errors and --help end here
// 4. the command that was chosen: import, simulate, or one on a cluster
//
// Exit codes: 0; 2 if the command line is wrong, before anything is read or sent; else the
// command's own.
int run_program(std::span<const std::string> arguments, const WithSession& with_session,
                Output output) {
  if (!arguments.empty() && (arguments.front() == "submit" || arguments.front() == "whatif")) {
    return submit(arguments.subspan(1), arguments.front() == "whatif", with_session, output);
  }
  // As kubectl's users type it; its messages name the program.
  CLI::App app{"Gang jobs on Kubernetes, as Slurm's users know them.", "kubectl gang"};
  Commands commands;
  add_commands(app, commands);
  // Two underscores, as cobra's programs have it: such names are not commands and stand in no help.
  if (!arguments.empty() && arguments.front() == "__complete") {
    return run_complete(arguments.subspan(1), app, commands.connect, with_session, output);
  }
  if (!arguments.empty() && arguments.front() == "__man") {
    const std::string page = man_page(app, arguments.size() > 1 ? arguments[1] : "");
    output.out << page;
    return page.empty() ? kExitUsage : kExitOk;
  }

  // Checked here, because the library would speak of an argument that was not expected.
  const auto is_named = [&](CLI::App* command) { return command->get_name() == arguments.front(); };
  if (!arguments.empty() && arguments.front().substr(0, 1) != "-" &&
      app.get_subcommands(is_named).empty()) {
    output.err << "kubectl-gang: there is no command \"" << arguments.front() << "\""
               << did_you_mean(arguments.front(), names_of(app.get_subcommands(nullptr)))
               << "\nRun kubectl gang --help.\n";
    return kExitUsage;
  }
  // CLI11 takes its arguments from the back.
  std::vector<std::string> reversed{arguments.rbegin(), arguments.rend()};
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    // --help and --version are "errors" of the library with the code 0.
    if (error.get_exit_code() == 0) return app.exit(error, output.out, output.err);
    const bool names_command = !app.get_subcommands(is_named).empty();
    return parse_error(app, names_command ? arguments.front() : "", error, output);
  }
  if (app.get_subcommands().empty()) {
    output.err << "kubectl-gang: a command is missing (example: queue)\nRun kubectl gang --help.\n";
    return kExitUsage;
  }
  // Exactly one command was parsed. import is known by its files, a command on a cluster by its
  // function, and simulate is the one that is left.
  if (!commands.import.files.empty()) return run_import(commands.import, output);
  const auto run = [&](Output to) {
    if (!commands.on_cluster) return run_simulate(commands.simulate, nullptr, to);
    return on_session(
        with_session, commands.connect,
        [&](const Session& session) { return commands.on_cluster(session, to); }, to);
  };
  if (!commands.as_yaml) return run(output);
  if (commands.queue.watch) {
    return usage(output, "queue",
                 base::invalid_argument("--watch: has no end, and YAML has one "
                                        "document; use -o json"));
  }
  return as_yaml(run, output);
}

}  // namespace cli
