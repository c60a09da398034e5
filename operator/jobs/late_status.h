// A status that an operator that no longer leads may have stored: it was paused, or the network
// held its write, and the write reached the API server when its successor had listed the job and
// not written it yet. Neither version nor term refuses it then (architecture.md 3, "Terms").
// It had no consequences: before each further write the old one checks whether it leads. Pure.
#pragma once

#include "api/job.h"

namespace control {

enum class LateStatus {
  kInforms,  // others build nothing on it, and it may be written over
  kStart,    // of which no pod was made: it may be undone, and its number is used up
  kMore,     // for example an end, which is final: it must be taken as it is
};

// `known`: as the successor has listed it.
LateStatus late_status(const kube::JobStatus& known, const kube::JobStatus& late);

}  // namespace control
