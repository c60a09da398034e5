# Shared by the scripts of this folder (sourced, not run): where things are, and what they are called.
# A cluster is one etcd and one control plane in the host's namespaces, on the address of a bridge that
# only this machine has, and nodes that are sets of Linux namespaces with a containerd and a kubelet each.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
repo=$(cd "$here/../.." && pwd)
state=${KUBEGANG_CLUSTER_DIR:-$repo/build/kubernetes}  # everything of one cluster
cache=${KUBEGANG_TOOLS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kubegang}

bridge=kgbr0
bridge_ip=172.30.0.1
node_count=${KUBEGANG_NODES:-3}
nodes_per_lane=3  # of the tests; kNodesCount, tests/harness.h
# Which Kubernetes: 1.34, or with KUBEGANG_KUBERNETES=1.32 that of tools/kubernetes-1.32.
kubernetes=kubernetes${KUBEGANG_KUBERNETES:+-$KUBEGANG_KUBERNETES}
[[ -d $here/tools/$kubernetes ]] || { echo "$0: KUBEGANG_KUBERNETES=$KUBEGANG_KUBERNETES: there is no $here/tools/$kubernetes" >&2; exit 1; }
kubernetes_version=$(awk '$1 == "k8s.io/kubernetes" {print $2}' "$here/tools/$kubernetes/go.mod")
kubernetes_minor=$(cut -d. -f2 <<<"$kubernetes_version")
# Which containerd: that of this machine (Debian 12: 1.6), or with KUBEGANG_CONTAINERD=2 that of tools/containerd.
containerd_version=${KUBEGANG_CONTAINERD:-1}
[[ $containerd_version == [12] ]] || { echo "$0: KUBEGANG_CONTAINERD=$containerd_version: must be 1 or 2" >&2; exit 1; }
site_domain=site.example  # of the nodes' names
registry=registry.e2e  # images are imported, never pulled; the host part needs a dot

log() { printf '%s\n' "$*" >&2; }
die() { log "$0: $*"; exit 1; }

require_root() { [[ $(id -u) -eq 0 ]] || die "needs root: it makes namespaces, a bridge and cgroups"; }

node_ip() { echo "172.30.0.$((10 + $1))"; }       # of node number N
node_cidr() { echo "10.244.$1.0/24"; }            # of its pods
node_dir() { echo "$state/nodes/n$1"; }

# The numbers of the nodes that this cluster has or had, however many it was made with; one per line.
nodes_made() {
  local dir
  for dir in "$state"/nodes/n*; do
    [[ ! -d $dir ]] || echo "${dir##*/n}"
  done
}

# The folder in tools/ that MODULE is built from: `kubernetes` is the version that was chosen.
module_folder() { [[ $1 == kubernetes ]] && echo "$kubernetes" || echo "$1"; }

# tools_bin [MODULE]   the folder of programs built from tools/MODULE (default: kubernetes); its name is a
# hash of what they are built from.
tools_bin() {
  local module key
  module=$(module_folder "${1:-kubernetes}")
  key=$( (cat "$here/tools/$module"/{go.mod,go.sum,build}
    find "$here/tools/$module" -name '*.go' -exec cat {} +
    go version) | sha256sum | cut -c1-16)
  echo "$cache/$module-$key"
}

# All clusters of a machine have the same addresses and node names.
require_no_cluster() {
  [[ ! -e $state/pids/etcd ]] || die "a cluster is up already ($state): make cluster-down"
  ! ip link show "$bridge" >/dev/null 2>&1 || die "another cluster is up on this machine: it has the bridge $bridge"
}

# pid_of NAME   the number in pids/NAME. Fails if that is no longer the process: when it has ended, or after
# a restart of the machine, the number may be any process's, and the caller wants to kill it as root.
pid_of() {
  local pid
  pid=$(cat "$state/pids/$1" 2>/dev/null) || return 1
  grep -qsaF -e "$state/" -e /e2e/kubernetes/node- "/proc/$pid/cmdline" || return 1
  echo "$pid"
}

# wait_for SECONDS WHAT COMMAND…   polls ten times a second
wait_for() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || { log "gave up waiting for $what"; return 1; }
    sleep 0.1
  done
}

# Where the cgroup hierarchies are mounted, one per line; only the usual place counts, for the tree may be
# mounted once more elsewhere (for a chroot). In each a node has the folder kg-nN, and no other part has
# processes below it.
hierarchies() { awk '$2 ~ "^/sys/fs/cgroup" && $3 ~ "^cgroup2?$" {print $2}' /proc/mounts; }

# On cgroup v1 a frozen process cannot be killed: everything of a node is thawed before it ends.
thaw_node() {  # N
  local hierarchy file
  for hierarchy in $(hierarchies); do
    [[ -d $hierarchy/kg-n$1 ]] || continue
    while IFS= read -r file; do
      case $file in
        */cgroup.freeze) echo 0 >"$file" 2>/dev/null || true ;;
        *) echo THAWED >"$file" 2>/dev/null || true ;;
      esac
    done < <(find "$hierarchy/kg-n$1" -depth \( -name cgroup.freeze -o -name freezer.state \) 2>/dev/null)
  done
}

remove_node_cgroups() {  # N
  local hierarchy attempt
  for attempt in 1 2 3 4 5 6 7 8 9 10; do
    for hierarchy in $(hierarchies); do
      [[ -d $hierarchy/kg-n$1 ]] || continue
      find "$hierarchy/kg-n$1" -depth -type d -exec rmdir {} + 2>/dev/null || true
    done
    compgen -G "/sys/fs/cgroup/*/kg-n$1" >/dev/null || compgen -G "/sys/fs/cgroup/kg-n$1" >/dev/null || return 0
    thaw_node "$1"
    sleep 0.3
  done
  log "cgroups of n$1 could not be removed (attempt $attempt)"
}
