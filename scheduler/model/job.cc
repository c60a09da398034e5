#include "scheduler/model/job.h"

#include <algorithm>

namespace sched {

// A node without a device for one task is of no use to the job.
Devices least_devices(const JobRequest& request) {
  Devices least = request.devices;
  const auto at_least = [&](const DeviceKind& kind, int count) {
    const auto known = std::ranges::find(least, kind, &DeviceCount::kind);
    if (known == least.end()) {
      least.push_back({kind, count});
    } else {
      known->count = std::max(known->count, count);
    }
  };
  for (const DeviceCount& each : request.devices_of_job) at_least(each.kind, 1);
  for (const DeviceCount& each : request.devices_per_task) {
    at_least(each.kind, asked_product(each.count, request.tasks_per_node.value_or(1)));
  }
  for (const DeviceCount& each : request.devices_per_socket) {
    at_least(each.kind, asked_product(each.count, request.sockets_per_node.value_or(1)));
  }
  return least;
}

}  // namespace sched
