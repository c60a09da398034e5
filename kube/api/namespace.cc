#include "kube/api/namespace.h"

#include "kube/api/meta_codec.h"

namespace kube {

template <typename Io>
void visit(Io& io, Like<NamespaceStatus> auto& s) {
  io.field("phase", s.phase);
}

template <typename Io>
void visit(Io& io, Like<Namespace> auto& s) {
  io.field("metadata", s.metadata);
  io.field("status", s.status);
}

template <>
base::Result<Namespace> decode<Namespace>(const JsonView& object) {
  return codec::decode_object<Namespace>(object);
}
template <>
const KnownFields& known_fields<Namespace>() {
  return codec::fields_of<Namespace>();
}
nlohmann::json encode(const Namespace& object) {
  return codec::encode_object(object);
}

}  // namespace kube
