// Annotations that clients write and read. The operator copies the user of a Job into its status,
// by which API servers select, gives its name to its pods, and reads none else.
#pragma once

#include <string_view>

namespace kube {

// A Job's user who submitted it, which the chart's policies keep true, and its name and comment if
// they were changed after that (scontrol update).
inline constexpr std::string_view kAnnotationUser = "kubegang.io/user";
inline constexpr std::string_view kAnnotationName = "kubegang.io/name";
inline constexpr std::string_view kAnnotationComment = "kubegang.io/comment";
// On a Node that scontrol drained: the reason, the user and the time.
inline constexpr std::string_view kAnnotationReason = "kubegang.io/reason";
inline constexpr std::string_view kAnnotationReasonUser = "kubegang.io/reason-user";
inline constexpr std::string_view kAnnotationReasonTime = "kubegang.io/reason-time";

}  // namespace kube
