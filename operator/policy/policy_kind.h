// The description of a policy kind beyond its types: one specialization for each of
// PolicyKinds.
#pragma once

#include <string>
#include <vector>

#include "api/wellknown.h"
#include "operator/write/write_point.h"
#include "translation/config_acceptance.h"

namespace control {

// Each has:
//   kThread    the name of the thread that watches it, at most 15 characters
//   kPoint     the write of its status
//   kFollowsNodes  its verdict may change with each node that comes, without a change of its own
//   counts     returns false for an object that is never in force, whatever it says
//   check      returns what is wrong with the spec by itself: whole sentences
//   translate  adds it to what is accepted, or not, together
//   blame      the verdict on the index-th object that was added
template <typename T>
struct PolicyKind;

template <>
struct PolicyKind<kube::Partition> {
  static constexpr const char* kThread = "watch-parts";
  static constexpr WritePoint kPoint = WritePoint::kPartitionStatus;
  static constexpr bool kFollowsNodes = true;
  static bool counts(const kube::Partition&) { return true; }
  static std::vector<std::string> check(const kube::Partition& object) {
    return check_partition(object);
  }
  static void translate(AcceptanceInput& input, SpecCandidate<kube::PartitionSpec> candidate) {
    input.partitions.push_back(std::move(candidate));
  }
  static const SpecVerdict& blame(const Acceptance& acceptance, std::size_t index) {
    return acceptance.partitions[index];
  }
};

template <>
struct PolicyKind<kube::Qos> {
  static constexpr const char* kThread = "watch-qos";
  static constexpr WritePoint kPoint = WritePoint::kQosStatus;
  static constexpr bool kFollowsNodes = false;
  static bool counts(const kube::Qos&) { return true; }
  static std::vector<std::string> check(const kube::Qos& object) { return check_qos(object); }
  static void translate(AcceptanceInput& input, SpecCandidate<kube::QosSpec> candidate) {
    input.qos.push_back(std::move(candidate));
  }
  static const SpecVerdict& blame(const Acceptance& acceptance, std::size_t index) {
    return acceptance.qos[index];
  }
};

template <>
struct PolicyKind<kube::Account> {
  static constexpr const char* kThread = "watch-accounts";
  static constexpr WritePoint kPoint = WritePoint::kAccountStatus;
  static constexpr bool kFollowsNodes = false;
  static bool counts(const kube::Account&) { return true; }
  static std::vector<std::string> check(const kube::Account& object) {
    return check_account(object);
  }
  static void translate(AcceptanceInput& input, SpecCandidate<kube::AccountSpec> candidate) {
    input.accounts.push_back(std::move(candidate));
  }
  static const SpecVerdict& blame(const Acceptance& acceptance, std::size_t index) {
    return acceptance.accounts[index];
  }
};

// Only the one of a fixed name counts.
template <>
struct PolicyKind<kube::SchedulerConfig> {
  static constexpr const char* kThread = "watch-config";
  static constexpr WritePoint kPoint = WritePoint::kConfigStatus;
  static constexpr bool kFollowsNodes = false;
  static bool counts(const kube::SchedulerConfig& object) {
    return object.metadata.name == kube::kSchedulerConfigName;
  }
  static std::vector<std::string> check(const kube::SchedulerConfig& object) {
    return check_config(object);
  }
  static void translate(AcceptanceInput& input,
                        SpecCandidate<kube::SchedulerConfigSpec> candidate) {
    input.config = std::move(candidate);
  }
  static const SpecVerdict& blame(const Acceptance& acceptance, std::size_t) {
    return acceptance.config;
  }
};

}  // namespace control
