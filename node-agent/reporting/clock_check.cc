#include "node-agent/reporting/clock_check.h"

#include <sys/timex.h>

namespace agent {

ClockReading read_clock_state() {
  timex state{};
  const int condition = ::adjtimex(&state);
  if (condition < 0) return {};
  // maxerror is in microseconds. The kernel lets it grow by 500 ppm until an NTP client sets it
  // again.
  return {.synchronised = condition != TIME_ERROR && (state.status & STA_UNSYNC) == 0,
          .error_max = base::Duration{state.maxerror}};
}

}  // namespace agent
