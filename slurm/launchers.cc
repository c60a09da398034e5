#include "slurm/launchers.h"

#include <algorithm>
#include <array>

namespace slurm {
namespace {

constexpr std::array<std::string_view, 4> kLaunchers = {"srun", "mpirun", "mpiexec", "orterun"};

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

template <std::size_t count>
bool is_one_of(std::string_view word, const std::array<std::string_view, count>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

constexpr std::array<std::string_view, 3> kClients = {"sbatch", "squeue", "scancel"};

// Returns the one of that name; empty if it is none.
template <std::size_t count>
std::string_view program_of(std::string_view name,
                            const std::array<std::string_view, count>& programs) {
  const auto* found = std::find(programs.begin(), programs.end(), name);
  return found == programs.end() ? std::string_view{} : *found;
}

// Returns true if the shell takes the next word for a command: after an operator, a keyword, a word
// that ends with an operator ("cd;"), or an assignment.
bool precedes_command(std::string_view word) {
  constexpr std::array<std::string_view, 19> kWords = {
      "&&",    "||",    "|", ";", "&", "then", "do",   "else",  "elif", "if",
      "while", "until", "!", "(", "{", "exec", "time", "nohup", "eval"};
  if (is_one_of(word, kWords)) return true;
  const char last = word.back();
  if (last == ';' || last == '&' || last == '|' || last == '(' || last == '`') return true;
  // An assignment in front of a command: OMP_NUM_THREADS=4.
  const std::size_t equals = word.find('=');
  return equals != std::string_view::npos && equals != 0 &&
         word.substr(0, equals).find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
             std::string_view::npos;
}

// Returns the one of the programs that a line of a shell script calls; empty if none. It knows
// words and not the shell's grammar, and may err in two ways: it must not miss the usual ways to
// call srun, since the job would fail in its first second, and must not refuse a script that only
// mentions it. For each word:
// 1. a word that begins with # begins a comment: the rest of the line is text
// 2. what follows the last ( or ` of the word is a command of its own
// 3. the name ends before an operator, and its folder does not count
// 4. the name is a program's in a place where a command stands
template <std::size_t count>
std::string_view program_in_line(std::string_view line,
                                 const std::array<std::string_view, count>& programs) {
  bool command_follows = true;
  while (!line.empty()) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return {};
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find_first_of(" \t\r"), line.size());
    std::string_view word = line.substr(0, end);
    line.remove_prefix(end);
    if (word.front() == '#') return {};
    // "$(srun", "(srun", "`srun" and "srun;" call it as well.
    const std::size_t opening = word.find_last_of("(`");
    std::string_view name = word;
    if (opening != std::string_view::npos) {
      name.remove_prefix(opening + 1);
      command_follows = true;
    }
    name = base_name(name.substr(0, name.find_first_of(";&|)`")));
    const std::string_view launcher = program_of(name, programs);
    if (command_follows && !launcher.empty()) return launcher;
    command_follows = precedes_command(word);
  }
  return {};
}

// Returns true for "-c", "-ec" and "-lc": the next word is a program's text. A long option is none.
bool takes_a_script(std::string_view option) {
  return option.size() > 1 && option[0] == '-' && option[1] != '-' && option.back() == 'c';
}

}  // namespace

std::string_view program_name(std::string_view path) {
  const std::string_view name = base_name(path);
  return name.substr(0, name.find_last_not_of("0123456789.") + 1);
}

bool is_shell(std::string_view program_name) {
  return program_name == "sh" || (program_name.size() > 2 && program_name.ends_with("sh"));
}

namespace {

template <std::size_t count>
std::optional<LauncherCall> program_in_script(std::string_view script,
                                              const std::array<std::string_view, count>& programs) {
  for (std::size_t number = 1; !script.empty(); ++number) {
    const std::size_t end = script.find('\n');
    const std::string_view launcher = program_in_line(script.substr(0, end), programs);
    if (!launcher.empty()) return LauncherCall{launcher, number};
    script.remove_prefix(end == std::string_view::npos ? script.size() : end + 1);
  }
  return std::nullopt;
}

}  // namespace

std::optional<LauncherCall> launcher_in_script(std::string_view script) {
  return program_in_script(script, kLaunchers);
}

std::optional<LauncherCall> client_in_script(std::string_view script) {
  return program_in_script(script, kClients);
}

// 1. The program stands first, or behind env and its options and assignments.
// 2. It is a launcher.
// 3. It is a shell, or unknown since the image names it: the word behind -c is a script.
std::optional<LauncherCall> launcher_in_command(std::span<const std::string> words) {
  auto at = words.begin();
  if (at != words.end() && program_name(*at) == "env") {
    at = std::find_if(at + 1, words.end(), [](const std::string& word) {
      return !word.starts_with('-') && word.find('=') == std::string::npos;
    });
  }
  if (at == words.end()) return std::nullopt;
  const std::string_view launcher = program_of(base_name(*at), kLaunchers);
  if (!launcher.empty()) return LauncherCall{.launcher = launcher};
  const bool is_option = at->starts_with('-');
  if (!is_option && !is_shell(program_name(*at))) return std::nullopt;
  const auto option = std::find_if(is_option ? at : at + 1, words.end(), takes_a_script);
  if (option == words.end() || option + 1 == words.end()) return std::nullopt;
  return launcher_in_script(*(option + 1));
}

bool works_within_a_pod(std::string_view launcher) {
  return launcher != "srun";
}

}  // namespace slurm
