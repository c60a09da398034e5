#include "scheduler/gang/turns.h"

#include "scheduler/gang/own_turns.h"
#include "scheduler/gang/told_turns.h"

namespace sched::gang {

std::unique_ptr<Turns> make_turns(const Options& options, const Cluster& cluster, JobBooks& books,
                                  TurnEvents& events) {
  if (options.told_timing) return std::make_unique<ToldTurns>(cluster, books, events);
  return std::make_unique<OwnTurns>(cluster, books, events, options.publishes);
}

}  // namespace sched::gang
