// TCP between the launchers of a job's pods, and how they find the first of them; the first one's
// Unix socket.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace launcher {

// As long as that a connection between pods that was cut may stay so, of the time in which the job
// runs. The other end may notice a minute later (keep_alive).
inline constexpr std::chrono::minutes kCutMax{2};

// Opens a socket that listens at the pod's own address, and does not block.
base::Result<int> listen_on(const std::string& address, std::uint16_t port);

// Returns the address of a name, from the name servers and the search list of /etc/resolv.conf; an
// address is returned as it is. A static program cannot ask the C library, which loads libraries
// that the image may not have. Blocks for 2 s at most for each entry of that list.
base::Result<std::string> resolve(const std::string& name);

// Returns the address of a pod that has that port in a headless Service, `_port._tcp.service…`, if
// it stands beside the name server's answer, else "". kUnavailable: it knows none, for now.
base::Result<std::string> resolve_port(const std::string& name);

// Returns whether the name servers know a name, without asking for its address: an answer that
// comes too early is kept for that question alone. Asks for a kind of record that there is none of,
// each for a while of 200 ms and then not for 50 s.
bool is_known(const std::string& name, std::chrono::system_clock::time_point now);

// Returns which of `count` names to ask for at that time: `pattern` with a number for its `%`. Each
// has its turn of 200 ms in all pods, and then rests until each other name had one. So a name
// server that denies one, and keeps to that for 5 s as CoreDNS does, is asked for another.
std::string name_in_turn(std::string_view pattern, int count,
                         std::chrono::system_clock::time_point now);

// Opens a socket that is being connected, and does not block.
base::Result<int> connect_to(const std::string& address, std::uint16_t port);

// Returns 16 random bytes in hexadecimal digits; "" if the kernel has none.
std::string random_text();

// Opens a socket that listens at a name of the abstract name space, so no folder must be
// writable, and does not block; -1 and errno.
int listen_locally(const std::string& name);
// Takes the next that has connected to it; -1: none, or it has another user. A pod may share its
// network, and so these names, with its node: other users are turned away before they say anything.
int accept_own(int listener);

// Opens a connection to a Unix socket of the abstract name space, which blocks; -1 and errno.
int connect_locally(const std::string& name);

// Has the kernel find out within a minute that nothing comes back from the other machine, whether
// something is being sent or not. The kernel of a pod that is frozen answers for it; if that has no
// more room for what is sent, the connection counts as lost too.
void keep_alive(int fd);

}  // namespace launcher
