// The job as Slurm's commands show it, from its object and in Slurm's words. Pure, but for the
// list.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "api/job.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/cluster/session.h"
#include "cli/program.h"
#include "cli/slurm/array_parts.h"

namespace cli {

struct JobFacts {
  std::int64_t id = 0;
  std::optional<ArrayPart> array{};
  std::string name;
  std::string user;  // who has submitted it; the namespace if that is not known
  std::string comment;
  std::string partition;
  std::string state;       // "PENDING"
  std::string state_code;  // "PD"
  std::string reason;      // "None" if there is none
  std::string hostlist;    // that it has, or had; "" = none
  std::string batch_host;
  int nodes = 0;  // that it has, or had, or asks for
  int cpus = 0;
  int asked_nodes = 0;
  int asked_cpus = 0;
  int tasks = 0;
  int min_cpus = 1;  // of a node
  std::optional<kube::Bytes> memory_per_cpu{};
  std::optional<kube::Bytes> memory_per_node{};
  std::optional<kube::Bytes> memory_per_gpu{};  // then it has none of the two
  // The partition's, if the job asks for GPUs.
  std::optional<std::int32_t> default_cpus_per_gpu{};
  std::optional<kube::Bytes> default_memory_per_gpu{};
  std::optional<base::Duration> limit{};  // absent: none
  base::Duration run_time{};
  base::Duration suspend_time{};
  std::optional<base::Instant> start_time{};  // expected, if it waits
  std::int64_t priority = 0;
  int exit_code = 0;
  int exit_signal = 0;
  base::Instant now{};  // of which the rest is true
  const kube::Job* job = nullptr;
};

// Returns the jobs that have a number, by it. Jobs of all namespaces, or of the session's own if
// the others may not be read. With a few `words` ("12", "12_3") at least the jobs that they name;
// many words, or one that names no job by its own number, cost a list of all.
base::Result<std::vector<kube::Job>> list_jobs(const Session& session, Output output,
                                               std::span<const std::string> words = {});

// Does the same for these users (status.user): a server that can select sends only their jobs.
base::Result<std::vector<kube::Job>> list_jobs_of(const Session& session,
                                                  const std::set<std::string>& users,
                                                  Output output);

// The same of a caller: is_own(), and the jobs of the caller's namespace that do not say whose.
struct Caller;
base::Result<std::vector<kube::Job>> list_own_jobs(const Session& session, const Caller& caller,
                                                   Output output);

// Without the jobs that have no number yet, by it.
std::vector<kube::Job> numbered(std::vector<kube::Job> jobs);

// Returns the fields of a Job that these facts need; its template and script are large.
const kube::KnownFields& fields_of_jobs();

// The memory and time that a job of a partition has if it does not say so.
struct PartitionDefaults {
  std::string name;
  bool is_default = false;
  std::optional<base::Duration> time{};
  std::optional<kube::Bytes> memory_per_cpu{};
  std::optional<kube::Bytes> memory_per_node{};
  std::optional<kube::Bytes> memory_per_gpu{};
  std::optional<std::int32_t> cpus_per_gpu{};
  int cpus_per_node = 0;  // on average; 0: not known
};
base::Result<std::vector<PartitionDefaults>> list_partition_defaults(const Session& session,
                                                                     Output output);

// Returns the jobs as Slurm shows arrays.
base::Result<std::vector<JobPart>> list_parts(const Session& session, ArrayView view,
                                              bool has_ended, Output output,
                                              std::span<const std::string> words = {});

// The end of a script, or of the first task: the code that it has exited with, or the signal that
// has ended it.
struct ExitStatus {
  int code = 0;
  int signal = 0;
};
ExitStatus exit_status(const kube::Job& job);

// `part` must live longer than the facts.
// The job, or task of an array, that runs steps under this name or number: "1001", "1001_3" or the
// task's own number.
base::Result<JobPart> find_part(const Session& session, const std::string& word, Output output);
JobFacts facts_of(const JobPart& part, const std::vector<PartitionDefaults>& partitions,
                  base::Instant now);
// `job` must live longer than the facts.
JobFacts facts_of(const kube::Job& job, const std::vector<PartitionDefaults>& partitions,
                  base::Instant now);

// The user of a command: the name by which the API server knows the user ("" if it does not say)
// and the namespace.
struct Caller {
  std::string user;
  std::string ns;
};
Caller caller_of(const Session& session);
// Returns true if the caller has submitted the job. One that does not say who has may be any user's
// of the namespace: it is the caller's only if the API server does not say who that is.
bool is_own(const kube::Job& job, const Caller& caller);

// Where a batch script reads and writes: absolute paths, still with their patterns; "" of a job
// without a script.
struct ScriptFiles {
  std::string input;
  std::string output;
  std::string error;
};
ScriptFiles script_files(const JobFacts& facts);
// Returns the same with the patterns that are known. SOURCE: scontrol leaves %N and "%5j", here
// they are filled in, too.
ScriptFiles expanded_files(const JobFacts& facts);

// On all nodes together, as far as it is known.
kube::Bytes allocated_memory(const kube::Allocation& allocation);
// Returns "cpu=4,mem=120M,node=2,billing=4"
std::string tres_of(const JobFacts& facts);

// Returns the place of a state in Slurm's order: PENDING, RUNNING, SUSPENDED, …
std::size_t state_rank(const std::string& code);

// squeue's %E: "afterok:12(unfulfilled),after:7+5(failed)"; "(null)" if nothing is waited for.
std::string dependency_text(const kube::Job& job);
// %h of squeue: "OK", "YES", "NO" or "USER".
std::string sharing_text(const kube::Job& job);
// Returns the licenses that the job asks for, "bar:1,foo:2"; "" = none.
std::string licenses_text(const kube::Job& job);
// Returns "gres:gpu:a100:2"; "" = none.
std::string devices_text(const std::vector<kube::JobDevice>& devices);
// Returns "gres:gpu:2", of a default "gpu:2"; "" = none.
std::string cpus_per_gpu_text(const JobFacts& facts);
std::string memory_per_gpu_text(const JobFacts& facts);
// Returns the CPUs of a task; those of its GPUs, if it has GPUs of its own.
std::int64_t cpus_per_task(const JobFacts& facts);

// Returns the name of a state for one of its two spellings in any case, "" for none.
std::string state_code_of(const std::string& text);
// Returns all states, as Slurm lists them in an error.
std::string all_states();

// Returns "2026-01-01T00:00:00" in local time, "Unknown" if absent.
std::string slurm_time(const std::optional<base::Instant>& instant);
// Returns "00:00:04", "1-02:00:00", where squeue leaves out what is 0.
std::string long_time(base::Duration duration);
// Returns "Sat Nov 28 21:39:05 2026" in local time.
std::string slurm_date(base::Instant instant);
// Returns "100M", "2G", "1500M": as exact_memory(), in whole MiB.
std::string slurm_memory(kube::Bytes bytes);
// Returns "5120K", "5M": the largest unit of which it is a whole number.
std::string exact_memory(kube::Bytes bytes);
// Formats the memory of a TRES: in whole MiB.
std::string tres_memory(kube::Bytes bytes);
// "00:01.250", "02:00:00", "1-02:00:00": parts of a second below an hour alone, if there are any.
std::string cpu_time(base::Duration duration);

}  // namespace cli
