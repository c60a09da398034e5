// Puts this program into a folder, under all its names.
#pragma once

#include <string>

namespace launcher {

// 0, or 1 with a sentence on standard error.
int install(const std::string& directory);

}  // namespace launcher
