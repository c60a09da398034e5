#include "cli/cluster/submit.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "api/annotations.h"
#include "api/device_resources.h"
#include "api/job_size.h"
#include "cli/cluster/after_submit.h"
#include "cli/cluster/batch_script.h"
#include "cli/cluster/batch_variables.h"
#include "cli/cluster/connect.h"
#include "cli/cluster/info.h"
#include "cli/cluster/user.h"
#include "cli/files.h"
#include "cli/hostlist_field.h"
#include "cli/kube_name.h"
#include "cli/utf8.h"
#include "cli/yaml_text.h"
#include "kube/api/time_format.h"
#include "scheduler/place/constraint.h"
#include "slurm/array.h"
#include "slurm/dependency.h"
#include "slurm/distribution.h"
#include "slurm/exit_code.h"
#include "slurm/hostlist.h"
#include "slurm/launchers.h"
#include "slurm/text.h"

namespace cli {
namespace {

// How a command line of sbatch becomes a Job.
//
// 1. read_submit_arguments() takes the options apart: submit's own (--volume, --dry-run, -W …),
//    kubectl's, sbatch's. A mistake here is a wrong command line (exit code 2).
// 2. read_submit() reads the script, then sbatch's options once more after it: options of the
//    command line beat #SBATCH lines by being read last. A mistake here is one of the script (exit
//    code 1).
// 3. job_object() makes the object: spec from the options, a pod template (pod_options.h).
// 4. run_submit() sends it, waits for the operator's answer, and prints it.
//
// sbatch's options are read by slurm/sbatch.h, which knows nothing of Kubernetes.

// With '-' and the five characters of generateName an array's name has the 48 that it may have.
constexpr std::size_t kNameBytesMax = 42;

// Returns the object's name without its suffix: a DNS label that begins with a letter. It is also
// the beginning of the name of the job's service, and that may not begin with a digit. Characters
// that a label cannot have become one '-'.
// For example "my job_2.sh" becomes "my-job-2-sh", "2024-run" becomes "run", and "42" becomes
// "job".
std::string object_name(std::string_view wanted) {
  std::string name;
  for (const char c : slurm::lower_case(wanted)) {
    const bool usable = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (usable) name += c;
    if (!usable && !name.empty() && name.back() != '-') name += '-';
  }
  while (!name.empty() && (name.front() == '-' || (name.front() >= '0' && name.front() <= '9'))) {
    name.erase(0, 1);
  }
  name = name.substr(0, kNameBytesMax);
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name.empty() ? "job" : name;
}

// Returns "job" for "/a/job.sh", as a name for the object; a name that only begins with a dot stays
// whole.
std::string base_name(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos || dot == 0 ? name : name.substr(0, dot);
}

// Returns true, and sets the output, if the text is one of kubectl's formats.
bool read_format(const std::string& text, SubmitOutput& output) {
  if (text == "yaml") output = SubmitOutput::kYaml;
  if (text == "json") output = SubmitOutput::kJson;
  if (text == "name") output = SubmitOutput::kName;
  return text == "yaml" || text == "json" || text == "name";
}

// Reads kubectl's options at arguments[i], in their long forms only, since sbatch has
// its own short ones; false if the word is not one of them.
base::Result<bool> read_connection(std::span<const std::string> arguments, std::size_t& i,
                                   SubmitArguments& own) {
  kube::ConfigOverrides& overrides = own.connect.overrides;
  std::string group;
  std::string timeout;
  const std::pair<const char*, std::string*> options[] = {{"--namespace", &own.connect.ns},
                                                          {"--kubeconfig", &own.connect.kubeconfig},
                                                          {"--context", &overrides.context},
                                                          {"--cluster", &overrides.cluster},
                                                          {"--user", &overrides.user},
                                                          {"--server", &overrides.server},
                                                          {"--token", &overrides.token},
                                                          {"--as", &overrides.impersonate.user},
                                                          {"--as-group", &group},
                                                          {"--as-uid", &overrides.impersonate.uid},
                                                          {"--request-timeout", &timeout}};
  for (const auto& [name, field] : options) {
    const base::Result<std::optional<std::string>> value = long_value(arguments, i, name);
    if (!value) return value.error();
    if (!*value) continue;
    *field = **value;
    if (!group.empty()) overrides.impersonate.groups.push_back(group);
    // Two options are not plain text: a group is one more of several, and the time-out a duration.
    if (timeout.empty()) return true;
    const base::Result<base::Duration> duration = parse_request_timeout(timeout);
    if (!duration) return duration.error().with_context(name);
    own.connect.request_timeout = *duration;
    return true;
  }
  return false;
}

// Reads one of submit's own options at arguments[i]; false if it is another one.
// Tried before sbatch's options, some of which have the same names (-o); kubectl's come last.
base::Result<bool> read_own(std::span<const std::string> arguments, std::size_t& i,
                            SubmitArguments& own) {
  const std::string& word = arguments[i];
  if (word == "-h" || word == "--help") {
    own.help = true;
    return true;
  }
  // sbatch's output file, unless it names a format.
  if ((word == "-o" || word == "--output") && i + 1 < arguments.size() &&
      read_format(arguments[i + 1], own.output)) {
    ++i;
    return true;
  }
  if (word.substr(0, 2) == "-o" && read_format(word.substr(2), own.output)) return true;
  if (word.substr(0, 9) == "--output=" && read_format(word.substr(9), own.output)) return true;
  if (word == "--dry-run" || word == "--dry-run=client" || word == "--dry-run=server") {
    own.dry_run = word == "--dry-run=server" ? DryRun::kServer : DryRun::kClient;
    return true;
  }
  if (word == "-W" || word == "--wait") {
    own.wait = true;
    return true;
  }
  if (word == "--parsable") {
    own.output = SubmitOutput::kNumber;
    return true;
  }
  if (word.substr(0, 10) == "--dry-run=") {
    return base::invalid_argument(word + ": must be client or server");
  }
  const base::Result<bool> of_pod = read_pod_option(arguments, i, own.pod);
  if (!of_pod || *of_pod) return of_pod;
  // It is sbatch's, too; behind the script it is a mistake like the others.
  const auto image = long_value(arguments, i, "--image");
  if (!image) return image.error();
  if (*image) {
    own.sbatch.push_back("--image=" + **image);
    return true;
  }
  const auto ttl = long_value(arguments, i, "--ttl-after-finished");
  if (!ttl) return ttl.error();
  if (*ttl) {
    const base::Result<base::Duration> duration = kube::parse_duration(**ttl);
    if (!duration || duration->count() < 0) {
      return base::invalid_argument("--ttl-after-finished: invalid duration \"" + **ttl +
                                    "\" (examples: 1h, 30s)");
    }
    own.ttl_after_finished = *duration;
    return true;
  }
  return read_connection(arguments, i, own);
}

// SOURCE: recorded: a script that is not here is looked for in PATH.
std::string script_path(const std::string& name) {
  const char* const folders = std::getenv("PATH");
  if (name == "-" || name.find('/') != std::string::npos || folders == nullptr ||
      ::access(name.c_str(), F_OK) == 0) {
    return name;
  }
  for (const std::string& folder : slurm::split(folders, ':')) {
    const std::string path = folder + "/" + name;
    if (!folder.empty() && ::access(path.c_str(), R_OK) == 0) return path;
  }
  return name;
}

// Takes the script; its #SBATCH lines go to the reader.
base::Status read_script(std::span<const std::string> words, slurm::SbatchReader& reader,
                         SubmitRequest& request) {
  const std::string path = script_path(words.front());
  // "-" is standard input.
  const base::Result<std::string> script = read_file(path, slurm::kBatchScriptBytesMax);
  if (!script) return base::Error{slurm::kEndsWithOne, script.error().message};
  request.name = path == "-" ? "sbatch" : base_name(path);
  // Before the directives: a DOS line break is a better reason than a value that ends with one.
  if (const base::Status status = check_batch_script(*script); !status) {
    return base::Error{slurm::kEndsWithOne, status.error().with_context(path).message};
  }
  if (path != "-") request.script_file = path;
  const auto rest = words.subspan(1);
  request.batch = kube::JobBatch{.script = *script, .arguments = {rest.begin(), rest.end()}};
  const base::Status directives = reader.add_script(*script);
  return directives ? directives : directives.error().with_context(path);
}

// Refuses the values that sbatch takes and the Job's fields cannot say, with the option that says
// the same here.
base::Status check_fields(const sched::JobRequest& request) {
  if (request.time_min == slurm::kUnlimited) {
    return base::invalid_argument(
        "--time-min: the least limit cannot be none; write a time, or leave it out");
  }
  if (const auto* per_cpu = std::get_if<sched::MemoryPerCpu>(&request.memory);
      per_cpu != nullptr && per_cpu->amount.value() == 0) {
    return base::invalid_argument(
        "--mem-per-cpu 0: leave it out, or use --mem 0 for all memory of the nodes");
  }
  if (const auto parsed = sched::Constraint::parse(request.constraint); !parsed.ok()) {
    return base::invalid_argument("--constraint \"" + request.constraint +
                                  "\": " + parsed.error().message + "; write it like gpu&fast");
  }
  const std::pair<const char*, const std::vector<std::string>&> nodes[] = {
      {"--nodelist", request.required_nodes}, {"--exclude", request.excluded_nodes}};
  for (const auto& [name, names] : nodes) {
    const auto problem = hostlist_problem(slurm::compress_hostlist(names));
    if (problem) return base::invalid_argument(std::string{name} + ": " + *problem);
  }
  return {};
}

// From MiB, which is sbatch's unit, to bytes, which is that of quantities.
kube::Bytes bytes(sched::MemoryMiB amount) {
  return kube::Bytes{amount.value() << 20U};
}

// Returns the name of a partition, a QOS or an account as `import` has written it. One of which
// nothing would be left stays, and the server refuses it.
std::string name_here(const std::string& name) {
  const std::string changed = kube_name(name);
  return changed.empty() ? name : changed;
}

kube::DependencyType type_of(sched::DependencyKind kind) {
  switch (kind) {
    case sched::DependencyKind::kAfter:
      return kube::DependencyType::kAfter;
    case sched::DependencyKind::kAfterAny:
      return kube::DependencyType::kAfterAny;
    case sched::DependencyKind::kAfterOk:
      return kube::DependencyType::kAfterOk;
    case sched::DependencyKind::kAfterNotOk:
      return kube::DependencyType::kAfterNotOk;
    case sched::DependencyKind::kAfterCorr:
      return kube::DependencyType::kAfterCorr;
    case sched::DependencyKind::kSingleton:
      break;
  }
  return kube::DependencyType::kSingleton;
}

// Translates --array; nullopt if there is none.
std::optional<kube::JobArray> array_of(const std::optional<sched::ArrayRequest>& asked) {
  if (!asked) return std::nullopt;
  return kube::JobArray{slurm::format_tasks(asked->tasks), asked->at_once};
}

void set_devices(const sched::JobRequest& request, kube::JobResources& resources) {
  resources.devices = devices_of(request.devices);
  resources.devices_of_job = devices_of(request.devices_of_job);
  resources.devices_per_task = devices_of(request.devices_per_task);
  resources.devices_per_socket = devices_of(request.devices_per_socket);
  const sched::PerGpu& per_gpu = request.per_gpu;
  if (per_gpu.cpus > 0) resources.cpus_per_gpu = per_gpu.cpus;
  if (per_gpu.tasks > 0) resources.tasks_per_gpu = per_gpu.tasks;
  if (per_gpu.memory.value() > 0) resources.memory_per_gpu = bytes(per_gpu.memory);
}

// Does the reverse of the operator's translation from a Job to a request: a field that is set here
// must be read there, or the option is lost without a word.
kube::JobSpec job_spec(const sched::JobRequest& request) {
  kube::JobSpec spec;
  for (const std::string& name : request.partitions) spec.partitions.push_back(name_here(name));
  // Without -N the number of nodes follows from the tasks, so the field stays absent and the
  // scheduler decides.
  if (request.nodes_given || request.min_nodes > 1) {
    spec.resources.nodes = kube::JobNodes{.min = request.min_nodes, .max = {}};
    if (request.max_nodes != request.min_nodes) spec.resources.nodes->max = request.max_nodes;
  }
  spec.resources.tasks = request.tasks;
  spec.resources.tasks_per_node = request.tasks_per_node;
  // Fields that say what holds anyway are left out, so that a manifest of --dry-run has only what
  // the user has said.
  if (request.cpus_per_task != 1) spec.resources.cpus_per_task = request.cpus_per_task;
  spec.resources.tasks_per_socket = request.tasks_per_socket;
  spec.resources.tasks_per_core = request.tasks_per_core;
  spec.placement.min_cpus_per_node = request.min_cpus_per_node;
  spec.placement.sockets_per_node = request.sockets_per_node;
  spec.placement.cores_per_socket = request.cores_per_socket;
  spec.placement.threads_per_core = request.threads_per_core;
  if (request.overcommit) spec.resources.overcommit = true;
  if (request.use_min_nodes) spec.resources.use_min_nodes = true;
  if (request.tmp_disk.value() > 0) spec.placement.tmp_disk = bytes(request.tmp_disk);
  if (const auto* per_cpu = std::get_if<sched::MemoryPerCpu>(&request.memory)) {
    spec.resources.memory_per_cpu = bytes(per_cpu->amount);
  } else if (const auto* per_node = std::get_if<sched::MemoryPerNode>(&request.memory)) {
    if (per_node->amount.value() == 0) {
      spec.resources.all_memory = true;
    } else {
      spec.resources.memory_per_node = bytes(per_node->amount);
    }
  }
  set_devices(request, spec.resources);
  spec.resources.licenses.insert(request.licenses.begin(), request.licenses.end());
  // Absent: the partition's default, or its largest.
  spec.schedule.time_limit = request.time_limit;
  spec.schedule.time_min = request.time_min;
  spec.schedule.begin_time = request.begin_time;
  spec.schedule.deadline = request.deadline;
  spec.dependency = dependency_of(request.dependency);
  switch (request.sharing) {
    case sched::Sharing::kAny:
      break;
    case sched::Sharing::kOverSubscribe:
      spec.placement.sharing = kube::JobSharing::kOverSubscribe;
      break;
    case sched::Sharing::kNode:
      spec.placement.sharing = kube::JobSharing::kNode;
      break;
    case sched::Sharing::kUser:
      spec.placement.sharing = kube::JobSharing::kUser;
      break;
  }
  if (!request.required_nodes.empty())
    spec.placement.hostlist = slurm::compress_hostlist(request.required_nodes);
  if (!request.excluded_nodes.empty()) {
    spec.placement.exclude_hostlist = slurm::compress_hostlist(request.excluded_nodes);
  }
  if (request.contiguous) spec.placement.contiguous = true;
  if (!request.constraint.empty()) spec.placement.constraint = request.constraint;
  if (!request.qos.empty()) spec.schedule.qos = name_here(request.qos);
  if (!request.account.empty()) spec.schedule.account = name_here(request.account);
  if (request.priority) spec.schedule.priority = request.priority->value();
  if (request.nice != 0) spec.schedule.nice = request.nice;
  if (request.hold) spec.control.hold = true;
  spec.lifecycle.requeue = request.requeue;
  return spec;
}

// SOURCE: sbatch(1), "OUTPUT ENVIRONMENT VARIABLES", and recorded.
void add_option_variables(const SubmitArguments& arguments, SubmitRequest& request) {
  const slurm::BatchOptions& options = request.options;
  const auto add = [&](const char* name, const std::string& value) {
    request.batch->environment.push_back({name, value});
  };
  if (options.request.overcommit) add("SLURM_OVERCOMMIT", "1");
  if (options.appends) add("SLURM_OPEN_MODE", *options.appends ? "a" : "t");
  if (const auto threads = options.request.threads_per_core) {
    add("SLURM_THREADS_PER_CORE", std::to_string(*threads));
  }
  if (!arguments.takes_variables) return;
  if (options.exports && !slurm::same_word(*options.exports, "ALL")) {
    add("SLURM_EXPORT_ENV", *options.exports);
    add("SLURM_GET_USER_ENV", "1");
  }
  const mode_t mask = ::umask(0);
  ::umask(mask);
  std::array<char, 8> octal{};
  std::snprintf(octal.data(), octal.size(), "%04o", mask);
  add("SLURM_UMASK", octal.data());
  if (char* const here = ::getcwd(nullptr, 0)) {
    add("SLURM_SUBMIT_DIR", here);
    std::free(here);
  }
  std::array<char, HOST_NAME_MAX + 1> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) add("SLURM_SUBMIT_HOST", host.data());
}

// Returns `exports` without ALL; then a warning names what stays here.
std::string only_listed(const std::string& exports, std::vector<std::string>& warnings) {
  constexpr std::size_t kNamesMax = 12;
  std::string listed = "NONE";
  bool has_all = false;
  std::set<std::string> names;
  for (const std::string& word : slurm::split(exports, ',')) {
    if (slurm::same_word(word, "ALL")) {
      has_all = true;
    } else {
      listed += "," + word;
      names.insert(word.substr(0, word.find('=')));
    }
  }
  std::vector<std::string> left;
  for (const std::string& variable : own_variables()) {
    const std::string name = variable.substr(0, variable.find('='));
    if (!names.contains(name)) left.push_back(name);
  }
  if (!has_all || left.empty()) return listed;
  std::ranges::sort(left);
  std::string text;
  for (std::size_t i = 0; i < std::min(left.size(), kNamesMax); ++i) {
    text += (i == 0 ? "" : ", ") + left[i];
  }
  if (left.size() > kNamesMax) text += " and " + std::to_string(left.size() - kNamesMax) + " more";
  warnings.push_back("variables of this machine are not taken along (" + text +
                     "): list those that the script needs, as --export=NAME,…, or call sbatch "
                     "inside the cluster");
  return listed;
}

// The script gets the variables that --export names. All of them go along only from inside the
// cluster: those of a laptop mean nothing in a pod, and break much (PATH, HOME).
base::Status take_variables(const SubmitArguments& arguments, SubmitRequest& request) {
  slurm::BatchOptions& options = request.options;
  std::string exports = options.exports.value_or(arguments.takes_variables ? "ALL" : "NONE");
  if (!arguments.takes_variables || !is_in_cluster()) {
    std::vector<std::string> unsaid;
    exports = only_listed(exports,
                          arguments.is_allocation || options.test_only ? unsaid : options.warnings);
  }
  std::vector<std::string> left_out;
  auto variables = exported_variables(exports, own_variables(), left_out);
  if (!variables) return variables.error();
  request.batch->environment = std::move(variables).value();
  // SOURCE: sbatch(1), "OUTPUT ENVIRONMENT VARIABLES": the option as it was written.
  if (!options.dependency.empty()) {
    request.batch->environment.push_back({"SLURM_JOB_DEPENDENCY", options.dependency});
  }
  for (const auto& [name, value] : options.variables) {
    request.batch->environment.push_back({name, value});
  }
  if (!options.distribution.empty()) {
    const auto read = slurm::parse_distribution(options.distribution);
    if (!read) return read.error();
    request.batch->environment.push_back({"SLURM_DISTRIBUTION", slurm::distribution_text(*read)});
    if (read->nodes == slurm::NodeDistribution::kArbitrary) {
      sched::JobRequest& job = options.request;
      if (job.required_nodes.empty()) {
        return base::Error{slurm::kEndsWithOne,
                           "With Arbitrary distribution you need to specify a nodelist or hostfile "
                           "with the -w option"};
      }
      // SOURCE: recorded: however often a node is named.
      if (!job.tasks) job.tasks = static_cast<int>(job.required_nodes.size());
    }
    if (read->nodes == slurm::NodeDistribution::kPlane) {
      request.batch->environment.push_back({"SLURM_DIST_PLANESIZE", std::to_string(read->plane)});
    }
  }
  add_option_variables(arguments, request);
  options.warnings.insert(options.warnings.end(), left_out.begin(), left_out.end());
  return {};
}

// A script that submits jobs itself needs a token, which it does not get by itself.
void warn_of_clients(const PodOptions& pod, SubmitRequest& request) {
  if (!request.batch || !pod.service_account.empty() || !pod.template_file.empty()) return;
  const auto call = slurm::client_in_script(request.batch->script);
  if (!call) return;
  request.options.warnings.push_back(
      "line " + std::to_string(call->line) + ": calls " + std::string{call->launcher} +
      ", which asks the API server, and the job's pods get no token; --service-account names an "
      "account that may");
}

// A command has no files of its own, and no launcher.
void warn_of_files(slurm::BatchOptions& options) {
  if (options.signal) {
    options.warnings.emplace_back("--signal has no effect: only a batch script gets signals");
  }
  if (options.request.array) {
    options.warnings.emplace_back(
        "the logs of most tasks go with their pods: of those that have ended, the last 100 that "
        "failed and 10 that succeeded keep pods and logs; write what you need to files");
  }
  if (!options.output && !options.error && !options.input) return;
  options.warnings.emplace_back(
      "--output, --error and --input have no effect: a command's output is the log of its pods");
}

// Returns what sbatch's options say about the script's files and names.
kube::JobBatch batch_of(const SubmitRequest& request) {
  kube::JobBatch batch = *request.batch;
  const slurm::BatchOptions& options = request.options;
  batch.name = request.name;
  batch.output = options.output.value_or("");
  batch.error = options.error.value_or("");
  batch.input = options.input.value_or("");
  batch.comment = options.comment;
  if (options.signal) {
    batch.signal =
        kube::BatchSignal{.name = options.signal->name,
                          .before = options.signal->before,
                          .target = options.signal->to_script ? kube::SignalTarget::kScript
                                                              : kube::SignalTarget::kSteps};
  }
  if (options.working_directory) batch.working_directory = *options.working_directory;
  if (options.appends) {
    batch.open_mode = *options.appends ? kube::OpenMode::kAppend : kube::OpenMode::kTruncate;
  }
  return batch;
}

// Returns the error of an option, whose last word is `last`. kubectl's -n is a namespace, and a
// name is not a number of tasks.
base::Error with_hint(base::Error error, const std::string& option, const std::string& last) {
  const std::string value = option.size() > 2 ? option.substr(2) : last;
  if (option.substr(0, 2) == "-n" && value.find_first_not_of("0123456789-") == 0) {
    error.message += "; -n is --ntasks here, and a namespace is --namespace";
  }
  return error;
}

// Refuses submit's own options behind the script. As with sbatch they would be the script's, but
// users of kubectl write options last, and a --dry-run that is not seen submits a job.
base::Status check_script_arguments(std::span<const std::string> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") return {};
    SubmitArguments ignored;
    std::size_t last = i;
    const base::Result<bool> own = read_own(words, last, ignored);
    if (own && !*own && word != "-n" && word != "--parsable") continue;
    return base::invalid_argument(
        slurm::in_quotes(word) +
        " stands after the script and would be its argument; write it before the script, or -- "
        "between the script and its arguments");
  }
  return {};
}

// Returns ok if all words are valid UTF-8. The writer of JSON knows no other text, whatever becomes
// of a word: an option's value, a part of the command, or a name in the request.
base::Status check_utf8(std::span<const std::string> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!line_that_is_not_utf8(words[i])) continue;
    return base::invalid_argument("word " + std::to_string(i + 1) + " after submit: must be UTF-8");
  }
  return {};
}

// The object in the form that was asked for. Without a server there is only the beginning of a
// name.
void print_job(const kube::Job& job, const SubmitArguments& arguments, Output output) {
  const char* const note = arguments.dry_run == DryRun::kClient   ? " (dry run)"
                           : arguments.dry_run == DryRun::kServer ? " (server dry run)"
                                                                  : "";
  const std::string name =
      "job.kubegang.io/" +
      (job.metadata.name.empty() ? job.metadata.generate_name + "…" : job.metadata.name);
  switch (arguments.output) {
    case SubmitOutput::kSentence:
      output.out << name << " created" << note;
      if (job.status.job_id) output.out << ", job ID " << *job.status.job_id;
      output.out << "\n";
      break;
    case SubmitOutput::kName:
      output.out << name << "\n";
      break;
    case SubmitOutput::kNumber:
      output.out << job.status.job_id.value_or(0) << "\n";
      break;
    case SubmitOutput::kJson:
      output.out << kube::encode(job).dump(2) << "\n";
      break;
    case SubmitOutput::kYaml:
      output.out << yaml_text(kube::encode(job));
      break;
  }
}

// Creates the job and waits for the operator's answer. A job without a number is one that no
// operator has seen: with --parsable, for which the number is all, it is deleted.
base::Result<kube::Job> submit_job(const Session& session, const kube::Job& job,
                                   const SubmitArguments& arguments, Output output) {
  base::Result<kube::Job> created = session.client.create<kube::Job>(job);
  if (!created) return created;
  if (arguments.output == SubmitOutput::kNumber) {
    return number_or_take_back(session, *created, output);
  }
  base::Result<kube::Job> numbered = wait_for_number(session, *created, output);
  if (numbered && (numbered->status.job_id || numbered->status.state)) return numbered;
  if (!numbered && numbered.error().code == base::Code::kInvalidArgument) return numbered;
  output.err << "kubectl-gang submit: warning: "
             << (numbered ? "no operator has numbered it within 60 s"
                          : "its number is not known: " + numbered.error().message)
             << "\n";
  return numbered ? numbered : created;
}

}  // namespace

base::Status check_devices(const Session& session, const kube::Job& job) {
  const kube::JobResources& resources = job.spec.resources;
  std::vector<kube::JobDevice> asked = resources.devices;
  for (const auto* more :
       {&resources.devices_of_job, &resources.devices_per_task, &resources.devices_per_socket}) {
    asked.insert(asked.end(), more->begin(), more->end());
  }
  const auto is_gpu = [](const kube::JobDevice& each) { return each.name == "gpu"; };
  if (std::ranges::all_of(asked, is_gpu)) return {};
  const base::Result<kube::DevicesConfig> config = read_devices_config(session);
  if (!config) return {};
  const std::vector<std::string> names = kube::device_names(*config);
  for (const kube::JobDevice& each : asked) {
    if (std::ranges::find(names, each.name) != names.end()) continue;
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    return base::Error{slurm::kEndsWithOne, "--gres " + each.name +
                                                ": no node has devices of that name; the "
                                                "cluster counts " +
                                                all};
  }
  return {};
}

std::vector<kube::JobDevice> devices_of(const sched::Devices& devices) {
  std::vector<kube::JobDevice> all;
  for (const sched::DeviceCount& each : devices) {
    all.push_back({each.kind.name, each.kind.type, each.count});
  }
  return all;
}

std::optional<kube::JobDependency> dependency_of(const sched::Dependency& asked) {
  if (asked.terms.empty()) return std::nullopt;
  kube::JobDependency dependency;
  if (asked.any) dependency.match = kube::DependencyMatch::kAny;
  if (asked.kill_invalid) {
    dependency.if_never_satisfied =
        *asked.kill_invalid ? kube::NeverSatisfied::kCancel : kube::NeverSatisfied::kWait;
  }
  for (const sched::DependencyTerm& term : asked.terms) {
    kube::DependencyTerm& one = dependency.terms.emplace_back();
    one.type = type_of(term.kind);
    if (term.kind != sched::DependencyKind::kSingleton) one.job_id = term.job.number();
    one.task = term.job.task();
    if (term.delay > base::Duration{0}) one.delay = term.delay;
  }
  return dependency;
}

// 1. Options up to the first word that is none, or "--": submit's own, kubectl's, and sbatch's.
// 2. The rest is the script and its arguments, or the command after "--". Between a script and its
//    arguments "--" says that all of them are the script's.
// 3. Options that exclude each other are refused before the script is opened. Nothing is read from
// disk here, so a wrong command line is reported even if the script is missing.
base::Result<SubmitArguments> read_submit_arguments(std::span<const std::string> arguments,
                                                    slurm::Now now, bool only_asks) {
  if (const base::Status status = check_utf8(arguments); !status) return status.error();
  SubmitArguments read;
  slurm::SbatchReader checked{now};
  std::size_t i = 0;
  for (; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    // A lone "-" is the script on standard input.
    if (word.size() < 2 || word.front() != '-' || word == "--") break;
    const base::Result<bool> own = read_own(arguments, i, read);
    if (!own) return own.error();
    if (read.help) return read;
    if (*own) continue;
    // Checked here, where the position is known, and read again with the script: what is given on
    // the command line wins over #SBATCH lines, wherever it is read.
    const std::size_t first = i;
    const base::Status status = checked.add_option(arguments, i);
    if (!status) return with_hint(status.error(), word, arguments[i]);
    for (std::size_t at = first; at <= i; ++at) read.sbatch.push_back(arguments[at]);
  }
  // Either "--" and a command, which is passed on as it is, or a script, whose text is.
  const bool dashes = i < arguments.size() && arguments[i] == "--";
  read.is_script = i < arguments.size() && !dashes;
  if (dashes) ++i;
  read.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i), arguments.end());
  if (read.is_script && read.command.size() > 1 && read.command[1] == "--") {
    read.command.erase(read.command.begin() + 1);
  } else if (read.is_script) {
    const base::Status status = check_script_arguments(std::span{read.command}.subspan(1));
    if (!status) return status.error();
  }
  if (dashes && read.command.empty()) {
    return base::invalid_argument("--: must be followed by a command");
  }
  const base::Result<slurm::BatchOptions> options = checked.finish();
  if (!options) return options.error();
  if (options->wrap && !read.command.empty()) {
    return base::invalid_argument("--wrap: cannot be combined with a script or a command");
  }
  if (!options->wrap && read.command.empty() && only_asks) read.sbatch.emplace_back("--wrap=true");
  if (!options->wrap && read.command.empty() && !only_asks) {
    return base::invalid_argument("say what to run: a batch script, --wrap=COMMAND, or -- COMMAND");
  }
  if (read.wait && read.dry_run != DryRun::kNone) {
    return base::invalid_argument("--wait: with --dry-run there is no job to wait for");
  }
  if (read.output == SubmitOutput::kNumber && read.dry_run != DryRun::kNone) {
    return base::invalid_argument("--parsable: with --dry-run there is no number to print");
  }
  return read;
}

// 1. the script with its #SBATCH lines, or the command behind --
// 2. the command line's options, which win because they are read last
// 3. --wrap, which only the options can tell, as a script of its own
// 4. the name: --job-name, else that of the script or program
base::Result<SubmitRequest> read_submit(const SubmitArguments& arguments, slurm::Now now) {
  SubmitRequest request;
  request.ttl_after_finished = arguments.ttl_after_finished;
  slurm::SbatchReader reader{now};
  if (arguments.is_script) {
    const base::Status status = read_script(arguments.command, reader, request);
    if (!status) return status.error();
  } else if (!arguments.command.empty()) {
    request.command = arguments.command;
    request.name = base_name(arguments.command.front());
  }
  const base::Status of_variables = reader.add_variables(arguments.variables);
  if (!of_variables) return of_variables.error();
  const base::Status added = reader.add(arguments.sbatch, "");
  if (!added) return added.error();
  base::Result<slurm::BatchOptions> options = reader.finish();
  if (!options) return options.error();
  if (const auto& deadline = options->request.deadline; deadline && *deadline <= now.instant) {
    // SOURCE: slurmctld's sentence, with which sbatch ends with 1.
    return base::Error{slurm::kEndsWithOne,
                       "--deadline: has passed: Requested time limit is invalid"};
  }
  request.options = std::move(options).value();
  if (request.options.wrap && request.command.empty() && !request.batch) {
    // SOURCE: sbatch's own text.
    const std::string script =
        "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n" + *request.options.wrap + "\n";
    if (const base::Status status = check_batch_script(script); !status) {
      return status.error().with_context("--wrap");
    }
    request.batch = kube::JobBatch{.script = script};
    request.name = "wrap";
  }
  if (!request.options.request.name.empty()) request.name = request.options.request.name;
  const auto pod_template =
      pod_template_of(arguments.pod, request.options, request.batch ? "" : kImageDefault);
  if (!pod_template) return pod_template.error();
  request.pod_template = kube::RawJson{*pod_template};
  if (!request.batch) {
    warn_of_files(request.options);
    const base::Status launchers =
        check_launchers(request.command, kube::has_one_pod(job_spec(request.options.request)));
    if (!launchers) return launchers.error().with_context(arguments.command.front());
  } else if (const base::Status taken = take_variables(arguments, request); !taken) {
    return taken.error();
  }
  warn_of_clients(arguments.pod, request);
  return request;
}

// SOURCE: recorded: a name that begins with a dot stays, another one is below the working
// directory.
std::string shown_command(const SubmitRequest& request) {
  std::string text = request.script_file;
  if (text.front() != '/' && text.front() != '.') {
    const std::string folder = request.options.working_directory
                                   ? *request.options.working_directory
                                   : std::filesystem::current_path().string();
    text.insert(0, folder + "/");
  }
  for (const std::string& argument : request.batch->arguments) text += " " + argument;
  return text;
}

// The first container of the pod template runs on each of the job's nodes. It asks for no
// resources: the operator puts in the CPUs and the memory of the allocation once it is known.
// Everything that can be checked without a cluster is checked here, so that --dry-run=client finds
// it.
base::Result<kube::Job> job_object(const SubmitRequest& request, const std::string& ns) {
  const sched::JobRequest& asked = request.options.request;
  const base::Status fields = check_fields(asked);
  if (!fields) return fields.error();
  kube::Job job;
  job.metadata.ns = ns;
  // The API server adds five random characters, so the same script can be submitted again and
  // again.
  job.metadata.generate_name = object_name(request.name) + "-";
  if (request.options.has_empty_name) {
    job.metadata.annotations[std::string{kube::kAnnotationName}] = "";
  }
  job.spec = job_spec(asked);
  // SOURCE: recorded: GPUs that follow from the number of tasks alone are not shown as asked for.
  if (asked.per_gpu.tasks > 0 && !request.options.variables.contains("SLURM_GPUS")) {
    job.spec.resources.devices_of_job.clear();
  }
  job.spec.array = array_of(asked.array);
  job.spec.lifecycle.ttl_after_finished = request.ttl_after_finished;
  nlohmann::json pod_template = request.pod_template.json();
  nlohmann::json& container = pod_template["spec"]["containers"][0];
  if (request.batch) {
    job.spec.batch = batch_of(request);
    if (!request.script_file.empty()) {
      job.metadata.annotations[std::string{kAnnotationCommand}] = shown_command(request);
    }
  } else {
    container["command"] = request.command;
    if (request.options.working_directory) {
      container["workingDir"] = *request.options.working_directory;
    }
  }
  job.spec.pod_template = kube::RawJson{pod_template};
  return job;
}

// 1. warnings about options that have no effect
// 2. the object; with --dry-run=client it is not sent
// 3. the answer of the server and of the operator: with -o yaml or json it has the name, the
//    defaults that were given, and the number
// 4. with --wait, the job's end
int run_submit(const Session* session, const std::string& ns, const SubmitArguments& arguments,
               const SubmitRequest& request, Output output) {
  const auto fail = [&](const base::Error& error) {
    output.err << "kubectl-gang submit: " << error.message << "\n";
    return kExitFailed;
  };
  for (const std::string& warning : request.options.warnings) {
    output.err << "kubectl-gang submit: warning: " << warning << "\n";
  }
  base::Result<kube::Job> job = job_object(request, ns);
  if (!job) return fail(job.error());
  if (arguments.dry_run != DryRun::kClient) {
    if (const base::Status known = check_devices(*session, *job); !known) {
      return fail(known.error());
    }
    set_user(*session, *job);
  }
  std::string comments;
  if (arguments.dry_run == DryRun::kServer) {
    job = session->client.create<kube::Job>(*job, {.dry_run = true});
    if (!job) return fail(job.error());
    if (const base::Status status = check_names(*session, *job); !status) {
      return fail(status.error());
    }
    base::Result<std::string> added = pod_defaults_comments(*session, *job);
    if (!added && added.error().code == base::Code::kInvalidArgument) return fail(added.error());
    comments =
        added ? *std::move(added) : "# podDefaults are not shown: " + added.error().message + "\n";
    output.err << "kubectl-gang submit: the server, partition, QOS and account were asked; only a "
                  "submission shows whether nodes can hold the job\n";
  } else if (arguments.dry_run == DryRun::kNone) {
    job = submit_job(*session, *job, arguments, output);
    if (!job) return fail(job.error());
  }
  print_job(*job, arguments, output);
  if (arguments.output == SubmitOutput::kYaml) output.out << comments;
  const bool waits = arguments.wait || request.options.waits;
  if (!waits || arguments.dry_run != DryRun::kNone) return kExitOk;
  // A script that reads this output must have the job's name before the wait.
  output.out.flush();
  // JSON and YAML must stay one document, and a name one word: then the end is reported on the
  // other stream.
  std::ostream& told = arguments.output == SubmitOutput::kSentence ? output.out : output.err;
  const base::Result<int> code = wait_for_end(*session, *job, {.out = told, .err = output.err});
  return code ? *code : fail(code.error());
}

// Written by hand, since the options are not CLI11's: completion and the manual page are made from
// this text, so an option that is missing here is missing there.
std::string submit_help() {
  return R"(Submit a batch script or a command as a gang job.

Usage: kubectl gang submit [OPTIONS] SCRIPT [ARGUMENTS]
       kubectl gang submit [OPTIONS] --wrap=COMMAND
       kubectl gang submit [OPTIONS] -- COMMAND [ARGUMENTS]

A job that the operator refuses, or that no nodes can ever hold, is deleted
again (exit code 1). Write -- before ARGUMENTS that are options of submit, too.

#SBATCH lines of the script are read; options on the command line override
them. The script runs once, on the first of the job's nodes, and srun starts its
tasks; a COMMAND runs on each of the nodes. SCRIPT may be - (standard input).

Options are sbatch's:
  -N, --nodes MIN[-MAX]        nodes            -n, --ntasks N         tasks
  -c, --cpus-per-task N                         --ntasks-per-node N
  --mem SIZE, --mem-per-cpu SIZE                -p, --partition NAME[,NAME]
  -t, --time LIMIT, --time-min LIMIT            -b, --begin, --deadline INSTANT
  -a, --array TASKS[%AT-A-TIME]                 0-15, 1,3,5-7, 0-15:4, 0-99%10
  -d, --dependency KIND:JOB[:JOB][,...]         --kill-on-invalid-dep yes|no
                               (after, afterany, afterok, afternotok, aftercorr,
                               singleton)
  --gres NAME[:TYPE][:N], --gpus-per-node [TYPE:]N     devices on each node
  -G, --gpus [TYPE:]N, --gpus-per-task [TYPE:]N        of the job, of a task
      --gpus-per-socket [TYPE:]N  of a socket; needs --sockets-per-node
  --cpus-per-gpu, --ntasks-per-gpu N            --mem-per-gpu SIZE
  -L, --licenses NAME[:N][,NAME[:N]]
  -w, --nodelist, -x, --exclude HOSTLIST        -C, --constraint EXPRESSION
  -s, --oversubscribe, --exclusive[=user]       --contiguous
  --ntasks-per-socket, --ntasks-per-core N      -O, --overcommit
  --mincpus, --sockets-per-node, --cores-per-socket, --threads-per-core N
  -B, --extra-node-info S[:C[:T]]               --hint [no]multithread
  --tmp SIZE                   ephemeral disk   --use-min-nodes
  -J, --job-name NAME          -q, --qos NAME   -A, --account NAME   -H, --hold
  --nice[=N], --priority N     --requeue, --no-requeue
  -D, --chdir DIRECTORY        -o, -e, -i, --output, --error, --input FILE
  --open-mode append|truncate  --comment TEXT   --export NONE|LIST
  -m, --distribution block|cyclic|plane=N       of tasks of the script's steps
  --test-only                  run nothing, but say when it would start (whatif)
  --signal [B:]SIGNAL[@SECONDS]   before the time limit

and these:
  --image IMAGE                container image (default: the partition's, else
                               debian:stable-slim); also --container-image;
                               docker:IMAGE as with Shifter
  --volume CLAIM:PATH[:ro]     mount a claim, or with /FOLDER:PATH a folder of
                               the nodes; also --container-mounts
  --env NAME=VALUE             variable of the containers
  --service-account NAME       give the pods its token (default: no token)
  --template FILE              pod template to begin with, in YAML
  --dry-run[=client|server]    send nothing, or only let the server check it
                               (-o yaml shows what the partition adds, too)
  -o yaml|json|name            print the object in this format
  --parsable                   print the job's number alone
  -W, --wait                   wait for the job's end, exit with its exit code
  --ttl-after-finished DURATION
                               delete the job that long after its end (1h, 30s)
  --namespace NAME, --kubeconfig FILE, --context NAME, --cluster NAME,
  --user NAME, --server URL, --token TOKEN, --as USER, --as-group GROUP,
  --as-uid UID, --request-timeout DURATION     as kubectl has them
)";
}

}  // namespace cli
