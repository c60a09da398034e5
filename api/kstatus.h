// A condition for tools that wait for objects of any kind: Flux, Helm, kpt. SOURCE: kstatus of
// sigs.k8s.io/cli-utils, which reads Stalled=True as failed and Ready=False as not there yet.
#pragma once

#include <string_view>

namespace kube {

// True while nothing but a change by people leads on: the spec is refused, or the job has failed.
inline constexpr std::string_view kStalled = "Stalled";

}  // namespace kube
