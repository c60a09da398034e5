#include "kube/api/node.h"

#include "kube/api/meta_codec.h"

namespace kube {

template <typename Io>
void visit(Io& io, Like<Taint> auto& s) {
  io.field("key", s.key);
  io.field("value", s.value);
  io.field("effect", s.effect);
  io.time("timeAdded", s.time_added);
}

// Each visit() lists the fields of a struct once, for reading, writing and listing them (codec.h).
// Fields of a Node that are not here are dropped when it is read.
template <typename Io>
void visit(Io& io, Like<NodeSpec> auto& s) {
  // The API server leaves a false out, so we do.
  io.nonzero("unschedulable", s.unschedulable);
  io.field("taints", s.taints);
}

template <typename Io>
void visit(Io& io, Like<NodeAddress> auto& s) {
  io.field("type", s.type);
  io.field("address", s.address);
}

template <typename Io>
void visit(Io& io, Like<NodeSystemInfo> auto& s) {
  io.field("machineID", s.machine_id);
  io.field("bootID", s.boot_id);
  io.field("kernelVersion", s.kernel_version);
  io.field("osImage", s.os_image);
  io.field("containerRuntimeVersion", s.container_runtime_version);
  io.field("kubeletVersion", s.kubelet_version);
  io.field("operatingSystem", s.operating_system);
  io.field("architecture", s.architecture);
}

template <typename Io>
void visit(Io& io, Like<NodeStatus> auto& s) {
  io.field("capacity", s.capacity);
  io.field("allocatable", s.allocatable);
  io.field("conditions", s.conditions);
  io.field("addresses", s.addresses);
  io.field("nodeInfo", s.node_info);
}

template <typename Io>
void visit(Io& io, Like<Node> auto& s) {
  io.field("metadata", s.metadata);
  io.field("spec", s.spec);
  io.field("status", s.status);
}

template <>
base::Result<Node> decode<Node>(const JsonView& object) {
  return codec::decode_object<Node>(object);
}
template <>
const KnownFields& known_fields<Node>() {
  return codec::fields_of<Node>();
}
nlohmann::json encode(const Node& node) {
  return codec::encode_object(node);
}

}  // namespace kube
