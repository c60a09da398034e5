#include "kube/api/lease.h"

#include "kube/api/meta_codec.h"

namespace kube {

template <typename Io>
void visit(Io& io, Like<LeaseSpec> auto& s) {
  io.field("holderIdentity", s.holder_identity);
  io.field("leaseDurationSeconds", s.lease_duration_seconds);
  // Microseconds, as metav1.MicroTime: leaders renew several times in a minute, and whole seconds
  // would hide how close a renewal was.
  io.micro_time("acquireTime", s.acquire_time);
  io.micro_time("renewTime", s.renew_time);
  io.field("leaseTransitions", s.lease_transitions);
}

template <typename Io>
void visit(Io& io, Like<Lease> auto& s) {
  io.field("metadata", s.metadata);
  io.field("spec", s.spec);
}

template <>
base::Result<Lease> decode<Lease>(const JsonView& object) {
  return codec::decode_object<Lease>(object);
}
template <>
const KnownFields& known_fields<Lease>() {
  return codec::fields_of<Lease>();
}
nlohmann::json encode(const Lease& lease) {
  return codec::encode_object(lease);
}

}  // namespace kube
