// The job's user and folders: the variables that a program of Slurm finds set, although the image
// may not know the user. Pure but for the folders that it looks at.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "launcher/process.h"

namespace launcher {

struct PasswordEntry {
  std::string name;
  std::string home;
};
// Returns the entry of the user in the text of /etc/passwd. A static program cannot ask NSS.
std::optional<PasswordEntry> entry_of(std::string_view passwd, uid_t uid);

// Sets USER, LOGNAME, HOME, TMPDIR and SLURM_TMPDIR where they are not set.
// 1. USER and LOGNAME: the entry in /etc/passwd, else the job's user (SLURM_JOB_USER)
// 2. HOME: the entry's, else `temporary`. "/" is what container runtimes set for a user that the
//    image does not know, and counts as not set
// 3. TMPDIR: `temporary`; SLURM_TMPDIR, which some sites have: the same as TMPDIR
void set_user(Environment& environment, const std::optional<PasswordEntry>& entry,
              const std::string& temporary);

// Returns the first folder of /tmp, /var/tmp and /dev/shm that can be written; else /tmp.
std::string temporary_folder();

}  // namespace launcher
