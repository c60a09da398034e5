// Programs in the first pod of a job, by pods/exec under the rights of the user who calls: srun and
// scancel -s from outside of a job, and the job that srun and salloc make for themselves.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/job.h"
#include "cli/cluster/session.h"
#include "cli/cluster/submit.h"
#include "cli/program.h"
#include "kube/api/pod.h"

namespace cli {

// Takes the signals that users send to a command that waits, for as long as it lives; they then
// come by the descriptor.
class TakenSignals {
 public:
  TakenSignals();
  ~TakenSignals();
  TakenSignals(const TakenSignals&) = delete;
  TakenSignals& operator=(const TakenSignals&) = delete;

  int descriptor() const { return descriptor_; }
  // 0: none has come.
  int next() const;

 private:
  int descriptor_ = -1;
};

// Returns the pod of the job's first node; nullopt while it does not run. kInvalidArgument: the job
// has no batch script, so nothing in its pods takes steps. `task`: of an array, of which the job's
// status is.
base::Result<std::optional<kube::Pod>> first_pod(const Session& session, const kube::Job& job,
                                                 std::optional<int> task = std::nullopt);

// Asks the launcher in that pod (launcher/join.h). Returns its exit code; what it says goes
// to `output.err`. Blocks while the pod is frozen; a signal ends that (kCancelled), and so does the
// time `until` of the session's monotonic clock (kTimeout): the launcher may hear it later.
base::Result<int> ask_launcher(const Session& session, const kube::Pod& pod,
                               std::vector<std::string> words, const TakenSignals& signals,
                               Output output, std::optional<base::Duration> until = std::nullopt);

struct RemoteStep {
  std::vector<std::string> arguments;  // of srun
  std::vector<std::string> variables;  // NAME=VALUE
  std::string directory;
  bool has_terminal = false;  // --pty, and standard input is one
  bool has_input = true;      // its tasks read our standard input, not a file or nothing (-i)
};
struct StepEnd {
  int code = 0;
  bool was_interrupted = false;  // by Ctrl-C that was meant: a second one within a second
};
// Runs srun there, with our standard input, output and error. Signals are passed on, and srun there
// does with them what it always does; more of them than it takes to end a step give up
// (kCancelled), so a turn that is off does not hold the user.
base::Result<StepEnd> run_step(const Session& session, const kube::Pod& pod, const RemoteStep& step,
                               const TakenSignals& signals);

// A job without a script, whose nodes are used from outside. `speaker` is "srun" or "salloc".
struct HeldJob {
  kube::Job job;
  kube::Pod pod;
  std::string speaker;  // begins messages about it: the command's name
};
// Submits it and waits until it runs. Says on `output.err` what it waits for. A signal meanwhile
// cancels it (kCancelled).
base::Result<HeldJob> hold_job(const Session& session, SubmitRequest request,
                               const std::string& speaker, const TakenSignals& signals,
                               Output output);
// Ends it as a script with that exit code would, and waits a moment for its end; a job that cannot
// be reached is canceled, and a right that its user lacks is named.
void release_job(const Session& session, const HeldJob& held, int exit_code,
                 const TakenSignals& signals, Output output);
// False: not yet, or the API server cannot be asked.
bool has_ended(const Session& session, const kube::Job& job);
// Waits 10 s for that at most; a signal ends it.
bool ends_soon(const Session& session, const kube::Job& job, const TakenSignals& signals);
base::Status cancel_job(const Session& session, const kube::Job& job);

}  // namespace cli
