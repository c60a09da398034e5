// The page's files, as they lie in bundle/ when the program is built.
#pragma once

#include <span>
#include <string_view>

namespace dashboard {

struct BundleFile {
  std::string_view path;  // "/app.js"
  std::string_view type;  // of its content
  std::string_view content;
};

std::span<const BundleFile> bundle_files();

}  // namespace dashboard
