// A job array (13.4): one request for many tasks, which are jobs of their own once they have
// started or differ from the rest. Each other task takes only one or two bits.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace sched {

// A set of numbers of tasks: a bit each up to the highest one.
class TaskSet {
 public:
  // Adds the tasks first, first + step, … up to last.
  void insert(int first, int last, int step = 1) {
    reserve(last);
    for (int task = first; task <= last; task += step) insert(task);
  }
  void insert(int task) {
    reserve(task);
    std::uint64_t& word = words_[word_of(task)];
    if ((word & bit_of(task)) == 0) ++size_;
    word |= bit_of(task);
  }
  void erase(int task) {
    if (!contains(task)) return;
    words_[word_of(task)] &= ~bit_of(task);
    --size_;
  }
  bool contains(int task) const {
    return word_of(task) < words_.size() && (words_[word_of(task)] & bit_of(task)) != 0;
  }
  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Returns the lowest one from `from` on. Cost: O(what is empty before it / 64).
  std::optional<int> next(int from = 0) const {
    for (std::size_t at = word_of(from); at < words_.size(); ++at) {
      const std::uint64_t rest =
          at == word_of(from) ? words_[at] & ~(bit_of(from) - 1) : words_[at];
      if (rest != 0) return static_cast<int>(at) * kBits + std::countr_zero(rest);
    }
    return std::nullopt;
  }
  // Returns nullopt if it is empty.
  std::optional<int> last() const {
    for (std::size_t at = words_.size(); at-- > 0;) {
      if (words_[at] == 0) continue;
      return static_cast<int>(at) * kBits + kBits - 1 - std::countl_zero(words_[at]);
    }
    return std::nullopt;
  }
  // Returns how many are lower than this one. Cost: O(task / 64).
  int count_below(int task) const {
    int count = 0;
    const std::size_t end = std::min(word_of(task), words_.size());
    for (std::size_t at = 0; at < end; ++at) count += std::popcount(words_[at]);
    if (end < words_.size()) count += std::popcount(words_[end] & (bit_of(task) - 1));
    return count;
  }
  // Calls visit(task) in ascending order.
  void each(const auto& visit) const {
    for (auto task = next(); task; task = next(*task + 1)) visit(*task);
  }
  friend bool operator==(const TaskSet& a, const TaskSet& b) {
    if (a.size_ != b.size_) return false;
    const std::size_t both = std::min(a.words_.size(), b.words_.size());
    return std::equal(a.words_.begin(), a.words_.begin() + static_cast<std::ptrdiff_t>(both),
                      b.words_.begin());
  }

 private:
  static constexpr int kBits = 64;
  static std::size_t word_of(int task) { return static_cast<std::size_t>(task) / kBits; }
  static std::uint64_t bit_of(int task) { return std::uint64_t{1} << (task % kBits); }
  void reserve(int task) {
    if (word_of(task) >= words_.size()) words_.resize(word_of(task) + 1);
  }

  std::vector<std::uint64_t> words_;
  int size_ = 0;
};

struct ArrayRequest {
  TaskSet tasks;
  std::optional<int> at_once;  // the most that run at the same time (--array=…%N)
  // The most that may have started and not ended, running or waiting again: with as many, no other
  // one starts. The caller stores something of each.
  std::optional<int> begun_most;
  friend bool operator==(const ArrayRequest&, const ArrayRequest&) = default;
};

// The fate of a task. kNotEnded: it waits, or runs, or is not a task of the array.
enum class TaskOutcome : std::uint8_t { kNotEnded, kSucceeded, kFailed, kCanceled };

// Two bits for each task.
class TaskOutcomes {
 public:
  TaskOutcome of(int task) const {
    if (word_of(task) >= words_.size()) return TaskOutcome::kNotEnded;
    return static_cast<TaskOutcome>((words_[word_of(task)] >> shift_of(task)) & 3);
  }
  void set(int task, TaskOutcome outcome) {
    if (word_of(task) >= words_.size()) words_.resize(word_of(task) + 1);
    --counts_[index(of(task))];
    ++counts_[index(outcome)];
    std::uint64_t& word = words_[word_of(task)];
    word &= ~(std::uint64_t{3} << shift_of(task));
    word |= std::uint64_t{index(outcome)} << shift_of(task);
  }
  // Returns how many have ended so. REQUIRES: not kNotEnded.
  int count(TaskOutcome outcome) const { return counts_[index(outcome)]; }
  int ended() const { return -counts_[0]; }
  friend bool operator==(const TaskOutcomes& a, const TaskOutcomes& b) {
    if (a.counts_ != b.counts_) return false;
    const std::size_t both = std::min(a.words_.size(), b.words_.size());
    return std::equal(a.words_.begin(), a.words_.begin() + static_cast<std::ptrdiff_t>(both),
                      b.words_.begin());
  }

 private:
  static constexpr int kTasks = 32;  // in a word
  static std::size_t word_of(int task) { return static_cast<std::size_t>(task) / kTasks; }
  static int shift_of(int task) { return task % kTasks * 2; }
  static std::size_t index(TaskOutcome outcome) { return static_cast<std::size_t>(outcome); }

  std::vector<std::uint64_t> words_;
  // By outcome; those that have not ended count from 0 down.
  std::array<int, 4> counts_{};
};

// Facts of an array as a whole, beside those of every job. A task that is in neither set has its
// own record: it has started, or differs from the rest.
struct ArrayFacts {
  TaskSet waiting;
  TaskOutcomes outcomes;
  friend bool operator==(const ArrayFacts&, const ArrayFacts&) = default;
};

}  // namespace sched
