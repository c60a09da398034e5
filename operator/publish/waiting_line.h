// WaitingLine: names that wait for room among the writes (CountedWriter::room): each once, in the
// order in which it came. The write itself is decided when its turn comes.
#pragma once

#include <cstddef>
#include <deque>
#include <set>
#include <string>
#include <utility>

namespace control {

// Cost: the logarithm of what waits for each call.
template <typename Name>
class WaitingLineOf {
 public:
  void add(const Name& name) {
    if (names_.insert(name).second) order_.push_back(name);
  }
  // Takes one of `room` for the name and returns true, if there is any and no other waits before
  // it. Else the name waits, and the caller asks again when first() returns it.
  bool may_go(const Name& name, std::size_t& room) {
    if (room == 0 || !(empty() || first() == name)) {
      add(name);
      return false;
    }
    --room;
    return true;
  }
  bool empty() const { return order_.empty(); }
  std::size_t size() const { return order_.size(); }
  // REQUIRES of both: not empty.
  const Name& first() const { return order_.front(); }
  Name take_first() {
    Name name = std::move(order_.front());
    order_.pop_front();
    names_.erase(name);
    return name;
  }

 private:
  std::deque<Name> order_;
  std::set<Name> names_;
};
using WaitingLine = WaitingLineOf<std::string>;

}  // namespace control
