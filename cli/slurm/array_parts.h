// Arrays as Slurm shows them: a job for the tasks that wait, and one for each task that has started
// or ended. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/job.h"

namespace cli {

// The tasks of an array that a line is about.
struct ArrayPart {
  std::int64_t array_id = 0;
  std::vector<int> tasks;        // ascending, one at least
  std::optional<int> throttle{};  // %N
};

// A job as it is, or a part of an array as a job of its own: its status is that of the part.
struct JobPart {
  kube::Job job;
  std::optional<ArrayPart> array{};
};

enum class ArrayView {
  kJoined,  // the tasks that wait are one part
  kEach,    // squeue -r
};

// Without `has_ended` tasks that have ended are left out.
std::vector<JobPart> array_parts(std::vector<kube::Job> jobs, ArrayView view, bool has_ended);

// "7,10-12%2", as squeue's %K has it.
std::string task_text(const ArrayPart& part);
// "1001", "1001_3", "1001_[3-6%2]", as squeue's %i has it. `id` is the number of the job itself.
std::string job_label(std::int64_t id, const std::optional<ArrayPart>& part);
// Returns true if "1001", "1001_3" or "1001_[3-6]" names it: by its own number, its array's, or its
// task.
bool is_named(std::string_view word, std::int64_t id, const std::optional<ArrayPart>& part);

// "1001,1002_[1,3]" as its two words: commas in brackets do not separate.
std::vector<std::string> job_words(std::string_view text);

// "1001_[1-3]" as its two halves; nothing if the word is no number of a job.
struct JobWord {
  std::int64_t id = 0;
  std::optional<std::vector<int>> tasks{};
};
std::optional<JobWord> parse_job_word(std::string_view word);

}  // namespace cli
