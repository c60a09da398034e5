#include "scheduler/backfill/refusals.h"

namespace sched {
namespace {

// They are gone through one by one at each question.
constexpr std::size_t kRefusalsMax = 64;

// Tasks are compared for each node, multiplied out so that all stays whole: after 4 nodes with 8
// tasks were refused, 5 nodes with 10 tasks are too, and of 5 nodes with 9 tasks nothing is known.
// True if `b` cannot start where `a` cannot.
bool needs_no_less(const JobKind& b, const JobKind& a) {
  return b.number == a.number && b.nodes >= a.nodes && b.tasks * a.nodes >= a.tasks * b.nodes;
}

}  // namespace

// Returns the furthest of the refusals that apply: those of a job that needs no more, shares its
// nodes the same way, and was refused on all of these nodes and maybe others.
std::optional<std::size_t> Refusals::up_to(const Asked& asked) const {
  std::optional<std::size_t> most;
  for (const Refusal& known : all_) {
    if (most && known.gone <= *most) continue;
    if (known.may_stack != asked.may_stack || !needs_no_less(asked.kind, known.kind)) continue;
    if (known.nodes.contains(asked.nodes)) most = known.gone;
  }
  return most;
}

// Refusals that say no more than this one are superfluous.
void Refusals::add(const Asked& asked, std::size_t gone) {
  if (up_to(asked) == gone) return;
  std::erase_if(all_, [&](const Refusal& known) {
    return known.gone <= gone && known.may_stack == asked.may_stack &&
           needs_no_less(known.kind, asked.kind) && asked.nodes.contains(known.nodes);
  });
  if (all_.size() == kRefusalsMax) all_.erase(all_.begin());
  all_.push_back({asked.kind, asked.may_stack, asked.nodes, gone});
}

}  // namespace sched
