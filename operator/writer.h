// Carries out writes to the API server somewhere else, so that the loop never waits for the
// network.
#pragma once

#include <functional>
#include <string>

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
};

}  // namespace control
