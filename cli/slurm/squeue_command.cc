#include "cli/slurm/squeue_command.h"

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "slurm/hostlist.h"
#include "slurm/quantities.h"
#include "slurm/text.h"

namespace cli {
namespace {

// SOURCE: squeue(1), the default format.
constexpr const char* kFormat = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
constexpr std::size_t kWidthMax = 4'096;
constexpr std::size_t kLongWidth = 20;  // of a field of --Format

std::string or_null(const std::string& text) {
  return text.empty() ? "(null)" : text;
}

std::string memory_of(const JobFacts& facts) {
  if (facts.memory_per_cpu) return slurm_memory(*facts.memory_per_cpu);
  return facts.memory_per_node ? slurm_memory(*facts.memory_per_node) : "0";
}

std::string limit_of(const JobFacts& facts) {
  return facts.limit ? slurm::format_run_time(*facts.limit) : "UNLIMITED";
}

std::string left_of(const JobFacts& facts) {
  if (!facts.limit) return "UNLIMITED";
  return slurm::format_run_time(std::max(base::Duration{0}, *facts.limit - facts.run_time));
}

std::optional<base::Instant> end_of(const JobFacts& facts) {
  const kube::JobStatus& status = facts.job->status;
  if (status.end_time) return status.end_time;
  if (!status.start_time || !facts.limit) return std::nullopt;
  return *status.start_time + *facts.limit;
}

// N/A as squeue writes it, where scontrol writes Unknown.
std::string time_of(const std::optional<base::Instant>& instant) {
  return instant ? slurm_time(instant) : "N/A";
}

using Value = std::string (*)(const JobFacts&);

struct Field {
  char letter;
  const char* name;  // of --Format
  const char* heading;
  Value value;
};

// SOURCE: squeue(1), --format and --Format.
constexpr std::array kFields = {
    Field{'i', "jobid", "JOBID", [](const JobFacts& f) { return std::to_string(f.id); }},
    Field{'A', "jobarrayid", "JOBID", [](const JobFacts& f) { return std::to_string(f.id); }},
    Field{'F', "arrayjobid", "ARRAY_JOB_ID",
          [](const JobFacts& f) { return std::to_string(f.id); }},
    Field{'K', "arraytaskid", "ARRAY_TASK_ID", [](const JobFacts&) { return std::string{"N/A"}; }},
    Field{'P', "partition", "PARTITION", [](const JobFacts& f) { return f.partition; }},
    Field{'j', "name", "NAME", [](const JobFacts& f) { return f.name; }},
    Field{'u', "username", "USER", [](const JobFacts& f) { return f.user; }},
    Field{'t', "statecompact", "ST", [](const JobFacts& f) { return f.state_code; }},
    Field{'T', "state", "STATE", [](const JobFacts& f) { return f.state; }},
    Field{'D', "numnodes", "NODES", [](const JobFacts& f) { return std::to_string(f.nodes); }},
    Field{'C', "numcpus", "CPUS", [](const JobFacts& f) { return std::to_string(f.cpus); }},
    Field{'m', "minmemory", "MIN_MEMORY", memory_of},
    Field{'l', "timelimit", "TIME_LIMIT", limit_of},
    Field{'L', "timeleft", "TIME_LEFT", left_of},
    Field{'M', "timeused", "TIME",
          [](const JobFacts& f) { return slurm::format_run_time(f.run_time); }},
    Field{'r', "reason", "REASON", [](const JobFacts& f) { return f.reason; }},
    Field{'R', "reasonlist", "NODELIST(REASON)",
          [](const JobFacts& f) {
            const bool waits = f.state_code == "PD" || f.state_code == "F" || f.hostlist.empty();
            return waits ? "(" + f.reason + ")" : f.hostlist;
          }},
    Field{'N', "nodelist", "NODELIST", [](const JobFacts& f) { return f.hostlist; }},
    Field{'B', "batchhost", "EXEC_HOST",
          [](const JobFacts& f) { return f.batch_host.empty() ? "n/a" : f.batch_host; }},
    Field{'Q', "priority", "PRIORITY",
          [](const JobFacts& f) { return std::to_string(f.priority); }},
    Field{'k', "comment", "COMMENT",
          [](const JobFacts& f) {
            return or_null(f.job->spec.batch ? f.job->spec.batch->comment : "");
          }},
    Field{'a', "account", "ACCOUNT",
          [](const JobFacts& f) { return or_null(f.job->spec.schedule.account.value_or("")); }},
    Field{'q', "qos", "QOS",
          [](const JobFacts& f) { return or_null(f.job->spec.schedule.qos.value_or("")); }},
    Field{'V', "submittime", "SUBMIT_TIME",
          [](const JobFacts& f) { return time_of(f.job->status.submit_time); }},
    Field{'S', "starttime", "START_TIME",
          [](const JobFacts& f) {
            const kube::JobStatus& status = f.job->status;
            return time_of(status.start_time ? status.start_time : status.expected_start_time);
          }},
    Field{'e', "endtime", "END_TIME", [](const JobFacts& f) { return time_of(end_of(f)); }},
    Field{'Z', "workdir", "WORK_DIR",
          [](const JobFacts& f) {
            return f.job->spec.batch ? f.job->spec.batch->working_directory : std::string{};
          }},
};

const Field* field_of(char letter) {
  const auto found = std::ranges::find(kFields, letter, &Field::letter);
  return found == kFields.end() ? nullptr : &*found;
}

// "%.8j": at the right of 8 columns; "%8j": at the left; both cut what is longer.
std::string placed(std::string text, std::size_t width, bool at_right) {
  if (width == 0) return text;
  if (text.size() >= width) return text.substr(0, width);
  const std::string blanks(width - text.size(), ' ');
  return at_right ? blanks + text : text + blanks;
}

using ValueOf = std::function<std::string(const Field&)>;

base::Result<std::string> fill(const std::string& format, const ValueOf& value) {
  std::string line;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      line += format[i];
      continue;
    }
    std::size_t at = i + 1;
    const bool at_right = at < format.size() && format[at] == '.';
    if (at_right) ++at;
    std::size_t width = 0;
    while (at < format.size() && format[at] >= '0' && format[at] <= '9') {
      width = std::min(width * 10 + static_cast<std::size_t>(format[at++] - '0'), kWidthMax);
    }
    const Field* const field = at < format.size() ? field_of(format[at]) : nullptr;
    if (field == nullptr) {
      return base::invalid_argument("format \"" + format.substr(i, at + 1 - i) +
                                    "\" does not exist or is not there yet");
    }
    line += placed(value(*field), width, at_right);
    i = at;
  }
  return line;
}

// --Format's fields as a format of letters.
base::Result<std::string> letters_of(const std::string& fields) {
  std::string format;
  for (const std::string& word : list_of(fields)) {
    const std::size_t colon = std::min(word.find(':'), word.size());
    const std::string name = slurm::lower_case(std::string_view{word}.substr(0, colon));
    const auto field =
        std::ranges::find_if(kFields, [&](const Field& f) { return name == f.name; });
    if (field == kFields.end()) {
      return base::invalid_argument("field \"" + word + "\" does not exist or is not there yet");
    }
    std::string width = word.substr(std::min(colon + 1, word.size()));
    const bool at_right = width.starts_with('.');
    if (at_right) width.erase(0, 1);
    if (width.empty()) width = std::to_string(kLongWidth);
    format += std::string{"%"} + (at_right ? "." : "") + width + field->letter;
  }
  return format;
}

struct SqueueOptions {
  std::string format = kFormat;
  bool has_heading = true;
  bool is_own = false;  // --me
  bool all_states = false;
  std::set<std::string> states, partitions, users, names, nodes;
  std::vector<std::string> jobs;
  std::string sort;
};

constexpr std::array kOptions = {WordOption{'h', "noheader", WordTakes::kNothing},
                                 WordOption{'o', "format", WordTakes::kValue},
                                 WordOption{'O', "Format", WordTakes::kValue},
                                 WordOption{'j', "jobs", WordTakes::kValue},
                                 WordOption{'u', "user", WordTakes::kValue},
                                 WordOption{'\0', "users", WordTakes::kValue},
                                 WordOption{'t', "states", WordTakes::kValue},
                                 WordOption{'\0', "state", WordTakes::kValue},
                                 WordOption{'p', "partition", WordTakes::kValue},
                                 WordOption{'n', "name", WordTakes::kValue},
                                 WordOption{'w', "nodelist", WordTakes::kValue},
                                 WordOption{'S', "sort", WordTakes::kValue},
                                 WordOption{'a', "all", WordTakes::kNothing},
                                 WordOption{'r', "array", WordTakes::kNothing},
                                 WordOption{'\0', "noconvert", WordTakes::kNothing},
                                 WordOption{'\0', "me", WordTakes::kNothing}};

base::Status add_states(const std::string& text, SqueueOptions& options) {
  for (const std::string& word : list_of(text)) {
    if (slurm::same_word(word, "all")) {
      options.all_states = true;
      continue;
    }
    const std::string code = state_code_of(word);
    if (code.empty()) {
      return base::invalid_argument("Invalid job state specified: " + word +
                                    "\nsqueue: error: Valid job states include: " + all_states());
    }
    options.states.insert(code);
  }
  return {};
}

base::Status apply(const ReadOption& option, SqueueOptions& options) {
  const auto add = [&](std::set<std::string>& to) {
    for (std::string& word : list_of(option.value)) to.insert(std::move(word));
  };
  const std::string& name = option.name;
  if (name == "noheader") options.has_heading = false;
  if (name == "format") options.format = option.value;
  if (name == "me") options.is_own = true;
  if (name == "user" || name == "users") add(options.users);
  if (name == "partition") add(options.partitions);
  if (name == "name") add(options.names);
  if (name == "sort") options.sort = option.value;
  if (name == "states" || name == "state") return add_states(option.value, options);
  if (name == "jobs") {
    for (std::string& word : list_of(option.value)) options.jobs.push_back(std::move(word));
  }
  if (name == "nodelist") {
    const auto nodes = slurm::expand_hostlist(option.value);
    if (!nodes) return nodes.error();
    options.nodes.insert(nodes->begin(), nodes->end());
  }
  if (name == "Format") {
    auto format = letters_of(option.value);
    if (!format) return format.error();
    options.format = std::move(format).value();
  }
  return {};
}

bool is_on(const JobFacts& facts, const std::set<std::string>& nodes) {
  const auto own = slurm::expand_hostlist(facts.hostlist);
  return own.ok() && std::ranges::any_of(*own, [&](const auto& n) { return nodes.contains(n); });
}

bool is_shown(const JobFacts& facts, const SqueueOptions& options, const std::string& own) {
  const auto fits = [](const std::set<std::string>& wanted, const std::string& value) {
    return wanted.empty() || wanted.contains(value);
  };
  static const std::set<std::string> kActive{"PD", "R", "S", "CG"};
  const bool state_fits =
      options.all_states ||
      (options.states.empty() ? kActive : options.states).contains(facts.state_code);
  const std::string id = std::to_string(facts.id);
  const bool is_named =
      options.jobs.empty() || std::ranges::find(options.jobs, id) != options.jobs.end();
  return state_fits && is_named && fits(options.partitions, facts.partition) &&
         fits(options.users, facts.user) && fits(options.names, facts.name) &&
         (!options.is_own || facts.user == own) &&
         (options.nodes.empty() || is_on(facts, options.nodes));
}

// Keys as in --format, each with a minus for the reverse; numbers by their value.
base::Status sort(std::vector<JobFacts>& all, const std::string& keys) {
  // SOURCE: squeue(1), the default order is "P,t,-p": partition, state, priority.
  std::vector<std::string> list = list_of(keys.empty() ? "P,t,-p" : keys);
  std::ranges::reverse(list);
  for (const std::string& key : list) {
    const bool is_reverse = key.starts_with('-');
    const std::string letter = key.substr(key.find_first_not_of("+-"));
    const auto compare = [&](const JobFacts& a, const JobFacts& b) {
      if (letter == "i") return a.id < b.id;
      if (letter == "p" || letter == "Q") return a.priority < b.priority;
      if (letter == "t") {
        const auto rank = [](const JobFacts& f) { return f.state_code == "PD" ? 0 : 1; };
        return rank(a) < rank(b);
      }
      if (letter == "D") return a.nodes < b.nodes;
      if (letter == "M") return a.run_time < b.run_time;
      const Field* const field = field_of(letter.front());
      return field->value(a) < field->value(b);
    };
    if (letter != "p" && (letter.size() != 1 || field_of(letter.front()) == nullptr)) {
      return base::invalid_argument("sort key \"" + key + "\" does not exist or is not there yet");
    }
    std::ranges::stable_sort(all, [&](const JobFacts& a, const JobFacts& b) {
      return is_reverse ? compare(b, a) : compare(a, b);
    });
  }
  return {};
}

int fail(Output output, const base::Error& error) {
  output.err << "squeue: error: " << error.message << "\n";
  return kExitFailed;
}

int show(const Session& session, const SqueueOptions& options, Output output) {
  const auto jobs = list_jobs(session, output);
  if (!jobs) return fail(output, jobs.error());
  const auto partitions = list_partition_defaults(session, output);
  if (!partitions) return fail(output, partitions.error());
  std::vector<JobFacts> all;
  std::set<std::string> known;
  for (const kube::Job& job : *jobs) {
    JobFacts facts = facts_of(job, *partitions, session.clock.wall());
    known.insert(std::to_string(facts.id));
    if (is_shown(facts, options, session.ns)) all.push_back(std::move(facts));
  }
  // SOURCE: one number alone that does not exist is an error, of several it is not.
  if (options.jobs.size() == 1 && !known.contains(options.jobs.front())) {
    output.err << "slurm_load_jobs error: Invalid job id specified\n";
    return kExitFailed;
  }
  if (const base::Status sorted = sort(all, options.sort); !sorted) {
    return fail(output, sorted.error());
  }
  const auto heading = format_heading(options.format);
  if (!heading) return fail(output, heading.error());
  if (options.has_heading) output.out << *heading << "\n";
  for (const JobFacts& facts : all) output.out << *format_line(options.format, facts) << "\n";
  return kExitOk;
}

}  // namespace

base::Result<std::string> format_line(const std::string& format, const JobFacts& facts) {
  return fill(format, [&](const Field& field) { return field.value(facts); });
}

base::Result<std::string> format_heading(const std::string& format) {
  return fill(format, [](const Field& field) { return std::string{field.heading}; });
}

int run_squeue(std::span<const std::string> arguments, const WithCluster& with_cluster,
               Output output) {
  const auto words = read_words(kOptions, arguments);
  if (!words) return fail(output, words.error());
  if (!words->rest.empty()) {
    return fail(output, base::invalid_argument("Unrecognized option: " + words->rest.front()));
  }
  SqueueOptions options;
  for (const ReadOption& option : words->options) {
    if (const base::Status status = apply(option, options); !status) {
      return fail(output, status.error());
    }
  }
  return with_cluster([&](const Session& session) { return show(session, options, output); });
}

}  // namespace cli
