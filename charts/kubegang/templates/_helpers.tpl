{{- define "kubegang.labels" -}}
app.kubernetes.io/name: kubegang
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "kubegang.inlineLabels" -}}
{{ include "kubegang.labels" . | fromYaml | toJson }}
{{- end }}

{{- define "kubegang.selector" -}}
app.kubernetes.io/name: kubegang
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kubegang.image" -}}
{{ .root.Values.image.registry }}{{ .repository }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}
{{- end }}

{{/* Cluster-scoped names carry the release, so that two releases are told apart by a clear error. */}}
{{- define "kubegang.operatorUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:kubegang-operator
{{- end }}
{{- define "kubegang.agentUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:kubegang-agent
{{- end }}

{{- define "kubegang.policyBinding" }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: {{ .name }}, labels: {{ include "kubegang.inlineLabels" .root }}}
spec: {policyName: {{ .name }}, validationActions: [Deny]}
{{- end }}
