#include "cli/slurm/scontrol_show.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <sstream>

#include "api/scheduler_config.h"
#include "api/wellknown.h"
#include "cli/cluster/licenses.h"
#include "cli/cluster/read.h"
#include "cli/cluster/submit.h"
#include "kube/api/lease.h"
#include "slurm/hostlist.h"
#include "slurm/quantities.h"
#include "slurm/text.h"

namespace cli {
namespace {

int fail(Output output, const std::string& message) {
  output.err << "scontrol: error: " << message << "\n";
  return kExitFailed;
}

std::string or_null(const std::optional<std::string>& text) {
  return text && !text->empty() ? *text : "(null)";
}

std::string end_time(const JobFacts& facts) {
  const kube::JobStatus& status = facts.job->status;
  if (status.end_time) return slurm_time(status.end_time);
  if (!status.start_time || !facts.limit) return "Unknown";
  return slurm_time(*status.start_time + *facts.limit);
}

std::string memory_line(const JobFacts& facts) {
  if (facts.memory_per_cpu) return "MinMemoryCPU=" + slurm_memory(*facts.memory_per_cpu);
  const auto bytes = facts.memory_per_node.value_or(kube::Bytes{0});
  return "MinMemoryNode=" + (bytes.value() == 0 ? "0" : slurm_memory(bytes));
}

// Since when a job stands still, and how long it had run by then; of one that runs again the API
// does not keep it.
std::string suspend_fields(const JobFacts& facts) {
  const auto& ran = facts.job->status.run_time;
  if (facts.state_code != "S" || !ran) return "SuspendTime=None SecsPreSuspend=0";
  return "SuspendTime=" + slurm_time(ran->as_of) +
         " SecsPreSuspend=" + std::to_string(ran->elapsed.count() / 1'000'000);
}

// SOURCE: with --oneliner the lines of a record are joined.
void print_record(std::string record, ShowOptions options, Output output) {
  if (!options.one_line) {
    output.out << record << "\n";
    return;
  }
  std::string line;
  for (const std::string& part : slurm::split(record, '\n')) {
    const std::string text{slurm::trim(part)};
    if (!text.empty()) line += (line.empty() ? "" : " ") + text;
  }
  output.out << line << "\n";
}

// Returns "cpu=4,mem=4000M,billing=4"; "" of nothing.
std::string node_tres(std::int64_t cpus, std::int64_t memory_mib, bool has_billing) {
  if (cpus == 0) return "";
  std::string text = "cpu=" + std::to_string(cpus);
  if (memory_mib > 0) text += ",mem=" + std::to_string(memory_mib) + "M";
  return text + (has_billing ? ",billing=" + std::to_string(cpus) : "");
}

std::string node_record(const NodeLine& line, const std::string& partitions,
                        const Topologies& topologies) {
  const kube::NodeTopology cores = topology_of(line, topologies);
  const kube::NodeSystemInfo info =
      line.node == nullptr ? kube::NodeSystemInfo{} : line.node->status.node_info;
  const std::string& name = line.names.front();
  const std::int64_t memory = node_memory_mib(line);
  std::ostringstream out;
  out << "NodeName=" << name << " Arch=" << info.architecture
      << " CoresPerSocket=" << cores.cores_per_socket << "\n"
      << "   CPUAlloc=" << line.cpus_allocated << " CPUEfctv=" << line.cpus
      << " CPUTot=" << line.cpus << " CPULoad=N/A\n"
      << "   AvailableFeatures=" << node_features(line) << "\n"
      << "   ActiveFeatures=" << node_features(line) << "\n"
      << "   Gres=" << node_gres(line) << "\n"
      << "   NodeAddr=" << node_address(line) << " NodeHostName=" << name
      << " Version=" << info.kubelet_version << "\n"
      << "   OS=" << info.os_image << " " << info.kernel_version << "\n"
      << "   RealMemory=" << memory << " AllocMem=" << line.memory_allocated_mib
      << " FreeMem=N/A Sockets=" << cores.sockets << " Boards=1\n"
      << "   State=" << full_node_state(line.state) << " ThreadsPerCore=" << cores.threads_per_core
      << " TmpDisk=" << node_disk_mib(line) << " Weight=" << node_weight(line)
      << " Owner=N/A MCS_label=N/A\n"
      << "   Partitions=" << partitions << "\n"
      << "   CfgTRES=" << node_tres(line.cpus, memory, true) << "\n"
      << "   AllocTRES=" << node_tres(line.cpus_allocated, line.memory_allocated_mib, false)
      << "\n";
  if (const std::string comment = node_comment(line); !comment.empty()) {
    out << "   Comment=" << comment << "\n";
  }
  if (const std::string reason = drain_reason(line); !reason.empty()) {
    out << "   Reason=" << reason;
    const std::string user = drain_user(line);
    if (!user.empty()) out << " [" << user << "@" << slurm_time(drain_time(line)) << "]";
    out << "\n";
  }
  return out.str();
}

std::string names_or_all(const std::optional<kube::AccessList>& list,
                         std::optional<std::vector<std::string>> kube::AccessList::*names) {
  if (!list || !((*list).*names)) return "ALL";
  std::string text;
  for (const std::string& name : *((*list).*names)) text += (text.empty() ? "" : ",") + name;
  return text;
}

std::string number_or(const std::optional<std::int32_t>& number, const char* none) {
  return number ? std::to_string(*number) : none;
}

std::string upper_case(std::string_view text) {
  std::string upper{text};
  std::ranges::transform(upper, upper.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return upper;
}

struct PartitionSize {
  std::vector<std::string> nodes;
  std::int64_t count = 0;
  std::int64_t cpus = 0;
  std::int64_t memory_mib = 0;
};

PartitionSize size_of(const kube::Partition& partition, const std::vector<NodeLine>& lines) {
  PartitionSize size;
  for (const NodeLine& line : lines) {
    if (line.partition != &partition) continue;
    size.nodes.insert(size.nodes.end(), line.names.begin(), line.names.end());
    size.count += line.count;
    size.cpus += line.cpus * line.count;
    size.memory_mib += node_memory_mib(line);
  }
  return size;
}

std::string memory_or_unlimited(const std::optional<kube::Bytes>& bytes) {
  constexpr std::int64_t kMiB = 1 << 20;
  return bytes ? std::to_string(bytes->value() / kMiB) : "UNLIMITED";
}

// SOURCE: a limit for each CPU stands where one for each node would.
std::string memory_limits(const kube::PartitionSpec& spec) {
  const kube::MemoryLimits memory = spec.memory.value_or(kube::MemoryLimits{});
  return (memory.default_per_cpu
              ? "DefMemPerCPU=" + memory_or_unlimited(memory.default_per_cpu)
              : "DefMemPerNode=" + memory_or_unlimited(memory.default_per_node)) +
         " " +
         (memory.max_per_cpu ? "MaxMemPerCPU=" + memory_or_unlimited(memory.max_per_cpu)
                             : "MaxMemPerNode=" + memory_or_unlimited(memory.max_per_node));
}

// SOURCE: slurmctld's job_defaults.
std::string job_defaults(const kube::PartitionSpec& spec) {
  std::string text;
  if (spec.default_cpus_per_gpu) {
    text = "DefCpuPerGPU=" + std::to_string(*spec.default_cpus_per_gpu);
  }
  if (spec.memory && spec.memory->default_per_gpu) {
    text += (text.empty() ? "" : ",") + std::string{"DefMemPerGPU="} +
            memory_or_unlimited(spec.memory->default_per_gpu);
  }
  return text.empty() ? "(null)" : text;
}

// SOURCE: slurm.conf(5), PreemptType.
std::string preempt_type(kube::PreemptType type) {
  switch (type) {
    case kube::PreemptType::kPartitionPriority:
      return "preempt/partition_prio";
    case kube::PreemptType::kQos:
      return "preempt/qos";
    case kube::PreemptType::kNone:
      return "preempt/none";
  }
  return "preempt/none";
}

// SOURCE: the record of Slurm's own scontrol, in its order. Fields that kubegang lacks have the
// value that they have in a Slurm that does not use them.
std::string partition_record(const kube::Partition& partition, const PartitionSize& size) {
  const kube::PartitionSpec& spec = spec_in_force(partition);
  const kube::PartitionLimits limits = spec.limits.value_or(kube::PartitionLimits{});
  const auto yes = [](const std::optional<bool>& value) {
    return value.value_or(false) ? "YES" : "NO";
  };
  const auto state = to_string(spec.state.value_or(kube::PartitionState::kUp));
  std::ostringstream out;
  out << "PartitionName=" << partition.metadata.name << "\n"
      << "   AllowGroups=" << names_or_all(spec.allow, &kube::AccessList::namespaces)
      << " AllowAccounts=ALL AllowQos=" << names_or_all(spec.allow, &kube::AccessList::qos) << "\n"
      << "   AllocNodes=ALL Default=" << yes(spec.is_default) << " QoS=" << spec.qos.value_or("N/A")
      << "\n"
      << "   DefaultTime=" << (limits.default_time ? long_time(*limits.default_time) : "NONE")
      << " DisableRootJobs=NO ExclusiveUser=" << yes(spec.exclusive_user)
      << " GraceTime=" << spec.grace_time.value_or(base::Duration{}).count() / 1'000'000
      << " Hidden=NO\n"
      << "   MaxNodes=" << number_or(limits.max_nodes, "UNLIMITED")
      << " MaxTime=" << (limits.max_time ? long_time(*limits.max_time) : "UNLIMITED")
      << " MinNodes=" << number_or(limits.min_nodes, "0") << " LLN=" << yes(spec.least_loaded)
      << " MaxCPUsPerNode=" << number_or(limits.max_cpus_per_node, "UNLIMITED") << "\n"
      << "   Nodes=" << slurm::compress_hostlist(size.nodes) << "\n"
      << "   PriorityJobFactor=" << spec.priority_job_factor.value_or(1)
      << " PriorityTier=" << spec.priority_tier.value_or(1)
      << " RootOnly=NO ReqResv=NO OverSubscribe=" << over_subscribe(spec) << "\n"
      << "   OverTimeLimit="
      << (spec.over_time_limit ? std::to_string(spec.over_time_limit->count() / 60'000'000)
                               : "NONE")
      << " PreemptMode=" << preempt_mode(partition) << "\n"
      << "   State=" << upper_case(state) << " TotalCPUs=" << size.cpus
      << " TotalNodes=" << size.count << " SelectTypeParameters=NONE\n"
      << "   JobDefaults=" << job_defaults(spec) << "\n"
      << "   " << memory_limits(spec) << "\n"
      << "   TRES=cpu=" << size.cpus;
  if (size.memory_mib > 0) out << ",mem=" << size.memory_mib << "M";
  out << ",node=" << size.count << ",billing=" << size.cpus << "\n";
  return out.str();
}

}  // namespace

// SOURCE: the record of Slurm's own scontrol, in its order. Fields that do not exist are left out.
std::string job_record(const JobFacts& facts) {
  const kube::Job& job = *facts.job;
  const kube::JobStatus& status = job.status;
  const auto& schedule = job.spec.schedule;
  std::ostringstream out;
  out << "JobId=" << facts.id;
  if (facts.array) {
    out << " ArrayJobId=" << facts.array->array_id << " ArrayTaskId=" << task_text(*facts.array);
    if (facts.array->throttle) out << " ArrayTaskThrottle=" << *facts.array->throttle;
  }
  out << " JobName=" << facts.name << "\n"
      << "   UserId=" << facts.user << " GroupId=" << job.metadata.ns << "\n"
      << "   Priority=" << facts.priority << " Nice=" << schedule.nice.value_or(0)
      << " Account=" << or_null(schedule.account) << " QOS=" << or_null(schedule.qos) << "\n"
      << "   JobState=" << facts.state << " Reason=" << facts.reason
      << " Dependency=" << dependency_text(job) << "\n"
      << "   Requeue=" << (job.spec.lifecycle.requeue.value_or(true) ? 1 : 0)
      << " Restarts=" << status.restarts.value_or(0) << " BatchFlag=" << (job.spec.batch ? 1 : 0)
      << " Reboot=0 ExitCode=" << facts.exit_code << ":" << facts.exit_signal << "\n"
      << "   RunTime=" << long_time(facts.run_time)
      << " TimeLimit=" << (facts.limit ? long_time(*facts.limit) : "UNLIMITED")
      << " TimeMin=" << (schedule.time_min ? long_time(*schedule.time_min) : "N/A") << "\n"
      << "   SubmitTime=" << slurm_time(status.submit_time)
      << " EligibleTime=" << slurm_time(status.eligible_time) << "\n"
      << "   AccrueTime=" << slurm_time(status.eligible_time) << "\n"
      << "   StartTime=" << slurm_time(facts.start_time) << " EndTime=" << end_time(facts)
      << " Deadline=" << (schedule.deadline ? slurm_time(schedule.deadline) : "N/A") << "\n"
      << "   " << suspend_fields(facts) << "\n"
      << "   Partition=" << facts.partition << "\n"
      << "   ReqNodeList=" << or_null(job.spec.placement.hostlist)
      << " ExcNodeList=" << or_null(job.spec.placement.exclude_hostlist) << "\n"
      << "   NodeList=" << facts.hostlist << "\n";
  if (!facts.batch_host.empty()) out << "   BatchHost=" << facts.batch_host << "\n";
  out << "   NumNodes=" << facts.nodes << " NumCPUs=" << facts.cpus << " NumTasks=" << facts.tasks
      << " CPUs/Task=" << cpus_per_task(facts) << "\n"
      << "   TRES=" << tres_of(facts) << "\n"
      << "   MinCPUsNode=" << job.spec.placement.min_cpus_per_node.value_or(1) << " "
      << memory_line(facts) << "\n"
      << "   Features=" << or_null(job.spec.placement.constraint) << "\n"
      << "   OverSubscribe=" << sharing_text(job)
      << " Contiguous=" << (job.spec.placement.contiguous.value_or(false) ? 1 : 0)
      << " Licenses=" << or_null(licenses_text(job)) << " Network=(null)\n";
  if (!facts.comment.empty()) out << "   Comment=" << facts.comment << "\n";
  if (job.spec.batch) {
    const ScriptFiles files = expanded_files(facts);
    const auto command = job.metadata.annotations.find(std::string{kAnnotationCommand});
    out << "   Command=" << (command == job.metadata.annotations.end() ? "(null)" : command->second)
        << "\n"
        << "   WorkDir=" << job.spec.batch->working_directory << "\n"
        << "   StdErr=" << files.error << "\n"
        << "   StdIn=" << files.input << "\n"
        << "   StdOut=" << files.output << "\n";
  }
  const kube::JobResources& asked = job.spec.resources;
  for (const auto& [name, text] : {std::pair{"CpusPerTres", cpus_per_gpu_text(facts)},
                                   {"MemPerTres", memory_per_gpu_text(facts)},
                                   {"TresPerJob", devices_text(asked.devices_of_job)},
                                   {"TresPerNode", devices_text(asked.devices)},
                                   {"TresPerSocket", devices_text(asked.devices_per_socket)},
                                   {"TresPerTask", devices_text(asked.devices_per_task)}}) {
    if (!text.empty()) out << "   " << name << "=" << text << "\n";
  }
  if (asked.tasks_per_gpu) out << "   NtasksPerTRES=" << *asked.tasks_per_gpu << "\n";
  return out.str();
}

int show_job(const Session& session, const std::string& id, ShowOptions options, Output output) {
  const auto asked = parse_job_word(id);
  const bool names_tasks = asked && asked->tasks;
  const ArrayView view = names_tasks ? ArrayView::kEach : ArrayView::kJoined;
  const std::vector<std::string> words = job_words(id);
  const auto jobs = list_parts(session, view, true, output, words);
  if (!jobs) return fail(output, jobs.error().message);
  const auto partitions = list_partition_defaults(session, output);
  if (!partitions) return fail(output, partitions.error().message);
  bool is_found = false;
  for (const JobPart& job : *jobs) {
    const JobFacts facts = facts_of(job, *partitions, session.clock.wall());
    if (!id.empty() && !(asked && is_named(*asked, facts.id, facts.array))) continue;
    is_found = true;
    print_record(job_record(facts), options, output);
  }
  if (is_found) return kExitOk;
  if (id.empty()) {
    output.out << "No jobs in the system\n";
    return kExitOk;
  }
  if (names_tasks) {
    output.out << "Job " << id << " not found\n";
    return kExitFailed;
  }
  output.err << "slurm_load_jobs error: Invalid job id specified\n";
  return kExitFailed;
}

int show_node(const Session& session, const std::string& hostlist, ShowOptions options,
              Output output) {
  const auto cluster = read_cluster_nodes(session, "scontrol", output);
  if (!cluster) return fail(output, cluster.error().message);
  if (!cluster->has_nodes) return kExitFailed;
  const auto topologies = read_topologies(session, output);
  if (!topologies) return fail(output, topologies.error().message);
  const std::vector<NodeLine> lines = node_lines(*cluster);
  std::vector<std::string> names;
  if (const auto wanted = slurm::expand_hostlist(hostlist)) names = *wanted;
  if (hostlist.empty()) {
    std::set<std::string> all;
    for (const NodeLine& line : lines) all.insert(line.names.begin(), line.names.end());
    names.assign(all.begin(), all.end());
  }
  int code = kExitOk;
  for (const std::string& name : names) {
    std::string partitions;
    const NodeLine* first = nullptr;
    for (const kube::Partition* partition : partitions_in_order(*cluster)) {
      const auto line = std::ranges::find_if(lines, [&](const NodeLine& each) {
        return each.partition == partition && each.names.front() == name;
      });
      if (line == lines.end()) continue;
      first = &*line;
      partitions += (partitions.empty() ? "" : ",") + partition->metadata.name;
    }
    if (first == nullptr) {
      output.out << "Node " << name << " not found\n";
      code = kExitFailed;
      continue;
    }
    print_record(node_record(*first, partitions, *topologies), options, output);
  }
  return code;
}

int show_partition(const Session& session, const std::string& name, ShowOptions options,
                   Output output) {
  const auto cluster = read_cluster_nodes(session, "scontrol", output);
  if (!cluster) return fail(output, cluster.error().message);
  const std::vector<NodeLine> lines = node_lines(*cluster);
  bool is_found = false;
  for (const kube::Partition* partition : partitions_in_order(*cluster)) {
    if (!name.empty() && partition->metadata.name != name) continue;
    is_found = true;
    print_record(partition_record(*partition, size_of(*partition, lines)), options, output);
  }
  if (is_found) return kExitOk;
  output.out << (name.empty() ? "No partitions in the system" : "Partition " + name + " not found")
             << "\n";
  return name.empty() ? kExitOk : kExitFailed;
}

// Returns the parameters of scheduling that the SchedulerConfig has, under their names in
// slurm.conf; what it leaves open has its default (docs/reference/crds.md). SOURCE: scontrol's own
// lines. Nothing is reserved, and no license is another cluster's.
int show_licenses(const Session& session, const std::string& name, ShowOptions options,
                  Output output) {
  const auto read = read_licenses(session, output);
  if (!read) return fail(output, read.error().message);
  const std::vector<LicenseLine> lines = license_lines(read->config, read->jobs);
  bool is_found = false;
  for (const LicenseLine& line : lines) {
    if (!name.empty() && line.name != name) continue;
    is_found = true;
    output.out << "LicenseName=" << line.name << (options.one_line ? " " : "\n    ")
               << "Total=" << line.total << " Used=" << line.used << " Free=" << line.free()
               << " Reserved=0 Remote=no\n";
  }
  if (is_found) return kExitOk;
  if (name.empty()) {
    output.out << "No licenses configured in Slurm.\n";
    return kExitOk;
  }
  output.out << "License name " << name << " not found\n";
  return kExitFailed;
}

int show_config(const Session& session, Output output) {
  const auto config = session.client.get<kube::SchedulerConfig>(
      {.ns = "", .name = std::string{kube::kSchedulerConfigName}});
  if (!config) return fail(output, config.error().message);
  const kube::SchedulerConfigSpec& spec =
      config->status.accepted ? *config->status.accepted : config->spec;
  const auto print = [&](std::string_view name, const std::string& value) {
    output.out << name << std::string(24 - std::min<std::size_t>(name.size(), 24), ' ') << "= "
               << value << "\n";
  };
  const auto seconds = [](base::Duration time) {
    return std::to_string(time.count() / 1'000'000) + " sec";
  };
  output.out << "Configuration data as of " << slurm_time(session.clock.wall()) << "\n";
  print("ClusterName", "kubegang");
  if (spec.complete_wait) print("CompleteWait", seconds(*spec.complete_wait));
  if (spec.kill_wait) print("KillWait", seconds(*spec.kill_wait));
  if (spec.max_array_size) print("MaxArraySize", std::to_string(*spec.max_array_size));
  if (spec.preempt_type) print("PreemptType", preempt_type(*spec.preempt_type));
  if (const auto& mode = config->status.preempt_mode) {
    print("PreemptMode", preempt_mode_word(*mode) + (spec.gang.value_or(false) ? ",GANG" : ""));
  }
  if (spec.priority && spec.priority->type) {
    print("PriorityType", "priority/" + slurm::lower_case(to_string(*spec.priority->type)));
  }
  if (spec.scheduler_type) {
    print("SchedulerType", "sched/" + slurm::lower_case(to_string(*spec.scheduler_type)));
  }
  if (spec.time_slice) print("SchedulerTimeSlice", seconds(*spec.time_slice));
  if (spec.select && spec.select->type) {
    print("SelectType",
          *spec.select->type == kube::SelectType::kLinear ? "select/linear" : "select/cons_tres");
  }
  print("SLURM_VERSION", "22.05.8");
  return kExitOk;
}

int show_ping(const Session& session, Output output) {
  const auto lease = session.client.get<kube::Lease>(
      {.ns = "kubegang-system", .name = std::string{kube::kComponent}});
  if (!lease && lease.error().code != base::Code::kNotFound) {
    return fail(output,
                "ping: the Lease of the operator says whether it is up, and cannot be read: " +
                    lease.error().message);
  }
  const kube::LeaseSpec spec = lease ? lease->spec : kube::LeaseSpec{};
  const std::string host = spec.holder_identity.value_or("");
  const bool is_up = !host.empty() && spec.renew_time &&
                     session.clock.wall() - *spec.renew_time <
                         std::chrono::seconds{spec.lease_duration_seconds.value_or(0)};
  output.out << "Slurmctld(primary) at " << (host.empty() ? "(null)" : host) << " is "
             << (is_up ? "UP" : "DOWN") << "\n";
  return is_up ? kExitOk : kExitFailed;
}

}  // namespace cli
