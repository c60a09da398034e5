#include "launcher/user.h"

#include <unistd.h>

#include <algorithm>
#include <array>

namespace launcher {

// NAME:PASSWORD:UID:GID:GECOS:HOME:SHELL, one a line.
std::optional<PasswordEntry> entry_of(std::string_view passwd, uid_t uid) {
  constexpr std::size_t kFields = 7;
  const std::string wanted = std::to_string(uid);
  while (!passwd.empty()) {
    const std::size_t end = std::min(passwd.find('\n'), passwd.size());
    std::string_view line = passwd.substr(0, end);
    passwd.remove_prefix(std::min(end + 1, passwd.size()));
    std::array<std::string_view, kFields> fields{};
    for (std::string_view& field : fields) {
      const std::size_t colon = std::min(line.find(':'), line.size());
      field = line.substr(0, colon);
      line.remove_prefix(std::min(colon + 1, line.size()));
    }
    if (fields[2] == wanted) return PasswordEntry{std::string{fields[0]}, std::string{fields[5]}};
  }
  return std::nullopt;
}

void set_user(Environment& environment, const std::optional<PasswordEntry>& entry,
              const std::string& temporary) {
  const std::string user = entry ? entry->name : value_or(environment, "SLURM_JOB_USER", "");
  for (const char* name : {"USER", "LOGNAME"}) {
    if (!value_of(environment, name) && !user.empty()) set(environment, name, user);
  }
  const std::string home = value_or(environment, "HOME", "");
  if (home.empty() || (home == "/" && !entry)) {
    set(environment, "HOME", entry && !entry->home.empty() ? entry->home : temporary);
  }
  if (!value_of(environment, "TMPDIR")) set(environment, "TMPDIR", temporary);
  if (!value_of(environment, "SLURM_TMPDIR")) {
    set(environment, "SLURM_TMPDIR", value_or(environment, "TMPDIR", temporary));
  }
}

std::string temporary_folder() {
  for (const char* folder : {"/tmp", "/var/tmp", "/dev/shm"}) {
    if (::access(folder, W_OK | X_OK) == 0) return folder;
  }
  return "/tmp";
}

}  // namespace launcher
