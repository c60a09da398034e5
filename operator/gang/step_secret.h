// The means by which the pods of a batch script run steps together: the Secret with their key,
// names that they resolve, and the port of the first one's launcher (launcher/README.md). Pure, but
// for the key.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/job.h"
#include "base/result.h"
#include "kube/api/service.h"
#include "translation/pod_slots.h"

namespace control {

// How pods ask for names. Without name servers kubelet decides, and a job's names come last.
struct ClusterDns {
  std::vector<std::string> name_servers{};
  std::string domain{"cluster.local"};
  friend bool operator==(const ClusterDns&, const ClusterDns&) = default;
};
// Reads the resolv.conf of a pod whose names the cluster resolves, such as the operator's own.
ClusterDns read_cluster_dns(std::string_view resolv_conf);

// Returns the host name of each node's pod: its node's up to the first dot, or, if two nodes of the
// job share that, all of it, with dashes for dots.
std::vector<std::string> host_names(const std::vector<std::string>& nodes);

// Returns the name of the Service by which the pods of one start find each other: the job's name,
// also for all tasks of an array. The pods of a batch script have their nodes' names, and two tasks
// may share a node: each start of one has a Service of its own, "<job>-<task>-<hash>".
std::string service_name(const JobIdentity& job, bool is_batch);

// Returns "<job>-<hash>-steps", of a task of an array "<job>-<task>-<hash>-steps": new at each
// start, and the same for each leader.
std::string step_secret_name(const JobIdentity& job);
// Owned by the Job. `key` is of 32 bytes, as base64 has them.
nlohmann::json build_step_secret(const std::string& ns, const JobIdentity& job,
                                 std::string_view key);

// The ports of a script's Service, `first-0` to `first-29`, which only the first pod has. The other
// pods look for it by their names, one after the other: a name server that was asked for a name too
// early denies it for seconds, and these are not asked again within that time (launcher/net.h).
std::vector<kube::ServicePort> ports_of_first_pod();

// The additions to the pod of `slot` for steps over several pods. REQUIRES: `hosts` are host_names
// of the nodes of the start, by PodSlot::node_index; the first container's arguments are the
// launcher's.
struct StepNetwork {
  const ClusterDns& dns;
  int port = 0;
  const std::vector<std::string>& hosts;
  std::optional<int> task{};  // of an array
};
void join_pods(nlohmann::json& spec, const kube::Job& job, const PodSlot& slot,
               const StepNetwork& network);

}  // namespace control
