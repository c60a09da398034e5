// TLS 1.3 between the launchers of a job, with a key that all its pods have in a file. There are no
// certificates: who has the key is of the job, and of its present start.
#pragma once

#include <openssl/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace launcher {

class Tls {
 public:
  // kUnavailable: the file cannot be read, or its key is not one of 32 bytes.
  static base::Result<std::unique_ptr<Tls>> from_file(const std::string& path);
  // The key itself, 32 bytes.
  explicit Tls(std::string key);
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  struct Free {
    void operator()(ssl_st* connection) const;
  };
  using Connection = std::unique_ptr<ssl_st, Free>;
  // For a socket that is connected, or being connected. The handshake is the caller's.
  Connection for_client(int fd) const;
  Connection for_server(int fd) const;

  const std::string& key() const { return key_; }

 private:
  Connection over(int fd) const;

  std::string key_;
  ssl_ctx_st* context_;
};

}  // namespace launcher
