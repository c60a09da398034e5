// NoTurnEvents: for Turns in tests of parts beside which no engine stands. What the gang would ask
// of it is not carried out, so only configurations without gang may be tested with it.
#pragma once

#include <optional>

#include "scheduler/gang/turns.h"

namespace sched::testing {

class NoTurnEvents final : public gang::TurnEvents {
 public:
  void must_end(Job&, std::optional<JobId>) override {}
  void times_changed(Job&) override {}
  void resumed(Job&) override {}
};

}  // namespace sched::testing
