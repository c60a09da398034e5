#include "api/partition.h"

#include "api/partition_codec.h"

namespace kube {

template <>
base::Result<Partition> decode<Partition>(const JsonView& object) {
  return codec::decode_object<Partition>(object);
}
template <>
const KnownFields& known_fields<Partition>() {
  return codec::fields_of<Partition>();
}
nlohmann::json encode(const Partition& partition) {
  return codec::encode_object(partition);
}

}  // namespace kube
