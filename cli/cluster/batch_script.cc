#include "cli/cluster/batch_script.h"

#include <algorithm>
#include <string>

#include "cli/utf8.h"
#include "slurm/launchers.h"

namespace cli {
namespace {

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

// Returns ok if the text can be stored, and means to a shell what its author wrote.
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

base::Status check_batch_script(std::string_view script) {
  if (const base::Status status = check_text(script); !status) return status.error();
  if (const base::Status status = check_beginning(script); !status) return status.error();
  if (script.size() <= kScriptBytesMax) return {};
  return base::invalid_argument("longer than " + std::to_string(kScriptBytesMax) +
                                " bytes; put it into a file that the job sees, and call that");
}

base::Status check_launchers(std::span<const std::string> command, bool has_one_pod) {
  const auto call = slurm::launcher_in_command(command);
  if (!call || (has_one_pod && slurm::works_within_a_pod(call->launcher))) return {};
  return base::invalid_argument(
      (call->line > 0 ? "line " + std::to_string(call->line) + ": " : "") + "calls " +
      std::string{call->launcher} +
      ", but a command runs once on each of the job's nodes, as a task of it; write a batch script "
      "that calls it");
}

}  // namespace cli
