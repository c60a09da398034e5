#include "kube/fuzz/targets.h"

#include <nlohmann/json.hpp>
#include <string>

#include "base/check.h"
#include "kube/api/batch_job.h"
#include "kube/api/event.h"
#include "kube/api/lease.h"
#include "kube/api/node.h"
#include "kube/api/pod.h"
#include "kube/api/quantity.h"
#include "kube/api/service.h"
#include "kube/api/time_format.h"
#include "kube/base64.h"
#include "kube/exec_plugin.h"
#include "kube/managed_fields.h"
#include "kube/transport_config.h"
#include "kube/url.h"

namespace kube {
namespace {

using nlohmann::json;

void check_sentence(const base::Error& error) {
  CHECK(!error.message.empty());
}

// The model: what without_managed_fields() does to the text, done to the tree.
void erase_managed_fields(json& value) {
  if (value.is_object()) {
    const auto found = value.find("managedFields");
    if (found != value.end() && found->is_array()) value.erase(found);
  }
  if (!value.is_structured()) return;
  for (json& each : value) erase_managed_fields(each);
}

// The second decode sees what the first one kept: encoding must lose none of it.
template <ApiObject T>
void check_decoded(const json& object) {
  const base::Result<T> decoded = decode<T>(object);
  if (!decoded.ok()) return check_sentence(decoded.error());
  const base::Result<T> again = decode<T>(encode(*decoded));
  CHECK(again.ok(), again.ok() ? "" : again.error().message);
  CHECK(*again == *decoded);
}

}  // namespace

void fuzz_kubeconfig(std::string_view text) {
  // The directory does not exist, so that no file of this machine is read.
  const auto config = parse_kubeconfig(text, "kubeconfig", "/nonexistent");
  if (!config.ok()) return check_sentence(config.error());
  CHECK(!config->server.empty());
  CHECK(config->client_certificate_pem.empty() == config->client_key_pem.empty());
  if (config->exec) CHECK(!config->exec->command.empty());
}

void fuzz_credential(std::string_view text) {
  const ExecPlugin plugin{.api_version = "client.authentication.k8s.io/v1", .command = "plugin"};
  const auto credential = parse_exec_credential(std::string{text}, plugin);
  if (!credential.ok()) return check_sentence(credential.error());
  CHECK(!credential->token.empty() || !credential->client_certificate_pem.empty());
  CHECK(credential->client_certificate_pem.empty() == credential->client_key_pem.empty());
}

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

void fuzz_wire(std::string_view text) {
  const std::string without = without_managed_fields(text);
  json object = json::parse(text, nullptr, false);
  if (object.is_discarded()) return;
  // A text that was JSON must still be JSON.
  json rest = json::parse(without, nullptr, false);
  CHECK(!rest.is_discarded(), without);
  erase_managed_fields(object);
  // The text may keep such lists where its spelling differs from an API server's (a blank after the
  // name), hence also on this side.
  erase_managed_fields(rest);
  CHECK(object == rest, without);
  check_decoded<Pod>(object);
  check_decoded<Node>(object);
  check_decoded<Lease>(object);
  check_decoded<Service>(object);
  check_decoded<Event>(object);
  check_decoded<BatchJob>(object);
}

}  // namespace kube
