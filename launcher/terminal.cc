#include "launcher/terminal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace launcher {
namespace {

// The size of a terminal that does not say how large it is.
constexpr std::uint32_t kRows = 24;
constexpr std::uint32_t kColumns = 80;

}  // namespace

TerminalEnds open_terminal(const Window& window) {
  const int ours = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (ours < 0) return {};
  // By the descriptor, not by its name: images may have no /dev/pts.
  const int program =
      ::unlockpt(ours) == 0 ? ::ioctl(ours, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC) : -1;
  if (program < 0) {
    const int why = errno;
    ::close(ours);
    errno = why;
    return {};
  }
  set_window(ours, window);
  return {.ours = ours, .program = program};
}

TerminalEnds open_output_terminal() {
  const TerminalEnds ends = open_terminal({});
  termios mode{};
  if (ends.ours >= 0 && ::tcgetattr(ends.program, &mode) == 0) {
    mode.c_oflag &= ~static_cast<tcflag_t>(OPOST);
    ::tcsetattr(ends.program, TCSANOW, &mode);
  }
  return ends;
}

void set_window(int terminal, const Window& window) {
  winsize size{};
  size.ws_row = static_cast<unsigned short>(window.rows);
  size.ws_col = static_cast<unsigned short>(window.columns);
  ::ioctl(terminal, TIOCSWINSZ, &size);
}

std::optional<Window> window_of(int fd) {
  winsize size{};
  if (::isatty(fd) == 0 || ::ioctl(fd, TIOCGWINSZ, &size) != 0) return std::nullopt;
  if (size.ws_row == 0 || size.ws_col == 0) return Window{.rows = kRows, .columns = kColumns};
  return Window{.rows = size.ws_row, .columns = size.ws_col};
}

int without_waiting(int fd) {
  if (::isatty(fd) == 0) return fd;
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const int own = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  return own < 0 ? fd : own;
}

bool is_in_background(int fd) {
  const pid_t reader = fd < 0 ? -1 : ::tcgetpgrp(fd);
  return reader >= 0 && reader != ::getpgrp();
}

RawTerminal::RawTerminal(int fd) : fd_{fd} {
  if (::tcgetattr(fd_, &before_) != 0) return;
  termios raw = before_;
  ::cfmakeraw(&raw);
  is_set_ = ::tcsetattr(fd_, TCSADRAIN, &raw) == 0;
}

RawTerminal::~RawTerminal() {
  if (is_set_) ::tcsetattr(fd_, TCSADRAIN, &before_);
}

}  // namespace launcher
