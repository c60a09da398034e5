// The user on this machine who has opened a TCP connection to us. localhost is open to all users of
// a login node, and the kernel knows whose socket the other end is.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dashboard {

struct LoopbackConnection {
  std::uint16_t client_port = 0;
  std::uint16_t server_port = 0;
};

// `table`: the text of /proc/net/tcp. nullopt if the client's socket is not in it, or is closed
// already: a socket without an inode is shown as root's, even if another user opened it.
std::optional<uid_t> owner_in(std::string_view table, const LoopbackConnection& connection);

// Asks the kernel for this socket, or reads the table; as above.
std::optional<uid_t> owner_of(const LoopbackConnection& connection);

}  // namespace dashboard
