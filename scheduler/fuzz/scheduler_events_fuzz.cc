#include <cstddef>
#include <cstdint>

#include "scheduler/fuzz/events.h"

// libFuzzer's entry. Everything it may return is 0; a finding aborts.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sched::fuzz_events({data, size});
  return 0;
}
