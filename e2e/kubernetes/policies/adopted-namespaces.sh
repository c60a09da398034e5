# Namespaces whose Jobs kubegang runs (adoption.namespaces): what the label does, and that it gives no user a partition.
# Sourced by test-policies.

plain_job() { managed_by=none batch_job "$@" | sed 's/managedBy: none, //'; }
plain_cron_job() { managed_by=none cron_job "$@" | sed 's/managedBy: none, //'; }
plain_job_of_a_cronjob() {
  plain_job "$@" | sed "s#namespace: team-a,#&ownerReferences: [{apiVersion: batch/v1, kind: CronJob, name: nightly, uid: u, controller: true}],#"
}
# becomes WANT COMMAND…   the object that the command prints would be stored with that managedBy and partition
becomes() {
  local want=$1 got says='{.spec.managedBy} {.metadata.annotations.kubegang\.io/partition}'
  shift
  [[ $1 != *_cron_job ]] || says='{.spec.jobTemplate.spec.managedBy} {.spec.jobTemplate.metadata.annotations.kubegang\.io/partition}'
  got=$("$@" | as "${by:-anna}" create --dry-run=server -f - -o jsonpath="$says") || return 1
  [[ $got == "$want" ]] || { echo "got: $got"; return 1; }
}

deny "anna adopts her namespace" 'cannot patch resource "namespaces"' as anna label namespace team-a kubegang.io/adopt=jobs
k create -f <(plain_cron_job old 'kubegang.io/partition: other') >/dev/null
k label namespace team-a kubegang.io/adopt=jobs >/dev/null
allow "without adoption.namespaces the label does nothing" becomes ' ' plain_job a
install --set adoption.namespaces=true
wait_for 30 "the policy of Jobs" becomes 'kubegang.io/job ' plain_job a
wait_for 30 "the policy of CronJobs" becomes 'kubegang.io/job ' plain_cron_job a
for kind in plain_job plain_cron_job; do
  allow "a partition of its own stays ($kind)" becomes 'kubegang.io/job other' $kind a 'kubegang.io/partition: other'
done
with_controller() { managed_by=kubernetes.io/job-controller batch_job "$@"; }
allow "a Job that names another controller stays as it is" becomes 'kubernetes.io/job-controller ' with_controller a
in_host() { plain_job "$@" | sed 's/namespace: team-a/namespace: host/'; }
by=dora  # she may not create Jobs in host
k create rolebinding dora --clusterrole=edit --user=dora -n host >/dev/null
allow "so do those of other namespaces" becomes ' ' in_host a
by=
k annotate namespace team-a kubegang.io/partition=batch >/dev/null
wait_for 30 "the namespace's partition" becomes 'kubegang.io/job batch' plain_job a
allow "CronJobs get it too" becomes 'kubegang.io/job batch' plain_cron_job a

# use: the author's, as usual. Jobs of a CronJob are not checked, so they become kubegang's by its template only.
k delete clusterrolebinding kubegang-use-all-partitions >/dev/null
wait_for 10 "the binding to be gone" nobody_uses
for kind in plain_job plain_cron_job; do
  deny "anna may not use the namespace's partition ($kind)" "$lacks batch" becomes '' $kind a
done
k create clusterrolebinding use-batch --clusterrole=use-batch --user=anna >/dev/null
wait_for 10 "anna's partition" k auth can-i use partitions.kubegang.io/batch --as=anna
for kind in plain_job plain_cron_job; do
  allow "anna may use it ($kind)" becomes 'kubegang.io/job batch' $kind a
  deny "anna names another ($kind)" "$lacks other" becomes '' $kind a 'kubegang.io/partition: other'
done
by=system:serviceaccount:kube-system:cronjob-controller
allow "the Job of a CronJob stays as its template says" becomes ' other' plain_job_of_a_cronjob a 'kubegang.io/partition: other'
by=
template_of_old() { [[ $(k get cronjob old -n team-a -o jsonpath='{.spec.jobTemplate.spec.managedBy}') == "$1" ]]; }
allow "anna annotates a CronJob of before" as anna annotate cronjob old -n team-a note=x
allow "it stays as it is" template_of_old ''
deny "she changes its schedule: its partition is not hers" "$lacks other" \
  as anna patch cronjob old -n team-a --type=merge -p '{"spec": {"schedule": "0 * * * *"}}'
allow "she moves it to hers" as anna patch cronjob old -n team-a --type=merge -p '{"spec": {"jobTemplate": {"metadata": {"annotations": {"kubegang.io/partition": "batch"}}}}}'
allow "so it is ours" template_of_old kubegang.io/job

k delete clusterrolebinding use-batch >/dev/null
k delete rolebinding dora -n host >/dev/null
k delete cronjob old -n team-a >/dev/null
k label namespace team-a kubegang.io/adopt- >/dev/null
k annotate namespace team-a kubegang.io/partition- >/dev/null
k create clusterrolebinding kubegang-use-all-partitions --clusterrole=kubegang-use-all-partitions --group=system:authenticated >/dev/null
wait_for 10 "the binding" k auth can-i use partitions.kubegang.io --as=anna --as-group=system:authenticated
install --set adoption.namespaces=false
