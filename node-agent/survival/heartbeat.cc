#include "node-agent/survival/heartbeat.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include "linux/file_descriptor.h"
#include "linux/system_error.h"

namespace agent {

// The file is on tmpfs, so the mapping is memory and no beat ever waits for a disk.
base::Result<Heartbeat> Heartbeat::create(const std::string& path) {
  const std::string what = "heartbeat " + path;
  const os::FileDescriptor file{
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (!file.is_open()) return os::error_from_errno(what, errno);
  // Takes the page now: on a full tmpfs the first store into a hole of the mapping would be a
  // SIGBUS.
  if (const int error = ::posix_fallocate(file.get(), 0, sizeof(Beats)); error != 0) {
    return os::error_from_errno(what, error);
  }
  // Shared between processes of two containers; two lock-free counters need no other protocol. The
  // file is not truncated, so a guard that mapped it before keeps seeing the same page.
  void* memory = ::mmap(nullptr, sizeof(Beats), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return os::error_from_errno(what, errno);
  return Heartbeat{static_cast<Beats*>(memory)};
}

Heartbeat::Heartbeat(Heartbeat&& other) noexcept : beats_{std::exchange(other.beats_, nullptr)} {}

Heartbeat::~Heartbeat() {
  if (beats_ != nullptr) ::munmap(beats_, sizeof(Beats));
}

// REQUIRES: no worker lives, or its beats would count for the next one.
void Heartbeat::clear() {
  beats_->main.store(0);
  beats_->switcher.store(0);
}

}  // namespace agent
