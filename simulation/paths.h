// The places of the simulation's objects in the API.
#pragma once

namespace simulation::paths {

inline constexpr const char* kNamespace = "team-a";            // of all jobs
inline constexpr const char* kRackLabel = "example.com/rack";  // of nodes, "odd" or "even"
inline constexpr const char* kTaint = "example.com/maintenance";
inline constexpr const char* kDevice = "nvidia.com/gpu";  // each node has some
inline constexpr const char* kNoPartition = "gone";       // what no administrator has made
inline constexpr const char* kConfigs = "/apis/kubegang.io/v1alpha1/schedulerconfigs";
inline constexpr const char* kConfig = "/apis/kubegang.io/v1alpha1/schedulerconfigs/default";
inline constexpr const char* kPartitions = "/apis/kubegang.io/v1alpha1/partitions";
inline constexpr const char* kAccounts = "/apis/kubegang.io/v1alpha1/accounts";
inline constexpr const char* kUsage = "/apis/kubegang.io/v1alpha1/usagerecords";
inline constexpr const char* kLow = "/apis/kubegang.io/v1alpha1/partitions/low";
inline constexpr const char* kJobs = "/apis/kubegang.io/v1alpha1/namespaces/team-a/jobs";
inline constexpr const char* kAllJobs = "/apis/kubegang.io/v1alpha1/jobs";
inline constexpr const char* kBatchJobs = "/apis/batch/v1/namespaces/team-a/jobs";
inline constexpr const char* kAllBatchJobs = "/apis/batch/v1/jobs";
inline constexpr const char* kTables = "/apis/kubegang.io/v1alpha1/nodetimetables";
inline constexpr const char* kPods = "/api/v1/namespaces/team-a/pods";
inline constexpr const char* kAllPods = "/api/v1/pods";
inline constexpr const char* kNodes = "/api/v1/nodes";
inline constexpr const char* kOperatorLeases =
    "/apis/coordination.k8s.io/v1/namespaces/kubegang-system/leases";
inline constexpr const char* kLeases = "/apis/coordination.k8s.io/v1/leases";

}  // namespace simulation::paths
