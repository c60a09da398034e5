#include "api/usage_record.h"

#include "api/usage_record_codec.h"

namespace kube {

template <>
base::Result<UsageRecord> decode<UsageRecord>(const JsonView& object) {
  return codec::decode_object<UsageRecord>(object);
}
template <>
const KnownFields& known_fields<UsageRecord>() {
  return codec::fields_of<UsageRecord>();
}
nlohmann::json encode(const UsageRecord& record) {
  return codec::encode_object(record);
}

}  // namespace kube
