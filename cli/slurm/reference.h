// The parts of Slurm's commands that exist here: the source of docs/reference/slurm-commands.md.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/slurm/format.h"
#include "cli/slurm/words.h"

namespace cli {

struct FieldReference {
  std::string letter;  // "" if there is none
  std::string name;
  bool is_constant = false;
  std::string constant;
};

struct SlurmReference {
  std::string command;
  std::vector<WordOption> options;
  std::vector<FieldReference> fields;
  std::vector<std::string> words;  // that are not options: "show job"
};

template <class Row>
SlurmReference reference_of(std::string_view command, std::span<const WordOption> options,
                            std::span<const SlurmField<Row>> fields) {
  SlurmReference reference{.command = std::string{command},
                           .options = {options.begin(), options.end()},
                           .fields = {},
                           .words = {}};
  for (const SlurmField<Row>& field : fields) {
    reference.fields.push_back({.letter = std::string(field.letter == '\0' ? 0 : 1, field.letter),
                                .name = std::string{field.name},
                                .is_constant = field.value == nullptr,
                                .constant = std::string{field.constant}});
  }
  return reference;
}

// docs/reference/slurm-commands.md.
std::string slurm_commands_markdown();

}  // namespace cli
