#include "cli/cluster/batch_script.h"

#include <algorithm>
#include <array>

#include "slurm/text.h"

namespace cli {
namespace {

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

template <std::size_t count>
bool is_one_of(std::string_view word, const std::array<std::string_view, count>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The option with which an interpreter takes a program as its next argument; empty = none known.
std::string_view program_option(std::string_view interpreter) {
  constexpr std::array<std::string_view, 10> kDashC = {
      "sh", "bash", "dash", "ash", "ksh", "zsh", "python", "python2", "python3", "pypy3"};
  constexpr std::array<std::string_view, 3> kDashE = {"perl", "ruby", "node"};
  if (is_one_of(interpreter, kDashC)) return "-c";
  if (is_one_of(interpreter, kDashE)) return "-e";
  return {};
}

bool is_shell(std::string_view interpreter) {
  return interpreter == "sh" ||
         (interpreter.size() > 2 && interpreter.substr(interpreter.size() - 2) == "sh");
}

// After these words of a shell comes a command.
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

// The launcher that a line of a shell script calls; empty = none.
std::string_view launcher_in(std::string_view line) {
  constexpr std::array<std::string_view, 4> kLaunchers = {"srun", "mpirun", "mpiexec", "orterun"};
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
    if (command_follows && is_one_of(name, kLaunchers)) return name;
    command_follows = precedes_command(word);
  }
  return {};
}

base::Status check_launchers(std::string_view script) {
  for (std::size_t number = 1; !script.empty(); ++number) {
    const std::size_t end = script.find('\n');
    const std::string_view launcher = launcher_in(script.substr(0, end));
    script.remove_prefix(end == std::string_view::npos ? script.size() : end + 1);
    if (launcher.empty()) continue;
    return base::invalid_argument(
        "line " + std::to_string(number) + ": calls " + std::string{launcher} +
        ", which is not there: the script itself runs once on each of the job's nodes, as srun "
        "would run it (SLURM_NODEID and SLURM_JOB_NODELIST tell them apart)");
  }
  return {};
}

}  // namespace

base::Result<std::vector<std::string>> script_command(std::string_view script,
                                                      const std::string& name,
                                                      std::span<const std::string> arguments) {
  if (script.find('\0') != std::string_view::npos) {
    return base::invalid_argument("a zero byte in it: not a script");
  }
  if (script.size() > kScriptArgumentBytesMax) {
    return base::invalid_argument("longer than " + std::to_string(kScriptArgumentBytesMax) +
                                  " bytes; put it into the image and submit its path after --");
  }
  std::vector<std::string> command = {"/bin/sh"};
  if (script.substr(0, 2) == "#!") {
    const std::string first{slurm::trim(script.substr(2, script.find('\n') - 2))};
    // The kernel passes what follows the path as one argument; env takes it apart.
    command = slurm::split(first, ' ');
    command.erase(std::remove(command.begin(), command.end(), ""), command.end());
    if (command.empty()) return base::invalid_argument("line 1: no interpreter after #!");
  }
  std::string_view interpreter = base_name(command.front());
  if (interpreter == "env") {
    const auto program = std::find_if(command.begin() + 1, command.end(), [](const std::string& w) {
      return w.front() != '-' && w.find('=') == std::string::npos;
    });
    if (program == command.end()) return base::invalid_argument("line 1: env without a program");
    interpreter = base_name(*program);
  }
  const std::string_view option = program_option(interpreter);
  if (option.empty()) {
    return base::invalid_argument("line 1: the interpreter " + slurm::in_quotes(interpreter) +
                                  " takes no program as an argument; put the script into the image "
                                  "and submit its path after --");
  }
  if (is_shell(interpreter)) {
    const base::Status status = check_launchers(script);
    if (!status) return status.error();
  }
  command.emplace_back(option);
  command.emplace_back(script);
  command.push_back(name);
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

}  // namespace cli
