# Jobs of the batch group that kubegang runs: who may write them, and what the operator may do with them. Sourced
# by test-policies, before the programs' accounts get more rights than the chart gives.

batch_job() {  # NAME [ANNOTATIONS [SPEC]]   in team-a
  cat <<YAML
{apiVersion: batch/v1, kind: Job, metadata: {name: $1, namespace: team-a, annotations: {${2:-}}},
 spec: {managedBy: ${managed_by:-kubegang.io/job}, ${3:+$3, }template: {spec: {restartPolicy: Never, containers: [{name: main, image: x}]}}}}
YAML
}
cron_job() {  # NAME [ANNOTATIONS]
  cat <<YAML
{apiVersion: batch/v1, kind: CronJob, metadata: {name: $1, namespace: team-a},
 spec: {schedule: "* * * * *", jobTemplate: {metadata: {annotations: {${2:-}}},
  spec: {managedBy: ${managed_by:-kubegang.io/job}, template: {spec: {restartPolicy: Never, containers: [{name: main, image: x}]}}}}}}
YAML
}
try_as() { as "$1" create --dry-run=server -f -; }

# What the operator does, with the chart's own roles.
allow "anna makes a batch Job" as anna create -f <(batch_job adopted 'kubegang.io/partition: batch')
adopted_uid=$(k get jobs.batch adopted -n team-a -o jsonpath='{.metadata.uid}')
adopted_owner="{apiVersion: batch/v1, kind: Job, name: adopted, uid: $adopted_uid, controller: true, blockOwnerDeletion: true}"
owned_job() { job "$1" "${2:-}" | sed "s#metadata: {name: $1,#metadata: {name: $1, ownerReferences: [$adopted_owner],#"; }
allow "the operator sees it" with_token "$operator" get jobs.batch adopted -n team-a
allow "the operator makes a job for it" with_token "$operator" create -f <(owned_job adopted 'partitions: [batch]')
k create clusterrole reads-batch-status --verb=get --resource=jobs.batch/status >/dev/null
k create clusterrolebinding reads-batch-status --clusterrole=reads-batch-status --serviceaccount=kubegang-system:kubegang-operator >/dev/null
wait_for 10 "kubectl's read" with_token "$operator" get jobs.batch adopted -n team-a --subresource=status
tell() { with_token "$operator" patch jobs.batch "$1" -n team-a --subresource=status --type=merge -p "$2"; }
allow "the operator says that its pods run" tell adopted '{"status": {"active": 1, "startTime": "2026-01-01T00:00:00Z"}}'
only_status="only the status of Jobs with managedBy: kubegang.io/job"
deny "the operator labels it" "$only_status" tell adopted '{"metadata": {"labels": {"a": "b"}}}'
allow "anna makes another batch Job" as anna create -f <(managed_by=kubernetes.io/job-controller batch_job theirs)
deny "the operator writes the status of another's" "$only_status" tell theirs '{"status": {"active": 5}}'
deny "the operator makes a job of nobody" "controlled by a Job of the batch group" with_token "$operator" create -f <(job mine)
deny "the operator changes a job" "cannot patch resource" with_token "$operator" patch jobs.kubegang.io adopted -n team-a --type=merge -p '{"spec": {"control": {"cancel": true}}}'
deny "the operator makes batch Jobs" "cannot create resource" with_token "$operator" create -f <(batch_job made)
deny "somebody says that it has ended" "write with the tokens of their pods only" \
  k --as=system:serviceaccount:kubegang-system:kubegang-operator patch jobs.batch adopted -n team-a --subresource=status --type=merge -p '{"status": {"active": 0}}'
allow "the operator deletes the job that it has made" with_token "$operator" delete jobs.kubegang.io adopted -n team-a

# No other user makes a job of a batch Job, which would decide how that one ends.
forged="only the kubegang operator makes jobs for a Job of the batch group"
deny "anna makes a job of a batch Job" "$forged" as anna create -f <(owned_job forged)
allow "anna makes one of her own" as anna create -f <(job own)
deny "and gives it to a batch Job" "$forged" as anna patch jobs.kubegang.io own -n team-a --type=merge -p "{\"metadata\": {\"ownerReferences\": [{\"apiVersion\": \"batch/v1\", \"kind\": \"Job\", \"name\": \"adopted\", \"uid\": \"$adopted_uid\", \"controller\": true}]}}"

# The annotations are read once.
once="cannot change; create another Job"
annotate() { as anna annotate jobs.batch adopted -n team-a --overwrite "$@"; }
deny "anna moves it to another partition" "$once" annotate kubegang.io/partition=other
deny "anna gives it a QOS" "$once" annotate kubegang.io/qos=high
allow "anna says something else of it" annotate note=x

# use, as for kubegang Jobs: bound to all users at first
allow "anna names no partition" try_as anna < <(batch_job a)
k delete clusterrolebinding kubegang-use-all-partitions >/dev/null
nobody_uses() { ! k auth can-i use partitions.kubegang.io --as=anna --as-group=system:authenticated; }
wait_for 10 "the binding to be gone" nobody_uses
names=batch role_of use-batch use partitions
k create clusterrolebinding use-batch --clusterrole=use-batch --user=anna >/dev/null
wait_for 10 "anna's partition" k auth can-i use partitions.kubegang.io/batch --as=anna
lacks="you lack the verb use on one of the partitions"
for kind in batch_job cron_job; do
  allow "anna names her partition ($kind)" try_as anna < <($kind a 'kubegang.io/partition: batch')
  deny "anna names none ($kind)" "name the partition in the annotation" try_as anna < <($kind a)
  deny "anna names another beside it ($kind)" "$lacks batch, other" try_as anna < <($kind a 'kubegang.io/partition: "batch,other"')
  deny "the fourth is not hers ($kind)" "$lacks" try_as anna < <($kind a 'kubegang.io/partition: "batch,batch,batch,other"')
  deny "anna names five ($kind)" "more than 4 names" try_as anna < <($kind a 'kubegang.io/partition: "batch,batch,batch,batch,batch"')
  deny "anna names a QOS ($kind)" "you lack the verb use on the qos high" try_as anna < <($kind a 'kubegang.io/partition: batch, kubegang.io/qos: high')
  allow "of another controller nothing is asked ($kind)" try_as anna < <(managed_by=kubernetes.io/job-controller $kind a 'kubegang.io/partition: other')
done
allow "anna makes a CronJob" as anna create -f <(managed_by=kubernetes.io/job-controller cron_job nightly 'kubegang.io/partition: other')
deny "she makes it ours later" "$lacks" as anna patch cronjob nightly -n team-a --type=merge -p '{"spec": {"jobTemplate": {"spec": {"managedBy": "kubegang.io/job"}}}}'
k delete clusterrolebinding use-batch >/dev/null
k delete cronjob nightly -n team-a >/dev/null
k delete jobs.batch adopted theirs -n team-a >/dev/null
k delete jobs.kubegang.io own -n team-a >/dev/null
k create clusterrolebinding kubegang-use-all-partitions --clusterrole=kubegang-use-all-partitions --group=system:authenticated >/dev/null
wait_for 10 "the binding" k auth can-i use partitions.kubegang.io --as=anna --as-group=system:authenticated
