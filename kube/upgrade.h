// A request that turns its connection into another protocol's (101 Switching Protocols).
#pragma once

#include <sys/types.h>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kube/transport.h"

namespace kube {

// The connection after the switch, both ways. Belongs to one thread.
class Duplex {
 public:
  virtual ~Duplex() = default;
  // For poll(): readable when something has arrived, writable when write() will not wait.
  virtual int descriptor() const = 0;
  // Bytes have arrived that poll() does not show.
  virtual bool has_more() const = 0;
  // Takes what has arrived; 0: nothing has, less: it is over.
  virtual ssize_t read(char* out, std::size_t size) = 0;
  // False: the connection broke.
  virtual bool write(std::string_view bytes) = 0;
};

class Upgrader {
 public:
  virtual ~Upgrader() = default;
  // Sends a GET with these headers and calls `use` once the server has switched; the connection
  // ends with it. Request::timeout is that of the switch alone. Any other answer is an error, as
  // error_from_response() makes it.
  virtual base::Status upgrade(
      const Request& request, const std::vector<std::pair<std::string, std::string>>& headers,
      const std::function<void(const Response& head, Duplex& connection)>& use) = 0;
};

}  // namespace kube
