#include "node-agent/reporting/clock_check.h"

#include <sys/timex.h>

namespace agent {

ClockReading read_clock_state() {
  timex state{};
  const int condition = ::adjtimex(&state);
  if (condition < 0) return {};
  return {.synchronised = condition != TIME_ERROR && (state.status & STA_UNSYNC) == 0,
          .error_max = base::Duration{state.maxerror}};
}

}  // namespace agent
