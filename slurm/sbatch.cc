#include "slurm/sbatch.h"

#include <algorithm>
#include <array>

#include "base/natural_order.h"
#include "scheduler/model/cluster.h"
#include "slurm/array.h"
#include "slurm/dependency.h"
#include "slurm/distribution.h"
#include "slurm/exit_code.h"
#include "slurm/gpu_binding.h"
#include "slurm/hostlist.h"
#include "slurm/licenses.h"
#include "slurm/text.h"

namespace slurm {

// sbatch's options, from argv or #SBATCH words to one sched::JobRequest.
//
// Every option is one row of kOptions: its name, its letter, the way it takes a value, and the
// action that stores it. The reader walks over the words once:
// 1. split a word into option and value as getopt_long() does (add_long, add_letters);
// 2. look the option up and run its action, which checks the value by itself and overwrites what an
//    earlier option stored, so the last one wins;
// 3. after the last word, finish() settles what several options decide together. It cannot be done
//    earlier, because an option that comes later may change either side.
//
// An action never reads another option's field.

namespace {

using Signal = std::pair<std::string_view, int>;
// Those that Slurm takes by name. SOURCE: Slurm's sig_name2num(); the numbers are Linux's.
constexpr std::array<Signal, 16> kSignals = {{{"HUP", 1},
                                              {"INT", 2},
                                              {"QUIT", 3},
                                              {"ABRT", 6},
                                              {"KILL", 9},
                                              {"USR1", 10},
                                              {"USR2", 12},
                                              {"ALRM", 14},
                                              {"TERM", 15},
                                              {"CONT", 18},
                                              {"STOP", 19},
                                              {"TSTP", 20},
                                              {"TTIN", 21},
                                              {"TTOU", 22},
                                              {"URG", 23},
                                              {"XCPU", 24}}};

// Finds "USR1", "sigusr1" or "10"; null: none of them.
const Signal* find_signal(std::string_view text) {
  const std::string_view word = same_word(text.substr(0, 3), "SIG") ? text.substr(3) : text;
  const auto* const found = std::ranges::find_if(kSignals, [&](const Signal& each) {
    return same_word(word, each.first) || text == std::to_string(each.second);
  });
  return found == kSignals.end() ? nullptr : found;
}

}  // namespace

std::optional<int> signal_number(std::string_view text) {
  const Signal* const found = find_signal(text);
  return found == nullptr ? std::nullopt : std::optional{found->second};
}

constexpr int kCountMax = 1'000'000;  // nodes, tasks or CPUs of one job

// An option that may take a value takes it only in the same word ("--nice=5"), as getopt_long() has
// it.
enum class Takes { kNothing, kValue, kMaybeValue };

// The action of each option; `name` is as shown to the user, with its dashes. It is a friend of the
// reader, so that the table can hold plain function pointers. An action that needs no value ignores
// `value`; `has_value` tells "--nice" from "--nice=".
struct SbatchOptionActions {
  using Self = SbatchReader&;
  using Text = std::string_view;
  using Action = base::Status (*)(Self, Text name, Text value, bool has_value);

  // Counts are bounded, so that products of them (tasks × CPUs) stay within 64 bits everywhere.
  template <int minimum>
  static base::Status count(std::optional<int>& field, Text name, Text value) {
    const base::Result<std::int64_t> read =
        parse_integer(name, value, {.min = minimum, .max = kCountMax});
    if (!read) return read.error();
    field = static_cast<int>(*read);
    return {};
  }

  // Zero is refused: a job of no tasks or no CPUs would hold nothing and could be started anywhere.
  template <std::optional<int> sched::JobRequest::*field>
  static base::Status count_of(Self self, Text name, Text value, bool) {
    return task_count(self.options_.request.*field, name, value);
  }
  static base::Status task_count(std::optional<int>& field, Text name, Text value) {
    const base::Status status = count<1>(field, name, value);
    return status ? status : base::Error{kEndsWithOne, status.error().message};
  }

  // A flag of the script cannot be taken back on the command line: sbatch has no option that
  // switches one off. The exceptions, such as --no-requeue, have actions of their own.
  template <bool sched::JobRequest::*field>
  static base::Status set(Self self, Text, Text, bool) {
    self.options_.request.*field = true;
    return {};
  }

  // Three-valued: without either option the cluster's JobRequeue decides.
  template <bool wanted>
  static base::Status requeue(Self self, Text, Text, bool) {
    self.options_.request.requeue = wanted;
    return {};
  }

  // May be empty, because the scheduler never reads these texts.
  template <std::optional<std::string> BatchOptions::*field>
  static base::Status text_of(Self self, Text, Text value, bool) {
    self.options_.*field = std::string{value};
    return {};
  }

  // SOURCE: Shifter: [TYPE:]IMAGE; of the types docker alone is in a registry.
  static base::Status image(Self self, Text name, Text value, bool has_value) {
    for (const Text type : {"id:", "custom:", "local:"}) {
      if (value.starts_with(type)) {
        return base::invalid_argument(std::string{name} + " " + in_quotes(value) +
                                      ": is only known to Shifter; name an image of a registry");
      }
    }
    constexpr Text kDocker = "docker:";
    if (value.starts_with(kDocker)) value.remove_prefix(kDocker.size());
    if (value.starts_with("//")) value.remove_prefix(2);
    if (value.empty()) return base::invalid_argument(std::string{name} + ": names no image");
    return text_of<&BatchOptions::container_image>(self, name, value, has_value);
  }

  // SOURCE: recorded: an empty name is that of the working directory, so the job fails.
  template <std::optional<std::string> BatchOptions::*field>
  static base::Status file_of(Self self, Text, Text value, bool) {
    self.options_.*field = value.empty() ? "." : std::string{value};
    return {};
  }

  // An empty name stands for the user's default account, so it is not refused.
  static base::Status account(Self self, Text, Text value, bool) {
    self.options_.request.account = std::string{value};
    return {};
  }

  // Reads how many nodes; k is 1024 and m 1024 × 1024. SOURCE: Slurm's verify_node_count().
  static base::Status node_count(std::optional<int>& field, Text name, Text value) {
    std::int64_t unit = 1;
    if (value.ends_with('k') || value.ends_with('K')) unit = 1024;
    if (value.ends_with('m') || value.ends_with('M')) unit = 1024 * 1024;
    if (value == "0") return task_count(field, name, value);
    if (unit == 1) return count<1>(field, name, value);
    value.remove_suffix(1);
    const base::Result<std::int64_t> read =
        parse_integer(name, value, {.min = 1, .max = kCountMax});
    if (!read) return read.error();
    return count<1>(field, name, std::to_string(*read * unit));
  }

  // Reads "-N 2", "-N 2-4". Minimum and maximum are kept apart until finish(): options that come
  // later may change either.
  static base::Status nodes(Self self, Text name, Text value, bool) {
    if (value.find_first_of(",:") != Text::npos) {
      return base::invalid_argument(std::string{name} + " " + in_quotes(value) +
                                    ": a list of sizes is not supported; write MIN-MAX");
    }
    const std::size_t dash = value.find('-');
    base::Status status = node_count(self.min_nodes_, name, value.substr(0, dash));
    if (!status) return status;
    self.max_nodes_ = self.min_nodes_;  // a bare -N n sets both
    if (dash == Text::npos) return {};
    status = node_count(self.max_nodes_, name, value.substr(dash + 1));
    if (!status) return status;
    if (*self.max_nodes_ < *self.min_nodes_) {
      return base::invalid_argument(std::string{name} + " " + in_quotes(value) +
                                    ": the minimum is above the maximum");
    }
    return {};
  }

  // The field is a plain int with the default 1, unlike the other counts: a job always has CPUs per
  // task.
  static base::Status cpus_per_task(Self self, Text name, Text value, bool) {
    std::optional<int> read;
    base::Status status = task_count(read, name, value);
    if (status) self.options_.request.cpus_per_task = *read;
    self.cpus_given_ = true;
    return status;
  }

  // --mem=0 is legal and asks for all memory of each node (1.8). Which of the two kinds counts is
  // settled in finish().
  template <auto option>
  static base::Status memory(Self self, Text name, Text value, bool) {
    const base::Result<sched::MemoryMiB> read = parse_memory(name, value);
    if (!read) return read.error();
    self.*option = SbatchReader::MemoryOption{*read, self.reads_variables_};
    return {};
  }

  static constexpr auto kMemoryPerNode = &SbatchReader::memory_per_node_;
  static constexpr auto kMemoryPerCpu = &SbatchReader::memory_per_cpu_;

  // In MiB. It only filters nodes; no node's disk is ever charged (1.3).
  static base::Status tmp_disk(Self self, Text name, Text value, bool) {
    const base::Result<sched::MemoryMiB> read = parse_memory(name, value);
    if (!read) return read.error();
    self.options_.request.tmp_disk = *read;
    return {};
  }

  // --gres, and --gpus and its kind: what they say about each other is settled in finish().
  // SOURCE: sbatch(1), "OUTPUT ENVIRONMENT VARIABLES".
  static constexpr char kGpus[] = "SLURM_GPUS";
  static constexpr char kGpusPerNode[] = "SLURM_GPUS_PER_NODE";
  static constexpr char kGpusPerSocket[] = "SLURM_GPUS_PER_SOCKET";
  static constexpr char kGpusPerTask[] = "SLURM_GPUS_PER_TASK";
  static constexpr char kCpusPerGpu[] = "SLURM_CPUS_PER_GPU";
  static constexpr char kTasksPerGpu[] = "SLURM_NTASKS_PER_GPU";
  static constexpr char kMemoryPerGpu[] = "SLURM_MEM_PER_GPU";

  // SOURCE: recorded: of devices and licenses sbatch itself looks at nothing.
  static base::Error refused_by_slurmctld(const base::Error& error) {
    return {kEndsWithOne, error.message};
  }

  template <std::optional<sched::Devices> DeviceOptions::*field, auto parse>
  static base::Status devices(Self self, Text name, Text value, bool) {
    base::Result<sched::Devices> read = parse(name, value);
    if (!read) return refused_by_slurmctld(read.error());
    // None, whatever an earlier option asked for.
    self.devices_.*field = read->empty() ? std::optional<sched::Devices>{} : *std::move(read);
    return {};
  }
  static base::Status gres(Self self, Text name, Text value, bool has_value) {
    if (value.empty()) return base::Error{kEndsWithOne, std::string{name} + ": names no resource"};
    return devices<&DeviceOptions::gres, parse_gres>(self, name, value, has_value);
  }
  template <std::optional<sched::Devices> DeviceOptions::*field, const char* variable>
  static base::Status gpus(Self self, Text name, Text value, bool is_script) {
    const base::Status status = devices<field, parse_gpus>(self, name, value, is_script);
    if (!status) return status;
    self.options_.variables.erase(variable);
    if (self.devices_.*field) self.options_.variables[variable] = value;
    return {};
  }
  template <std::optional<int> DeviceOptions::*field, const char* variable>
  static base::Status per_gpu(Self self, Text name, Text value, bool) {
    self.options_.variables[variable] = value;
    return task_count(self.devices_.*field, name, value);
  }
  static base::Status memory_per_gpu(Self self, Text name, Text value, bool) {
    const base::Result<sched::MemoryMiB> read = parse_memory(name, value);
    if (!read) return read.error();
    self.devices_.memory_per_gpu = *read;
    self.options_.variables[kMemoryPerGpu] = std::to_string(read->value());
    return {};
  }

  // None is asked for with a count of 0.
  static base::Status licenses(Self self, Text name, Text value, bool) {
    base::Result<sched::Licenses> read = parse_licenses(name, value);
    if (!read) return refused_by_slurmctld(read.error());
    std::erase_if(*read, [](const auto& license) { return license.second == 0; });
    self.options_.request.licenses = std::move(read).value();
    return {};
  }

  // In natural order and without repetitions, so that equal lists are equal requests whatever the
  // user wrote.
  template <std::vector<std::string> sched::JobRequest::*field>
  static base::Status node_names(Self self, Text name, Text value, bool) {
    base::Result<std::vector<std::string>> names = expand_node_list(value);
    if (!names) return base::Error{kEndsWithOne, names.error().with_context(name).message};
    if (names->empty()) return base::Error{kEndsWithOne, std::string{name} + ": names no node"};
    std::sort(names->begin(), names->end(), base::natural_less);
    names->erase(std::unique(names->begin(), names->end()), names->end());
    self.options_.request.*field = std::move(names).value();
    return {};
  }

  // The last of --exclusive and --oversubscribe counts (1.5), so both write the same field.
  static base::Status exclusive(Self self, Text name, Text value, bool has_value) {
    if (has_value && !same_word(value, "user")) {
      return base::invalid_argument(std::string{name} + "=" + std::string{value} +
                                    ": not supported; --exclusive and --exclusive=user are");
    }
    self.options_.request.sharing = has_value ? sched::Sharing::kUser : sched::Sharing::kNode;
    return {};
  }

  static base::Status over_subscribe(Self self, Text, Text, bool) {
    self.options_.request.sharing = sched::Sharing::kOverSubscribe;
    return {};
  }

  // Adds one entry of the queue for each name (3.3); a name that does not exist is found when the
  // job is checked, since that depends on the cluster.
  static base::Status partitions(Self self, Text name, Text value, bool) {
    std::vector<std::string> names = split(value, ',');
    if (names.empty() || std::find(names.begin(), names.end(), "") != names.end()) {
      return base::Error{kEndsWithOne,
                         std::string{name} + " " + in_quotes(value) + ": an empty partition name"};
    }
    self.options_.request.partitions = std::move(names);
    return {};
  }

  // In the request an empty string means that the option was not given.
  template <std::string sched::JobRequest::*field>
  static base::Status word(Self self, Text name, Text value, bool) {
    if (value.empty()) return base::invalid_argument(std::string{name} + ": a value is missing");
    self.options_.request.*field = std::string{value};
    return {};
  }

  // SOURCE: recorded (session names_empty): a job may have an empty name.
  static base::Status job_name(Self self, Text, Text value, bool) {
    self.options_.request.name = value;
    self.options_.has_empty_name = value.empty();
    return {};
  }

  // A limit is always set, also for UNLIMITED: without one the partition's default would apply.
  template <std::optional<base::Duration> sched::JobRequest::*field>
  static base::Status limit(Self self, Text name, Text value, bool) {
    const base::Result<std::optional<base::Duration>> read = parse_limit(name, value);
    if (!read) return read.error();
    base::Duration duration = read->value_or(kUnlimited);
    if (duration == base::Duration{0}) duration = kUnlimited;  // sbatch(1): zero = no limit
    self.options_.request.*field = duration;
    return {};
  }

  // Relative times count from the instant of the submission, which the reader was given, so a
  // scenario that is replayed later has the same instants.
  template <std::optional<base::Instant> sched::JobRequest::*field>
  static base::Status instant(Self self, Text name, Text value, bool) {
    const base::Result<base::Instant> read = parse_instant(name, value, self.now_);
    if (!read) return read.error();
    self.options_.request.*field = *read;
    return {};
  }

  // A positive value lowers the job's priority, a negative one raises it (R9.6).
  static base::Status nice(Self self, Text name, Text value, bool has_value) {
    constexpr std::int32_t kNiceDefault = 100;  // --nice without a value (R9.6)
    constexpr std::int64_t kNiceMax = 2'147'483'645;
    self.options_.request.nice = kNiceDefault;
    if (!has_value) return {};
    const base::Result<std::int64_t> read =
        parse_integer(name, value, {.min = -kNiceMax, .max = kNiceMax});
    if (!read) return read.error();
    self.options_.request.nice = static_cast<std::int32_t>(*read);
    return {};
  }

  // The two values above the greatest one mean "not given" and "infinite" to Slurm. A priority that
  // an administrator sets is absolute: it is kept and no longer computed (R9.1).
  static base::Status priority(Self self, Text name, Text value, bool) {
    constexpr std::int64_t kPriorityMax = 4'294'967'293;
    const base::Result<std::int64_t> read =
        parse_integer(name, value, {.min = 0, .max = kPriorityMax});
    if (!read) return read.error();
    self.options_.request.hold = *read == 0;  // zero = held (R9.1)
    self.options_.request.priority.reset();
    if (*read != 0) {
      self.options_.request.priority = sched::Priority{static_cast<std::uint32_t>(*read)};
    }
    return {};
  }

  // -B sockets[:cores[:threads]], "*" = any. Each part is a least size of the node's topology. A
  // part that is left out keeps what an earlier option said.
  static base::Status extra_node_info(Self self, Text name, Text value, bool) {
    const std::vector<std::string> parts = split(value, ':');
    if (parts.empty() || parts.size() > 3) {
      return base::invalid_argument(std::string{name} + " " + in_quotes(value) +
                                    ": write sockets[:cores[:threads]]");
    }
    self.tasks_per_node_info_.reset();
    sched::JobRequest& request = self.options_.request;
    const std::array<std::optional<int>*, 3> fields = {
        &request.sockets_per_node, &request.cores_per_socket, &request.threads_per_core};
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i] == "*") continue;
      const base::Status status = count<1>(*fields[i], name, parts[i]);
      if (!status) return status;
      self.tasks_per_node_info_ =
          std::min(self.tasks_per_node_info_.value_or(1) * **fields[i], std::int64_t{kCountMax});
    }
    return {};
  }

  // Only one hint changes which CPUs are used; the others of Slurm advise on the distribution of
  // tasks.
  static base::Status hint(Self self, Text name, Text value, bool has_value) {
    self.options_.variables["SLURM_HINT"] = lower_case(value);
    if (same_word(value, "nomultithread")) {
      self.options_.request.threads_per_core = 1;
      return {};
    }
    if (same_word(value, "multithread")) return {};
    if (same_word(value, "compute_bound") || same_word(value, "memory_bound")) {
      return unused(self, std::string{name} + "=" + std::string{value}, value, has_value);
    }
    return base::invalid_argument(std::string{name} + " " + in_quotes(value) +
                                  ": unknown; allowed are nomultithread, multithread, "
                                  "compute_bound and memory_bound");
  }

  // Slurm takes the cluster that can begin first, which is not known here.
  static base::Status cluster(Self self, Text name, Text value, bool) {
    if (value.empty() || same_word(value, "all") || value.find(',') != Text::npos) {
      return base::invalid_argument(std::string{name} + " " + in_quotes(value) +
                                    ": must name one cluster");
    }
    self.options_.cluster = std::string{value};
    return {};
  }

  static base::Status distribution(Self self, Text, Text value, bool) {
    const auto read = parse_distribution(value);
    if (!read) return read.error();
    self.options_.distribution = std::string{value};
    return {};
  }

  // SOURCE: recorded (session binding_ignored): where no cores are near a device, there is nothing
  // to enforce.
  static base::Status gres_flags(Self self, Text name, Text value, bool has_value) {
    if (same_word(value, "disable-binding") || same_word(value, "enforce-binding")) return {};
    return refused(self, std::string{name} + "=" + std::string{value}, value, has_value);
  }

  // SOURCE: recorded (session binding_ignored): COUNT[@TIME]. Without a topology all nodes are of
  // one switch, and sbatch takes whatever stands behind @.
  static base::Status switches(Self, Text name, Text value, bool) {
    std::optional<int> count;
    return task_count(count, name, value.substr(0, value.find('@')));
  }

  // All tasks on a node see all GPUs that the job has there.
  static base::Status gpu_bind(Self self, Text, Text value, bool) {
    const base::Result<GpuBinding> read = parse_gpu_binding(value);
    if (!read) return read.error();
    self.options_.variables["SLURM_GPU_BIND"] = value;
    return {};
  }

  static base::Status open_mode(Self self, Text name, Text value, bool) {
    const bool appends = same_word(value, "append") || value == "a";
    if (!appends && !same_word(value, "truncate") && value != "t") {
      return base::invalid_argument(std::string{name} + " " + in_quotes(value) +
                                    ": must be append or truncate");
    }
    self.options_.appends = appends;
    return {};
  }

  // [{R|B}:]SIGNAL[@SECONDS]. SOURCE: Slurm's get_signal_opts(); the numbers are Linux's.
  static base::Status signal(Self self, Text name, Text value, bool) {
    constexpr std::int64_t kSecondsMax = 65'535;
    const auto wrong = [&](Text advice) {
      return base::invalid_argument(std::string{name} + " " + in_quotes(value) + ": " +
                                    std::string{advice});
    };
    NoticeSignal notice;
    Text left = value;
    if (const std::size_t colon = left.find(':'); colon != Text::npos) {
      const std::string letters = lower_case(left.substr(0, colon));
      if (letters == "r" || letters == "rb" || letters == "br") {
        return wrong("R: is about reservations, which are not supported");
      }
      if (letters != "b") return wrong("must be like USR1@60 or B:USR1@60");
      notice.to_script = true;
      left.remove_prefix(colon + 1);
    }
    if (const std::size_t at = left.find('@'); at != Text::npos) {
      const auto seconds = parse_integer(name, left.substr(at + 1), {.min = 0, .max = kSecondsMax});
      if (!seconds) return seconds.error();
      notice.before = std::chrono::seconds{*seconds};
      left = left.substr(0, at);
    }
    const auto* const found = find_signal(left);
    if (found == nullptr) return wrong("no such signal; write it like USR1 or 10");
    notice.name = "SIG" + std::string{found->first};
    self.options_.signal = notice;
    return {};
  }

  static base::Status dependency(Self self, Text name, Text value, bool) {
    sched::Dependency& asked = self.options_.request.dependency;
    base::Result<sched::Dependency> read = parse_dependency(name, value);
    if (!read) return read.error();
    read->kill_invalid = asked.kill_invalid;
    asked = std::move(*read);
    self.options_.dependency = std::string{value};
    return {};
  }

  static base::Status array(Self self, Text name, Text value, bool) {
    base::Result<sched::ArrayRequest> read = parse_array(name, value, kArrayTasksEnd);
    // As a wrong dependency, it is slurmctld that notices.
    if (!read) return base::Error{kEndsWithOne, read.error().message};
    self.options_.request.array = std::move(*read);
    return {};
  }

  static base::Status kill_invalid(Self self, Text name, Text value, bool) {
    if (value != "yes" && value != "no") {
      return base::invalid_argument(std::string{name} + " " + in_quotes(value) +
                                    ": must be yes or no");
    }
    self.options_.request.dependency.kill_invalid = value == "yes";
    return {};
  }

  static base::Status comment(Self self, Text, Text value, bool) {
    self.options_.comment = std::string{value};
    return {};
  }

  static base::Status parsable(Self self, Text, Text, bool) {
    self.options_.is_parsable = true;
    return {};
  }

  static base::Status waits(Self self, Text, Text, bool) {
    self.options_.waits = true;
    return {};
  }

  static base::Status test_only(Self self, Text, Text, bool) {
    self.options_.test_only = true;
    return {};
  }

  // Says what is so anyway.
  static base::Status holds_anyway(Self, Text, Text, bool) { return {}; }

  // Accepted with a warning, so that scripts written for Slurm can be submitted as they are.
  // Options that would change how the job runs are refused instead.
  static base::Status unused(Self self, Text name, Text, bool) {
    self.options_.warnings.push_back(std::string{name} + " has no effect here");
    return {};
  }

  static base::Status refused(Self, Text name, Text, bool) {
    return base::invalid_argument(std::string{name} + ": not supported yet; leave it out");
  }

  // Refused, unless the value asks for nothing.
  static base::Status refused_some(Self self, Text name, Text value, bool has_value) {
    if (value == "0" || same_word(value, "none")) return {};
    return refused(self, name, value, has_value);
  }

  // Refused, with what to do instead of leaving it out.
  template <const std::string_view& advice>
  static base::Status replaced(Self, Text name, Text, bool) {
    return base::invalid_argument(std::string{name} + ": not supported; " + std::string{advice});
  }
  static constexpr Text kHelpOutside = "kubectl gang submit --help says what there is";
  static constexpr Text kUserOfPod = "a Job's pod template can say which user its pods run as";
  static constexpr Text kImage = "--image names the container image";
  static constexpr Text kSetInScript = "set variables in the script";
  static constexpr Text kNameNodes = "--nodelist names the nodes";
};

// A row of the table.
struct SbatchOption {
  std::string_view name;  // long
  char letter;            // 0 = none
  Takes takes;
  SbatchOptionActions::Action action;
};

namespace {

using Option = SbatchOption;
using A = SbatchOptionActions;
using R = sched::JobRequest;

// All options of sbatch (Slurm 22.05, and those that came later), since an abbreviation is
// unambiguous only among all of them, and a few of other versions and of srun. One that is missing
// here is a mistake of the user; one that is `refused` is a feature that does not exist yet. The
// messages differ.
constexpr std::array kOptions = {
    Option{"nodes", 'N', Takes::kValue, A::nodes},
    Option{"ntasks", 'n', Takes::kValue, A::count_of<&R::tasks>},
    Option{"cpus-per-task", 'c', Takes::kValue, A::cpus_per_task},
    Option{"ntasks-per-node", 0, Takes::kValue, A::count_of<&R::tasks_per_node>},
    Option{"tasks-per-node", 0, Takes::kValue, A::count_of<&R::tasks_per_node>},
    Option{"ntasks-per-socket", 0, Takes::kValue, A::count_of<&R::tasks_per_socket>},
    Option{"ntasks-per-core", 0, Takes::kValue, A::count_of<&R::tasks_per_core>},
    Option{"mincpus", 0, Takes::kValue, A::count_of<&R::min_cpus_per_node>},
    Option{"sockets-per-node", 0, Takes::kValue, A::count_of<&R::sockets_per_node>},
    Option{"cores-per-socket", 0, Takes::kValue, A::count_of<&R::cores_per_socket>},
    Option{"threads-per-core", 0, Takes::kValue, A::count_of<&R::threads_per_core>},
    Option{"extra-node-info", 'B', Takes::kValue, A::extra_node_info},
    Option{"hint", 0, Takes::kValue, A::hint},
    Option{"overcommit", 'O', Takes::kNothing, A::set<&R::overcommit>},
    Option{"mem", 0, Takes::kValue, A::memory<A::kMemoryPerNode>},
    Option{"mem-per-cpu", 0, Takes::kValue, A::memory<A::kMemoryPerCpu>},
    Option{"nodelist", 'w', Takes::kValue, A::node_names<&R::required_nodes>},
    Option{"exclude", 'x', Takes::kValue, A::node_names<&R::excluded_nodes>},
    Option{"constraint", 'C', Takes::kValue, A::word<&R::constraint>},
    Option{"contiguous", 0, Takes::kNothing, A::set<&R::contiguous>},
    Option{"exclusive", 0, Takes::kMaybeValue, A::exclusive},
    Option{"oversubscribe", 's', Takes::kNothing, A::over_subscribe},
    Option{"share", 0, Takes::kNothing, A::over_subscribe},
    Option{"partition", 'p', Takes::kValue, A::partitions},
    Option{"time", 't', Takes::kValue, A::limit<&R::time_limit>},
    Option{"time-min", 0, Takes::kValue, A::limit<&R::time_min>},
    Option{"begin", 'b', Takes::kValue, A::instant<&R::begin_time>},
    Option{"deadline", 0, Takes::kValue, A::instant<&R::deadline>},
    Option{"array", 'a', Takes::kValue, A::array},
    Option{"dependency", 'd', Takes::kValue, A::dependency},
    Option{"kill-on-invalid-dep", 0, Takes::kValue, A::kill_invalid},
    Option{"hold", 'H', Takes::kNothing, A::set<&R::hold>},
    Option{"nice", 0, Takes::kMaybeValue, A::nice},
    Option{"priority", 0, Takes::kValue, A::priority},
    Option{"qos", 'q', Takes::kValue, A::word<&R::qos>},
    Option{"requeue", 0, Takes::kNothing, A::requeue<true>},
    Option{"no-requeue", 0, Takes::kNothing, A::requeue<false>},
    Option{"job-name", 'J', Takes::kValue, A::job_name},
    Option{"account", 'A', Takes::kValue, A::account},
    Option{"chdir", 'D', Takes::kValue, A::text_of<&BatchOptions::working_directory>},
    Option{"wrap", 0, Takes::kValue, A::text_of<&BatchOptions::wrap>},
    Option{"output", 'o', Takes::kValue, A::file_of<&BatchOptions::output>},
    Option{"error", 'e', Takes::kValue, A::file_of<&BatchOptions::error>},
    Option{"input", 'i', Takes::kValue, A::text_of<&BatchOptions::input>},
    Option{"open-mode", 0, Takes::kValue, A::open_mode},
    Option{"comment", 0, Takes::kValue, A::comment},
    Option{"mail-type", 0, Takes::kValue, A::unused},
    Option{"mail-user", 0, Takes::kValue, A::unused},
    Option{"parsable", 0, Takes::kNothing, A::parsable},
    Option{"quiet", 'Q', Takes::kNothing, A::holds_anyway},
    Option{"verbose", 'v', Takes::kNothing, A::holds_anyway},
    Option{"wckey", 0, Takes::kValue, A::unused},
    Option{"acctg-freq", 0, Takes::kValue, A::unused},
    Option{"cpu-freq", 0, Takes::kValue, A::unused},
    Option{"delay-boot", 0, Takes::kValue, A::unused},
    Option{"get-user-env", 0, Takes::kMaybeValue, A::unused},
    Option{"mem-bind", 0, Takes::kValue, A::unused},
    Option{"power", 0, Takes::kValue, A::unused},
    Option{"profile", 0, Takes::kValue, A::unused},
    Option{"propagate", 0, Takes::kMaybeValue, A::unused},
    Option{"wait-all-nodes", 0, Takes::kValue, A::unused},
    Option{"ignore-pbs", 0, Takes::kNothing, A::holds_anyway},
    Option{"export", 0, Takes::kValue, A::text_of<&BatchOptions::exports>},
    // From here on mostly options that would change how the job runs and that no part of kubegang
    // implements.
    Option{"batch", 0, Takes::kValue, A::refused},
    Option{"bb", 0, Takes::kValue, A::refused},
    Option{"bbf", 0, Takes::kValue, A::refused},
    Option{"cluster", 0, Takes::kValue, A::cluster},
    Option{"cluster-constraint", 0, Takes::kValue, A::unused},
    Option{"clusters", 'M', Takes::kValue, A::cluster},
    Option{"container", 0, Takes::kValue, A::replaced<A::kImage>},
    Option{"context", 0, Takes::kValue, A::refused},
    Option{"core-spec", 'S', Takes::kValue, A::unused},
    Option{"cpus-per-gpu", 0, Takes::kValue,
           A::per_gpu<&DeviceOptions::cpus_per_gpu, A::kCpusPerGpu>},
    Option{"distribution", 'm', Takes::kValue, A::distribution},
    Option{"export-file", 0, Takes::kValue, A::replaced<A::kSetInScript>},
    Option{"gid", 0, Takes::kValue, A::replaced<A::kUserOfPod>},
    Option{"gpu-bind", 0, Takes::kValue, A::gpu_bind},
    Option{"gpu-freq", 0, Takes::kValue, A::refused},
    Option{"gpus", 'G', Takes::kValue, A::gpus<&DeviceOptions::gpus, A::kGpus>},
    Option{"gpus-per-node", 0, Takes::kValue,
           A::gpus<&DeviceOptions::gpus_per_node, A::kGpusPerNode>},
    Option{"gpus-per-socket", 0, Takes::kValue,
           A::gpus<&DeviceOptions::gpus_per_socket, A::kGpusPerSocket>},
    Option{"gpus-per-task", 0, Takes::kValue,
           A::gpus<&DeviceOptions::gpus_per_task, A::kGpusPerTask>},
    Option{"gres", 0, Takes::kValue, A::gres},
    Option{"gres-flags", 0, Takes::kValue, A::gres_flags},
    Option{"help", 'h', Takes::kNothing, A::replaced<A::kHelpOutside>},
    Option{"immediate", 'I', Takes::kMaybeValue, A::refused},
    Option{"licenses", 'L', Takes::kValue, A::licenses},
    Option{"mcs-label", 0, Takes::kValue, A::refused},
    Option{"mem-per-gpu", 0, Takes::kValue, A::memory_per_gpu},
    Option{"network", 0, Takes::kValue, A::refused},
    Option{"no-kill", 'k', Takes::kMaybeValue, A::unused},
    Option{"nodefile", 'F', Takes::kValue, A::replaced<A::kNameNodes>},
    Option{"ntasks-per-gpu", 0, Takes::kValue,
           A::per_gpu<&DeviceOptions::tasks_per_gpu, A::kTasksPerGpu>},
    Option{"ntasks-per-tres", 0, Takes::kValue, A::refused},
    Option{"prefer", 0, Takes::kValue, A::refused},
    Option{"reboot", 0, Takes::kNothing, A::refused},
    Option{"reservation", 0, Takes::kValue, A::refused},
    Option{"image", 0, Takes::kValue, A::image},
    Option{"container-image", 0, Takes::kValue, A::text_of<&BatchOptions::container_image>},
    Option{"container-mounts", 0, Takes::kValue, A::text_of<&BatchOptions::container_mounts>},
    Option{"signal", 0, Takes::kValue, A::signal},
    Option{"spread-job", 0, Takes::kNothing, A::refused},
    Option{"switches", 0, Takes::kValue, A::switches},
    Option{"test-only", 0, Takes::kNothing, A::test_only},
    Option{"thread-spec", 0, Takes::kValue, A::unused},
    Option{"uid", 0, Takes::kValue, A::replaced<A::kUserOfPod>},
    Option{"usage", 0, Takes::kNothing, A::replaced<A::kHelpOutside>},
    Option{"version", 'V', Takes::kNothing, A::replaced<A::kHelpOutside>},
    Option{"wait", 'W', Takes::kNothing, A::waits},
    Option{"consolidate-segments", 0, Takes::kNothing, A::refused},
    Option{"container-id", 0, Takes::kValue, A::replaced<A::kImage>},
    Option{"external", 0, Takes::kNothing, A::refused},
    Option{"extra", 0, Takes::kValue, A::unused},
    Option{"oom-kill-step", 0, Takes::kMaybeValue, A::unused},
    Option{"resv-ports", 0, Takes::kMaybeValue, A::refused},
    Option{"segment", 0, Takes::kValue, A::refused},
    Option{"spread-segments", 0, Takes::kNothing, A::refused},
    Option{"stepmgr", 0, Takes::kNothing, A::unused},
    Option{"tres-bind", 0, Takes::kValue, A::refused},
    Option{"tres-per-job", 0, Takes::kValue, A::refused},
    Option{"tres-per-task", 0, Takes::kValue, A::refused},
    Option{"tmp", 0, Takes::kValue, A::tmp_disk},
    Option{"use-min-nodes", 0, Takes::kNothing, A::set<&R::use_min_nodes>},
};

base::Error unknown(std::string_view option) {
  return base::invalid_argument(std::string{option} + ": unknown option");
}

// Finds the whole name, or, as getopt_long() has it, a beginning that only one name has: "--part".
base::Result<const Option*> find_long(std::string_view name) {
  std::vector<const Option*> longer;
  for (const Option& option : kOptions) {
    if (option.name == name) return &option;
    if (!name.empty() && option.name.substr(0, name.size()) == name) longer.push_back(&option);
  }
  if (longer.size() == 1) return longer.front();
  if (longer.empty()) return unknown("--" + std::string{name});
  std::string names;
  for (const Option* const option : longer) {
    names += (names.empty() ? "--" : ", --") + std::string{option->name};
  }
  return base::invalid_argument("--" + std::string{name} + ": may be any of " + names);
}

// SOURCE: recorded: with an empty value these are as if they were not there.
bool says_nothing(const Option& option, std::string_view value) {
  constexpr std::array<std::string_view, 11> kMayBeEmpty = {
      "comment", "constraint", "dependency", "exclude", "array",      "licenses",
      "qos",     "account",    "chdir",      "export",  "reservation"};
  return value.empty() && std::ranges::find(kMayBeEmpty, option.name) != kMayBeEmpty.end();
}

// Most options have no letter. Their 0 must not match a NUL byte in an argument.
const Option* find_letter(char letter) {
  for (const Option& option : kOptions) {
    if (letter != 0 && option.letter == letter) return &option;
  }
  return nullptr;
}

}  // namespace

// A colon separates the components of a heterogeneous job, which would silently become one job
// otherwise.
base::Status SbatchReader::add(std::span<const std::string> arguments, const std::string& where) {
  const auto fail = [&](const base::Error& error) {
    return where.empty() ? error : error.with_context(where);
  };
  if (arguments.size() > kSbatchArgumentsMax) {
    return fail(
        base::invalid_argument("more than " + std::to_string(kSbatchArgumentsMax) + " arguments"));
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view word = arguments[i];
    if (word == ":" || word == "hetjob" || word == "packjob") {
      return fail(
          base::invalid_argument(std::string{word} + ": heterogeneous jobs are not supported"));
    }
    // sbatch would take the first such word for the script. A line of options has none, so it is a
    // mistake, most often a value with a blank that is not quoted.
    if (word.size() < 2 || word.front() != '-' || word == "--") {
      return fail(
          base::invalid_argument(in_quotes(word) + ": not an option; options begin with -"));
    }
    const base::Status status = add_option(arguments, i);
    if (!status) return fail(status.error());
  }
  return {};
}

// The second character tells both forms apart; that there is one is the caller's duty.
base::Status SbatchReader::add_option(std::span<const std::string> arguments, std::size_t& i) {
  return arguments[i][1] == '-' ? add_long(arguments, i) : add_letters(arguments, i);
}

// Reads "--nodes=2", or "--nodes" with its value in the next word. The value may be empty
// ("--wrap="): the action decides whether that is a mistake. Messages have the whole name of the
// option, also if the user has abbreviated it.
base::Status SbatchReader::add_long(std::span<const std::string> arguments, std::size_t& i) {
  const std::string_view word = arguments[i];
  const std::size_t equals = word.find('=');
  const base::Result<const Option*> found = find_long(word.substr(0, equals).substr(2));
  if (!found) return found.error();
  const Option& option = **found;
  const std::string name = "--" + std::string{option.name};
  if (equals != std::string_view::npos) {
    if (option.takes == Takes::kNothing) return base::invalid_argument(name + ": takes no value");
    const std::string_view value = word.substr(equals + 1);
    return says_nothing(option, value) ? base::Status{} : option.action(*this, name, value, true);
  }
  return add_without_value(option, name, arguments, i);
}

// Reads "-N2", "-N" with its value in the next word, or several letters that take no value:
// "-sHN2". A letter that takes a value ends the word, since the rest of it is the value.
base::Status SbatchReader::add_letters(std::span<const std::string> arguments, std::size_t& i) {
  const std::string_view word = arguments[i];
  for (std::size_t at = 1; at < word.size(); ++at) {
    const std::string name{'-', word[at]};
    const Option* const option = find_letter(word[at]);
    if (option == nullptr) return unknown(name);
    const std::string_view rest = word.substr(at + 1);
    // The rest of the word is the value, also if it looks like letters of options: "-pdebug".
    if (option->takes != Takes::kNothing && !rest.empty()) {
      return option->action(*this, name, rest, true);
    }
    const base::Status status = add_without_value(*option, name, arguments, i);
    if (!status) return status;
  }
  return {};
}

// An option whose value may be left out never takes the next word as its value, as getopt does it:
// in "--exclusive user" the second word stands by itself.
base::Status SbatchReader::add_without_value(const SbatchOption& option, std::string_view name,
                                             std::span<const std::string> arguments,
                                             std::size_t& i) {
  if (option.takes != Takes::kValue) return option.action(*this, name, {}, false);
  if (i + 1 == arguments.size()) {
    return base::invalid_argument(std::string{name} + ": a value is missing");
  }
  const std::string& value = arguments[++i];
  return says_nothing(option, value) ? base::Status{} : option.action(*this, name, value, true);
}

base::Status SbatchReader::add_variables(std::span<const std::string> arguments) {
  reads_variables_ = true;
  base::Status status = add(arguments, "");
  reads_variables_ = false;
  return status;
}

// As sbatch reads a script: comments and blank lines may stand between directives; the first
// command ends them, and a directive behind it is an ordinary comment, as is one with blanks before
// it.
// A bound on the script's size keeps a file that is not a script, such as a core dump, from being
// searched; Slurm has the same one.
base::Status SbatchReader::add_script(std::string_view script) {
  if (script.size() > kBatchScriptBytesMax) {
    return base::invalid_argument("the batch script is larger than " +
                                  std::to_string(kBatchScriptBytesMax) + " bytes");
  }
  constexpr std::string_view kDirective = "#SBATCH";
  // Reports all wrong lines at once, so that users mend a script in one go.
  constexpr int kToldMax = 20;
  std::string problems;
  int problems_count = 0;
  base::Code code = kEndsWithOne;  // of the first problem, at which sbatch ends. SOURCE: recorded
  for (std::size_t number = 1; !script.empty(); ++number) {
    const std::size_t end = script.find('\n');
    const std::string_view line = script.substr(0, end);
    script.remove_prefix(end == std::string_view::npos ? script.size() : end + 1);
    const std::string_view text = trim(line);
    if (text.empty()) continue;
    if (text.front() != '#') break;  // the first command ends the directives
    if (line.substr(0, kDirective.size()) != kDirective) continue;
    const std::string where = "line " + std::to_string(number);
    const base::Result<std::vector<std::string>> words =
        split_directive(line.substr(kDirective.size()));
    const base::Status status =
        words ? add(*words, where) : base::Status{words.error().with_context(where)};
    if (status) continue;
    if (problems.empty()) code = status.error().code;
    problems += (problems.empty() ? "" : "\n  ") + status.error().message;
    if (++problems_count == kToldMax) break;
  }
  if (problems.empty()) return {};
  return base::Error{code, problems};
}

// SOURCE: recorded: options that go with GPUs are allowed without them.
static void drop_unused_per_gpu(BatchOptions& options) {
  sched::JobRequest& request = options.request;
  if (sched::asks_for_devices(request) || request.per_gpu == sched::PerGpu{}) return;
  options.warnings.emplace_back(
      "--cpus-per-gpu and --mem-per-gpu: have no effect, because the job asks for no GPUs");
  request.per_gpu = {};
}

// Settles one kind of memory. SOURCE: recorded: an option beats a variable of the other kind; two
// of either contradict each other, also where one stands in the script.
base::Status SbatchReader::settle_memory(sched::JobRequest& request) const {
  bool is_per_cpu = memory_per_cpu_.has_value();
  if (memory_per_node_ && memory_per_cpu_) {
    if (memory_per_node_->is_variable == memory_per_cpu_->is_variable) {
      return base::Error{kEndsWithOne, "--mem and --mem-per-cpu exclude each other"};
    }
    is_per_cpu = memory_per_node_->is_variable;
  }
  if (is_per_cpu) {
    request.memory = sched::MemoryPerCpu{memory_per_cpu_->amount};
  } else if (memory_per_node_) {
    request.memory = sched::MemoryPerNode{memory_per_node_->amount};
  }
  return {};
}

// Returns how many tasks the sockets, cores and threads of a node ask for, if they do.
// SOURCE: recorded (session units_tasks): -B asks for a task on each of the units of a node, and so
// do --sockets-per-node and its kind with a number of nodes.
std::optional<std::int64_t> SbatchReader::tasks_of_units() const {
  if (tasks_per_node_info_ || !min_nodes_ || min_nodes_ != max_nodes_) return tasks_per_node_info_;
  const sched::JobRequest& request = options_.request;
  std::optional<std::int64_t> tasks;
  for (const std::optional<int>& units :
       {request.sockets_per_node, request.cores_per_socket, request.threads_per_core}) {
    if (units) tasks = std::min<std::int64_t>(tasks.value_or(1) * *units, kCountMax);
  }
  return tasks;
}

// Settles what depends on several options, whatever order they came in.
//
// 1. Tasks follow from tasks per node.
// 2. Tasks bound the number of nodes: a task does not span nodes.
// 3. Required nodes raise the minimum, and must not be more than the maximum.
// 4. Memory, and devices, which may say the number of tasks or of nodes.
// 5. The least time limit is not above the limit.
// Numbers that Slurm takes although they contradict each other lead to a warning, not to an error:
// the script runs there, so it must run here.
base::Result<BatchOptions> SbatchReader::finish() const {
  BatchOptions options = options_;
  sched::JobRequest& request = options.request;
  // 1. How many nodes and tasks.
  request.nodes_given = min_nodes_.has_value();
  request.min_nodes = min_nodes_.value_or(1);
  request.max_nodes = max_nodes_;
  const bool tasks_given = request.tasks.has_value();
  if (request.tasks_per_node && !request.tasks) {
    const std::int64_t tasks = std::int64_t{request.min_nodes} * *request.tasks_per_node;
    if (tasks > kCountMax) {
      return base::invalid_argument("--ntasks-per-node: more than " + std::to_string(kCountMax) +
                                    " tasks");
    }
    request.tasks = static_cast<int>(tasks);
  }
  if (const auto each = tasks_of_units(); each && !request.tasks) {
    request.tasks = static_cast<int>(
        std::min(std::int64_t{request.min_nodes} * *each, std::int64_t{kCountMax}));
  }
  const bool has_all = request.nodes_given && tasks_given && request.tasks_per_node;
  if (has_all && *request.tasks > std::int64_t{*request.max_nodes} * *request.tasks_per_node) {
    return base::Error{kEndsWithOne, "--ntasks " + std::to_string(*request.tasks) +
                                         ": more than --nodes times --ntasks-per-node"};
  }
  // One task is one, on whichever node.
  if (request.tasks == 1 && request.tasks_per_node) request.tasks_per_node = 1;
  // 2. A task does not span nodes: more nodes than tasks are never used (sbatch(1), --nodes).
  if (request.nodes_given && tasks_given) {
    if (*request.tasks < request.min_nodes) {
      options.warnings.push_back("--ntasks " + std::to_string(*request.tasks) + " on --nodes " +
                                 std::to_string(request.min_nodes) + ": " +
                                 std::to_string(*request.tasks) +
                                 (*request.tasks == 1 ? " node is used" : " nodes are used"));
      request.min_nodes = *request.tasks;
    }
    request.max_nodes = std::min(*request.max_nodes, *request.tasks);
  }
  // 3. A required list of several nodes asks for all of them, unless there are fewer tasks: then
  //    its first nodes count.
  if (request.tasks && static_cast<int>(request.required_nodes.size()) > *request.tasks) {
    request.required_nodes.resize(static_cast<std::size_t>(*request.tasks));
    options.warnings.push_back("--nodelist names more nodes than --ntasks " +
                               std::to_string(*request.tasks) + ": only the first are used");
  }
  const int required = static_cast<int>(request.required_nodes.size());
  if (request.max_nodes && *request.max_nodes < required) {
    return base::invalid_argument("--nodelist: names " + std::to_string(required) +
                                  " nodes, but at most " + std::to_string(*request.max_nodes) +
                                  " are asked for");
  }
  request.min_nodes = std::max(request.min_nodes, required);
  // 4. Memory and devices.
  if (base::Status status = settle_memory(request); !status) return status.error();
  const bool memory_given = memory_per_node_ || memory_per_cpu_;
  if (base::Status status = apply_devices(devices_, cpus_given_, memory_given, request); !status) {
    return status.error();
  }
  drop_unused_per_gpu(options);
  // 5. Times.
  if (request.time_min && request.time_limit && *request.time_min > *request.time_limit) {
    return base::invalid_argument("--time-min: longer than --time");
  }
  return options;
}

std::string sbatch_help() {
  std::string text;
  for (const Option& option : kOptions) {
    if (option.action == A::refused || option.action == A::refused_some) continue;
    text += "  ";
    if (option.letter != 0) text += std::string{'-', option.letter} + ", ";
    text += "--" + std::string{option.name};
    if (option.takes == Takes::kValue) text += "=VALUE";
    if (option.takes == Takes::kMaybeValue) text += "[=VALUE]";
    text += "\n";
  }
  return text;
}

// For scenarios, whose jobs are written as the words behind `sbatch` with a shell's quotes.
base::Result<BatchOptions> read_sbatch_line(std::string_view line, Now now) {
  const base::Result<std::vector<std::string>> words = split_words(line);
  if (!words) return words.error();
  SbatchReader reader{now};
  const base::Status status = reader.add(*words, "");
  if (!status) return status.error();
  return reader.finish();
}

}  // namespace slurm
