module kubegang.io/e2e/kubernetes/tools/pod-groups

go 1.24.0

require sigs.k8s.io/scheduler-plugins v0.34.1-devel // indirect
