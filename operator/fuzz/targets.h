// The targets that the fuzzers run: the operator's readers of objects that users write.
#pragma once

#include <string_view>

namespace control {

// An object of any of the kinds that the operator reads, as JSON, whatever its schema would refuse:
// it is refused with sentences, or what is made of it is legal for the next reader.
void fuzz_objects(std::string_view text);

}  // namespace control
