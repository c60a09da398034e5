#include "translation/allocation.h"

#include <algorithm>

#include "base/number_list.h"
#include "slurm/hostlist.h"
#include "translation/devices.h"
#include "translation/units.h"

namespace control {
namespace {

// Returns true if the two nodes differ in nothing but the node.
bool same_share(const sched::Allocation& of, const sched::NodeAllocation& a,
                const sched::NodeAllocation& b) {
  return a.cores == b.cores && a.cpus == b.cpus && a.tasks == b.tasks && a.memory == b.memory &&
         (of.devices.empty() || devices_on(of, a.node) == devices_on(of, b.node));
}

// The memory is 0 if the cluster does not manage memory; the field is absent then.
kube::NodeShare encode_share(const sched::Allocation& of, const sched::NodeAllocation& share,
                             const std::vector<std::string>& names) {
  kube::NodeShare encoded;
  encoded.hostlist = slurm::compress_hostlist(names);
  encoded.cores = format_cores(share.cores);
  encoded.cpus = share.cpus;
  encoded.tasks = share.tasks;
  if (share.memory.value() > 0) encoded.memory = bytes_of(share.memory);
  encoded.devices = devices_to(devices_on(of, share.node));
  return encoded;
}

}  // namespace

// Returns "0-3,8". A set may be full, so the search must not go beyond its last core.
// The text is the same for equal sets, so that a status that has not changed is not written again.
std::string format_cores(const sched::CoreSet& cores) {
  std::string text;
  for (int first = cores.next(0); first >= 0;) {
    int last = first;
    while (last + 1 < sched::kCoresPerNodeMax && cores.test(last + 1)) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(first);
    if (last > first) text += "-" + std::to_string(last);
    first = last + 1 < sched::kCoresPerNodeMax ? cores.next(last + 1) : -1;
  }
  return text;
}

// A number beyond the last core of a set is an error and not cut.
base::Result<sched::CoreSet> parse_cores(std::string_view text) {
  const auto numbers = base::parse_number_list(text, sched::kCoresPerNodeMax - 1);
  if (!numbers) {
    return base::invalid_argument("invalid list of cores \"" + std::string{text} +
                                  "\" (example: 0-3,8)");
  }
  sched::CoreSet cores;
  for (const int core : *numbers) cores.set(core);
  return cores;
}

// `name_of` returns the name of a node by its index.
kube::Allocation encode_allocation(const sched::Allocation& allocation, const NodeNames& name_of) {
  kube::Allocation encoded;
  std::vector<std::string> all;
  std::vector<std::string> group;
  for (std::size_t i = 0; i < allocation.nodes.size(); ++i) {
    const sched::NodeAllocation& share = allocation.nodes[i];
    encoded.cpus += share.cpus;
    all.push_back(name_of(share.node));
    group.push_back(all.back());
    const bool last = i + 1 == allocation.nodes.size();
    // Neighbors with equal shares are one entry: a job over a thousand equal nodes has a short
    // status. The order of the nodes is kept, since the numbers of tasks follow from it.
    if (!last && same_share(allocation, share, allocation.nodes[i + 1])) continue;
    encoded.shares.push_back(encode_share(allocation, share, group));
    group.clear();
  }
  encoded.nodes = static_cast<std::int32_t>(all.size());
  encoded.hostlist = slurm::compress_hostlist(all);
  return encoded;
}

// A new leader restores running jobs by this, so the result must be what the scheduler decided, not
// what it would decide now. A node that is missing is not an error.
base::Result<DecodedAllocation> decode_allocation(const kube::Allocation& allocation,
                                                  const NodesByName& find) {
  DecodedAllocation decoded;
  // Assumes whole nodes until a share turns out to be a part of one. It is not stored by itself
  // because it follows.
  // Until a share turns out to be a part of a node.
  decoded.allocation.whole_nodes = true;
  for (const kube::NodeShare& share : allocation.shares) {
    const auto names = slurm::expand_hostlist(share.hostlist);
    if (!names.ok()) return names.error().with_context("status.allocation.shares");
    const auto cores = parse_cores(share.cores);
    if (!cores.ok()) return cores.error().with_context("status.allocation.shares.cores");
    for (const std::string& name : *names) {
      const auto node = find(name);
      // A node that has been removed from the cluster: the job counts as lost, but the rest of its
      // allocation must still be known.
      if (!node) {
        decoded.missing.push_back(name);
        continue;
      }
      // An absent list of cores means the whole node, so that an allocation of whole nodes needs no
      // list.
      const sched::CoreSet all = sched::CoreSet::first(node->cores);
      sched::NodeAllocation& out = decoded.allocation.nodes.emplace_back();
      out.node = node->index;
      out.cores = share.cores.empty() ? all : *cores;
      out.cpus = share.cpus.value_or(node->cpus);
      out.tasks = share.tasks.value_or(1);
      out.memory = share.memory ? mib_of(*share.memory) : sched::MemoryMiB{0};
      for (const sched::DeviceCount& held : devices_from(share.devices)) {
        decoded.allocation.devices.push_back({node->index, held.kind, held.count});
      }
      decoded.allocation.whole_nodes = decoded.allocation.whole_nodes && out.cores == all;
    }
  }
  return decoded;
}

}  // namespace control
