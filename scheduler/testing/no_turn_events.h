// NoTurnEvents: for Turns in tests of parts beside which no engine stands. It does not carry out
// what the gang asks for, so only configurations without gang may be tested with it.
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
