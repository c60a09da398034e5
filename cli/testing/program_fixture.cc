#include "cli/testing/program_fixture.h"

#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "api/annotations.h"
#include "kube/api/namespace.h"
#include "kube/api/node.h"
#include "slurm/hostlist.h"

namespace cli {
namespace {

// As the operator says it.
std::string user_of(const kube::Job& job) {
  const auto found = job.metadata.annotations.find(std::string{kube::kAnnotationUser});
  return found == job.metadata.annotations.end() ? job.metadata.ns : found->second;
}

}  // namespace

// The real CRDs, so that a command that writes an object which they do not allow fails here, and
// two namespaces as users of a cluster have.
ProgramTest::ProgramTest() {
  const base::Status crds = server_.load_crds(KUBEGANG_SOURCE_DIR "/crds");
  EXPECT_TRUE(crds.ok()) << crds.error().message;
  for (const char* name : {"team-a", "team-b"}) {
    kube::Namespace ns;
    ns.metadata.name = name;
    EXPECT_TRUE(client_.create(ns).ok()) << name;
  }
}

base::Status NumbersJobs::sleep(base::Duration duration, std::stop_token stop) {
  const auto jobs = client_.list<kube::Job>();
  if (!jobs) return jobs.error();
  for (const kube::Job& job : jobs->items) {
    if (job.status.job_id) continue;
    kube::Job changed = job;
    changed.status = {
        .state = kube::JobState::kPending, .reason = "Priority", .job_id = ++numbers_};
    changed.status.user = user_of(job);
    const auto written = client_.patch_status_from(job, changed);
    if (!written) return written.error();
  }
  return sleeper_.sleep(duration, std::move(stop));
}

// Runs all of the program but the wire: words, the tests' API server, and two strings for output.
ProgramTest::Ran ProgramTest::run(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostringstream err;
  const int code =
      run_program(arguments,
                  [this](const ConnectOptions& options,
                         const std::function<int(const Session&)>& use) -> base::Result<int> {
                    return use({.client = client_,
                                .clock = clock_,
                                .sleeper = *session_sleeper_,
                                .ns = options.ns.empty() ? "default" : options.ns});
                  },
                  {.out = out, .err = err, .columns = terminal_columns_});
  return {code, out.str(), err.str()};
}

// Returns a job as it is stored after the operator has written its status. `metadata` may carry
// labels and owners.
kube::Job ProgramTest::add_job(const std::string& ns, const std::string& name, kube::JobSpec spec,
                               kube::JobStatus status, const kube::ObjectMeta& metadata) {
  kube::Job job{.metadata = metadata};
  job.metadata.ns = ns;
  job.metadata.name = name;
  job.spec = std::move(spec);
  job.spec.pod_template = *kube::RawJson::parse_text(
      R"({"spec": {"containers": [{"name": "main", "image": "busybox"}]}})");
  base::Result<kube::Job> created = client_.create(job);
  EXPECT_TRUE(created.ok()) << created.error().message;
  // The server takes no status with a create: it is a write of its own, as the operator's.
  kube::Job changed = *created;
  changed.status = std::move(status);
  changed.status.user = user_of(job);
  base::Result<kube::Job> written = client_.patch_status_from(*created, changed);
  EXPECT_TRUE(written.ok()) << written.error().message;
  return *written;
}

// Adds a Job of Kubernetes' batch group, without a kubegang Job for it.
kube::BatchJob ProgramTest::add_batch_job(const std::string& ns, const std::string& name,
                                          const std::string& managed_by) {
  kube::BatchJob batch;
  batch.metadata.ns = ns;
  batch.metadata.name = name;
  batch.spec.managed_by = managed_by;
  batch.spec.pod_template = *kube::RawJson::parse_text(
      R"({"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}})");
  const base::Result<kube::BatchJob> created = client_.create(batch);
  EXPECT_TRUE(created.ok()) << created.error().message;
  return *created;
}

// Returns the label and owner with which the operator marks the Job that it makes for a batch Job.
kube::ObjectMeta ProgramTest::attempt_at(const kube::BatchJob& batch, const std::string& number) {
  kube::ObjectMeta metadata;
  metadata.labels["kubegang.io/attempt"] = number;
  metadata.owner_references.push_back({.api_version = "batch/v1",
                                       .kind = "Job",
                                       .name = batch.metadata.name,
                                       .uid = batch.metadata.uid,
                                       .controller = true});
  return metadata;
}

// Nodes of 8 CPUs that the kubelet reports as ready.
void ProgramTest::add_nodes(const std::string& hostlist) {
  const auto names = slurm::expand_hostlist(hostlist);
  ASSERT_TRUE(names.ok()) << hostlist;
  for (const std::string& name : *names) {
    // Created with a status: the fake API server takes one of a Node, as the kubelet registers it.
    const nlohmann::json node = {{"apiVersion", "v1"},
                                 {"kind", "Node"},
                                 {"metadata", {{"name", name}}},
                                 {"status",
                                  {{"allocatable", {{"cpu", "8"}}},
                                   {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}};
    const auto created = client_.create_json<kube::Node>("", node);
    EXPECT_TRUE(created.ok()) << name << ": " << created.error().message;
  }
}

// 8 CPUs of each node, which are all that add_nodes() gives it.
kube::Allocation ProgramTest::on(const std::string& nodes) {
  return {.hostlist = nodes,
          .nodes = static_cast<std::int32_t>(slurm::expand_hostlist(nodes)->size()),
          .cpus = 8,
          .shares = {{.hostlist = nodes, .cpus = 8}}};
}

// All pods of the job have settled.
kube::Conditions ProgramTest::ready() {
  return {{.type = "Ready",
           .status = kube::ConditionStatus::kTrue,
           .last_transition_time = kube::ManualClock::kStart,
           .reason = "AllPodsRun"}};
}

}  // namespace cli
