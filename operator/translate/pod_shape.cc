#include "operator/translate/pod_shape.h"

#include <limits>

#include "operator/translate/units.h"

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

}  // namespace

// Init containers do not count: the shape is what the tasks of the job have while they run.
PodShape shape_of(const kube::PodSpec& pod, PodCpus from, std::vector<std::string>& problems) {
  std::int64_t milli_cpus = 0;
  std::int64_t memory = 0;
  for (const kube::Container& container : pod.containers) {
    const kube::ResourceList& requests = container.resources.requests;
    const kube::ResourceList& limits = container.resources.limits;
    const kube::Quantity* cpu = amount_in(limits, "cpu");
    if (from == PodCpus::kRequestsFirst && amount_in(requests, "cpu") != nullptr) {
      cpu = amount_in(requests, "cpu");
    }
    if (cpu != nullptr) add_amount(milli_cpus, cpu->milli());
    const kube::Quantity* bytes = amount_in(limits, "memory");
    if (bytes == nullptr) bytes = amount_in(requests, "memory");
    if (bytes != nullptr) add_amount(memory, bytes->bytes().value());
  }
  PodShape shape;
  // Whole CPUs, rounded up: two containers of 750m are two CPUs, and so is one of 1500m.
  const std::int64_t cpus = kube::Quantity::from_milli(milli_cpus).units();
  if (cpus > kPodCpusMax) {
    problems.push_back(kOfAllContainers + std::to_string(cpus) + " CPUs, more than " +
                       std::to_string(kPodCpusMax) + " are not possible; use fewer");
  } else if (cpus > 0) {
    shape.cpus = cpus;
  }
  if (memory > kMemoryBytesMax) {
    problems.push_back(kOfAllContainers + std::string{"more than "} +
                       kube::format_bytes(kube::Bytes{kMemoryBytesMax}) +
                       " of memory, which is not possible; use less");
  } else {
    // 0 is legal and says that no container names any: the partition's default holds then.
    shape.memory = memory;
  }
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
  if (shape.memory == 0) return;
  // Memory for each CPU, in whole MiB and rounded up, so that all CPUs together have at least what
  // the pod uses.
  const std::int64_t unit = shape.cpus * kBytesPerMiB;
  spec.resources.memory_per_cpu = kube::Bytes{(shape.memory + unit - 1) / unit * kBytesPerMiB};
}

}  // namespace control
