#include "dashboard/peer_owner.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "linux/file_descriptor.h"

namespace dashboard {
namespace {

// 127.0.0.1:PORT as the table writes it: the address in the machine's byte order, both as hex.
std::string loopback(std::uint16_t port) {
  const std::uint32_t address = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0x0100007F : 0x7F000001;
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%08X:%04X", address, static_cast<unsigned>(port));
  return text.data();
}

struct Answer {
  bool is_known = false;  // the kernel has answered, if only that there is no such socket
  std::optional<uid_t> owner{};
};

struct Question {
  nlmsghdr head{};
  inet_diag_req_v2 request{};
};

Question question_about(const LoopbackConnection& connection) {
  Question question;
  question.head.nlmsg_len = sizeof question;
  question.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.head.nlmsg_flags = NLM_F_REQUEST;
  question.request.sdiag_family = AF_INET;
  question.request.sdiag_protocol = IPPROTO_TCP;
  question.request.idiag_states = ~0U;
  question.request.id.idiag_sport = htons(connection.client_port);
  question.request.id.idiag_dport = htons(connection.server_port);
  question.request.id.idiag_src[0] = htonl(INADDR_LOOPBACK);
  question.request.id.idiag_dst[0] = htonl(INADDR_LOOPBACK);
  question.request.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
  question.request.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return question;
}

// Asks for this one socket, which takes microseconds; reading the table takes 70 ms where the
// kernel's own is large. A kernel without tcp_diag does not answer.
Answer ask_kernel(const LoopbackConnection& connection) {
  const os::FileDescriptor socket{
      ::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)};
  if (!socket.is_open()) return {};
  const Question question = question_about(connection);
  if (::send(socket.get(), &question, sizeof question, 0) != ssize_t{sizeof question}) return {};
  std::array<char, 4096> answer{};
  const ssize_t size = ::recv(socket.get(), answer.data(), answer.size(), 0);
  nlmsghdr head{};
  if (size < ssize_t{sizeof head}) return {};
  std::memcpy(&head, answer.data(), sizeof head);
  if (head.nlmsg_type == NLMSG_ERROR && size >= ssize_t{sizeof head + sizeof(nlmsgerr)}) {
    nlmsgerr error{};
    std::memcpy(&error, answer.data() + sizeof head, sizeof error);
    return {.is_known = error.error == -ENOENT};
  }
  inet_diag_msg found{};
  const bool is_found = head.nlmsg_type == SOCK_DIAG_BY_FAMILY;
  if (!is_found || size < ssize_t{sizeof head + sizeof found}) return {};
  std::memcpy(&found, answer.data() + sizeof head, sizeof found);
  if (found.idiag_inode == 0) return {.is_known = true};
  return {.is_known = true, .owner = found.idiag_uid};
}

}  // namespace

// Reads a line: sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode …
std::optional<uid_t> owner_in(std::string_view table, const LoopbackConnection& connection) {
  const std::string local = loopback(connection.client_port);
  const std::string remote = loopback(connection.server_port);
  while (!table.empty()) {
    const std::string_view line = table.substr(0, table.find('\n'));
    table.remove_prefix(std::min(line.size() + 1, table.size()));
    // Most lines are of other connections; the two addresses stand beside each other.
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
  if (const Answer answer = ask_kernel(connection); answer.is_known) return answer.owner;
  std::ifstream file{"/proc/self/net/tcp"};
  std::ostringstream table;
  table << file.rdbuf();
  return owner_in(table.str(), connection);
}

}  // namespace dashboard
