{{/* The labels of every object: ours, and commonLabels, which cannot replace ours. */}}
{{- define "kubegang.labels" -}}
{{- $ours := dict "app.kubernetes.io/name" "kubegang" "app.kubernetes.io/instance" .Release.Name
    "app.kubernetes.io/version" .Chart.AppVersion "app.kubernetes.io/managed-by" .Release.Service
    "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_") }}
{{- merge $ours .Values.commonLabels | toYaml }}
{{- end }}

{{- define "kubegang.inlineLabels" -}}
{{ include "kubegang.labels" . | fromYaml | toJson }}
{{- end }}

{{- define "kubegang.selector" -}}
app.kubernetes.io/name: kubegang
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* The labels that select the pods of one component: dict root, component. */}}
{{- define "kubegang.componentSelector" -}}
app.kubernetes.io/component: {{ .component }}
{{ include "kubegang.selector" .root }}
{{- end }}

{{/* The metadata of a pod template: dict selector (JSON), of (operator's or agent's values). */}}
{{- define "kubegang.podMetadata" -}}
{{- with .of.podAnnotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
labels: {{ merge (fromJson .selector) .of.podLabels | toJson }}
{{- end }}

{{/* A probe: dict path, of (its times and thresholds). Both programs answer on their port of metrics. */}}
{{- define "kubegang.probe" -}}
{{- merge (dict "httpGet" (dict "path" .path "port" "metrics")) .of | toJson }}
{{- end }}

{{/* The service account of a program: dict root, of (its values). */}}
{{- define "kubegang.serviceAccount" -}}
{{- if .of.serviceAccount.create }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .of.serviceAccount.name }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "kubegang.labels" .root | nindent 4 }}
  {{- with .of.serviceAccount.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end }}
{{- end }}

{{/* An image: dict root, of (operator's or agent's values). A digest says more than a tag. */}}
{{- define "kubegang.image" -}}
{{ .root.Values.image.registry }}{{ .of.repository }}
{{- if .of.digest }}@{{ .of.digest }}{{ else }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}{{ end }}
{{- end }}

{{/* The images are Linux programs: a nodeSelector of the values' and of that, as JSON. */}}
{{- define "kubegang.nodeSelector" -}}
{{ merge (dict) . (dict "kubernetes.io/os" "linux") | toJson }}
{{- end }}
{{/* The operator taints the nodes of some partitions (taintNodes). If those are all nodes of the cluster, it and
the test must stand on them. */}}
{{- define "kubegang.operatorTolerations" -}}
{{- $own := dict "key" "kubegang.io/managed" "operator" "Exists" "effect" "NoSchedule" -}}
{{- prepend (default list .Values.operator.tolerations) $own | toJson -}}
{{- end }}

{{- define "kubegang.operatorUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ .Values.operator.serviceAccount.name }}
{{- end }}
{{- define "kubegang.agentUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ .Values.agent.serviceAccount.name }}
{{- end }}
{{- define "kubegang.testUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:kubegang-test
{{- end }}

{{/* Where kubelet keeps all pods' cgroups, below agent.cgroupRoot: "kubepods.slice", or "kubepods". */}}
{{- define "kubegang.kubepods" -}}
{{- $parts := append (splitList "/" .Values.agent.kubeletCgroupRoot | compact) "kubepods" }}
{{- if eq .Values.agent.cgroupDriver "cgroupfs" }}
{{- $parts | join "/" }}
{{- else }}
{{- /* systemd: "/a/b" is a.slice/a-b.slice, and a dash of a name becomes an underscore. */}}
{{- $slices := list }}
{{- range $i, $part := $parts }}
{{- $name := slice $parts 0 (add1 $i | int) | join "/" | replace "-" "_" | replace "/" "-" }}
{{- $slices = append $slices (printf "%s.slice" $name) }}
{{- end }}
{{- $slices | join "/" }}
{{- end }}
{{- end }}

{{/* Where the agent's containers find the cgroups of pods; also kubegang-agent inspect, called in one of them. */}}
{{- define "kubegang.agentPlaces" -}}
- {name: KUBEGANG_CGROUP_ROOT, value: /host/cgroup}
{{- with .Values.agent.kubeletCgroupRoot }}
- {name: KUBEGANG_KUBELET_CGROUP_ROOT, value: {{ . | quote }}}
{{- end }}
{{- end }}

{{- define "kubegang.agentMounts" -}}
- {name: run, mountPath: /run/kubegang}
# Of the host's cgroups only those of pods, at their place below an otherwise empty folder.
- {name: kubepods, mountPath: {{ printf "/host/cgroup/%s" (include "kubegang.kubepods" .) | quote }}}
{{- end }}

{{/* root, since the freezer's files belong to root; nothing more: no privilege, no host namespaces.
     dict root, add (a list of capabilities). */}}
{{- define "kubegang.agentSecurity" -}}
runAsUser: 0
privileged: false
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]{{ with .add }}, add: {{ toJson . }}{{ end }}}
seccompProfile: {type: RuntimeDefault}
{{- with .root.Values.agent.seLinuxOptions }}
seLinuxOptions: {{ toJson . }}
{{- end }}
{{- end }}

{{/* Binds the policy `name` everywhere. */}}
{{- define "kubegang.policyBinding" }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: {{ .name }}, labels: {{ include "kubegang.inlineLabels" .root }}}
spec: {policyName: {{ .name }}, validationActions: [Deny]}
{{- end }}

{{/* CEL: true when the request comes with the token that kubelet gave to a pod. */}}
{{- define "kubegang.tokenOfAPod" -}}
request.userInfo.?extra[?'authentication.kubernetes.io/pod-name'].hasValue()
{{- end }}

{{/*
CEL: a pod stays within what the Pod Security level `baseline` allows. A dict of dynamic expressions: pod (its spec),
annotations.
SOURCE: Kubernetes, Pod Security Standards, baseline; the API server enforces the same in a namespace
of that level, this holds in namespaces that say nothing.
*/}}
{{- define "kubegang.withinBaseline" -}}
[{{ .pod }}.?containers.orValue([]) + {{ .pod }}.?initContainers.orValue([])].all(containers,
!{{ .pod }}.?hostNetwork.orValue(false) && !{{ .pod }}.?hostIPC.orValue(false) && !{{ .pod }}.?hostPID.orValue(false)
&& {{ .pod }}.?volumes.orValue([]).all(v, !has(v.hostPath))
&& {{ .pod }}.?securityContext.?sysctls.orValue([]).all(s, s.name in [
  'kernel.shm_rmid_forced', 'net.ipv4.ip_local_port_range', 'net.ipv4.ip_unprivileged_port_start', 'net.ipv4.tcp_syncookies',
  'net.ipv4.ping_group_range', 'net.ipv4.ip_local_reserved_ports', 'net.ipv4.tcp_keepalive_time', 'net.ipv4.tcp_fin_timeout',
  'net.ipv4.tcp_keepalive_intvl', 'net.ipv4.tcp_keepalive_probes', 'net.ipv4.tcp_rmem', 'net.ipv4.tcp_wmem'])
&& {{ .annotations }}.all(k, !k.startsWith('container.apparmor.security.beta.kubernetes.io/') || {{ .annotations }}[k] != 'unconfined')
&& (containers.map(c, c.?securityContext.orValue({})) + [{{ .pod }}.?securityContext.orValue({})]).all(c,
  c.?seccompProfile.?type.orValue('') != 'Unconfined' && c.?appArmorProfile.?type.orValue('') != 'Unconfined'
  && c.?seLinuxOptions.?type.orValue('') in ['', 'container_t', 'container_init_t', 'container_kvm_t', 'container_engine_t']
  && c.?seLinuxOptions.?user.orValue('') == '' && c.?seLinuxOptions.?role.orValue('') == ''
  && !c.?windowsOptions.?hostProcess.orValue(false)
  && !c.?privileged.orValue(false) && c.?procMount.orValue('Default') == 'Default'
  && c.?capabilities.?add.orValue([]).all(a, a in ['AUDIT_WRITE', 'CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'MKNOD',
    'NET_BIND_SERVICE', 'SETFCAP', 'SETGID', 'SETPCAP', 'SETUID', 'SYS_CHROOT']))
&& containers.all(c, c.?ports.orValue([]).all(p, p.?hostPort.orValue(0) == 0)
  && [c.?livenessProbe, c.?readinessProbe, c.?startupProbe].all(p, p.?httpGet.?host.orValue('') == '' && p.?tcpSocket.?host.orValue('') == '')
  && [c.?lifecycle.?postStart, c.?lifecycle.?preStop].all(h, h.?httpGet.?host.orValue('') == '' && h.?tcpSocket.?host.orValue('') == '')))
{{- end }}

{{/* CEL, of a CREATE or UPDATE: true when the pod gets a kubegang Job as its controller that it had not before. */}}
{{- define "kubegang.getsAJob" -}}
object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false) && o.kind == 'Job' && o.apiVersion.startsWith('kubegang.io/')
&& (request.operation == 'CREATE' || !oldObject.metadata.?ownerReferences.orValue([]).exists(b, b.?controller.orValue(false) && b.kind == 'Job'
&& b.apiVersion.startsWith('kubegang.io/') && b.uid == o.uid)))
{{- end }}

{{/*
What the operator may make and delete of pods, as a list: a check holds where `expression` does, or `unless`,
which may ask about the namespace, as match conditions cannot.
*/}}
{{- define "kubegang.operatorPodChecks" }}
- expression: {{ include "kubegang.tokenOfAPod" . | quote }}
  message: "kubegang's service accounts write with the tokens of their pods only: this request is impersonated, or its token is bound to no pod"
- expression: >-
    (request.operation == 'DELETE' ? oldObject : object).metadata.?ownerReferences.orValue([])
    .exists(o, o.?controller.orValue(false) && o.kind == 'Job' && o.apiVersion.startsWith('kubegang.io/'))
  message: the kubegang operator creates and deletes only pods that are controlled by a kubegang Job
- expression: >-
    request.operation == 'DELETE' || object.spec.?nodeName.orValue('') != ''
    || object.spec.?affinity.?nodeAffinity.?requiredDuringSchedulingIgnoredDuringExecution.?nodeSelectorTerms.orValue([])
    .map(t, t.?matchFields.orValue([]).exists(f, f.key == 'metadata.name' && f.operator == 'In' && f.?values.orValue([]).size() == 1)) == [true]
  message: the kubegang operator creates only pods that name their node, or are pinned to it by node affinity
- expression: "!(request.namespace in ['kube-system', '{{ .Release.Namespace }}'])"
  message: the kubegang operator creates and deletes no pods in kube-system and in its own namespace
{{- if .Values.admissionPolicies.jobNamespaceLabels }}
- expression: "request.operation == 'DELETE'"
  unless: {{ include "kubegang.jobNamespace" . | quote }}
  message: "the kubegang operator creates pods only in namespaces for jobs"
{{- end }}
# For such a pod kubelet evicts others.
- expression: "request.operation == 'DELETE' || !object.spec.?priorityClassName.orValue('').startsWith('system-')"
  message: the kubegang operator creates no pods of the system's priority classes
- expression: >-
    request.operation == 'DELETE'
    || [dyn(object)].all(pod,
         {{- include "kubegang.withinBaseline" (dict "pod" "pod.spec" "annotations" "pod.metadata.?annotations.orValue({})") | nindent 9 }})
  unless: "namespaceObject.metadata.?labels[?'pod-security.kubernetes.io/enforce'].orValue('') == 'privileged'"
  message: host namespaces, hostPath volumes, host ports, hosts of probes, privileged containers and added capabilities need a namespace whose Pod Security level is privileged
{{- end }}

{{/* CEL: true when the request's namespace has the labels of admissionPolicies.jobNamespaceLabels. */}}
{{- define "kubegang.jobNamespace" -}}
{{- $terms := list }}
{{- range $key, $value := .Values.admissionPolicies.jobNamespaceLabels }}
{{- $terms = append $terms (printf "namespaceObject.metadata.?labels[?%s].orValue('') == %s" ($key | squote) (toString $value | squote)) }}
{{- end }}
{{- $terms | join " && " | default "true" }}
{{- end }}
