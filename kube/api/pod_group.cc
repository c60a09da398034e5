#include "kube/api/pod_group.h"

#include "kube/api/meta_codec.h"

namespace kube {

// Only the least number of members is read from the coscheduling plugin's spec.
template <typename Io>
void visit(Io& io, Like<PodGroupSpec> auto& s) {
  io.field("minMember", s.min_member);
}

template <typename Io>
void visit(Io& io, Like<PodGroup> auto& s) {
  io.field("metadata", s.metadata);
  io.field("spec", s.spec);
}

template <>
base::Result<PodGroup> decode<PodGroup>(const JsonView& object) {
  return codec::decode_object<PodGroup>(object);
}
template <>
const KnownFields& known_fields<PodGroup>() {
  return codec::fields_of<PodGroup>();
}
nlohmann::json encode(const PodGroup& group) {
  return codec::encode_object(group);
}

}  // namespace kube
