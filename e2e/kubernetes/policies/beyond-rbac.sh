# The programs' accounts get everything but the right to remove policies; the policies still hold. Sourced by test-policies.

ours='jobs.kubegang.io,jobs.kubegang.io/status,partitions.kubegang.io/status,qos.kubegang.io/status,accounts.kubegang.io/status,schedulerconfigs.kubegang.io/status'
ours+=',nodetimetables.kubegang.io,nodetimetables.kubegang.io/status,usagerecords.kubegang.io,jobs.batch,jobs.batch/status'
k create clusterrole too-much --verb='*' --resource="$ours,pods,services,secrets,pods/exec" >/dev/null
for account in operator agent; do
  k create clusterrolebinding too-much-$account --clusterrole=too-much --serviceaccount=kubegang-system:kubegang-$account >/dev/null
done
wait_for 10 "the wide role" with_token "$agent" get services -A

# kubegang-agent-own-node
deny "an agent writes another node's status" "of its own node, which is n1" \
  with_token "$agent" patch nodetimetable n2 --subresource=status --type=merge -p '{"status": {"observedRevision": 1}}'
deny "an agent writes its timetable" "an agent may write only the status" \
  with_token "$agent" patch nodetimetable n1 --type=merge -p '{"spec": {"revision": 9}}'
deny "an agent deletes its timetable" "an agent may write only the status" with_token "$agent" delete nodetimetable n1
deny "an agent makes a timetable" "an agent may write only the status" with_token "$agent" create -f <(timetable n3 9)
deny "a token that is bound to no node" "its token is bound to no node" \
  with_token "$loose" patch nodetimetable n1 --subresource=status --type=merge -p '{"status": {"observedRevision": 1}}'

# kubegang-own-tokens: carl may impersonate kubegang's accounts (Kubernetes' role admin), as the administrator
# does here.
own="write with the tokens of their pods only"
account=system:serviceaccount:kubegang-system:kubegang
allow "carl impersonates the operator" k auth can-i impersonate serviceaccounts/kubegang-operator --as=carl -n kubegang-system
as_operator() { k --as=$account-operator "$@"; }
deny "somebody writes a job's status as the operator" "$own" as_operator patch jobs.kubegang.io one -n team-a --subresource=status --type=merge -p '{"status": {"state": "Completed"}}'
deny "somebody makes a timetable as the operator" "$own" as_operator create -f <(timetable n3 9)
deny "somebody makes a pod as the operator" "$own" as_operator create -f <(pod a "$on_n1")
deny "somebody makes a Service as the operator" "$own" as_operator create -f <(service a 'clusterIP: None')
deny "somebody taints a Node as the operator" "$own" as_operator taint node n1 kubegang.io/managed:NoSchedule
deny "somebody submits as the test" "$own" k --as=$account-test create -f <(ns=default job a '' "$no_token")
deny "somebody takes the Lease as the operator" "are for its administrators" as_operator replace -f <(k get lease kubegang-operator -n kubegang-system -o yaml)
deny "a token of the operator that no pod has" "$own" with_token "$(k create token kubegang-operator -n kubegang-system)" create -f <(pod a "$on_n1")

# kubegang-operator-only: system:masters cannot do it either
only="only the kubegang operator writes timetables, usage records and statuses"
deny "the administrator writes a timetable" "$only" k patch nodetimetable n1 --type=merge -p '{"spec": {"revision": 9}}'
deny "the administrator makes a timetable" "$only" k create -f <(timetable n4 9)
deny "the administrator writes a timetable's status" "$only" k patch nodetimetable n1 --subresource=status --type=merge -p '{"status": {"observedRevision": 1}}'
deny "the operator writes a timetable's status" "$only" with_token "$operator" patch nodetimetable n1 --subresource=status --type=merge -p '{"status": {"observedRevision": 1}}'
deny "the administrator writes a job's status" "$only" k patch jobs.kubegang.io one -n team-a --subresource=status --type=merge -p '{"status": {"state": "Completed"}}'
deny "the administrator writes a partition's status" "$only" k patch partition batch --subresource=status --type=merge -p '{"status": {"nodes": 9}}'
k create -f <(object Account physics '{}') >/dev/null
k create -f <(object QOS high '{}') >/dev/null
for kind in account/physics qos/high schedulerconfig/default; do
  deny "the administrator writes the status of $kind" "$only" k patch "${kind%/*}" "${kind#*/}" --subresource=status --type=merge -p '{"status": {"observedGeneration": 9}}'
  deny "an agent writes the status of $kind" "$only" says with_token "$agent" "${kind%/*}" "${kind#*/}" '{"status": {"observedGeneration": 9}}'
  deny "somebody writes the status of $kind as the operator" "$own" as_operator patch "${kind%/*}" "${kind#*/}" --subresource=status --type=merge -p '{"status": {"observedGeneration": 9}}'
done
k delete account/physics qos/high >/dev/null
deny "the administrator writes the record of usage" "$only" k patch usagerecord default --type=merge -p '{"spec": {"namespaces": []}}'
deny "an agent writes it" "$only" with_token "$agent" patch usagerecord default --type=merge -p '{"spec": {"namespaces": []}}'
deny "somebody writes it as the operator" "$own" as_operator patch usagerecord default --type=merge -p '{"spec": {"namespaces": []}}'
allow "the administrator deletes it" k delete usagerecord default
deny "and makes another" "$only" k create -f <(object UsageRecord default "$usage")
deny "an agent writes a job's status" "$only" with_token "$agent" patch jobs.kubegang.io one -n team-a --subresource=status --type=merge -p '{"status": {"state": "Completed"}}'
deny "a namespace's administrator writes a job's status" 'resource "jobs/status" in API group' \
  as carl patch jobs.kubegang.io one -n team-a --subresource=status --type=merge -p '{"status": {"state": "Completed"}}'
allow "the administrator labels a timetable" k label nodetimetable n1 a=b
allow "the administrator deletes a timetable" k delete nodetimetable n2

# kubegang-term
deny "a lower term in a job's status" "must not be lowered" \
  with_token "$operator" patch jobs.kubegang.io one -n team-a --subresource=status --type=merge -p '{"status": {"term": 2}}'
deny "a job's status without its term" "must not be lowered" \
  with_token "$operator" patch jobs.kubegang.io one -n team-a --subresource=status --type=merge -p '{"status": null}'
deny "a lower term in a timetable" "must not be lowered" \
  with_token "$operator" patch nodetimetable n1 --type=merge -p '{"spec": {"term": 2, "revision": 3}}'
allow "the next term" with_token "$operator" patch jobs.kubegang.io one -n team-a --subresource=status --type=merge -p '{"status": {"term": 4}}'

# kubegang-operator-pods
theirs="only pods that are controlled by a kubegang Job"
deny "a pod without an owner" "$theirs" with_token "$operator" create -f <(owners='' pod a "$on_n1")
batch_owner="{apiVersion: batch/v1, kind: Job, name: one, uid: $uid, controller: true}"
deny "a pod of a batch Job" "$theirs" with_token "$operator" create -f <(owners=$batch_owner pod a "$on_n1")
deny "a pod whose Job does not control it" "$theirs" with_token "$operator" create -f <(owners=${owner/, controller: true/} pod a "$on_n1")
deny "a pod without a node" "only pods that name their node" with_token "$operator" create -f <(pod a)
for ns in kube-system kubegang-system; do
  deny "a pod in $ns" "no pods in kube-system and in its own namespace" with_token "$operator" create -f <(ns=$ns pod a "$on_n1")
done
unset ns
beyond="need a namespace whose Pod Security level is privileged"
for spec in 'hostNetwork: true' 'hostPID: true' 'hostIPC: true' 'volumes: [{name: v, hostPath: {path: /}}]' \
  'securityContext: {seccompProfile: {type: Unconfined}}' 'securityContext: {sysctls: [{name: kernel.msgmax, value: "1"}]}' \
  'securityContext: {seLinuxOptions: {type: spc_t}}' 'securityContext: {appArmorProfile: {type: Unconfined}}' \
  'initContainers: [{name: i, image: x, securityContext: {privileged: true}}]' \
  'initContainers: [{name: i, image: x, restartPolicy: Always, lifecycle: {preStop: {httpGet: {host: h, port: 1}}}}]'; do
  deny "a pod with $spec" "$beyond" with_token "$operator" create -f <(pod a "$on_n1, $spec")
done
for container in 'securityContext: {privileged: true}' 'securityContext: {capabilities: {add: [SYS_ADMIN]}}' \
  'ports: [{containerPort: 1, hostPort: 1}]' 'readinessProbe: {tcpSocket: {host: h, port: 1}}' \
  'livenessProbe: {httpGet: {host: h, port: 1}}' 'lifecycle: {postStart: {httpGet: {host: h, port: 1}}}'; do
  deny "a container with $container" "$beyond" with_token "$operator" create -f <(pod a "$on_n1" "$container")
done
deny "a container that sees all of /proc" "$beyond" with_token "$operator" create -f <(pod a "$on_n1, hostUsers: false" 'securityContext: {procMount: Unmasked}')
allow "an ordinary probe" with_token "$operator" create --dry-run=server -f <(pod a "$on_n1" 'readinessProbe: {httpGet: {port: 1}}, lifecycle: {preStop: {httpGet: {port: 1}}}')
deny "a pod that kubelet evicts others for" "no pods of the system's priority classes" with_token "$operator" create -f <(ns=host pod a "$on_n1, priorityClassName: system-node-critical")
allow "an ordinary security context" with_token "$operator" create --dry-run=server -f <(pod a "$on_n1, securityContext: {runAsUser: 1, seccompProfile: {type: RuntimeDefault}}" \
  'securityContext: {capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}}')
allow "host access in a privileged namespace" with_token "$operator" create --dry-run=server -f <(ns=host pod a "$on_n1, hostNetwork: true" 'securityContext: {privileged: true}')
k create -f - >/dev/null <<YAML
{apiVersion: v1, kind: Pod, metadata: {name: others, namespace: team-a}, spec: {containers: [{name: main, image: x}]}}
YAML
allow "the operator makes another pod" with_token "$operator" create -f <(pod one-1 "$on_n1")
deny "the operator moves it to other CPUs" "nothing of a pod but the condition" with_token "$operator" annotate pod one-1 -n team-a --overwrite kubegang.io/cpuset=2-3
deny "somebody moves it as the operator" "$own" as_operator annotate pod one-1 -n team-a --overwrite kubegang.io/cpuset=2-3
deny "an agent moves it" "the annotation kubegang.io/cpuset" with_token "$agent" annotate pod one-1 -n team-a --overwrite kubegang.io/cpuset=2-3
deny "the operator deletes others' pods" "$theirs" with_token "$operator" delete pod others -n team-a
# A pod that says it is of a job keeps jobs off its node, or hides its memory: whatever version and UID it names.
forger="only the kubegang operator gives a pod a kubegang Job as its controller"
lie='{apiVersion: kubegang.io/v9, kind: Job, name: x, uid: x, controller: true}'
controlled_by() {  # WHO POD REFERENCES [OPTION…]
  as "$1" patch pod "$2" -n team-a --type=merge -p "{\"metadata\": {\"ownerReferences\": $3}}" "${@:4}"
}
deny "anna makes a pod of her job" "$forger" as anna create -f <(pod a "$on_n1")
deny "anna makes a pod of a job that does not exist" "$forger" as anna create -f <(owners=$lie pod a "$on_n1, terminationGracePeriodSeconds: 315360000")
deny "the administrator makes one" "$forger" k create -f <(owners=$lie pod a "$on_n1")
deny "an agent makes one" "$forger" with_token "$agent" create -f <(owners=$lie pod a "$on_n1")
as_json() { echo "[{\"apiVersion\": \"$1\", \"kind\": \"Job\", \"name\": \"one\", \"uid\": \"$uid\"${2:-}}]"; }  # VERSION [MORE]
controller=', "controller": true'
deny "anna gives a pod of hers to her job" "$forger" controlled_by anna others "$(as_json kubegang.io/v1alpha1 "$controller")"
deny "she gives it to her job of another version" "$forger" controlled_by anna others "$(as_json kubegang.io/v9 "$controller")"
allow "a pod goes with a job that does not control it" controlled_by anna others "$(as_json kubegang.io/v1alpha1)"
deny "which controls it from then on" "$forger" controlled_by anna others "$(as_json kubegang.io/v1alpha1 "$controller")"
allow "a Job of the batch group may control it" controlled_by anna others "$(as_json batch/v1 "$controller")" --dry-run=server
allow "anna labels a pod of her job" as anna label pod one-1 -n team-a note=x
allow "a reference changes otherwise, as the garbage collector does" controlled_by anna one-1 "$(as_json kubegang.io/v1alpha1 "$controller, \"blockOwnerDeletion\": false")"
deny "and does not go, which would take the pod out of its turns" "a job's pod keeps its Job as its controller" controlled_by anna one-1 null

# kubegang-operator-services and -jobs
deny "a Service with an address" "only headless Services" with_token "$operator" create -f <(service a 'type: ClusterIP')
deny "a Service on the nodes" "only headless Services" with_token "$operator" create -f <(service a 'type: NodePort')
deny "a Service of nobody" "only Services that are controlled" with_token "$operator" create -f <(owners='' service a 'clusterIP: None')
deny "a Service in kube-system" "no Services in kube-system" with_token "$operator" create -f <(ns=kube-system service a 'clusterIP: None')
k create service clusterip theirs --tcp=80 -n team-a >/dev/null
deny "the operator deletes a Service of others" "only Services that are controlled" with_token "$operator" delete service theirs -n team-a

# kubegang-operator-secrets
step_secret() {  # NAME FIELDS
  echo "{apiVersion: v1, kind: Secret, metadata: {name: $1, namespace: ${ns:-team-a}, ownerReferences: [${owners-$owner}]}, $2}"
}
good='type: Opaque, immutable: true, data: {key: AAAA}'
allow "the key of a start" with_token "$operator" create -f <(step_secret "one-bcdfg-steps" "$good")
allow "that of a task of an array" with_token "$operator" create -f <(step_secret "one-17-bcdfg-steps" "$good")
deny "a Secret of another name" "have its name, five characters" with_token "$operator" create -f <(step_secret another-bcdfg-steps "$good")
deny "a Secret of nobody" "have its name, five characters" with_token "$operator" create -f <(owners='' step_secret "one-bcdfh-steps" "$good")
deny "a Secret of another type" "immutable Secrets of type Opaque" \
  with_token "$operator" create -f <(step_secret "one-bcdfh-steps" 'type: example.org/other, immutable: true, data: {key: AAAA}')
deny "a Secret that can change" "immutable Secrets of type Opaque" with_token "$operator" create -f <(step_secret "one-bcdfh-steps" 'type: Opaque, data: {key: AAAA}')
deny "a Secret with more" "immutable Secrets of type Opaque" with_token "$operator" create -f <(step_secret "one-bcdfh-steps" 'type: Opaque, immutable: true, data: {key: AAAA, b: AAAA}')
deny "a Secret in kube-system" "no Secrets in kube-system" with_token "$operator" create -f <(ns=kube-system step_secret "one-bcdfh-steps" "$good")
allow "the key of an earlier start goes" with_token "$operator" delete secret one-bcdfg-steps -n team-a
k create secret generic passwords --from-literal=key=AAAA -n team-a >/dev/null
deny "the operator deletes a Secret of others" "have its name, five characters" with_token "$operator" delete secret passwords -n team-a

deny "the operator deletes a running job" "deletes only finished jobs" with_token "$operator" delete jobs.kubegang.io one -n team-a
allow "a job with ttlAfterFinished" as anna create -f <(job done 'lifecycle: {ttlAfterFinished: 1s}')
allow "it ends" with_token "$operator" patch jobs.kubegang.io done -n team-a --subresource=status --type=merge -p '{"status": {"state": "Completed", "term": 4}}'
allow "the operator deletes it" with_token "$operator" delete jobs.kubegang.io done -n team-a
