# Authors of jobs: what they may write, and what they may not. Sourced by test-policies.

submit() { as "$1" create --dry-run=server -f -; }
# operate
for field in 'schedule: {priority: 7}' 'schedule: {nice: -1}'; do
  deny "anna sets $field" "needs the verb operate on the partition" submit anna < <(job a "partitions: [batch], $field")
  deny "a namespace's administrator sets $field" "needs the verb operate on the partition" submit carl < <(job a "partitions: [batch], $field")
  allow "dora sets $field" submit dora < <(job a "$field" "$no_token")
done
allow "anna is nice" submit anna < <(job a 'schedule: {nice: 5}')
array='array: {tasks: 0-3}, control: {tasks: [{tasks: "0", hold: true}, {tasks: "1"'
deny "anna gives a task a priority" "a priority in spec.control.tasks needs the verb operate" submit anna < <(job a "$array, priority: 7}]}")
deny "anna gives a task an unfair chance" "a negative nice in spec.control.tasks needs the verb operate" submit anna < <(job a "$array, nice: -1}]}")
allow "anna gives a task a limit, and is nice" submit anna < <(job a "$array, timeLimit: 2h, nice: 1}]}")
allow "dora gives a task a priority" submit dora < <(job a "$array, priority: 7}]}" "$no_token")
change() { as "$1" patch jobs.kubegang.io one -n team-a --dry-run=server --type=merge -p "{\"spec\": $2}"; }
deny "anna lengthens a running job" "a longer spec.schedule.timeLimit of a running job needs the verb operate" change anna '{"schedule": {"timeLimit": "2h"}}'
deny "anna takes its limit away" "a longer spec.schedule.timeLimit of a running job needs the verb operate" change anna '{"schedule": {"timeLimit": null}}'
allow "anna shortens it" change anna '{"schedule": {"timeLimit": "30m"}}'
allow "dora lengthens it" change dora '{"schedule": {"timeLimit": "2h"}}'
allow "dora sets its priority" as dora patch jobs.kubegang.io one -n team-a --type=merge -p '{"spec": {"schedule": {"priority": 3}}}'
allow "anna changes something else of it" change anna '{"control": {"cancel": true}}'
deny "anna takes the priority away" "spec.schedule.priority needs the verb operate" change anna '{"schedule": {"priority": null}}'
# an operator of one partition only
names=batch role_of operate-batch use,operate partitions
k create clusterrolebinding emil --clusterrole=operate-batch --user=emil >/dev/null
k create rolebinding emil --clusterrole=edit --user=emil -n team-a >/dev/null
wait_for 10 "emil's roles" k auth can-i create jobs.kubegang.io --as=emil -n team-a
allow "emil sets a priority in his partition" submit emil < <(job a 'partitions: [batch], schedule: {priority: 7}')
deny "emil sets a priority in another" "needs the verb operate" submit emil < <(job a 'partitions: [other], schedule: {priority: 7}')
for field in 'priority: 7' 'nice: -7'; do
  name=emils-${field%:*}
  move() { as emil patch jobs.kubegang.io "$name" -n team-a --type=merge -p "{\"spec\": $1}"; }
  allow "emil submits with $field" as emil create -f <(job "$name" "partitions: [batch], schedule: {$field}")
  deny "he takes $field along to another partition" "needs the verb operate" move '{"partitions": ["other"]}'
  deny "he takes $field along to one more" "needs the verb operate" move '{"partitions": ["batch", "other"]}'
  allow "he gives $field up" move "{\"schedule\": {\"${field%:*}\": null}}"
  allow "he goes there without" move '{"partitions": ["other"]}'
done

# use: bound to all users at first
allow "anna names partitions" submit anna < <(job a 'partitions: [batch, other, c, d, e, f, g, h, i, j]')
allow "anna names a qos" submit anna < <(job a 'schedule: {qos: high}')
k delete clusterrolebinding kubegang-use-all-partitions >/dev/null
no_use() { ! k auth can-i use partitions.kubegang.io --as=anna --as-group=system:authenticated; }
wait_for 10 "the binding to be gone" no_use
deny "anna names a partition without use" "you lack the verb use on one of the partitions batch" submit anna < <(job a 'partitions: [batch]')
deny "anna names none" "name spec.partitions" submit anna < <(job a)
deny "anna names a qos without use" "you lack the verb use on the qos high" submit emil < <(job a 'partitions: [batch], schedule: {qos: high}')
allow "emil names his partition" submit emil < <(job a 'partitions: [batch]')
deny "emil names another beside it" "you lack the verb use on one of the partitions batch, other" submit emil < <(job a 'partitions: [batch, other]')
names=a,b,c,d,e,f,g,h,i role_of use-some use partitions
k create clusterrolebinding anna --clusterrole=use-some --user=anna >/dev/null
wait_for 10 "anna's partitions" k auth can-i use partitions.kubegang.io/h --as=anna
allow "anna names eight" submit anna < <(job a 'partitions: [a, b, c, d, e, f, g, h]')
deny "the last one of eight is not hers" "you lack the verb use on one of the partitions" submit anna < <(job a 'partitions: [a, b, c, d, e, f, g, batch]')
deny "anna names nine" "more than 8 names" submit anna < <(job a 'partitions: [a, b, c, d, e, f, g, h, i]')
allow "anna changes a job of hers whose partition she may no longer use" change anna '{"control": {"cancel": true}}'
k create clusterrolebinding kubegang-use-all-partitions --clusterrole=kubegang-use-all-partitions --group=system:authenticated >/dev/null
wait_for 10 "the binding" k auth can-i use partitions.kubegang.io --as=anna --as-group=system:authenticated

# A job's pods get no more rights than its author has: anna may create pods, ben may not.
allow "anna's job has a token" submit anna < <(job a)
allow "anna's job names a service account and a Secret" submit anna < <(job a '' 'serviceAccountName: robot, volumes: [{name: v, secret: {secretName: s}}]')
token="your job gets no token of the service account"
deny "ben's job has a token" "$token default" submit ben < <(job a)
allow "ben's job has none" submit ben < <(job a '' "$no_token")
deny "ben's job names a service account" "$token robot" submit ben < <(job a '' "$no_token, serviceAccountName: robot")
deny "ben's job names one by the old field" "$token robot" submit ben < <(job a '' "$no_token, serviceAccount: robot")
deny "ben's job projects a token" "$token default" submit ben < <(job a '' "$no_token, volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}]")
secrets="a job that refers to Secrets needs"
for spec in 'volumes: [{name: v, secret: {secretName: s}}]' 'volumes: [{name: v, projected: {sources: [{secret: {name: s}}]}}]' 'imagePullSecrets: [{name: s}]' \
  'initContainers: [{name: i, image: x, envFrom: [{secretRef: {name: s}}]}]'; do
  deny "ben's job has $spec" "$secrets" submit ben < <(job a '' "$no_token, $spec")
done
deny "ben's job reads a Secret into a variable" "$secrets" submit ben < <(job a '' "$no_token" 'env: [{name: E, valueFrom: {secretKeyRef: {name: s, key: k}}}]')
deny "ben's job reads a ConfigMap" "a job that refers to ConfigMaps needs" submit ben < <(job a '' "$no_token, volumes: [{name: v, configMap: {name: c}}]")
deny "ben's job reads a ConfigMap into its environment" "a job that refers to ConfigMaps needs" submit ben < <(job a '' "$no_token" 'envFrom: [{configMapRef: {name: c}}]')
deny "ben's job has an ephemeral volume" "a job with ephemeral volumes needs" submit ben < <(job a '' "$no_token, volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {}}}}]")
marked() { job a '' "$no_token" | sed "s/template: {/&metadata: {$1: {app: web}}, /"; }
for kind in labels annotations; do
  deny "ben's job has $kind" "a job whose template has labels or annotations needs" submit ben < <(marked $kind)
  allow "anna's job has $kind" submit anna < <(marked $kind)
done
for volume in 'hostPath: {path: /}' 'nfs: {server: s, path: /}' 'csi: {driver: d}'; do
  deny "ben's job has a volume $volume" "your job's volumes may only be" submit ben < <(job a '' "$no_token, volumes: [{name: v, $volume}]")
done
allow "ben's job has ordinary volumes" submit ben < <(job a '' "$no_token, volumes: [{name: a, emptyDir: {}}, {name: b, persistentVolumeClaim: {claimName: c}}, {name: c, downwardAPI: {}}]")
inside="your job's pods must stay within the Pod Security level baseline"
for ns in team-a host; do
  deny "ben's job is on the host's network in $ns" "$inside" submit ben < <(job a '' "$no_token, hostNetwork: true")
  deny "ben's job is privileged in $ns" "$inside" submit ben < <(job a '' "$no_token" 'securityContext: {privileged: true}')
  deny "ben's job has kubelet ask another host in $ns" "$inside" submit ben < <(job a '' "$no_token" 'readinessProbe: {httpGet: {host: 169.254.169.254, port: 80}}')
done
unset ns
# The CRD's own rule does not see it when one field that its schema does not list takes the place of another.
allow "ben's job is harmless" as ben create -f <(job kept '' "$no_token, hostAliases: []" 'env: []')
swap() {  # FIELD FOR VALUE   in the template's spec
  as ben patch jobs.kubegang.io kept -n team-a --dry-run=server --type=json \
    -p "[{\"op\": \"remove\", \"path\": \"/spec/template/spec/$1\"}, {\"op\": \"add\", \"path\": \"/spec/template/spec/$2\", \"value\": $3}]"
}
deny "ben changes the pod that was judged" "spec.template cannot change" swap hostAliases volumes '[{"name": "v", "secret": {"secretName": "s"}}]'
deny "ben changes its container" "spec.template cannot change" swap containers/0/env containers/0/securityContext '{"privileged": true}'
k create role use-robot --verb=impersonate --resource=serviceaccounts --resource-name=robot -n team-a >/dev/null
k create role read-secrets --verb=get --resource=secrets -n team-a >/dev/null
k create rolebinding use-robot --role=use-robot --user=ben -n team-a >/dev/null
k create rolebinding read-secrets --role=read-secrets --user=ben -n team-a >/dev/null
wait_for 10 "ben's further rights" k auth can-i get secrets --as=ben -n team-a
allow "ben may be the robot" submit ben < <(job a '' 'serviceAccountName: robot')
allow "ben may read Secrets" submit ben < <(job a '' "$no_token, volumes: [{name: v, secret: {secretName: s}}]")
# kubegang.io/user
theirs="the annotation kubegang.io/user is the name of the user who creates the job"
job_of() { job "$1" '' "$no_token" | sed "s#namespace: team-a#&, annotations: {kubegang.io/user: $2}#"; }
allow "anna says who she is" as anna create -f <(job_of annas anna)
deny "anna says that she is ben" "$theirs" submit anna < <(job_of a ben)
deny "the administrator says that the job is anna's" "$theirs" k create --dry-run=server -f <(job_of a anna)
named() { as anna annotate jobs.kubegang.io "$1" -n team-a --dry-run=server --overwrite "$2"; }
deny "anna gives the job to ben" "$theirs" named annas kubegang.io/user=ben
deny "anna takes the name away" "$theirs" named annas kubegang.io/user-
deny "anna says later who has made a job" "$theirs" named one kubegang.io/user=anna
allow "anna changes another annotation" named annas kubegang.io/comment=hello
