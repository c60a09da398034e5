// Runs kubectl-gang in process against the in-memory API server.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "api/job.h"
#include "api/node_timetable.h"
#include "api/partition.h"
#include "cli/cluster/session.h"
#include "cli/program.h"
#include "kube/api/batch_job.h"
#include "kube/api/namespace.h"
#include "kube/api/node.h"
#include "kube/testing/api_server/api_server.h"
#include "kube/testing/api_server/in_process_transport.h"
#include "kube/testing/manual_clock.h"
#include "kube/testing/manual_sleeper.h"
#include "slurm/hostlist.h"

namespace cli {

class ProgramTest : public testing::Test {
 protected:
  struct Ran {
    int code = 0;
    std::string out;
    std::string err;
  };

  ProgramTest() {
    const base::Status crds = server_.load_crds(KUBEGANG_SOURCE_DIR "/crds");
    EXPECT_TRUE(crds.ok()) << crds.error().message;
    for (const char* name : {"team-a", "team-b"}) {
      kube::Namespace ns;
      ns.metadata.name = name;
      EXPECT_TRUE(client_.create(ns).ok()) << name;
    }
  }

  Ran run(const std::vector<std::string>& arguments) {
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

  base::Instant now() const { return clock_.wall(); }

  // A job as the operator would leave it: spec and status as given.
  kube::Job add_job(const std::string& ns, const std::string& name, kube::JobSpec spec,
                    kube::JobStatus status, const kube::ObjectMeta& metadata = {}) {
    kube::Job job{.metadata = metadata};
    job.metadata.ns = ns;
    job.metadata.name = name;
    job.spec = std::move(spec);
    job.spec.pod_template = *kube::RawJson::parse_text(
        R"({"spec": {"containers": [{"name": "main", "image": "busybox"}]}})");
    base::Result<kube::Job> created = client_.create(job);
    EXPECT_TRUE(created.ok()) << created.error().message;
    kube::Job changed = *created;
    changed.status = std::move(status);
    base::Result<kube::Job> written = client_.patch_status_from(*created, changed);
    EXPECT_TRUE(written.ok()) << written.error().message;
    return *written;
  }

  kube::BatchJob add_batch_job(const std::string& ns, const std::string& name,
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
  // To be the metadata of a job that is an attempt at it.
  static kube::ObjectMeta attempt_at(const kube::BatchJob& batch, const std::string& number) {
    kube::ObjectMeta metadata;
    metadata.labels["kubegang.io/attempt"] = number;
    metadata.owner_references.push_back({.api_version = "batch/v1",
                                         .kind = "Job",
                                         .name = batch.metadata.name,
                                         .uid = batch.metadata.uid,
                                         .controller = true});
    return metadata;
  }

  static kube::Allocation on(const std::string& nodes) {
    return {.hostlist = nodes,
            .nodes = static_cast<std::int32_t>(slurm::expand_hostlist(nodes)->size()),
            .cpus = 8,
            .shares = {{.hostlist = nodes, .cpus = 8}}};
  }
  static kube::Conditions ready() {
    return {{.type = "Ready",
             .status = kube::ConditionStatus::kTrue,
             .last_transition_time = kube::ManualClock::kStart,
             .reason = "AllPodsRun"}};
  }

  kube::ManualClock clock_;
  kube::ManualSleeper sleeper_{clock_};
  devcluster::ApiServer server_{clock_};
  devcluster::InProcessTransport transport_{server_};
  kube::Client client_{transport_, clock_, sleeper_, {}};
  kube::Sleeper* session_sleeper_ = &sleeper_;   // of commands that wait
  std::optional<std::size_t> terminal_columns_;  // nothing: what is written goes to no terminal
};

}  // namespace cli
