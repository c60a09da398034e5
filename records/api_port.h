// The port on which the API server asks for records. A client must have the API server's own
// certificate (requestheader-client-ca-file): that passes on only requests that it has authorized,
// and names the user. So nothing is decided here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/client.h"
#include "records/store.h"

namespace records {

// The content of the ConfigMap kube-system/extension-apiserver-authentication.
struct AskersTrust {
  std::string authorities{};                 // PEM
  std::vector<std::string> allowed_names{};  // empty: any that the authorities have signed
  std::vector<std::string> user_headers{};   // "X-Remote-User"

  friend bool operator==(const AskersTrust&, const AskersTrust&) = default;
};
base::Result<AskersTrust> read_trust(const kube::Client& client);

class ApiPort {
 public:
  struct Options {
    std::string address = "0.0.0.0";
    int port = 0;               // 0 = any free one
    std::string certificate{};  // PEM
    std::string key{};          // PEM
    AskersTrust trust{};
    std::string cluster{};
  };

  // Listens. kInvalidArgument: the certificate, key or authorities cannot be read; kUnavailable:
  // the port is in use.
  static base::Result<std::unique_ptr<ApiPort>> create(Options options, Reader reader);
  ~ApiPort();

  int port() const;
  // Serves on the calling thread, and others of its own, until stop().
  void serve();
  void stop();  // any thread

 private:
  class Impl;
  explicit ApiPort(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace records
