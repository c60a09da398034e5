#include "translation/pod_shape.h"

#include <algorithm>
#include <limits>

#include "translation/units.h"

namespace control {
namespace {

constexpr const char* kOfAllContainers = "spec.template.spec.containers: together they use ";

// Quantities reach 9.2e18 thousandths, so two of them may not fit into 64 bits. A sum that does not
// fit stays at the largest number, which is above every limit. Negative amounts, which the API
// server refuses, count as 0.
void add_amount(std::int64_t& sum, std::int64_t amount) {
  if (amount < 0) return;
  if (__builtin_add_overflow(sum, amount, &sum)) sum = std::numeric_limits<std::int64_t>::max();
}

// Returns null if the list does not name the resource, which differs from an amount of 0.
const kube::Quantity* amount_in(const kube::ResourceList& list, const char* name) {
  const auto found = list.find(name);
  return found == list.end() ? nullptr : &found->second;
}

// The amounts of one container; 0 for those that it does not name.
struct Amounts {
  std::int64_t milli_cpus = 0;
  std::int64_t memory = 0;  // bytes
  std::int64_t disk = 0;    // bytes
};

Amounts amounts_of(const kube::ResourceRequirements& resources, PodCpus from) {
  const auto& [requests, limits] = resources;
  const auto first_of = [](const kube::ResourceList& first, const kube::ResourceList& second,
                           const char* name) {
    const kube::Quantity* amount = amount_in(first, name);
    return amount != nullptr ? amount : amount_in(second, name);
  };
  Amounts amounts;
  const kube::Quantity* cpu =
      from == PodCpus::kLimits ? amount_in(limits, "cpu") : first_of(requests, limits, "cpu");
  if (cpu != nullptr) add_amount(amounts.milli_cpus, cpu->milli());
  const kube::Quantity* memory = first_of(limits, requests, "memory");
  if (memory != nullptr) add_amount(amounts.memory, memory->bytes().value());
  const kube::Quantity* disk = first_of(requests, limits, "ephemeral-storage");
  if (disk != nullptr) add_amount(amounts.disk, disk->bytes().value());
  return amounts;
}

}  // namespace

PodShape shape_of(const kube::PodSpec& pod, PodCpus from, std::vector<std::string>& problems) {
  Amounts sum;
  for (const kube::Container& container : pod.containers) {
    const Amounts one = amounts_of(container.resources, from);
    add_amount(sum.milli_cpus, one.milli_cpus);
    add_amount(sum.memory, one.memory);
    add_amount(sum.disk, one.disk);
  }
  for (const kube::Container& container : pod.init_containers) {
    const Amounts one = amounts_of(container.resources, from);
    sum = {std::max(sum.milli_cpus, one.milli_cpus), std::max(sum.memory, one.memory),
           std::max(sum.disk, one.disk)};
  }
  PodShape shape;
  // Whole CPUs, rounded up: two containers of 750m are two CPUs, and so is one of 1500m.
  const std::int64_t cpus = kube::Quantity::from_milli(sum.milli_cpus).units();
  if (cpus > kPodCpusMax) {
    problems.push_back(kOfAllContainers + std::to_string(cpus) + " CPUs, more than " +
                       std::to_string(kPodCpusMax) + " are not possible; use fewer");
  } else if (cpus > 0) {
    shape.cpus = cpus;
  }
  if (sum.memory > kMemoryBytesMax) {
    problems.push_back(kOfAllContainers + std::string{"more than "} +
                       kube::format_bytes(kube::Bytes{kMemoryBytesMax}) +
                       " of memory, which is not possible; use less");
  } else {
    // 0 is legal and says that no container names any: the partition's default holds then.
    shape.memory = sum.memory;
  }
  // No node has as much as the bound, so a pod that asks for more still finds none.
  shape.disk = std::min(sum.disk, kMemoryBytesMax);
  return shape;
}

kube::MilliCpu cpu_requests_of(const kube::PodSpec& pod) {
  std::int64_t milli = 0;
  for (const auto* containers : {&pod.containers, &pod.init_containers}) {
    for (const kube::Container& container : *containers) {
      if (const auto* cpu = amount_in(container.resources.requests, "cpu"))
        add_amount(milli, cpu->milli());
    }
  }
  return kube::MilliCpu{milli};
}

void set_shape(const PodShape& shape, kube::JobSpec& spec) {
  spec.resources.cpus_per_task = static_cast<std::int32_t>(shape.cpus);
  if (shape.disk > 0) spec.placement.tmp_disk = kube::Bytes{shape.disk};
  if (shape.memory == 0) return;
  // Memory for each CPU, in whole MiB and rounded up, so that all CPUs together have at least what
  // the pod uses.
  const std::int64_t unit = shape.cpus * kBytesPerMiB;
  spec.resources.memory_per_cpu = kube::Bytes{(shape.memory + unit - 1) / unit * kBytesPerMiB};
}

}  // namespace control
