#include "kube/token_source.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

namespace kube {

// kubelet renews a projected token when 80 % of its life are over; a minute between two looks is
// soon enough.
base::Result<std::string> TokenSource::token() {
  const std::lock_guard lock{mu_};
  if (file_.empty()) return token_;
  if (read_ && clock_.monotonic() - read_at_ < kReadAgain) return token_;
  auto status = read_locked();
  // A file that cannot be read for the moment does not invalidate the token that was in it.
  // The server says if that no longer counts.
  if (!status.ok() && token_.empty()) return status.error();
  return token_;
}

// Reads the file regardless of kReadAgain: kubelet may have rotated the token a moment ago.
bool TokenSource::refresh(const std::string& refused) {
  const std::lock_guard lock{mu_};
  if (file_.empty()) return false;
  (void)read_locked();
  return token_ != refused;
}

// REQUIRES: mu_ is held. An error leaves the token as it is.
base::Status TokenSource::read_locked() {
  std::ifstream file{file_, std::ios::binary};
  if (!file) {
    return base::Error{base::Code::kUnauthenticated,
                       "cannot read the token file " + file_ + ": " + std::strerror(errno)};
  }
  std::string text{std::istreambuf_iterator<char>{file}, {}};
  // A newline at the end, as editors leave it, would end the header.
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  text.resize(end == std::string::npos ? 0 : end + 1);
  if (text.empty()) {
    return base::Error{base::Code::kUnauthenticated, "the token file " + file_ + " is empty"};
  }
  token_ = std::move(text);
  read_ = true;
  read_at_ = clock_.monotonic();
  return {};
}

}  // namespace kube
