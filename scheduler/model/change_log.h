// ChangeLog: which ranks changed, in the order of the changes, for readers that keep something of
// each node and look only at the nodes that changed since they looked last.
//
// A reader remembers end() as its position. When that is below begin() the log has forgotten what
// the reader has not seen: anything may have changed.
//
// Cost: O(1); 256 KiB at most.
#pragma once

#include <cstddef>
#include <vector>

namespace sched {

class ChangeLog {
 public:
  std::size_t begin() const { return begin_; }
  std::size_t end() const { return begin_ + ranks_.size(); }
  // REQUIRES: begin() <= position < end().
  int at(std::size_t position) const { return ranks_[position - begin_]; }

  void note(int rank) {
    if (ranks_.size() == kMost) forget();
    ranks_.push_back(rank);
  }
  // Anything may have changed.
  void forget() {
    begin_ += ranks_.size() + 1;  // one more: readers at the old end must start over
    ranks_.clear();
  }

 private:
  static constexpr std::size_t kMost = 65'536;

  std::vector<int> ranks_;
  std::size_t begin_ = 0;
};

}  // namespace sched
