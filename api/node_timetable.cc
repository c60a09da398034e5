#include "api/node_timetable.h"

#include "api/node_timetable_codec.h"

namespace kube {

template <>
base::Result<NodeTimetable> decode<NodeTimetable>(const JsonView& object) {
  return codec::decode_object<NodeTimetable>(object);
}
template <>
const KnownFields& known_fields<NodeTimetable>() {
  return codec::fields_of<NodeTimetable>();
}
nlohmann::json encode(const NodeTimetable& timetable) {
  return codec::encode_object(timetable);
}

}  // namespace kube
