#include "cli/cluster/batch_script.h"

#include <algorithm>
#include <array>
#include <optional>

#include "cli/utf8.h"
#include "slurm/launchers.h"
#include "slurm/text.h"

namespace cli {
namespace {

template <std::size_t count>
bool is_one_of(std::string_view word, const std::array<std::string_view, count>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// How an interpreter takes a program's text and the program's arguments: "OPTION TEXT BETWEEN
// ARGUMENT…".
struct TextForm {
  enum class Between {
    kNothing,  // every word behind the text is an argument
    kName,     // the first word behind the text is $0
    kDashes,   // "--" ends the interpreter's own options, which "--epochs" would be taken for
  };
  std::string_view option;
  Between between = Between::kNothing;
};

// Returns nullopt for an interpreter, named without its version, that is not known. Rscript is
// missing on purpose: the shell script that starts R passes the text of -e through `echo`, which
// may change its backslashes.
std::optional<TextForm> text_form(std::string_view name) {
  constexpr std::array<std::string_view, 6> kShells = {"sh", "bash", "dash", "ash", "ksh", "zsh"};
  // csh and tcsh put all words into $argv.
  constexpr std::array<std::string_view, 4> kDashC = {"python", "pypy", "csh", "tcsh"};
  constexpr std::array<std::string_view, 3> kDashE = {"perl", "ruby", "node"};
  if (is_one_of(name, kShells)) return TextForm{"-c", TextForm::Between::kName};
  if (is_one_of(name, kDashC)) return TextForm{"-c", TextForm::Between::kNothing};
  if (is_one_of(name, kDashE)) return TextForm{"-e", TextForm::Between::kDashes};
  return std::nullopt;
}

// Returns ok if the text begins as a batch script does.
// SOURCE: sbatch refuses these texts, too. /bin/sh, which a kernel or a shell would try instead, is
// not what their authors mean: most often something stands before #!, and the interpreter and the
// directives would be lost.
base::Status check_beginning(std::string_view script) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (script.empty()) return base::invalid_argument("the batch script is empty");
  if (script.find_first_not_of(" \t\n\v\f\r") == std::string_view::npos) {
    return base::invalid_argument("the batch script has only blanks and line breaks");
  }
  if (script.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    return base::invalid_argument(
        "line 1: begins with a byte order mark; save the script as UTF-8 without one");
  }
  if (script.substr(0, 2) != "#!") {
    return base::invalid_argument(
        "line 1: not a batch script; the script must begin with #! and the path of an interpreter, "
        "for example #!/bin/sh");
  }
  return {};
}

// Returns ok if the text can be an argument of a pod's command.
base::Status check_text(std::string_view script) {
  if (script.find('\0') != std::string_view::npos) {
    return base::invalid_argument("a zero byte in it: not a script");
  }
  // SOURCE: sbatch refuses such a script, too: the shell would take the carriage return for a part
  // of the last word of each line.
  if (const std::size_t at = script.find("\r\n"); at != std::string_view::npos) {
    const std::string_view before = script.substr(0, at);
    return base::invalid_argument(
        "line " + std::to_string(std::count(before.begin(), before.end(), '\n') + 1) +
        ": ends with a DOS line break; convert the script, for example with dos2unix");
  }
  if (const auto line = line_that_is_not_utf8(script)) {
    return base::invalid_argument("line " + std::to_string(*line) +
                                  ": must be UTF-8, because the API server stores no other text; "
                                  "convert the script, for example with iconv");
  }
  return {};
}

}  // namespace

// A batch script has no file in the pod, so it becomes an argument of its interpreter: `bash -c
// TEXT NAME ARGUMENT…`, `python3 -c TEXT ARGUMENT…`.
//
// 1. The text is a batch script and can be an argument: valid UTF-8, Unix line breaks, not longer
//    than the kernel takes.
// 2. The first line says which interpreter.
// 3. The interpreter must take a program as an argument, and its option for that is known.
base::Result<std::vector<std::string>> script_command(std::string_view script,
                                                      const std::string& name,
                                                      std::span<const std::string> arguments) {
  if (const base::Status status = check_text(script); !status) return status.error();
  if (const base::Status status = check_beginning(script); !status) return status.error();
  if (script.size() > kScriptArgumentBytesMax) {
    return base::invalid_argument("longer than " + std::to_string(kScriptArgumentBytesMax) +
                                  " bytes; put it into the image and submit its path after --");
  }
  std::string first{slurm::trim(script.substr(2, script.find('\n') - 2))};
  // All words become arguments of their own. The kernel would pass what follows the path as one,
  // but there it is mostly one word, or `env -S`, which takes the words apart itself.
  std::replace(first.begin(), first.end(), '\t', ' ');
  std::vector<std::string> command = slurm::split(first, ' ');
  command.erase(std::remove(command.begin(), command.end(), ""), command.end());
  if (command.empty()) return base::invalid_argument("line 1: no interpreter after #!");
  // The interpreter decides how a program becomes an argument. Behind env it is the first word that
  // is neither an option nor an assignment.
  std::string_view interpreter = slurm::program_name(command.front());
  if (interpreter == "env") {
    const auto program = std::find_if(command.begin() + 1, command.end(), [](const std::string& w) {
      return w.front() != '-' && w.find('=') == std::string::npos;
    });
    if (program == command.end()) return base::invalid_argument("line 1: env without a program");
    interpreter = slurm::program_name(*program);
  }
  const std::optional<TextForm> form = text_form(interpreter);
  if (!form) {
    return base::invalid_argument("line 1: kubegang cannot hand a script to the interpreter " +
                                  slurm::in_quotes(interpreter) +
                                  "; put the script into the image and submit its path after --");
  }
  command.emplace_back(form->option);
  command.emplace_back(script);
  if (form->between == TextForm::Between::kName) command.push_back(name);
  if (form->between == TextForm::Between::kDashes && !arguments.empty()) command.push_back("--");
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

// The number of the line is part of the sentence, because scripts are long and the word may stand
// in them several times.
base::Status check_launchers(std::span<const std::string> command, bool has_one_pod) {
  const auto call = slurm::launcher_in_command(command);
  if (!call || (has_one_pod && slurm::works_within_a_pod(call->launcher))) return {};
  return base::invalid_argument(
      (call->line > 0 ? "line " + std::to_string(call->line) + ": " : "") + "calls " +
      std::string{call->launcher} +
      ", which kubegang does not have: the script itself runs once on each of the job's nodes, as "
      "srun would run it (SLURM_NODEID and SLURM_JOB_NODELIST tell them apart)");
}

}  // namespace cli
