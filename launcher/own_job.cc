#include "launcher/own_job.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/step_environment.h"

namespace launcher {
namespace {

// A line of a record: the fields that have a value.
class Line {
 public:
  explicit Line(const Environment& environment) : environment_{environment} {}

  Line& say(std::string_view field, std::string_view value) {
    if (!value.empty()) {
      text_ += (text_.empty() ? "" : " ") + std::string{field} + "=" + std::string{value};
    }
    return *this;
  }
  Line& say_variable(std::string_view field, std::string_view variable,
                     std::string_view unit = "") {
    const std::string value = value_or(environment_, variable, "");
    return say(field, value.empty() ? value : value + std::string{unit});
  }
  const std::string& text() const { return text_; }

 private:
  const Environment& environment_;
  std::string text_;
};

std::string user_of(const Environment& environment) {
  const std::string name = value_or(environment, "SLURM_JOB_USER", "");
  const std::string number = value_or(environment, "SLURM_JOB_UID", "");
  return number.empty() ? name : name + "(" + number + ")";
}

// SOURCE: the record of Slurm's own scontrol (cli/slurm/scontrol_show.cc has all of it).
std::vector<std::string> lines_of(const Environment& environment) {
  const JobNodes nodes = job_nodes(environment);
  const auto cpus = std::accumulate(nodes.cpus.begin(), nodes.cpus.end(), std::uint64_t{0});
  const auto line = [&] { return Line{environment}; };
  return {line()
              .say_variable("JobId", "SLURM_JOB_ID")
              .say_variable("ArrayJobId", "SLURM_ARRAY_JOB_ID")
              .say_variable("ArrayTaskId", "SLURM_ARRAY_TASK_ID")
              .say_variable("JobName", "SLURM_JOB_NAME")
              .text(),
          line().say("UserId", user_of(environment)).text(),
          line()
              .say_variable("Account", "SLURM_JOB_ACCOUNT")
              .say_variable("QOS", "SLURM_JOB_QOS")
              .text(),
          line().say("JobState", "RUNNING").say("Reason", "None").text(),
          line()
              .say("Restarts", value_or(environment, "SLURM_RESTART_COUNT", "0"))
              .say("BatchFlag", "1")
              .say("Reboot", "0")
              .say("ExitCode", "0:0")
              .text(),
          line().say_variable("Partition", "SLURM_JOB_PARTITION").text(),
          line().say_variable("NodeList", "SLURM_JOB_NODELIST").text(),
          line().say("BatchHost", nodes.names.front()).text(),
          line()
              .say("NumNodes", std::to_string(nodes.names.size()))
              .say("NumCPUs", std::to_string(cpus))
              .say_variable("NumTasks", "SLURM_NTASKS")
              .say("CPUs/Task", value_or(environment, "SLURM_CPUS_PER_TASK", "1"))
              .text(),
          line()
              .say_variable("MinMemoryCPU", "SLURM_MEM_PER_CPU", "M")
              .say_variable("MinMemoryNode", "SLURM_MEM_PER_NODE", "M")
              .text()};
}

}  // namespace

bool is_own_job(const Environment& environment, const std::string& word) {
  const auto id = value_of(environment, "SLURM_JOB_ID");
  const auto array = value_of(environment, "SLURM_ARRAY_JOB_ID");
  const auto task = value_of(environment, "SLURM_ARRAY_TASK_ID");
  return (id && word == *id) || (array && task && word == *array + "_" + *task);
}

std::optional<std::string> show_own_job(const Environment& environment,
                                        std::span<const std::string> words) {
  bool is_one_line = false;
  for (; !words.empty() && words.front().starts_with('-'); words = words.subspan(1)) {
    const std::string& option = words.front();
    is_one_line = is_one_line || option == "-o" || option == "--oneliner";
    if (!is_one_line && option != "-d" && option != "-dd" && option != "--details") return {};
  }
  if (words.size() < 2 || words.size() > 3 || words.front() != "show") return {};
  // "job=1001" and "job 1001" are the same.
  const std::size_t equals = words[1].find('=');
  const bool is_joined = equals != std::string::npos;
  if (is_joined == (words.size() == 3)) return {};
  const std::string kind = words[1].substr(0, equals);
  constexpr std::array<std::string_view, 4> kKinds = {"job", "jobs", "jobid", "jobids"};
  const std::string id = is_joined ? words[1].substr(equals + 1) : words[2];
  if (std::ranges::find(kKinds, kind) == kKinds.end() || !is_own_job(environment, id)) return {};
  std::string record;
  for (const std::string& line : lines_of(environment)) {
    if (line.empty()) continue;
    if (!record.empty()) record += is_one_line ? " " : "\n   ";
    record += line;
  }
  return record + (is_one_line ? "\n" : "\n\n");
}

}  // namespace launcher
