// Terminals: those that tasks of srun --pty have, and the one that srun is called at.
#pragma once

#include <termios.h>

#include <optional>

#include "launcher/message.h"

namespace launcher {

struct TerminalEnds {
  int ours = -1;     // what is written there is typed, what is read from it was printed
  int program = -1;  // its standard input, output and error
};
// -1 and errno: there are no terminals in this container.
TerminalEnds open_terminal(const Window& window);

// Opens one for output alone, which changes nothing: programs write each line at once to it.
TerminalEnds open_output_terminal();

void set_window(int terminal, const Window& window);
// nullopt: it is not a terminal.
std::optional<Window> window_of(int fd);
// If it is a terminal, a descriptor for it on which writes do not wait, as they would while it is
// stopped (Ctrl-S); else `fd`. A mode of `fd` itself would be that of the caller's shell, too.
int without_waiting(int fd);
// Returns true if another process reads the terminal now: reading in the background stops us.
bool is_in_background(int fd);

// Has a terminal pass on all that is typed as it is, for as long as this lives.
class RawTerminal {
 public:
  explicit RawTerminal(int fd);
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  const int fd_;
  termios before_{};
  bool is_set_ = false;
};

}  // namespace launcher
