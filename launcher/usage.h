// The usage of the script and the steps of a job, and the message about it that the launcher of
// the first pod leaves in its container's termination log, where the operator finds it
// (operator/gang/usage_message.h).
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace launcher {

// SOURCE: kubelet keeps 4 KiB of a container's termination message, and shares 12 KiB among all
// containers of a pod: the launcher's image, the script and two that a webhook has added have room.
inline constexpr std::size_t kUsageMessageBytesMax = 3'072;
inline constexpr std::size_t kUsageStepsMax = 32;      // of which is said more than how many
inline constexpr std::size_t kUsageNameBytesMax = 32;  // of a step's name

// The use of processes that have ended.
struct Used {
  std::chrono::microseconds user{};
  std::chrono::microseconds system{};
  std::uint64_t max_rss = 0;      // bytes of the largest process
  std::uint64_t memory_peak = 0;  // bytes of the container; 0: not known

  void add(const Used& other);
  friend bool operator==(const Used&, const Used&) = default;
};
Used used_of(const rusage& usage);
// As text of the message Exited; nullopt: it says nothing about use.
std::string encode(const Used& used);
std::optional<Used> decode_used(std::string_view text);

// Returns the most memory that the container of this process has had at once, in bytes; 0 if the
// kernel does not say it for this container alone.
std::uint64_t memory_peak();
// Returns the same from the texts of /proc/self/cgroup and /proc/self/mountinfo: the files to look
// at, of which the first that exists has it.
std::vector<std::string> memory_peak_files(std::string_view cgroups, std::string_view mounts);

class UsageReport {
 public:
  using Time = std::chrono::system_clock::time_point;

  void begin_script(Time now) { script_.start = now; }
  void script_ended(const Used& used, int wait_status, Time now);
  // Adds usage of processes without a waiting parent: the script's, as far as is known.
  void add_rest(const Used& used) { script_.used.add(used); }

  struct StepSize {
    std::size_t tasks = 1;
    std::size_t nodes = 1;
    std::size_t cpus = 0;
  };
  void begin_step(std::uint32_t id, std::string_view program, const StepSize& size, Time now);
  // `text`: of Exited.
  void task_ended(std::uint32_t id, int wait_status, std::string_view text);
  // With tasks that still run: they are killed.
  void end_step(std::uint32_t id, bool has_tasks, Time now);

  // Returns one line of JSON. A step that has not ended is one that was killed. `wants_requeue`:
  // the job is to run again, which the field "requeue" says (api/job_usage.h).
  std::string message(Time now, bool wants_requeue = false) const;

 private:
  struct Part {
    std::uint32_t id = 0;
    std::string name{};
    StepSize size{};
    Time start{};
    std::optional<Time> end{};
    Used used{};
    int exit_code = 0;
    int signal = 0;

    void take_status(int wait_status);
    std::string text(Time now, std::string_view id_text) const;
  };
  Part* find(std::uint32_t id);

  Part script_{.name = "batch"};
  std::vector<Part> steps_;  // the first ones
  Used of_steps_;            // of all
  std::size_t more_steps_ = 0;
};

// Writes it to the file if that is there and empty: what the script itself has written stays.
void leave_message(const std::string& path, std::string_view message);

}  // namespace launcher
