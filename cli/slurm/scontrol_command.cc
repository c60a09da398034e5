#include "cli/slurm/scontrol_command.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "cli/cluster/control.h"
#include "cli/cluster/read.h"
#include "slurm/hostlist.h"
#include "slurm/quantities.h"

namespace cli {
namespace {

int fail(Output output, const std::string& message) {
  output.err << "scontrol: error: " << message << "\n";
  return kExitFailed;
}

std::string or_null(const std::optional<std::string>& text) {
  return text && !text->empty() ? *text : "(null)";
}

// "00:00:04", "1-02:00:00", as scontrol writes times where squeue leaves out what is 0.
std::string long_time(base::Duration duration) {
  const std::int64_t seconds = duration.count() / 1'000'000;
  const std::int64_t days = seconds / 86'400;
  char text[64];
  std::snprintf(text, sizeof text, "%02d:%02d:%02d", static_cast<int>(seconds / 3'600 % 24),
                static_cast<int>(seconds / 60 % 60), static_cast<int>(seconds % 60));
  return (days > 0 ? std::to_string(days) + "-" : "") + text;
}

std::string end_time(const JobFacts& facts) {
  const kube::JobStatus& status = facts.job->status;
  if (status.end_time) return slurm_time(status.end_time);
  if (!status.start_time || !facts.limit) return "Unknown";
  return slurm_time(*status.start_time + *facts.limit);
}

std::string tres(const JobFacts& facts) {
  std::string text = "cpu=" + std::to_string(facts.cpus);
  std::int64_t bytes = 0;
  if (facts.memory_per_cpu) bytes = facts.memory_per_cpu->value() * facts.cpus;
  if (facts.memory_per_node) bytes = facts.memory_per_node->value() * facts.nodes;
  if (bytes > 0) text += ",mem=" + slurm_memory(kube::Bytes{bytes});
  return text + ",node=" + std::to_string(facts.nodes) + ",billing=" + std::to_string(facts.cpus);
}

std::string memory_line(const JobFacts& facts) {
  if (facts.memory_per_cpu) return "MinMemoryCPU=" + slurm_memory(*facts.memory_per_cpu);
  const auto bytes = facts.memory_per_node.value_or(kube::Bytes{0});
  return "MinMemoryNode=" + (bytes.value() == 0 ? "0" : slurm_memory(bytes));
}

int show_job(const Session& session, const std::string& id, Output output) {
  const auto jobs = list_jobs(session, output);
  if (!jobs) return fail(output, jobs.error().message);
  const auto partitions = list_partition_defaults(session, output);
  if (!partitions) return fail(output, partitions.error().message);
  bool is_found = false;
  for (const kube::Job& job : *jobs) {
    const JobFacts facts = facts_of(job, *partitions, session.clock.wall());
    if (!id.empty() && std::to_string(facts.id) != id) continue;
    is_found = true;
    output.out << job_record(facts) << "\n";
  }
  if (is_found) return kExitOk;
  if (id.empty()) {
    output.out << "No jobs in the system\n";
    return kExitOk;
  }
  output.err << "slurm_load_jobs error: Invalid job id specified\n";
  return kExitFailed;
}

int show_hosts(const std::string& what, const std::string& list, Output output) {
  const auto names = slurm::expand_hostlist(list);
  if (!names) return fail(output, "Invalid hostlist: " + list);
  if (what == "hostnames") {
    for (const std::string& name : *names) output.out << name << "\n";
  } else {
    output.out << slurm::compress_hostlist(*names) << "\n";
  }
  return kExitOk;
}

// control.cc says on standard output what it has done; scontrol says nothing.
int change(const Session& session, ControlVerb verb, const std::vector<std::string>& jobs,
           Output output) {
  for (const std::string& id : jobs) {
    if (verb != ControlVerb::kRequeue) break;
    const auto job = find_job(session, id, output);
    if (!job) return fail(output, job.error().message);
    if (job->spec.lifecycle.requeue.value_or(true)) continue;
    // SOURCE: slurmctld's sentence for a job with --no-requeue.
    output.err << "Requested operation is presently disabled for job " << id << "\n";
    return kExitFailed;
  }
  std::ostringstream unsaid;
  return run_control(session, verb, jobs, {.out = unsaid, .err = output.err});
}

struct Verb {
  std::string_view name;
  ControlVerb verb;
};
constexpr std::array kVerbs = {
    Verb{"hold", ControlVerb::kHold},       Verb{"release", ControlVerb::kRelease},
    Verb{"requeue", ControlVerb::kRequeue}, Verb{"suspend", ControlVerb::kSuspend},
    Verb{"resume", ControlVerb::kResume},
};

}  // namespace

// SOURCE: the record of Slurm's own scontrol, in its order. What kubegang lacks is left out.
std::string job_record(const JobFacts& facts) {
  const kube::Job& job = *facts.job;
  const kube::JobStatus& status = job.status;
  const auto& schedule = job.spec.schedule;
  const kube::JobBatch batch = job.spec.batch.value_or(kube::JobBatch{});
  std::ostringstream out;
  out << "JobId=" << facts.id << " JobName=" << facts.name << "\n"
      << "   UserId=" << facts.user << " GroupId=" << facts.user << "\n"
      << "   Priority=" << facts.priority << " Nice=" << schedule.nice.value_or(0)
      << " Account=" << or_null(schedule.account) << " QOS=" << or_null(schedule.qos) << "\n"
      << "   JobState=" << facts.state << " Reason=" << facts.reason << " Dependency=(null)\n"
      << "   Requeue=" << (job.spec.lifecycle.requeue.value_or(true) ? 1 : 0)
      << " Restarts=" << status.restarts.value_or(0) << " BatchFlag=" << (job.spec.batch ? 1 : 0)
      << " Reboot=0 ExitCode=" << facts.exit_code << ":" << facts.exit_signal << "\n"
      << "   RunTime=" << long_time(facts.run_time)
      << " TimeLimit=" << (facts.limit ? long_time(*facts.limit) : "UNLIMITED")
      << " TimeMin=" << (schedule.time_min ? long_time(*schedule.time_min) : "N/A") << "\n"
      << "   SubmitTime=" << slurm_time(status.submit_time)
      << " EligibleTime=" << slurm_time(status.eligible_time) << "\n"
      << "   StartTime="
      << slurm_time(status.start_time ? status.start_time : status.expected_start_time)
      << " EndTime=" << end_time(facts)
      << " Deadline=" << (schedule.deadline ? slurm_time(schedule.deadline) : "N/A") << "\n"
      << "   Partition=" << facts.partition << "\n"
      << "   ReqNodeList=" << or_null(job.spec.placement.hostlist)
      << " ExcNodeList=" << or_null(job.spec.placement.exclude_hostlist) << "\n"
      << "   NodeList=" << facts.hostlist << "\n";
  if (!facts.batch_host.empty()) out << "   BatchHost=" << facts.batch_host << "\n";
  out << "   NumNodes=" << facts.nodes << " NumCPUs=" << facts.cpus << " NumTasks=" << facts.tasks
      << " CPUs/Task=" << job.spec.resources.cpus_per_task.value_or(1) << "\n"
      << "   TRES=" << tres(facts) << "\n"
      << "   MinCPUsNode=" << job.spec.placement.min_cpus_per_node.value_or(1) << " "
      << memory_line(facts) << "\n"
      << "   Features=" << or_null(job.spec.placement.constraint) << "\n";
  if (!batch.comment.empty()) out << "   Comment=" << batch.comment << "\n";
  out << "   WorkDir=" << batch.working_directory << "\n"
      << "   StdErr=" << (batch.error.empty() ? batch.output : batch.error) << "\n"
      << "   StdIn=" << (batch.input.empty() ? "/dev/null" : batch.input) << "\n"
      << "   StdOut=" << batch.output << "\n";
  return out.str();
}

int run_scontrol(std::span<const std::string> arguments, const WithCluster& with_cluster,
                 Output output) {
  std::vector<std::string> words{arguments.begin(), arguments.end()};
  // Options that change how the same things are shown.
  std::erase_if(words, [](const std::string& word) { return word == "-d" || word == "-dd"; });
  if (words.empty()) return fail(output, "say what to do, for example: scontrol show job 1001");
  if (words[0] == "show" && words.size() >= 2) {
    const std::string& what = words[1];
    if (what == "hostnames" || what == "hostlist" || what == "hostlistsorted") {
      if (words.size() == 3) return show_hosts(what, words[2], output);
      const char* own = std::getenv("SLURM_JOB_NODELIST");
      if (what == "hostnames" && own != nullptr) return show_hosts(what, own, output);
      return fail(output, "show " + what + ": a list is missing");
    }
    if (what == "job" || what == "jobs" || what.starts_with("job=")) {
      const std::string id = what.starts_with("job=") ? what.substr(4)
                             : words.size() > 2       ? words[2]
                                                      : "";
      return with_cluster([&](const Session& s) { return show_job(s, id, output); });
    }
    return fail(output,
                "show " + what + ": is not there yet; show job, hostnames and hostlist are");
  }
  const auto verb = std::ranges::find(kVerbs, std::string_view{words[0]}, &Verb::name);
  if (verb == kVerbs.end()) {
    return fail(output, words[0] +
                            ": is not there yet; show, hold, release, requeue, suspend and "
                            "resume are");
  }
  std::vector<std::string> jobs;
  for (std::size_t i = 1; i < words.size(); ++i) {
    for (std::string& id : list_of(words[i])) jobs.push_back(std::move(id));
  }
  if (jobs.empty()) return fail(output, words[0] + ": a job is missing");
  return with_cluster([&](const Session& s) { return change(s, verb->verb, jobs, output); });
}

}  // namespace cli
