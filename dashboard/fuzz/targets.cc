#include "dashboard/fuzz/targets.h"

#include "base/check.h"
#include "dashboard/gatekeeper.h"
#include "dashboard/http_request.h"
#include "dashboard/peer_owner.h"

namespace dashboard {

void fuzz_request(std::string_view text) {
  (void)owner_in(text, {.client_port = 1, .server_port = 2});
  const ParsedRequest whole = parse_request(text);
  const ParsedRequest half = parse_request(text.substr(0, text.size() / 2));
  CHECK(half.status == 0 || half.status == whole.status, "more text changed the answer");
  if (whole.status != 200) return;
  CHECK(whole.request.path.starts_with('/'), "a path without its begin");
  CHECK(whole.request.body.size() <= kBodyBytesMax, "a body over its limit");
  Gatekeeper gate{8080, [] { return std::string{"secret"}; }};
  (void)gate.is_signed_in(whole.request);
  CHECK(whole.request.body == "secret" || !gate.sign_in(whole.request), "a wrong code was taken");
  if (gate.refuses(whole.request)) return;
  const std::string host = whole.request.header("host");
  CHECK(host.starts_with("127.0.0.1") || host.starts_with("localhost"), "another host was let in");
}

}  // namespace dashboard
