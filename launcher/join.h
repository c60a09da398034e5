// The program that kubectl-gang starts in the first pod of a job, by pods/exec under its user's
// rights.
#pragma once

#include <string>

namespace launcher {

// srun of a user outside of the job (slurm/remote_step.h). The end of standard input without the
// end of the task's input is a lost connection, which ends the step. Returns srun's exit code.
int run_join();

// `who`: "steps", "script", "all", or the number of a step. Returns 0 if it was sent.
int run_signal(const std::string& signal, const std::string& who);

// Ends the job with this exit code.
int run_release(const std::string& code);

// Asks the launcher of this container to end its job, which then waits again (scontrol requeue).
// Returns why it refuses; "" if it does so.
std::string request_requeue();

// Does nothing until the job ends: what salloc and an srun of its own have for a script. With
// `seconds` it ends when no join has run here for that time; the time in which a turn is off does
// not count. So a srun that is killed leaves no job.
int run_hold(const std::string& seconds);

}  // namespace launcher
