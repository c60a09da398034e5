// Ages as kubectl's tables show them.
#pragma once

#include <string>

#include "base/time.h"

namespace devcluster {

// kubectl's short form: 5s, 3m12s, 2h, 5d3h, 2y45d; "<invalid>" for more than a second ahead.
std::string age_text(base::Duration age);

}  // namespace devcluster
