// metadata.managedFields records which client wrote which field. It is more than half of the text
// of a pod, and none of our programs needs it.
#pragma once

#include <string>
#include <string_view>

namespace kube {

// Returns the same JSON without any field "managedFields" whose value is a list, as API servers
// write it (no blank after the name). Returns the text unchanged if it has no such field or is not
// JSON. Cost: one pass, a small part of what parsing costs.
std::string without_managed_fields(std::string_view text);

}  // namespace kube
