#include <cstddef>
#include <cstdint>

#include "scheduler/fuzz/events.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sched::fuzz_events({data, size});
  return 0;
}
