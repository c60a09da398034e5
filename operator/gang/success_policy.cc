#include "operator/gang/success_policy.h"

#include <algorithm>

#include "base/number_list.h"
#include "operator/gang/gang_observation.h"
#include "translation/success_policy_check.h"

namespace control {
namespace {

// A pod that has succeeded, and when its last container ended.
struct Success {
  int index = 0;
  base::Instant at{};
};

// Returns the pods that have succeeded, sorted by index. REQUIRES: `before` is sorted. Success that
// is known from before counts once, even if a pod with that index is still there.
std::vector<Success> successes(std::span<const PodSlot> slots, std::span<const SlotPod> pods,
                               base::Instant now, std::span<const int> before) {
  std::vector<Success> all;
  // When those ended does not matter: something had to fail before them, and nothing had.
  for (const int index : before) all.push_back({.index = index});
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (!pods[i].has_succeeded || std::ranges::binary_search(before, slots[i].pod_index)) continue;
    // Without times in its status the pod ended just now, as far as is known.
    all.push_back({slots[i].pod_index, pods[i].last_finished.value_or(now)});
  }
  std::ranges::sort(all, {}, &Success::index);
  return all;
}

// Returns when the rule was met: when the count-th of the pods that it names had ended; nullopt if
// it is not met yet.
// Without a list any pods count, without a count all that are listed.
std::optional<base::Instant> met_at(const kube::SuccessRule& rule,
                                    std::span<const Success> successes) {
  std::vector<int> named =
      base::parse_number_list(rule.succeeded_indexes, kPodIndexMax).value_or(std::vector<int>{});
  std::sort(named.begin(), named.end());
  std::vector<base::Instant> ends;
  for (const Success& success : successes) {
    const bool is_named =
        named.empty() || std::binary_search(named.begin(), named.end(), success.index);
    if (is_named) ends.push_back(success.at);
  }
  const std::size_t needed =
      rule.succeeded_count ? static_cast<std::size_t>(*rule.succeeded_count) : named.size();
  // 0 only for a rule that says nothing, which is refused (success_policy_problems).
  if (needed == 0 || ends.size() < needed) return std::nullopt;
  const auto last = ends.begin() + static_cast<std::ptrdiff_t>(needed - 1);
  // The rule was met when the count-th of the named pods ended; later ends do not move that
  // instant.
  std::nth_element(ends.begin(), last, ends.end());
  return *last;
}

}  // namespace

// `now` is used only for pods whose end has no time.
std::optional<EarlySuccess> early_success(const kube::SuccessPolicy& policy,
                                          std::span<const PodSlot> slots,
                                          std::span<const SlotPod> pods, base::Instant now,
                                          std::span<const int> before) {
  const std::vector<Success> all = successes(slots, pods, now, before);
  for (std::size_t i = 0; i < policy.rules.size(); ++i) {
    // The first rule in the order of the list that is met, as in a batch Job's successPolicy.
    const auto at = met_at(policy.rules[i], all);
    if (!at) continue;
    std::vector<int> succeeded;
    for (const Success& success : all) succeeded.push_back(success.index);
    return EarlySuccess{.at = *at, .rule = i, .succeeded = base::format_number_list(succeeded)};
  }
  return std::nullopt;
}

}  // namespace control
