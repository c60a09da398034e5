// Carries out effects somewhere else, so that the loop never waits for the network.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "operator/loop/counters.h"
#include "operator/write/effect.h"

namespace control {

class Writer {
 public:
  virtual ~Writer() = default;
  // Never blocks; the outcome reaches the Inbox. Effects are carried out in any order and in
  // parallel: what has an order is submitted after the outcome of what it waits for.
  virtual void submit(Effect effect) = 0;
  // Returns how many are under way at the same time; the others wait.
  virtual int at_once() const = 0;
};

// Passes effects on, counts them, and knows how many have not ended: waiting for a thread, on their
// way, or with an outcome that the loop has yet to hear. For the loop's thread.
class CountedWriter {
 public:
  CountedWriter(Writer& writer, LoopCounters& counters) : writer_{writer}, counters_{counters} {}

  void submit(Effect effect) {
    ++under_way_;
    if (std::int64_t LoopCounters::*counter = counter_of(effect)) ++(counters_.*counter);
    writer_.submit(std::move(effect));
  }
  template <typename T>
  void submit_all(std::vector<T>&& effects) {
    for (T& effect : effects) submit(std::move(effect));
  }
  template <typename T>
  void submit_if(std::optional<T>&& effect) {
    if (effect) submit(std::move(*effect));
  }
  // Call when a step of the loop begins: room() goes by what is heard in it.
  void begin_step() { heard_ = 0; }
  void heard_outcome() {
    --under_way_;
    ++heard_;
  }
  // Returns true if as many wait as can be under way: a new one must wait for long.
  bool is_busy() const { return under_way_ > 2 * std::int64_t{writer_.at_once()}; }
  // Returns how many more writes are worth submitting: as many as the writer will get through until
  // the next step, by what it did since the last one. Writes that find no room are decided again in
  // a later step, so that with a slow API server no line grows and nothing is written that is no
  // longer true. It is never 0 while nothing is under way, and an outcome brings the next step, so
  // nothing must be timed.
  std::size_t room() const {
    const std::int64_t most = 4 * std::int64_t{writer_.at_once()} + 2 * heard_;
    return static_cast<std::size_t>(std::max<std::int64_t>(most - under_way_, 0));
  }

 private:
  // Null: not counted.
  static std::int64_t LoopCounters::*counter_of(const Effect& effect);

  Writer& writer_;
  LoopCounters& counters_;
  std::int64_t under_way_ = 0;
  std::int64_t heard_ = 0;  // outcomes, in this step
};

}  // namespace control
