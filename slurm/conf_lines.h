// The lines of slurm.conf and of what sacctmgr writes, taken apart into keys. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "slurm/text.h"

namespace slurm {

// The key of a line "include FILE", whose value is the file.
inline constexpr std::string_view kIncludeKey = "Include";

// `keys` is not empty.
struct ConfLine {
  std::size_t number = 0;  // of its first line in the file, from 1
  std::vector<KeyValue> keys;
};
struct LineError {
  std::size_t number = 0;
  std::string message;
};
// A line that cannot be read is in `errors`, not in `lines`.
struct ConfLines {
  std::vector<ConfLine> lines;
  std::vector<LineError> errors;
};

// Lines joined over a trailing backslash, without comments and blank ones.
ConfLines read_conf_lines(std::string_view text);

// One line of `sacctmgr dump`: "Account - 'physics':Fairshare=3:Description='a, b'".
struct DumpLine {
  std::size_t number = 0;
  std::string kind;  // Cluster, Parent, Account, User, …
  std::string name;
  std::vector<KeyValue> keys;
};
struct DumpLines {
  std::vector<DumpLine> lines;
  std::vector<LineError> errors;
};
DumpLines read_dump_lines(std::string_view text);

// Reads the output of `sacctmgr --parsable2 show qos`: a line of titles, then a line of values for
// each QOS, with '|' between them. Empty values are left out.
ConfLines read_parsable_lines(std::string_view text);

}  // namespace slurm
