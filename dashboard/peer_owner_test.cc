#include "dashboard/peer_owner.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "linux/file_descriptor.h"

namespace dashboard {
namespace {

// Lines as the kernel writes them: 127.0.0.1:50000 (C350) of user 1000 is connected to port 8080.
constexpr const char* kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n"
    "   0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1001        0 "
    "41 1 0 20 4 30 10 -1\n"
    "   1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 "
    "42 1 0 20 4 30 10 -1\n"
    "   2: 0100007F:C351 0100007F:1F90 06 00000000:00000000 03:00000000 00000000     0        0 "
    "0 3 0\n";

// The server's own end has the ports the other way round.
TEST(PeerOwner, IsTheUserOfTheClientsEnd) {
  EXPECT_EQ(owner_in(kTable, {.client_port = 50000, .server_port = 8080}), uid_t{1000});
}

// Goal: another user does not pass for root by closing at once.
TEST(PeerOwner, IsUnknownOfASocketThatIsClosed) {
  EXPECT_EQ(owner_in(kTable, {.client_port = 50001, .server_port = 8080}), std::nullopt);
}

TEST(PeerOwner, IsUnknownOfAConnectionThatIsNotThere) {
  EXPECT_EQ(owner_in(kTable, {.client_port = 50002, .server_port = 8080}), std::nullopt);
  EXPECT_EQ(owner_in("", {}), std::nullopt);
}

TEST(PeerOwner, IsThisUserOfASocketOfThisProcess) {
  const os::FileDescriptor listener{::socket(AF_INET, SOCK_STREAM, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listener.get(), any, size), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ASSERT_EQ(::getsockname(listener.get(), any, &size), 0);
  const std::uint16_t server_port = ntohs(address.sin_port);
  const os::FileDescriptor client{::socket(AF_INET, SOCK_STREAM, 0)};
  ASSERT_EQ(::connect(client.get(), any, size), 0);
  ASSERT_EQ(::getsockname(client.get(), any, &size), 0);
  EXPECT_EQ(owner_of({.client_port = ntohs(address.sin_port), .server_port = server_port}),
            ::geteuid());
}

}  // namespace
}  // namespace dashboard
