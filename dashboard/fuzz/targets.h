// The targets of the fuzzers: what the page's server reads of its clients and of the kernel, with
// what must hold whatever the text is. A broken promise aborts.
#pragma once

#include <string_view>

namespace dashboard {

// A request: what is decided of its begin is not decided otherwise when more of it comes, and what
// is let in has this machine's name.
void fuzz_request(std::string_view text);

}  // namespace dashboard
