# Shared by the scripts of this folder (sourced, not run). The cluster is that of e2e/kubernetes (control
# plane, certificates, images, addresses), but in a network namespace of its own in which all addresses are
# the loopback's; the nodes are guests of QEMU.
target=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
export KUBEGANG_CLUSTER_DIR=${KUBEGANG_CLUSTER_DIR:-$(cd "$target/../.." && pwd)/build/target}
export KUBEGANG_NODES=2
export KUBEGANG_API_BIND=0.0.0.0  # QEMU hands the guests' connections to 127.0.0.1
source "$target/../kubernetes/lib.sh"

network=kg-target
export KUBECONFIG=$state/pki/admin.kubeconfig

in_network() { nsenter --net="/run/netns/$network" "$@"; }
kubectl=$(tools_bin kubernetes 2>/dev/null || true)/kubectl  # without Go, preflight says so
helm=$(tools_bin helm 2>/dev/null || true)/helm
kubectl() { in_network "$kubectl" "$@"; }
helm() { in_network "$helm" "$@"; }

# on_node N COMMAND…   in the guest; one connection is kept, so that a command takes some 60 ms
on_node() {
  local n=$1
  shift
  in_network ssh -n -i "$state/ssh/id" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
    -o LogLevel=ERROR -o ControlMaster=auto -o ControlPath="$state/ssh/n$n" -o ControlPersist=600 \
    -o ConnectTimeout=20 "root@$(node_ip "$n")" "$@"
}

# The folder of what a guest is made of (make-node); its name is a hash of what that is made from.
node_files() {
  local key
  key=$( (cd "$target" && cat make-node && find node -type f | sort | xargs cat &&
    tools_bin kubernetes && tools_bin containerd) | sha256sum | cut -c1-16)
  echo "$cache/node-$key"
}

# What apt knows of Debian 12, as lines of a sources.list.
debian_sources() {
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(SIGNED_BY)' 'Created-By: Packages' |
    awk '$2 ~ "^bookworm(-updates|-security)?$" && $3 == "main" {
      signed = $4 ~ "^/" ? "[signed-by=" $4 "] " : ""; print "deb " signed $1, $2, $3}' | sort -u
}
