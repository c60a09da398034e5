# Pods that others create behind our scheduling gate (adoption.pods): who may write them, and what the operator may do with
# them. Sourced by test-policies, before the programs' accounts get more rights than the chart gives.

gated_pod() {  # NAME [ANNOTATIONS [LABELS]]   in team-a
  cat <<YAML
{apiVersion: v1, kind: Pod, metadata: {name: $1, namespace: team-a, labels: {${3:-kubegang.io/job-name: train}}, annotations: {${2:-}}},
 spec: {restartPolicy: Never, schedulingGates: [{name: kubegang.io/gang}], containers: [{name: main, image: x}]}}
YAML
}
patch_pod() { with_token "$operator" patch pod "$1" -n team-a --type=merge -p "$2"; }

# Without the switch too: agents and operator heed the label in any case.
allow "anna makes a gated pod" as anna create -f <(gated_pod gated 'kubegang.io/partition: batch')
labels_it="only the kubegang operator sets the label kubegang.io/job-uid"
deny "anna names the Job of a pod" "$labels_it" as anna create -f <(gated_pod forged '' 'kubegang.io/job-uid: x')
deny "anna labels a pod so" "$labels_it" as anna label pod gated -n team-a kubegang.io/job-uid=x
deny "the operator pins a pod" "cannot patch resource" patch_pod gated '{"spec": {"schedulingGates": null}}'

install --set adoption.pods=true
operator_of_now
are_in_force() { ! as anna label pod gated -n team-a --overwrite --dry-run=server kubegang.io/job-name=other; }
wait_for 30 "the policies" are_in_force

# What an author may write: use, as for a batch Job.
once="cannot change; create another pod"
deny "anna moves it to another partition" "$once" as anna annotate pod gated -n team-a --overwrite kubegang.io/partition=other
deny "anna changes the size of its gang" "$once" as anna annotate pod gated -n team-a kubegang.io/pods=7
deny "anna gives it to another gang" "$once" as anna label pod gated -n team-a --overwrite kubegang.io/job-name=other
allow "anna says something else of it" as anna annotate pod gated -n team-a note=x
only_anna_uses() { k delete clusterrolebinding kubegang-use-all-partitions >/dev/null && wait_for 10 "the binding to be gone" nobody_uses; }
only_anna_uses
names=batch role_of use-batch-only use partitions
k create clusterrolebinding use-batch-only --clusterrole=use-batch-only --user=anna >/dev/null
wait_for 10 "anna's partition" k auth can-i use partitions.kubegang.io/batch --as=anna
allow "anna names her partition" try_as anna < <(gated_pod a 'kubegang.io/partition: batch')
deny "anna names none" "name the partition in the annotation" try_as anna < <(gated_pod a)
deny "anna names another beside it" "$lacks batch, other" try_as anna < <(gated_pod a 'kubegang.io/partition: "batch,other"')
deny "anna names a QOS" "you lack the verb use on the qos high" try_as anna < <(gated_pod a 'kubegang.io/partition: batch, kubegang.io/qos: high')
allow "of other pods nothing is asked" try_as anna < <(gated_pod a '' 'app: x')
deny "anna writes a job for pods" "only the kubegang operator writes spec.adopted" \
  try_as anna < <(job forged 'partitions: [batch], adopted: [{name: gated, uid: x}]')

# By a label of the coscheduling plugin: nothing is asked without its switch, the same with it, and of gated pods only.
grouped() { gated_pod "$1" "${2:-}" "${3:-scheduling.x-k8s.io/pod-group}: train"; }
deny "the operator reads PodGroups" "cannot list resource" with_token "$operator" get --raw /apis/scheduling.x-k8s.io/v1alpha1/podgroups
allow "of a PodGroup's pods nothing is asked" try_as anna < <(grouped a)
install --set adoption.pods=true --set adoption.podGroups=true
operator_of_now
only_anna_uses  # an upgrade makes it again
groups_are_in_force() { ! try_as anna < <(grouped a) >/dev/null 2>&1; }
wait_for 30 "the policies of PodGroups" groups_are_in_force
deny "the operator reads PodGroups that are not served" "could not find the requested resource" \
  with_token "$operator" get --raw /apis/scheduling.x-k8s.io/v1alpha1/podgroups
deny "the operator writes PodGroups" "cannot create resource" \
  with_token "$operator" create --raw /apis/scheduling.x-k8s.io/v1alpha1/namespaces/team-a/podgroups -f <(echo '{}')
for label in scheduling.x-k8s.io/pod-group pod-group.scheduling.sigs.k8s.io; do
  allow "anna names her partition beside $label" try_as anna < <(grouped a 'kubegang.io/partition: batch' $label)
  deny "anna names none beside $label" "name the partition in the annotation" try_as anna < <(grouped a '' $label)
  deny "anna names another beside $label" "you lack the verb use on one of the partitions" try_as anna < <(grouped a 'kubegang.io/partition: other' $label)
  allow "of pods without the gate nothing is asked beside $label" try_as anna < <(grouped a '' $label | sed 's/ schedulingGates:[^]]*],//')
done
allow "anna makes one" as anna create -f <(grouped grouped 'kubegang.io/partition: batch')
deny "anna gives it to another PodGroup" "$once" as anna label pod grouped -n team-a --overwrite scheduling.x-k8s.io/pod-group=other
deny "anna gives it to one by the other label" "$once" as anna label pod grouped -n team-a pod-group.scheduling.sigs.k8s.io=other
deny "anna gives it to a gang" "$once" as anna label pod grouped -n team-a kubegang.io/job-name=other
k delete pod grouped -n team-a --now >/dev/null
install --set adoption.pods=true --set adoption.podGroups=false
operator_of_now
only_anna_uses

# What the operator may.
pin() {  # NODE [MORE]
  echo "{\"metadata\": {\"annotations\": {\"kubegang.io/cpuset\": \"0-3\"}, \"labels\": {\"kubegang.io/job\": \"train\", \"kubegang.io/job-uid\": \"u\"}}, \"spec\": {\"schedulingGates\": null, ${2:-}
   \"affinity\": {\"nodeAffinity\": {\"requiredDuringSchedulingIgnoredDuringExecution\": {\"nodeSelectorTerms\": [{\"matchFields\": [{\"key\": \"metadata.name\", \"operator\": \"In\", \"values\": [\"$1\"]}]}]}}}}}"
}
pins="only pins pods that have the gate kubegang.io/gang"
k run plain -n team-a --image=x --restart=Never >/dev/null
deny "the operator ends a pod of others" "$pins" patch_pod plain '{"spec": {"activeDeadlineSeconds": 1}}'
deny "the operator labels a pod of others" "$pins" patch_pod plain '{"metadata": {"labels": {"kubegang.io/job-uid": "u"}}}'
deny "the operator ends a pod that it has not pinned" "$pins" patch_pod gated '{"spec": {"activeDeadlineSeconds": 1}}'
deny "the operator lets a pod go anywhere" "$pins" patch_pod gated '{"spec": {"schedulingGates": null}}'
deny "the operator changes an image" "changes nothing else" \
  with_token "$operator" patch pod gated -n team-a --type=strategic -p "$(pin n1 '"containers": [{"name": "main", "image": "evil"}],')"
deny "the operator labels it otherwise" "$pins" patch_pod gated "$(pin n1 | sed 's#"kubegang.io/job":#"app":#')"
deny "the operator annotates it otherwise" "$pins" patch_pod gated "$(pin n1 | sed 's#"kubegang.io/cpuset"#"app"#')"
deny "the operator removes an annotation" "$pins" patch_pod gated "$(pin n1 | sed 's#"kubegang.io/cpuset": "0-3"#"note": null#')"
allow "the operator pins it" patch_pod gated "$(pin n1)"
deny "anna gives the pod to no Job" "$labels_it" as anna label pod gated -n team-a kubegang.io/job-uid-
deny "anna gives it other CPUs" "the annotation kubegang.io/cpuset" as anna annotate pod gated -n team-a --overwrite kubegang.io/cpuset=4
deny "the operator gives it other CPUs" "$pins" patch_pod gated '{"metadata": {"annotations": {"kubegang.io/cpuset": "4"}}}'
deny "the operator ends it later" "$pins" patch_pod gated '{"spec": {"activeDeadlineSeconds": 99}}'
allow "the operator ends it" patch_pod gated '{"spec": {"activeDeadlineSeconds": 1}}'
deny "somebody ends it as the operator" "write with the tokens of their pods only" \
  k --as=system:serviceaccount:kubegang-system:kubegang-operator patch pod gated -n team-a --type=merge -p '{"spec": {"activeDeadlineSeconds": 1}}'
deny "the operator makes a job of nobody" "or stand for pods" with_token "$operator" create -f <(job mine)
allow "the operator makes one for pods" with_token "$operator" create -f <(job mine 'partitions: [batch], adopted: [{name: gated, uid: u}]')
allow "the operator deletes it" with_token "$operator" delete jobs.kubegang.io mine -n team-a

k delete clusterrolebinding use-batch-only >/dev/null
k delete pod gated plain -n team-a --now >/dev/null
k create clusterrolebinding kubegang-use-all-partitions --clusterrole=kubegang-use-all-partitions --group=system:authenticated >/dev/null
wait_for 10 "the binding" k auth can-i use partitions.kubegang.io --as=anna --as-group=system:authenticated
install --set adoption.pods=false  # without --set Helm keeps what was set before
operator_of_now
