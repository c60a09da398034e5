// WaitingLine: what waits for room among the writes (CountedWriter::room), by name: each once, in
// the order in which it came. What there is to write of it is decided when its turn comes.
#pragma once

#include <cstddef>
#include <deque>
#include <set>
#include <string>
#include <utility>

namespace control {

// Cost: the logarithm of what waits for each call.
class WaitingLine {
 public:
  void add(const std::string& name) {
    if (names_.insert(name).second) order_.push_back(name);
  }
  bool empty() const { return order_.empty(); }
  std::size_t size() const { return order_.size(); }
  // REQUIRES of both: not empty.
  const std::string& first() const { return order_.front(); }
  std::string take_first() {
    std::string name = std::move(order_.front());
    order_.pop_front();
    names_.erase(name);
    return name;
  }

 private:
  std::deque<std::string> order_;
  std::set<std::string> names_;
};

}  // namespace control
