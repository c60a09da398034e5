// An answer's body that goes on for a while: a watch, or a log that is followed.
#pragma once

#include <memory>
#include <string>

#include "base/time.h"

namespace devcluster {

enum class StreamState {
  kOpen,   // there may be more
  kEnd,    // over, as announced (time-out of a watch, container ended)
  kReset,  // the connection must break without a proper end
};

// One reader thread; cancel() from any thread.
class BodyStream {
 public:
  virtual ~BodyStream() = default;

  // Appends what is there to `out` and returns; with nothing there, waits for it, `wait` at most
  // (real time). kEnd and kReset come after everything else has been read.
  virtual StreamState read(std::string& out, base::Duration wait) = 0;

  // Makes a waiting read() return at once, and all later ones: the reader goes away.
  virtual void cancel() = 0;
};

}  // namespace devcluster
