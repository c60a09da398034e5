#include "linux/cgroup_file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "linux/system_error.h"

namespace os {

// openat2() resolves the whole path under these rules in one call. Checking the path first and
// opening it afterwards would leave a gap in which a directory can be replaced by a link.
base::Result<FileDescriptor> open_beneath(int directory_fd, const std::string& name, int flags) {
  open_how how{};
  how.flags = static_cast<__u64>(static_cast<unsigned>(flags | O_CLOEXEC));
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  long fd = 0;
  do {
    fd = ::syscall(SYS_openat2, directory_fd, name.c_str(), &how, sizeof how);
    // EAGAIN: a rename or mount elsewhere raced with the resolution, and the kernel could not prove
    // that the path stays beneath. It asks the caller to try again.
  } while (fd < 0 && (errno == EINTR || errno == EAGAIN));
  if (fd < 0) return error_from_errno("open " + name, errno);
  return FileDescriptor{static_cast<int>(fd)};
}

IoResult io_result_from_errno(int error_number) {
  switch (error_number) {
    // ENODEV is the answer of an open file whose cgroup has been removed since; ENOENT that of
    // opening one.
    case ENODEV:
    case ENOENT:
      return IoResult::kGone;
    case EACCES:
    case EPERM:
    case EROFS:
      return IoResult::kDenied;
    default:
      return IoResult::kFailed;
  }
}

// Writes at offset 0 each time, since the descriptor stays open between switches. A kernfs file
// takes a value in one write; a short one means that the value was not taken as a whole.
IoResult write_file(int fd, std::string_view text) {
  ssize_t written = 0;
  do {
    written = ::pwrite(fd, text.data(), text.size(), 0);
  } while (written < 0 && errno == EINTR);
  if (written < 0) return io_result_from_errno(errno);
  return static_cast<std::size_t>(written) == text.size() ? IoResult::kOk : IoResult::kFailed;
}

// One pread() at offset 0 makes kernfs produce the text again; the caller's buffer holds the
// longest.
FileText read_file(int fd, std::span<char> buffer) {
  ssize_t length = 0;
  do {
    length = ::pread(fd, buffer.data(), buffer.size(), 0);
  } while (length < 0 && errno == EINTR);
  if (length < 0) return {.result = io_result_from_errno(errno), .text = {}};
  return {.result = IoResult::kOk, .text = {buffer.data(), static_cast<std::size_t>(length)}};
}

}  // namespace os
