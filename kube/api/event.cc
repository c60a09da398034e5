#include "kube/api/event.h"

#include "kube/api/meta_codec.h"

namespace kube {

template <typename Io>
void visit(Io& io, Like<ObjectReference> auto& s) {
  io.field("apiVersion", s.api_version);
  io.field("kind", s.kind);
  io.field("namespace", s.ns);
  io.field("name", s.name);
  io.field("uid", s.uid);
  io.field("resourceVersion", s.resource_version);
}

template <typename Io>
void visit(Io& io, Like<EventSource> auto& s) {
  io.field("component", s.component);
  io.field("host", s.host);
}

// `count` and the two times are of the core group's Events; that of events.k8s.io has other names
// for them.
template <typename Io>
void visit(Io& io, Like<Event> auto& s) {
  io.field("metadata", s.metadata);
  io.field("involvedObject", s.involved_object);
  io.field("type", s.type);
  io.field("reason", s.reason);
  io.field("message", s.message);
  io.field("source", s.source);
  io.field("count", s.count);
  io.time("firstTimestamp", s.first_timestamp);
  io.time("lastTimestamp", s.last_timestamp);
}

template <>
base::Result<Event> decode<Event>(const JsonView& object) {
  return codec::decode_object<Event>(object);
}
template <>
const KnownFields& known_fields<Event>() {
  return codec::fields_of<Event>();
}
nlohmann::json encode(const Event& event) {
  return codec::encode_object(event);
}

}  // namespace kube
