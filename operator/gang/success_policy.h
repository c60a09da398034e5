// Decides when a gang is complete although not all of its pods have succeeded
// (spec.lifecycle.successPolicy): a driver is done and its workers would wait forever. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "api/job.h"
#include "base/time.h"
#include "translation/pod_slots.h"

namespace control {

struct SlotPod;

struct EarlySuccess {
  base::Instant at{};       // when the last pod that was needed had ended
  std::size_t rule = 0;     // that is met
  std::string succeeded{};  // indexes of all pods that have succeeded: "0,2-3"
};
// Judges by the first rule that is met. `before`: indexes of pods that succeeded earlier, sorted;
// their slots have other pods by now. Cost: for each rule the pods, if any pod has succeeded.
// REQUIRES: success_policy_problems() finds none.
std::optional<EarlySuccess> early_success(const kube::SuccessPolicy& policy,
                                          std::span<const PodSlot> slots,
                                          std::span<const SlotPod> pods, base::Instant now,
                                          std::span<const int> before = {});

}  // namespace control
