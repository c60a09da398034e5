// Standard input, output and error that a caller has closed, as `srun <&-` does.
#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace base {

// Opens /dev/null for each of them that is closed: the next file or socket of the program would get
// its number, and be read or written as the stream. The first call of main().
inline void open_closed_streams() {
  int descriptor = -1;
  do {
    descriptor = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  } while (descriptor >= 0 && descriptor <= STDERR_FILENO);
  if (descriptor >= 0) ::close(descriptor);
}

}  // namespace base
