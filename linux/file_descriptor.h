// A file descriptor that closes itself.
#pragma once

#include <unistd.h>

#include <utility>

namespace os {

// Move-only. Empty after a move or by default.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_{fd} {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_{std::exchange(other.fd_, kNone)} {}
  // Closes what it held before.
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, kNone);
    }
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() { reset(); }

  bool is_open() const { return fd_ != kNone; }
  // Returns it for a system call; the object keeps it. REQUIRES: is_open().
  int get() const { return fd_; }
  // Gives it away: the caller closes it.
  int release() { return std::exchange(fd_, kNone); }
  void reset() {
    if (is_open()) ::close(std::exchange(fd_, kNone));
  }

 private:
  static constexpr int kNone = -1;  // the system calls' own word for it
  int fd_ = kNone;
};

}  // namespace os
