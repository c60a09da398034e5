#include "kube/api/service.h"

#include "kube/api/meta_codec.h"

namespace kube {

template <typename Io>
void visit(Io& io, Like<ServicePort> auto& s) {
  io.field("name", s.name);
  io.field("protocol", s.protocol);
  io.field("port", s.port);
  io.field("targetPort", s.target_port);
}

template <typename Io>
void visit(Io& io, Like<ServiceSpec> auto& s) {
  io.field("clusterIP", s.cluster_ip);
  io.field("selector", s.selector);
  io.field("ports", s.ports);
  // Members of a gang look each other up while they start, before any of them is ready.
  io.nonzero("publishNotReadyAddresses", s.publish_not_ready_addresses);
}

template <typename Io>
void visit(Io& io, Like<Service> auto& s) {
  io.field("metadata", s.metadata);
  io.field("spec", s.spec);
}

template <>
base::Result<Service> decode<Service>(const JsonView& object) {
  return codec::decode_object<Service>(object);
}
template <>
const KnownFields& known_fields<Service>() {
  return codec::fields_of<Service>();
}
nlohmann::json encode(const Service& service) {
  return codec::encode_object(service);
}

}  // namespace kube
