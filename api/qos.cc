#include "api/qos.h"

#include "api/qos_codec.h"

namespace kube {

template <>
base::Result<Qos> decode<Qos>(const JsonView& object) {
  return codec::decode_object<Qos>(object);
}
template <>
const KnownFields& known_fields<Qos>() {
  return codec::fields_of<Qos>();
}
nlohmann::json encode(const Qos& qos) {
  return codec::encode_object(qos);
}

}  // namespace kube
