// Fixture of the tests of the real program: a node with two gangs that take turns, and what a test
// asks about it. Skips, and says why, where this machine has no freezer of that version.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "linux/testing/shell.h"
#include "node-agent/testing/agent_process.h"

namespace agent::testing {

inline constexpr base::Duration kSlice = std::chrono::milliseconds{200};

class AgentProcessFixture : public ::testing::TestWithParam<CgroupVersion> {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Adds pods a and b of two jobs that take turns.
  void two_gangs();
  // Neither of the two has a turn: started, the agent has frozen both.
  bool two_frozen_gangs();
  bool frozen(const std::string& pod) { return node_->is_asked_frozen(pod); }
  bool both_frozen() { return frozen("a") && frozen("b"); }
  bool both_freeze();
  // Exactly one of a and b is frozen, and it is the one whose slot it is not. The switch may be
  // under way, so looks near a boundary do not count.
  bool takes_turns();
  bool takes_turns_soon(base::Duration limit = std::chrono::seconds{5});
  // Now the one, now the other: what a dead agent left behind does not look like that.
  bool goes_on_taking_turns();
  bool all_run() { return !frozen("a") && !frozen("b"); }
  bool all_run_for(base::Duration span);

  // Returns the time until `condition` holds, less the time for which this thread was kept from its
  // CPU; nullopt if it does not hold within `limit`.
  std::optional<base::Duration> time_until(const std::function<bool()>& condition,
                                           base::Duration limit = std::chrono::seconds{20}) const;
  // Each of the two has run, though one of them was off when it began: within the limit, and the
  // time for which this thread was kept from its CPU.
  bool both_have_run_within(base::Duration limit);
  // Prints how long it took, without a demand: the machine may be busy.
  void tell(const std::string& what, base::Duration since);

  // After SIGTERM: the time until it ended, and the exit code; nullopt if it did not.
  struct Stop {
    std::optional<base::Duration> time{};
    std::optional<int> code{};
  };
  Stop stopped();
  void kill_container();
  // Until the program has begun: before that a signal meets the process that is to become it.
  bool has_begun();
  std::string log_text() const;
  // Asks the program that was started last, on its port; returns head and body, "" = nothing.
  std::string get(const std::string& path) const;

  // Runs the agent's program with these arguments, as a shell reads them.
  os::testing::Output run_program(const std::string& arguments) const;

  RealSwitchClock clock_;
  std::unique_ptr<AgentProcess> node_;
};

}  // namespace agent::testing
