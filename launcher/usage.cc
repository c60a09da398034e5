#include "launcher/usage.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <utility>

#include "launcher/process.h"

namespace launcher {
namespace {

constexpr std::int64_t kMicros = 1'000'000;  // in a second

std::chrono::microseconds duration_of(const timeval& time) {
  return std::chrono::seconds{time.tv_sec} + std::chrono::microseconds{time.tv_usec};
}

template <class Integer>
bool take_number(std::string_view& text, Integer& number) {
  const char* const end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(next - text.data()));
  if (text.starts_with(' ')) text.remove_prefix(1);
  return true;
}

std::vector<std::string_view> words_of(std::string_view line, char separator) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(separator), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

// Returns the name of the program without its folder. Only what needs no escapes in JSON and no
// thought in a table.
std::string step_name(std::string_view program) {
  program.remove_prefix(program.rfind('/') + 1);
  std::string name{program.substr(0, kUsageNameBytesMax)};
  for (char& c : name) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || c == '_';
    if (!is_plain) c = '_';
  }
  return name;
}

std::string six_digits(std::int64_t micros) {
  const std::string digits = std::to_string(micros);
  return std::string(6 - digits.size(), '0') + digits;
}

std::string duration_text(std::chrono::microseconds duration) {
  return std::to_string(duration.count() / kMicros) + "." + six_digits(duration.count() % kMicros) +
         "s";
}

// The part of a group's path below what is mounted; nullopt: it is not below it.
std::optional<std::string> below(std::string_view group, std::string_view root) {
  if (root == "/") return std::string{group == "/" ? "" : group};
  if (!group.starts_with(root)) return std::nullopt;
  group.remove_prefix(root.size());
  if (!group.empty() && group[0] != '/') return std::nullopt;
  return std::string{group};
}

std::string time_text(UsageReport::Time time) {
  const std::int64_t all =
      std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
  const auto seconds = static_cast<std::time_t>(all / kMicros);
  tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  return std::string{text.data(), size} + "." + six_digits(all % kMicros) + "Z";
}

// The fields are those of status.usage of a Job (api/job_usage.h).
std::string use_text(const Used& used) {
  return "\"userCPU\":\"" + duration_text(used.user) + "\",\"systemCPU\":\"" +
         duration_text(used.system) + "\",\"maxRSS\":\"" + std::to_string(used.max_rss) + "\"";
}

}  // namespace

void Used::add(const Used& other) {
  user += other.user;
  system += other.system;
  max_rss = std::max(max_rss, other.max_rss);
  memory_peak = std::max(memory_peak, other.memory_peak);
}

Used used_of(const rusage& usage) {
  return {.user = duration_of(usage.ru_utime),
          .system = duration_of(usage.ru_stime),
          .max_rss = static_cast<std::uint64_t>(usage.ru_maxrss) << 10U};
}

std::string encode(const Used& used) {
  return std::to_string(used.user.count()) + " " + std::to_string(used.system.count()) + " " +
         std::to_string(used.max_rss) + " " + std::to_string(used.memory_peak);
}

std::optional<Used> decode_used(std::string_view text) {
  std::int64_t user = 0;
  std::int64_t system = 0;
  Used used;
  const bool is_read = take_number(text, user) && take_number(text, system) &&
                       take_number(text, used.max_rss) && take_number(text, used.memory_peak);
  if (!is_read || !text.empty() || user < 0 || system < 0) return std::nullopt;
  used.user = std::chrono::microseconds{user};
  used.system = std::chrono::microseconds{system};
  return used;
}

// SOURCE: proc(5): "4 1 0:25 ROOT MOUNTPOINT OPTIONS … - TYPE SOURCE OPTIONS", cgroups(7):
// "0::PATH" of version 2, "5:memory:PATH" of version 1. A container sees its own group as the root
// of what is mounted, or has the whole path of the node in both files.
std::vector<std::string> memory_peak_files(std::string_view cgroups, std::string_view mounts) {
  std::vector<std::string> files;
  for (const std::string_view line : words_of(cgroups, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view kinds = line.substr(first + 1, second - first - 1);
    const bool is_unified = kinds.empty();
    if (!is_unified && kinds != "memory") continue;
    const std::string_view group = line.substr(second + 1);
    for (const std::string_view mount : words_of(mounts, '\n')) {
      const std::size_t dash = mount.find(" - ");
      if (dash == mount.npos) continue;
      const auto fields = words_of(mount.substr(0, dash), ' ');
      const auto kind = words_of(mount.substr(dash + 3), ' ');
      if (fields.size() < 5 || kind.size() < 3) continue;
      const bool is_it = is_unified ? kind[0] == "cgroup2"
                                    : kind[0] == "cgroup" &&
                                          std::ranges::count(words_of(kind[2], ','), "memory") > 0;
      const auto path = is_it ? below(group, fields[3]) : std::nullopt;
      // The root of version 1 counts the whole machine; that of version 2 has no such file.
      if (!path || (!is_unified && path->empty() && fields[3] == "/")) continue;
      files.push_back(std::string{fields[4]} + *path +
                      (is_unified ? "/memory.peak" : "/memory.max_usage_in_bytes"));
    }
  }
  return files;
}

std::uint64_t memory_peak() {
  const std::string cgroups = text_of_file("/proc/self/cgroup");
  for (const std::string& file : memory_peak_files(cgroups, text_of_file("/proc/self/mountinfo"))) {
    const std::string text = text_of_file(file);
    std::string_view rest{text};
    std::uint64_t bytes = 0;
    if (take_number(rest, bytes)) return bytes;
  }
  return 0;
}

void UsageReport::Part::take_status(int wait_status) {
  // SOURCE: slurmstepd: a step's exit code is the highest of its tasks.
  if (WIFSIGNALED(wait_status)) {
    signal = std::max(signal, WTERMSIG(wait_status));
  } else {
    exit_code = std::max(exit_code, WEXITSTATUS(wait_status));
  }
}

std::string UsageReport::Part::text(Time now, std::string_view id_text) const {
  const auto elapsed =
      std::chrono::duration_cast<std::chrono::microseconds>(end.value_or(now) - start);
  return "{\"id\":\"" + std::string{id_text} + "\",\"name\":\"" + name +
         "\",\"tasks\":" + std::to_string(size.tasks) + ",\"nodes\":" + std::to_string(size.nodes) +
         ",\"cpus\":" + std::to_string(size.cpus) + ",\"exitCode\":" + std::to_string(exit_code) +
         ",\"signal\":" + std::to_string(end ? signal : SIGKILL) + ",\"startTime\":\"" +
         time_text(start) + "\",\"elapsed\":\"" + duration_text(std::max(elapsed, {})) + "\"," +
         use_text(used) + "}";
}

UsageReport::Part* UsageReport::find(std::uint32_t id) {
  const auto found = std::ranges::find(steps_, id, &Part::id);
  return found == steps_.end() ? nullptr : &*found;
}

void UsageReport::script_ended(const Used& used, int wait_status, Time now) {
  script_.used.add(used);
  script_.take_status(wait_status);
  script_.end = now;
}

void UsageReport::begin_step(std::uint32_t id, std::string_view program, const StepSize& size,
                             Time now) {
  if (steps_.size() == kUsageStepsMax) {
    ++more_steps_;
    return;
  }
  steps_.push_back({.id = id, .name = step_name(program), .size = size, .start = now});
}

void UsageReport::task_ended(std::uint32_t id, int wait_status, std::string_view text) {
  const Used used = decode_used(text).value_or(Used{});
  of_steps_.add(used);
  Part* const step = find(id);
  if (step == nullptr) return;
  step->used.add(used);
  step->take_status(wait_status);
}

void UsageReport::end_step(std::uint32_t id, bool has_tasks, Time now) {
  Part* const step = find(id);
  if (step == nullptr) return;
  step->end = now;
  if (has_tasks) step->signal = SIGKILL;
}

std::string UsageReport::message(Time now, bool wants_requeue) const {
  Used all = script_.used;
  all.add(of_steps_);
  all.memory_peak = std::max(all.memory_peak, memory_peak());
  std::string text = std::string{"{\"kubegangUsage\":1,"} +
                     (wants_requeue ? "\"requeue\":true," : "") + use_text(all) +
                     ",\"memoryPeak\":\"" + std::to_string(all.memory_peak) + "\",\"steps\":[" +
                     script_.text(now, "batch");
  // The steps that fit, with room for how many more there were.
  constexpr std::size_t kRest = 64;
  std::size_t more = more_steps_;
  for (const Part& step : steps_) {
    const std::string one = "," + step.text(now, std::to_string(step.id));
    if (more > more_steps_ || text.size() + one.size() + kRest > kUsageMessageBytesMax) {
      ++more;
    } else {
      text += one;
    }
  }
  return text + "],\"moreSteps\":" + std::to_string(more) + "}";
}

void leave_message(const std::string& path, std::string_view message) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return;
  struct stat file {};
  if (::fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_size == 0) {
    (void)write_all(fd, message);
  }
  ::close(fd);
}

}  // namespace launcher
