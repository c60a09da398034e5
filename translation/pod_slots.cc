#include "translation/pod_slots.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "slurm/hostlist.h"
#include "translation/task_key.h"

namespace control {
namespace {

// No vowels, so that no words appear; nothing that looks like something else.
constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
constexpr int kHashCharacters = 5;

// FNV-1a, 64 bits.
std::uint64_t hash_of(std::string_view uid, std::int64_t starts) {
  // FNV's offset basis and prime. The hash needs to be the same in each leader forever, so
  // std::hash will not do.
  std::uint64_t hash = 14695981039346656037U;
  const auto mix = [&](std::string_view text) {
    for (const char c : text) {
      hash ^= static_cast<unsigned char>(c);
      hash *= 1099511628211U;
    }
  };
  mix(uid);
  // Between the two, so that different pairs give different texts.
  mix("/");
  mix(std::to_string(starts));
  return hash;
}

// Returns the devices of pod `i` of `pods` that share these. All pods get as many of each name, of
// whatever types: a node of two types may have 3 of one and 1 of the other for two pods.
std::vector<kube::JobDevice> devices_of_pod(const std::vector<kube::JobDevice>& all, int i,
                                            int pods) {
  std::map<std::string, int> count_of;
  for (const kube::JobDevice& each : all) count_of[each.name] += each.count;
  std::map<std::string, int> before;  // of this name, in `all`
  std::vector<kube::JobDevice> own;
  for (const kube::JobDevice& each : all) {
    const int each_pod = count_of[each.name] / pods;
    int& first = before[each.name];
    const int begin = std::max(first, i * each_pod);
    const int end = std::min(first + each.count, (i + 1) * each_pod);
    if (end > begin) own.push_back({each.name, each.type, end - begin});
    first += each.count;
  }
  return own;
}

}  // namespace

// Returns "JOB-HASH-INDEX". The hash of UID and start keeps the names of two starts, and of two
// jobs that had one name after the other, apart: a create that is repeated after a crash meets
// AlreadyExists only for its own pod. 27^5 (14 million) hashes suffice, because only pods with the
// same job name compete.
std::string pod_name(const JobIdentity& job, int index) {
  std::uint64_t hash = hash_of(record_key(std::string{job.uid}, job.task), job.starts);
  std::string name{job.name};
  if (job.task) name += "-" + std::to_string(*job.task);
  name += '-';
  for (int i = 0; i < kHashCharacters; ++i) {
    name += kAlphabet[hash % kAlphabet.size()];
    hash /= kAlphabet.size();
  }
  return name + "-" + std::to_string(index);
}

std::string pod_name(std::string_view job, std::string_view uid, std::int64_t starts, int index) {
  return pod_name(JobIdentity{job, uid, starts}, index);
}

base::Result<std::vector<PodSlot>> pod_slots(const JobIdentity& job,
                                             const kube::Allocation& allocation,
                                             kube::PodPolicy policy) {
  std::vector<PodSlot> slots;
  int node_index = 0;
  int first_task = 0;
  for (const kube::NodeShare& share : allocation.shares) {
    const auto nodes = slurm::expand_hostlist(share.hostlist);
    if (!nodes.ok()) return nodes.error().with_context("status.allocation.shares");
    const int tasks = std::max(share.tasks.value_or(1), 1);
    const int cpus = share.cpus.value_or(0);
    for (const std::string& node : *nodes) {
      // The order of the shares, of their hostlists and of the tasks gives the indexes. It is
      // stored in the allocation, so each leader counts alike.
      const int pods = policy == kube::PodPolicy::kPerTask ? tasks : 1;
      for (int i = 0; i < pods; ++i) {
        PodSlot& slot = slots.emplace_back();
        slot.index = static_cast<int>(slots.size()) - 1;
        slot.pod_index = slot.index;
        slot.name = pod_name(job, slot.pod_index);
        slot.node = node;
        slot.node_index = node_index;
        slot.tasks = tasks / pods;
        slot.first_task = first_task + i * slot.tasks;
        // 0: the allocation does not say how many, and the pod gets no limit.
        slot.cpus = cpus == 0 ? 0 : std::max(cpus / pods, 1);
        slot.cores = share.cores;
        if (share.memory) slot.memory = kube::Bytes{share.memory->value() / pods};
        slot.devices = devices_of_pod(share.devices, i, pods);
      }
      first_task += tasks;
      ++node_index;
    }
  }
  return slots;
}

std::optional<int> index_in_name(std::string_view name) {
  const std::size_t dash = name.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  int index = 0;
  const auto parsed = std::from_chars(name.data() + dash + 1, name.data() + name.size(), index);
  if (parsed.ec != std::errc{} || index < 0) return std::nullopt;
  return index;
}

const PodSlot* find_slot(std::span<const PodSlot> slots, std::string_view name) {
  // The index is the last part of a name, so that a slot is found without a search; the name is
  // compared all the same, since pods of earlier starts differ in the hash alone.
  const auto index = index_in_name(name);
  if (!index || static_cast<std::size_t>(*index) >= slots.size()) return nullptr;
  const PodSlot& slot = slots[static_cast<std::size_t>(*index)];
  return slot.name == name ? &slot : nullptr;
}

}  // namespace control
