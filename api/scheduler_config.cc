#include "api/scheduler_config.h"

#include "api/scheduler_config_codec.h"

namespace kube {

template <>
base::Result<SchedulerConfig> decode<SchedulerConfig>(const JsonView& object) {
  return codec::decode_object<SchedulerConfig>(object);
}
template <>
const KnownFields& known_fields<SchedulerConfig>() {
  return codec::fields_of<SchedulerConfig>();
}
nlohmann::json encode(const SchedulerConfig& config) {
  return codec::encode_object(config);
}

}  // namespace kube
