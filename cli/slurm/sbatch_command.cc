#include "cli/slurm/sbatch_command.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>

#include "cli/cluster/after_submit.h"
#include "cli/cluster/submit.h"
#include "cli/cluster/user.h"
#include "cli/cluster/whatif.h"
#include "cli/files.h"
#include "cli/local_zone.h"
#include "cli/slurm/job_facts.h"
#include "kube/clock.h"
#include "slurm/distribution.h"
#include "slurm/exit_code.h"
#include "slurm/sbatch.h"

namespace cli {
namespace {

constexpr base::Duration kEndPollEvery = std::chrono::milliseconds{250};

// SOURCE: sbatch(1), "INPUT ENVIRONMENT VARIABLES": they beat the script and are beaten by the
// command line.
constexpr std::array kInputVariables = {
    InputVariable{"SBATCH_ARRAY_INX", "--array"},
    InputVariable{"SBATCH_ACCOUNT", "--account"},
    InputVariable{"SBATCH_CLUSTERS", "--clusters"},
    InputVariable{"SBATCH_CONSTRAINT", "--constraint"},
    InputVariable{"SBATCH_CPUS_PER_GPU", "--cpus-per-gpu"},
    InputVariable{"SBATCH_DISTRIBUTION", "--distribution"},
    InputVariable{"SBATCH_ERROR", "--error"},
    InputVariable{"SBATCH_EXPORT", "--export"},
    InputVariable{"SBATCH_GPUS", "--gpus"},
    InputVariable{"SBATCH_GPUS_PER_NODE", "--gpus-per-node"},
    InputVariable{"SBATCH_GPUS_PER_SOCKET", "--gpus-per-socket"},
    InputVariable{"SBATCH_GPUS_PER_TASK", "--gpus-per-task"},
    InputVariable{"SBATCH_GPU_BIND", "--gpu-bind"},
    InputVariable{"SBATCH_GRES", "--gres"},
    InputVariable{"SBATCH_GRES_FLAGS", "--gres-flags"},
    InputVariable{"SBATCH_HINT", "--hint"},
    InputVariable{"SBATCH_INPUT", "--input"},
    InputVariable{"SBATCH_JOB_NAME", "--job-name"},
    InputVariable{"SBATCH_MEM_PER_CPU", "--mem-per-cpu"},
    InputVariable{"SBATCH_MEM_PER_GPU", "--mem-per-gpu"},
    InputVariable{"SBATCH_MEM_PER_NODE", "--mem"},
    InputVariable{"SBATCH_OPEN_MODE", "--open-mode"},
    InputVariable{"SBATCH_OUTPUT", "--output"},
    InputVariable{"SBATCH_PARTITION", "--partition"},
    InputVariable{"SBATCH_QOS", "--qos"},
    InputVariable{"SBATCH_SIGNAL", "--signal"},
    InputVariable{"SBATCH_THREADS_PER_CORE", "--threads-per-core"},
    InputVariable{"SBATCH_TIMELIMIT", "--time"},
};

int fail(Output output, const std::string& message, int code = kExitFailed) {
  output.err << "sbatch: error: " << message << "\n";
  return code;
}

struct Sbatch {
  SubmitArguments arguments;
  bool waits = false;
  bool is_quiet = false;
  std::string question;  // --help or such
};

constexpr std::size_t kHostfileBytesMax = 16U << 20U;

// SOURCE: sbatch(1), SLURM_HOSTFILE: the nodes, and that steps are arranged as it says.
base::Status add_hostfile(std::vector<std::string>& words) {
  const char* const path = std::getenv("SLURM_HOSTFILE");
  if (path == nullptr) return {};
  const auto text = read_file(path, kHostfileBytesMax);
  if (!text) return base::Error{slurm::kEndsWithOne, text.error().message};
  words.push_back("--nodelist=" + slurm::read_hostfile(*text));
  words.emplace_back("--distribution=arbitrary");
  return {};
}

// 1. options up to the first word that is none; the rest is the script and its arguments
// 2. the variables SBATCH_*, in front of the options, so they are beaten by them
base::Result<Sbatch> read_arguments(std::span<const std::string> words, slurm::Now now) {
  Sbatch read;
  read.arguments.takes_variables = true;
  read.arguments.variables = words_of_variables(kInputVariables);
  if (const base::Status status = add_hostfile(read.arguments.variables); !status) {
    return status.error();
  }
  // A user's own defaults for pods; kubegang's, not Slurm's.
  const char* const pod_template = std::getenv("SBATCH_TEMPLATE");
  if (pod_template != nullptr) read.arguments.pod.template_file = pod_template;
  slurm::SbatchReader checked{now};
  std::size_t i = 0;
  for (; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.size() < 2 || word.front() != '-' || word == "--") break;
    if (asks_about_command(word)) {
      read.question = word;
      return read;
    }
    if (word == "-W" || word == "--wait") {
      read.waits = true;
      continue;
    }
    if (word == "-Q" || word == "--quiet") {
      read.is_quiet = true;
      continue;
    }
    // Options of `submit` that sbatch does not have.
    const base::Result<bool> of_pod = read_pod_option(words, i, read.arguments.pod);
    if (!of_pod) return of_pod.error();
    if (*of_pod) continue;
    const std::size_t first = i;
    if (const base::Status status = checked.add_option(words, i); !status) return status.error();
    for (std::size_t at = first; at <= i; ++at) read.arguments.sbatch.push_back(words[at]);
  }
  if (i < words.size() && words[i] == "--") ++i;
  read.arguments.command.assign(words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
  const auto options = checked.finish();
  if (!options) return options.error();
  read.arguments.is_script = !options->wrap;
  if (options->wrap && !read.arguments.command.empty()) {
    return base::Error{slurm::kEndsWithOne, "Script arguments not permitted with --wrap option"};
  }
  if (!options->wrap && read.arguments.command.empty()) read.arguments.command = {"-"};
  return read;
}

// The first of SBATCH_JOB_NAME and --job-name is read with the other options; the script's own name
// has no folder and keeps its ending, as sbatch has it.
void set_name(SubmitRequest& request, const Sbatch& read) {
  if (!request.options.request.name.empty()) return;
  if (!read.arguments.is_script) {
    request.name = "wrap";
  } else if (read.arguments.command.front() == "-") {
    request.name = "sbatch";
  } else {
    const std::string& path = read.arguments.command.front();
    request.name = path.substr(path.rfind('/') + 1);
  }
}

// Files are relative to where the job runs, which is where sbatch was called.
std::string working_directory(const std::optional<std::string>& given) {
  std::error_code error;
  std::filesystem::path here = std::filesystem::current_path(error);
  if (error) here = "/";
  return given ? (here / *given).lexically_normal().string() : here.string();
}

// The exit code is the job's. SOURCE: recorded: 1 if a signal has ended it, 128 + SIGTERM if it was
// canceled.
constexpr int kExitCanceled = 128 + SIGTERM;

int wait_as_sbatch(const Session& session, const kube::Job& submitted, Output output) {
  for (;;) {
    const auto job = session.client.get<kube::Job>(kube::key_of(submitted.metadata));
    if (!job) return fail(output, job.error().message);
    if (job->status.state && kube::is_final(*job->status.state)) {
      if (*job->status.state == kube::JobState::kCompleted) return kExitOk;
      if (*job->status.state == kube::JobState::kCancelled) return kExitCanceled;
      return std::max(exit_status(*job).code, kExitFailed);
    }
    if (!session.sleeper.sleep(kEndPollEvery, {})) return kExitFailed;
  }
}

// SOURCE: recorded: all of it stands on standard error, and nothing is read from -W, -Q or
// --parsable.
int test_only(const Session& session, kube::Job question, Output output) {
  const auto job = ask_operator(session, std::move(question));
  if (!job) return fail(output, job.error().message);
  const kube::JobForecast& answer = *job->status.forecast;
  if (!answer.start_time) {
    output.err << "allocation failure: " << answer.message << "\n";
    return kExitFailed;
  }
  output.err << "sbatch: Job " << answer.job_id.value_or(0) << " to start at "
             << slurm_time(answer.start_time) << " using " << answer.cpus << " processors on nodes "
             << answer.hostlist << " in partition " << answer.partition << "\n";
  if (answer.stops) output.err << "sbatch:   Preempts: " << preempted_text(*answer.stops) << "\n";
  return kExitOk;
}

int submit(const Session& session, const SubmitRequest& request, const Sbatch& read,
           Output output) {
  base::Result<kube::Job> object = job_object(request, session.ns);
  if (!object) return fail(output, object.error().message);
  set_user(session, *object);
  if (request.options.test_only) return test_only(session, std::move(*object), output);
  base::Result<kube::Job> job = session.client.create<kube::Job>(*object);
  if (job) job = number_or_take_back(session, *job, output, "sbatch");
  if (!job) return fail(output, "Batch job submission failed: " + job.error().message);
  const std::string id = std::to_string(*job->status.job_id);
  if (request.options.is_parsable) {
    output.out << id << (request.options.cluster.empty() ? "" : ";" + request.options.cluster)
               << "\n";
  } else if (!read.is_quiet) {
    const std::string& cluster = request.options.cluster;
    output.out << "Submitted batch job " << id << (cluster.empty() ? "" : " on cluster " + cluster)
               << "\n";
  }
  output.out.flush();
  const bool waits = read.waits || request.options.waits;
  return waits ? wait_as_sbatch(session, *job, output) : kExitOk;
}

}  // namespace

int run_sbatch(std::span<const std::string> arguments, const WithCluster& with_cluster,
               Output output) {
  const slurm::Now now = local_time(kube::SystemClock{}.wall());
  const auto read = read_arguments(arguments, now);
  if (!read) return fail(output, read.error().message, slurm::exit_code_of(read.error()));
  if (!read->question.empty()) {
    output.out << answer_about_command("sbatch", "SCRIPT [ARGUMENTS]", read->question,
                                       slurm::sbatch_help());
    return kExitOk;
  }
  base::Result<SubmitRequest> request = read_submit(read->arguments, now);
  if (!request) {
    return fail(output, request.error().message, slurm::exit_code_of(request.error()));
  }
  for (const std::string& warning : request->options.warnings) {
    output.err << "sbatch: warning: " << warning << "\n";
  }
  set_name(*request, *read);
  request->options.working_directory = working_directory(request->options.working_directory);
  return with_cluster.in(request->options.cluster)(
      [&](const Session& session) { return submit(session, *request, *read, output); });
}

}  // namespace cli
