# Upgrade, other values, uninstall. Sourced by test-policies.

k patch schedulerconfig default --type=merge -p '{"spec": {"timeSlice": "7s"}}' >/dev/null
install --set admissionPolicies.jobNamespaceLabels.tier=batch --set operator.replicas=2 --set networkPolicy.enabled=true
[[ $(k get schedulerconfig default -o jsonpath='{.spec.timeSlice}') == 7s ]] || fail "the upgrade changed the SchedulerConfig"
submit_denied() { ! submit anna < <(job a); }
wait_for 20 "the changed policies" submit_denied
operator_of_now
deny "a job outside the namespaces for jobs" "not one for jobs" submit anna < <(job a)
deny "a pod outside the namespaces for jobs" "only in namespaces for jobs" with_token "$operator" create --dry-run=server -f <(pod a "$on_n1")
k label namespace team-a tier=batch >/dev/null
wait_for 10 "the label" submit anna < <(job a)
allow "a pod inside" with_token "$operator" create --dry-run=server -f <(pod a "$on_n1")

# Who may look.
install --set rbac.lookersReadTimetables=false
tables_are_hidden() { ! as zed get nodetimetables >/dev/null 2>&1; }
wait_for 10 "the changed role" tables_are_hidden
deny "zed sees no timetables" 'cannot list resource "nodetimetables"' as zed get nodetimetables
deny "nor does anna" 'cannot list resource "nodetimetables"' as anna get nodetimetables
allow "an administrator does" as dora get nodetimetables
allow "the agent does" with_token "$agent" get nodetimetables
for kind in nodetimetables partitions; do
  allow "helm test lists $kind" k auth can-i list $kind.kubegang.io --as=$account-test
done
for kind in partitions qos accounts schedulerconfigs usagerecords; do
  allow "zed sees $kind" as zed get $kind.kubegang.io
done
install --set rbac.bindLookToAuthenticated=false
is_closed() { ! as zed get partitions.kubegang.io >/dev/null 2>&1; }
wait_for 10 "the binding to be gone" is_closed
for kind in partitions qos accounts schedulerconfigs usagerecords nodetimetables; do
  deny "zed sees no $kind" "cannot list resource \"$kind\"" as zed get $kind.kubegang.io
done
# Agents are authenticated, too: until then they saw what every user sees.
for kind in partitions qos accounts; do
  deny "an agent reads $kind" "cannot list resource \"$kind\"" with_token "$agent" get $kind.kubegang.io
done

# With whatever else the API server can judge without other people's CRDs.
digest=sha256:$(sha256sum <<<x | cut -c1-64)
install --set rbac.bindUseToAuthenticated=false --set operator.replicas=2 --set networkPolicy.enabled=true \
  --set 'networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.a=b' --set resourceQuota.enabled=true \
  --set metrics.dashboard.enabled=true --set 'metrics.address=[::]' --set agent.realtime=false \
  --set agent.seLinuxOptions.type=spc_t --set agent.nodeSelector.pool=batch --set agent.maxUnavailable=2 \
  --set agent.cgroupDriver=cgroupfs --set agent.kubeletCgroupRoot=/kubelet --set operator.digest="$digest" \
  --set agent.digest="$digest" --set image.registry=registry.example:5000/ --set 'image.pullSecrets[0].name=s' \
  --set test.partition=batch
wait_for 10 "the binding to be gone" no_use
allow "the test may use partitions" k auth can-i use partitions.kubegang.io --as=$account-test

# What the controller manager's type checker finds in our expressions, once it has looked at all of them.
are_checked() {
  k get validatingadmissionpolicies -o jsonpath='{range .items[*]}{.metadata.generation}={.status.observedGeneration}{"\n"}{end}' |
    awk -F= '$1 != $2 {unchecked = 1} END {exit unchecked || NR == 0}'
}
wait_for 30 "the type checker" are_checked
warnings=$(k get validatingadmissionpolicies -o jsonpath='{range .items[*]}{.metadata.name}{" "}{.status.typeChecking.expressionWarnings}{"\n"}{end}' | grep -F '[' || true)
[[ -z $warnings ]] || fail "the type checker warns: $warnings"

"$helm" uninstall kubegang -n kubegang-system --wait >/dev/null 2>&1 || fail "helm uninstall"
k get jobs.kubegang.io one -n team-a >/dev/null || fail "uninstalling took a job away"
[[ $(k get schedulerconfig default -o jsonpath='{.spec.timeSlice}') == 7s ]] || fail "uninstalling took the SchedulerConfig away"
[[ -z $(k get validatingadmissionpolicies -o name) ]] || fail "policies are left"
install
k get jobs.kubegang.io one -n team-a >/dev/null || fail "installing again lost a job"
