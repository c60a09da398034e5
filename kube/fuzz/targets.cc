#include "kube/fuzz/targets.h"

#include <nlohmann/json.hpp>
#include <string>

#include "base/check.h"
#include "kube/api/batch_job.h"
#include "kube/api/event.h"
#include "kube/api/json_view.h"
#include "kube/api/known_fields.h"
#include "kube/api/lease.h"
#include "kube/api/node.h"
#include "kube/api/pod.h"
#include "kube/api/quantity.h"
#include "kube/api/service.h"
#include "kube/api/time_format.h"
#include "kube/base64.h"
#include "kube/exec_plugin.h"
#include "kube/transport_config.h"
#include "kube/url.h"

namespace kube {
namespace {

using nlohmann::json;

// Whatever is refused must be explained: the user sees nothing but this text.
void check_sentence(const base::Error& error) {
  CHECK(!error.message.empty());
}

// Members that the type does not read make no difference, nor does how the text is written. The
// last decode sees what the first one kept: encoding must lose none of it.
template <ApiObject T>
void check_decoded(std::string_view text, const json& object) {
  const base::Result<T> decoded = decode<T>(object);
  for (const KnownFields& fields : {KnownFields{}, known_fields<T>()}) {
    const auto read = JsonText::read(text, fields);
    CHECK(read.has_value());
    const base::Result<T> of_text = decode<T>(read->root());
    CHECK(of_text.ok() == decoded.ok());
    CHECK(!decoded.ok() || *of_text == *decoded);
  }
  if (!decoded.ok()) return check_sentence(decoded.error());
  const base::Result<T> again = decode<T>(encode(*decoded));
  CHECK(again.ok(), again.ok() ? "" : again.error().message);
  CHECK(*again == *decoded);
}

}  // namespace

// A config that is accepted can be used: it has a server, a certificate only together with its key,
// and a plugin only with a command. A config that lacks one of them would fail at the first
// request, far from the line that is wrong.
void fuzz_kubeconfig(std::string_view text) {
  // The directory does not exist, so that no file of this machine is read.
  const auto config = parse_kubeconfig(text, "kubeconfig", "/nonexistent");
  if (!config.ok()) return check_sentence(config.error());
  CHECK(!config->server.empty());
  CHECK(config->client_certificate_pem.empty() == config->client_key_pem.empty());
  if (config->exec) CHECK(!config->exec->command.empty());
}

// The output of a plugin comes from a third party's program: a credential that is taken from it
// must have a token, or a certificate with its key.
void fuzz_credential(std::string_view text) {
  const ExecPlugin plugin{.api_version = "client.authentication.k8s.io/v1", .command = "plugin"};
  const auto credential = parse_exec_credential(std::string{text}, plugin);
  if (!credential.ok()) return check_sentence(credential.error());
  CHECK(!credential->token.empty() || !credential->client_certificate_pem.empty());
  CHECK(credential->client_certificate_pem.empty() == credential->client_key_pem.empty());
}

// Values that are read, written and read again stay the same. The text may change ("1000m" becomes
// "1"), so values are compared and not texts. For Base64 and percent encoding it is the other way:
// every text survives, and a decoder takes any bytes without harm.
void fuzz_values(std::string_view text) {
  if (const auto quantity = parse_quantity(text); quantity.ok()) {
    const auto again = parse_quantity(format_decimal(*quantity));
    CHECK(again.ok() && *again == *quantity, format_decimal(*quantity));
  } else {
    check_sentence(quantity.error());
  }
  if (const auto duration = parse_duration(text); duration.ok()) {
    const auto again = parse_duration(format_duration(*duration));
    CHECK(again.ok() && *again == *duration, format_duration(*duration));
  } else {
    check_sentence(duration.error());
  }
  if (const auto instant = parse_instant(text); instant.ok()) {
    const auto again = parse_instant(format_micro_time(*instant));
    CHECK(again.ok() && *again == *instant, format_micro_time(*instant));
  } else {
    check_sentence(instant.error());
  }
  CHECK(decode_base64(encode_base64(text)) == text);
  (void)decode_base64(text);
  CHECK(percent_decode(percent_encode(text)) == text);
  if (const auto url = parse_url(text); url.ok()) {
    CHECK(!url->host.empty() && url->port > 0 && url->port < 65536, url->text());
  } else {
    check_sentence(url.error());
  }
}

// Two readers of JSON must agree on every text: the table (json_view.h), and the library's
// parser, which defines what JSON is. Then each kind is decoded from both.
void fuzz_wire(std::string_view text) {
  // To the library a zero byte is the end of a text, and a byte order mark is not a part of it.
  if (text.find('\0') != std::string_view::npos || text.starts_with("\xef")) return;
  const json object = json::parse(text, nullptr, false);
  CHECK(JsonText::read(text, {}).has_value() == !object.is_discarded());
  if (object.is_discarded()) return;
  check_decoded<Pod>(text, object);
  check_decoded<Node>(text, object);
  check_decoded<Lease>(text, object);
  check_decoded<Service>(text, object);
  check_decoded<Event>(text, object);
  check_decoded<BatchJob>(text, object);
}

}  // namespace kube
