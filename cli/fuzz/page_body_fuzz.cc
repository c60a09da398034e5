#include <cstddef>
#include <cstdint>

#include "cli/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // libFuzzer hands over bytes; the readers take characters.
  cli::fuzz_page_body({reinterpret_cast<const char*>(data), size});
  return 0;
}
