# kubegang-records behind the API server's aggregation: with the chart's account, roles and certificate. Sourced by test-policies.

records=${KUBEGANG_RECORDS:-$repo/build/bin/kubegang-records}
[[ -x $records ]] || die "there is no $records: cmake --build --preset release --target kubegang-records"
records_port=$((etcd_port + 4))
records_path=/apis/records.kubegang.io/v1alpha1
install --set records.enabled=true,records.api.enabled=true
secret() { k get secret kubegang-records -n kubegang-system -o "jsonpath={.data.${1/./\\.}}"; }
authority=$(secret ca.crt)
install --set records.enabled=true,records.api.enabled=true
operator_of_now
[[ $(secret ca.crt) == "$authority" ]] || fail "an upgrade made another certificate"
for file in tls.crt tls.key; do secret $file | base64 -d >"$dir/records-$file"; done

# Nothing runs the Deployment's pod: a program on this machine has its token, and the name of its Service leads here.
records_pod() { k get pods -n kubegang-system -l app.kubernetes.io/component=records -o jsonpath='{.items[0].metadata.name}'; }
wait_for 30 "the pod of the records" records_pod
cat >"$dir/records.kubeconfig" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: e2e, cluster: {server: "$server", certificate-authority: "$dir/ca.crt"}}]
users: [{name: user, user: {token: "$(token_of_pod kubegang-records "$(records_pod)")"}}]
contexts: [{name: e2e, context: {cluster: e2e, user: user}}]
current-context: e2e
YAML
k delete service kubegang-records -n kubegang-system >/dev/null
k create service externalname kubegang-records -n kubegang-system --external-name=localhost --tcp="$records_port" >/dev/null
k patch apiservice v1alpha1.records.kubegang.io --type=merge -p "{\"spec\": {\"service\": {\"port\": $records_port}}}" >/dev/null
start_records() {
  start records "$records" --kubeconfig="$dir/records.kubeconfig" --database="$dir/records.db" --metrics-address=127.0.0.1:0 \
    --lease=kubegang-system/kubegang-records \
    --api-port="$records_port" --tls-certificate="$dir/records-tls.crt" --tls-key="$dir/records-tls.key"
  records_pid=${pids[-1]}
}
start_records
is_available() { k get apiservice v1alpha1.records.kubegang.io -o jsonpath='{.status.conditions[?(@.type=="Available")].status}' | grep -q True; }
wait_for 60 "the API of the records (see $dir/records.log)" is_available

# A job that has ended, and whose object is gone.
as anna create -f <(job remembered) >/dev/null
allow "the operator says how it ended" with_token "$operator" patch jobs.kubegang.io remembered -n team-a --subresource=status --type=merge -p \
  '{"status": {"state": "Completed", "jobID": 4711, "submitTime": "2026-01-01T00:00:00.000000Z", "endTime": "2026-01-01T00:01:00.000000Z",
    "startTime": "2026-01-01T00:00:30.000000Z", "allocation": {"hostlist": "n7", "nodes": 1, "cpus": 8}}}'
as anna delete jobs.kubegang.io remembered -n team-a >/dev/null
list_records() { as "$1" get --raw "$records_path/$2"; }  # USER PATH
is_recorded() { list_records anna namespaces/team-a/records | grep -q '"jobID":4711.*"state":"Completed"'; }
wait_for 30 "the record" is_recorded
# How far it has stored Jobs, for the operator.
stored_version() { k get lease kubegang-records -n kubegang-system -o 'jsonpath={.metadata.annotations.kubegang\.io/recorded-version}'; }
says_version() { [[ $(stored_version) =~ ^[1-9][0-9]*$ ]]; }
wait_for 60 "the version in the Lease (see $dir/records.log)" says_version
allow "the operator reads it" with_token "$operator" get lease kubegang-records -n kubegang-system
deny "the records write the operator's" 'resource "leases"' k --kubeconfig="$dir/records.kubeconfig" \
  annotate lease kubegang-operator -n kubegang-system a=b
allow "anna lists the records of her namespace" list_records anna namespaces/team-a/records
for user in anna zed; do
  deny "$user lists those of all" 'cannot list resource "records"' list_records $user records
  deny "$user lists those of another namespace" 'cannot list resource "records"' list_records $user namespaces/host/records
done
deny "anna watches" "cannot watch" list_records anna 'namespaces/team-a/records?watch=true'
allow "kubectl finds the kind" k get records.records.kubegang.io -A

# The page draws the past with the rights of who looks at it.
gang=$(dirname "$records")/kubectl-gang
page_records() {  # USER NAMESPACE   what the page answers for the day
  local url page pid i status=0
  rm -f "$dir"/page.*
  "$gang" dashboard -A --as="$1" --as-group=system:authenticated >"$dir/page.log" 2>&1 </dev/null &
  pid=$!
  for ((i = 0; i < 100; i++)); do url=$(grep -sm1 -o 'http://.*' "$dir/page.log") && break; sleep 0.1; done
  page=${url%/#*}
  curl -s -c "$dir/page.jar" -H "Origin: $page" -d "${url##*#}" "$page/session" >/dev/null
  curl -s --fail-with-body -b "$dir/page.jar" -H "Origin: $page" "$page/records" \
    -d "{\"from\": 1767225600000000, \"until\": 1767312000000000, \"ns\": \"$2\"}" || status=$?
  kill "$pid"
  wait "$pid" 2>/dev/null || true
  return $status
}
page_shows_run() { page_records anna team-a | grep -F '"on":["n7"]'; }
allow "anna's page shows where her job was" page_shows_run
deny "anna's page shows those of all" 'cannot list resource "records"' page_records anna ""
deny "zed's page shows anna's" 'cannot list resource "records"' page_records zed team-a

# Only the API server gets an answer, whatever a request says of its user. Prints the answer, or the error without one, and fails.
base64 -d <<<"$authority" >"$dir/records-ca.crt"
directly() { python3 -c '
import socket, ssl, sys
authority, port, path, *pair = sys.argv[1:]
context = ssl.create_default_context(cafile=authority)
if pair: context.load_cert_chain(*pair)
host = "kubegang-records.kubegang-system.svc"
with context.wrap_socket(socket.create_connection(("localhost", port)), server_hostname=host) as connection:
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nX-Remote-User: admin\r\nConnection: close\r\n\r\n".encode())
    answer = b""
    while part := connection.recv(65536): answer += part
sys.exit(answer.decode() or "Error: the connection was closed")' "$dir/records-ca.crt" "$records_port" "$records_path/records" "$@"; }
deny "a stranger asks it" "Error" directly
deny "an administrator asks it" "only the API server may ask" directly "$dir/admin.crt" "$dir/admin.key"

# While it is away the API server does not know what is in a namespace, so none goes: until it is back, or its
# APIService is gone. The namespace controller tries again once a minute at the latest.
# It says that it could not learn of the group, or, where discovery does not know yet that the API is away (it looks
# once a minute), that it could not delete what is of the group.
is_stuck() { k get namespace "$1" -o jsonpath='{range .status.conditions[*]}{.type}={.status}{"\n"}{end}' | grep -qE '^NamespaceDeletion(Discovery|Content)Failure=True$'; }
is_gone() { ! k get namespace "$1" >/dev/null 2>&1; }
is_away() { ! is_available; }
without_records() {  # NAMESPACE
  k create namespace "$1" >/dev/null
  kill "$records_pid"
  wait_for 120 "the API of the records to be away" is_away
  k delete namespace "$1" --wait=false >/dev/null
  wait_for 240 "the namespace that cannot go" is_stuck "$1"
}
without_records one-that-waits
start_records
wait_for 240 "the API of the records, again" is_available
wait_for 240 "the namespace to go with it" is_gone one-that-waits
without_records another-that-waits
k delete apiservice v1alpha1.records.kubegang.io >/dev/null
wait_for 240 "the namespace to go without the APIService" is_gone another-that-waits
