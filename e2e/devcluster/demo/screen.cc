#include "e2e/devcluster/demo/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace devcluster {
namespace {

// Unset and empty are the same.
std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : std::string_view{value};
}

// The first variable that is set decides, in the order in which the C library reads them.
bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = variable(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string_view::npos ||
           value.find("utf8") != std::string_view::npos;
  }
  return false;
}

}  // namespace

// nullopt if the output is a file or a pipe, or a terminal that cannot move its cursor: then lines
// are printed instead of a picture.
std::optional<Terminal> Screen::terminal_of_stdout() {
  if (::isatty(STDOUT_FILENO) == 0 || variable("TERM") == "dumb") return std::nullopt;
  Terminal out{.colour = variable("NO_COLOR").empty(), .unicode = locale_is_utf8()};
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    out.columns = size.ws_col;
  }
  return out;
}

// Goes up by the lines of the last picture and writes over them. Each line is cleared to its end,
// and what is left of a longer picture below it, so the screen never flickers as it would if it
// were cleared first.
void Screen::draw(const std::vector<std::string>& lines) {
  std::string frame = "\x1b[?25l";  // the cursor stays hidden while we jump
  if (lines_count_ > 0) frame += "\x1b[" + std::to_string(lines_count_) + "A";
  for (const std::string& line : lines) frame += "\r" + line + "\x1b[K\n";
  frame += "\x1b[J\x1b[?25h";
  // One write() for the whole frame as far as the terminal takes it; the cursor is shown again at
  // its end.
  for (std::string_view rest = frame; !rest.empty();) {
    const ssize_t count = ::write(STDOUT_FILENO, rest.data(), rest.size());
    if (count <= 0) break;
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  lines_count_ = lines.size();
}

}  // namespace devcluster
