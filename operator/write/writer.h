// Carries out writes to the API server somewhere else, so that the loop never waits for the
// network.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace control {

struct Write {
  // The commit point, for crash tests and logs: "start", "ready", "ending", "pod-create", …
  std::string point;
  // Calls the API server; on any thread. Returns what is to be done with the answer on the loop's
  // thread. Must capture values only.
  std::function<std::function<void()>()> run;
};

class Writer {
 public:
  virtual ~Writer() = default;
  // Never blocks. Writes run in any order and in parallel: what has an order is submitted after the
  // result of what it waits for.
  virtual void submit(Write write) = 0;
  // So many are under way at the same time; the others wait.
  virtual int at_once() const = 0;
};

// Passes writes on and knows how many have not ended: waiting for a thread, on their way, or with
// an answer that the loop has yet to hear. Of the loop's thread; must live until the last one has
// ended.
class CountedWriter {
 public:
  explicit CountedWriter(Writer& writer) : writer_{writer} {}

  void submit(Write write) {
    ++under_way_;
    writer_.submit({.point = std::move(write.point), .run = [this, run = std::move(write.run)] {
                      return [this, done = run()] {
                        --under_way_;
                        done();
                      };
                    }});
  }
  // As many wait as can be under way: what is submitted now has to wait for long.
  bool is_busy() const { return under_way_ > 2 * std::int64_t{writer_.at_once()}; }

 private:
  Writer& writer_;
  std::int64_t under_way_ = 0;
};

}  // namespace control
