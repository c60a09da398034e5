#include "cli/slurm/reference.h"

#include <sstream>

#include "cli/slurm/sacct_command.h"
#include "cli/slurm/scancel_command.h"
#include "cli/slurm/scontrol_command.h"
#include "cli/slurm/seff_command.h"
#include "cli/slurm/sinfo_command.h"
#include "cli/slurm/sprio_command.h"
#include "cli/slurm/squeue_command.h"
#include "cli/slurm/sreport_command.h"
#include "cli/slurm/sshare_command.h"

namespace cli {
namespace {

std::string spelled(const WordOption& option) {
  std::string text;
  if (option.letter != '\0') text = std::string{'`', '-', option.letter, '`'};
  if (option.name.empty()) return text;
  return text + (text.empty() ? "" : ", ") + "`--" + std::string{option.name} + "`";
}

// A bar would end the cell.
std::string cell_of(std::string_view text) {
  std::string cell;
  for (const char c : text) cell += (c == '|' ? "\\" : "") + std::string{c};
  return cell;
}

void write_options(const SlurmReference& reference, std::ostream& out) {
  out << "| Option | Here |\n|---|---|\n";
  for (const WordOption& option : reference.options) {
    out << "| " << spelled(option) << " | "
        << cell_of(option.refused.empty() ? std::string{option.what}
                                          : "refused: " + std::string{option.refused})
        << " |\n";
  }
}

void write_words(const SlurmReference& reference, std::ostream& out) {
  if (reference.words.empty()) return;
  out << "\nWords: ";
  bool is_first = true;
  for (const std::string& word : reference.words) {
    out << (is_first ? "`" : ", `") << word << "`";
    is_first = false;
  }
  out << ". Every other one is refused by name.\n";
}

void write_fields(const SlurmReference& reference, std::ostream& out) {
  if (reference.fields.empty()) return;
  out << "\n| Letter | Field | Says |\n|---|---|---|\n";
  for (const FieldReference& field : reference.fields) {
    out << "| " << (field.letter.empty() ? "" : "`%" + field.letter + "`") << " | "
        << (field.name.empty() ? "" : "`" + field.name + "`") << " | ";
    if (!field.is_constant) {
      out << "the value";
    } else if (field.constant.empty()) {
      out << "nothing, always";
    } else {
      out << "`" << field.constant << "`, always";
    }
    out << " |\n";
  }
}

}  // namespace

std::string slurm_commands_markdown() {
  std::ostringstream out;
  out << "# Slurm's commands\n\n"
         "What each of them takes here, written by `make reference` from the program itself; a "
         "test compares the two. All options also\nhave their long names' abbreviations, and "
         "`--help`, `--usage` and `-V`. What is not listed is refused by name. `sbatch` and `srun` "
         "are\nin [their options](slurm-options.md), `salloc` is in [srun and "
         "salloc](../srun.md#outside-of-a-script).\n\n"
         "A field that says *always* is one that kubegang has no value for: it prints what Slurm "
         "prints if it is not used.\n";
  for (const SlurmReference& reference :
       {squeue_reference(), sinfo_reference(), scontrol_reference(), scancel_reference(),
        sacct_reference(), seff_reference(), sprio_reference(), sreport_reference(),
        sshare_reference()}) {
    out << "\n## " << reference.command << "\n\n";
    write_options(reference, out);
    write_words(reference, out);
    write_fields(reference, out);
  }
  return out.str();
}

}  // namespace cli
