#include "dashboard/peer_owner.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace dashboard {
namespace {

// 127.0.0.1:PORT as the table writes it: the address in the machine's byte order, both as hex.
std::string loopback(std::uint16_t port) {
  const std::uint32_t address = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0x0100007F : 0x7F000001;
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%08X:%04X", address, static_cast<unsigned>(port));
  return text.data();
}

}  // namespace

// A line: sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode …
std::optional<uid_t> owner_in(std::string_view table, const LoopbackConnection& connection) {
  const std::string local = loopback(connection.client_port);
  const std::string remote = loopback(connection.server_port);
  while (!table.empty()) {
    const std::string_view line = table.substr(0, table.find('\n'));
    table.remove_prefix(std::min(line.size() + 1, table.size()));
    // Most lines are of others; the two addresses stand beside each other.
    if (line.find(local + " " + remote) == std::string_view::npos) continue;
    std::istringstream words{std::string{line}};
    std::string skipped;
    for (int i = 0; i < 7; ++i) words >> skipped;
    uid_t uid = 0;
    std::uint64_t inode = 0;
    if (!(words >> uid >> skipped >> inode) || inode == 0) return std::nullopt;
    return uid;
  }
  return std::nullopt;
}

std::optional<uid_t> owner_of(const LoopbackConnection& connection) {
  std::ifstream file{"/proc/self/net/tcp"};
  std::ostringstream table;
  table << file.rdbuf();
  return owner_in(table.str(), connection);
}

}  // namespace dashboard
