// Decides which specs of SchedulerConfig, Partitions, QOS and Accounts are in force: the newest
// ones if they are legal together (C1-C20 of slurm-semantics.md 1.6), for the others the last
// accepted ones. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/account.h"
#include "api/partition.h"
#include "api/qos.h"
#include "api/scheduler_config.h"
#include "kube/api/node.h"
#include "scheduler/model/config.h"
#include "translation/account_translation.h"
#include "translation/config_translation.h"
#include "translation/partition_translation.h"
#include "translation/qos_translation.h"

namespace control {

// One object as it is stored.
template <typename Spec>
struct SpecCandidate {
  std::string name;
  base::Instant created{};
  const Spec* newest = nullptr;
  const Spec* accepted = nullptr;     // in force until now; null: none was ever legal
  std::vector<std::string> problems;  // of the newest by itself (check_…)
};

struct SpecVerdict {
  bool newest_in_force = false;
  bool any_in_force = false;          // false: the object counts as absent
  std::vector<std::string> problems;  // why the newest is not in force: whole sentences
  std::vector<std::string> warnings;  // legal, but hardly wanted
};

struct AcceptanceInput {
  std::optional<SpecCandidate<kube::SchedulerConfigSpec>> config;  // nullopt: all defaults
  // Partitions in the order in which they were created (it breaks ties).
  std::vector<SpecCandidate<kube::PartitionSpec>> partitions;
  std::vector<SpecCandidate<kube::QosSpec>> qos;
  std::vector<SpecCandidate<kube::AccountSpec>> accounts;
  std::span<const kube::Node* const> nodes;
};

struct Acceptance {
  sched::Configuration configuration;  // legal
  OperatorParameters parameters;
  SpecVerdict config;
  std::vector<SpecVerdict> partitions;  // as in the input
  std::vector<SpecVerdict> qos;
  std::vector<SpecVerdict> accounts;
};

// Cost: for each spec that gives way the whole configuration is translated and checked once more.
Acceptance accept(const AcceptanceInput& input);

}  // namespace control
