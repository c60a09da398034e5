// A dependency: which other jobs a job waits for, and what must become of them (13.1).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "scheduler/model/ids.h"

namespace sched {

enum class DependencyKind : std::uint8_t {
  kAfter,       // it has started, or was canceled before; and `delay` is over since then
  kAfterAny,    // it has ended
  kAfterOk,     // it has completed, with exit code 0
  kAfterNotOk,  // it has ended otherwise
  kAfterCorr,   // each task of this array waits for the one of that number there, as kAfterOk
  kSingleton,   // no other job of this user and name runs, or waits with a lower number
};

struct DependencyTerm {
  DependencyKind kind = DependencyKind::kAfterAny;
  // The job, the array (all of its tasks) or the task that is waited for; 0 = it does not exist
  // yet, and is waited for all the same.
  JobId job{};
  base::Duration delay{0};  // with kAfter
  friend bool operator==(const DependencyTerm&, const DependencyTerm&) = default;
};

struct Dependency {
  bool any = false;  // one term is enough
  // True: the job is canceled if the terms can never hold; nullopt = the cluster's default.
  std::optional<bool> kill_invalid;
  std::vector<DependencyTerm> terms;
  friend bool operator==(const Dependency&, const Dependency&) = default;
};

// The state of a term. A term that is met or failed stays so, whatever happens to the other job.
enum class TermState : std::uint8_t { kOpen, kMet, kFailed };

// Returns what the terms amount to; kMet without terms.
inline TermState state_of(const std::vector<TermState>& terms, bool any) {
  if (terms.empty()) return TermState::kMet;
  const TermState decides = any ? TermState::kMet : TermState::kFailed;
  if (std::ranges::count(terms, decides) > 0) return decides;
  return std::ranges::count(terms, TermState::kOpen) > 0 ? TermState::kOpen
         : any                                           ? TermState::kFailed
                                                         : TermState::kMet;
}

}  // namespace sched
