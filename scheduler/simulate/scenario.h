// A scenario: a cluster and what happens to it, in order. The command line reads it from a file
// (cli/scenario.h); tests build it. Everything in it is valid by type: names are resolved, options
// parsed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/time.h"
#include "scheduler/model/config.h"
#include "scheduler/model/job.h"
#include "scheduler/model/node.h"

namespace simulate {

// A job as the scenario names it. Its number is its position in Scenario::jobs plus one. An array
// is followed by its tasks, whose requests lack `array`; its own holds what they share.
struct Job {
  std::string label;
  sched::JobRequest request;
  // How long it works; nothing = until the scenario ends it.
  std::optional<base::Duration> work;
  bool ignores_term = false;  // its program does not end at SIGTERM
  friend bool operator==(const Job&, const Job&) = default;
};

// --- what can happen ---

struct SubmitJob {
  sched::JobId job;
};
// One pass of the scheduler.
struct TellPass {
  bool main = false;
  bool backfill = false;
};
struct TellSlice {};
// All processes of the job are gone and its nodes are clean.
struct TellEnd {
  sched::JobId job;
  int exit_code = 0;
  int signal = 0;
};
struct TellTimeLimit {
  sched::JobId job;
};
enum class CommandKind { kSuspend, kResume, kHold, kRelease, kCancel, kRequeue };
struct Command {
  CommandKind kind;
  sched::JobId job;
};
struct SetNodeState {
  std::vector<std::string> nodes;
  sched::NodeState state;
};
// The whole configuration from now on.
struct SetConfiguration {
  sched::Configuration configuration;
};
struct UpdateJob {
  sched::JobRequest request;
};

using Happening = std::variant<SubmitJob, TellPass, TellSlice, TellEnd, TellTimeLimit, Command,
                               SetNodeState, SetConfiguration, UpdateJob>;

struct Input {
  base::Instant at{};
  // Nothing: it was refused where it was recorded, and changes nothing.
  std::optional<Happening> happening;
};

struct Scenario {
  std::string name;
  sched::Configuration configuration;
  std::vector<sched::NodeSpec> nodes;
  std::vector<Job> jobs;
  std::vector<Input> inputs;         // in order; their instants do not go back
  std::optional<base::Instant> end;  // nothing happens from here on
  // Settings that are legal but unsafe or without effect (1.6), one sentence each.
  std::vector<std::string> warnings;

  // Returns true if timing is given, not simulated: a pass, a slice or an end is among the inputs,
  // or one that was refused where it was recorded.
  bool timing_is_told() const;

  // Calls visit(task) with the id of each task of the job that is an array, else with the job's.
  void each_task(sched::JobId id, const auto& visit) const {
    const std::optional<sched::ArrayRequest>& array = job(id).request.array;
    if (!array) return visit(id);
    array->tasks.each([&](int task) { visit(sched::JobId::of_task(id, task)); });
  }
  bool has(sched::JobId id) const;
  // Returns the job's position in `jobs`.
  std::size_t index_of(sched::JobId id) const;
  const Job& job(sched::JobId id) const { return jobs.at(index_of(id)); }
};

// Slurm's spelling of a state: "NODE_FAIL".
std::string_view state_name(sched::JobState state);
// squeue's code: "PD", "R", "S", "CD" …
std::string_view state_code(sched::JobState state);
// Slurm's spelling of a reason: "JobHeldUser".
std::string_view reason_name(sched::Reason reason);

// Slurm's CPU ids of cores on a node, as ranges: core c has the ids c × threads … (2 threads: core
// 1 is "2-3"). A node whose CPUs are its cores has one id per core.
std::string cpu_ids(const sched::NodeSpec& node, const sched::CoreSet& cores);

}  // namespace simulate
