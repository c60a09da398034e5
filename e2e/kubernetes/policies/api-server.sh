# Starts etcd, kube-apiserver and kube-controller-manager on loopback ports, and defines k, their kubectl. Sourced by test-policies.

start() {  # NAME COMMAND…
  local name=$1
  shift
  "$@" >"$dir/$name.log" 2>&1 </dev/null &
  pids+=($!)
}

KUBEGANG_NODES=0 "$here/make-pki" "$dir" >/dev/null
server=https://127.0.0.1:$api_port
sed -i "s#server: \"[^\"]*\"#server: \"$server\"#" "$dir"/*.kubeconfig
export KUBECONFIG=$dir/admin.kubeconfig
k() { "$bin/kubectl" --request-timeout=20s "$@"; }

start etcd "$bin/etcd" --data-dir "$dir/etcd" --unsafe-no-fsync \
  --listen-client-urls "http://127.0.0.1:$etcd_port" --advertise-client-urls "http://127.0.0.1:$etcd_port" \
  --listen-peer-urls "http://127.0.0.1:$((etcd_port + 2))" \
  --initial-advertise-peer-urls "http://127.0.0.1:$((etcd_port + 2))" \
  --initial-cluster "default=http://127.0.0.1:$((etcd_port + 2))"
start kube-apiserver "$bin/kube-apiserver" --etcd-servers="http://127.0.0.1:$etcd_port" \
  --bind-address=127.0.0.1 --secure-port="$api_port" --endpoint-reconciler-type=none \
  --client-ca-file="$dir/ca.crt" --tls-cert-file="$dir/apiserver.crt" --tls-private-key-file="$dir/apiserver.key" \
  --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --allow-privileged=true \
  --feature-gates=MutatingAdmissionPolicy=true --runtime-config=admissionregistration.k8s.io/v1beta1=true \
  --service-cluster-ip-range=10.96.0.0/24 --service-account-issuer=https://kubernetes.default.svc \
  --service-account-key-file="$dir/service-account.pub" --service-account-signing-key-file="$dir/service-account.key" \
  --requestheader-client-ca-file="$dir/ca.crt" --requestheader-allowed-names=front-proxy --requestheader-username-headers=X-Remote-User \
  --requestheader-group-headers=X-Remote-Group --requestheader-extra-headers-prefix=X-Remote-Extra- \
  --proxy-client-cert-file="$dir/front-proxy.crt" --proxy-client-key-file="$dir/front-proxy.key"
wait_for 120 "the API server" k get --raw /readyz
start kube-controller-manager "$bin/kube-controller-manager" --kubeconfig="$dir/controller-manager.kubeconfig" \
  --use-service-account-credentials=true --service-account-private-key-file="$dir/service-account.key" \
  --root-ca-file="$dir/ca.crt" --allocate-node-cidrs=false --leader-elect=false --bind-address=127.0.0.1 \
  --secure-port="$((etcd_port + 3))"
