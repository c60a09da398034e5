# With the chart's own roles: what the programs do is allowed. Sourced by test-policies.

allow "the operator makes timetables" with_token "$operator" create -f <(timetable n1 2)
allow "the operator makes timetables" with_token "$operator" create -f <(timetable n2 2)
allow "the operator changes them" with_token "$operator" patch nodetimetable n1 --type=merge -p '{"spec": {"term": 3, "revision": 2}}'
allow "an agent writes its node's status" with_token "$agent" patch nodetimetable n1 --subresource=status --type=merge -p '{"status": {"observedRevision": 2}}'
allow "anna submits a job" as anna create -f <(job one 'schedule: {timeLimit: 1h}, partitions: [batch]')
allow "the operator starts it" with_token "$operator" patch jobs.kubegang.io one -n team-a --subresource=status --type=merge \
  -p '{"status": {"state": "Running", "term": 3}}'
uid=$(k get jobs.kubegang.io one -n team-a -o jsonpath='{.metadata.uid}')
owner="{apiVersion: kubegang.io/v1alpha1, kind: Job, name: one, uid: $uid, controller: true}"
pod() {  # NAME [SPEC [CONTAINER]]   a pod of job one, in $ns
  cat <<YAML
{apiVersion: v1, kind: Pod, metadata: {name: $1, namespace: ${ns:-team-a}, ownerReferences: [${owners-$owner}],
 labels: {kubegang.io/job: one}, annotations: {kubegang.io/cpuset: 0-1}},
 spec: {${2+$2${2:+, }}containers: [{name: main, image: x${3:+, $3}}]}}
YAML
}
service() {  # NAME SPEC
  cat <<YAML
{apiVersion: v1, kind: Service, metadata: {name: $1, namespace: ${ns:-team-a}, ownerReferences: [${owners-$owner}]}, spec: {$2, selector: {a: b}, ports: [{port: 1}]}}
YAML
}
on_n1='nodeName: n1'
allow "the operator makes its pod" with_token "$operator" create -f <(pod one-0 "$on_n1")
# kubectl reads a subresource before it patches it; the operator does not, and has no right to.
k create clusterrole reads-pod-status --verb=get --resource=pods/status >/dev/null
k create clusterrolebinding reads-pod-status --clusterrole=reads-pod-status \
  --serviceaccount=kubegang-system:kubegang-operator >/dev/null
stands_still() { # STATUS
  with_token "$operator" patch pod one-0 -n team-a --subresource=status --type=merge -p "{\"status\": $1}"
}
note_only="nothing of a pod but the condition kubegang.io/Suspended"
allow "the operator says that a pod stands still" stands_still '{"conditions": [{"type": "kubegang.io/Suspended", "status": "True", "reason": "User"}]}'
deny "the operator says that a pod is ready" "$note_only" stands_still '{"conditions": [{"type": "Ready", "status": "True"}]}'
deny "the operator gives a pod an address" "$note_only" stands_still '{"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}'
# kubegang-cpu-sets
fixed="the annotation kubegang.io/cpuset and the label kubegang.io/job of a job's pod do not change"
deny "carl moves a job's pod to other CPUs" "$fixed" as carl annotate pod one-0 -n team-a --overwrite kubegang.io/cpuset=2-3
deny "carl takes its CPU set off" "$fixed" as carl annotate pod one-0 -n team-a kubegang.io/cpuset-
deny "anna replaces all of its annotations" "$fixed" as anna patch pod one-0 -n team-a --type=json -p '[{"op": "replace", "path": "/metadata/annotations", "value": {"a": "b"}}]'
deny "carl takes the label off first" "$fixed" as carl label pod one-0 -n team-a kubegang.io/job-
deny "carl gives the pod to another job" "$fixed" as carl label pod one-0 -n team-a --overwrite kubegang.io/job=two
deny "the administrator moves it" "$fixed" k annotate pod one-0 -n team-a --overwrite kubegang.io/cpuset=2-3
deny "anna gives the pod a deadline" "activeDeadlineSeconds of a job's pod does not change" as anna patch pod one-0 -n team-a --type=merge -p '{"spec": {"activeDeadlineSeconds": 99999999}}'
deny "anna takes the pod from its job" "a job's pod keeps its Job as its controller" as anna patch pod one-0 -n team-a --type=json -p '[{"op": "remove", "path": "/metadata/ownerReferences"}]'
k create -f <(owners='' pod one-r "$on_n1" 'resources: {requests: {cpu: 1m, memory: 64Mi}, limits: {cpu: 1, memory: 64Mi}}') >/dev/null
deny "the administrator gives the pod more CPUs" "the resources of a job's pod do not change" k patch pod one-r -n team-a --subresource=resize --type=strategic -p '{"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "64"}}}]}}'
k delete pod one-r -n team-a --wait=false >/dev/null
allow "carl says something else of it" as carl annotate pod one-0 -n team-a note=x
allow "carl labels it otherwise" as carl label pod one-0 -n team-a note=x
deny "the operator moves it" 'cannot patch resource "pods"' with_token "$operator" annotate pod one-0 -n team-a --overwrite kubegang.io/cpuset=2-3
allow "the operator makes its Service" with_token "$operator" create -f <(service one 'clusterIP: None')
allow "the operator deletes its pod" with_token "$operator" delete pod one-0 -n team-a --wait=false
allow "the operator takes the Lease" with_token "$operator" create -n kubegang-system -f - <<YAML
{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: kubegang-operator}, spec: {holderIdentity: a}}
YAML
allow "the operator renews the Lease" with_token "$operator" get lease kubegang-operator -n kubegang-system
allow "the agent reads the Lease" with_token "$agent" get lease kubegang-operator -n kubegang-system
allow "the operator writes events" with_token "$operator" create -n team-a -f - <<YAML
{apiVersion: v1, kind: Event, metadata: {name: e}, involvedObject: {kind: Job, namespace: team-a, name: one}, reason: Started, message: m, type: Normal}
YAML
deny "the operator reads Secrets" "cannot list resource \"secrets\"" with_token "$operator" get secrets -n team-a
deny "the agent makes pods" "cannot create resource \"pods\"" with_token "$agent" create -f <(pod one-1 "$on_n1")
deny "the agent changes one" 'cannot patch resource "pods"' with_token "$agent" label pod one-0 -n team-a a=b
deny "the agent deletes one" 'cannot delete resource "pods"' with_token "$agent" delete pod one-0 -n team-a
deny "the agent changes a Node" 'cannot patch resource "nodes"' with_token "$agent" label node n1 a=b
for kind in secrets configmaps; do
  deny "the agent reads $kind" "cannot list resource \"$kind\"" with_token "$agent" get $kind -n team-a
done
for who in agent operator; do
  deny "the $who enters a pod" 'resource "pods/exec"' with_token "${!who}" exec one-0 -n team-a -- true
  deny "the $who asks a kubelet" 'resource "nodes/proxy"' with_token "${!who}" get --raw /api/v1/nodes/n1/proxy/pods
  deny "the $who evicts a pod" 'resource "pods/eviction"' with_token "${!who}" create --raw /api/v1/namespaces/team-a/pods/one-0/eviction -f \
    <(echo '{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "one-0", "namespace": "team-a"}}')
done
deny "the operator changes what a job asks for" 'cannot patch resource "jobs"' \
  with_token "$operator" patch jobs.kubegang.io one -n team-a --type=merge -p '{"spec": {"control": {"hold": true}}}'
deny "carl deletes a job of another namespace" 'cannot delete resource "jobs"' as carl delete jobs.kubegang.io one -n host

allow "the operator taints a Node" with_token "$operator" taint node n1 kubegang.io/managed:NoSchedule
allow "and takes the taint off" with_token "$operator" taint node n1 kubegang.io/managed:NoSchedule-
taint_only="nothing of a Node but the taint kubegang.io/managed"
deny "the operator sets another taint" "$taint_only" with_token "$operator" taint node n1 a=b:NoSchedule
deny "the operator's taint evicts" "$taint_only" with_token "$operator" taint node n1 kubegang.io/managed:NoExecute
deny "the operator labels a Node" "$taint_only" with_token "$operator" label node n1 a=b
deny "the operator annotates a Node" "$taint_only" with_token "$operator" annotate node n1 kubegang.io/freeze=disabled
deny "the operator cordons a Node" "$taint_only" with_token "$operator" patch node n1 --type=merge -p '{"spec": {"unschedulable": true}}'
