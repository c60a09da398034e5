#include "scheduler/limits/qos_limits.h"

#include <optional>

#include "scheduler/model/qos_order.h"

namespace sched {

// What jobs of this QOS hold. A job counts if the QOS is its own or its partition's.
QosLimits::Use QosLimits::use_of(const QosConfig& qos, const std::string& user) const {
  Use use;
  for (const auto& [order, job] : books_.allocated()) {
    if (job->request.qos != qos.name &&
        cluster_.partition(*job->partition).config.qos != qos.name) {
      continue;
    }
    int cpus = 0;
    for (const NodeAllocation& held : job->allocation.nodes) cpus += held.cpus;
    use.cpus += cpus;
    if (job->request.user != user) continue;
    ++use.user_jobs;
    use.user_cpus += cpus;
  }
  return use;
}

std::string QosLimits::over(const JobRequest& request, PartitionIndex partition, int cpus) const {
  const QosOrder order = qos_order(cluster_, request.qos, partition);
  for (const QosConfig* const qos : order) {
    const auto counts = [&](std::optional<int> QosConfig::*limit) {
      return qos_with(order, limit) == qos;
    };
    const bool jobs = counts(&QosConfig::max_jobs_per_user);
    const bool user_cpus = counts(&QosConfig::max_cpus_per_user);
    const bool group_cpus = counts(&QosConfig::group_cpus);
    if (qos == nullptr || (!jobs && !user_cpus && !group_cpus)) continue;
    const Use use = use_of(*qos, request.user);
    const auto above = [&](bool is_ours, const std::optional<int>& limit, int wanted,
                           const char* what) {
      if (!is_ours || wanted <= *limit) return std::string{};
      return "QOS " + qos->name + " allows " + std::to_string(*limit) + " " + what +
             "; with this job it would be " + std::to_string(wanted);
    };
    for (const std::string& sentence :
         {above(jobs, qos->max_jobs_per_user, use.user_jobs + 1, "jobs per user"),
          above(user_cpus, qos->max_cpus_per_user, use.user_cpus + cpus, "CPUs per user"),
          above(group_cpus, qos->group_cpus, use.cpus + cpus, "CPUs in all")}) {
      if (!sentence.empty()) return sentence;
    }
  }
  return {};
}

}  // namespace sched
