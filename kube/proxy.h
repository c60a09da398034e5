// Proxies between us and an API server: which one, and how to go through it.
#pragma once

#include <string>

#include "base/result.h"
#include "base/time.h"
#include "kube/login.h"
#include "kube/url.h"

namespace kube {

// Returns the proxy that the environment names for a server, "" for none: $HTTPS_PROXY (for http
// servers $HTTP_PROXY) unless $NO_PROXY covers it, in capitals or not. As Go's programs read them:
// NO_PROXY is a list of "*", hosts (with all their subdomains; ".a.b" subdomains only), addresses
// and networks such as 10.0.0.0/8, each but the last with an optional ":port". Local addresses
// never use a proxy.
std::string proxy_from_environment(const Url& server);

// Makes `descriptor`, which is connected to the proxy, a connection to `host`:`port` behind it: by
// CONNECT (http), or SOCKS 5 with the name resolved by the proxy (socks5, socks5h). Sends the
// proxy's user and password if it has them. Blocks for `timeout` at most.
// kUnavailable: a sentence that names the proxy and its answer; kTimeout. REQUIRES: `login` for
// SOCKS.
base::Status open_tunnel(int descriptor, const Url& proxy, const std::string& host, int port,
                         base::Duration timeout, const Login* login);

}  // namespace kube
