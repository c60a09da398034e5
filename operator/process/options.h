// The command line of kubegang-operator.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "kube/api/meta.h"

namespace control {

struct Options {
  std::string kubeconfig;  // "" = $KUBECONFIG, in-cluster, ~/.kube/config
  std::string context;
  std::string ns = "kubegang-system";
  std::string lease_name = "kubegang-operator";
  std::string agents_namespace;  // of the agents' pods; "" = they are not pods
  std::string identity;          // "" = host name, process and start time
  bool leader_elect = true;
  base::Duration lease_duration = std::chrono::seconds{15};
  base::Duration renew_deadline = std::chrono::seconds{10};
  base::Duration retry_period = std::chrono::seconds{2};
  std::string metrics_host = "0.0.0.0";
  int metrics_port = 8080;
  std::string records_lease;   // of kubegang-records; "" = there are no records
  std::string launcher_image;  // that brings the launcher of batch scripts into pods
  std::string launcher_image_volume = "false";  // auto | true | false
  std::string launcher_directory;               // of the nodes that has it instead
  int launcher_port = 6818;                     // of the first pod of a batch script
  std::vector<std::string> name_servers;        // of the cluster; empty: of /etc/resolv.conf
  std::string cluster_domain = "cluster.local";
  int writers = 16;  // writes under way at the same time
  std::string log_level = "info";
  bool adopt_batch_jobs = true;   // with managedBy: kubegang.io/job
  bool adopt_pods = false;        // with the scheduling gate kubegang.io/gang
  bool adopt_pod_groups = false;  // of such pods, those that name a PodGroup of coscheduling

  kube::ObjectKey lease() const { return {ns, lease_name}; }
};

struct ParsedOptions {
  Options options;
  std::optional<int> exit_code;  // present: print `text` and end (0 for --help, 2 for usage)
  std::string text;
};

// `arguments` without the program's name.
ParsedOptions parse_options(std::vector<std::string> arguments);

}  // namespace control
