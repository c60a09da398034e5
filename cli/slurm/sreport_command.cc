#include "cli/slurm/sreport_command.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "cli/cluster/info.h"
#include "cli/local_zone.h"
#include "cli/slurm/job_facts.h"
#include "cli/slurm/record_table.h"
#include "cli/slurm/recorded_jobs.h"
#include "kube/clock.h"
#include "slurm/quantities.h"
#include "slurm/text.h"

namespace cli {
namespace {

// A line of a report. Times are those of CPUs, in the unit of the report.
struct ReportRow {
  std::string account, user;
  std::int64_t used = 0;
  std::int64_t idle = 0;
  std::int64_t reported = 0;
};
using ReportField = RecordField<ReportRow>;

// SOURCE: sreport's names and widths. A cluster has no name here.
constexpr std::array kFields = {
    ReportField{"Cluster", 9, [](const ReportRow&) { return std::string{"kubegang"}; }},
    ReportField{"Login", 9, [](const ReportRow& r) { return r.user; }},
    ReportField{"Proper Name", 15, nullptr},
    ReportField{"Account", 15, [](const ReportRow& r) { return r.account; }},
    ReportField{"Used", 10, [](const ReportRow& r) { return std::to_string(r.used); }},
    ReportField{"Energy", 10, [](const ReportRow&) { return std::string{"0"}; }},
    ReportField{"Allocated", 12, [](const ReportRow& r) { return std::to_string(r.used); }},
    ReportField{"Down", 10, nullptr},
    ReportField{"PLND Down", 10, nullptr},
    ReportField{"Idle", 12, [](const ReportRow& r) { return std::to_string(r.idle); }},
    ReportField{"Planned", 9, nullptr},
    ReportField{"Reported", 12, [](const ReportRow& r) { return std::to_string(r.reported); }},
};

constexpr WordTakes kNothing = WordTakes::kNothing;
constexpr WordTakes kValue = WordTakes::kValue;
constexpr std::string_view kNoEffect = "accepted; it is so anyway";
constexpr std::array kOptions = {
    WordOption{'n', "noheader", kNothing, "no heading"},
    WordOption{'p', "parsable", kNothing, "values with | behind each"},
    WordOption{'P', "parsable2", kNothing, "values with | between them"},
    WordOption{'t', "", kValue, "the unit: Seconds, Minutes (default) or Hours"},
    WordOption{'a', "all_clusters", kNothing, kNoEffect},
    WordOption{'Q', "quiet", kNothing, kNoEffect},
    WordOption{'M', "cluster", kValue, "a context of the kubeconfig"},
    WordOption{'\0', "local", kNothing, kNoEffect},
    WordOption{'\0', "federation", kNothing, "", "kubegang has no federations"},
    WordOption{'T', "tres", kValue, "", "CPU time alone is reported"},
    WordOption{'v', "verbose", kNothing, kNoEffect}};

enum class Report { kUtilization, kUserTop, kAccountByUser };

struct ReportOptions {
  Report report = Report::kUtilization;
  RecordTable<ReportRow> table;
  bool has_heading = true;
  std::int64_t unit_seconds = 60;
  std::string unit = "Minutes";
  std::size_t top_count = 10;
  std::set<std::string> users, accounts;
  std::optional<base::Instant> from{}, until{};
  std::string context;
};

int fail(Output output, const std::string& message) {
  output.err << "sreport: error: " << message << "\n";
  return kExitFailed;
}

// CPU seconds of one run within the window: its run time is spread evenly over it.
double used_in(const records::Record& record, const TimeWindow& window, base::Instant now) {
  if (!record.start_time) return 0;
  const base::Instant end = std::min(record.end_time.value_or(now), now);
  base::Duration ran = record.elapsed;
  const bool runs = !record.end_time && record.state == records::RecordState::kRunning;
  if (runs && record.elapsed_as_of) ran += std::max(now - *record.elapsed_as_of, base::Duration{});
  const base::Instant from = std::max(*record.start_time, window.from);
  const base::Instant until = std::min(end, window.until);
  const auto seconds = [](base::Duration time) { return static_cast<double>(time.count()) / 1e6; };
  if (until <= from) return 0;
  return seconds(ran) * seconds(until - from) / seconds(end - *record.start_time) *
         record.allocated_cpus;
}

std::string user_of(const records::Record& record) {
  return record.user.empty() ? record.ns : record.user;
}

// CPU seconds by account and user.
using Used = std::map<std::pair<std::string, std::string>, double>;
Used used_of(const std::vector<records::Record>& records, const ReportOptions& options,
             const TimeWindow& window, base::Instant now) {
  Used all;
  for (const records::Record& record : records) {
    const std::string user = user_of(record);
    if (!options.users.empty() && !options.users.contains(user)) continue;
    if (!options.accounts.empty() && !options.accounts.contains(record.account)) continue;
    const double seconds = used_in(record, window, now);
    if (seconds > 0) all[{record.account, user}] += seconds;
  }
  return all;
}

std::vector<ReportRow> user_top(const Used& used, const ReportOptions& options) {
  std::vector<std::pair<double, ReportRow>> all;
  for (const auto& [key, seconds] : used) {
    all.push_back({seconds, {.account = key.first, .user = key.second}});
  }
  std::ranges::stable_sort(all, std::greater<>{}, &std::pair<double, ReportRow>::first);
  all.resize(std::min(all.size(), options.top_count));
  std::vector<ReportRow> rows;
  for (auto& [seconds, row] : all) {
    row.used = std::llround(seconds / static_cast<double>(options.unit_seconds));
    rows.push_back(std::move(row));
  }
  return rows;
}

// Lists each account, then its users. Accounts above it are not looked up, so they have no line.
std::vector<ReportRow> accounts_by_user(const Used& used, const ReportOptions& options) {
  std::vector<ReportRow> rows;
  const auto in_unit = [&](double seconds) {
    return std::llround(seconds / static_cast<double>(options.unit_seconds));
  };
  std::map<std::string, double> sums;
  for (const auto& [key, seconds] : used) sums[key.first] += seconds;
  for (const auto& [account, sum] : sums) {
    rows.push_back({.account = account, .used = in_unit(sum)});
    for (const auto& [key, seconds] : used) {
      if (key.first == account) {
        rows.push_back({.account = account, .user = key.second, .used = in_unit(seconds)});
      }
    }
  }
  return rows;
}

// Returns the CPUs that the cluster has now; each node once.
std::int64_t cpus_of(const ClusterNodes& cluster) {
  std::map<std::string, std::int64_t> by_node;
  for (const NodeLine& line : node_lines(cluster)) {
    for (const std::string& name : line.names) {
      by_node[name] = line.cpus / std::max<std::int64_t>(line.count, 1);
    }
  }
  std::int64_t all = 0;
  for (const auto& [name, cpus] : by_node) all += cpus;
  return all;
}

std::vector<ReportRow> utilization(const Used& used, std::int64_t cpus, const TimeWindow& window,
                                   const ReportOptions& options) {
  double seconds = 0;
  for (const auto& [key, each] : used) seconds += each;
  const double unit = static_cast<double>(options.unit_seconds);
  const double whole =
      static_cast<double>((window.until - window.from).count()) / 1e6 * static_cast<double>(cpus);
  return {{.used = std::llround(seconds / unit),
           .idle = std::llround(std::max(whole - seconds, 0.0) / unit),
           .reported = std::llround(whole / unit)}};
}

void print_title(const ReportOptions& options, const TimeWindow& window, Output output) {
  const std::string line(80, '-');
  const std::string times =
      slurm_time(window.from) + " - " + slurm_time(window.until - std::chrono::seconds{1});
  const auto seconds = std::to_string((window.until - window.from).count() / 1'000'000);
  output.out << line << "\n";
  switch (options.report) {
    case Report::kUtilization:
      output.out << "Cluster Utilization " << times << "\n";
      break;
    case Report::kUserTop:
      output.out << "Top " << options.top_count << " Users " << times << " (" << seconds
                 << " secs)\n";
      break;
    case Report::kAccountByUser:
      output.out << "Cluster/Account/User Utilization " << times << " (" << seconds << " secs)\n";
      break;
  }
  output.out << "Usage reported in CPU " << options.unit << "\n" << line << "\n";
}

int show(const Session& session, const ReportOptions& options, const TimeWindow& window,
         Output output) {
  const base::Instant now = kube::SystemClock{}.wall();
  const auto recorded = read_records(session, {.window = window});
  if (!recorded) return fail(output, "records cannot be read: " + recorded.error().message);
  if (!recorded->since) return fail(output, "this cluster keeps no records of jobs");
  const Used used = used_of(recorded->records, options, window, now);
  std::vector<ReportRow> rows;
  if (options.report == Report::kUtilization) {
    const auto cluster = read_cluster_nodes(session, "sreport", output);
    if (!cluster) return fail(output, cluster.error().message);
    rows = utilization(used, cpus_of(*cluster), window, options);
    output.err << "sreport: idle and reported time are of the nodes that there are now; when nodes "
                  "were down is not recorded\n";
  } else {
    rows = options.report == Report::kUserTop ? user_top(used, options)
                                              : accounts_by_user(used, options);
  }
  if (*recorded->since > window.from) {
    output.err << "sreport: jobs are recorded since " << slurm_time(recorded->since) << "\n";
  }
  if (options.has_heading) {
    print_title(options, window, output);
    options.table.print_heading(output.out);
  }
  for (const ReportRow& row : rows) options.table.print_row(row, output.out);
  return kExitOk;
}

base::Status set_report(const ReadWords& words, ReportOptions& options) {
  struct Known {
    std::string_view group, name;
    Report report;
    std::string_view format;
  };
  constexpr std::array kReports = {
      Known{"cluster", "utilization", Report::kUtilization,
            "Cluster,Allocated,Down,PLND Down,Idle,Planned,Reported"},
      Known{"cluster", "accountutilizationbyuser", Report::kAccountByUser,
            "Cluster,Account,Login,Proper Name,Used,Energy"},
      Known{"user", "topusage", Report::kUserTop, "Cluster,Login,Proper Name,Account,Used,Energy"}};
  const std::string name = words.rest.size() < 2 ? "" : slurm::lower_case(words.rest[1]);
  for (const Known& known : kReports) {
    const bool is_it = !name.empty() && slurm::same_word(words.rest[0], known.group) &&
                       known.name.starts_with(name);
    if (!is_it) continue;
    options.report = known.report;
    return options.table.set_columns(kFields, known.format);
  }
  std::string said;
  for (const std::string& word : words.rest) said += (said.empty() ? "" : " ") + word;
  return base::invalid_argument(
      "there is no report \"" + said +
      "\" here; there are: cluster utilization, cluster AccountUtilizationByUser, user top");
}

base::Status set_condition(const std::string& word, ReportOptions& options, const slurm::Now& now) {
  const std::size_t at = std::min(word.find('='), word.size());
  const std::string name = slurm::lower_case(word.substr(0, at));
  const std::string value = word.substr(std::min(at + 1, word.size()));
  const auto add = [&](std::set<std::string>& to) {
    for (std::string& one : list_of(value)) to.insert(std::move(one));
    return base::Status{};
  };
  if (name == "start" || name == "end") {
    const auto instant = past_instant(name, value, now);
    if (!instant) return instant.error();
    (name == "start" ? options.from : options.until) = *instant;
    return {};
  }
  if (name == "users" || name == "user") return add(options.users);
  if (name == "accounts" || name == "account") return add(options.accounts);
  if (name == "topcount") {
    const auto count = slurm::parse_integer(name, value, {.min = 1, .max = 1'000'000});
    if (!count) return count.error();
    options.top_count = static_cast<std::size_t>(*count);
    return {};
  }
  return base::invalid_argument(word +
                                ": is not there yet (start, end, users, accounts, topcount are)");
}

base::Status set_option(const ReadOption& option, const std::string& value,
                        ReportOptions& options) {
  if (option.name == "noheader") options.has_heading = false;
  if (option.name == "parsable") options.table.form = RecordForm::kEnded;
  if (option.name == "parsable2") options.table.form = RecordForm::kBetween;
  if (option.name == "cluster") options.context = value;
  if (!option.name.empty()) return {};
  struct Unit {
    std::string_view name;
    std::int64_t seconds;
  };
  for (const Unit& unit : {Unit{"Seconds", 1}, Unit{"Minutes", 60}, Unit{"Hours", 3'600}}) {
    if (value.empty() || !slurm::lower_case(unit.name).starts_with(slurm::lower_case(value)))
      continue;
    options.unit_seconds = unit.seconds;
    options.unit = unit.name;
    return {};
  }
  return base::invalid_argument("-t " + value + ": is not there yet (Seconds, Minutes, Hours are)");
}

// SOURCE: slurmdb_report_set_start_end_time(): without times the day before today.
base::Result<TimeWindow> window_of(const ReportOptions& options, const slurm::Now& now) {
  const auto today = slurm::parse_instant("midnight", "today", now);
  if (!today) return today.error();
  const TimeWindow window{.from = options.from.value_or(*today - std::chrono::hours{24}),
                          .until = options.until.value_or(*today)};
  if (window.from >= window.until) return base::invalid_argument("start must be before end");
  return window;
}

}  // namespace

int run_sreport(std::span<const std::string> arguments, const WithCluster& with_cluster,
                Output output) {
  if (const auto answer = answer_about_itself("sreport", kOptions, arguments)) {
    output.out << *answer;
    return kExitOk;
  }
  const auto words = read_words(kOptions, arguments);
  if (!words) return fail(output, words.error().message);
  ReportOptions options;
  const slurm::Now now = local_time(kube::SystemClock{}.wall());
  base::Status status = set_report(*words, options);
  for (const ReadOption& option : words->options) {
    if (status) status = set_option(option, option.value, options);
  }
  for (std::size_t i = 2; status && i < words->rest.size(); ++i) {
    status = set_condition(words->rest[i], options, now);
  }
  if (!status) return fail(output, status.error().message);
  const auto window = window_of(options, now);
  if (!window) return fail(output, window.error().message);
  return with_cluster.in(options.context)(
      [&](const Session& session) { return show(session, options, *window, output); });
}

SlurmReference sreport_reference() {
  return {.command = "sreport",
          .options = {kOptions.begin(), kOptions.end()},
          .fields = {},
          .words = {"cluster utilization", "cluster AccountUtilizationByUser", "user top"}};
}

}  // namespace cli
