// The targets of the fuzzers: each reader of text that comes from an API server, a file or another
// program, with what must hold whatever the text is. A broken promise aborts.
#pragma once

#include <string_view>

namespace kube {

// A kubeconfig: refused with a sentence, or a configuration that names a server.
void fuzz_kubeconfig(std::string_view text);

// The output of a credential plugin.
void fuzz_credential(std::string_view text);

// Quantities, durations, instants, base64 and URLs: what is written is read back as the same value.
void fuzz_values(std::string_view text);

// An object as an API server sends it: without the fields that its type does not read it is decoded
// as the same, and what is decoded, written and decoded again is the same object.
void fuzz_wire(std::string_view text);

}  // namespace kube
