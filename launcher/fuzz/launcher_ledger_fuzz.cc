#include <cstddef>
#include <cstdint>

#include "launcher/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // libFuzzer hands over bytes; the target takes characters.
  launcher::fuzz_ledger({reinterpret_cast<const char*>(data), size});
  return 0;
}
