#include "launcher/install.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "launcher/names.h"
#include "launcher/process.h"

namespace launcher {
namespace {

constexpr const char* kProgram = "kubegang-launcher";
constexpr const char* kPmixProgram = "kubegang-pmix";

int fail_to(const std::string& what) {
  std::fprintf(stderr, "kubegang-launcher: %s: %s\n", what.c_str(), std::strerror(errno));
  return 1;
}

// Makes a copy beside the place and renames it, because the place may be in use.
int copy(const std::string& source, const std::string& path) {
  const std::string fresh = path + ".new";
  const int from = ::open(source.c_str(), O_RDONLY | O_CLOEXEC);
  if (from < 0) return fail_to("open " + source);
  const int to = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
  if (to < 0) return fail_to("write " + fresh);
  std::array<char, 65'536> bytes{};
  ssize_t count = 0;
  while ((count = ::read(from, bytes.data(), bytes.size())) > 0) {
    if (!write_all(to, {bytes.data(), static_cast<std::size_t>(count)})) {
      return fail_to("write " + fresh);
    }
  }
  // The mode does not depend on the umask: the script may run as another user.
  if (count < 0 || ::fchmod(to, 0755) != 0 || ::close(to) != 0) return fail_to("write " + fresh);
  ::close(from);
  return ::rename(fresh.c_str(), path.c_str()) == 0 ? 0 : fail_to("rename " + fresh);
}

// Writes the file that bash reads after the profile (batch.cc): the commands are found again. A
// bash that says what it does (-x) says nothing of this.
int write_profile(const std::string& directory) {
  const std::string path = directory + "/env.sh";
  const std::string text =
      "{ case \":$PATH:\" in *\":" + directory + ":\"*) ;; *) PATH=\"" + directory +
      ":$PATH\" ;; esac; } 2>/dev/null\n" +
      "if { [ -n \"${KUBEGANG_BASH_ENV:-}\" ] && [ -r \"$KUBEGANG_BASH_ENV\" ]; } 2>/dev/null;"
      " then . \"$KUBEGANG_BASH_ENV\"; fi\n";
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0 || !write_all(fd, text) || ::fchmod(fd, 0644) != 0 || ::close(fd) != 0) {
    return fail_to("write " + path);
  }
  return 0;
}

int link(const std::string& name, const std::string& directory) {
  const std::string path = directory + "/" + name;
  ::unlink(path.c_str());
  return ::symlink(kProgram, path.c_str()) == 0 ? 0 : fail_to("link " + path);
}

// Copies kubectl-gang with all that it needs. An image may be without it.
int copy_commands(const std::string& directory) {
  const std::string from = own_directory() + "/commands";
  const std::string to = directory + "/commands";
  if (::mkdir(to.c_str(), 0755) != 0 && errno != EEXIST) return fail_to("make " + to);
  DIR* const folder = ::opendir(from.c_str());
  if (folder == nullptr) return 0;
  int code = 0;
  while (const dirent* const entry = code == 0 ? ::readdir(folder) : nullptr) {
    const std::string name = static_cast<const char*>(entry->d_name);
    if (!name.starts_with('.')) code = copy(from + "/" + name, to + "/" + name);
  }
  ::closedir(folder);
  return code;
}

}  // namespace

int install(const std::string& directory, bool has_commands) {
  if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) return fail_to("make " + directory);
  // The other program is beside this one.
  for (const char* program : {kProgram, kPmixProgram}) {
    const int code = copy(own_directory() + "/" + program, directory + "/" + program);
    if (code != 0) return code;
  }
  if (const int code = link("srun", directory); code != 0) return code;
  for (const std::string_view name : kCommandNames) {
    if (const int code = link(std::string{name}, directory); code != 0) return code;
  }
  if (has_commands) {
    if (const int code = copy_commands(directory); code != 0) return code;
  }
  return write_profile(directory);
}

}  // namespace launcher
