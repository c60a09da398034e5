// A bearer token that may rotate in its file, as service account tokens do about hourly.
// Thread-safe.
#pragma once

#include <mutex>
#include <string>

#include "base/result.h"
#include "kube/clock.h"

namespace kube {

class TokenSource {
 public:
  // The file is read again when what was read is older than this; client-go does the same.
  static constexpr base::Duration kReadAgain = std::chrono::minutes{1};

  // `file` wins over `token`; both "" = no token.
  TokenSource(std::string token, std::string file, const Clock& clock)
      : file_{std::move(file)}, clock_{clock}, token_{std::move(token)} {}

  // Returns the token; "" = none. kUnauthenticated when the file cannot be read and never could;
  // afterwards the last token is used on.
  base::Result<std::string> token();

  // The server refused `refused`: reads the file now. Returns true if there is another token.
  bool refresh(const std::string& refused);

 private:
  base::Status read_locked();

  const std::string file_;
  const Clock& clock_;

  std::mutex mu_;
  std::string token_;         // guarded by mu_
  bool read_ = false;         // guarded by mu_
  base::Duration read_at_{};  // guarded by mu_
};

}  // namespace kube
