// The API server on the network: HTTPS on a loopback port, with a certificate authority of its own,
// client certificates and bearer tokens, and kubeconfigs for both.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/clock.h"
#include "kube/testing/api_server/api_server.h"
#include "kube/testing/api_server/pki.h"

namespace devcluster {

struct HttpsOptions {
  std::string address = "127.0.0.1";
  int port = 0;  // 0 = any free one
};

struct User {
  std::string name = "system:admin";
  std::vector<std::string> groups = {"system:masters"};
};

// Owns its threads: one that accepts, one per open connection (kConnectionsMax at most). Its
// methods are thread-safe.
class HttpsFrontEnd {
 public:
  // kUnavailable: the port is in use, or the address is not this machine's. `server` and `clock`
  // must outlive it.
  static base::Result<std::unique_ptr<HttpsFrontEnd>> start(ApiServer& server,
                                                            const kube::Clock& clock,
                                                            const HttpsOptions& options = {});
  // Breaks all connections and ends all threads.
  ~HttpsFrontEnd();

  // Looks from outside like the death of the server's process: all connections break, and the port
  // refuses until open_again(). The ApiServer keeps its objects. One thread.
  void close();
  // Opens the same port, with the same certificates. kUnavailable: another process has the port
  // now.
  base::Status open_again();

  int port() const;
  std::string url() const;  // "https://127.0.0.1:41233"
  const CertificateAuthority& authority() const;

  // Makes "Authorization: Bearer TOKEN" this user.
  void add_token(const std::string& token, const User& user);

  // Makes a kubeconfig with a client certificate for this user, all data inside; valid for a year.
  base::Result<std::string> kubeconfig(const User& user = {}) const;
  // Writes it with mode 0600, replacing the file at once; makes missing folders.
  base::Status write_kubeconfig(const std::string& path, const User& user = {}) const;

 private:
  class Impl;
  explicit HttpsFrontEnd(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

inline constexpr std::size_t kConnectionsMax = 1024;

}  // namespace devcluster
