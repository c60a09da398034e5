// Processes, files and the environment of this program.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace launcher {

using Environment = std::vector<std::string>;  // NAME=value

Environment own_environment();
// Returns the value of the last entry of that name.
std::optional<std::string> value_of(const Environment& environment, std::string_view name);
std::string value_or(const Environment& environment, std::string_view name,
                     std::string_view otherwise);
// Returns the decimal number at the beginning of the text.
std::uint32_t number_or(const std::string& text, std::uint32_t otherwise);
// Replaces the entry of that name, or adds one.
void set(Environment& environment, std::string_view name, std::string_view value);
void unset(Environment& environment, std::string_view name);

// Returns the folder that this program is in.
std::string own_directory();

struct Program {
  std::vector<std::string> argv;  // argv[0] is looked up in the PATH of `environment`
  Environment environment;
  std::string directory;  // if it is missing, /tmp
  int input = 0;          // become 0, 1 and 2 of the program; all others are closed
  int output = 1;
  int error = 2;
  int extra = -1;                      // if there is one, it becomes 3
  bool has_terminal = false;           // `input` is one, and becomes that of the session
  std::string speaker;                 // begins the message of a program that cannot be started
  std::optional<std::string> umask{};  // in octal digits; none: the launcher's
};

// Starts it as the leader of a session of its own, with default signal handlers, nothing blocked,
// and its number as SLURM_TASK_PID. A program that cannot be executed ends with the number of the
// error, as Slurm's step daemon does, and says why on its standard error. Returns the PID, or -1
// with errno.
pid_t start(const Program& program);

// Sends it to all processes of these sessions, also to those in the background of their shells,
// which have process groups of their own. Reads /proc once; for SIGKILL until nothing new is there,
// at most kKillLooksMax times: what makes processes faster than that ends with the pod.
inline constexpr int kKillLooksMax = 20;
void signal_sessions(const std::set<pid_t>& sessions, int number);

// Blocks all signals but those of the program's own faults, and takes in processes whose parents
// end, inside a pod and outside of one. Returns a descriptor that signals are read from.
int take_signals();
// Returns the next signal that has come on that descriptor; nullopt: none is left.
std::optional<int> next_signal(int fd);

// Writes all of it, also to a pipe that is full. False: it cannot be written, see errno.
bool write_all(int fd, std::string_view bytes);

// Returns a wait status as a shell has it: the exit code, or 128 + signal.
int shell_code(int wait_status);

// Returns the names in a folder but for hidden ones; none if it cannot be read.
std::vector<std::string> names_in(const std::string& folder);
// Returns the text of the file; "" if it cannot be read.
std::string text_of_file(const std::string& path);

}  // namespace launcher
