# kubegang's own namespace is closed for other people's pods and tokens. Sourced by test-policies.

closed="are for its administrators"
in_own() { as carl -n kubegang-system "$@"; }
deny "carl makes a pod" "$closed" in_own run x --image=x
deny "carl makes a token" "$closed" in_own create token kubegang-operator
deny "carl makes a token Secret" "$closed" in_own create -f - <<YAML
{apiVersion: v1, kind: Secret, metadata: {name: t, annotations: {kubernetes.io/service-account.name: kubegang-operator}}, type: kubernetes.io/service-account-token}
YAML
deny "carl makes a Deployment" "$closed" in_own create deployment x --image=x
deny "carl makes a batch Job" "$closed" in_own create job x --image=x
deny "carl makes a CronJob" "$closed" in_own create cronjob x --image=x --schedule='* * * * *'
deny "carl changes the DaemonSet" "$closed" in_own set image daemonset/kubegang-agent agent=x
deny "carl changes a pod's image" "$closed" in_own set image "pod/$(agent_pod n1)" agent=x
deny "carl enters a pod" "$closed" in_own exec "$(agent_pod n1)" -- true
deny "carl takes the Lease" "$closed" in_own patch lease kubegang-operator --type=merge -p '{"spec": {"holderIdentity": "carl"}}'
deny "carl deletes all Leases at once" "$closed" in_own delete --raw /apis/coordination.k8s.io/v1/namespaces/kubegang-system/leases
allow "the Lease is there" k get lease kubegang-operator -n kubegang-system
deny "carl changes Helm's release" "$closed" in_own annotate secret -l owner=helm a=b
deny "carl makes one" "$closed" in_own create secret generic sh.helm.release.v1.kubegang.v9 --type=helm.sh/release.v1
allow "carl has a Lease of his own" in_own create -f - <<YAML
{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: carls}, spec: {holderIdentity: carl}}
YAML
allow "carl labels a pod" in_own label pod "$(agent_pod n1)" a=b
allow "carl makes another Secret" in_own create secret generic s
allow "the administrator makes a pod" k run x --image=x -n kubegang-system --dry-run=server
allow "carl makes pods elsewhere" as carl run x --image=x -n team-a --dry-run=server
