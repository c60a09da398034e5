// Draws pictures over each other on a terminal without flicker: the cursor goes up and only lines
// are rewritten. The last picture stays where it is. One thread.
#pragma once

#include <string>
#include <vector>

#include "e2e/devcluster/demo/picture.h"

namespace devcluster {

class Screen {
 public:
  // Standard output as a terminal; nullopt if it is none. Colour unless NO_COLOR is set
  // (no-color.org) or TERM is dumb; blocks where the locale says UTF-8.
  static std::optional<Terminal> terminal_of_stdout();

  // One write to standard output.
  void draw(const std::vector<std::string>& lines);
  // The next picture is drawn below this one.
  void keep() { lines_count_ = 0; }

 private:
  std::size_t lines_count_ = 0;
};

}  // namespace devcluster
