#include "launcher/srun_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/number_list.h"
#include "launcher/gpu_binding.h"
#include "launcher/message.h"
#include "launcher/step_environment.h"
#include "slurm/distribution.h"
#include "slurm/exit_code.h"
#include "slurm/gpu_binding.h"
#include "slurm/hostlist.h"

namespace launcher {
namespace {

using base::invalid_argument;

enum class Takes { kNothing, kValue, kOptional };

// An option's effect. kNone: it is read and has no effect, for the reason beside it. kMissing: it
// is refused by its name.
enum class Effect { kSet, kNone, kMissing };

struct Option {
  char letter;  // '\0': none
  std::string_view name;
  Takes takes;
  Effect effect;
};

// SOURCE: srun(1) of 22.05.
constexpr std::array kOptions = {
    Option{'n', "ntasks", Takes::kValue, Effect::kSet},
    Option{'N', "nodes", Takes::kValue, Effect::kSet},
    Option{'\0', "ntasks-per-node", Takes::kValue, Effect::kSet},
    Option{'c', "cpus-per-task", Takes::kValue, Effect::kSet},
    Option{'w', "nodelist", Takes::kValue, Effect::kSet},
    Option{'x', "exclude", Takes::kValue, Effect::kSet},
    Option{'r', "relative", Takes::kValue, Effect::kSet},
    Option{'m', "distribution", Takes::kValue, Effect::kSet},
    Option{'\0', "exact", Takes::kNothing, Effect::kSet},
    Option{'\0', "exclusive", Takes::kOptional, Effect::kSet},
    Option{'\0', "overlap", Takes::kNothing, Effect::kSet},
    Option{'I', "immediate", Takes::kOptional, Effect::kSet},
    Option{'O', "overcommit", Takes::kNothing, Effect::kSet},
    Option{'l', "label", Takes::kNothing, Effect::kSet},
    Option{'u', "unbuffered", Takes::kNothing, Effect::kSet},
    Option{'Q', "quiet", Takes::kNothing, Effect::kSet},
    Option{'\0', "multi-prog", Takes::kNothing, Effect::kSet},
    Option{'K', "kill-on-bad-exit", Takes::kOptional, Effect::kSet},
    Option{'k', "no-kill", Takes::kOptional, Effect::kSet},
    Option{'W', "wait", Takes::kValue, Effect::kSet},
    Option{'t', "time", Takes::kValue, Effect::kSet},
    Option{'\0', "tasks-per-node", Takes::kValue, Effect::kSet},
    // Only variables of the tasks: CPUs are bound as the allocation is.
    Option{'\0', "threads-per-core", Takes::kValue, Effect::kSet},
    Option{'\0', "ntasks-per-socket", Takes::kValue, Effect::kSet},
    Option{'\0', "ntasks-per-core", Takes::kValue, Effect::kSet},
    Option{'\0', "hint", Takes::kValue, Effect::kSet},
    Option{'B', "extra-node-info", Takes::kValue, Effect::kSet},
    Option{'\0', "open-mode", Takes::kValue, Effect::kSet},
    Option{'o', "output", Takes::kValue, Effect::kSet},
    Option{'e', "error", Takes::kValue, Effect::kSet},
    Option{'i', "input", Takes::kValue, Effect::kSet},
    Option{'D', "chdir", Takes::kValue, Effect::kSet},
    Option{'J', "job-name", Takes::kValue, Effect::kSet},
    Option{'\0', "export", Takes::kValue, Effect::kSet},
    Option{'\0', "jobid", Takes::kValue, Effect::kSet},
    Option{'\0', "mpi", Takes::kValue, Effect::kSet},
    Option{'\0', "pty", Takes::kOptional, Effect::kSet},
    Option{'h', "help", Takes::kNothing, Effect::kSet},
    Option{'\0', "usage", Takes::kNothing, Effect::kSet},
    Option{'V', "version", Takes::kNothing, Effect::kSet},
    Option{'\0', "quit-on-interrupt", Takes::kNothing, Effect::kSet},
    Option{'X', "disable-status", Takes::kNothing, Effect::kSet},
    // The job's own, which a step has already.
    Option{'p', "partition", Takes::kValue, Effect::kNone},
    Option{'A', "account", Takes::kValue, Effect::kNone},
    Option{'q', "qos", Takes::kValue, Effect::kNone},
    Option{'\0', "comment", Takes::kValue, Effect::kNone},
    // Memory is the job's as a whole; a pod has one limit.
    Option{'\0', "mem", Takes::kValue, Effect::kNone},
    Option{'\0', "mem-per-cpu", Takes::kValue, Effect::kNone},
    Option{'\0', "mem-per-gpu", Takes::kValue, Effect::kNone},
    // CPUs are bound as the allocation is.
    Option{'\0', "cpu-bind", Takes::kValue, Effect::kNone},
    Option{'\0', "cpu_bind", Takes::kValue, Effect::kNone},
    Option{'\0', "mem-bind", Takes::kValue, Effect::kNone},
    Option{'\0', "propagate", Takes::kOptional, Effect::kNone},
    Option{'v', "verbose", Takes::kNothing, Effect::kNone},
    // Slurm takes these for a step, too, and nothing comes of it that a script could see.
    Option{'E', "preserve-env", Takes::kNothing, Effect::kNone},
    Option{'\0', "msg-timeout", Takes::kValue, Effect::kNone},
    Option{'\0', "profile", Takes::kValue, Effect::kNone},
    Option{'\0', "acctg-freq", Takes::kValue, Effect::kNone},
    Option{'\0', "cpu-freq", Takes::kValue, Effect::kNone},
    Option{'\0', "nice", Takes::kOptional, Effect::kNone},
    Option{'\0', "wckey", Takes::kValue, Effect::kNone},
    Option{'\0', "mail-type", Takes::kValue, Effect::kNone},
    Option{'\0', "mail-user", Takes::kValue, Effect::kNone},
    Option{'\0', "contiguous", Takes::kNothing, Effect::kNone},
    Option{'\0', "mincpus", Takes::kValue, Effect::kNone},
    Option{'\0', "sockets-per-node", Takes::kValue, Effect::kNone},
    Option{'\0', "cores-per-socket", Takes::kValue, Effect::kNone},
    Option{'S', "core-spec", Takes::kValue, Effect::kNone},
    Option{'\0', "thread-spec", Takes::kValue, Effect::kNone},
    Option{'\0', "switches", Takes::kValue, Effect::kNone},
    Option{'\0', "gres-flags", Takes::kValue, Effect::kNone},
    Option{'\0', "use-min-nodes", Takes::kNothing, Effect::kNone},
    Option{'\0', "spread-job", Takes::kNothing, Effect::kNone},
    Option{'C', "constraint", Takes::kValue, Effect::kMissing},
    Option{'G', "gpus", Takes::kValue, Effect::kSet},
    Option{'\0', "gres", Takes::kValue, Effect::kSet},
    Option{'\0', "gpus-per-task", Takes::kValue, Effect::kSet},
    Option{'\0', "gpus-per-node", Takes::kValue, Effect::kSet},
    Option{'\0', "gpu-bind", Takes::kValue, Effect::kSet},
    Option{'\0', "ntasks-per-gpu", Takes::kValue, Effect::kSet},
    Option{'\0', "cpus-per-gpu", Takes::kValue, Effect::kMissing},
    Option{'\0', "container-image", Takes::kValue, Effect::kMissing},
    Option{'\0', "container-mounts", Takes::kValue, Effect::kMissing},
    Option{'\0', "het-group", Takes::kValue, Effect::kMissing},
    Option{'\0', "prolog", Takes::kValue, Effect::kMissing},
    Option{'\0', "epilog", Takes::kValue, Effect::kMissing},
    Option{'\0', "task-prolog", Takes::kValue, Effect::kMissing},
    Option{'\0', "task-epilog", Takes::kValue, Effect::kMissing},
    Option{'\0', "bcast", Takes::kOptional, Effect::kMissing},
};

base::Result<int> number_of(std::string_view option, std::string_view text, int least) {
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec == std::errc{} && read.ptr == end && value >= least) return value;
  return base::Error{slurm::kEndsWithOne, "--" + std::string{option} + ": invalid value \"" +
                                              std::string{text} + "\" (a number from " +
                                              std::to_string(least) + " up)"};
}

base::Status set_number(std::optional<int>& field, std::string_view option, std::string_view text,
                        int least) {
  const auto value = number_of(option, text, least);
  if (!value) return value.error();
  field = *value;
  return {};
}

// Reads "minutes", "minutes:seconds", "hours:minutes:seconds", "days-hours", "days-hours:minutes"
// and so on. SOURCE: srun(1), --time; 0 means no limit.
base::Status set_time(const std::string& value, SrunOptions& options) {
  constexpr std::int64_t kHours = 24;
  constexpr std::int64_t kSixty = 60;
  options.time_limit.reset();
  if (value == "UNLIMITED" || value == "INFINITE" || value == "-1") return {};
  const auto wrong = [] { return invalid_argument("Invalid --time specification"); };
  std::string_view left = value;
  const std::size_t dash = left.find('-');
  const bool has_days = dash != std::string_view::npos;
  std::vector<std::int64_t> parts;
  for (std::size_t end = 0; end != std::string_view::npos && parts.size() <= 4;) {
    end = left.find_first_of(":-");
    const auto part = number_of("time", left.substr(0, end), 0);
    if (!part) return wrong();
    parts.push_back(*part);
    if (end != std::string_view::npos) left.remove_prefix(end + 1);
  }
  const std::size_t days = has_days ? 1 : 0;
  if (parts.size() > 3 + days || (has_days && parts.size() < 2)) return wrong();
  std::int64_t seconds = 0;
  if (has_days) {
    parts.resize(4);
    seconds = ((parts[0] * kHours + parts[1]) * kSixty + parts[2]) * kSixty + parts[3];
  } else if (parts.size() == 3) {
    seconds = (parts[0] * kSixty + parts[1]) * kSixty + parts[2];
  } else {
    parts.resize(2);
    seconds = parts[0] * kSixty + parts[1];
  }
  // SOURCE: recorded: limits of steps are whole minutes, rounded up.
  if (seconds > 0) options.time_limit = std::chrono::minutes{(seconds + kSixty - 1) / kSixty};
  return {};
}

// "openmpi" is "none" of old. pmix_v4 is the version of the library that kubegang-pmix has.
base::Status set_mpi(const std::string& value, SrunOptions& options) {
  options.lists_mpi = value == "list";
  options.mpi = Mpi::kNone;
  options.mpi_name = value;
  if (value == "none" || value == "openmpi" || value == "list") return {};
  if (value == "pmi2") {
    options.mpi = Mpi::kPmi2;
  } else if (value == "pmix" || value == "pmix_v4") {
    options.mpi = Mpi::kPmix;
  } else {
    return base::Error{slurm::kEndsWithOne,
                       "Invalid MPI type '" + value + "', --mpi=list for acceptable types"};
  }
  return {};
}

base::Status set_distribution(const std::string& value, SrunOptions& options) {
  const auto read = slurm::parse_distribution(value);
  if (!read) return read.error();
  options.packing = read->packing == slurm::NodePacking::kPack     ? Packing::kPack
                    : read->packing == slurm::NodePacking::kNoPack ? Packing::kNoPack
                                                                   : Packing::kDefault;
  switch (read->nodes) {
    case slurm::NodeDistribution::kDefault:
      options.distribution = Distribution::kDefault;
      break;
    case slurm::NodeDistribution::kBlock:
      options.distribution = Distribution::kBlock;
      break;
    case slurm::NodeDistribution::kCyclic:
      options.distribution = Distribution::kCyclic;
      break;
    case slurm::NodeDistribution::kPlane:
      options.distribution = Distribution::kPlane;
      options.plane = read->plane;
      break;
    case slurm::NodeDistribution::kArbitrary:
      options.distribution = Distribution::kArbitrary;
      break;
  }
  options.distribution_within = read->within;
  return {};
}

// Without -N a step that is packed has as few nodes as hold it.
Packing packing_of(const SrunOptions& options) {
  const bool is_free = options.packing == Packing::kPack && !options.nodes;
  return is_free ? Packing::kFewest : options.packing;
}

// Reads "2", "2-4", with k and m. SOURCE: Slurm's verify_node_count(); the nodes of a job's step
// are there already, so as many are taken as there may be.
base::Status set_nodes(const std::string& value, SrunOptions& options) {
  const auto count_of = [](std::string_view text) -> std::optional<int> {
    constexpr std::int64_t kThousand = 1024;
    std::int64_t unit = 1;
    if (text.ends_with('k') || text.ends_with('K')) unit = kThousand;
    if (text.ends_with('m') || text.ends_with('M')) unit = kThousand * kThousand;
    if (unit > 1) text.remove_suffix(1);
    const auto count = number_of("nodes", text, 0);
    if (!count || *count * unit > std::int64_t{kNodesMax} * unit) return std::nullopt;
    return static_cast<int>(std::min(*count * unit, std::int64_t{kNodesMax}));
  };
  const std::size_t dash = value.find('-');
  const auto least = count_of(std::string_view{value}.substr(0, dash));
  const auto most =
      dash == std::string::npos ? least : count_of(std::string_view{value}.substr(dash + 1));
  if (!least || !most || *most < *least) {
    return invalid_argument("Invalid --nodes specification \"" + value + "\"");
  }
  options.nodes_max = dash == std::string::npos ? std::nullopt : most;
  options.nodes = least;
  if (*least == 0) options.nodes.reset();
  return {};
}

// Reads a number with a unit or without. SOURCE: srun(1), --mem: it is taken and has no effect.
base::Status check_memory(std::string_view name, std::string_view value, SrunOptions& options) {
  if (!options.memory.empty() && options.memory != name) {
    return base::Error{slurm::kEndsWithOne, "--mem and --mem-per-cpu exclude each other"};
  }
  options.memory = name;
  if (!value.empty() && std::string_view{"KMGTkmgt"}.find(value.back()) != std::string_view::npos) {
    value.remove_suffix(1);
  }
  if (!value.empty() && value.find_first_not_of("0123456789") == std::string_view::npos) return {};
  return invalid_argument("Invalid --" + std::string{name} + " specification");
}

constexpr std::array<std::string_view, 7> kUnits = {"hint",
                                                    "extra-node-info",
                                                    "threads-per-core",
                                                    "ntasks-per-socket",
                                                    "ntasks-per-core",
                                                    "sockets-per-node",
                                                    "cores-per-socket"};

// Options of sockets, cores and threads become a variable of the tasks, or nothing.
base::Status set_units(std::string_view name, const std::string& value, SrunOptions& options) {
  constexpr const char* kThreads = "SLURM_THREADS_PER_CORE";
  if (name == "hint") {
    if (value != "multithread") options.variables[kThreads] = "1";
    return {};
  }
  if (name == "extra-node-info") {
    std::string_view left = value;
    for (int part = 0; part < 3; ++part) {
      const std::size_t end = std::min(left.find(':'), left.size());
      const std::string_view count = left.substr(0, end);
      left.remove_prefix(std::min(end + 1, left.size()));
      const auto read = number_of(name, count, 1);
      if (count != "*" && !read) return read.error();
      if (part == 2 && read) options.variables[kThreads] = count;
      if (left.empty()) break;
    }
    return {};
  }
  const auto read = number_of(name, value, 1);
  if (!read) return read.error();
  if (name == "threads-per-core") options.variables[kThreads] = value;
  if (name == "ntasks-per-socket") options.variables["SLURM_NTASKS_PER_SOCKET"] = value;
  if (name == "ntasks-per-core") options.variables["SLURM_NTASKS_PER_CORE"] = value;
  return {};
}

void set_text(std::string_view name, const std::string& value, SrunOptions& options) {
  const std::pair<std::string_view, std::string*> texts[] = {
      {"nodelist", &options.nodelist},
      {"exclude", &options.exclude},
      {"output", &options.output},
      {"error", &options.error},
      {"input", &options.input},
      {"chdir", &options.directory},
      {"job-name", &options.job_name},
      {"export", &options.exports},
      {"gpus", &options.gpus},
      {"gpus-per-node", &options.gpus_per_node},
      {"gpus-per-task", &options.gpus_per_task},
      {"ntasks-per-gpu", &options.tasks_per_gpu},
      {"gpu-bind", &options.gpu_bind},
      {"gres", &options.gres},
      {"jobid", &options.job_id}};
  for (const auto& [text_name, text] : texts) {
    if (name == text_name) *text = value;
  }
}

// Errors of getopt_long(). SOURCE: recorded: the second line has no name in front.
base::Error no_option(const std::string& message) {
  return invalid_argument(message + "\nTry \"srun --help\" for more information");
}

base::Status apply(const Option& option, const std::string& value, SrunOptions& options) {
  const std::string_view name = option.name;
  if (option.effect == Effect::kMissing) {
    return no_option("--" + std::string{name} + ": is not there yet; leave it out");
  }
  if (name == "ntasks") return set_number(options.tasks, name, value, 1);
  if (name == "nodes") return set_nodes(value, options);
  if (name == "mem" || name == "mem-per-cpu") return check_memory(name, value, options);
  if (name == "time") return set_time(value, options);
  if (name == "ntasks-per-node" || name == "tasks-per-node")
    return set_number(options.tasks_per_node, name, value, 1);
  if (name == "cpus-per-task") return set_number(options.cpus_per_task, name, value, 1);
  if (std::ranges::find(kUnits, name) != kUnits.end()) return set_units(name, value, options);
  if (name == "relative") return set_number(options.relative, name, value, 0);
  if (name == "mpi") return set_mpi(value, options);
  if (name == "distribution") return set_distribution(value, options);
  if (name == "wait") {
    const auto seconds = number_of(name, value, 0);
    if (!seconds) return seconds.error();
    options.wait_s = *seconds;
  }
  if (name == "open-mode") {
    const char first = value.empty() ? ' ' : value.front();
    if (first != 'a' && first != 't') {
      return invalid_argument("--open-mode: must be append or truncate, not \"" + value + "\"");
    }
    options.appends = first == 'a';
  }
  set_text(name, value, options);
  const std::pair<std::string_view, bool*> flags[] = {
      {"exact", &options.is_exact},
      {"exclusive", &options.is_exact},
      {"overlap", &options.overlaps},
      {"immediate", &options.is_immediate},
      {"overcommit", &options.overcommits},
      {"label", &options.has_labels},
      {"unbuffered", &options.is_unbuffered},
      {"quiet", &options.is_quiet},
      {"multi-prog", &options.is_multi_prog},
      {"help", &options.shows_help},
      {"usage", &options.shows_help},
      {"version", &options.shows_version},
      {"disable-status", &options.has_no_status},
      {"quit-on-interrupt", &options.quits_on_interrupt}};
  for (const auto& [flag_name, flag] : flags) {
    if (name == flag_name) *flag = true;
  }
  if (name == "pty") options.wants_terminal = true;
  if (name == "no-kill") options.survives_nodes = value != "off";
  if (name == "kill-on-bad-exit") {
    const auto kills = number_of(name, value.empty() ? "1" : value, 0);
    if (!kills) return kills.error();
    options.kills_on_bad_exit = *kills > 0;
  }
  return {};
}

// Finds the whole name, or, as getopt_long() has it, a beginning that only one name has.
const Option* find_long(std::string_view name) {
  const auto found = std::ranges::find(kOptions, name, &Option::name);
  if (found != kOptions.end()) return &*found;
  const auto begins = [&](const Option& option) { return option.name.starts_with(name); };
  if (name.empty() || std::ranges::count_if(kOptions, begins) != 1) return nullptr;
  return &*std::ranges::find_if(kOptions, begins);
}

const Option* find_letter(char letter) {
  const auto found = std::ranges::find(kOptions, letter, &Option::letter);
  return letter == '\0' || found == kOptions.end() ? nullptr : &*found;
}

base::Error missing_value(const std::string& word) {
  return no_option(word + ": a value is missing");
}

// Reads "--name=value", "--name value", "--name".
base::Status read_long(std::span<const std::string> words, std::size_t& i, SrunOptions& options) {
  const std::string& word = words[i];
  const std::size_t equals = word.find('=');
  const Option* option = find_long(std::string_view{word}.substr(2, equals - 2));
  if (option == nullptr) return no_option("unrecognized option '" + word + "'");
  if (equals != std::string::npos) {
    if (option->takes == Takes::kNothing) return invalid_argument(word + ": takes no value");
    return apply(*option, word.substr(equals + 1), options);
  }
  if (option->takes != Takes::kValue) return apply(*option, "", options);
  if (i + 1 >= words.size()) return missing_value(word);
  return apply(*option, words[++i], options);
}

// Reads "-n4", "-n 4", "-lu"; as with getopt, an optional value is joined to its letter.
base::Status read_letters(std::span<const std::string> words, std::size_t& i,
                          SrunOptions& options) {
  const std::string& word = words[i];
  for (std::size_t at = 1; at < word.size(); ++at) {
    const Option* option = find_letter(word[at]);
    if (option == nullptr) {
      return no_option(std::string{"invalid option -- '"} + word[at] + "'");
    }
    std::string value = word.substr(at + 1);
    if (option->takes == Takes::kNothing) {
      if (const base::Status status = apply(*option, "", options); !status) return status;
      continue;
    }
    if (value.empty() && option->takes == Takes::kValue) {
      if (i + 1 >= words.size()) return missing_value(word);
      value = words[++i];
    }
    return apply(*option, value, options);
  }
  return {};
}

// SOURCE: srun(1), "INPUT ENVIRONMENT VARIABLES". Options on the command line win.
base::Status read_variables(const Variable& variable, SrunOptions& options) {
  const auto is_set = [&](const char* name) {
    const auto value = variable(name);
    return value && *value != "0";
  };
  options.has_labels = is_set("SLURM_LABELIO");
  options.is_unbuffered = is_set("SLURM_UNBUFFEREDIO");
  options.kills_on_bad_exit = is_set("SLURM_KILL_BAD_EXIT");
  options.survives_nodes = variable("SLURM_NO_KILL").has_value();
  options.is_exact = variable("SLURM_EXACT").has_value();
  options.overlaps = variable("SLURM_OVERLAP").has_value();
  options.overcommits = is_set("SLURM_OVERCOMMIT");
  if (const auto value = variable("SLURM_NTASKS")) {
    const auto tasks = number_of("SLURM_NTASKS", *value, 1);
    if (!tasks) return tasks.error();
  }
  if (const auto value = variable("SLURM_DISTRIBUTION")) {
    const std::string size = variable("SLURM_DIST_PLANESIZE").value_or("1");
    const base::Status status =
        set_distribution(*value == "plane" ? "plane=" + size : *value, options);
    if (!status) return status.error().with_context("SLURM_DISTRIBUTION");
  }
  if (const auto value = variable("SLURM_MPI_TYPE")) {
    const base::Status status = set_mpi(*value, options);
    if (!status) return status.error().with_context("SLURM_MPI_TYPE");
  }
  if (const auto value = variable("SLURM_EXPORT_ENV")) options.exports = *value;
  if (const auto value = variable("SLURM_WAIT")) {
    const auto seconds = number_of("SLURM_WAIT", *value, 0);
    if (!seconds) return seconds.error();
    options.wait_s = *seconds;
  }
  if (const auto value = variable("SRUN_CPUS_PER_TASK")) {
    return set_number(options.cpus_per_task, "SRUN_CPUS_PER_TASK", *value, 1);
  }
  return {};
}

std::optional<int> number_in(const Variable& variable, const char* name) {
  const auto text = variable(name);
  if (!text) return std::nullopt;
  const auto value = number_of(name, *text, 1);
  return value ? std::optional{*value} : std::nullopt;
}

// Returns the indexes of the nodes that -x names; those that the job does not have do not matter.
base::Result<std::vector<std::uint32_t>> excluded_of(const std::string& nodelist,
                                                     const std::vector<std::string>& all) {
  std::vector<std::uint32_t> excluded;
  const auto named = slurm::expand_hostlist(nodelist);
  if (!named) return invalid_argument("--exclude: " + named.error().message);
  for (std::uint32_t node = 0; node < all.size(); ++node) {
    if (std::ranges::find(*named, all[node]) != named->end()) excluded.push_back(node);
  }
  return excluded;
}

// Returns the indexes, among the job's nodes, of those that -w names. kInvalidArgument: others.
base::Result<std::vector<std::uint32_t>> required_of(const std::string& nodelist,
                                                     const std::vector<std::string>& all) {
  std::vector<std::uint32_t> required;
  const auto named = slurm::expand_hostlist(nodelist);
  if (!named) return invalid_argument("--nodelist: " + named.error().message);
  for (const std::string& name : *named) {
    const auto found = std::ranges::find(all, name);
    if (found == all.end()) {
      return invalid_argument("--nodelist: node " + name + " is not of this job");
    }
    const auto index = static_cast<std::uint32_t>(found - all.begin());
    if (std::ranges::find(required, index) == required.end()) required.push_back(index);
  }
  return required;
}

// SOURCE: recorded (session srun_pernode): nothing is said of a number that all tasks fit into.
std::string cannot_honor(int per_node, std::int64_t tasks, int nodes) {
  return "can't honor --ntasks-per-node set to " + std::to_string(per_node) +
         " which doesn't match the requested tasks " + std::to_string(tasks) +
         " with the number of requested nodes " + std::to_string(nodes) +
         ". Ignoring --ntasks-per-node.";
}

bool asks_for_none(const std::string& gpus) {
  return gpus.empty() || gpus == "0" || gpus == "none";
}

// Says for the tasks' launchers how many GPUs the step has, and which of them each task sees. An
// option of the job that stands in a variable counts as the step's. SOURCE: recorded (sessions
// gpu_variables_script, gpu_bind).
base::Status settle_gpus(const Variable& variable, SrunOptions& options) {
  const auto asked = [&](const std::string& option, const char* name) {
    return option.empty() ? variable(name).value_or("") : option;
  };
  const std::string each = asked(options.gpus_per_task, "SLURM_GPUS_PER_TASK");
  const std::string of_node = asked(options.gpus_per_node, "SLURM_GPUS_PER_NODE");
  const std::string by_tasks = asked(options.tasks_per_gpu, "SLURM_NTASKS_PER_GPU");
  std::string binding = asked(options.gpu_bind, "SLURM_GPU_BIND");
  const std::size_t count = asks_for_none(each) ? 0 : devices_in(each);
  if (!options.tasks_per_gpu.empty()) {
    const auto tasks = number_of("ntasks-per-gpu", options.tasks_per_gpu, 1);
    if (!tasks) return base::Error{slurm::kEndsWithOne, tasks.error().message};
    if (count > 0) {
      return base::Error{slurm::kEndsWithOne,
                         "--ntasks-per-gpu and --gpus-per-task exclude each other"};
    }
  }
  if (binding.empty() && count > 0) binding = "per_task:" + std::to_string(count);
  if (binding.empty() && !by_tasks.empty()) binding = "single:" + by_tasks;
  const auto read = slurm::parse_gpu_binding(binding.empty() ? "closest" : binding);
  if (!read) return read.error();
  if (!binding.empty()) options.variables[kGpuBinding] = binding;
  const bool has_none =
      options.gres == "none" || (options.gpus == "0" && count == 0 && asks_for_none(of_node));
  if (has_none) {
    options.variables[kGpusOfEachTask] = "0";
  } else if (count > 0 && asks_for_none(of_node)) {
    options.variables[kGpusOfEachTask] = std::to_string(count);
  }
  return {};
}

}  // namespace

base::Result<SrunOptions> read_srun_options(std::span<const std::string> words,
                                            const Variable& variable) {
  SrunOptions options;
  if (const base::Status status = read_variables(variable, options); !status) {
    return status.error();
  }
  std::size_t i = 0;
  for (; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      ++i;
      break;
    }
    if (word.size() < 2 || word.front() != '-') break;
    const base::Status status =
        word[1] == '-' ? read_long(words, i, options) : read_letters(words, i, options);
    if (!status) return status.error();
  }
  // -c says that the step takes what it asks for and no more (22.05), unless its tasks share CPUs.
  if (options.cpus_per_task && !options.overcommits) options.is_exact = true;
  const base::Status status = settle_gpus(variable, options);
  if (!status) return status.error();
  options.command.assign(words.begin() + static_cast<std::ptrdiff_t>(std::min(i, words.size())),
                         words.end());
  const bool asks = options.shows_help || options.shows_version || options.lists_mpi;
  if (options.command.empty() && !asks) {
    return base::Error{slurm::kEndsWithOne, "No command given to execute."};
  }
  return options;
}

std::vector<std::uint32_t> sorted_once(std::vector<std::uint32_t> numbers) {
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

// -m arbitrary: the nodes of the ranks as -w names them, which count with or without -n.
base::Status arrange(const SrunOptions& options, const std::vector<std::string>& all,
                     StepRequest& request) {
  const auto named = slurm::expand_hostlist(options.nodelist);
  if (!named) return invalid_argument("--nodelist: " + named.error().message);
  const std::size_t tasks =
      options.tasks ? static_cast<std::size_t>(*options.tasks) : named->size();
  if (tasks == 0) return invalid_argument("invalid number of tasks (-n 0)");
  if (tasks > kTasksMax) return invalid_argument("--ntasks: more than 65536 tasks");
  if (tasks > named->size()) {
    return invalid_argument("You asked for " + std::to_string(tasks) +
                            " tasks but hostlist specified " + std::to_string(named->size()) +
                            " nodes");
  }
  for (const std::string& name : *named) {
    const auto found = required_of(name, all);
    if (!found) return found.error();
    request.arranged.push_back(found->front());
  }
  const std::vector<std::uint32_t> nodes = sorted_once(request.arranged);
  // SOURCE: recorded: of more nodes than tasks the first of the job count, in its order.
  if (nodes.size() > tasks) request.arranged = nodes;
  request.arranged.resize(tasks);
  request.required = sorted_once(request.arranged);
  request.tasks = static_cast<std::uint32_t>(tasks);
  request.nodes = static_cast<std::uint32_t>(request.required.size());
  return {};
}

// Sets what a step asks for beside its nodes and tasks.
void set_manner(const SrunOptions& options, StepRequest& request) {
  request.cpus_per_task = static_cast<std::uint32_t>(options.cpus_per_task.value_or(1));
  request.relative = static_cast<std::uint32_t>(options.relative.value_or(0));
  request.distribution = options.distribution;
  request.distribution_within = options.distribution_within;
  request.plane = static_cast<std::uint32_t>(options.plane);
  request.packing = packing_of(options);
  request.is_exact = options.is_exact;
  request.overlaps = options.overlaps;
  request.overcommits = options.overcommits;
  request.is_immediate = options.is_immediate;
  request.mpi = options.mpi;
  request.is_unbuffered = options.is_unbuffered || options.wants_terminal;
}

// Returns as many tasks as the job's CPUs are enough for, on whichever nodes the step is. SOURCE:
// recorded.
std::optional<int> tasks_that_fit(const Variable& variable, int cpus_per_task) {
  const auto text = variable("SLURM_JOB_CPUS_PER_NODE");
  if (!text) return std::nullopt;
  std::int64_t tasks = 0;
  for (const std::uint32_t cpus : read_per_node_list(*text)) {
    tasks += std::int64_t{cpus} / cpus_per_task;
  }
  return static_cast<int>(std::min(tasks, std::int64_t{kTasksMax} + 1));
}

// Returns the number of tasks that are asked for, if it is given.
std::optional<int> tasks_of(const SrunOptions& options, const Variable& variable,
                            bool has_tasks_per_node) {
  if (options.tasks) return options.tasks;
  auto of_job = number_in(variable, "SLURM_NTASKS");
  if (!of_job) of_job = number_in(variable, "SLURM_NPROCS");
  if (of_job || has_tasks_per_node || !options.cpus_per_task) return of_job;
  return tasks_that_fit(variable, *options.cpus_per_task);
}

// SOURCE: recorded: those that -x leaves out count, too, where the job says how many it has.
int nodes_otherwise(const SrunOptions& options, const std::vector<std::string>& all, int required,
                    int allowed) {
  if (!options.counts_named) return static_cast<int>(all.size());
  return required > 0 ? required : allowed;
}

// A step has all GPUs that its job has on its nodes: there are no books of which of them are
// another step's. So it may ask for all of them, or for none.
base::Status check_gpus(const SrunOptions& options, std::size_t nodes, const Variable& variable) {
  const auto own = static_cast<std::size_t>(number_in(variable, "SLURM_GPUS_ON_NODE").value_or(0));
  const auto all = variable("SLURM_GPUS");
  const std::size_t of_job = all ? devices_in(*all) : own * nodes;
  for (const auto& [name, text] : {std::pair{"gres", &options.gres},
                                   {"gpus-per-node", &options.gpus_per_node},
                                   {"gpus", &options.gpus}}) {
    if (asks_for_none(*text)) continue;
    const std::string option = std::string{"--"} + name;
    const bool is_gres = option == "--gres";
    if (is_gres && (!text->starts_with("gpu") || text->find(',') != std::string::npos)) {
      return invalid_argument(option + " " + *text + ": is not there yet; leave it out");
    }
    const std::size_t count = is_gres && *text == "gpu" ? 1 : devices_in(*text);
    if (count == own || (option == "--gpus" && count == of_job)) continue;
    return invalid_argument(option + " " + *text + ": a step has all GPUs of its job, " +
                            std::to_string(own) +
                            " on this node; leave it out, or use --gpus-per-task");
  }
  const std::size_t each =
      asks_for_none(options.gpus_per_task) ? 0 : devices_in(options.gpus_per_task);
  if (each <= own) return {};
  return invalid_argument("--gpus-per-task " + options.gpus_per_task + ": the job has " +
                          std::to_string(own) + " on this node");
}

// 1. how many nodes: -N, else the job's, or those that -w names; at least those that -w names
// 2. how many tasks: -n, else the job's, else --ntasks-per-node on each node, else as many as -c
//    has CPUs for, else one
// 3. never more nodes than tasks
// 4. --ntasks-per-node counts only if it goes together with the two, as in Slurm
base::Result<StepPlan> plan_step(const SrunOptions& options, const Variable& variable) {
  const auto list = slurm::expand_hostlist(variable("SLURM_JOB_NODELIST").value_or(""));
  if (!list || list->empty()) return invalid_argument("SLURM_JOB_NODELIST is not set or invalid");
  StepPlan plan;
  StepRequest& request = plan.request;
  set_manner(options, request);
  base::Status status = check_gpus(options, list->size(), variable);
  const bool is_arranged = options.distribution == Distribution::kArbitrary;
  if (status && is_arranged) status = arrange(options, *list, request);
  if (!status) return status.error();
  if (is_arranged) return plan;
  auto required = required_of(options.nodelist, *list);
  if (!required) return required.error();
  const auto most = options.nodes_max ? options.nodes_max : options.nodes;
  const auto named = slurm::expand_hostlist(options.nodelist);
  if (most && named && named->size() > static_cast<std::size_t>(*most)) {
    plan.complaints.push_back(
        "Required nodelist includes more nodes than permitted by max-node count (" +
        std::to_string(named->size()) + " > " + std::to_string(*most) +
        "). Eliminating nodes from the nodelist.");
    required->resize(std::min(required->size(), static_cast<std::size_t>(*most)));
  }
  request.required = *required;
  const auto excluded = excluded_of(options.exclude, *list);
  if (!excluded) return excluded.error();
  request.excluded = *excluded;
  if (options.relative && !options.exclude.empty()) {
    return invalid_argument("--relative and --exclude exclude each other");
  }
  const auto whole = static_cast<int>(list->size() - excluded->size());
  const auto must = static_cast<int>(required->size());
  int nodes = std::max(options.nodes.value_or(nodes_otherwise(options, *list, must, whole)), must);
  if (options.nodes_max) nodes = std::max(nodes, std::min(*options.nodes_max, whole));
  // 0: not asked for.
  int per_node =
      options.tasks_per_node.value_or(number_in(variable, "SLURM_NTASKS_PER_NODE").value_or(0));
  const std::optional<int> tasks = tasks_of(options, variable, per_node > 0);
  if (tasks == 0) return invalid_argument("More processors requested than permitted");
  const std::int64_t count = tasks ? *tasks : std::int64_t{std::max(per_node, 1)} * nodes;
  if (count > std::int64_t{kTasksMax}) return invalid_argument("--ntasks: more than 65536 tasks");
  const std::string count_text = std::to_string(count);
  if (count < nodes) {
    plan.warnings.push_back("can't run " + count_text + " processes on " + std::to_string(nodes) +
                            " nodes, setting nnodes to " + count_text);
    nodes = static_cast<int>(count);
  }
  if (options.relative && *options.relative + nodes > whole) {
    const char* const source = options.nodes ? "--nodes" : "SLURM_JOB_NUM_NODES";
    return invalid_argument("--relative and " + std::string{source} +
                            " option incompatible with count of allocated nodes (" +
                            std::to_string(*options.relative) + "+" + std::to_string(nodes) + ">" +
                            std::to_string(whole) + ")");
  }
  if (nodes > whole) {
    return invalid_argument("Only allocated " + std::to_string(whole) + " nodes asked for " +
                            std::to_string(nodes));
  }
  if (per_node > 0 && count / nodes != per_node) {
    if (count > per_node) plan.warnings.push_back(cannot_honor(per_node, count, nodes));
    per_node = 0;
  }
  request.tasks = static_cast<std::uint32_t>(count);
  request.nodes = static_cast<std::uint32_t>(nodes);
  request.tasks_per_node = static_cast<std::uint32_t>(per_node);
  return plan;
}

namespace {

// Where a task stands: its rank, and its place within the ranks of the line, which are all of them
// for "*".
struct LineRank {
  std::uint32_t rank = 0;
  std::size_t offset = 0;
};

// Returns what %t or %o stands for; "" if `next` is another character.
std::string text_of(const LineRank& place, char next) {
  if (next == 't') return std::to_string(place.rank);
  return next == 'o' ? std::to_string(place.offset) : "";
}

// Splits a line at blanks; single quotes keep words together (double ones do not, in Slurm), a
// backslash keeps the next character, also a '%'.
std::vector<std::string> words_of(std::string_view line, const LineRank& place) {
  std::vector<std::string> words;
  std::string word;
  bool has_word = false;
  bool is_quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    const char next = i + 1 < line.size() ? line[i + 1] : '\0';
    const bool is_blank = c == ' ' || c == '\t';
    if (!is_quoted && is_blank) {
      if (has_word) words.push_back(std::exchange(word, {}));
      has_word = false;
      continue;
    }
    has_word = true;
    if (c == '\'') {
      is_quoted = !is_quoted;
    } else if (c == '\\' && next != '\0') {
      word += line[++i];
    } else if (c == '%' && !text_of(place, next).empty()) {
      word += text_of(place, next);
      ++i;
    } else {
      word += c;
    }
  }
  if (has_word) words.push_back(word);
  return words;
}

// Blanks and backslashes of an argument are its own.
std::string with_rank(const std::string& word, const LineRank& place) {
  std::string out;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const char next = i + 1 < word.size() ? word[i + 1] : '\0';
    const std::string text = word[i] == '%' ? text_of(place, next) : "";
    out += text.empty() ? std::string(1, word[i]) : text;
    if (!text.empty()) ++i;
  }
  return out;
}

}  // namespace

base::Result<std::vector<std::vector<std::string>>> read_multi_prog(
    std::string_view text, std::uint32_t tasks, std::span<const std::string> arguments) {
  std::vector<std::vector<std::string>> programs(tasks);
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view whole = text.substr(0, end);
    const std::vector<std::string> words = words_of(whole, {});
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words.empty() || words.front().starts_with('#')) continue;
    const std::string line = "line " + std::to_string(number) + ": ";
    if (words.size() < 2) return invalid_argument(line + "a program is missing");
    std::vector<int> ranks;
    const bool is_rest = words.front() == "*";
    if (is_rest) {
      for (std::uint32_t rank = 0; rank < tasks; ++rank) {
        if (programs[rank].empty()) ranks.push_back(static_cast<int>(rank));
      }
    } else {
      const auto listed = base::parse_number_list(words.front(), static_cast<int>(kTasksMax) - 1);
      if (!listed) return invalid_argument(line + "invalid ranks \"" + words.front() + "\"");
      ranks.assign(listed->begin(), listed->end());
    }
    std::size_t offset = 0;
    for (const int rank : ranks) {
      const auto place = static_cast<std::uint32_t>(rank);
      if (place >= tasks) {
        return invalid_argument(line + "rank " + std::to_string(rank) + ", but the step has " +
                                std::to_string(tasks) + " tasks");
      }
      if (!programs[place].empty()) {
        return invalid_argument(line + "Duplicate record for task " + std::to_string(rank));
      }
      const LineRank of_task{.rank = place, .offset = is_rest ? place : offset};
      std::vector<std::string> program = words_of(whole, of_task);
      program.erase(program.begin());
      for (const std::string& word : arguments) program.push_back(with_rank(word, of_task));
      programs[place] = std::move(program);
      ++offset;
    }
  }
  for (std::uint32_t rank = 0; rank < tasks; ++rank) {
    if (programs[rank].empty()) {
      return invalid_argument("no program for task " + std::to_string(rank));
    }
  }
  return programs;
}

}  // namespace launcher
