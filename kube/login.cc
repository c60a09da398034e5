#include "kube/login.h"

#include <array>

#include "kube/exec_plugin.h"
#include "kube/proxy_end.h"

namespace kube {
namespace {

// Returns the codes of RFC 1928, section 6; 0 is success.
std::string_view socks_error(unsigned char code) {
  constexpr std::array<std::string_view, 9> kErrors = {"",
                                                       "general failure",
                                                       "the connection is not allowed",
                                                       "the network is not reachable",
                                                       "the host is not reachable",
                                                       "the connection was refused",
                                                       "it took too long",
                                                       "it does not know the command",
                                                       "it does not know the kind of address"};
  return code < kErrors.size() ? kErrors[code] : "an unknown error";
}

// Logs in with user and password (RFC 1929). Lengths are one byte, so longer words cannot be sent.
base::Status log_in_to_socks(ProxyEnd& proxy_end, const Url& proxy) {
  if (proxy.user.size() > 255 || proxy.password.size() > 255) {
    return proxy_end.refused("user and password have at most 255 characters");
  }
  std::string message{'\x01'};
  for (const std::string& word : {proxy.user, proxy.password}) {
    message += static_cast<char>(word.size());
    message += word;
  }
  if (auto status = proxy_end.send(message); !status.ok()) return status;
  const auto answer = proxy_end.receive(2);
  if (!answer.ok()) return answer.error();
  // The first byte is the version of this exchange, the second 0 for success.
  if ((*answer)[1] != 0) return proxy_end.refused("user or password are wrong");
  return {};
}

// Three exchanges; every length is known before it is read, so no byte of the server's is taken.
// SOURCE: RFC 1928.
base::Status connect_by_socks(ProxyEnd& proxy_end, const Url& proxy, const Url& target) {
  // 1. agree how to log in
  const bool has_user = !proxy.user.empty();
  // Version 5, the number of methods, the methods: 0 is "none", 2 is user and password.
  const std::string methods =
      has_user ? std::string{"\x05\x02\x00\x02", 4} : std::string{"\x05\x01\x00", 3};
  if (auto status = proxy_end.send(methods); !status.ok()) return status;
  const auto chosen = proxy_end.receive(2);
  if (!chosen.ok()) return chosen.error();
  if ((*chosen)[0] != 5) return proxy_end.refused("it does not speak SOCKS 5");
  // A proxy that wants a password although none was offered answers 0xff, which ends up in the last
  // branch.
  if ((*chosen)[1] == 2 && has_user) {
    if (auto status = log_in_to_socks(proxy_end, proxy); !status.ok()) return status;
  } else if ((*chosen)[1] != 0) {
    return proxy_end.refused("it wants a user and a password");
  }
  // 2. ask for the connection; a name is resolved by the proxy
  if (target.host.size() > 255) return proxy_end.refused("the host's name is too long");
  std::string request{"\x05\x01\x00", 3};
  // The kinds of addresses: 1 is IPv4, 4 is IPv6, 3 a name with its length before it.
  if (const auto address = parse_address(target.host); address) {
    request += address->size == 4 ? '\x01' : '\x04';
    request.append(reinterpret_cast<const char*>(address->bytes.data()), address->size);
  } else {
    request += '\x03';
    request += static_cast<char>(target.host.size());
    request += target.host;
  }
  // Network byte order.
  request += static_cast<char>(target.port >> 8);
  request += static_cast<char>(target.port & 0xff);
  if (auto status = proxy_end.send(request); !status.ok()) return status;
  // 3. the answer, with an address that has one of three lengths
  // Version, code, a reserved byte, the kind of address, and its first byte, which is the length of
  // a name.
  const auto head = proxy_end.receive(5);
  if (!head.ok()) return head.error();
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>((*head)[at]); };
  if (byte(1) != 0) return proxy_end.refused(std::string{socks_error(byte(1))});
  const std::size_t address = byte(3) == 1 ? 4U : byte(3) == 4 ? 16U : 1U + byte(4);
  const auto rest = proxy_end.receive(address - 1 + 2);  // one byte of it was read; the port
  return rest.ok() ? base::Status{} : base::Status{rest.error()};
}

// SOURCE: Kubernetes, "User impersonation". A key of the extra headers is percent-encoded, because
// header names allow fewer characters than keys do.
std::vector<std::pair<std::string, std::string>> impersonation_headers(const Impersonation& as) {
  std::vector<std::pair<std::string, std::string>> headers;
  if (!as.user.empty()) headers.emplace_back("Impersonate-User", as.user);
  if (!as.uid.empty()) headers.emplace_back("Impersonate-Uid", as.uid);
  for (const std::string& group : as.groups) headers.emplace_back("Impersonate-Group", group);
  for (const auto& [key, value] : as.extra) {
    headers.emplace_back("Impersonate-Extra-" + percent_encode(key), value);
  }
  return headers;
}

}  // namespace

const Login* personal_login() {
  static constexpr Login kAll{run_exec_plugin, connect_by_socks, impersonation_headers};
  return &kAll;
}

}  // namespace kube
