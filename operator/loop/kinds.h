// The kinds of objects that the operator watches, as lists that everything else is folded from: the
// Inbox, the Informers, the PolicyBook, the effects. A new kind is an entry here; the compiler then
// asks for its trait: of a policy for its PolicyKind<T> (policy/policy_kind.h), of any other kind
// for its Watch<T> (informers.cc) and for a ControlLoop::observe(Changes<T>).
#pragma once

#include <tuple>
#include <type_traits>
#include <variant>

#include "api/account.h"
#include "api/job.h"
#include "api/node_timetable.h"
#include "api/partition.h"
#include "api/qos.h"
#include "api/scheduler_config.h"
#include "api/usage_record.h"
#include "kube/api/batch_job.h"
#include "kube/api/node.h"
#include "kube/api/pod.h"
#include "kube/api/pod_group.h"

namespace control {

template <typename... T>
struct Kinds {
  // std::tuple<Of<T>...>
  template <template <typename> typename Of>
  using Tuple = std::tuple<Of<T>...>;

  // std::variant<More..., Of<T>...>
  template <template <typename> typename Of, typename... More>
  using Variant = std::variant<More..., Of<T>...>;

  template <typename U>
  static constexpr bool kContains = (std::is_same_v<T, U> || ...);

  // Calls action(std::type_identity<T>{}) for each kind, in the order of the list.
  template <typename Action>
  static void for_each(Action action) {
    (action(std::type_identity<T>{}), ...);
  }
};

template <typename... T, typename... U>
Kinds<T..., U...> joined_kinds(Kinds<T...>, Kinds<U...>);

// The kinds that administrators write: specs that are in force only if they are legal together.
using PolicyKinds = Kinds<kube::Partition, kube::Qos, kube::Account, kube::SchedulerConfig>;
// The kinds in the order in which the loop takes their changes: those that others are judged by
// come first.
using WatchedKinds = decltype(joined_kinds(
    PolicyKinds{}, Kinds<kube::NodeTimetable, kube::UsageRecord, kube::Node, kube::BatchJob,
                         kube::PodGroup, kube::Job, kube::Pod>{}));

}  // namespace control
