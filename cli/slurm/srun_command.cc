#include "cli/slurm/srun_command.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "cli/cluster/batch_variables.h"
#include "cli/local_zone.h"
#include "cli/slurm/job_facts.h"
#include "cli/slurm/remote_step.h"
#include "kube/clock.h"
#include "slurm/exit_code.h"
#include "slurm/sbatch.h"

namespace cli {
namespace {

// The owner of an option: the job that is made, the step, or both. Options that are not here are
// the job's, and sbatch's reader says if there is no such.
enum class Whose { kStep, kBoth, kRefused };

struct SrunOption {
  char letter;  // '\0': none
  std::string_view name;
  WordTakes takes;
  Whose whose;
};

// SOURCE: srun(1). The launcher reads those of the step (launcher/srun_options.cc).
constexpr std::array kOptions = {
    SrunOption{'c', "cpus-per-task", WordTakes::kValue, Whose::kBoth},
    SrunOption{'J', "job-name", WordTakes::kValue, Whose::kBoth},
    SrunOption{'O', "overcommit", WordTakes::kNothing, Whose::kBoth},
    SrunOption{'\0', "export", WordTakes::kValue, Whose::kBoth},
    SrunOption{'\0', "gpus-per-task", WordTakes::kValue, Whose::kBoth},
    SrunOption{'\0', "ntasks-per-gpu", WordTakes::kValue, Whose::kBoth},
    SrunOption{'\0', "gpu-bind", WordTakes::kValue, Whose::kStep},
    SrunOption{'r', "relative", WordTakes::kValue, Whose::kStep},
    SrunOption{'m', "distribution", WordTakes::kValue, Whose::kStep},
    SrunOption{'\0', "exact", WordTakes::kNothing, Whose::kStep},
    SrunOption{'\0', "overlap", WordTakes::kNothing, Whose::kStep},
    SrunOption{'l', "label", WordTakes::kNothing, Whose::kStep},
    SrunOption{'u', "unbuffered", WordTakes::kNothing, Whose::kStep},
    SrunOption{'Q', "quiet", WordTakes::kNothing, Whose::kStep},
    SrunOption{'\0', "multi-prog", WordTakes::kNothing, Whose::kStep},
    SrunOption{'K', "kill-on-bad-exit", WordTakes::kMaybeValue, Whose::kStep},
    SrunOption{'W', "wait", WordTakes::kValue, Whose::kStep},
    SrunOption{'\0', "open-mode", WordTakes::kValue, Whose::kStep},
    SrunOption{'o', "output", WordTakes::kValue, Whose::kStep},
    SrunOption{'e', "error", WordTakes::kValue, Whose::kStep},
    SrunOption{'i', "input", WordTakes::kValue, Whose::kStep},
    SrunOption{'D', "chdir", WordTakes::kValue, Whose::kStep},
    SrunOption{'\0', "jobid", WordTakes::kValue, Whose::kStep},
    SrunOption{'\0', "mpi", WordTakes::kValue, Whose::kStep},
    SrunOption{'\0', "cpu-bind", WordTakes::kValue, Whose::kStep},
    SrunOption{'\0', "cpu_bind", WordTakes::kValue, Whose::kStep},
    SrunOption{'\0', "mem-bind", WordTakes::kValue, Whose::kStep},
    SrunOption{'\0', "propagate", WordTakes::kMaybeValue, Whose::kStep},
    SrunOption{'v', "verbose", WordTakes::kNothing, Whose::kStep},
    SrunOption{'X', "disable-status", WordTakes::kNothing, Whose::kStep},
    SrunOption{'I', "immediate", WordTakes::kMaybeValue, Whose::kRefused},
    SrunOption{'\0', "pty", WordTakes::kMaybeValue, Whose::kStep},
    SrunOption{'\0', "quit-on-interrupt", WordTakes::kNothing, Whose::kStep}};

// SOURCE: srun(1), "INPUT ENVIRONMENT VARIABLES": those of the job that srun makes; those of the
// step are read where it runs. The command line beats them.
constexpr std::array kInputVariables = {
    InputVariable{"SLURM_ACCOUNT", "--account"},
    InputVariable{"SLURM_CONSTRAINT", "--constraint"},
    InputVariable{"SLURM_CPUS_PER_GPU", "--cpus-per-gpu"},
    InputVariable{"SLURM_GPUS", "--gpus"},
    InputVariable{"SLURM_GPUS_PER_NODE", "--gpus-per-node"},
    InputVariable{"SLURM_GPUS_PER_SOCKET", "--gpus-per-socket"},
    InputVariable{"SLURM_GPUS_PER_TASK", "--gpus-per-task"},
    InputVariable{"SLURM_GRES", "--gres"},
    InputVariable{"SLURM_JOB_NAME", "--job-name"},
    InputVariable{"SLURM_JOB_NUM_NODES", "--nodes"},
    InputVariable{"SLURM_MEM_PER_CPU", "--mem-per-cpu"},
    InputVariable{"SLURM_MEM_PER_GPU", "--mem-per-gpu"},
    InputVariable{"SLURM_MEM_PER_NODE", "--mem"},
    InputVariable{"SLURM_NPROCS", "--ntasks"},
    InputVariable{"SLURM_NTASKS", "--ntasks"},
    InputVariable{"SLURM_NTASKS_PER_GPU", "--ntasks-per-gpu"},
    InputVariable{"SLURM_NTASKS_PER_NODE", "--ntasks-per-node"},
    InputVariable{"SLURM_PARTITION", "--partition"},
    InputVariable{"SLURM_QOS", "--qos"},
    InputVariable{"SLURM_TIMELIMIT", "--time"},
    InputVariable{"SRUN_CPUS_PER_TASK", "--cpus-per-task"},
};

int fail(Output output, const std::string& message, int code = kExitFailed) {
  output.err << "srun: error: " << message << "\n";
  return code;
}

struct Srun {
  std::vector<std::string> of_job;     // sbatch's options
  std::vector<std::string> variables;  // and those that variables stand for
  std::vector<std::string> of_step;    // srun's in the pod, with the command
  std::string exports = "ALL";
  std::string job_id;  // "": a job of its own
  std::string name;    // of the command
  bool wants_terminal = false;
  std::string input;  // -i
  PodOptions pod;
  std::string question;  // --help or such
};

const SrunOption* find_option(const std::string& word) {
  const auto found = std::ranges::find_if(kOptions, [&](const SrunOption& option) {
    return word.starts_with("--") ? word.substr(2, word.find('=') - 2) == option.name
                                  : option.letter == word[1];
  });
  return found == kOptions.end() ? nullptr : &*found;
}

// Reads the option at words[i] if it is one of the table, and moves `i` to its last word.
base::Result<bool> read_own(std::span<const std::string> words, std::size_t& i, Srun& read) {
  const std::string& word = words[i];
  const SrunOption* const option = find_option(word);
  if (option == nullptr) return false;
  if (option->whose == Whose::kRefused) {
    return base::invalid_argument("--" + std::string{option->name} +
                                  ": is not there yet outside of a job; leave it out");
  }
  const bool is_long = word.starts_with("--");
  const std::size_t equals = is_long ? word.find('=') : std::string::npos;
  // Letters without a value may stand together: "-lu".
  if (!is_long && option->takes == WordTakes::kNothing && word.size() > 2) {
    for (const char letter : word.substr(1)) {
      const std::array<std::string, 1> one{std::string{'-', letter}};
      std::size_t at = 0;
      const auto taken = read_own(one, at, read);
      if (!taken) return taken;
      if (!*taken) return base::invalid_argument("invalid option -- '" + one[0] + "'");
    }
    return true;
  }
  std::string value;
  const std::size_t first = i;
  if (equals != std::string::npos) {
    value = word.substr(equals + 1);
  } else if (!is_long && word.size() > 2) {
    value = word.substr(2);
  } else if (option->takes == WordTakes::kValue) {
    if (i + 1 >= words.size()) return base::invalid_argument(word + ": a value is missing");
    value = words[++i];
  }
  if (option->name == "export") read.exports = value;
  if (option->name == "jobid") read.job_id = value;
  if (option->name == "input") read.input = value;
  if (option->name == "pty") read.wants_terminal = true;
  for (std::size_t at = first; at <= i; ++at) {
    read.of_step.push_back(words[at]);
    if (option->whose == Whose::kBoth) read.of_job.push_back(words[at]);
  }
  return true;
}

// 1. the table's options, 2. those of the job's pods, 3. all others are sbatch's
// In a job that is there already all but the pods' are the step's.
base::Result<Srun> read_arguments(std::span<const std::string> words, slurm::Now now) {
  Srun read;
  if (const char* id = std::getenv("SLURM_JOB_ID")) read.job_id = id;
  std::vector<std::string> others;
  slurm::SbatchReader checked{now};
  std::size_t i = 0;
  for (; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.size() < 2 || word.front() != '-' || word == "--") break;
    if (asks_about_command(word)) {
      read.question = word;
      return read;
    }
    const auto own = read_own(words, i, read);
    if (!own) return own.error();
    if (*own) continue;
    const auto of_pod = read_pod_option(words, i, read.pod);
    if (!of_pod) return of_pod.error();
    if (*of_pod) continue;
    const std::size_t first = i;
    if (const base::Status status = checked.add_option(words, i); !status) return status.error();
    for (std::size_t at = first; at <= i; ++at) others.push_back(words[at]);
  }
  // --jobid may stand behind them.
  std::vector<std::string>& theirs = read.job_id.empty() ? read.of_job : read.of_step;
  theirs.insert(theirs.end(), others.begin(), others.end());
  if (read.job_id.empty()) read.variables = words_of_variables(kInputVariables);
  if (i < words.size() && words[i] == "--") ++i;
  if (i >= words.size()) return base::Error{slurm::kEndsWithOne, "No command given to execute."};
  read.of_step.emplace_back("--");
  read.of_step.insert(read.of_step.end(), words.begin() + static_cast<std::ptrdiff_t>(i),
                      words.end());
  read.name = words[i].substr(words[i].rfind('/') + 1);
  return read;
}

// Returns false if the tasks' input is a file or nothing: then the caller's is left alone.
bool reads_own_input(const Srun& read) {
  const bool is_task = read.input.find_first_not_of("0123456789") == std::string::npos;
  return read.wants_terminal || read.input == "all" || is_task;
}

base::Result<RemoteStep> step_of(const Srun& read, const std::string& directory, Output output) {
  std::vector<std::string> left_out;
  const auto variables = exported_variables(read.exports, own_variables(), left_out);
  if (!variables) return variables.error();
  for (const std::string& warning : left_out) output.err << "srun: warning: " << warning << "\n";
  RemoteStep step{.arguments = read.of_step,
                  .variables = {},
                  .directory = directory,
                  .has_terminal = read.wants_terminal && ::isatty(STDIN_FILENO) != 0,
                  .has_input = reads_own_input(read)};
  for (const kube::BatchVariable& variable : *variables) {
    step.variables.push_back(variable.name + "=" + variable.value);
  }
  return step;
}

// SOURCE: recorded (session gpu_variables_srun): srun sets none of the variables for GPUs that
// sbatch and salloc set.
void leave_out_gpus(SubmitRequest& request) {
  std::erase_if(request.batch->environment, [&](const kube::BatchVariable& variable) {
    return variable.name.find("GPU") != std::string::npos &&
           request.options.variables.contains(variable.name);
  });
}

std::string own_directory() {
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  return error ? "/" : here.string();
}

std::string help() {
  std::string text = "Of the step:\n";
  for (const SrunOption& option : kOptions) {
    if (option.whose == Whose::kRefused) continue;
    text += "  ";
    if (option.letter != '\0') text += std::string{'-', option.letter} + ", ";
    text += "--" + std::string{option.name};
    if (option.takes == WordTakes::kValue) text += "=VALUE";
    if (option.takes == WordTakes::kMaybeValue) text += "[=VALUE]";
    text += "\n";
  }
  return text + "\nOf the job that it makes, as of sbatch:\n" + slurm::sbatch_help();
}

int in_job(const Session& session, const Srun& read, const RemoteStep& step, Output output) {
  const auto part = find_part(session, read.job_id, output);
  if (!part) return fail(output, part.error().message);
  const auto task = part->array ? std::optional{part->array->tasks.front()} : std::nullopt;
  const TakenSignals signals;
  const auto pod = first_pod(session, *part->job, task);
  if (!pod) return fail(output, pod.error().message);
  if (!*pod) {
    return fail(output,
                "Unable to create step for job " + read.job_id + ": its first pod does not run");
  }
  const auto end = run_step(session, **pod, step, signals);
  return end ? end->code : fail(output, end.error().message);
}

int in_own_job(const Session& session, const SubmitRequest& request, const RemoteStep& step,
               Output output) {
  const TakenSignals signals;
  const auto held = hold_job(session, request, "srun", signals, output);
  if (!held) return fail(output, held.error().message);
  const auto end = run_step(session, held->pod, step, signals);
  if (end && !end->was_interrupted) {
    release_job(session, *held, end->code, signals, output);
    return end->code;
  }
  const auto canceled = cancel_job(session, held->job);
  if (end) return end->code;
  return fail(output, end.error().message + "; job " + std::to_string(*held->job.status.job_id) +
                          (canceled ? " is canceled" : " could not be canceled"));
}

}  // namespace

int run_srun(std::span<const std::string> arguments, const WithCluster& with_cluster,
             Output output) {
  const slurm::Now now = local_time(kube::SystemClock{}.wall());
  const auto read = read_arguments(arguments, now);
  if (!read) return fail(output, read.error().message, slurm::exit_code_of(read.error()));
  if (!read->question.empty()) {
    output.out << answer_about_command("srun", "COMMAND [ARGUMENTS]", read->question, help());
    return kExitOk;
  }
  const std::string directory = own_directory();
  const auto step = step_of(*read, directory, output);
  if (!step) return fail(output, step.error().message);
  if (!read->job_id.empty()) {
    return with_cluster(
        [&](const Session& session) { return in_job(session, *read, *step, output); });
  }
  SubmitArguments job{.sbatch = read->of_job,
                      .variables = read->variables,
                      .takes_variables = true,
                      .is_allocation = true,
                      .pod = read->pod};
  job.sbatch.emplace_back("--wrap=true");
  auto request = read_submit(job, now);
  if (!request) {
    return fail(output, request.error().message, slurm::exit_code_of(request.error()));
  }
  if (request->options.request.name.empty()) request->name = read->name;
  leave_out_gpus(*request);
  for (const std::string& warning : request->options.warnings) {
    output.err << "srun: warning: " << warning << "\n";
  }
  request->options.working_directory = directory;
  return with_cluster.in(request->options.cluster)(
      [&](const Session& session) { return in_own_job(session, *request, *step, output); });
}

}  // namespace cli
