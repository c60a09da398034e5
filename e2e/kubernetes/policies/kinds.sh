# The kinds that belong to no namespace, the statuses of all, and who reads them: with the chart's own roles.
# Sourced by test-policies, before the programs' accounts get more rights than the chart gives.

object() {  # KIND NAME SPEC
  echo "{apiVersion: kubegang.io/v1alpha1, kind: $1, metadata: {name: $2}, spec: $3}"
}
usage='{takenAt: "2026-01-01T00:00:00Z", namespaces: [{account: physics, namespace: team-a, billed: 1, runTimeMillis: 1}]}'
says() { "$1" "$2" patch "$3" "$4" --subresource=status --type=merge -p "$5"; }  # WHO TOKEN-OR-USER KIND NAME BODY

# Administrators write them: priorities, backfill, limits, groups.
allow "dora makes an Account" as dora create -f <(object Account physics '{shares: 10, limits: {perNamespace: {jobs: 5}}, namespaces: [{name: team-a}]}')
allow "dora makes a QOS with limits" as dora create -f <(object QOS high '{priority: 10, limits: {group: {jobs: 10}}}')
settings() { as "$1" patch schedulerconfig default --dry-run=server --type=merge -p "{\"spec\": {$2}}"; }
priority='"priority": {"type": "Multifactor", "weights": {"fairShare": 1000}}'
backfill='"schedulerType": "Backfill", "backfill": {"maxJobTest": 100}'
for spec in "$priority" "$backfill"; do
  allow "dora sets $spec" settings dora "$spec"
  for user in anna carl; do deny "$user sets $spec" 'cannot patch resource "schedulerconfigs"' settings $user "$spec"; done
done
for user in anna carl zed; do
  deny "$user makes an Account" 'cannot create resource "accounts"' as $user create -f <(object Account mine '{namespaces: [{name: team-a}]}')
  deny "$user raises an Account's shares" 'cannot patch resource "accounts"' as $user patch account physics --type=merge -p '{"spec": {"shares": 1000}}'
  deny "$user raises a QOS's limits" 'cannot patch resource "qos"' as $user patch qos high --type=merge -p '{"spec": {"limits": null}}'
  deny "$user makes a Partition" 'cannot create resource "partitions"' as $user create -f <(object Partition mine '{nodes: {hostlist: n1}}')
  deny "$user opens a Partition" 'cannot patch resource "partitions"' as $user patch partition batch --type=merge -p '{"spec": {"allow": null}}'
  deny "$user deletes an Account" 'cannot delete resource "accounts"' as $user delete account physics
done
allow "anna names an Account" as anna create --dry-run=server -f <(job a 'schedule: {account: physics}')
deny "anna charges a running job to another" "spec.schedule.account" \
  as anna patch jobs.kubegang.io one -n team-a --type=merge -p '{"spec": {"schedule": {"account": "physics"}}}'

# What the operator does.
k create -f <(batch_job adopted 'kubegang.io/partition: batch') >/dev/null
allow "the operator records usage" with_token "$operator" create -f <(object UsageRecord default "$usage")
allow "the operator records more" with_token "$operator" patch usagerecord default --type=merge -p '{"spec": {"takenAt": "2026-01-01T00:01:00Z"}}'
for kind in account/physics qos/high partition/batch schedulerconfig/default; do
  allow "the operator says what is in force of $kind" says with_token "$operator" "${kind%/*}" "${kind#*/}" '{"status": {"observedGeneration": 1}}'
done
allow "the operator takes a timetable back" with_token "$operator" delete nodetimetable n2
allow "the operator makes it again" with_token "$operator" create -f <(timetable n2 3)
deny "the operator deletes the record" 'cannot delete resource "usagerecords"' with_token "$operator" delete usagerecord default
for kind in account/physics qos/high partition/batch schedulerconfig/default; do
  deny "the operator changes $kind" "cannot patch resource" with_token "$operator" patch "${kind%/*}" "${kind#*/}" --type=merge -p '{"spec": {}}'
  deny "the operator deletes $kind" "cannot delete resource" with_token "$operator" delete "${kind%/*}" "${kind#*/}"
done
deny "the operator makes an Account" 'cannot create resource "accounts"' with_token "$operator" create -f <(object Account mine '{}')
deny "the operator writes a batch Job" 'cannot patch resource "jobs"' with_token "$operator" patch jobs.batch adopted -n team-a --type=merge -p '{"spec": {"suspend": true}}'
deny "the operator deletes one" 'cannot delete resource "jobs"' with_token "$operator" delete jobs.batch adopted -n team-a
deny "the operator reads CronJobs" 'cannot list resource "cronjobs"' with_token "$operator" get cronjobs -n team-a

# No other user writes statuses, and the record and the timetables are the operator's alone.
for kind in account/physics qos/high partition/batch schedulerconfig/default nodetimetable/n1; do
  resource=${kind%/*}s
  [[ $resource != qoss ]] || resource=qos
  for user in anna carl dora zed; do
    deny "$user writes the status of $kind" "resource \"$resource/status\"" says as $user "${kind%/*}" "${kind#*/}" '{"status": {"observedGeneration": 1}}'
  done
  [[ $resource == nodetimetables ]] ||
    deny "an agent writes the status of $kind" "cannot patch resource \"$resource/status\"" says with_token "$agent" "${kind%/*}" "${kind#*/}" '{"status": {"observedGeneration": 1}}'
done
for user in anna carl dora zed; do
  deny "$user writes a job's status" 'resource "jobs/status"' as $user patch jobs.kubegang.io one -n team-a --subresource=status --type=merge -p '{"status": {"state": "Completed"}}'
  deny "$user writes the record" 'cannot patch resource "usagerecords"' as $user patch usagerecord default --type=merge -p '{"spec": {"namespaces": []}}'
  deny "$user writes a timetable" 'cannot patch resource "nodetimetables"' as $user patch nodetimetable n1 --type=merge -p '{"spec": {"revision": 9}}'
  deny "$user deletes a timetable" 'cannot delete resource "nodetimetables"' as $user delete nodetimetable n1
done
for user in anna zed; do
  deny "$user writes a batch Job's status" 'resource "jobs/status"' as $user patch jobs.batch adopted -n team-a --subresource=status --type=merge -p '{"status": {"active": 5}}'
done
deny "an agent writes a batch Job's status" 'resource "jobs/status" in API group "batch"' \
  with_token "$agent" patch jobs.batch adopted -n team-a --subresource=status --type=merge -p '{"status": {"active": 5}}'
deny "an agent writes the record" 'cannot patch resource "usagerecords"' with_token "$agent" patch usagerecord default --type=merge -p '{"spec": {"namespaces": []}}'
deny "ben, who may submit jobs only, makes a batch Job" 'cannot create resource "jobs" in API group "batch"' as ben create -f <(batch_job bens)
deny "anna has the batch group's controller run it" "field is immutable" as anna patch jobs.batch adopted -n team-a --type=merge -p '{"spec": {"managedBy": "kubernetes.io/job-controller"}}'
deny "anna spreads it over more nodes" "cannot change; create another Job" as anna annotate jobs.batch adopted -n team-a kubegang.io/nodes=2

# Who reads what.
for kind in partitions qos accounts schedulerconfigs usagerecords nodetimetables; do
  allow "everybody sees $kind" as zed get $kind.kubegang.io
done
deny "zed sees the jobs of a namespace that he has no part in" 'cannot list resource "jobs"' as zed get jobs.kubegang.io -n team-a
deny "anna sees all namespaces' jobs" 'cannot list resource "jobs"' as anna get jobs.kubegang.io -A
deny "an agent reads jobs" 'cannot list resource "jobs"' with_token "$agent" get jobs.kubegang.io -A
k delete account/physics qos/high >/dev/null
k delete jobs.batch adopted -n team-a >/dev/null
