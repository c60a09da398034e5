#include <cstddef>
#include <cstdint>

#include "dashboard/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  dashboard::fuzz_request({reinterpret_cast<const char*>(data), size});
  return 0;
}
