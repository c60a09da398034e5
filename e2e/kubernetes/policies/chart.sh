# Installs the chart, and what the cases act on: nodes, namespaces, a partition, users with roles. Sourced by test-policies.

install() { "$helm" upgrade --install kubegang "$repo/charts/kubegang" -n kubegang-system --create-namespace "$@" >"$dir/helm.log" 2>&1 ||
  { cat "$dir/helm.log" >&2; die "helm cannot install the chart"; }; }
# A managed configuration is an object of the release from the second command on, and an upgrade applies its
# spec again. Given back, it stays as it is, and the notes say that a spec has no effect.
slice() { k get schedulerconfigs.kubegang.io default -o jsonpath='{.spec.timeSlice}'; }
said() { grep -q "schedulerConfig.spec $1" "$dir/helm.log" || die "the notes do not say: schedulerConfig.spec $1"; }
managed=schedulerConfig.manage=true,schedulerConfig.spec.timeSlice
install --set $managed=5s
said "is not applied yet"
for time in 5s 7s; do
  install --set $managed=$time
  [[ $(slice) == "$time" ]] || die "an upgrade did not apply schedulerConfig.spec"
done
install --set schedulerConfig.spec.timeSlice=9s
said "was not applied"
[[ $(slice) == 7s ]] || die "an upgrade changed a SchedulerConfig that is not managed"
install
for kind in jobs partitions qos accounts schedulerconfigs nodetimetables usagerecords; do
  k wait --for=condition=Established crd/$kind.kubegang.io --timeout=30s >/dev/null
done
wait_for 30 "the default SchedulerConfig" k get schedulerconfigs.kubegang.io default
wait_for 30 "the default service account" k get serviceaccount default

for n in 1 2; do
  k create -f - >/dev/null <<YAML
{apiVersion: v1, kind: Node, metadata: {name: n$n, labels: {kubernetes.io/os: linux}}}
YAML
  k patch node n$n --subresource=status --type=merge -p \
    '{"status": {"conditions": [{"type": "Ready", "status": "True"}], "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}, "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}}' >/dev/null
done
k create namespace team-a >/dev/null
k create namespace host >/dev/null
k label namespace host pod-security.kubernetes.io/enforce=privileged >/dev/null
wait_for 30 "the service account of team-a" k get serviceaccount default -n team-a
k create -f - >/dev/null <<YAML
apiVersion: kubegang.io/v1alpha1
kind: Partition
metadata: {name: batch}
spec: {nodes: {hostlist: "n[1-2]"}}
YAML
# anna may edit team-a; ben may only submit jobs there; carl administers team-a and kubegang's namespace.
k create rolebinding anna --clusterrole=edit --user=anna -n team-a >/dev/null
k create rolebinding ben --clusterrole=kubegang-user --user=ben -n team-a >/dev/null
k create rolebinding ben --clusterrole=kubegang-user --user=ben -n host >/dev/null
k create rolebinding carl --clusterrole=admin --user=carl -n team-a >/dev/null
k create rolebinding carl --clusterrole=admin --user=carl -n kubegang-system >/dev/null
k create clusterrolebinding dora --clusterrole=kubegang-admin --user=dora >/dev/null
wait_for 30 "the aggregated roles" k auth can-i create jobs.kubegang.io --as=carl -n team-a
wait_for 30 "the aggregated roles" k auth can-i create jobs.kubegang.io --as=anna -n team-a

# kubectl reads a status before it patches it; our programs do not.
role_of kubectl-reads-first get {jobs,partitions,qos,accounts,schedulerconfigs,nodetimetables}/status
for account in operator agent; do
  k create clusterrolebinding kubectl-reads-first-$account --clusterrole=kubectl-reads-first --serviceaccount=kubegang-system:kubegang-$account >/dev/null
done

allow "anna sees jobs" as anna get jobs.kubegang.io -n team-a
deny "ben creates a pod" "cannot create resource \"pods\"" as ben run x --image=x -n team-a

# The programs' pods exist, since Kubernetes' own controllers may make them; nothing runs them.
token_of_pod() { k create token "$1" -n kubegang-system --bound-object-kind=Pod --bound-object-name="$2"; }  # ACCOUNT POD
operator_pod() { k get pods -n kubegang-system -l app.kubernetes.io/component=operator -o jsonpath='{.items[0].metadata.name}'; }
wait_for 30 "the Deployment's pod" operator_pod
operator=$(token_of_pod kubegang-operator "$(operator_pod)")
operator_of_now() {  # an upgrade makes other pods
  operator_is_new() { operator=$(token_of_pod kubegang-operator "$(operator_pod)") && with_token "$operator" get pods -n team-a; }
  wait_for 60 "the operator's token" operator_is_new
}
agent_pod() { k get pods -n kubegang-system -l app.kubernetes.io/component=agent \
  -o jsonpath="{.items[?(@.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].values[0]=='$1')].metadata.name}"; }
have_agent_pods() { [[ -n $(agent_pod n1) && -n $(agent_pod n2) ]]; }
wait_for 30 "the DaemonSet's pods" have_agent_pods
# A scheduler would bind it; the token of a bound pod names the node.
k create -f - >/dev/null <<YAML
{apiVersion: v1, kind: Binding, metadata: {name: $(agent_pod n1), namespace: kubegang-system}, target: {apiVersion: v1, kind: Node, name: n1}}
YAML
agent=$(token_of_pod kubegang-agent "$(agent_pod n1)")
loose=$(token_of_pod kubegang-agent "$(agent_pod n2)")

job() {  # NAME [SPEC [PODSPEC [CONTAINER]]]   one Job, as JSON flow
  cat <<YAML
{apiVersion: kubegang.io/v1alpha1, kind: Job, metadata: {name: $1, namespace: ${ns:-team-a}},
 spec: {${2:+$2, }template: {spec: {${3:+$3, }containers: [{name: main, image: x${4:+, $4}}]}}}}
YAML
}
no_token='automountServiceAccountToken: false'
timetable() {  # NAME TERM
  cat <<YAML
{apiVersion: kubegang.io/v1alpha1, kind: NodeTimetable, metadata: {name: $1}, spec: {term: $2, revision: 1, slice: 30s}}
YAML
}
