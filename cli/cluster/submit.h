// `kubectl gang submit`: a batch script or a command becomes a Job object.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/job.h"
#include "cli/cluster/pod_options.h"
#include "cli/cluster/session.h"
#include "cli/program.h"
#include "scheduler/model/dependency.h"
#include "slurm/sbatch.h"

namespace cli {

// The image of a command; a batch script without one gets its partition's, or the operator's, which
// is the same.
inline constexpr const char* kImageDefault = "debian:stable-slim";

enum class SubmitOutput { kSentence, kName, kNumber, kYaml, kJson };
enum class DryRun { kNone, kClient, kServer };

// The command line after `submit`.
struct SubmitArguments {
  std::vector<std::string> sbatch;     // sbatch's options, in order
  std::vector<std::string> variables;  // options that variables stand for; those of `sbatch` win
  std::vector<std::string> command;    // behind `--`; else the script and its arguments
  bool is_script = false;
  // Takes those of this process, unless --export says otherwise or this is outside of the cluster
  // (sbatch).
  bool takes_variables = false;
  bool is_allocation = false;  // of salloc or srun, whose steps bring their variables
  PodOptions pod;
  DryRun dry_run = DryRun::kNone;
  bool wait = false;  // for the job's end, and exit as it did
  std::optional<base::Duration> ttl_after_finished{};
  SubmitOutput output = SubmitOutput::kSentence;
  ConnectOptions connect;
  bool help = false;
};

// An error is wrong usage. sbatch's options are checked here and read as sbatch reads them; -o and
// --output with yaml, json or name are the output's format. `only_asks`: nothing is run, so nothing
// must be named that would be (whatif).
base::Result<SubmitArguments> read_submit_arguments(std::span<const std::string> arguments,
                                                    slurm::Now now, bool only_asks = false);

// An annotation of a Job: its script and the arguments, as scontrol shows them.
inline constexpr std::string_view kAnnotationCommand = "kubegang.io/command";

struct SubmitRequest {
  slurm::BatchOptions options;
  std::vector<std::string> command;  // of the pods' one container; else there is a script
  std::optional<kube::JobBatch> batch{};
  std::string script_file{};     // "": it has come from standard input, or from --wrap
  std::string name;              // the object's name begins with it
  kube::RawJson pod_template{};  // without the command
  std::optional<base::Duration> ttl_after_finished{};
};

// Reads the script, if there is one: its #SBATCH lines first, then the command line's options.
base::Result<SubmitRequest> read_submit(const SubmitArguments& arguments, slurm::Now now);

// Translates --dependency; nullopt if there is none.
std::optional<kube::JobDependency> dependency_of(const sched::Dependency& asked);

// kInvalidArgument: an option that the Job API has no field for.
base::Result<kube::Job> job_object(const SubmitRequest& request, const std::string& ns);

// The names of devices that the cluster counts are in its SchedulerConfig. Without an answer the
// operator has the word.
base::Status check_devices(const Session& session, const kube::Job& job);

// The devices of a request as the API has them.
std::vector<kube::JobDevice> devices_of(const sched::Devices& devices);

// Creates it. `session` is null when nothing is to be sent (DryRun::kClient).
int run_submit(const Session* session, const std::string& ns, const SubmitArguments& arguments,
               const SubmitRequest& request, Output output);

std::string submit_help();

}  // namespace cli
