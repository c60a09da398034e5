// Arrays as Slurm shows them: a job for the tasks that wait, and one for each task that has started
// or ended. Pure, but for SLURM_BITSTR_LEN, which bounds how long a list of tasks is shown.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/job.h"

namespace cli {

// The tasks of an array that a line is about.
struct ArrayPart {
  std::int64_t array_id = 0;
  std::vector<int> tasks;         // ascending, one at least
  std::optional<int> throttle{};  // %N
  bool is_rest = false;           // shown as a list, of one task, too
};

// A job as it is, or a part of an array as a job of its own: its status is that of the part. Parts
// of which the same is to be said share one job.
struct JobPart {
  std::shared_ptr<const kube::Job> job;
  std::optional<ArrayPart> array{};
};

enum class ArrayView {
  kJoined,  // the tasks that wait are one part
  kEach,    // squeue -r
};

// Without `has_ended` tasks that have ended are left out. Each task that has started and not ended
// costs a copy of its job: filter jobs first.
std::vector<JobPart> array_parts(std::vector<kube::Job> jobs, ArrayView view, bool has_ended);

// Returns "7,10-12%2" or "0-98:2", as squeue's %K has it. SOURCE: a list that is not a row of steps
// is cut at 64 characters, or at SLURM_BITSTR_LEN (0: never), and ends with "..." then.
std::string task_text(const ArrayPart& part);
// Returns "1001", "1001_3", "1001_[3-6%2]". `id` is the number of the job itself.
std::string job_label(std::int64_t id, const std::optional<ArrayPart>& part);
// Returns the label as squeue's %i has it. SOURCE: recorded: without SLURM_BITSTR_LEN a list of
// tasks is cut at 31 characters.
std::string short_job_label(std::int64_t id, const std::optional<ArrayPart>& part);

// Splits "1001,1002_[1,3]" as its two words: commas in brackets do not separate.
std::vector<std::string> job_words(std::string_view text);

// "1001_[1-3]" as its two halves; nullopt if the word is not a job's number.
struct JobWord {
  std::int64_t id = 0;
  std::optional<std::vector<int>> tasks{};  // ascending
};
std::optional<JobWord> parse_job_word(std::string_view word);

// Returns true if "1001", "1001_3" or "1001_[3-6]" names it: by its own number, its array's, or its
// task.
bool is_named(const JobWord& word, std::int64_t id, const std::optional<ArrayPart>& part);

}  // namespace cli
