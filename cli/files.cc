#include "cli/files.h"

#include <poll.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace cli {
namespace {

// errno as an error. Reads errno first: anything else, a string that is built included, may change
// it.
base::Error failed(const std::string& what, const std::string& path) {
  const int error = errno;
  const base::Code code = error == ENOENT   ? base::Code::kNotFound
                          : error == EACCES ? base::Code::kPermissionDenied
                                            : base::Code::kInvalidArgument;
  return {code, what + " " + path + ": " + std::strerror(error)};
}

// Closes the file if the function is left early.
using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

}  // namespace

// Reads in blocks, because the size of a pipe or of standard input is not known beforehand. The
// limit is checked after each block, so an endless input costs bytes_max and one block of memory.
base::Result<std::string> read_file(const std::string& path, std::size_t bytes_max) {
  const bool standard_input = path == "-";
  const File file{standard_input ? stdin : std::fopen(path.c_str(), "rb"),
                  standard_input ? [](std::FILE*) { return 0; } : &std::fclose};
  if (file == nullptr) return failed("read", path);
  std::string text;
  std::array<char, 65'536> buffer{};
  while (true) {
    const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), file.get());
    text.append(buffer.data(), count);
    if (text.size() > bytes_max) {
      return base::Error{base::Code::kTooLarge,
                         "read " + path + ": larger than " + std::to_string(bytes_max) + " bytes"};
    }
    // The end of the file, or an error, which ferror() tells apart.
    if (count < buffer.size()) break;
  }
  if (std::ferror(file.get()) != 0) return failed("read", path);
  return text;
}

// Writes over what is there. Not by a temporary file and a rename, so that a path such as
// /dev/stdout works.
base::Status write_file(const std::string& path, std::string_view text) {
  File file{std::fopen(path.c_str(), "wb"), &std::fclose};
  if (file == nullptr) return failed("write", path);
  if (std::fwrite(text.data(), 1, text.size(), file.get()) != text.size()) {
    return failed("write", path);
  }
  // The last bytes are written only now: a full disk shows here.
  if (std::fclose(file.release()) != 0) return failed("write", path);
  return {};
}

// An earlier write may have failed long ago, so errno tells only of the last one, and the pipe is
// asked itself. Output that was lost for a reason that is no longer known is an error of I/O.
int flush_output(std::ostream& out, std::FILE* file) {
  errno = 0;
  out.flush();
  const bool flushed = std::fflush(file) == 0;
  const int error = errno;
  if (flushed && out) return 0;
  pollfd pipe{.fd = ::fileno(file), .events = 0, .revents = 0};
  if (::poll(&pipe, 1, 0) == 1 && (pipe.revents & POLLERR) != 0) return EPIPE;
  return error != 0 ? error : EIO;
}

}  // namespace cli
