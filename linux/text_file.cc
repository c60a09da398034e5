#include "linux/text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "linux/file_descriptor.h"
#include "linux/system_error.h"

namespace os {

// Reads in pieces until the file ends or is too long; a file that grows meanwhile cannot use up
// memory.
base::Result<std::string> read_text_file(const std::string& path, std::size_t bytes_max) {
  const FileDescriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file.is_open()) return error_from_errno(path, errno);
  std::string text;
  std::string buffer(64U << 10U, '\0');
  // The size that stat() names is not used: files of /proc and cgroups have none.
  while (text.size() <= bytes_max) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return error_from_errno(path, errno);
    if (got == 0) return text;
    text.append(buffer, 0, static_cast<std::size_t>(got));
  }
  return base::invalid_argument(path + ": longer than " + std::to_string(bytes_max) + " bytes");
}

// Readers see the old text or the new one, since rename() replaces the name atomically. There is no
// fsync(): the text outlives the process, and it need not outlive the machine.
base::Status replace_text_file(const std::string& path, std::string_view text) {
  const std::string next = path + ".next";
  const FileDescriptor file{
      ::open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (!file.is_open()) return error_from_errno(next, errno);
  while (!text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return error_from_errno(next, errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::rename(next.c_str(), path.c_str()) != 0) return error_from_errno(path, errno);
  return {};
}

}  // namespace os
